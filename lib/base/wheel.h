// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A timer wheel: set and cancel in constant time, for tens of thousands of time limits of which
// many are cancelled. Ticks are 2^20 ns (about a millisecond); a timer never fires early and
// at most one tick late. Pure: the caller says what time it is. One owner thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
	WHEEL_TICK_SHIFT = 20,
	WHEEL_SLOTS = 8192, // one round is about 8.6 s; longer timers stay for several rounds
};

struct wheel_node {
	struct wheel_node *next;
	struct wheel_node **link; // what points here; NULL = not set
	uint64_t due_tick;
};

struct wheel {
	uint64_t tick;               // every tick up to this one was taken
	struct wheel_node *expiring; // of that tick, still to be taken
	uint64_t used[WHEEL_SLOTS / 64]; // a set bit: the slot may hold timers
	struct wheel_node *slots[WHEEL_SLOTS];
};

void wheel_init(struct wheel *wheel, uint64_t now_ns);
static inline bool wheel_is_set(const struct wheel_node *node)
{
	return node->link != NULL;
}
// Sets or moves a timer.
void wheel_set(struct wheel *wheel, struct wheel_node *node, uint64_t due_ns);
// Accepts a timer that is not set.
void wheel_cancel(struct wheel_node *node);
// The next timer that is due, taken off the wheel; NULL when none is. Timers may be set and
// cancelled between two calls.
MUST_USE struct wheel_node *wheel_take(struct wheel *wheel, uint64_t now_ns);
// When to look again: no timer is due before. UINT64_MAX = none is set.
uint64_t wheel_next_ns(struct wheel *wheel);
