// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Spots: one base and three sibling types, Entry, User and Instance (K1, K2). Each sibling has its
// own constructor, its own type structure, its own operations and its own turn type; what differs by
// kind is behind `struct spot_ops` and nowhere else. No field says what kind a Spot is: its type does,
// by being one of three types.
//
// Threads: built and freed by control; admission fields are used by every worker; the rest belongs to
// the home worker. Each field group below says who reads and who writes it.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "core/item.h"
#include "dp/port.h"
#include "lane/lane.h"
#include "spotlane/module.h"

struct dp_worker;
struct command;
struct timer;
struct members;

// Life of an activation. Written by the home worker (NEW: by control before publication), read by all.
enum spot_state {
	SPOT_NEW = 1,       // memory, lane opening, nothing constructed
	SPOT_READY = 2,     // constructed; the lane's `opening` says whether it admits
	SPOT_CLOSING = 3,   // refuses new work, finishes what it accepted
	SPOT_SEALED = 4,    // lane sealed, closing callback runs or ran
	SPOT_CLOSED = 5,    // disposed
};

// The gate of X1: one turn at a time.
enum spot_gate {
	GATE_IDLE = 1,
	GATE_RUNNING = 2, // a callback is on the stack
	GATE_WAITING = 3, // a turn waits for its calls and keeps the gate
	GATE_HOSTED = 4,  // an Actor's place on a User Spot: the Spot's gate serves (actor.h)
};

enum spot_readiness { SPOT_IDLE = 1, SPOT_QUEUED = 2 }; // X8: in the ready set at most once

struct dp_spot {
	// Line 0: all that a message touches whose turn runs in place. Key, type and home: constant. Word:
	// compare-and-swap by any worker. State: written by the home worker. Instance: written by
	// construct. The rest is the home worker's; `turns` and `last_finished` anyone reads relaxed.
	struct spot_key key;
	struct lane_word application; // bounds: the type's
	spotlane_instance instance;   // the module's number
	const struct dp_type *type;
	uint64_t last_finished_boot_ns; // C2
	uint64_t turns;
	uint16_t home_worker;
	_Atomic uint8_t state;     // enum spot_state
	uint8_t gate;              // enum spot_gate
	uint8_t readiness;         // enum spot_readiness
	uint8_t lifecycle_run;     // L6's debt
	uint8_t lifecycle_waiting; // commands on lifecycle_list
	uint8_t close_self : 4;    // enum close_wish
	uint8_t members_ready : 1; // Actors' places with work wait (actor.h)
	uint8_t members_next : 1;  // a ready member goes before the Spot's own lane

	// Line 1: a message that is queued, a turn that waits. Home worker, but where it says otherwise.
	struct lane_list application_list;
	struct dp_spot *ready_next;
	struct item *waiting; // GATE_WAITING: whose turn keeps the gate
	uint64_t authority_generation;  // constant today; read at admission
	uint64_t running_since_boot_ns; // anyone reads relaxed
	_Atomic uint64_t refused;       // any worker adds, relaxed
	uint64_t object_generation;     // constant

	// Line 2 and what follows it: lifecycle, and what is rarely used.
	struct lane_word lifecycle; // any worker and control; bounds: the type's
	struct lane_list lifecycle_list;
	struct command *closing; // the close under way
	_Atomic(struct members *) members; // NULL: never had any; set by control (actor.h)
	struct dp *dp;           // constant
	uint8_t control_area[DP_SPOT_CONTROL_BYTES]; // control only
	struct timer *timers;
	uint64_t overruns;
	uint32_t calls_open; // awaited calls of all its turns
	uint16_t id_bytes;   // constant
	uint16_t yields;     // turns that yielded and have not ended
};
_Static_assert(offsetof(struct dp_spot, application_list) == CACHE_LINE_BYTES, "line 1");
_Static_assert(offsetof(struct dp_spot, lifecycle) == 2 * CACHE_LINE_BYTES, "line 2");
// The block starts a line; an id of up to 24 bytes ends within the fourth, whatever fields come.
_Static_assert(sizeof(struct dp_spot) <= 4 * CACHE_LINE_BYTES - 24, "an idle Spot is four lines");

enum close_wish { CLOSE_NOT_WISHED = 0, CLOSE_WISHED = 1, CLOSE_TOLD = 2 };

// The three siblings. The id follows the struct in the same block.
struct entry_spot {
	struct dp_spot base;
};
struct user_spot {
	struct dp_spot base;
};
struct instance_spot {
	struct dp_spot base;
};

// ---- types ----
// One callback of a turn: a message or the end of a call.
struct turn_event {
	const struct spotlane_message *message; // or
	const struct spotlane_answer *answer; // or
	const struct spotlane_tick *tick;
	spotlane_call call;
};

// What differs by kind. Constant tables, one per sibling.
struct spot_ops {
	enum spot_kind kind; // for stores, the wire and people
	bool ends_when_idle; // C1
	bool (*hears_ticks)(const struct dp_type *type); // has a `ticked` callback
	// Constructor of the sibling. Control thread.
	struct dp_spot *(*create)(struct dp *dp, const struct dp_spot_spec *spec);
	// K5: construct → configure → (User: create) → initialise. Home worker.
	struct result (*construct)(struct dp_spot *spot, struct span argument);
	// Runs one callback; returns the module's outcome as enum spotlane_outcome.
	enum spotlane_outcome (*run)(struct dp_spot *spot, uint64_t turn, const struct turn_event *event);
	int (*closing)(struct dp_spot *spot, enum spotlane_close_reason reason, uint64_t deadline_ns);
	void (*dispose)(struct dp_spot *spot);
	// Actors (actor.h): what the places of its members are; NULL: it has none (K3).
	const struct dp_type *(*actor_type)(const struct dp_type *type);
	bool (*joining)(struct dp_spot *spot, struct span actor); // B3; NULL: nothing to ask or tell
	void (*joined)(struct dp_spot *spot, struct span actor);
	void (*left)(struct dp_spot *spot, struct span actor);
};

// Base of the three type structures. Constant after registration.
struct dp_type {
	const struct spot_ops *ops;
	uint32_t flags; // enum spotlane_type_flag
	struct type_key key;
	struct lane_bounds bounds;    // of the application lane
	struct lane_bounds lifecycle; // of the lifecycle lane
	uint64_t turn_budget_ticks;
	uint64_t turn_budget_ns;
	uint32_t spots_max;
	const char *name;
	const char *config_json;
};
struct entry_type {
	struct dp_type base;
	struct dp_type actor; // of its members' places
	const struct spotlane_entry_type *module;
};
struct user_type {
	struct dp_type base;
	struct dp_type actor;
	const struct spotlane_user_type *module;
};
struct instance_type {
	struct dp_type base;
	const struct spotlane_instance_type *module;
};

// Constructors: control thread, NULL when memory is short. A type of another kind does not compile.
MUST_USE struct entry_spot *entry_spot_create(
	struct dp *dp, const struct entry_type *type, const struct dp_spot_spec *spec);
MUST_USE struct user_spot *user_spot_create(
	struct dp *dp, const struct user_type *type, const struct dp_spot_spec *spec);
MUST_USE struct instance_spot *instance_spot_create(
	struct dp *dp, const struct instance_type *type, const struct dp_spot_spec *spec);

extern const struct spot_ops entry_spot_ops;
extern const struct spot_ops user_spot_ops;
extern const struct spot_ops instance_spot_ops;

// ---- for the siblings' files ----
// A zeroed block of `spot_bytes` plus the id, base filled in.
MUST_USE void *spot_block_create(
	struct dp *dp, const struct dp_type *type, const struct dp_spot_spec *spec, size_t spot_bytes);
void spot_info(const struct dp_spot *spot, size_t spot_bytes, struct spotlane_spot_info *out);
struct span spot_id(const struct dp_spot *spot);

// The callbacks that all three type structures share, taken out of one of them for K5's common steps.
struct spot_callbacks {
	int (*construct)(const struct spotlane_spot_info *info, spotlane_instance *out);
	int (*configure)(spotlane_instance self, struct spotlane_bytes config);
	int (*initialise)(spotlane_instance self);
	void (*dispose)(spotlane_instance self);
};
MUST_USE struct result spot_construct_begin(struct dp_spot *spot, const struct spot_callbacks *cb);
MUST_USE struct result spot_construct_end(struct dp_spot *spot, const struct spot_callbacks *cb);

static inline enum spot_state spot_state(const struct dp_spot *spot)
{
	// Pairs with spot_set_state: who sees READY sees the constructed instance's fields.
	return (enum spot_state)atomic_load_explicit(&spot->state, memory_order_acquire);
}
static inline void spot_set_state(struct dp_spot *spot, enum spot_state state)
{
	atomic_store_explicit(&spot->state, (uint8_t)state, memory_order_release);
}
static inline const struct lane_bounds *spot_bounds(const struct dp_spot *spot)
{
	return &spot->type->bounds;
}
