// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "spotlane/harness.h"

static const char *module_path;
static struct spotlane_harness *harness;

static struct spotlane_bytes text(const char *s)
{
	return (struct spotlane_bytes){s, strlen(s)};
}

static int setup(void **state)
{
	*state = spotlane_harness_make(harness, "slow", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__slow_waits_on_the_blocking_pool(void **state)
{
	struct spotlane_harness_reply r =
		spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("1"));

	assert_int_equal(r.kind, 0);
	assert_int_equal(spotlane_harness_awaited(*state), SPOTLANE_AWAITS_OFFLOAD);
	r = spotlane_harness_run_offload(*state);
	assert_int_equal(r.kind, SPOTLANE_OK);
	assert_string_equal(r.payload.data, "slept");
	assert_int_equal(spotlane_harness_awaited(*state), 0);
}

static void x__slow_says_when_the_pool_is_full(void **state)
{
	spotlane_harness_refuse_calls(harness, 1);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("1")).kind,
		SPOTLANE_CAPACITY_EXCEEDED);
	assert_int_equal(spotlane_harness_awaited(*state), 0);
}

static void x__slow_can_keep_the_worker_busy(void **state)
{
	assert_int_equal(
		spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("1")).kind, SPOTLANE_OK);
}

static void x__slow_refuses_what_is_no_time(void **state)
{
	static const char *const bad[] = {"", "x", "60001", "123456", "-1", NULL};

	for (int i = 0; bad[i] != NULL; i++)
		assert_int_equal(
			spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text(bad[i])).kind,
			SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 3, SPOTLANE_TEXT, text("1")).kind,
		SPOTLANE_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			x__slow_waits_on_the_blocking_pool, setup, teardown),
		cmocka_unit_test_setup_teardown(
			x__slow_says_when_the_pool_is_full, setup, teardown),
		cmocka_unit_test_setup_teardown(x__slow_can_keep_the_worker_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(x__slow_refuses_what_is_no_time, setup, teardown),
	};
	int failed;

	if (argc != 2)
		return 2;
	module_path = argv[1];
	harness = spotlane_harness_open(module_path);
	if (harness == NULL)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	spotlane_harness_close(harness);
	return failed;
}
