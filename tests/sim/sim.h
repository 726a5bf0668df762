// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Several nodes in one thread: the real control core and the real workers of each, one store that all
// share, a network that loses, repeats, delays, reorders and splits, clocks that are stepped and run
// at different rates. Nodes crash, restart, are suspended, are stopped. All chance comes from one
// seed; what happens is folded into a hash, so that two runs of a seed can be compared.

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dp/port.h"
#include "fabric/fabric.h"
#include "node/node.h"
#include "sim_stats.h"
#include "store/memory/memory.h"
#include "wire/wire.h"

enum {
	SIM_NODES_MAX = 5,
	SIM_WORKERS = 2,
	SIM_CLIENTS = 3,
	SIM_SPOTS = 6, // "s-0" …: Instance ids, "r-0" …: User ids
	SIM_OPS_MAX = 1024,
	SIM_AIR_MAX = 512, // frames under way
	SIM_FRAME_BYTES = 1472,
	SIM_STEPS = 1800,
	SIM_BUILT_MAX = 4096,
};
#define SIM_MS UINT64_C(1000000)

enum { // message types of the sim module
	SIM_COUNT = 1, // the handler notes the operation number
	SIM_ASK = 2,   // the same, then asks another Spot and waits or yields
	SIM_ASKED = 3,
	SIM_CLOSE = 4, // notes, then asks to be closed
	SIM_WORK = 5,  // notes, then hands work off and waits
};

struct sim;

struct sim_clock { // boot time of one node: true time at its own rate, from its own zero
	struct clock base;
	struct sim *sim;
	uint64_t zero_ns;
	int64_t rate_ppm;
	int64_t wall_offset_ns;
};

struct sim_op { // one request of a client
	bool message; // else a control operation
	bool refused; // the first result was a definite no
	uint8_t client, node;
	uint8_t launches, boots_seen; // boots of the node it was launched to, the last one
	uint8_t id_bytes;
	uint8_t id[8];
	struct wire_header header;
	uint64_t deadline_ns; // the caller's own, true time
	uint32_t executions, results;
	bool probe; // of the calm end: must have its result
	struct result first;
};

struct sim_session { // of one client with one node
	uint64_t id, counter, cookie;
};

struct sim_client {
	struct peer peer;
	struct sim_session sessions[SIM_NODES_MAX];
};

struct sim_buf {
	struct sim_buf *next;
	struct peer from;
	uint32_t bytes;
	uint8_t data[SIM_FRAME_BYTES];
};

struct sim_queue { // a worker's network port
	struct fabric_queue_base base;
	struct sim *sim;
	uint8_t node, worker;
	struct sim_buf *first, **end;
	uint32_t waiting;
};

struct sim_air { // one frame under way
	uint64_t due_ns;
	struct peer to;
	struct sim_buf *buf;
};

enum sim_node_state { SIM_DOWN = 1, SIM_RUNNING = 2, SIM_PAUSED = 3 };

struct sim_object { // one activation, as its module sees it
	bool alive, closing;
	uint64_t generation;
};

struct sim_node {
	struct sim *sim;
	uint8_t index;
	enum sim_node_state state;
	uint32_t boots;
	uint64_t until_ns; // DOWN, PAUSED: true time of the next change
	bool stopping, lock_lost;
	struct sim_clock clock;
	struct rng rng;
	struct store *store;
	struct route_table *routes;
	struct dp *dp;
	struct node *node;
	struct sim_queue queues[SIM_WORKERS];
	struct peer address;
	uint64_t lapsed_ns; // true time at which it last acted without a lease; 0: not in this run
	bool cut[SIM_NODES_MAX + 1]; // partition: no frames to that node; [MAX]: to clients
	uint32_t operator_asked, operator_answered;
	struct store_boot_id boot;
	struct sim_object objects[2][SIM_SPOTS];
};

struct sim_row { // what the store held of an id after the last step
	bool exists, ready;
	struct store_boot_id boot;
	uint64_t generation, authority;
};

struct sim {
	uint64_t seed, step;
	struct rng rng, fault_rng;
	uint64_t now_ns; // true time
	struct sim_clock store_clock;
	struct store *rows; // a door that only looks
	uint64_t writes_seen;
	struct sim_row seen[2][SIM_SPOTS];
	uint32_t node_count;
	uint64_t idle_ms; // of Instance Spots; 0: off
	struct sim_node nodes[SIM_NODES_MAX];
	struct sim_node *current; // whose code runs now
	struct sim_client clients[SIM_CLIENTS];
	struct sim_op ops[SIM_OPS_MAX];
	uint32_t op_count;
	struct sim_air air[SIM_AIR_MAX];
	uint32_t air_count;
	struct memory_faults store_faults;
	uint32_t drop_permille, repeat_permille, late_permille, factory_fail_permille;
	uint64_t built[SIM_BUILT_MAX]; // object generations whose factory ran
	uint32_t built_count;
	struct sim_claim {
		uint64_t generation, at_ns; // true time at which the claim was first seen stored
	} claims[SIM_BUILT_MAX];
	uint32_t claim_count;
	bool quiet; // no new work, no faults
	bool trace;
	bool retired_waits; // readers stall: nothing deferred is freed
	uint64_t hash;
};

extern struct sim *sim_world; // the one that runs

void sim_note(struct sim *s, uint64_t a, uint64_t b); // into the hash
void sim_trace(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Ends the process with seed and step when a promise is broken.
void sim_check(struct sim *s, bool good, const char *promise);
bool sim_chance(struct sim *s, uint32_t permille);

// sim.c
struct sim *sim_create(uint64_t seed, bool trace);
void sim_run(struct sim *s, uint32_t steps);
void sim_finish(struct sim *s); // heals, quiesces, compares the books, stops every node, frees

// sim_node.c
void sim_clock_init(struct sim_clock *c, struct sim *s, uint64_t zero_ns, int64_t rate_ppm);
void sim_node_init(struct sim *s, uint32_t index);
void sim_node_boot(struct sim_node *n);
void sim_node_crash(struct sim_node *n);
void sim_node_end(struct sim_node *n); // it stopped
void sim_node_step(struct sim_node *n);                // control
void sim_node_turn(struct sim_node *n, uint16_t worker);
void sim_node_pause(struct sim_node *n, uint64_t ns);
void sim_node_continue(struct sim_node *n);
void sim_node_due(struct sim_node *n); // restarts and continues what is due, buries what ended
void sim_node_act_as_operator(struct sim_node *n);
bool sim_node_lease_live(const struct sim_node *n);

// sim_net.c
void sim_net_open(struct sim_node *n);
void sim_net_close(struct sim_node *n);
void sim_net_send(struct sim *s, const struct peer *from, const struct peer *to, const void *data,
	uint32_t bytes);
void sim_net_turn(struct sim *s); // delivers what is due
void sim_net_clear(struct sim *s);

// sim_client.c
void sim_client_open(struct sim *s, uint32_t index);
void sim_client_hello(struct sim *s, uint32_t index, uint32_t node);
uint32_t sim_client_new_op(struct sim *s, uint32_t node);
void sim_client_repeat(struct sim *s);
void sim_client_receive(
	struct sim *s, uint32_t client, const struct peer *from, struct span frame);

// sim_check.c
void sim_check_node(struct sim_node *n);  // promises about one node, after it acted
void sim_check_rows(struct sim *s);       // promises about the store, after it changed
void sim_check_turn(struct sim_node *n, uint32_t kind, uint32_t number);
void sim_check_built(struct sim_node *n, uint32_t kind, uint32_t number, uint64_t generation);
void sim_check_rest(struct sim *s);       // everything is quiet

// sim_module.c
extern const struct spotlane_module sim_module;

// sim_ports.c: grace periods that are stepped
void sim_publish_turn(void);
void sim_publish_hold(bool hold);
