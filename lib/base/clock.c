// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.h"

#include <time.h>
#include <x86intrin.h>

#include "base/check.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;
	CHECK(clock_gettime(id, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t system_boot_ns(struct clock *self)
{
	(void)self;
	return read_clock(CLOCK_BOOTTIME);
}

static uint64_t system_ticks(struct clock *self)
{
	(void)self;
	return __rdtsc();
}

static uint64_t system_wall_ns(struct clock *self)
{
	(void)self;
	return read_clock(CLOCK_REALTIME);
}

static struct clock system_clock = {system_boot_ns, system_ticks, system_wall_ns, 0};

struct clock *clock_system(void)
{
	if (system_clock.ticks_hz == 0) {
		uint64_t ns0 = read_clock(CLOCK_MONOTONIC_RAW), ticks0 = __rdtsc();
		struct timespec pause = {0, 20000000};
		nanosleep(&pause, NULL);
		uint64_t ns1 = read_clock(CLOCK_MONOTONIC_RAW), ticks1 = __rdtsc();
		system_clock.ticks_hz =
			(uint64_t)((double)(ticks1 - ticks0) * 1e9 / (double)(ns1 - ns0));
	}
	return &system_clock;
}
