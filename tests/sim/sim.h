// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One node in one thread: the real control core and the real workers, a stepped clock, a network that
// loses, repeats and reorders, a memory store that fails and stalls. All chance comes from one seed;
// what happens is folded into a hash, so that two runs of a seed can be compared.

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dp/port.h"
#include "fabric/loop.h"
#include "node/node.h"
#include "store/memory/memory.h"
#include "wire/wire.h"

enum {
	SIM_WORKERS = 2,
	SIM_CLIENTS = 3,
	SIM_SPOTS = 12, // "s-0" …: Instance ids, "r-0" …: User ids
	SIM_OPS_MAX = 2048,
	SIM_AIR_MAX = 256, // frames under way to the node
	SIM_FRAME_BYTES = 512,
};
#define SIM_MS UINT64_C(1000000)

enum { // message types of the sim module
	SIM_COUNT = 1, // the handler notes the operation number
	SIM_ASK = 2,   // the same, then asks another Spot and waits
	SIM_ASKED = 3,
	SIM_CLOSE = 4, // notes, then asks to be closed
};

struct sim_op { // one request of a client
	bool message; // else a control operation
	uint8_t client;
	uint16_t bytes;
	uint8_t frame[SIM_FRAME_BYTES];
	uint64_t deadline_ns; // the caller's own
	uint32_t executions;
	uint32_t results;
	struct result first;
};

struct sim_client {
	struct fabric_queue *queue;
	struct peer peer;
	uint64_t session, counter, cookie;
};

struct sim_air {
	uint32_t op; // or SIM_OPS_MAX: a hello
	uint8_t client, worker;
};

struct sim {
	uint64_t seed, step;
	struct rng rng;
	struct sim_clock {
		struct clock base;
		uint64_t boot_ns;
	} clock;
	struct store *store;
	struct route_table *routes;
	struct fabric_loop *net;
	struct fabric_queue *queues[SIM_WORKERS];
	struct dp *dp;
	struct node *node;
	struct rng node_rng;
	struct sim_client clients[SIM_CLIENTS];
	struct sim_op ops[SIM_OPS_MAX];
	uint32_t op_count;
	struct sim_air air[SIM_AIR_MAX];
	uint32_t air_count;
	uint32_t drop_permille, repeat_permille, factory_fail_permille;
	uint32_t operator_asked, operator_answered;
	uint32_t alive[2][SIM_SPOTS]; // objects now, by id
	uint64_t last_generation[2][SIM_SPOTS];
	bool quiet; // no new work, no faults
	uint64_t hash;
	uint64_t executions, activations, lapses;
};

extern struct sim *sim_world; // the one that runs

void sim_note(struct sim *s, uint64_t a, uint64_t b); // into the hash
// Ends the process with seed and step when a promise is broken.
void sim_check(struct sim *s, bool good, const char *promise);

// sim.c
struct sim *sim_create(uint64_t seed);
void sim_run(struct sim *s, uint32_t steps);
void sim_settle(struct sim *s, uint64_t ns);
void sim_finish(struct sim *s); // quiesces, compares the books, stops the node, frees

// sim_client.c
void sim_client_open(struct sim *s, uint32_t index);
void sim_client_hello(struct sim *s, uint32_t index);
void sim_client_new_op(struct sim *s);
void sim_client_repeat(struct sim *s);
void sim_client_deliver(struct sim *s, uint32_t at);
void sim_client_receive(struct sim *s);

// sim_module.c
extern const struct spotlane_module sim_module;
