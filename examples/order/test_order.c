// SPDX-License-Identifier: BSD-3-Clause
// The example with the harness: no node, one turn at a time, a clock that the test sets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "spotlane/harness.h"

enum { ORDER_ADD = 1, ORDER_SHIP = 2, ORDER_STATUS = 3, ORDER_SEAL = 4 };

static struct spotlane_harness *harness;

static struct spotlane_bytes text(const char *s)
{
	return (struct spotlane_bytes){s, strlen(s)};
}

static int setup(void **state)
{
	*state = spotlane_harness_make(harness, "order", "order-1", NULL, text(""), NULL);
	return *state == NULL;
}

static int teardown(void **state)
{
	return spotlane_harness_end(*state, SPOTLANE_CLOSE_EXPLICIT);
}

static struct spotlane_harness_reply answer_with(void **state, int kind, const char *body)
{
	struct spotlane_answer a = {.kind = (uint8_t)kind,
		.accepted = 1,
		.content = SPOTLANE_TEXT,
		.payload = text(body)};
	return spotlane_harness_answer(*state, &a);
}

static struct spotlane_harness_reply add(void **state, const char *article, const char *price)
{
	struct spotlane_harness_reply r =
		spotlane_harness_request(*state, ORDER_ADD, SPOTLANE_TEXT, text(article));
	assert_int_equal(r.kind, 0); // waits
	assert_string_equal(spotlane_harness_last_sent(*state).id.data, "prices");
	assert_string_equal(spotlane_harness_last_sent(*state).payload.data, article);
	return answer_with(state, SPOTLANE_OK, price);
}

static void X2__the_example_waits_for_a_price(void **state)
{
	assert_string_equal(add(state, "tea", "3").payload.data, "3");
	assert_string_equal(add(state, "cup", "12").payload.data, "15");
	spotlane_harness_request(*state, ORDER_ADD, SPOTLANE_TEXT, text("pot"));
	assert_int_equal(answer_with(state, SPOTLANE_NOT_FOUND, "").kind, SPOTLANE_UNAVAILABLE);
	assert_int_equal(spotlane_harness_request(*state, ORDER_ADD, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_REJECTED);
	spotlane_harness_refuse_calls(harness, 1);
	assert_int_equal(
		spotlane_harness_request(*state, ORDER_ADD, SPOTLANE_TEXT, text("pot")).kind,
		SPOTLANE_CAPACITY_EXCEEDED);
}

static void X7__the_example_lets_an_order_expire(void **state)
{
	spotlane_harness_set_clock(harness, 1000);
	add(state, "tea", "3");
	uint64_t first = spotlane_harness_timer_due(*state, "expire");
	assert_true(first > 0);
	spotlane_harness_set_clock(harness, 5000);
	add(state, "cup", "12"); // set anew
	assert_int_equal(spotlane_harness_timer_due(*state, "expire"), first + 4000);
	spotlane_harness_tick(*state, "expire");
	assert_string_equal(spotlane_harness_request(*state, ORDER_STATUS, SPOTLANE_TEXT, text(""))
				    .payload.data,
		"0 expired");
	assert_int_equal(spotlane_harness_timer_due(*state, "expire"), 0);
	assert_int_equal(spotlane_harness_request(*state, ORDER_SHIP, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_REJECTED);
}

static void X2_X7__the_example_ships_and_cancels_its_timer(void **state)
{
	add(state, "tea", "3");
	assert_int_equal(
		spotlane_harness_request(*state, ORDER_SHIP, SPOTLANE_TEXT, text("")).kind, 0);
	assert_int_equal(spotlane_harness_timer_due(*state, "expire"), 0);
	assert_string_equal(answer_with(state, SPOTLANE_OK, "box 7").payload.data, "box 7");
}

static void X5__the_example_hands_slow_work_off(void **state)
{
	add(state, "tea", "3");
	assert_int_equal(
		spotlane_harness_request(*state, ORDER_SEAL, SPOTLANE_TEXT, text("")).kind, 0);
	assert_int_equal(spotlane_harness_awaited(*state), SPOTLANE_AWAITS_OFFLOAD);
	struct spotlane_harness_reply r = spotlane_harness_run_offload(*state);
	assert_int_equal(r.kind, SPOTLANE_OK);
	assert_true(r.payload.size > 4);
	spotlane_harness_refuse_calls(harness, 1);
	assert_int_equal(spotlane_harness_request(*state, ORDER_SEAL, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_CAPACITY_EXCEEDED);
	assert_int_equal(spotlane_harness_request(*state, 99, SPOTLANE_TEXT, text("")).kind,
		SPOTLANE_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(X2__the_example_waits_for_a_price, setup, teardown),
		cmocka_unit_test_setup_teardown(
			X7__the_example_lets_an_order_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(
			X2_X7__the_example_ships_and_cancels_its_timer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			X5__the_example_hands_slow_work_off, setup, teardown),
	};
	int failed;

	if (argc != 2 || (harness = spotlane_harness_open(argv[1])) == NULL)
		return 2;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	spotlane_harness_close(harness);
	return failed;
}
