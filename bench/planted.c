// SPDX-License-Identifier: BSD-3-Clause
#include "planted.h"

#include "dp/port.h"

enum { STALL_AFTER_MS = 500, NS_PER_MS = 1000000 };

static void spin(struct clock *clock, uint64_t ns)
{
	uint64_t end = clock_ticks(clock) + (uint64_t)((double)ns * (double)clock->ticks_hz / 1e9);
	while (clock_ticks(clock) < end)
		continue;
}

void planted_begin(struct planted *p)
{
	if (p->stall_ms > 0)
		p->stall_due_ns = clock_boot_ns(p->clock) + (uint64_t)STALL_AFTER_MS * NS_PER_MS;
}

void planted_after_turn(struct planted *p, const struct dp *dp)
{
	if (p->delay_ns > 0) {
		struct dp_counters counters;
		dp_counters_read(dp, 0, &counters);
		if (p->turns_seen > 0)
			spin(p->clock, (counters.turns - p->turns_seen) * p->delay_ns);
		p->turns_seen = counters.turns;
	}
	if (p->stall_due_ns > 0 && clock_boot_ns(p->clock) >= p->stall_due_ns) {
		p->stall_due_ns = 0;
		spin(p->clock, (uint64_t)p->stall_ms * NS_PER_MS);
	}
}
