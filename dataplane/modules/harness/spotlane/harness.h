// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Runs a module without a node, for its own tests (docs/MODULES.md): one Spot at a time per handle,
// one turn at a time, in the calling thread. What a handler does through the host is recorded and
// can be read; work it offloads runs when the test says so; answers to its requests come from the
// test.
//
// The harness keeps the order of callbacks (construct, configure, create, initialise, message…,
// closing, dispose) and what a kind may do, and aborts with one line on stderr when a module breaks
// a rule that a node would count as a fault: two answers to one request, WAIT with nothing awaited,
// WAIT from a type declared nowait. Not thread-safe. Returned bytes are borrowed until the next
// call.

#include <stddef.h>
#include <stdint.h>

#include "spotlane/module.h"

#ifdef __cplusplus
extern "C" {
#endif

struct spotlane_harness; // one module, attached
struct spotlane_harness_spot; // one Spot of it

// Loads the shared object at path. NULL when it does not load; why goes to stderr.
struct spotlane_harness *spotlane_harness_open(const char *path);
// Closes the harness; every Spot must have been closed.
void spotlane_harness_close(struct spotlane_harness *h);
// The clock that now_ns shows, in nanoseconds; starts at 1.
void spotlane_harness_set_clock(struct spotlane_harness *h, uint64_t now_ns);
// The next n offloads and requests are refused, as by a full queue.
void spotlane_harness_refuse_calls(struct spotlane_harness *h, unsigned n);

// Makes a Spot of the named type. config_json may be NULL. `argument` goes to a User Spot's create.
// NULL with *out_kind set to the result when a callback refuses.
struct spotlane_harness_spot *spotlane_harness_make(struct spotlane_harness *h, const char *type,
	const char *id, const char *config_json, struct spotlane_bytes argument, int *out_kind);
// closing (if there is one) and dispose. Returns what closing returned.
int spotlane_harness_end(struct spotlane_harness_spot *s, enum spotlane_close_reason reason);

// What the last request ended with. kind 0: not yet, the handler waits.
struct spotlane_harness_reply {
	int kind; // SPOTLANE_OK or the error's kind
	uint16_t content;
	struct spotlane_bytes payload;
};
// One turn with a request (send: no reply is wanted). Aborts while an earlier one still waits.
struct spotlane_harness_reply spotlane_harness_request(struct spotlane_harness_spot *s,
	uint16_t type, uint16_t content, struct spotlane_bytes payload);
void spotlane_harness_send(struct spotlane_harness_spot *s, uint16_t type, uint16_t content,
	struct spotlane_bytes payload);

// What the waiting handler awaits. 0: nothing.
enum spotlane_harness_awaits { SPOTLANE_AWAITS_OFFLOAD = 1, SPOTLANE_AWAITS_ANSWER = 2 };
int spotlane_harness_awaited(const struct spotlane_harness_spot *s);
// Runs the offloaded work and delivers its result.
struct spotlane_harness_reply spotlane_harness_run_offload(struct spotlane_harness_spot *s);
// Delivers an answer to the request that the handler made.
struct spotlane_harness_reply spotlane_harness_answer(
	struct spotlane_harness_spot *s, const struct spotlane_answer *answer);

// The last message that the module sent or requested; how many there were.
struct spotlane_harness_sent {
	unsigned count;
	uint16_t type;
	uint16_t content;
	struct spotlane_bytes id;
	struct spotlane_bytes payload;
};
struct spotlane_harness_sent spotlane_harness_last_sent(const struct spotlane_harness_spot *s);
// When the timer of that name is due next, on the harness's clock; 0 = there is none.
uint64_t spotlane_harness_timer_due(const struct spotlane_harness_spot *s, const char *name);
// Moves the clock to when the timer is due, if that is still to come, and runs the tick's turn. Aborts
// without such a timer.
void spotlane_harness_tick(struct spotlane_harness_spot *s, const char *name);

// The Actor whom the following turns are for; "" = the Spot itself.
void spotlane_harness_set_actor(struct spotlane_harness *h, const char *id);
// joining, then joined unless it refused; returns what joining said. leave: left.
int spotlane_harness_join(struct spotlane_harness_spot *s, const char *actor_id);
void spotlane_harness_leave(struct spotlane_harness_spot *s, const char *actor_id);
// Times that the module asked for joins and leaves.
unsigned spotlane_harness_changes_asked(const struct spotlane_harness_spot *s);
// The last push, and how many there were. The one client is always there.
struct spotlane_harness_sent spotlane_harness_last_push(const struct spotlane_harness_spot *s);

// Times that close_self was asked for.
unsigned spotlane_harness_close_asked(const struct spotlane_harness_spot *s);

#ifdef __cplusplus
}
#endif
