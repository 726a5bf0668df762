// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// All that control may see of the data plane: commands in, facts out, Spot handles, counters.
//
// Threads: control calls every function here from its one thread, unless a line says otherwise.
// Nothing here blocks. Commands go through one bounded SPSC ring per worker, facts come back through
// one per worker; a full ring is a verdict (DP_BUSY), never a wait: control keeps the command and
// tries again at its next turn. A worker that has a fact rings `dp_wake_fd` at most once a burst and
// only when control said it sleeps (dp_control_sleeps).

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/ids.h"
#include "base/result.h"
#include "dp/counters.h"
#include "lane/lane.h"
#include "ledger/ledger.h"
#include "route/route.h"
#include "spot/name.h"

struct dp;        // the data plane of one node
struct dp_spot;   // one activation; memory of the data plane, lifetime decided by control
struct dp_actor;  // one Actor's place in one Spot; as dp_spot
struct dp_type;   // a loaded Spot type (module.h), registered before start
struct fabric_queue;

enum { DP_WORKERS_MAX = 64, DP_SLEEP_US_DEFAULT = 50 };

enum dp_status { DP_DONE = 1, DP_BUSY = 2, DP_NO_MEMORY = 3 };

// ---- owner lease, as workers see it (S1, S4, O3) ----
// One cache line per lease. Control writes deadline last with a release store; workers compare.
struct dp_lease {
	CACHE_ALIGNED _Atomic uint64_t deadline_boot_ns; // 0 = no lease held
	_Atomic uint64_t deadline_ticks;                 // the same moment on the tick clock
	_Atomic uint64_t generation;                     // lease generation (T4)
};

// ---- construction ----
enum dp_idle { DP_IDLE_SPIN = 1, DP_IDLE_ADAPTIVE = 2 };

struct dp_config {
	uint16_t workers; // 1..DP_WORKERS_MAX
	enum dp_idle idle;
	enum ledger_accounting accounting;
	struct lane_bounds application; // defaults of L1; a type may narrow them
	struct lane_bounds lifecycle;
	uint64_t process_mark_bytes;        // P1
	uint32_t parked_messages_max;       // A10, reason Parked (all workers together / workers)
	uint32_t resolves_in_flight_max;    // A10, reason PendingResolves
	uint32_t message_bytes_max;         // M8
	uint64_t peer_reassembly_bytes_max; // M8: 32 MiB
	uint32_t reassembly_expiry_ms;      // 500
	uint32_t sessions_max;              // per worker
	uint64_t held_replies_bytes;        // per worker: results held for repeats (M9); 0 = none
	uint32_t turn_budget_us;            // X4: 10,000
	uint32_t default_budget_ms;         // budget of a request that names none
	uint32_t offload_threads;           // X5
	uint32_t offload_queue_max;
	bool insecure;                      // suite 0 allowed
	struct node_key node;
	uint8_t cookie_key[16]; // drawn at boot
	struct clock *clock;
	const struct route_table *routes; // control is its writer
};

// Refuses a configuration that cannot hold (lane bounds, M8's relations): NULL and *out_why says
// which, as static text.
MUST_USE struct dp *dp_create(const struct dp_config *config, const char **out_why);
void dp_destroy(struct dp *dp); // after every worker ended

// Registers the types of a loaded module (before start). Borrowed for the process's life.
// NULL name collision or bad table: *out_why.
struct spotlane_module;
MUST_USE enum dp_status dp_register_module(struct dp *dp, const struct spotlane_module *module,
	const char *const *type_config_json, const char **out_why);
// Bounds of the Spots of one type in place of the module's and the node's (L1); a 0 leaves that
// bound as it is. Before start. False: no such type, or bounds that a lane cannot have: *out_why.
struct dp_type_limits {
	struct lane_bounds application, lifecycle;
};
MUST_USE bool dp_type_limit(
	struct dp *dp, const char *name, const struct dp_type_limits *limits, const char **out_why);
const struct dp_type *dp_type_by_key(const struct dp *dp, struct type_key key);
const struct dp_type *dp_type_by_name(const struct dp *dp, const char *name);
const char *dp_type_name(const struct dp_type *type);
enum spot_kind dp_type_kind(const struct dp_type *type);
struct type_key dp_type_key(const struct dp_type *type);
uint32_t dp_type_spots_max(const struct dp_type *type); // N1, 0 = none
uint32_t dp_type_count(const struct dp *dp);
const struct dp_type *dp_type_at(const struct dp *dp, uint32_t index);

struct dp_lease *dp_lease(struct dp *dp);
// Stops or resumes admission on every worker (H1: only Serving admits application messages).
void dp_admit_set(struct dp *dp, bool admit, enum result_kind refuse_with);

// ---- Spots ----
struct dp_spot_spec {
	struct spot_key key;
	struct span id;
	const struct dp_type *type;
	struct object_generation object_generation;
	struct authority_generation authority_generation;
	uint16_t home_worker; // chosen by control: dp_home_for(key)
};
// Memory for an activation, lane marked opening, not yet constructed. NULL when memory is short.
MUST_USE struct dp_spot *dp_spot_create(struct dp *dp, const struct dp_spot_spec *spec);
// After the route is retired and a grace period passed (publish_defer), or before it was published.
void dp_spot_destroy(struct dp_spot *spot);
// After the workers ended: frees the Spot with whatever it still holds; nobody is answered.
void dp_spot_discard(struct dp_spot *spot);
uint16_t dp_home_for(const struct dp *dp, struct spot_key key);

// Control's own corner of a Spot: 32 bytes that the data plane never touches.
void *dp_spot_control_area(struct dp_spot *spot);
enum { DP_SPOT_CONTROL_BYTES = 32 };

// The route word of a local Spot, for route_publish.
route_word dp_spot_route(struct dp_spot *spot);
struct dp_spot *dp_spot_of_route(route_word word); // NULL unless ROUTE_LOCAL

// A reading for people; relaxed, any thread that keeps the Spot alive.
struct dp_spot_view {
	struct spot_key key;
	struct span id;
	const struct dp_type *type;
	enum spot_kind kind;
	uint16_t home_worker;
	bool opening, closing;
	struct lane_level application, lifecycle;
	struct lane_bounds application_bounds, lifecycle_bounds;
	struct object_generation object_generation;
	struct authority_generation authority_generation;
	uint64_t turns, refused, overruns;
	uint64_t last_finished_boot_ns; // C2
	uint64_t running_since_boot_ns; // 0 = no turn running or waiting
};
void dp_spot_view(const struct dp_spot *spot, struct dp_spot_view *out);

// ---- commands ----
// Runs construct → configure → (User: create with argument) → initialise on the home worker.
// Fact: CONSTRUCTED. argument is copied.
MUST_USE enum dp_status dp_construct(struct dp *dp, struct dp_spot *spot, struct span argument);
// A7 step 3: worker `origin` passes its first waiting message of the Spot's key to the home worker,
// which enqueues it, clears `opening` and reports OPENED. With no message waiting any more (or origin
// = the home worker and nothing parked) the home worker just opens. The route must be published.
MUST_USE enum dp_status dp_open(struct dp *dp, struct dp_spot *spot, uint16_t origin);
// Worker's waiting messages of key look the route up again and go on, in order.
MUST_USE enum dp_status dp_release(struct dp *dp, uint16_t worker, struct spot_key key);
// Ends waiting messages of key on that worker with a result: those that the answered question was
// asked for (A3: the result goes only to the request that asked). Who else waits for the key keeps
// its place and is asked for anew.
enum dp_fail_scope {
	DP_FAIL_ORDINARY = 1, // messages without intent
	DP_FAIL_ALL = 2,      // whoever waits
	DP_FAIL_INTENT = 3,   // messages whose intent names the type that the question named
};
MUST_USE enum dp_status dp_fail(struct dp *dp, uint16_t worker, struct spot_key key,
	enum dp_fail_scope scope, struct result result, const struct refusal *refusal);
// Close (C4): refuse new work, finish what was accepted, seal, closing callback, dispose.
// Fact: CLOSED. Repeated for the same Spot: merged, one fact.
MUST_USE enum dp_status dp_close(struct dp *dp, struct dp_spot *spot,
	uint8_t reason /* enum spotlane_close_reason */, uint64_t deadline_boot_ns);
// ---- idle cleanup (C1-C4) ----
// Control drives: sweep, then a close for each candidate that has no other operation under way.
enum { DP_SWEEP = 64 };
// Looks at up to DP_SWEEP routes from *cursor on (0: from the start; 0 afterwards: the round is
// complete) and writes the Spots that may be cleaned up: Instance, open, without queued, running,
// waiting or yielded work, whose last application work finished at least idle_ns (> 0) ago. Returns
// how many. A look from control's thread: no worker takes part, so no turn is delayed (C3).
uint32_t dp_sweep(struct dp *dp, uint64_t *cursor, uint64_t idle_ns, struct dp_spot *out[DP_SWEEP]);
// Closes the Spot with IDLE_EVICTED if it is still quiet when its home worker gets there and has
// been for idle_ns: judged and sealed in one step, so nothing is accepted in between. Fact: CLOSED,
// or KEPT when it is not quiet; a close that was already under way takes this one in (no fact of
// its own). CLOSED comes after the closing callback and `dispose`: only then is the authority
// released (C4). A callback that does not return leaves the Spot sealed: ordinary messages end
// Unavailable/Closing, intents wait; dp_worker_running names it.
MUST_USE enum dp_status dp_close_idle(
	struct dp *dp, struct dp_spot *spot, uint64_t idle_ns, uint64_t deadline_boot_ns);

// Answers a CONTROL fact. refusal (may be NULL) is the body of a refusal for room (M5) and goes out
// as WIRE_CONTENT_REFUSAL in place of `body`.
MUST_USE enum dp_status dp_control_reply(struct dp *dp, uint16_t worker, uint64_t token,
	struct result result, const struct refusal *refusal, struct span body);

// ---- Actors (B1-B3) ----
// Control leads each change of membership, one at a time for an Actor (B2): admit at the new host; leave
// the old one, if any; retire the old route and publish the new; enter. Each step is lifecycle work of
// the host and ends in one ACTOR fact. Messages that meet an Actor between two Spots wait as those
// without a route do (RESOLVE), and control releases them when it has entered. A host with a change
// under way is not closed.
struct dp_actor_spec {
	struct spot_key key; // of the Actor
	struct span id;
	struct dp_spot *host;
};
bool dp_spot_takes_actors(const struct dp_spot *spot); // K3: Entry and User
// A place in the host, its lane opening, not yet a member. NULL when memory is short.
MUST_USE struct dp_actor *dp_actor_create(struct dp *dp, const struct dp_actor_spec *spec);
// Refused, left, or its host closed; after the route is retired and a grace period passed.
void dp_actor_destroy(struct dp_actor *actor);
// After the workers ended, before its host: frees it with whatever it still holds.
void dp_actor_discard(struct dp_actor *actor);
route_word dp_actor_route(struct dp_actor *actor);
struct dp_actor *dp_actor_of_route(route_word word); // NULL unless ROUTE_ACTOR
void *dp_actor_control_area(struct dp_actor *actor); // DP_SPOT_CONTROL_BYTES
// Asks the host (B3). Fact: ADMITTED, a member from now on, or REFUSED.
MUST_USE enum dp_status dp_actor_admit(struct dp *dp, struct dp_actor *actor);
// `joined`, then the lane opens. The route must be published. Fact: ENTERED.
MUST_USE enum dp_status dp_actor_enter(struct dp *dp, struct dp_actor *actor);
// Takes nothing more, finishes what it accepted, `left`. Fact: LEFT.
MUST_USE enum dp_status dp_actor_leave(struct dp *dp, struct dp_actor *actor);
// The members that a closed Spot had, in the order of joining: NULL begins, NULL ends.
struct dp_actor *dp_closed_member(struct dp_spot *spot, struct dp_actor *before);

struct dp_actor_view { // as dp_spot_view
	struct spot_key key;
	struct span id;
	struct dp_spot *host;
	struct lane_level application;
	struct lane_bounds application_bounds;
	uint64_t refused;
};
void dp_actor_view(const struct dp_actor *actor, struct dp_actor_view *out);

enum dp_actor_step {
	DP_ACTOR_ADMITTED = 1,
	DP_ACTOR_REFUSED = 2,
	DP_ACTOR_ENTERED = 3,
	DP_ACTOR_LEFT = 4,
};

// ---- facts ----
enum dp_fact_kind {
	DP_FACT_RESOLVE = 1,
	DP_FACT_CONSTRUCTED = 2,
	DP_FACT_OPENED = 3,
	DP_FACT_CLOSED = 4,
	DP_FACT_CONTROL = 5,
	DP_FACT_CLOSE_SELF = 6,
	DP_FACT_OVERRUN = 7,
	DP_FACT_KEPT = 8, // dp_close_idle found work: the Spot stays as it was
	DP_FACT_ACTOR = 16,
};

struct dp_fact {
	enum dp_fact_kind kind;
	uint16_t worker;
	struct spot_key key;
	union {
		struct { // a key without a usable route; at most one outstanding per (worker, key, intent)
			struct type_key spot_type; // intent; 0 for ordinary
			bool intent;
			uint8_t id_bytes; // 0 for ordinary messages that carry no id
			uint8_t id[ID_BYTES_MAX];
		} resolve;
		struct {
			struct dp_spot *spot;
			struct result result; // OK, Rejected/Declined, InternalFailure/FactoryFailed
		} constructed;
		struct {
			struct dp_spot *spot;
		} opened;
		struct {
			struct dp_spot *spot;
			bool callback_failed;
		} closed;
		struct { // a WIRE_CONTROL request; answered with dp_control_reply
			uint64_t token;
			uint16_t operation; // enum wire_control
			struct type_key spot_type;
			struct object_generation object_generation; // CLOSE: 0 = any
			uint64_t deadline_boot_ns;
			uint8_t id_bytes;
			uint8_t id[ID_BYTES_MAX];
			uint16_t argument_bytes; // CREATE: the create callback's argument
			uint8_t argument[1024];
		} control;
		struct {
			struct dp_spot *spot;
		} close_self;
		struct {
			struct dp_actor *actor;
			enum dp_actor_step step;
			struct result result; // REFUSED: why
		} actor;
		struct {
			struct dp_spot *spot;
		} kept;
		struct {
			struct dp_spot *spot;
			uint64_t took_ns;
		} overrun;
	} as;
};

// Takes up to n facts, all workers in turn; returns how many.
uint32_t dp_facts(struct dp *dp, struct dp_fact *out, uint32_t n);
int dp_wake_fd(const struct dp *dp); // eventfd; -1 in the simulator
// Control is about to sleep / woke up. After sleeps(true) control must look once more for facts.
void dp_control_sleeps(struct dp *dp, bool sleeps);

// ---- observation ----
void dp_counters_read(const struct dp *dp, uint16_t worker, struct dp_counters *out);
// Per worker: last loop turn (boot ns), for readiness and the stuck-worker watch.
uint64_t dp_worker_heartbeat(const struct dp *dp, uint16_t worker);
// The Spot whose turn runs there now and since when (X4, fail-stop); false when none.
bool dp_worker_running(
	const struct dp *dp, uint16_t worker, struct spot_key *out_key, uint64_t *out_since_boot_ns);
bool dp_pressure(const struct dp *dp); // P4
uint64_t dp_process_bytes(const struct dp *dp); // P1, charged now

// L3: parks all workers at a loop boundary, has each return foreign items and flush, compares.
// begin → poll until true. Workers go on by themselves afterwards.
struct dp_audit {
	uint64_t ledger_bytes;   // sum of held size classes by our books
	uint64_t measured_bytes; // jemalloc's figure for the item arenas
	uint64_t lane_bytes;     // sum over lanes (local Spots walked by control's route table)
	uint64_t items;
	uint64_t process_charged_bytes;
	uint64_t process_taken_bytes;
	uint64_t accepted, delivered, refused, dropped, in_flight; // conservation
	uint64_t dropped_by[24]; // dropped, by kind of the result it ended with
	bool equal;
};
MUST_USE enum dp_status dp_audit_begin(struct dp *dp);
MUST_USE bool dp_audit_poll(struct dp *dp, struct dp_audit *out);
