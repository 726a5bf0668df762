// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Control's event loop (libuv): runs the steps of the control core when facts, completions, signals
// or time call for it. It holds no logic of its own. Control thread only.
//
// A step is a function that does what is due and returns the boot time (ns) at which it wants to be
// called again at the latest. All steps run before each sleep and after each wake-up; between the
// `sleeping` hooks of that sleep, so that a worker rings only when control really sleeps.

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/compiler.h"

struct loop;

#define LOOP_NEVER UINT64_MAX

MUST_USE struct loop *loop_create(struct clock *clock); // NULL when memory is short
void loop_destroy(struct loop *loop);                   // accepts NULL; after loop_run returned
uv_loop_t *loop_uv(struct loop *loop);                  // for control/api

enum { LOOP_STEPS_MAX = 16, LOOP_WAKES_MAX = 8, LOOP_SIGNALS_MAX = 8 };

void loop_add_step(struct loop *loop, uint64_t (*step)(void *arg), void *arg);
// A descriptor whose readability wakes the loop. eventfd: drained here.
void loop_add_wake(struct loop *loop, int eventfd);
void loop_add_signal(
	struct loop *loop, int signum, void (*on_signal)(void *arg, int signum), void *arg);
// Called with true before the last look at the steps of a sleep, with false after it.
void loop_set_sleeping(struct loop *loop, void (*sleeping)(void *arg, bool asleep), void *arg);

void loop_run(struct loop *loop); // until loop_stop
void loop_stop(struct loop *loop);
