// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Named timers of Spots (X7). A timer is a block of the home worker's item arena, on the worker's wheel
// while a tick is to come. Each tick is an item of the Spot's application lane, reserved and charged as
// any (L2, L4); while one is queued or under way the timer puts out no other, so its ticks never
// overlap. What is due meanwhile is left out, made up for, or put off, as the timer's policy says.
// Home worker only.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "core/item.h"
#include "spotlane/module.h"

struct dp_worker;
struct dp_spot;
struct timer;

// Sets or resets; false: refused, nothing changed.
MUST_USE bool timer_set(struct dp_worker *w, struct dp_spot *spot, struct span name,
	const struct spotlane_timer *setting);
bool timer_cancel(struct dp_worker *w, struct dp_spot *spot, struct span name);
// Fills what the module sees of a tick that is about to run; false: its timer was set anew or
// cancelled since, and it does not run.
MUST_USE bool timer_tick_begin(
	struct dp_worker *w, const struct item *item, struct spotlane_tick *out);
// The tick's item has ended, having run or not; the timer goes on. The item is no longer used.
void timer_tick_end(struct dp_worker *w, struct timer *timer);
struct timer *timer_of_tick(const struct item *item);
// The Spot ends: no tick of it is queued or under way.
void timer_end_all(struct dp_worker *w, struct dp_spot *spot);
// The node ends by force: the Spot's timers go whatever their ticks do.
void timer_discard_all(struct dp_worker *w, struct dp_spot *spot);
// Puts out what is due.
bool timer_tick(struct dp_worker *w);
MUST_USE bool timer_wheel_init(struct dp_worker *w);
void timer_wheel_fini(struct dp_worker *w);
