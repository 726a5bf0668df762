// SPDX-License-Identifier: BSD-3-Clause
// Lanes of a real Spot: the choice between them, bounds by type, and memory that runs out.
#include "rig.h"

#define MS UINT64_C(1000000)

static struct rig_reply r;

// Lifecycle work that leaves the Spot as it is: an idle close of a Spot that is not idle.
static void lifecycle(struct rig *rig, struct dp_spot *spot, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(dp_close_idle(rig->dp, spot, 3600000 * MS, 1), DP_DONE);
}

// An application turn that uses up its Spot's batch, so that each step shows one of them.
static void application(struct rig *rig, struct rig_client *c, uint32_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t work[2] = {10 * MS, i};
		struct rig_message m = rig_request("a", DO_SPEND_LOG, work, 16);
		rig_send(rig, c, 0, &m);
	}
}

static void expect_left(struct dp_spot *spot, uint32_t lifecycle_left, uint32_t application_ran)
{
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.lifecycle.count, lifecycle_left);
	assert_int_equal(rig_log.count, application_ran);
}

static void L6__eight_lifecycle_turns_in_a_row_and_then_one_of_the_application(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	lifecycle(rig, spot, 20);
	application(rig, c, 4);
	rig_step(rig, 0);
	expect_left(spot, 13, 1); // the construction was the first of the eight
	rig_step(rig, 0);
	expect_left(spot, 5, 2);
	lifecycle(rig, spot, 30); // however much comes, the application is not starved
	rig_step(rig, 0);
	expect_left(spot, 27, 3);
	rig_step(rig, 0);
	expect_left(spot, 19, 4);
	rig_settle(rig);
	expect_left(spot, 0, 4);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < rig->fact_count; i++)
		kept += rig->facts[i].kind == DP_FACT_KEPT;
	assert_int_equal(kept, 50);
	rig_stop(rig);
}

static void L6__the_debt_stays_until_an_application_item_is_ready(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	lifecycle(rig, spot, 12);
	rig_settle(rig); // no application item: all twelve run
	expect_left(spot, 0, 0);
	lifecycle(rig, spot, 3);
	application(rig, c, 2);
	rig_step(rig, 0);
	expect_left(spot, 3, 1); // due: it went first
	rig_step(rig, 0);
	expect_left(spot, 0, 2); // and cleared the debt: lifecycle first again
	rig_stop(rig);
}

static void L1_L5__a_full_lifecycle_lane_refuses_and_takes_again(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	lifecycle(rig, spot, 128);
	assert_int_equal(dp_close_idle(rig->dp, spot, 3600000 * MS, 1), DP_BUSY);
	rig_settle(rig);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.lifecycle.count, 0);
	assert_int_equal(view.lifecycle.bytes, 0);
	lifecycle(rig, spot, 1);
	rig_stop(rig);
}

static void limit(struct rig *rig, struct dp_type_limits limits)
{
	const char *why = NULL;
	assert_true(dp_type_limit(rig->dp, "plain", &limits, &why));
}

static void L1_M5__bounds_of_a_type_stand_in_place_of_the_nodes(void **state)
{
	(void)state;
	const char *why = NULL;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	limit(rig, (struct dp_type_limits){
			   .application = {.count_max = 3}, .lifecycle = {.count_max = 2}});
	limit(rig, (struct dp_type_limits){
			   .application = {.bytes_max = 128u << 20}}); // wider than the node's
	struct dp_type_limits bad = {.application = {.count_max = LANE_COUNT_LIMIT + 1}};
	assert_false(dp_type_limit(rig->dp, "plain", &bad, &why));
	assert_non_null(why);
	bad = (struct dp_type_limits){.lifecycle = {.bytes_max = LANE_BYTES_LIMIT + 1}};
	assert_false(dp_type_limit(rig->dp, "plain", &bad, &why));
	assert_false(dp_type_limit(rig->dp, "no-such-type", &bad, &why));
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0),
		       *other = rig_spot(rig, "u", "user", 0);
	struct dp_spot_view view;
	dp_spot_view(other, &view); // only that type
	assert_int_equal(view.application_bounds.count_max, 1024);
	dp_spot_view(spot, &view);
	assert_int_equal(view.application_bounds.count_max, 3);
	assert_int_equal(view.application_bounds.bytes_max, 128u << 20);
	assert_int_equal(view.lifecycle_bounds.count_max, 2);
	assert_int_equal(view.lifecycle_bounds.bytes_max, 4u << 20);
	application(rig, c, 4);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT, ACCEPTED_NO);
	struct refusal refusal;
	assert_int_equal(wire_refusal_decode(span_of(r.body, r.body_bytes), &refusal), WIRE_TAKEN);
	assert_int_equal(refusal.limit, 3);
	lifecycle(rig, spot, 2);
	assert_int_equal(dp_close_idle(rig->dp, spot, 3600000 * MS, 1), DP_BUSY);
	rig_stop(rig);
}

// ---- memory that runs out ----
static uint32_t replies(struct rig *rig, struct rig_client *c, uint64_t operation, bool *out_short)
{
	uint32_t n = 0;
	while (rig_receive(rig, c, &r)) {
		bool mine = r.h.family == WIRE_REPLY && r.h.operation_id == operation &&
			r.h.segment_offset == 0;
		n += mine;
		*out_short |= mine && r.h.reason == REASON_OUT_OF_MEMORY;
	}
	return n;
}

static struct rig_message what(uint32_t i, const char **out_intent)
{
	static const uint32_t big = 60000;
	static struct rig_timer timer = {
		.name = "t", .timer = {.first_us = 1000}, .tick_does = DO_NOTHING};
	*out_intent = NULL;
	switch (i) {
	case 0:
		return rig_request("a", DO_ECHO, "abc", 3);
	case 1:
		*out_intent = "plain";
		return rig_request("fresh", DO_ECHO, "abc", 3);
	case 2:
		return rig_request("a", DO_ASK, "b", 1);
	case 3:
		return rig_request("a", DO_ASK_YIELD, "nobody", 6);
	case 4:
		return rig_request("a", DO_OFFLOAD, "abc", 3);
	case 5:
		return rig_request("a", DO_SEND, "b", 1);
	case 6:
		return rig_request("a", DO_TIMER, &timer, sizeof(timer));
	default:
		return rig_request("a", DO_BIG, &big, 4);
	}
}
enum { WHATS = 8, SEGMENTED = 7 };

static void L4_L5_I11__no_memory_for_an_item_is_a_result_and_gives_everything_back(void **state)
{
	(void)state;
	uint32_t shorts = 0;
	for (uint32_t i = 0; i < WHATS * 2 * 8; i++) {
		uint32_t does = i % WHATS, nth = i / WHATS / 2 + 1;
		bool sticky = i / WHATS % 2, is_short = false;
		struct rig *rig = rig_start_plain(2);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 0);
		rig_spot(rig, "b", "plain", 1);
		const char *intent;
		struct rig_message m = what(does, &intent);
		m.intent = intent;
		m.budget_us = 100000;
		for (uint16_t w = 0; w < 2; w++)
			item_arena_fail_nth(rig->dp->workers[w]->arena, nth, sticky);
		uint64_t operation = rig_send(rig, c, 0, &m);
		rig_settle(rig);
		rig_pass(200 * MS);
		rig_settle(rig);
		for (uint16_t w = 0; w < 2; w++)
			item_arena_fail_nth(rig->dp->workers[w]->arena, 0, false);
		rig_pass(200 * MS);
		rig_settle(rig);
		uint32_t n = replies(rig, c, operation, &is_short);
		if (does == SEGMENTED) // repeated until somebody takes it; not at all where even a report has no room
			assert_true(n > 0 || sticky || RIG_COUNT(rig, replies) == 1);
		else
			assert_int_equal(n, 1);
		shorts += is_short;
		rig_pass(20000 * MS);
		rig_stop(rig); // compares the books
	}
	assert_true(shorts >= WHATS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L6__eight_lifecycle_turns_in_a_row_and_then_one_of_the_application),
		cmocka_unit_test(L6__the_debt_stays_until_an_application_item_is_ready),
		cmocka_unit_test(L1_L5__a_full_lifecycle_lane_refuses_and_takes_again),
		cmocka_unit_test(L1_M5__bounds_of_a_type_stand_in_place_of_the_nodes),
		cmocka_unit_test(L4_L5_I11__no_memory_for_an_item_is_a_result_and_gives_everything_back),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core lanes", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
