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
	*state = spotlane_harness_make(harness, "lobby", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__lobby_counts_visitors(void **state)
{
	struct spotlane_harness_reply r =
		spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text(""));

	assert_string_equal(r.payload.data, "{\"visitors\":1}");
	r = spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text(""));
	assert_string_equal(r.payload.data, "{\"visitors\":2}");
}

static void x__lobby_passes_a_question_on(void **state)
{
	struct spotlane_answer yes = {
		.kind = SPOTLANE_OK, .content = SPOTLANE_TEXT, .payload = text("9")};
	struct spotlane_answer no = {.kind = SPOTLANE_NOT_FOUND};
	struct spotlane_harness_sent sent;
	struct spotlane_harness_reply r;

	r = spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("clicks\n4"));
	assert_int_equal(r.kind, 0);
	sent = spotlane_harness_last_sent(*state);
	assert_string_equal(sent.id.data, "clicks");
	assert_string_equal(sent.payload.data, "4");
	assert_int_equal(sent.type, 1);
	assert_string_equal(spotlane_harness_answer(*state, &yes).payload.data, "9");
	spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("nobody\n"));
	assert_int_equal(spotlane_harness_answer(*state, &no).kind, SPOTLANE_NOT_FOUND);
}

static void x__lobby_refuses_what_it_cannot_pass_on(void **state)
{
	assert_int_equal(
		spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("no newline")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("\nx")).kind,
		SPOTLANE_REJECTED);
	spotlane_harness_refuse_calls(harness, 1);
	assert_int_equal(spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text("a\nb")).kind,
		SPOTLANE_UNAVAILABLE);
	assert_int_equal(spotlane_harness_request(*state, 3, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(x__lobby_counts_visitors, setup, teardown),
		cmocka_unit_test_setup_teardown(x__lobby_passes_a_question_on, setup, teardown),
		cmocka_unit_test_setup_teardown(
			x__lobby_refuses_what_it_cannot_pass_on, setup, teardown),
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
