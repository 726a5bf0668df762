// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The clock port. Everything outside programs/, fabric/ and worker start-up takes time from here,
// so that the simulator can step it. All functions: any thread, no blocking.

#include <stdint.h>

struct clock {
	// CLOCK_BOOTTIME in nanoseconds: counts suspended time; the clock of leases (O3) and
	// budgets.
	uint64_t (*boot_ns)(struct clock *self);
	// A fast monotonic tick (TSC) and its rate; for turn starts and measurements.
	uint64_t (*ticks)(struct clock *self);
	// Wall clock in nanoseconds since 1970, for display and skew only: no rule may use it.
	uint64_t (*wall_ns)(struct clock *self);
	uint64_t ticks_hz;
};

// The real clock of this machine; calibrated once by the first call (main thread, blocks ~20 ms).
struct clock *clock_system(void);

static inline uint64_t clock_boot_ns(struct clock *c)
{
	return c->boot_ns(c);
}

static inline uint64_t clock_ticks(struct clock *c)
{
	return c->ticks(c);
}
