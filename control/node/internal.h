// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Inside of the control core. One `struct entry` per key that is being resolved, created or closed:
// the driver of lib/spot/activation's machine; whoever waits for that key is a `struct waiter` of it.
// A Ready Spot at rest has no entry.
//
//   node.c      life of the node, step, status, events
//   lease.c     join, renewal, watch of a former run, release of its rows
//   entry.c     entries: the machine's events, timers, places
//   effects.c   the machine's effects
//   resolve.c   what a stored row means for those who wait
//   waiter.c    who waits, and their ends
//   actor.c     Actors: changes of membership
//   drain.c     stop, forced ends
//   facts.c     what the data plane reports
//   dpq.c       commands that met a full ring
//   peers.c     the other nodes' beats (O4)
//   remote.c    routes to other nodes' Spots (R1, R2)
//   fence.c     formal release of a dead node's Spots (O6)
//   sweep.c     idle cleanup (C1-C4)
//   events.c    what an event says to a person

#include "base/latency.h"
#include "node/fence.h"
#include "node/node.h"
#include "node/peers.h"
#include "node/remote.h"
#include "publish/publish.h"
#include "spot/activation.h"

#define NS_PER_MS UINT64_C(1000000)

enum {
	ENTRY_BUCKETS = 8192,
	RETRY_MS = 200,          // between tries at a store that fails
	AWAIT_MS = 10,           // before the second look at another node's attempt; doubled by each
	AWAIT_MAX_MS = 640,
	AWAIT_LIMIT_MS = 30000,  // then the asker hears Unavailable
	TICK_MS = 250,           // node_step at least this often
	DRAIN_CLOSINGS_MAX = 256,
	OPERATIONS_MAX = 4096,   // explicit operations that wait at once
	FORMER_BATCH = 256,
	GENERATION_RANGE = 4096,
	FACTS_PER_TAKE = 16,
	TAKES_PER_STEP = 64,
	PEER_RETRY_MS = 500,     // after a view that could not be read
};

struct entry;

// ---- dpq.c ----
enum command_kind {
	COMMAND_NONE = 0,
	COMMAND_CONSTRUCT = 1,
	COMMAND_OPEN = 2,
	COMMAND_CLOSE = 3,
	COMMAND_CLOSE_IDLE = 4,
	COMMAND_RELEASE = 5,
	COMMAND_FAIL = 6,
	COMMAND_REPLY = 7,
	COMMAND_ACTOR_ADMIT = 16, // these: embedded in a change of membership (actor.c)
	COMMAND_ACTOR_LEAVE = 17,
	COMMAND_ACTOR_ENTER = 18,
	COMMAND_ACTOR_REPLY = 19,
};
struct command { // embedded in an entry (1-4) or a waiter (5-7); queued while its worker's ring is full
	struct command *next;
	enum command_kind kind; // NONE: free
	uint16_t worker;
};
struct command_queue {
	struct command *first, **end;
};
void dpq_init(struct node *n);
void dpq_send(struct node *n, struct command *c); // now, or in its worker's order later
void dpq_flush(struct node *n);
bool dpq_is_crowded(const struct node *n); // facts wait while it is

// ---- waiter.c ----
enum waiter_kind {
	WAITER_MESSAGES = 1,  // a worker's parked messages of the key
	WAITER_OPERATION = 2, // create, get-or-create, close, lookup: by wire or by an operator
};
enum operation_origin { ORIGIN_WIRE = 1, ORIGIN_OPERATOR = 2 };

struct waiter {
	struct waiter *next; // of its entry
	struct node *node;
	struct spot_key key;
	enum waiter_kind kind;
	struct command command;
	struct result result; // set at the end
	struct refusal refusal;
	bool creator; // its wish made this creation
	struct type_key spot_type; // 0 = none
	uint8_t id_bytes;
	uint8_t id[ID_BYTES_MAX];
	union {
		struct {
			uint16_t worker;
			bool intent;
		} messages;
		struct {
			struct waiter *previous, *next; // of all operations
			enum operation_origin origin;
			uint16_t what; // enum wire_control
			uint16_t worker;
			uint64_t token;
			node_done done;
			void *arg;
			struct object_generation generation;
			struct object_generation answer_generation;
			bool changed;
			uint64_t deadline_boot_ns;
			uint16_t argument_bytes;
			uint8_t *argument;
		} operation;
	} as;
};
struct waiter *waiter_create(struct node *n, enum waiter_kind kind, struct spot_key key);
void waiter_free(struct waiter *w);
bool waiter_wants_creation(const struct waiter *w);
bool waiter_is(const struct waiter *w, uint16_t operation); // an operation of this kind
// The one end of a waiter; takes it. refusal may be NULL.
void waiter_end(struct node *n, struct waiter *w, struct result result, const struct refusal *refusal);
void waiter_end_ok(
	struct node *n, struct waiter *w, struct object_generation generation, bool changed);
void waiter_release(struct node *n, struct waiter *w); // its messages look again
void waiter_end_operators(struct node *n);             // the node ends
void waiter_expire(struct node *n);                    // operations past their deadline
enum dp_status waiter_command(struct node *n, struct command *c);
void waiter_command_done(struct node *n, struct command *c);

// ---- entry.c ----
struct link { // of one of the node's lists
	struct entry *previous, *next;
};
struct entry_list {
	struct entry *first, *last;
};

struct entry {
	struct entry *hash_next;
	struct node *node;
	struct spot_key key;
	enum activation_state state;
	struct waiter *waiters, **waiters_end;
	struct store_op op; // one at a time
	bool op_lent;
	uint64_t read_ns; // when the row was asked for
	bool ready_elsewhere; // AWAITING: for the view of the nodes, not for an attempt
	struct link link; // queued, timed (retry) or closing list
	uint64_t due_ns;
	uint64_t await_until_ns; // AWAITING: 0 = not begun
	uint64_t await_ms;       // the next pause
	bool waits_for_view;     // AWAITING: for the next view of the nodes, not only for time
	struct store_boot_id seen_boot; // whom the row named when it was read last,
	uint64_t seen_ns;               // and since when
	struct command command;
	struct result failure; // what FAIL says
	struct refusal refusal;
	bool has_refusal;
	// creation, and the object under way
	const struct dp_type *type;
	enum spot_kind kind;
	bool reserved;  // counted against N1 and not yet live
	uint64_t reserved_ns; // since when
	bool running;   // holds one of the 128 places
	bool published;
	uint8_t id_bytes;
	uint8_t id[ID_BYTES_MAX];
	uint16_t argument_bytes;
	uint8_t *argument;
	uint16_t origin; // worker of the first intent message
	struct object_generation generation;
	struct authority_generation authority;
	struct store_op_id attempt, commit;
	struct dp_spot *spot;
	uint8_t close_reason;
	bool close_wanted; // by its own handler, while something else was under way
	uint64_t idle_ns; // close_reason IDLE_EVICTED: for how long it has to have been quiet
	struct store_spot_row orphan; // CLEANING: as read
};

struct entry *entry_find(struct node *n, struct spot_key key);
struct entry *entry_create(struct node *n, struct spot_key key); // IDLE; NULL: no memory
void entry_event(struct node *n, struct entry *e, enum activation_event event);
void entry_fails(struct entry *e, struct result result);
void entry_refused(struct node *n, struct entry *e, struct result result, uint64_t limit, uint64_t now);
void entry_join(struct node *n, struct entry *e, struct waiter *w); // takes the waiter
void entry_add_waiter(struct entry *e, struct waiter *w);
enum dp_status entry_command(struct node *n, struct command *c);
void entry_start_queued(struct node *n);
void entry_timers(struct node *n);
void entry_peers_changed(struct node *n); // who waits for another node's run looks again
void entry_generations_arrived(struct node *n);
void entry_close_begin(struct node *n, struct dp_spot *spot, uint8_t reason);
// Only where nothing else is under way for its key.
void entry_close_idle(struct node *n, struct dp_spot *spot, uint64_t idle_ns);
void entry_serve(struct node *n, struct entry *e);
void entry_free_all(struct node *n);
void entry_clear_creation(struct node *n, struct entry *e); // gives place and reservation back
void entry_store_failed(struct node *n, struct entry *e, enum store_outcome outcome);
void entry_effect(struct node *n, struct entry *e, enum activation_effect_bit effect);
void entry_retry_at(struct node *n, struct entry *e, uint64_t due_ns); // UINT64_MAX: not by time
void entry_list_push(struct entry_list *l, struct entry *e);
void entry_list_remove(struct entry_list *l, struct entry *e);
struct entry *entry_list_pop(struct entry_list *l);

// ---- resolve.c ----
void resolve_row_read(struct node *n, struct entry *e);
// Serves those who wait for a Spot that lives here; close operations that may go on stay.
void resolve_serve_here(struct node *n, struct entry *e, struct dp_spot *spot);
// What is wrong with a wish to create, before any store work; OK: nothing.
struct result resolve_check_wish(
	const struct node *n, struct span id, struct type_key type, enum spot_kind wanted);

// ---- facts.c ----
void facts_take(struct node *n);

// ---- lease.c ----
enum lease_phase {
	LEASE_NONE = 0,
	LEASE_LOOKING = 1,  // reads the node's row
	LEASE_WATCHING = 2, // a former run's beat (O4)
	LEASE_JOINING = 3,
	LEASE_HELD = 4, // member; held or lapsed by its deadline
	LEASE_LEAVING = 5,
	LEASE_LEFT = 6,
};
void lease_start(struct node *n);
void lease_step(struct node *n);
void lease_leave(struct node *n);
void lease_drop(struct node *n); // at once: workers refuse from now on
bool lease_is_live(const struct node *n);
uint64_t lease_next(const struct node *n);
bool lease_relation_holds(const struct node_config *config);

// ---- peers.c ----
struct peer {
	struct store_node_row row;
	uint64_t since_ns; // when run and beat were first seen, counted from that answer
	uint64_t moved_ns; // the same, but a read that failed in between does not move it (R1)
	enum peer_standing told;
	bool swept; // fenced, and its Spots released, by this process
};
struct peer_view {
	struct peer peers[STORE_NODES_MAX];
	uint32_t count;
	uint64_t asked_ns;   // when the last good read went out; 0: none
	uint64_t request_ns; // the one under way
	uint64_t next_ns;
	bool gap; // a read failed since: watches begin anew
	bool lent;
	struct store_op op;
	struct store_node_row rows[STORE_NODES_MAX];
};
void peers_step(struct node *n);
void peers_refresh(struct node *n); // with the next step
uint64_t peers_next(const struct node *n);
struct peer *peers_find(struct node *n, const char *node_id);
// Of the run `boot`, `lease` of a node; seen_ns: since when its row is known here to name that run.
enum peer_standing peers_standing(struct node *n, const char *node_id, struct store_boot_id boot,
	struct lease_generation lease, uint64_t seen_ns);
enum peer_standing peers_standing_of(struct node *n, struct peer *p);
// The run as it stands in the view, for a conditional write: fills op's node and expect_beat.
void peers_put_watched(const struct node *n, const struct store_spot_row *row, struct store_op *op);
// A write showed that this node's run goes on: its watch begins anew, with a fresh view.
void peers_watch_anew(struct node *n, const char *node_id);
uint64_t peers_still_ns(const struct node *n, const struct peer *p);
uint64_t peers_needed_ns(const struct node *n, const struct peer *p);

// ---- drain.c ----
struct drain {
	bool active, forced;
	uint8_t reason; // enum spotlane_close_reason
	uint64_t deadline_ns;
	uint64_t cursor;
};
void drain_begin(struct node *n, uint8_t reason, uint32_t deadline_ms);
void drain_step(struct node *n);

// ---- watch.c: stuck workers (X4), readiness ----
struct worker_watch {
	uint64_t turn_since_ns, turn_seen_awake_ns;
	uint64_t heartbeat, heartbeat_seen_awake_ns;
};
void watch_step(struct node *n);
uint64_t watch_workers_stalled(const struct node *n); // a bit for each worker that stands still

// ---- actor.c ----
enum { ACTOR_CHANGE_BUCKETS = 1024 };
struct change;
struct actors {
	struct change *changes[ACTOR_CHANGE_BUCKETS];
	uint64_t change_count;
	uint64_t count; // N1: active + about to be
};
// Kept in control's corner of a Spot that lives.
struct actor_host {
	uint32_t members; // admitted, or asked to be
	uint32_t changes; // under way here: it is not closed meanwhile
};
struct actor_host *entry_actor_host(struct dp_spot *spot); // effects.c
bool actor_host_is_busy(struct dp_spot *spot);
bool actor_host_has_members(struct dp_spot *spot);
void actor_host_closed(struct node *n, struct dp_spot *spot); // its members end with it
void actor_fact(struct node *n, const struct dp_fact *fact);
bool actor_takes_control(struct node *n, const struct dp_fact *fact); // JOIN, LEAVE
bool actor_takes_resolve(struct node *n, const struct dp_fact *fact); // an Actor's key
enum dp_status actor_command(struct node *n, struct command *command);
void actor_command_done(struct command *command, enum command_kind kind);
void actor_free_changes(struct node *n);
void actor_free_queued(struct command *command);

struct type_count {
	const struct dp_type *type;
	uint64_t spots;   // active + reserved (N1)
	bool idle_set;    // idle_ms in place of the node's
	uint64_t idle_ms; // C1; 0 = never
};

// ---- sweep.c ----
struct sweep {
	uint64_t cursor, next_ns;
	uint64_t rounds, candidates, kept;
};
void sweep_step(struct node *n);
uint64_t sweep_next(const struct node *n);

struct node {
	struct node_config config;
	char node_id[65], entry_prefix[65], host_id[65], address[128];
	struct clock *clock;
	struct rng *rng;
	struct store *store;
	struct dp *dp;
	struct route_table *routes;
	uint64_t now_ns; // boot clock at the beginning of this step
	enum node_state state;
	enum node_exit exit_code; // what STOPPED or ERROR will carry
	bool halted;  // completions are swallowed
	bool abandon; // no writes any more: lease lost for good, or the store is damaged
	char why[256];
	uint64_t started_ns;
	struct store_boot_id boot;
	void (*sink)(void *arg, const struct node_event *e);
	void *sink_arg;

	// lease
	enum lease_phase phase;
	struct lease_generation lease_generation;
	struct store_op lease_op, former_op, draw_op;
	bool lease_op_lent, former_op_lent, draw_op_lent;
	uint64_t lease_asked_ns;    // boot clock before the request went out (O3)
	uint64_t lease_asked_ticks;
	uint64_t lease_next_ns;     // when to ask again
	uint64_t lease_deadline_ns; // 0: none
	bool lease_counted_late;    // this request outlasted its time-out and was counted
	bool lease_lapsed;
	bool store_reachable;
	uint64_t lease_renewals, lease_failures;
	int64_t skew_ns;
	bool skew_warned;
	struct store_boot_id watched_boot;
	uint64_t watched_beat, watched_since_ns, watched_ttl_ms;
	uint64_t former_next_ns;
	bool former_done;
	uint64_t former_released;

	struct peer_view peers;
	struct remotes remotes;
	struct fence fence;
	struct sweep sweep;

	// entries
	struct entry *buckets[ENTRY_BUCKETS];
	uint64_t hash_seed;
	uint64_t entries;
	uint64_t in_state[ACTIVATION_STATE_END];
	struct entry_list queued, retries, closings;
	uint64_t retry_next_ns; // none of `retries` is due before
	uint64_t running;
	uint64_t generation_next, generation_end; // drawn range
	struct waiter *operations;
	uint64_t operation_count, operation_next_ns;

	struct command_queue commands[DP_WORKERS_MAX];
	uint64_t commands_queued;

	// counts
	uint64_t spots_counted; // N1: User + Instance, active + reserved
	struct type_count *types;
	uint32_t type_count;
	uint64_t spots_live[4];
	uint64_t activations_total, activation_failures, closes_total;
	struct latency activation_time; // reservation to published route

	struct actors actors;
	struct drain drain;
	struct worker_watch watches[DP_WORKERS_MAX];
	uint64_t awake_ns, last_step_ns;
	bool entry_spot_begun;
	struct spot_key entry_spot_key;
	uint64_t entry_spot_next_ns;
};

void node_say(struct node *n, const char *format, ...) PRINTF_LIKE(2, 3); // sets `why`
void node_emit(struct node *n, enum node_event_kind kind, struct spot_key key, struct span id,
	struct result result, uint64_t value);
void node_say_of(struct node *n, enum node_event_kind kind, struct span node_id, uint64_t value);
void node_enter(struct node *n, enum node_state state);
// Stop admitting, close everything without store writes, then ERROR with this exit code.
void node_fail(struct node *n, enum node_exit exit_code, const char *why);
void node_end_now(struct node *n, enum node_state state, enum node_exit exit_code);
void node_damaged(struct node *n); // a store operation said DAMAGED
void node_entry_spot_ready(struct node *n);
void node_entry_spot_failed(struct node *n, struct spot_key key, struct result result);
struct store_op_id node_draw_id(struct node *n);
void node_submit(struct node *n, struct store_op *op);
struct type_count *node_type_count(struct node *n, const struct dp_type *type);
struct node_key node_own_key(const struct node *n);
