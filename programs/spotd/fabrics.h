// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Opens what the configuration lists under `fabrics`, gives every worker its queues, and keeps what
// an operator wants to know of each. Main thread; start-up and shut-down only.

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "config/config.h"
#include "dp/net.h"
#include "dp/port.h"
#include "fabric/fabric.h"
#include "loop/loop.h"

struct fabric_dpdk_port;
struct net_port;

struct fabrics_entry {
	const struct config_fabric *config;
	struct fabric_queue *queues[DP_WORKERS_MAX]; // NULL: this worker has none
	struct fabric_dpdk_port *dpdk;               // dpdk only
	// dpdk only: control's neighbour code for the port
	struct net_port *net;
	char address[64];                            // "10.99.0.1:7700"
	char driver[64];
	char vdev[256]; // the EAL device string, dpdk only
};

struct fabrics {
	struct fabrics_entry entries[CONFIG_FABRICS_MAX];
	uint32_t count;
	struct clock *clock;
	bool eal_started;
	char eal_line[2048]; // effective EAL arguments, "" when no fabric needs them
};

enum { FABRICS_WHY_BYTES = 512 };

// On failure everything opened is closed again and out_why says what to do.
MUST_USE bool fabrics_open(struct fabrics *fabrics, const struct config *config,
	struct clock *clock, char out_why[FABRICS_WHY_BYTES]);
void fabrics_attach(struct fabrics *fabrics, struct dp *dp, uint16_t workers);
void fabrics_close(struct fabrics *fabrics); // after the workers ended
// Hooks for worker threads (EAL wants to know them).
void fabrics_thread_begin(void *fabrics, uint16_t worker);
void fabrics_thread_end(void *fabrics, uint16_t worker);
// Control's step: neighbours, echo. Returns when it wants to be called again (boot ns).
uint64_t fabrics_step(void *fabrics);
// Descriptors that become readable when a worker left something for control's neighbour code.
void fabrics_add_wakes(struct fabrics *fabrics, struct loop *loop);
// For the control socket.
void fabrics_describe(struct fabrics *fabrics, uint32_t index, struct api_fabric *out);
void fabrics_stats(
	struct fabrics *fabrics, uint32_t index, uint16_t worker, api_emit_number emit, void *to);
const char *fabrics_dpdk_version(void);
