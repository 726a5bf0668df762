// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Durations counted in a few fixed buckets, as metrics show them: constant size, no allocation, and
// equal buckets in every node, so that the figures of many nodes add up. One owner thread per struct.

#include <stdint.h>

enum { LATENCY_EDGES = 16 };

// Upper edges in nanoseconds, inclusive; one further bucket takes what is longer.
static const uint64_t latency_edges_ns[LATENCY_EDGES] = {
	100000, 250000, 500000,
	1000000, 2500000, 5000000,
	10000000, 25000000, 50000000,
	100000000, 250000000, 500000000,
	1000000000, 2500000000, 5000000000, 10000000000,
};

struct latency {
	uint64_t count;
	uint64_t sum_ns; // wraps after 584 years of latency
	uint64_t buckets[LATENCY_EDGES + 1];
};

static inline void latency_record(struct latency *l, uint64_t ns)
{
	uint32_t at = 0;
	while (at < LATENCY_EDGES && ns > latency_edges_ns[at])
		at++;
	l->buckets[at]++;
	l->count++;
	l->sum_ns += ns;
}
