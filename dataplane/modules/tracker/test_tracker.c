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
	*state = spotlane_harness_make(harness, "tracker", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__tracker_keeps_the_last_report_as_it_came(void **state)
{
	struct spotlane_harness_reply r;

	assert_int_equal(spotlane_harness_request(*state, 2, SPOTLANE_BYTES, text("")).kind,
		SPOTLANE_NOT_FOUND);
	r = spotlane_harness_request(*state, 1, SPOTLANE_JSON, text("{\"lat\":1}"));
	assert_string_equal(r.payload.data, "{\"reports\":1}");
	spotlane_harness_send(*state, 1, SPOTLANE_JSON, text("{\"lat\":2, \"lon\":3}"));
	r = spotlane_harness_request(*state, 2, SPOTLANE_BYTES, text(""));
	assert_int_equal(r.content, SPOTLANE_JSON);
	assert_string_equal(r.payload.data, "{\"lat\":2, \"lon\":3}");
	r = spotlane_harness_request(*state, 1, SPOTLANE_JSON, text("{}"));
	assert_string_equal(r.payload.data, "{\"reports\":3}");
	assert_string_equal(
		spotlane_harness_request(*state, 2, SPOTLANE_BYTES, text("")).payload.data, "{}");
}

static void x__tracker_refuses_what_is_no_report(void **state)
{
	static char big[1025];

	memset(big, ' ', sizeof(big));
	big[0] = '{';
	big[1024] = '}';
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("{}")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_JSON, text("")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_JSON, text("[1]")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_JSON,
		(struct spotlane_bytes){big, sizeof(big)}).kind, SPOTLANE_REJECTED);
	big[1023] = '}';
	assert_int_equal(spotlane_harness_request(
		*state, 1, SPOTLANE_JSON, (struct spotlane_bytes){big, 1024}).kind, SPOTLANE_OK);
}

static void x__tracker_knows_no_other_message(void **state)
{
	assert_int_equal(spotlane_harness_request(*state, 9, SPOTLANE_BYTES, text("")).kind,
		SPOTLANE_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			x__tracker_keeps_the_last_report_as_it_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			x__tracker_refuses_what_is_no_report, setup, teardown),
		cmocka_unit_test_setup_teardown(x__tracker_knows_no_other_message, setup, teardown),
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
