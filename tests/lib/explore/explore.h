// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The interleaving explorer. It runs two or three logical threads over the real sources, built with
// -DEXPLORE so that each atomic access is a point where it may switch (base/atomic.h), and tries
// every interleaving with a bounded number of preemptions, depth first. A run is repeated from the
// start for each interleaving; scenarios must be deterministic and bounded.
// Sequentially consistent: wrong memory orders are the thread sanitizer's business.

#include <stdbool.h>
#include <stdint.h>

enum { EXPLORE_THREADS_MAX = 3 };

struct explore_scenario {
	const char *name;
	int threads;
	int preemptions_max; // 3 finds what is known to be findable; more where two threads allow it
	void (*reset)(void); // before each run
	void (*thread[EXPLORE_THREADS_MAX])(void);
	// Called between any two steps, outside all threads; NULL if all is well, else what is not.
	const char *(*always)(void);
	const char *(*at_end)(void); // after the last thread ended
};

struct explore_outcome {
	uint64_t runs;
	uint64_t points;
	const char *failure; // NULL: no interleaving fails
	char schedule[512];  // of the failing run: which thread ran at each point
};

struct explore_outcome explore_all(const struct explore_scenario *scenario);

// For scenario code: reports a broken promise from inside a thread. Does not return.
void explore_fail(const char *what);
#define EXPLORE_ASSERT(expression)                                                                 \
	do {                                                                                       \
		if (!(expression))                                                                 \
			explore_fail(#expression);                                                 \
	} while (0)
