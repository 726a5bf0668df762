// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

static struct rig_reply r;

static struct refusal refusal_of(const struct rig_reply *reply)
{
	struct refusal out;
	assert_int_equal(reply->h.content_type, WIRE_CONTENT_REFUSAL);
	assert_int_equal(wire_refusal_decode(span_of(reply->body, reply->body_bytes), &out), WIRE_TAKEN);
	return out;
}

// Sends n requests of `bytes` to worker 0 in one burst without running turns in between, then settles;
// returns how many were refused with `reason` and keeps the last refusal.
static uint32_t flood(struct rig *rig, struct rig_client *c, const char *id, uint32_t n, size_t bytes,
	enum result_reason reason, struct refusal *out)
{
	static uint8_t payload[1300];
	uint32_t refused = 0;
	struct rig_message m = rig_request(id, DO_LOG, payload, bytes);
	for (uint32_t i = 0; i < n; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(rig_receive(rig, c, &r));
		if (r.h.kind == RESULT_OK)
			continue;
		rig_expect(&r, RESULT_CAPACITY_EXCEEDED, reason, ACCEPTED_NO);
		*out = refusal_of(&r);
		refused++;
	}
	assert_false(rig_receive(rig, c, &r));
	return refused;
}

static void L1_L4_M5_Z12_Z14__empty_payloads_meet_the_count_first(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct refusal refusal;
	struct dp_spot *spot = rig_spot(rig, "n", "narrow", 0); // 4 items, 4,096 bytes
	assert_int_equal(
		flood(rig, c, "n", 7, 0, REASON_APPLICATION_LANE_COUNT, &refusal), 3);
	assert_int_equal(refusal.limit, 4);
	assert_int_equal(refusal.current, 4);
	assert_int_equal(refusal.owner_node, 0x1234);
	uint8_t key[16];
	spot_key_bytes(spot_key_of(rig_id("n")), key);
	assert_memory_equal(refusal.owner_key, key, 16);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.refused, 3);
	assert_int_equal(view.turns, 4);
	assert_int_equal(RIG_REFUSED(rig, REASON_APPLICATION_LANE_COUNT), 3);
	rig_stop(rig);
}

static void L1_L4_M5_Z12_Z13__large_payloads_meet_the_bytes_first(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct refusal refusal;
	rig_spot(rig, "n", "narrow", 0);
	uint32_t charge = ledger_size_class(sizeof(struct item) + 1300);
	assert_int_equal(flood(rig, c, "n", 4, 1300, REASON_APPLICATION_LANE_BYTES, &refusal),
		4 - 4096 / charge);
	assert_int_equal(refusal.limit, 4096);
	assert_int_equal(refusal.current, 4096 / charge * charge);
	rig_stop(rig);
}

static void L2_Z15__an_empty_payload_is_charged_its_size_class(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 0);
	struct rig_message m = rig_request("a", DO_ASK_HOLD, "b", 1);
	rig->manual = true;
	rig_send(rig, c, 0, &m); // waits: its reservation stays
	rig_settle(rig);
	struct rig_message empty = rig_request("a", DO_LOG, "", 0);
	struct dp_spot_view before, after;
	dp_spot_view(spot, &before);
	rig_send(rig, c, 0, &empty);
	rig_settle(rig);
	dp_spot_view(spot, &after);
	assert_int_equal(after.application.count, before.application.count + 1);
	assert_int_equal(after.application.bytes - before.application.bytes,
		ledger_size_class(sizeof(struct item)));
	rig_pass(20000000000u);
	rig_stop(rig);
}

static void fixed(struct dp_config *c)
{
	c->accounting = LEDGER_FIXED;
}

static void L2__fixed_accounting_charges_payload_and_256(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = fixed};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 0);
	struct rig_message m = rig_request("a", DO_ASK_HOLD, "b", 1);
	rig->manual = true;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.bytes, 257);
	rig_pass(20000000000u);
	rig_stop(rig);
}

static void Z16_L1__no_lane_without_both_bounds(void **state)
{
	(void)state;
	const char *why = NULL;
	struct rig *rig = rig_start_plain(1);
	struct dp_config good = rig->dp->config;
	for (int i = 0; i < 4; i++) {
		struct dp_config c = good;
		if (i == 0)
			c.application.count_max = 0;
		else if (i == 1)
			c.application.bytes_max = 0;
		else if (i == 2)
			c.lifecycle.count_max = 0;
		else
			c.lifecycle.bytes_max = UINT64_C(1) << 41;
		assert_null(dp_create(&c, &why));
		assert_non_null(why);
	}
	struct dp_spot_view view;
	dp_spot_view(rig_spot(rig, "a", "plain", 0), &view);
	assert_int_equal(view.application_bounds.count_max, 1024);
	assert_int_equal(view.application_bounds.bytes_max, 64u << 20);
	assert_int_equal(view.lifecycle_bounds.count_max, 128);
	assert_int_equal(view.lifecycle_bounds.bytes_max, 4u << 20);
	rig_stop(rig);
}

static void M8__a_configuration_whose_largest_message_cannot_fit_is_refused(void **state)
{
	(void)state;
	const char *why = NULL;
	struct rig *rig = rig_start_plain(1);
	for (int i = 0; i < 3; i++) {
		struct dp_config c = rig->dp->config;
		if (i == 0)
			c.application.bytes_max = 16u << 20;
		else if (i == 1)
			c.peer_reassembly_bytes_max = 16u << 20;
		else
			c.process_mark_bytes = 64u << 20;
		assert_null(dp_create(&c, &why));
		assert_non_null(why);
	}
	rig_stop(rig);
}

static void small_process(struct dp_config *c)
{
	c->message_bytes_max = 1024;
	c->process_mark_bytes = 8192;
}

static void P1_P2_P3_M5__the_process_mark_refuses_by_its_own_name(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = small_process};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	struct refusal refusal;
	rig_spot(rig, "a", "plain", 0);
	// One burst of 10 KiB against a mark of 8 KiB; the lane has room for all.
	assert_int_equal(flood(rig, c, "a", 10, 1024, REASON_PROCESS_INBOUND, &refusal), 2);
	assert_int_equal(refusal.limit, 8192);
	assert_int_equal(refusal.current, 8192);
	uint8_t none[16] = {0};
	assert_memory_equal(refusal.owner_key, none, 16);
	assert_int_equal(dp_process_bytes(rig->dp), 0); // released when handlers started
	assert_int_equal(RIG_REFUSED(rig, REASON_PROCESS_INBOUND), 2);
	rig_stop(rig);
}

static void M6__a_refused_send_is_counted_by_reason(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "n", "narrow", 0);
	struct rig_message m = rig_request("n", DO_LOG, "", 0);
	m.family = WIRE_SEND;
	for (int i = 0; i < 6; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(rig_log.count, 4);
	assert_int_equal(RIG_COUNT(rig, sends_refused), 2);
	assert_int_equal(RIG_REFUSED(rig, REASON_APPLICATION_LANE_COUNT), 2);
	rig_stop(rig);
}

static void S1_Z7__a_fence_that_names_another_run_ends_in_stale_route(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.owner_node = 0x1234;
	m.owner_lease = 7;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	m.owner_lease = 6;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	m.owner_node = 0x9999;
	m.owner_lease = 7;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 1);
	rig_stop(rig);
}

static void S1_S4_O3_I21__after_the_lease_deadline_nothing_is_admitted(void **state)
{
	(void)state;
	const char *const types[] = {"plain", "quick"};
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_start_plain(1);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", types[i], 0);
		dp_lease(rig->dp)->deadline_boot_ns = rig_clock.boot_ns + 100;
		dp_lease(rig->dp)->deadline_ticks = rig_clock.boot_ns + 100;
		struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
		rig_pass(100);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_NO);
		assert_int_equal(rig_log.count, 1);
		rig_stop(rig);
	}
}

static void S4_O8__the_lease_is_checked_again_when_a_turn_starts(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	dp_lease(rig->dp)->deadline_boot_ns = rig_clock.boot_ns + 5000;
	dp_lease(rig->dp)->deadline_ticks = rig_clock.boot_ns + 5000;
	// The first turn outlasts the lease; the second was admitted under it and must not start.
	uint64_t spend = 6000;
	struct rig_message m = rig_request("a", DO_SPEND, &spend, 8);
	rig_send(rig, c, 0, &m);
	struct rig_message log = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &log);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 0);
	assert_int_equal(RIG_COUNT(rig, messages_dropped), 1);
	rig_stop(rig);
}

static void S2_Z6__object_generation_is_ignored_on_ordinary_messages(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.object_generation = spot->object_generation;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_close(rig, spot, SPOTLANE_CLOSE_EXPLICIT);
	spot = rig_spot(rig, "a", "plain", 0);
	assert_int_not_equal(spot->object_generation, m.object_generation);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void M4__an_intent_for_another_type_is_a_type_mismatch(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.intent = "quick";
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_TYPE_MISMATCH, REASON_NONE, ACCEPTED_NO);
	rig_stop(rig);
}

static void M8_M4__a_charge_that_could_never_fit_its_lane_is_too_large(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	static uint8_t big[5000];
	rig_spot(rig, "n", "narrow", 0); // 4,096 bytes in all
	struct rig_message m = rig_request("n", DO_LOG, big, sizeof(big));
	assert_true(rig_send_segmented(rig, c, 0, &m, &r));
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_TOO_LARGE, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 0);
	rig_stop(rig);
}

static void H1__a_node_that_does_not_admit_says_why(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "quick", 0);
	dp_admit_set(rig->dp, false, RESULT_SHUTTING_DOWN);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_SHUTTING_DOWN, REASON_NONE, ACCEPTED_NO);
	dp_admit_set(rig->dp, true, RESULT_OK);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void P4__replies_carry_the_pressure_signal_between_the_marks(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = small_process};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	static uint8_t payload[1024];
	rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 0);
	rig_spot(rig, "d", "plain", 0);
	struct rig_message hold = rig_request("a", DO_ASK_HOLD, "b", 1);
	rig->manual = true;
	rig_send(rig, c, 0, &hold);
	rig_settle(rig);
	// "a" waits: what is sent to it now stays queued and charged.
	struct rig_message m = rig_request("a", DO_LOG, payload, sizeof(payload));
	for (int i = 0; i < 7; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(dp_process_bytes(rig->dp), 7 * 1024);
	rig_pass(100000);
	rig_settle(rig);
	assert_true(dp_pressure(rig->dp));
	struct rig_message other = rig_request("d", DO_NOTHING, "", 0);
	rig_ask(rig, c, 0, &other, &r);
	assert_true(r.h.flags & WIRE_FLAG_PRESSURE);
	rig_pass(20000000000u);
	rig_settle(rig);
	rig_pass(100000);
	rig_settle(rig);
	assert_false(dp_pressure(rig->dp));
	while (rig_receive(rig, c, &r))
		;
	rig_ask(rig, c, 0, &other, &r);
	assert_false(r.h.flags & WIRE_FLAG_PRESSURE);
	rig_stop(rig);
}

static void x__explain_names_each_stage(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_ECHO, "body", 4);
	m.flags = WIRE_FLAG_EXPLAIN;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_true(r.h.flags & WIRE_FLAG_EXPLAIN);
	uint32_t size = r.body[0] | (uint32_t)r.body[1] << 8;
	assert_int_equal(r.body_bytes, 2 + size + 4);
	assert_memory_equal(r.body + 2 + size, "body", 4);
	r.body[2 + size] = 0;
	const char *json = (const char *)r.body + 2;
	assert_non_null(strstr(json, "\"session\":\"verified\""));
	assert_non_null(strstr(json, "\"route\":\"local\""));
	assert_non_null(strstr(json, "\"verdict\":\"admitted\""));
	assert_non_null(strstr(json, "\"count_max\":1024"));
	assert_non_null(strstr(json, "\"turn\":{\"verdict\":\"ran\""));
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L1_L4_M5_Z12_Z14__empty_payloads_meet_the_count_first),
		cmocka_unit_test(L1_L4_M5_Z12_Z13__large_payloads_meet_the_bytes_first),
		cmocka_unit_test(L2_Z15__an_empty_payload_is_charged_its_size_class),
		cmocka_unit_test(L2__fixed_accounting_charges_payload_and_256),
		cmocka_unit_test(Z16_L1__no_lane_without_both_bounds),
		cmocka_unit_test(M8__a_configuration_whose_largest_message_cannot_fit_is_refused),
		cmocka_unit_test(P1_P2_P3_M5__the_process_mark_refuses_by_its_own_name),
		cmocka_unit_test(M6__a_refused_send_is_counted_by_reason),
		cmocka_unit_test(S1_Z7__a_fence_that_names_another_run_ends_in_stale_route),
		cmocka_unit_test(S1_S4_O3_I21__after_the_lease_deadline_nothing_is_admitted),
		cmocka_unit_test(S4_O8__the_lease_is_checked_again_when_a_turn_starts),
		cmocka_unit_test(S2_Z6__object_generation_is_ignored_on_ordinary_messages),
		cmocka_unit_test(M4__an_intent_for_another_type_is_a_type_mismatch),
		cmocka_unit_test(M8_M4__a_charge_that_could_never_fit_its_lane_is_too_large),
		cmocka_unit_test(H1__a_node_that_does_not_admit_says_why),
		cmocka_unit_test(P4__replies_carry_the_pressure_signal_between_the_marks),
		cmocka_unit_test(x__explain_names_each_stage),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core admission", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
