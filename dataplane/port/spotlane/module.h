// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The module interface, version 1: what a Spot type supplies and what the host offers (docs/MODULES.md).
//
// A module is a shared object that exports `spotlane_module_v1`. Objects cross the interface as
// numbers (an instance is the module's own number, a turn and a call are the host's); the only
// pointers that cross are borrowed bytes, valid until the callback returns, and this table of host
// functions. So a module can later live in another process or language without a new interface.
//
// Threads: all callbacks of one Spot run on its home worker, one at a time; different Spots of one
// type may run on different workers at once, so module-wide data must be immutable or atomic.
// Callbacks must not block, sleep, or make system calls: hand blocking work to `offload`.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOTLANE_MODULE_ABI 1u

typedef struct { uint64_t value; } spotlane_instance; // the module's number for one Spot
typedef struct { uint64_t value; } spotlane_call;     // the host's number for one awaited call

// Three turn types: what a kind cannot do does not exist for its type (yield on an Entry turn does
// not compile). Valid until the callback that received it returns.
typedef struct { uint64_t value; } spotlane_entry_turn;
typedef struct { uint64_t value; } spotlane_user_turn;
typedef struct { uint64_t value; } spotlane_instance_turn;
// What all turns can do takes the common handle, made by spotlane_{entry,user,instance}_common().
typedef struct { uint64_t value; } spotlane_turn;

static inline spotlane_turn spotlane_entry_common(spotlane_entry_turn t)
{
	spotlane_turn c = {t.value};
	return c;
}
static inline spotlane_turn spotlane_user_common(spotlane_user_turn t)
{
	spotlane_turn c = {t.value};
	return c;
}
static inline spotlane_turn spotlane_instance_common(spotlane_instance_turn t)
{
	spotlane_turn c = {t.value};
	return c;
}

// A client's way back. Opaque: keep and compare its bytes, do not read them.
struct spotlane_client_handle {
	uint64_t value[8];
};
enum { SPOTLANE_PUSH_BYTES_MAX = 1024 };

struct spotlane_bytes { // borrowed
	const void *data;
	size_t size;
};

// Result kinds a module may answer with; numbers as on the wire (docs/WIRE.md).
enum spotlane_result {
	SPOTLANE_OK = 1,
	SPOTLANE_NOT_FOUND = 2,
	SPOTLANE_ALREADY_EXISTS = 3,
	SPOTLANE_NOT_CONFIGURED = 5,
	SPOTLANE_REJECTED = 6,
	SPOTLANE_UNAVAILABLE = 8,
	SPOTLANE_CAPACITY_EXCEEDED = 9,
	SPOTLANE_INVALID_OPERATION = 14,
	SPOTLANE_DATA_LOST = 15,
	SPOTLANE_INTERNAL_FAILURE = 16,
	SPOTLANE_UNSUPPORTED = 23
};

enum spotlane_content { SPOTLANE_BYTES = 0, SPOTLANE_JSON = 1, SPOTLANE_TEXT = 2 };

// How a handler leaves its turn.
enum spotlane_entry_outcome { SPOTLANE_ENTRY_DONE = 1, SPOTLANE_ENTRY_WAIT = 2 };
enum spotlane_outcome { SPOTLANE_DONE = 1, SPOTLANE_WAIT = 2, SPOTLANE_YIELD = 3 };

enum spotlane_close_reason {
	SPOTLANE_CLOSE_EXPLICIT = 1,
	SPOTLANE_CLOSE_HOST_SHUTDOWN = 2,
	SPOTLANE_CLOSE_RELOCATION_OUT = 3,
	SPOTLANE_CLOSE_IDLE_EVICTED = 4,
	SPOTLANE_CLOSE_LEASE_LOST = 5
};

struct spotlane_message {
	uint16_t type;    // the module's own numbering
	uint16_t content; // enum spotlane_content
	uint8_t wants_reply;
	uint8_t reserved[3];
	struct spotlane_bytes payload;
};

struct spotlane_spot_info { // given to construct; borrowed
	struct spotlane_bytes id;
	struct spotlane_bytes config; // the type's `config` from the node's file, as JSON; may be empty
	uint64_t object_generation;
};

struct spotlane_answer { // what an awaited call ended with
	uint8_t kind; // SPOTLANE_OK, or the kind it ended with (any number of docs/WIRE.md)
	uint8_t reason;
	uint8_t accepted; // 1 yes, 2 no, 3 unknown
	uint8_t reserved;
	uint16_t content;
	struct spotlane_bytes payload;
};

// A named timer of a Spot (X7). A tick is an item of the Spot's application lane like any message:
// it waits its turn, counts against the lane's bounds, and never overlaps another of its timer.
// What becomes of ticks whose time passed while an earlier one was not done.
enum spotlane_timer_overrun {
	// Left out; the next comes at the next multiple of the period.
	SPOTLANE_TIMER_SKIP_LATE = 0,
	// Made up for one after another, at most catch_up_max of them.
	SPOTLANE_TIMER_CATCH_UP_BOUNDED = 1,
	// There are none: the next comes one period after this one is done.
	SPOTLANE_TIMER_DELAY_NEXT = 2
};

struct spotlane_timer {
	uint64_t first_us;  // from now
	uint64_t period_us; // 0 = one tick only; else at least 1,000
	enum spotlane_timer_overrun overrun;
	uint32_t catch_up_max; // 0 = 8
};

enum { SPOTLANE_TIMERS_MAX = 32, SPOTLANE_TIMER_NAME_MAX = 64 }; // of one Spot; bytes

struct spotlane_tick {
	struct spotlane_bytes name; // the timer's; borrowed
	uint64_t due_ns;            // when it was due, boot-time clock
	uint64_t generation;        // of the name: rises with each timer_set
	uint64_t left_out;          // ticks left out between the one before and this one
};

// What the host offers. Check `size` before using a member beyond those of the version you built with.
struct spotlane_host {
	uint32_t abi;
	uint32_t size;
	// Ends the request of this turn with OK and a payload (copied). At most once per request; a second
	// answer returns -1 and is counted. On a send it returns -1. A turn that ends DONE without one
	// answers OK with an empty payload.
	int (*reply)(spotlane_turn turn, uint16_t content, struct spotlane_bytes payload);
	int (*reply_error)(spotlane_turn turn, enum spotlane_result kind, struct spotlane_bytes text);
	// One-way message to another Spot by id. 0 = handed over, -1 = refused (counted).
	int (*send)(spotlane_turn turn, struct spotlane_bytes id, uint16_t type, uint16_t content,
		struct spotlane_bytes payload);
	// Request to another Spot; the answer arrives in `answered` after the handler left with WAIT.
	// budget_us 0 = the rest of this turn's own budget. call.value 0 = refused before submission
	// (own gate, X3; no room for more calls).
	spotlane_call (*request)(spotlane_turn turn, struct spotlane_bytes id, uint16_t type,
		uint16_t content, struct spotlane_bytes payload, uint32_t budget_us);
	// Runs work(argument) on the blocking pool and comes back as `answered` with its result bytes
	// (written to out, capacity bytes). 0 = queue full (CapacityExceeded/WorkerQueue).
	spotlane_call (*offload)(spotlane_turn turn,
		size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity),
		struct spotlane_bytes argument, size_t capacity);
	// Boot-time clock in nanoseconds, read at the start of this turn.
	uint64_t (*now_ns)(spotlane_turn turn);
	// Asks for this Spot to be closed after the turn (Instance Spots: K3).
	int (*close_self)(spotlane_instance_turn turn);
	// Sets the Spot's timer of that name (1..SPOTLANE_TIMER_NAME_MAX bytes), or sets it anew:
	// ticks of the earlier setting that still wait do not run. 0 = set, -1 = refused (no
	// `ticked` callback, a setting that cannot be, too many timers, memory). Timers end with
	// the Spot and do not keep it from idle cleanup; a tick counts as work.
	int (*timer_set)(
		spotlane_turn turn, struct spotlane_bytes name, const struct spotlane_timer *timer);
	// 1 = there was one; a tick of it that waits does not run. 0 = there was none.
	int (*timer_cancel)(spotlane_turn turn, struct spotlane_bytes name);
	// Asks that a request of this Spot's, still open, be cancelled (L5). Work that waits for
	// its turn ends Cancelled at once and does not run; work that has begun goes on. The call's
	// one result comes to `answered` either way. 0 = asked, -1 = no such open request (blocking
	// work cannot be).
	int (*cancel)(spotlane_turn turn, spotlane_call call);
	// ---- Actors (B1) ----
	// The Actor whom this turn's message is for; size 0: the Spot itself. Borrowed.
	struct spotlane_bytes (*actor)(spotlane_turn turn);
	// As send and request, to an Actor by its id, wherever it is.
	int (*send_actor)(spotlane_turn turn, struct spotlane_bytes actor_id, uint16_t type,
		uint16_t content, struct spotlane_bytes payload);
	spotlane_call (*request_actor)(spotlane_turn turn, struct spotlane_bytes actor_id,
		uint16_t type, uint16_t content, struct spotlane_bytes payload, uint32_t budget_us);
	// Asks for an Actor to join a Spot (id of size 0: the node's Entry Spot), or to leave the one it
	// is in. An Actor that is not there yet comes to be by joining. 0 = handed over; joining, joined
	// and left tell what came of it. -1 = refused.
	int (*join)(spotlane_turn turn, struct spotlane_bytes actor_id, struct spotlane_bytes spot_id);
	int (*leave)(spotlane_turn turn, struct spotlane_bytes actor_id);
	// ---- push (M10) ----
	// The client whose request this turn answers. 0, or -1: a one-way message, or not a client of
	// this node. Keep the handle as long as it is of use: it holds while the client lets itself be
	// heard (60 s), and a push after that is dropped and counted.
	int (*client)(spotlane_turn turn, struct spotlane_client_handle *out);
	// Sends to that client, unasked, at most SPOTLANE_PUSH_BYTES_MAX bytes. 0 = handed over,
	// nothing more; -1 = refused.
	int (*push)(spotlane_turn turn, const struct spotlane_client_handle *to, uint16_t type,
		uint16_t content, struct spotlane_bytes payload);
};

// Callbacks common to the kinds. A NULL optional callback is "nothing to do". Order: K5.
// construct → configure → (User: create) → initialise → message… → closing → dispose.
#define SPOTLANE_COMMON_CALLBACKS                                                                  \
	/* 0 = made, *out is the module's number; else a spotlane_result. Required. */             \
	int (*construct)(const struct spotlane_spot_info *info, spotlane_instance *out);           \
	int (*configure)(spotlane_instance self, struct spotlane_bytes config);                    \
	int (*initialise)(spotlane_instance self);                                                 \
	/* C4: once per close, with reason and absolute deadline (boot-time ns); its failure (non-0) is \
	   recorded and clean-up goes on. */                                                       \
	int (*closing)(                                                                            \
		spotlane_instance self, enum spotlane_close_reason reason, uint64_t deadline_ns);  \
	void (*dispose)(spotlane_instance self);                                                   \
	/* V3: capture into buf; returns the size needed; restore from it (target: instead of create). */ \
	size_t (*capture)(spotlane_instance self, void *buf, size_t capacity);                     \
	int (*restore)(spotlane_instance self, struct spotlane_bytes captured);                    \
	/* D1: the one snapshot loaded before the first turn; exists = 0: none. */                 \
	int (*state_loaded)(spotlane_instance self, int exists, struct spotlane_bytes json,        \
		struct spotlane_bytes etag)

struct spotlane_type_limits { // 0 = the node's default
	uint32_t application_count_max;
	uint64_t application_bytes_max;
	uint32_t spots_max;
	uint32_t turn_budget_us;
};

enum spotlane_state_cadence {
	SPOTLANE_STATE_NONE = 0,
	SPOTLANE_STATE_WRITE_THROUGH = 1,
	SPOTLANE_STATE_CHECKPOINT = 2
};

enum spotlane_type_flag {
	SPOTLANE_TYPE_NOWAIT = 1u << 0 // never waits or yields: a turn may run on the received frame in place
};

struct spotlane_instance_type {
	const char *name; // 1..64 bytes of [a-z0-9-]
	uint32_t flags;
	enum spotlane_state_cadence cadence;
	struct spotlane_type_limits limits;
	SPOTLANE_COMMON_CALLBACKS;
	enum spotlane_outcome (*message)(spotlane_instance self, spotlane_instance_turn turn,
		const struct spotlane_message *message);
	enum spotlane_outcome (*answered)(spotlane_instance self, spotlane_instance_turn turn,
		spotlane_call call, const struct spotlane_answer *answer);
	// X7: a tick of a named timer.
	enum spotlane_outcome (*ticked)(spotlane_instance self, spotlane_instance_turn turn,
		const struct spotlane_tick *tick);
};

struct spotlane_user_type {
	const char *name;
	uint32_t flags;
	enum spotlane_state_cadence cadence;
	struct spotlane_type_limits limits;
	SPOTLANE_COMMON_CALLBACKS;
	// May decline (non-0): the creation ends Rejected/Declined.
	int (*create)(spotlane_instance self, struct spotlane_bytes argument);
	enum spotlane_outcome (*message)(spotlane_instance self, spotlane_user_turn turn,
		const struct spotlane_message *message);
	enum spotlane_outcome (*answered)(spotlane_instance self, spotlane_user_turn turn,
		spotlane_call call, const struct spotlane_answer *answer);
	// B3: admission of Actors.
	int (*joining)(spotlane_instance self, struct spotlane_bytes actor_id);
	void (*joined)(spotlane_instance self, struct spotlane_bytes actor_id);
	void (*left)(spotlane_instance self, struct spotlane_bytes actor_id);
	// X7: a tick of a named timer.
	enum spotlane_outcome (*ticked)(spotlane_instance self, spotlane_user_turn turn,
		const struct spotlane_tick *tick);
};

struct spotlane_entry_type {
	const char *name;
	uint32_t flags;
	enum spotlane_state_cadence cadence;
	struct spotlane_type_limits limits;
	SPOTLANE_COMMON_CALLBACKS;
	enum spotlane_entry_outcome (*message)(spotlane_instance self, spotlane_entry_turn turn,
		const struct spotlane_message *message);
	enum spotlane_entry_outcome (*answered)(spotlane_instance self, spotlane_entry_turn turn,
		spotlane_call call, const struct spotlane_answer *answer);
	// X7: a tick of a named timer.
	enum spotlane_entry_outcome (*ticked)(spotlane_instance self, spotlane_entry_turn turn,
		const struct spotlane_tick *tick);
};

// What the module exports, by the name `spotlane_module_v1`. Any of the three lists may be empty.
struct spotlane_module {
	uint32_t abi;  // SPOTLANE_MODULE_ABI
	uint32_t size; // sizeof(struct spotlane_module)
	const char *name;
	const char *version;
	// Called once after loading, before any other callback; keeps the table for the process's life.
	// Non-0: the module refuses to load.
	int (*attach)(const struct spotlane_host *host);
	const struct spotlane_instance_type *const *instance_types; // NULL-terminated, or NULL
	const struct spotlane_user_type *const *user_types;
	const struct spotlane_entry_type *const *entry_types;
};

#define SPOTLANE_MODULE_SYMBOL "spotlane_module_v1"

#ifdef __cplusplus
}
#endif
