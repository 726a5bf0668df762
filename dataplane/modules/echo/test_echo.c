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
	*state = spotlane_harness_make(harness, "echo", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__echo_answers_with_what_it_was_given(void **state)
{
	struct spotlane_harness_reply r =
		spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("hello"));

	assert_int_equal(r.kind, SPOTLANE_OK);
	assert_int_equal(r.content, SPOTLANE_TEXT);
	assert_int_equal(r.payload.size, 5);
	assert_memory_equal(r.payload.data, "hello", 5);
	r = spotlane_harness_request(*state, 1, SPOTLANE_BYTES, text(""));
	assert_int_equal(r.kind, SPOTLANE_OK);
	assert_int_equal(r.payload.size, 0);
}

static void x__echo_measures_words_in_order(void **state)
{
	struct spotlane_harness_reply r;

	// Words 1 and 2, then the single byte 3: sums 1, 3, 6; weighted 1 + 3 + 6.
	static const unsigned char bytes[17] = {[0] = 1, [8] = 2, [16] = 3};

	r = spotlane_harness_request(*state, 2, SPOTLANE_BYTES, (struct spotlane_bytes){bytes, 17});
	assert_string_equal(r.payload.data,
		"{\"bytes\":17,\"sum\":\"0000000000000006\",\"weighted\":\"000000000000000a\"}");
}

static void x__echo_knows_no_other_message(void **state)
{
	assert_int_equal(spotlane_harness_request(*state, 3, SPOTLANE_BYTES, text("")).kind,
		SPOTLANE_UNSUPPORTED);
	spotlane_harness_send(*state, 1, SPOTLANE_BYTES, text("no answer to a send"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			x__echo_answers_with_what_it_was_given, setup, teardown),
		cmocka_unit_test_setup_teardown(x__echo_measures_words_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(x__echo_knows_no_other_message, setup, teardown),
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
