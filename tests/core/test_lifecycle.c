// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

static struct rig_reply r;

static void K1_K5__callback_order_by_kind(void **state)
{
	(void)state;
	static const struct {
		const char *type, *order;
		enum spot_kind kind;
	} cases[] = {{"plain", "cfi", SPOT_KIND_INSTANCE}, {"user", "cfki", SPOT_KIND_USER},
		{"entry", "cfi", SPOT_KIND_ENTRY}};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct rig *rig = rig_start_plain(1);
		struct dp_spot *spot = rig_spot(rig, "a", cases[i].type, 0);
		assert_string_equal(rig_log.order, cases[i].order);
		struct dp_spot_view view;
		dp_spot_view(spot, &view);
		assert_int_equal(view.kind, cases[i].kind);
		assert_int_equal(dp_type_kind(view.type), cases[i].kind);
		assert_false(view.opening);
		rig_close(rig, spot, SPOTLANE_CLOSE_EXPLICIT);
		assert_string_equal(rig_log.order + strlen(cases[i].order), "xd");
		rig_stop(rig);
	}
}

static void K5__each_failing_step_disposes_and_tells(void **state)
{
	(void)state;
	int *const steps[] = {&rig_log.construct_returns, &rig_log.configure_returns,
		&rig_log.create_returns, &rig_log.initialise_returns};
	static const char *const orders[] = {"c", "cfd", "cfkd", "cfkid"};
	for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
		struct rig *rig = rig_start_plain(1);
		*steps[i] = SPOTLANE_REJECTED;
		rig_spot(rig, "u", "user", 0); // gone when this returns
		assert_string_equal(rig_log.order, orders[i]);
		assert_int_equal(rig->spot_count, 0);
		const struct dp_fact *f = &rig->facts[0];
		assert_int_equal(f->kind, DP_FACT_CONSTRUCTED);
		assert_int_equal(f->as.constructed.result.kind,
			i == 2 ? RESULT_REJECTED : RESULT_INTERNAL_FAILURE);
		assert_int_equal(f->as.constructed.result.reason,
			i == 2 ? REASON_DECLINED : REASON_FACTORY_FAILED);
		rig_stop(rig);
	}
}

static void C4_H3_I17__a_close_finishes_what_was_accepted_and_refuses_new_work(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true;
	struct rig_message hold = rig_request("a", DO_ASK, "nobody", 6);
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &hold);
	rig_send(rig, c, 0, &log);
	rig_settle(rig);
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_HOST_SHUTDOWN, 12345), DP_DONE);
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_EXPLICIT, 999), DP_DONE); // merged
	rig_settle(rig);
	// The gate is kept, so the close has not begun; let the turn end but hold the second item back.
	assert_int_equal(rig_log.closings, 0);
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1); // accepted before: ran
	assert_int_equal(rig_log.closings, 1);
	assert_int_equal(rig_log.closing_reason, SPOTLANE_CLOSE_HOST_SHUTDOWN);
	assert_int_equal(rig_log.closing_deadline, 12345);
	assert_string_equal(rig_log.order, "cfixd");
	uint32_t closed = 0;
	for (uint32_t i = 0; i < rig->fact_count; i++)
		closed += rig->facts[i].kind == DP_FACT_CLOSED;
	assert_int_equal(closed, 1);
	while (rig_receive(rig, c, &r))
		;
	// Still routed: an ordinary message is told, nothing runs.
	rig_ask(rig, c, 0, &log, &r);
	rig_expect(&r, RESULT_UNAVAILABLE, REASON_CLOSING, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 1);
	route_retire(rig->routes, spot->key);
	rig->spot_count = 0;
	dp_spot_destroy(spot);
	rig_stop(rig);
}

static void C5__an_intent_that_meets_a_closing_spot_waits_for_the_next(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig->manual = true;
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_EXPLICIT, 1), DP_DONE);
	rig_settle(rig);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.intent = "plain";
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(rig->facts[rig->fact_count - 1].kind, DP_FACT_RESOLVE);
	route_retire(rig->routes, spot->key);
	rig->spot_count = 0;
	dp_spot_destroy(spot);
	rig_spot(rig, "a", "plain", 0);
	assert_int_equal(dp_release(rig->dp, 0, spot_key_of(rig_id("a"))), DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void C4_Z10__a_spot_with_work_under_way_is_not_closed_under_it(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	// A yielded turn: the gate is free, the lane's list is empty, but the item is not ended.
	rig->manual = true;
	struct rig_message m = rig_request("a", DO_ASK_YIELD, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_IDLE_EVICTED, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 0);
	// A message that another worker has reserved and not yet passed on.
	rig_pass(20000000000u);
	rig->manual = false;
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 1);
	assert_int_equal(rig_log.closing_reason, SPOTLANE_CLOSE_IDLE_EVICTED); // Z11
	rig_stop(rig);
}

static void C4__a_reservation_of_another_worker_holds_the_seal_off(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 1, &m);
	rig_step(rig, 1); // reserved, passed on; worker 0 has not looked
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_EXPLICIT, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(rig_log.closings, 1);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void K5__a_closing_that_fails_is_recorded_and_cleaned_up_all_the_same(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_log.closing_returns = 5;
	rig_close(rig, spot, SPOTLANE_CLOSE_EXPLICIT);
	const struct dp_fact *f = &rig->facts[rig->fact_count - 1];
	assert_int_equal(f->kind, DP_FACT_CLOSED);
	assert_true(f->as.closed.callback_failed);
	assert_int_equal(rig_log.disposes, 1);
	rig_stop(rig);
}

static void K3__an_instance_closes_itself_after_its_turn(void **state)
{
	(void)state;
	static const char *const types[] = {"plain", "quick"};
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_start_plain(1);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", types[i], 0);
		struct rig_message m = rig_request("a", DO_CLOSE, "", 0);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
		rig_settle(rig);
		assert_int_equal(rig_log.closings, 1);
		assert_null(rig_find(rig, "a"));
		rig_stop(rig);
	}
}

static void L1_L6__both_lanes_count_and_lifecycle_goes_first(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_EXPLICIT, 1), DP_DONE);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.lifecycle.count, 1);
	assert_true(view.lifecycle.bytes > 0);
	assert_int_equal(view.application.count, 0);
	// In one loop turn: the close is lifecycle work and is taken first; the message, admitted
	// after it was marked, is refused or, admitted before, finished. Either way one close.
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 1);
	assert_true(rig_receive(rig, c, &r));
	rig_stop(rig);
}

static void M1_M2__a_control_request_is_answered_by_control(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct rig_message m = rig_request("u", WIRE_CONTROL_CREATE, "arg", 3);
	m.family = WIRE_CONTROL;
	m.with_id = true;
	m.spot_type = type_key_of("user").value;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_memory_equal(r.body, "done", 4);
	const struct dp_fact *f = &rig->facts[0];
	assert_int_equal(f->kind, DP_FACT_CONTROL);
	assert_int_equal(f->as.control.operation, WIRE_CONTROL_CREATE);
	assert_int_equal(f->as.control.spot_type.value, type_key_of("user").value);
	assert_int_equal(f->as.control.argument_bytes, 3);
	assert_memory_equal(f->as.control.argument, "arg", 3);
	// Control does not answer in time: unknown, since it may have begun. A late answer is counted.
	rig->manual = true;
	m.budget_us = 1000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_UNKNOWN);
	assert_int_equal(dp_control_reply(rig->dp, 0, rig->facts[1].as.control.token, result_ok(), NULL,
				 span_of(NULL, 0)),
		DP_DONE);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(RIG_COUNT(rig, calls_late), 1);
	rig_stop(rig);
}

static void FC67_M5__a_refusal_of_control_goes_out_with_its_figures(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	struct rig_message m = rig_request("room", WIRE_CONTROL_CREATE, "arg", 3);
	m.family = WIRE_CONTROL;
	m.with_id = true;
	m.spot_type = type_key_of("user").value;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	struct refusal full = {.limit = 3, .current = 2, .owner_node = 0x1234};
	assert_int_equal(dp_control_reply(rig->dp, 0, rig->facts[0].as.control.token,
				 result_refused(RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING), &full,
				 span_of("not this", 8)),
		DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING, ACCEPTED_NO);
	assert_int_equal(r.h.content_type, WIRE_CONTENT_REFUSAL);
	struct refusal got;
	assert_int_equal(wire_refusal_decode(span_of(r.body, r.body_bytes), &got), WIRE_TAKEN);
	assert_int_equal(got.limit, 3);
	assert_int_equal(got.current, 2);
	assert_int_equal(got.owner_node, 0x1234);
	rig_stop(rig);
}

static void L3_I11__the_audit_finds_the_books_equal_at_any_quiet_moment(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 1);
	rig->manual = true;
	static uint8_t payload[1200];
	struct rig_message hold = rig_request("a", DO_ASK, "nobody", 6);
	rig_send(rig, c, 0, &hold);
	for (uint32_t i = 0; i < 50; i++) {
		struct rig_message m = rig_request("a", DO_LOG, payload, i * 24);
		rig_send(rig, c, (uint16_t)(i % 2), &m);
	}
	rig_settle(rig);
	struct dp_audit audit;
	assert_int_equal(dp_audit_begin(rig->dp), DP_DONE);
	assert_int_equal(dp_audit_begin(rig->dp), DP_BUSY);
	while (!dp_audit_poll(rig->dp, &audit)) {
		rig_step(rig, 0);
		rig_step(rig, 1);
	}
	assert_true(audit.equal);
	assert_int_equal(audit.in_flight, 51);
	assert_int_equal(audit.items, 52); // and the parked question of the waiting turn
	assert_true(audit.lane_bytes > 0 && audit.lane_bytes < audit.ledger_bytes);
	assert_int_equal(audit.ledger_bytes, audit.measured_bytes);
	assert_int_equal(audit.accepted, audit.delivered + audit.dropped + audit.in_flight);
	rig_pass(20000000000u);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(K1_K5__callback_order_by_kind),
		cmocka_unit_test(K5__each_failing_step_disposes_and_tells),
		cmocka_unit_test(C4_H3_I17__a_close_finishes_what_was_accepted_and_refuses_new_work),
		cmocka_unit_test(C5__an_intent_that_meets_a_closing_spot_waits_for_the_next),
		cmocka_unit_test(C4_Z10__a_spot_with_work_under_way_is_not_closed_under_it),
		cmocka_unit_test(C4__a_reservation_of_another_worker_holds_the_seal_off),
		cmocka_unit_test(K5__a_closing_that_fails_is_recorded_and_cleaned_up_all_the_same),
		cmocka_unit_test(K3__an_instance_closes_itself_after_its_turn),
		cmocka_unit_test(L1_L6__both_lanes_count_and_lifecycle_goes_first),
		cmocka_unit_test(M1_M2__a_control_request_is_answered_by_control),
		cmocka_unit_test(FC67_M5__a_refusal_of_control_goes_out_with_its_figures),
		cmocka_unit_test(L3_I11__the_audit_finds_the_books_equal_at_any_quiet_moment),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core lifecycle", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
