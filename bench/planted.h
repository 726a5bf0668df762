// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Slowness planted in the router on purpose, to see that the bench notices: a delay for each
// message, and one stall. Both spin on the router's core. One thread.

#include <stdint.h>

#include "base/clock.h"

struct dp;

struct planted {
	struct clock *clock;
	uint32_t delay_ns; // for each message; 0 = none
	uint32_t stall_ms; // once, half a second after planted_begin; 0 = none
	uint64_t turns_seen, stall_due_ns;
};

// Starts a stretch: the stall becomes due again.
void planted_begin(struct planted *p);
// After each turn of the worker.
void planted_after_turn(struct planted *p, const struct dp *dp);
