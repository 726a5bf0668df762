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
	*state = spotlane_harness_make(harness, "room", "the-one", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static void x__room_remembers_what_was_said(void **state)
{
	struct spotlane_harness_reply r =
		spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("hi"));

	assert_string_equal(r.payload.data, "{\"said\":1,\"members\":0}");
	spotlane_harness_send(*state, 1, SPOTLANE_TEXT, text("there"));
	r = spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text(""));
	assert_string_equal(r.payload.data, "\nhi\nthere\n");
}

static void x__room_reads_the_last_sixteen_lines(void **state)
{
	static const char line[] = "abcdefghijklmnopqrst";
	struct spotlane_harness_reply r;

	for (size_t i = 1; i <= 20; i++)
		spotlane_harness_send(*state, 1, SPOTLANE_TEXT, (struct spotlane_bytes){line, i});
	r = spotlane_harness_request(*state, 2, SPOTLANE_TEXT, text(""));
	// The title's newline, then lines of 5 to 20 bytes with a newline each.
	assert_int_equal(r.payload.size, 1 + (5 + 20) * 16 / 2 + 16);
	assert_memory_equal(r.payload.data, "\nabcde\nabcdef\n", 14);
}

static void x__room_refuses_what_is_no_line(void **state)
{
	static char big[241];

	memset(big, 'a', sizeof(big));
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("a\nb")).kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(
				 *state, 1, SPOTLANE_TEXT, (struct spotlane_bytes){big, 241})
				 .kind,
		SPOTLANE_REJECTED);
	assert_int_equal(spotlane_harness_request(
		*state, 1, SPOTLANE_TEXT, (struct spotlane_bytes){big, 240}).kind, SPOTLANE_OK);
	assert_int_equal(spotlane_harness_request(*state, 3, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_OK);
	assert_int_equal(spotlane_harness_request(*state, 4, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_UNSUPPORTED);
}

static void x__room_declines_an_odd_title(void **state)
{
	struct spotlane_harness_spot *s;
	struct spotlane_harness_reply r;
	int kind = 0;

	(void)state;
	s = spotlane_harness_make(harness, "room", "other", NULL, text("a\tb"), &kind);
	assert_null(s);
	assert_int_equal(kind, SPOTLANE_REJECTED);
	s = spotlane_harness_make(harness, "room", "other", NULL, text("Tea at five"), &kind);
	assert_non_null(s);
	r = spotlane_harness_request(s, 2, SPOTLANE_TEXT, text(""));
	assert_string_equal(r.payload.data, "Tea at five\n");
	assert_int_equal(spotlane_harness_end(s, SPOTLANE_CLOSE_EXPLICIT), 0);
}

static void B3_M10__room_admits_members_and_tells_listeners_who_speaks(void **state)
{
	struct spotlane_harness_reply r;
	char id[8] = "m-00";

	assert_int_equal(spotlane_harness_join(*state, "anna"), 0);
	spotlane_harness_request(*state, 3, SPOTLANE_TEXT, text(""));
	spotlane_harness_request(*state, 3, SPOTLANE_TEXT, text("")); // listens already
	spotlane_harness_set_actor(harness, "anna");
	r = spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("hi"));
	assert_string_equal(r.payload.data, "{\"said\":1,\"members\":1}");
	assert_int_equal(spotlane_harness_last_push(*state).count, 1);
	assert_string_equal(spotlane_harness_last_push(*state).payload.data, "anna: hi");
	spotlane_harness_set_actor(harness, "");
	spotlane_harness_request(*state, 1, SPOTLANE_TEXT, text("tea"));
	assert_string_equal(spotlane_harness_last_push(*state).payload.data, "tea");
	spotlane_harness_leave(*state, "anna");
	for (int i = 0; i < 64; i++) {
		id[2] = (char)('0' + i / 10);
		id[3] = (char)('0' + i % 10);
		assert_int_equal(spotlane_harness_join(*state, id), 0);
	}
	assert_int_equal(spotlane_harness_join(*state, "one more"), SPOTLANE_CAPACITY_EXCEEDED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(x__room_remembers_what_was_said, setup, teardown),
		cmocka_unit_test_setup_teardown(
			x__room_reads_the_last_sixteen_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(x__room_refuses_what_is_no_line, setup, teardown),
		cmocka_unit_test_setup_teardown(
			B3_M10__room_admits_members_and_tells_listeners_who_speaks, setup,
			teardown),
		cmocka_unit_test_setup_teardown(x__room_declines_an_odd_title, setup, teardown),
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
