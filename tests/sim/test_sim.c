// SPDX-License-Identifier: BSD-3-Clause
// Many seeds, each run twice. A broken promise prints its seed and aborts; `test_sim SEED` runs one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "sim.h"

enum { SEEDS = 200, STEPS = 3000 };

static uint64_t totals[3]; // executions, activations, lapses

static uint64_t run_once(uint64_t seed)
{
	struct sim *s = sim_create(seed);
	sim_run(s, STEPS);
	sim_finish(s);
	totals[0] += s->executions;
	totals[1] += s->activations;
	totals[2] += s->lapses;
	uint64_t hash = s->hash;
	free(s);
	return hash;
}

static void I23_I4_I5_I6_I7_I8_I10_I11_I12__seeds_keep_every_promise_twice(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t first = run_once(seed), second = run_once(seed);
		if (first != second)
			fail_msg("seed %llu: two runs differ", (unsigned long long)seed);
	}
	printf("%llu handler runs, %llu objects built, %llu leases lapsed\n",
		(unsigned long long)totals[0], (unsigned long long)totals[1],
		(unsigned long long)totals[2]);
	// The runs are about something: messages ran, objects were built, leases lapsed and came back.
	assert_true(totals[0] > SEEDS * 10);
	assert_true(totals[1] > SEEDS * 5);
	assert_true(totals[2] > SEEDS / 10);
}

int main(int argc, char **argv)
{
	publish_start();
	if (argc == 2) {
		uint64_t seed = strtoull(argv[1], NULL, 10);
		printf("seed %llu: %016llx\n", (unsigned long long)seed,
			(unsigned long long)run_once(seed));
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(I23_I4_I5_I6_I7_I8_I10_I11_I12__seeds_keep_every_promise_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
