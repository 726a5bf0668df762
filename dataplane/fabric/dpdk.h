// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fabric over a DPDK port (any ethdev): one receive and one transmit queue per worker. Frames
// are single, linear mbufs in both directions: drivers that cannot send chains are the rule.
//
// open, close, net_io, driver: main thread or control. The queues' operations: their worker, which
// has called fabric_dpdk_thread_begin.

#include "dp/net.h"
#include "fabric/dpdk_eal.h"
#include "fabric/fabric.h"

struct fabric_dpdk_port_config {
	const char *device; // "net_af_packet0" (arguments behind a comma are ignored) or a PCI address
	uint8_t fabric;
	uint16_t udp_port;
	uint16_t workers;
	// mac all zero = the device's own; mtu 0 = 1,500.
	struct dp_net_identity identity;
	uint32_t frames;           // buffers per worker beside those in the rings; 0 = 4,096
	// descriptors per queue; 0 = 1,024; adjusted to the driver's limits
	uint16_t rx_ring, tx_ring;
};

struct fabric_dpdk_driver { // what the driver says, for display and doctor
	const char *name;
	uint64_t missed, no_buffer, errors_in, errors_out;
	bool hides_losses; // drops in its ring appear in none of the counters above
	bool link_up;      // software drivers always say so
	bool multi_segment_send;
};

struct fabric_dpdk_port;

// On success *out_why is empty or holds a warning (fewer queues than workers, say). On failure
// nothing stays configured and *out_why holds what, where and what to do.
MUST_USE bool fabric_dpdk_port_open(const struct fabric_dpdk_port_config *config,
	struct fabric_dpdk_port **out_port, struct fabric_why *out_why);
// After its workers ended. Accepts NULL. A port can be opened again.
void fabric_dpdk_port_close(struct fabric_dpdk_port *port);

// NULL: the driver has fewer queues than workers, this worker has none.
struct fabric_queue *fabric_dpdk_port_queue(struct fabric_dpdk_port *port, uint16_t worker);
uint16_t fabric_dpdk_port_queue_count(const struct fabric_dpdk_port *port);
// Control's side of the port; valid until close.
void fabric_dpdk_port_net_io(struct fabric_dpdk_port *port, struct dp_net_io *out_io);
// With the MAC and MTU in force.
const struct dp_net_identity *fabric_dpdk_port_identity(const struct fabric_dpdk_port *port);
void fabric_dpdk_port_driver(struct fabric_dpdk_port *port, struct fabric_dpdk_driver *out);
// Buffers of a worker's stock that are neither in rings nor held; for tests at rest.
uint32_t fabric_dpdk_free_buffers(const struct fabric_queue *q);
