// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Medians and spread of a handful of repetitions, and the machine's own state around them.

#include <stdint.h>

enum { STATS_SAMPLES_MAX = 64 };

struct stats {
	double samples[STATS_SAMPLES_MAX];
	uint32_t count;
};

void stats_add(struct stats *s, double sample);
double stats_median(const struct stats *s);
double stats_min(const struct stats *s);
double stats_max(const struct stats *s);

// One-way time of a cache line between two pinned threads, ns; what the host makes of our two cores.
double handoff_ns(int cpu_a, int cpu_b);
// CPU time of this machine that was not ours to use since the last call, in percent of wall time
// (steal of /proc/stat).
double steal_percent(void);
