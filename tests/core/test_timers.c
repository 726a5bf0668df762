// SPDX-License-Identifier: BSD-3-Clause
// Named timers (X7).
#include "rig.h"

#include <stdio.h>

#define MS UINT64_C(1000000)

static struct rig_reply r;

static struct rig_timer timer_of(uint64_t first_ms, uint64_t period_ms, enum spotlane_timer_overrun overrun)
{
	return (struct rig_timer){.name = "t",
		.timer = {.first_us = first_ms * 1000, .period_us = period_ms * 1000, .overrun = overrun},
		.tick_does = DO_NOTHING};
}

static void set(struct rig *rig, struct rig_client *c, const char *id, const struct rig_timer *timer)
{
	struct rig_message m = rig_request(id, DO_TIMER, timer, sizeof(*timer));
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
}

// Lets time pass a millisecond at a time.
static void run_ms(struct rig *rig, uint32_t ms)
{
	for (uint32_t i = 0; i < ms; i++) {
		rig_pass(MS);
		rig_settle(rig);
	}
}

static uint64_t due_of(uint32_t tick)
{
	return rig_log.tick[tick].due_ns;
}

static void X7__ticks_come_by_the_period_and_never_early(void **state)
{
	(void)state;
	static const char *const types[] = {"plain", "user", "entry", "quick"};
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		struct rig *rig = rig_start_plain(2);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", types[i], 1);
		struct rig_timer t = timer_of(5, 10, SPOTLANE_TIMER_SKIP_LATE);
		uint64_t start = rig_clock.boot_ns;
		set(rig, c, "a", &t);
		assert_int_equal(rig_log.timer_set_returned, 0);
		run_ms(rig, 1000);
		assert_in_range(rig_log.ticks, 99, 100);
		for (uint32_t n = 0; n < rig_log.ticks; n++) {
			assert_int_equal(due_of(n), start + 5 * MS + n * 10 * MS);
			assert_true(rig_log.tick[n].at_ns >= due_of(n));
			assert_true(rig_log.tick[n].at_ns <= due_of(n) + 3 * MS);
			assert_int_equal(rig_log.tick[n].generation, 1);
			assert_int_equal(rig_log.tick[n].left_out, 0);
		}
		assert_int_equal(RIG_COUNT(rig, timer_ticks), rig_log.ticks);
		rig_stop(rig);
	}
}

// A tick spends 35 ms of a 10 ms period.
static struct rig *overrun(enum spotlane_timer_overrun policy, uint32_t catch_up_max)
{
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_timer t = timer_of(10, 10, policy);
	t.timer.catch_up_max = catch_up_max;
	t.tick_does = DO_SPEND;
	t.spend = 35 * MS;
	set(rig, c, "a", &t);
	while (rig_log.ticks == 0)
		run_ms(rig, 1);
	run_ms(rig, 30);
	return rig;
}

static void X7__skip_late_leaves_out_what_was_missed(void **state)
{
	(void)state;
	struct rig *rig = overrun(SPOTLANE_TIMER_SKIP_LATE, 0);
	assert_int_equal(due_of(1), due_of(0) + 40 * MS);
	assert_int_equal(rig_log.tick[1].left_out, 3);
	assert_int_equal(due_of(2), due_of(0) + 50 * MS);
	assert_int_equal(rig_log.tick[2].left_out, 0);
	assert_int_equal(RIG_COUNT(rig, timer_ticks_left_out), 3);
	rig_stop(rig);
}

static void X7__catch_up_makes_up_for_so_many_and_no_more(void **state)
{
	(void)state;
	struct rig *rig = overrun(SPOTLANE_TIMER_CATCH_UP_BOUNDED, 2);
	// Three were missed: the oldest is left out, two are made up for at once.
	assert_int_equal(due_of(1), due_of(0) + 20 * MS);
	assert_int_equal(rig_log.tick[1].left_out, 1);
	assert_int_equal(due_of(2), due_of(0) + 30 * MS);
	assert_true(rig_log.tick[2].at_ns < due_of(0) + 40 * MS);
	assert_int_equal(due_of(3), due_of(0) + 40 * MS);
	assert_int_equal(RIG_COUNT(rig, timer_ticks_left_out), 1);
	rig_stop(rig);
}

static void X7__delay_next_counts_from_the_end(void **state)
{
	(void)state;
	struct rig *rig = overrun(SPOTLANE_TIMER_DELAY_NEXT, 0);
	assert_int_equal(due_of(1), rig_log.tick[0].at_ns + 45 * MS);
	assert_int_equal(rig_log.tick[1].left_out, 0);
	assert_int_equal(RIG_COUNT(rig, timer_ticks_left_out), 0);
	rig_stop(rig);
}

static void fail_nobody(struct rig *rig)
{
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody-home")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
}

static void X7__a_timer_never_overlaps_itself(void **state)
{
	(void)state;
	static const int does[] = {DO_HOLD, DO_ASK_YIELD};
	static const enum spotlane_timer_overrun policies[] = {SPOTLANE_TIMER_SKIP_LATE,
		SPOTLANE_TIMER_CATCH_UP_BOUNDED, SPOTLANE_TIMER_DELAY_NEXT};
	for (size_t i = 0; i < ARRAY_COUNT(does) * ARRAY_COUNT(policies); i++) {
		struct rig *rig = rig_start_plain(1);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 0);
		struct rig_timer t = timer_of(1, 5, policies[i / 2]);
		t.tick_does = does[i % 2];
		set(rig, c, "a", &t);
		rig->manual = true;
		run_ms(rig, 100);
		assert_int_equal(rig_log.ticks, 1); // waits, or has yielded
		if (t.tick_does == DO_ASK_YIELD) { // set anew and cancelled meanwhile: still no second one
			set(rig, c, "a", &t);
			run_ms(rig, 50);
			struct rig_message m = rig_request("a", DO_TIMER_CANCEL, "t", 1);
			rig_ask(rig, c, 0, &m, &r);
			assert_int_equal(rig_log.timer_cancel_returned, 1);
			rig_ask(rig, c, 0, &m, &r);
			assert_int_equal(rig_log.timer_cancel_returned, 0);
			set(rig, c, "a", &t);
			run_ms(rig, 50);
			assert_int_equal(rig_log.ticks, 1);
		}
		for (int n = 0; n < 5; n++) {
			fail_nobody(rig);
			run_ms(rig, 20);
		}
		assert_int_equal(rig_log.ticks, 6);
		assert_int_equal(rig_log.ticks_overlapped, 0);
		rig_log.timer.tick_does = DO_NOTHING;
		fail_nobody(rig);
		rig->manual = false;
		rig_stop(rig);
	}
}

static void X7__ticks_of_an_earlier_setting_that_wait_do_not_run(void **state)
{
	(void)state;
	for (int cancels = 0; cancels < 2; cancels++) {
		struct rig *rig = rig_start_plain(1);
		struct rig_client *c = rig_client(rig);
		struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
		struct rig_timer t = timer_of(5, 0, SPOTLANE_TIMER_SKIP_LATE);
		set(rig, c, "a", &t);
		rig->manual = true;
		struct rig_message hold = rig_request("a", DO_ASK, "nobody", 6); // keeps the gate
		rig_send(rig, c, 0, &hold);
		struct rig_message again = cancels ? rig_request("a", DO_TIMER_CANCEL, "t", 1)
						   : rig_request("a", DO_TIMER, &t, sizeof(t));
		rig_send(rig, c, 0, &again);
		run_ms(rig, 8);
		struct dp_spot_view view;
		dp_spot_view(spot, &view);
		assert_int_equal(view.application.count, 3); // the tick waits behind both
		fail_nobody(rig);
		assert_int_equal(rig_log.ticks, 0);
		assert_int_equal(RIG_COUNT(rig, timer_ticks_old), 1);
		dp_spot_view(spot, &view);
		assert_int_equal(view.application.count, 0);
		run_ms(rig, 20);
		assert_int_equal(rig_log.ticks, cancels ? 0 : 1);
		if (!cancels)
			assert_int_equal(rig_log.tick[0].generation, 2);
		rig_stop(rig);
	}
}

static void X7__a_tick_may_set_its_own_timer_anew(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_timer t = timer_of(5, 0, SPOTLANE_TIMER_SKIP_LATE);
	t.tick_does = DO_TIMER;
	set(rig, c, "a", &t);
	run_ms(rig, 50);
	assert_int_equal(rig_log.ticks, 2);
	assert_int_equal(rig_log.tick[1].generation, 2);
	assert_int_equal(due_of(1), rig_log.tick[0].at_ns + 5 * MS);
	rig_stop(rig);
}

static void X7_O3__no_tick_starts_after_the_lease_ran_out(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_timer t = timer_of(10, 10, SPOTLANE_TIMER_SKIP_LATE);
	set(rig, c, "a", &t);
	rig->manual = true;
	struct rig_message hold = rig_request("a", DO_ASK, "nobody", 6);
	rig_send(rig, c, 0, &hold);
	run_ms(rig, 12); // a tick waits in the lane
	assert_int_equal(rig_log.ticks, 0);
	uint64_t deadline = rig_clock.boot_ns + MS;
	dp_lease(rig->dp)->deadline_boot_ns = deadline;
	dp_lease(rig->dp)->deadline_ticks = deadline;
	run_ms(rig, 2);
	fail_nobody(rig);
	run_ms(rig, 100);
	assert_int_equal(rig_log.ticks, 0);
	assert_in_range(RIG_COUNT(rig, timer_ticks_left_out), 9, 12);
	dp_lease(rig->dp)->deadline_boot_ns = UINT64_MAX;
	dp_lease(rig->dp)->deadline_ticks = UINT64_MAX;
	run_ms(rig, 20);
	assert_in_range(rig_log.ticks, 1, 2); // goes on under the new lease
	assert_true(rig_log.tick[0].at_ns > deadline);
	rig_stop(rig);
}

static void X7_L2_L4__a_tick_is_an_item_of_the_lane_charged_like_any(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "narrow", 0); // 4 items
	struct rig_timer t = timer_of(2, 10, SPOTLANE_TIMER_SKIP_LATE);
	struct rig_timer once = timer_of(15, 0, SPOTLANE_TIMER_SKIP_LATE);
	once.name[0] = 'o';
	set(rig, c, "a", &t);
	set(rig, c, "a", &once);
	rig->manual = true;
	struct rig_message hold = rig_request("a", DO_ASK, "nobody", 6);
	rig_send(rig, c, 0, &hold);
	run_ms(rig, 4);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 2);
	assert_true(view.application.bytes >= 2 * sizeof(struct item));
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	for (int i = 0; i < 3; i++)
		rig_send(rig, c, 0, &log); // the third finds the lane full
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT, ACCEPTED_NO);
	run_ms(rig, 30); // the single tick finds no room and waits for it
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 4);
	struct dp_audit audit;
	assert_int_equal(dp_audit_begin(rig->dp), DP_DONE);
	while (!dp_audit_poll(rig->dp, &audit))
		rig_step(rig, 0);
	assert_true(audit.equal);
	fail_nobody(rig);
	assert_int_equal(rig_log.count, 2);
	assert_int_equal(rig_log.ticks, 1);
	run_ms(rig, 3);
	assert_int_equal(rig_log.ticks, 2); // the single one
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	rig_stop(rig);
}

static void X7__settings_that_cannot_be_are_refused(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "deaf", "deaf", 0);
	struct rig_timer good = timer_of(1000, 1, SPOTLANE_TIMER_SKIP_LATE);
	set(rig, c, "deaf", &good); // no `ticked` callback
	assert_int_equal(rig_log.timer_set_returned, -1);
	struct rig_timer bad[4] = {good, good, good, good};
	bad[0].timer.period_us = 999;
	bad[1].timer.overrun = (enum spotlane_timer_overrun)3;
	bad[2].name[0] = 0;
	bad[3].timer.first_us = UINT64_MAX / 1000;
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		set(rig, c, "a", &bad[i]);
		assert_int_equal(rig_log.timer_set_returned, -1);
	}
	for (int i = 0; i <= SPOTLANE_TIMERS_MAX; i++) {
		snprintf(good.name, sizeof(good.name), "n%d", i);
		set(rig, c, "a", &good);
		assert_int_equal(rig_log.timer_set_returned, i < SPOTLANE_TIMERS_MAX ? 0 : -1);
	}
	snprintf(good.name, sizeof(good.name), "n%d", 5);
	set(rig, c, "a", &good); // one that is there may be set anew
	assert_int_equal(rig_log.timer_set_returned, 0);
	rig_stop(rig);
}

static void X7_C2__timers_end_with_their_spot_and_do_not_keep_it(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0), *found[DP_SWEEP];
	struct rig_timer t = timer_of(120000, 120000, SPOTLANE_TIMER_SKIP_LATE);
	set(rig, c, "a", &t);
	rig_pass(60000 * MS);
	uint64_t cursor = 0;
	assert_int_equal(dp_sweep(rig->dp, &cursor, 60000 * MS, found), 1);
	rig_settle(rig);
	assert_int_equal(dp_close_idle(rig->dp, spot, 60000 * MS, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closing_reason, SPOTLANE_CLOSE_IDLE_EVICTED);
	rig_pass(120000 * MS);
	rig_settle(rig);
	assert_int_equal(rig_log.ticks, 0);
	// A tick is work: it moves the idle time.
	spot = rig_spot(rig, "b", "plain", 0);
	t = timer_of(50000, 50000, SPOTLANE_TIMER_SKIP_LATE);
	set(rig, c, "b", &t);
	for (int i = 0; i < 4; i++) {
		rig_pass(30000 * MS);
		rig_settle(rig);
		cursor = 0;
		assert_int_equal(dp_sweep(rig->dp, &cursor, 60000 * MS, found), 0);
	}
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X7__ticks_come_by_the_period_and_never_early),
		cmocka_unit_test(X7__skip_late_leaves_out_what_was_missed),
		cmocka_unit_test(X7__catch_up_makes_up_for_so_many_and_no_more),
		cmocka_unit_test(X7__delay_next_counts_from_the_end),
		cmocka_unit_test(X7__a_timer_never_overlaps_itself),
		cmocka_unit_test(X7__ticks_of_an_earlier_setting_that_wait_do_not_run),
		cmocka_unit_test(X7__a_tick_may_set_its_own_timer_anew),
		cmocka_unit_test(X7_O3__no_tick_starts_after_the_lease_ran_out),
		cmocka_unit_test(X7_L2_L4__a_tick_is_an_item_of_the_lane_charged_like_any),
		cmocka_unit_test(X7__settings_that_cannot_be_are_refused),
		cmocka_unit_test(X7_C2__timers_end_with_their_spot_and_do_not_keep_it),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core timers", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
