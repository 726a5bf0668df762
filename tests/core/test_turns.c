// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <stdlib.h>

static struct rig_reply r;

static void X2_M2__a_turn_may_wait_for_another_spot_on_any_worker(void **state)
{
	(void)state;
	for (uint16_t workers = 1; workers <= 4; workers *= 2) {
		struct rig *rig = rig_start_plain(workers);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 0);
		rig_spot(rig, "b", "plain", (uint16_t)(workers - 1));
		struct rig_message m = rig_request("a", DO_ASK, "b", 1);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
		assert_int_equal(r.body_bytes, 5);
		assert_memory_equal(r.body, "asked", 5);
		assert_int_equal(RIG_COUNT(rig, messages_delivered), 2);
		rig_stop(rig);
	}
}

static void X1_X2_I9__a_waiting_turn_keeps_its_gate(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true; // "nobody" stays unresolved
	struct rig_message m = rig_request("a", DO_ASK, "nobody", 6);
	rig_send(rig, c, 0, &m);
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &log);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 0);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 2); // L5: held while running and while queued
	assert_int_equal(view.running_since_boot_ns, rig_clock.boot_ns);
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(rig_log.answer_kind, RESULT_NOT_FOUND);
	assert_int_equal(rig_log.answer_accepted, ACCEPTED_NO);
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	rig_stop(rig);
}

static void ends_without_a_lease(uint16_t how)
{
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true; // "nobody" stays unresolved
	struct rig_message m = rig_request("a", how, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	dp_lease(rig->dp)->deadline_boot_ns = 1;
	dp_lease(rig->dp)->deadline_ticks = 1;
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.answers, 0);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_YES);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	assert_int_equal(view.application.bytes, 0);
	assert_int_equal(view.running_since_boot_ns, 0);
	rig_stop(rig);
}

static void O3_S4_I2__a_turn_that_waited_past_the_lease_does_not_go_on(void **state)
{
	(void)state;
	ends_without_a_lease(DO_ASK);
	ends_without_a_lease(DO_ASK_YIELD);
}

// Queued, waiting and yielded work is there when the node ends: dp_destroy checks that every item is
// back in its arena.
static void H3_I10__a_node_that_ends_by_force_gives_everything_back(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true;
	struct rig_message yields = rig_request("a", DO_ASK_YIELD, "nobody", 6);
	struct rig_message waits = rig_request("a", DO_ASK, "nobody", 6);
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &yields);
	rig_settle(rig);
	rig_send(rig, c, 0, &waits);
	rig_settle(rig);
	rig_send(rig, c, 0, &log);
	rig_settle(rig);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 3);
	assert_int_equal(rig_log.count, 0);
	(void)route_retire(rig->routes, view.key);
	dp_spot_discard(spot);
	dp_destroy(rig->dp);
	fabric_loop_destroy(rig->net);
	route_table_destroy(rig->routes);
	free(rig);
}

static void X2__a_yielding_turn_gives_its_gate_back_and_resumes_at_the_back(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true;
	struct rig_message m = rig_request("a", DO_ASK_YIELD, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 1);
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &log, &r);
	assert_int_equal(rig_log.count, 1); // ran while the other turn had yielded
	// Resume item behind what is queued when the call ends.
	rig_send(rig, c, 0, &log);
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.answers, 1);
	assert_int_equal(rig_log.count, 2);
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	rig_stop(rig);
}

static void X3__awaiting_ones_own_gate_is_refused_before_submission(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_ASK, "a", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.self_call, 0);
	assert_int_equal(RIG_COUNT(rig, messages_internal), 0);
	assert_int_equal(RIG_COUNT(rig, calls), 0);
	rig_stop(rig);
}

static void X2__waiting_for_nothing_is_a_fault_of_the_handler(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	static const char *const types[] = {"plain", "quick"};
	rig_spot(rig, "plain", types[0], 0);
	rig_spot(rig, "quick", types[1], 0);
	for (int i = 0; i < 2; i++) {
		struct rig_message m = rig_request(types[i], DO_WAIT_NOTHING, "", 0);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_INTERNAL_FAILURE, REASON_HANDLER_FAULT, ACCEPTED_YES);
		m.type = DO_ECHO;
		rig_ask(rig, c, 0, &m, &r); // the gate is free again
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	}
	rig_stop(rig);
}

static void M2_X6__a_turn_without_a_reply_answers_ok_and_a_second_answer_is_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_NOTHING, "x", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(r.body_bytes, 0);
	m.type = DO_TWICE;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(rig_log.second_reply_refused, 1);
	assert_int_equal(RIG_COUNT(rig, second_answers), 1);
	m.type = DO_ERROR;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_YES);
	assert_memory_equal(r.body, "no", 2);
	rig_stop(rig);
}

static void M2_M4_I7__a_call_ends_once_and_later_answers_are_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 1);
	// "a" asks "b" on a worker that does not turn until the deadline has passed.
	struct rig_message m = rig_request("a", DO_ASK, "b", 1);
	m.budget_us = 1000;
	rig_send(rig, c, 0, &m);
	for (int i = 0; i < 4; i++)
		rig_step(rig, 0);
	rig_pass(2000000);
	for (int i = 0; i < 4; i++)
		rig_step(rig, 0);
	assert_int_equal(rig_log.answers, 1);
	assert_int_equal(rig_log.answer_kind, RESULT_DEADLINE_EXCEEDED);
	assert_int_equal(rig_log.answer_accepted, ACCEPTED_UNKNOWN);
	rig_settle(rig); // b's late answer (it was not run: its budget was spent)
	assert_int_equal(rig_log.answers, 1);
	assert_int_equal(RIG_COUNT(rig, calls_late), 1);
	assert_int_equal(RIG_COUNT(rig, messages_dropped), 1);
	rig_stop(rig);
}

static void M4__a_call_that_never_left_the_parking_was_not_accepted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	rig->manual = true;
	struct rig_message m = rig_request("a", DO_ASK, "nobody", 6);
	m.budget_us = 1000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_int_equal(rig_log.answer_kind, RESULT_DEADLINE_EXCEEDED);
	assert_int_equal(rig_log.answer_accepted, ACCEPTED_NO);
	assert_int_equal(rig_log.answers, 1);
	rig_stop(rig);
}

static void M7__work_whose_budget_is_spent_is_not_run(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	uint64_t spend = 2000000;
	struct rig_message slow = rig_request("a", DO_SPEND, &spend, 8);
	rig_send(rig, c, 0, &slow);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.budget_us = 1000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 0);
	rig_stop(rig);
}

static void X4__an_overrun_is_counted_and_named(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	uint64_t spend = 10000001;
	struct rig_message slow = rig_request("a", DO_SPEND, &spend, 8);
	rig_ask(rig, c, 0, &slow, &r);
	assert_int_equal(RIG_COUNT(rig, turn_overruns), 1);
	const struct dp_fact *f = &rig->facts[rig->fact_count - 1];
	assert_int_equal(f->kind, DP_FACT_OVERRUN);
	assert_ptr_equal(f->as.overrun.spot, spot);
	assert_true(f->as.overrun.took_ns >= 10000000);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.overruns, 1);
	spend = 9000000;
	rig_ask(rig, c, 0, &slow, &r);
	assert_int_equal(RIG_COUNT(rig, turn_overruns), 1);
	rig_stop(rig);
}

static void X4_X8__one_hot_spot_does_not_starve_the_others(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "hot", "plain", 0);
	rig_spot(rig, "cold", "plain", 0);
	uint64_t work[2] = {3000000, 1}; // 3 ms each: 4 fill an acquisition
	struct rig_message hot = rig_request("hot", DO_SPEND_LOG, work, 16);
	uint64_t cold_value = 2;
	struct rig_message cold = rig_request("cold", DO_LOG, &cold_value, 8);
	for (int i = 0; i < 12; i++)
		rig_send(rig, c, 0, &hot);
	rig_send(rig, c, 0, &cold);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 13);
	for (uint32_t i = 0; i < 13; i++)
		assert_int_equal(rig_log.values[i], i == 4 ? 2 : 1);
	rig_stop(rig);
}

static void X5__blocking_work_comes_back_as_a_new_item(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_OFFLOAD, "abcdef", 6);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_memory_equal(r.body, "fedcba", 6);
	assert_int_equal(RIG_COUNT(rig, offloads), 1);
	rig_stop(rig);
}

static void X6_L4__a_send_goes_the_same_road(void **state)
{
	(void)state;
	for (uint16_t workers = 1; workers <= 2; workers++) {
		struct rig *rig = rig_start_plain(workers);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 0);
		rig_spot(rig, "b", "narrow", (uint16_t)(workers - 1));
		struct rig_message m = rig_request("a", DO_SEND, "b", 1);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
		assert_int_equal(rig_log.count, 1);
		// To itself: behind what is queued, in its own lane.
		m = rig_request("a", DO_SEND, "a", 1);
		rig_ask(rig, c, 0, &m, &r);
		assert_int_equal(rig_log.count, 2);
		// Refused: counted here, said to the handler.
		for (int i = 0; i < 6; i++) {
			m = rig_request("a", DO_SEND, "b", 1);
			rig_send(rig, c, 0, &m);
		}
		rig_step(rig, 0);
		rig_settle(rig);
		assert_int_equal(RIG_COUNT(rig, sends_refused), 2);
		rig_stop(rig);
	}
}

static void X6__a_nowait_handlers_send_to_itself_runs_after_its_turn(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "q", "quick", 0);
	struct rig_message m = rig_request("q", DO_SEND, "q", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(RIG_COUNT(rig, messages_in_place), 1);
	rig_stop(rig);
}

static void X2__a_type_that_never_waits_may_not_ask_wherever_its_turn_runs(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "q", "quick", 0);
	rig_spot(rig, "b", "plain", 0);
	static const uint16_t asks[] = {DO_ASK, DO_OFFLOAD};
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		struct rig_message m = rig_request("q", asks[i], "b", 1);
		rig_ask(rig, c, 0, &m, &r); // in place
		enum result_kind alone = r.h.kind;
		rig_send(rig, c, 0, &m);
		rig_send(rig, c, 0, &m); // behind the one before: queued
		m.flags = WIRE_FLAG_EXPLAIN; // never in place
		rig_send(rig, c, 0, &m);
		rig_settle(rig);
		for (int n = 0; n < 3; n++) {
			assert_true(rig_receive(rig, c, &r));
			assert_int_equal(r.h.kind, alone);
		}
	}
	assert_int_equal(RIG_COUNT(rig, calls), 0);
	assert_int_equal(RIG_COUNT(rig, offloads), 0);
	assert_int_equal(rig_log.answers, 0);
	rig_stop(rig);
}

// "a" asks "b", whose gate is kept by a turn that waits for nobody; then "a" cancels.
static void L5_M2__a_cancelled_queued_item_ends_at_once_and_keeps_its_place(void **state)
{
	(void)state;
	for (uint16_t workers = 1; workers <= 2; workers++) {
		struct rig *rig = rig_start_plain(workers);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 0);
		struct dp_spot *b = rig_spot(rig, "b", "plain", (uint16_t)(workers - 1));
		rig->manual = true;
		struct rig_message hold = rig_request("b", DO_HOLD, "", 0);
		rig_send(rig, c, 0, &hold);
		rig_settle(rig);
		struct rig_message m = rig_request("a", DO_ASK_YIELD, "b", 1);
		uint64_t asked = rig_send(rig, c, 0, &m);
		rig_settle(rig);
		struct dp_spot_view before, after;
		dp_spot_view(b, &before);
		assert_int_equal(before.application.count, 2);
		struct rig_message cancel = rig_request("a", DO_CANCEL, "", 0);
		uint64_t cancelled = rig_send(rig, c, 0, &cancel);
		rig_settle(rig);
		for (int i = 0; i < 2; i++) { // both end while "b" is held
			assert_true(rig_receive(rig, c, &r));
			assert_int_equal(r.h.operation_id, i == 0 ? cancelled : asked);
		}
		assert_int_equal(rig_log.cancel_returned, 0);
		assert_int_equal(rig_log.answers, 1);
		assert_int_equal(rig_log.answer_kind, RESULT_CANCELLED);
		assert_int_equal(rig_log.answer_accepted, ACCEPTED_NO);
		assert_int_equal(RIG_COUNT(rig, messages_cancelled), 1);
		dp_spot_view(b, &after); // place and charge are kept
		assert_int_equal(after.application.count, before.application.count);
		assert_int_equal(after.application.bytes, before.application.bytes);
		uint64_t turns = RIG_COUNT(rig, turns);
		assert_int_equal(dp_fail(rig->dp, (uint16_t)(workers - 1),
					 spot_key_of(rig_id("nobody-home")), DP_FAIL_ALL,
					 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
			DP_DONE);
		rig_settle(rig);
		assert_int_equal(RIG_COUNT(rig, turns), turns + 1); // b's answer, not a's request
		dp_spot_view(b, &after);
		assert_int_equal(after.application.count, 0);
		assert_int_equal(RIG_COUNT(rig, messages_dropped), 1);
		assert_int_equal(RIG_COUNT(rig, calls_late), 0);
		rig_stop(rig);
	}
}

static void L5_M2__work_that_has_begun_goes_on_and_parked_work_ends(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 0);
	rig->manual = true;
	struct rig_message cancel = rig_request("a", DO_CANCEL, "", 0);
	rig_ask(rig, c, 0, &cancel, &r); // there is none
	assert_int_equal(rig_log.cancel_returned, -1);
	// Parked: nobody is found for it.
	struct rig_message m = rig_request("a", DO_ASK_YIELD, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_send(rig, c, 0, &cancel);
	rig_settle(rig);
	assert_int_equal(rig_log.answer_kind, RESULT_CANCELLED);
	assert_int_equal(rig_log.answers, 1);
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	while (rig_receive(rig, c, &r))
		;
	rig_ask(rig, c, 0, &cancel, &r); // it has ended
	assert_int_equal(rig_log.cancel_returned, -1);
	// Begun: "b" waits inside the turn that "a" asked for.
	uint64_t asked_of_a = rig_log.self_call;
	m = rig_request("a", DO_ASK_HOLD_YIELD, "b", 1);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_not_equal(rig_log.self_call, asked_of_a);
	rig_ask(rig, c, 0, &cancel, &r);
	assert_int_equal(rig_log.cancel_returned, 0);
	assert_int_equal(rig_log.answers, 1); // no result yet
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody-home")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.answers, 3); // b's, then a's
	assert_int_equal(RIG_COUNT(rig, messages_cancelled), 1);
	rig_stop(rig);
}

static void X2__two_answers_make_one_resume_item_at_a_time(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 1);
	rig_spot(rig, "c", "plain", 1);
	struct rig_message m = rig_request("a", DO_ASK_TWO_YIELD, "x", 1);
	uint64_t asked = rig_send(rig, c, 0, &m);
	rig_step(rig, 0); // asks both and yields
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &log);
	rig_step(rig, 1); // both answer
	rig_step(rig, 1);
	assert_int_equal(spot->yields, 1);
	rig_step(rig, 0);
	rig_settle(rig);
	// Answers found the turn queued already: it came up once for each and ended once.
	assert_int_equal(rig_log.answers, 2);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(RIG_COUNT(rig, turns), 2 + 1 + 2 + 1);
	assert_int_equal(RIG_COUNT(rig, messages_delivered), 4);
	assert_int_equal(spot->yields, 0);
	uint32_t results = 0;
	while (rig_receive(rig, c, &r))
		results += r.h.operation_id == asked;
	assert_int_equal(results, 1);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	rig_stop(rig);
}

static void K2_K3__an_entry_turn_waits_and_a_user_turn_yields(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "b", "plain", 0);
	struct dp_spot *entry = rig_spot(rig, "e", "entry", 0), *user = rig_spot(rig, "u", "user", 0);
	struct rig_message m = rig_request("e", DO_ASK, "b", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	m = rig_request("u", DO_ASK_YIELD, "b", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	struct dp_spot_view view;
	dp_spot_view(entry, &view);
	assert_int_equal(view.kind, SPOT_KIND_ENTRY);
	dp_spot_view(user, &view);
	assert_int_equal(view.kind, SPOT_KIND_USER);
	rig_stop(rig);
}

static void X2_I10__a_call_whose_turn_ended_is_abandoned(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "deaf", 0); // has no `answered`
	rig_spot(rig, "b", "plain", 0);
	struct rig_message m = rig_request("a", DO_ASK, "b", 1);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INTERNAL_FAILURE, REASON_HANDLER_FAULT, ACCEPTED_YES);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_M2__a_turn_may_wait_for_another_spot_on_any_worker),
		cmocka_unit_test(X1_X2_I9__a_waiting_turn_keeps_its_gate),
		cmocka_unit_test(O3_S4_I2__a_turn_that_waited_past_the_lease_does_not_go_on),
		cmocka_unit_test(H3_I10__a_node_that_ends_by_force_gives_everything_back),
		cmocka_unit_test(X2__a_yielding_turn_gives_its_gate_back_and_resumes_at_the_back),
		cmocka_unit_test(X3__awaiting_ones_own_gate_is_refused_before_submission),
		cmocka_unit_test(X2__waiting_for_nothing_is_a_fault_of_the_handler),
		cmocka_unit_test(
			M2_X6__a_turn_without_a_reply_answers_ok_and_a_second_answer_is_counted),
		cmocka_unit_test(M2_M4_I7__a_call_ends_once_and_later_answers_are_counted),
		cmocka_unit_test(M4__a_call_that_never_left_the_parking_was_not_accepted),
		cmocka_unit_test(M7__work_whose_budget_is_spent_is_not_run),
		cmocka_unit_test(X4__an_overrun_is_counted_and_named),
		cmocka_unit_test(X4_X8__one_hot_spot_does_not_starve_the_others),
		cmocka_unit_test(X5__blocking_work_comes_back_as_a_new_item),
		cmocka_unit_test(X6_L4__a_send_goes_the_same_road),
		cmocka_unit_test(X6__a_nowait_handlers_send_to_itself_runs_after_its_turn),
		cmocka_unit_test(X2__a_type_that_never_waits_may_not_ask_wherever_its_turn_runs),
		cmocka_unit_test(L5_M2__a_cancelled_queued_item_ends_at_once_and_keeps_its_place),
		cmocka_unit_test(L5_M2__work_that_has_begun_goes_on_and_parked_work_ends),
		cmocka_unit_test(X2__two_answers_make_one_resume_item_at_a_time),
		cmocka_unit_test(K2_K3__an_entry_turn_waits_and_a_user_turn_yields),
		cmocka_unit_test(X2_I10__a_call_whose_turn_ended_is_abandoned),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core turns", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
