// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The control core of one node: activation, lease, close, routes, node lifecycle. Pure of I/O: it is
// driven by node_step and the completions of its store, and acts only through its ports (store, dp,
// clock, rng). No globals, no thread-locals. Control thread only; nothing blocks.
//
// Operators and the API call the operations below; each ends in exactly one completion.

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "dp/port.h"
#include "spot/name.h"
#include "store/store.h"

struct node;

enum node_state { // H1
	NODE_PREPARING = 1,
	NODE_SERVING = 2,
	NODE_DRAINING = 5,
	NODE_STOPPED = 6,
	NODE_ERROR = 7,
};
const char *node_state_name(enum node_state state);

struct node_config {
	const char *node_id; // 1..64 bytes
	const char *entry_prefix;
	const char *entry_type; // Spot type of the Entry Spot, NULL = none
	uint64_t lease_ttl_ms, lease_renew_ms, lease_timeout_ms, lease_margin_ms; // O1
	uint32_t clock_rate_error_percent;                                        // ρ, default 1
	uint32_t activations_max;        // A10: 128 at once
	uint32_t activations_waiting_max; // A10: 16,384
	uint32_t resolves_max;           // A10: 4,096
	uint64_t spots_max;              // N1; 0 = none
	uint64_t actors_max;             // N1; 0 = none
	uint64_t idle_ms;                // C1: Instance Spots end so long after their last work; 0 = never
	uint32_t sweep_interval_ms;      // C3: between two looks at 64 Spots
	uint32_t closing_limit_ms;       // C4 hard limit
	uint32_t drain_deadline_ms;      // H3
	uint32_t rcu_pending_max;        // R3
	uint16_t workers;                // as given to dp_create
	const char *host_id;             // where this run is (store/lock.h); NULL or "" = not known
	const char *address;             // shown to others; may be NULL
	uint64_t fence_grace_ms;         // O6: a dead node is fenced so long after its lease; 0 = off
	bool node_lock_held;             // this process holds the node id's file lock on host_id (O4)
};

// *out_why: static text naming the refused setting (O1's relation among them).
MUST_USE struct node *node_create(const struct node_config *config, struct clock *clock,
	struct rng *rng, struct store *store, struct dp *dp, struct route_table *routes,
	const char **out_why);
// Completions that still come are swallowed from now on: before store_destroy.
void node_halt(struct node *node);
// After node_halt, the end of the workers and store_destroy; before dp_destroy. Frees the Spots left.
void node_destroy(struct node *node);

// C1 for one Instance type, in place of idle_ms; 0 = never. Before node_start. False: no such type.
MUST_USE bool node_idle_set(struct node *node, const char *type_name, uint64_t idle_ms);

// Joins the store (draws the lease generation, waits out a former run), makes the Entry Spot, then
// Serving. Progress through node_status.
void node_start(struct node *node);
// H3: seal → finish accepted work → HostShutdown closings → release authorities and lease → stopped.
void node_stop(struct node *node, uint32_t deadline_ms);
void node_stop_now(struct node *node); // second signal

// Takes store completions and facts, moves timers, retries what was busy. Returns the boot time at
// which it wants to be called again at the latest; call it also when the store's wait_fd or dp_wake_fd
// is readable and after each operation below.
uint64_t node_step(struct node *node);

enum node_exit { // what the process should exit with once node_state is STOPPED or ERROR
	NODE_EXIT_CLEAN = 0,
	NODE_EXIT_STORE = 12,
	NODE_EXIT_LEASE_LOST = 13,
	NODE_EXIT_INTERNAL = 70,
};

struct node_status {
	enum node_state state;
	enum node_exit exit_code;
	char why[256]; // last thing worth telling a person: error, progress of a wait
	uint64_t started_boot_ns;
	uint8_t boot_id[16];
	uint64_t lease_generation;
	int64_t lease_left_ns; // negative: lapsed
	uint64_t lease_renewals, lease_failures;
	int64_t clock_skew_to_store_ns;
	uint64_t spots_live[4]; // by enum spot_kind
	uint64_t activations_running, activations_waiting, resolves_running, closes_running, closes_stuck;
	uint64_t activations_total, activation_failures, closes_total;
	uint64_t routes, route_bytes, rcu_pending;
	bool ready; // nothing fails of node/health.h
};
void node_status(const struct node *node, struct node_status *out);

// ---- operations ----
// done is called once, perhaps before the operation returns; after deadline_boot_ns at the latest. It
// must not call back into the node.
// refusal: whose room and how full, of a refusal for room (M5); else NULL.
typedef void (*node_done)(void *arg, struct result result, const struct refusal *refusal,
	struct object_generation generation, bool changed, struct spot_key key);
// Explicit create of a User Spot (A1); existing_ok = get-or-create. Copies its arguments.
// key is the Spot's; changed: this call made (closed) it.
void node_create_spot(struct node *node, struct span id, struct type_key type, struct span argument,
	bool existing_ok, uint64_t deadline_boot_ns, node_done done, void *arg);
// Close by id. generation 0 = any (C7).
void node_close_spot(struct node *node, struct span id, struct object_generation generation,
	uint64_t deadline_boot_ns, node_done done, void *arg);
// Store view, cache view, owner view side by side.
struct node_where {
	enum store_outcome store_outcome;
	bool store_exists;
	struct store_spot_row row;
	bool route_exists;
	// The route cache's view of a Spot of another node (R1).
	bool remote_exists, remote_usable;
	struct node_key remote_owner;
	struct lease_generation remote_lease;
	struct object_generation remote_object_generation;
	struct authority_generation remote_authority_generation;
	int64_t remote_left_ns; // until its age limit; negative: over
	struct dp_spot *local; // NULL when not here
};
typedef void (*node_where_done)(void *arg, const struct node_where *where);
void node_where(struct node *node, struct spot_key key, node_where_done done, void *arg);

// O6: the formal release of a dead node's Spots. Refused while that node counts as live: this node must
// have watched its beat stand still without a gap for TTL * (1 + rho). Results: OK; NotFound: no such
// node; InvalidOperation: this very node; Rejected: counts as live, or came back; Unavailable: no view,
// no lease, or another fence under way. Repeated: changed = false. At the deadline DeadlineExceeded,
// and the release goes on.
struct node_fence_report {
	struct result result;
	bool changed;
	uint64_t rows_released;
	const char *text; // for people, during the call
};
typedef void (*node_fence_done)(void *arg, const struct node_fence_report *report);
void node_fence(struct node *node, struct span node_id, uint64_t deadline_boot_ns,
	node_fence_done done, void *arg);

struct dp_spot *node_find(struct node *node, struct spot_key key);
// Walks local Spots, max a call; cursor 0 = start and end.
uint32_t node_walk(struct node *node, uint64_t *cursor, uint32_t max,
	void (*visit)(struct dp_spot *spot, void *arg), void *arg);

// What may move to another node (V1, K4): Entry Actors, User Spots with their members, Instance Spots;
// never the Entry Spot. Walks as node_walk.
enum node_candidate_kind {
	NODE_CANDIDATE_ACTOR = 1,
	NODE_CANDIDATE_USER = 2,
	NODE_CANDIDATE_INSTANCE = 3,
};
struct node_candidate {
	enum node_candidate_kind kind;
	struct spot_key key;
	struct span id; // borrowed during the visit
	uint32_t members; // of a User Spot
};
uint32_t node_candidates(struct node *node, uint64_t *cursor, uint32_t max,
	void (*visit)(const struct node_candidate *candidate, void *arg), void *arg);
uint64_t node_actors(const struct node *node); // N1

// Events for `watch` and the log: the node calls the sink, which must not call back.
enum node_event_kind {
	NODE_EVENT_STATE = 1,
	NODE_EVENT_ACTIVATED = 2,
	NODE_EVENT_ACTIVATION_FAILED = 3,
	NODE_EVENT_CLOSED = 4,
	NODE_EVENT_CLOSE_STUCK = 5,
	NODE_EVENT_LEASE_LOST = 6,
	NODE_EVENT_LEASE_REGAINED = 7,
	NODE_EVENT_OVERRUN = 8,
	NODE_EVENT_SKEW = 9,
	NODE_EVENT_PEER = 10,   // another node's standing changed (id: its node id; value: peers.h)
	NODE_EVENT_FENCED = 11, // id: node id; value: Spots released
};
struct node_event {
	enum node_event_kind kind;
	struct spot_key key;
	struct span id;
	struct result result;
	uint64_t value; // ns, generation, … by kind
	char text[160]; // never empty: what, where, what next
};
void node_set_event_sink(struct node *node, void (*sink)(void *arg, const struct node_event *e), void *arg);
