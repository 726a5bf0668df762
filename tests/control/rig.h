// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One node on a scripted data plane, the memory store and a stepped clock.

#include "fake_dp.h"
#include "node/node.h"
#include "store/memory/memory.h"

struct rig_clock {
	struct clock base;
	uint64_t boot_ns, wall_offset_ns;
};

struct rig {
	struct rig_clock clock;
	struct rng rng;
	struct store *store;
	struct dp *dp;
	struct route_table *routes;
	struct node *node;
	struct node_config config;
	uint32_t events[16];
	struct node_event last_event;
	uint64_t last_event_of[16];
	char last_text_of[16][160];
	struct store_node_row peer; // another node's row: its beat moves each second while peer_beats
	bool peer_beats;
	uint64_t peer_next_ns;
};

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct rig *rig_create(void); // not started; change config, then rig_start
void rig_start(struct rig *r); // and runs until Serving
void rig_begin(struct rig *r); // only node_create and node_start
struct rig *rig_serving(void);
void rig_destroy(struct rig *r);
void rig_crash(struct rig *r);   // the process dies: node and data plane are gone, the store stays
void rig_restart(struct rig *r); // a new process; not started
void rig_step(struct rig *r, uint64_t ns); // moves the clock, then one node_step
void rig_run(struct rig *r, uint64_t ns);  // many steps of 1 ms
// Runs until state is reached, at most 120 s of stepped time.
void rig_until(struct rig *r, enum node_state state);
struct node_status rig_status(struct rig *r);
struct store_spot_row rig_row(struct rig *r, const char *id); // exists = false when there is none
struct dp_spot *rig_spot(struct rig *r, const char *id);
struct span rig_id(const char *id);

// Another node's run: its row is in the store and its beat moves from now on.
void rig_peer(struct rig *r, const char *node_id, uint8_t boot, uint64_t lease_generation);
void rig_peer_stops(struct rig *r); // its beat stands still from now on
void rig_peer_write(struct rig *r); // r->peer as it is, to the store

struct rig_answer { // of an operator's operation
	uint32_t count;
	struct result result;
	struct refusal refusal; // zero without one
	struct object_generation generation;
	bool changed;
};
void rig_create_spot(struct rig *r, const char *id, const char *type, bool existing_ok,
	struct rig_answer *answer);
void rig_close_spot(struct rig *r, const char *id, uint64_t generation, struct rig_answer *answer);

#define assert_result(r, k, why)                                                                   \
	do {                                                                                       \
		assert_string_equal(result_kind_name((r).kind), result_kind_name(RESULT_##k));     \
		assert_int_equal((r).reason, REASON_##why);                                        \
	} while (0)
