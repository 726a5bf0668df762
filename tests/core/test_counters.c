// SPDX-License-Identifier: BSD-3-Clause
// Counters that no other test leans on: each rises by exactly what happened.
#include "rig.h"

#include "core/step.h"

static struct rig_reply r;

static void x__loops_messages_and_crossings_are_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "here", "plain", 0);
	rig_spot(rig, "there", "plain", 1);
	uint64_t messages = RIG_COUNT(rig, messages_in), busy = RIG_COUNT(rig, loops_busy);
	uint64_t crossed = RIG_COUNT(rig, messages_crossed), loops = RIG_COUNT(rig, loops);
	struct rig_message here = rig_request("here", DO_ECHO, "x", 1);
	rig_ask(rig, c, 0, &here, &r);
	assert_int_equal(RIG_COUNT(rig, messages_in), messages + 1);
	assert_int_equal(RIG_COUNT(rig, messages_crossed), crossed);
	struct rig_message there = rig_request("there", DO_ECHO, "x", 1);
	rig_ask(rig, c, 0, &there, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(RIG_COUNT(rig, messages_in), messages + 2);
	assert_int_equal(RIG_COUNT(rig, messages_crossed), crossed + 1);
	uint64_t busy_then = RIG_COUNT(rig, loops_busy), loops_then = RIG_COUNT(rig, loops);
	assert_true(busy_then > busy && loops_then - loops > busy_then - busy);
	rig_step(rig, 0);
	assert_int_equal(RIG_COUNT(rig, loops), loops_then + 1);
	assert_int_equal(RIG_COUNT(rig, loops_busy), busy_then); // nothing was there to do
	struct dp_worker *w = rig->dp->workers[0];
	assert_true(worker_may_sleep(w));
	assert_int_equal(RIG_COUNT(rig, idle_sleeps), 1);
	struct dp_spot *spot = rig_find(rig, "here");
	assert_int_equal(dp_close(rig->dp, spot, 1, rig_clock.boot_ns + 1000000000), DP_DONE);
	assert_false(worker_may_sleep(w)); // a command waits
	assert_int_equal(RIG_COUNT(rig, idle_sleeps), 1);
	rig_stop(rig);
}

static void M8__segments_are_counted_both_ways(void **state)
{
	(void)state;
	static uint8_t payload[40000];
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_NOTHING, payload, sizeof(payload));
	assert_true(rig_send_segmented(rig, c, 0, &m, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	uint64_t in = RIG_COUNT(rig, segments_in);
	assert_true(in >= sizeof(payload) / 1472);
	assert_int_equal(RIG_COUNT(rig, segments_out), 0);
	uint32_t bytes = sizeof(payload);
	struct rig_message big = rig_request("a", DO_BIG, &bytes, sizeof(bytes));
	rig_send(rig, c, 0, &big);
	rig_settle(rig);
	assert_int_equal(RIG_COUNT(rig, segments_in), in);
	assert_true(RIG_COUNT(rig, segments_out) > 0);
	assert_int_equal(RIG_COUNT(rig, replies_segmented), 1);
	rig_stop(rig);
}

// A control that takes nothing: the worker's facts are bounded, and who finds no room is told.
static void A10_M5__a_control_that_does_not_listen_is_a_bound_with_a_name(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	struct rig_message m = rig_request("room", WIRE_CONTROL_LOOKUP, NULL, 0);
	m.family = WIRE_CONTROL;
	m.with_id = true;
	uint32_t refused = 0, asked = 0;
	while (refused == 0 && asked < 2000) {
		rig_send(rig, c, 0, &m);
		asked++;
		rig_step(rig, 0);
		while (rig_receive(rig, c, &r)) {
			rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_SCHEDULER_QUEUE, ACCEPTED_NO);
			refused++;
		}
	}
	assert_int_equal(refused, 1);
	assert_true(RIG_COUNT(rig, facts_full) > 0);
	assert_int_equal(RIG_REFUSED(rig, REASON_SCHEDULER_QUEUE), 1);
	rig_settle(rig); // control listens again
	assert_int_equal(rig->fact_count, asked - 1);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(rig->fact_count, asked);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__loops_messages_and_crossings_are_counted),
		cmocka_unit_test(M8__segments_are_counted_both_ways),
		cmocka_unit_test(A10_M5__a_control_that_does_not_listen_is_a_bound_with_a_name),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core counters", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
