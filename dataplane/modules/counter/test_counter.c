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
	*state = spotlane_harness_make(harness, "counter", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__counter_adds_in_every_content(void **state)
{
	uint64_t seven = 7, got;
	struct spotlane_harness_reply r;

	r = spotlane_harness_request(*state, 1, SPOTLANE_BYTES, (struct spotlane_bytes){&seven, 8});
	assert_int_equal(r.payload.size, 8);
	memcpy(&got, r.payload.data, 8);
	assert_int_equal(got, 7);
	r = spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("35"));
	assert_string_equal(r.payload.data, "42");
	r = spotlane_harness_request(*state, 1, SPOTLANE_JSON, text(""));
	assert_string_equal(r.payload.data, "43");
	assert_int_equal(r.content, SPOTLANE_JSON);
	spotlane_harness_send(*state, 1, SPOTLANE_TEXT, text("7"));
	r = spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text(""));
	assert_string_equal(r.payload.data, "50");
}

static void x__counter_refuses_what_is_no_number(void **state)
{
	static const char *const bad[] = {"x", "-1", "1.5", " 1", "18446744073709551616",
		"111111111111111111111", NULL};

	for (int i = 0; bad[i] != NULL; i++)
		assert_int_equal(
			spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text(bad[i])).kind,
			SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_BYTES, text("7 bytes")).kind,
		SPOTLANE_REJECTED);
	assert_string_equal(
		spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("")).payload.data, "0");
	assert_string_equal(
		spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("18446744073709551615"))
			.payload.data,
		"18446744073709551615");
}

static void x__counter_knows_no_other_message(void **state)
{
	assert_int_equal(spotlane_harness_request(*state, 9, SPOTLANE_BYTES, text("")).kind,
		SPOTLANE_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(x__counter_adds_in_every_content, setup, teardown),
		cmocka_unit_test_setup_teardown(
			x__counter_refuses_what_is_no_number, setup, teardown),
		cmocka_unit_test_setup_teardown(x__counter_knows_no_other_message, setup, teardown),
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
