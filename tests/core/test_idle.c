// SPDX-License-Identifier: BSD-3-Clause
// Idle cleanup, the data plane's half (C1-C4, Z9-Z11).
#include "rig.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)

static struct rig_reply r;

// A whole round of sweeps; returns how many candidates, the last one in *out.
static uint32_t sweep(struct rig *rig, uint64_t idle_ns, struct dp_spot **out)
{
	struct dp_spot *found[DP_SWEEP];
	uint64_t cursor = 0;
	uint32_t all = 0;
	do {
		uint32_t n = dp_sweep(rig->dp, &cursor, idle_ns, found);
		assert_true(n <= DP_SWEEP);
		if (n > 0 && out != NULL)
			*out = found[n - 1];
		all += n;
	} while (cursor != 0);
	return all;
}

static const struct dp_fact *last_of(struct rig *rig, enum dp_fact_kind kind)
{
	for (uint32_t i = rig->fact_count; i > 0; i--)
		if (rig->facts[i - 1].kind == kind)
			return &rig->facts[i - 1];
	return NULL;
}

static void C1_C2_Z9__only_idle_instance_spots_are_candidates(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 1), *found = NULL;
	rig_spot(rig, "u", "user", 0);
	rig_spot(rig, "e", "entry", 0);
	assert_int_equal(sweep(rig, 60 * SECOND, NULL), 0);
	rig_pass(59 * SECOND);
	struct rig_message m = rig_request("a", DO_ECHO, "x", 1);
	rig_ask(rig, c, 0, &m, &r); // counts from the last work that finished
	rig_pass(59 * SECOND);
	assert_int_equal(sweep(rig, 60 * SECOND, NULL), 0);
	rig_pass(SECOND);
	assert_int_equal(sweep(rig, 60 * SECOND, &found), 1);
	assert_ptr_equal(found, spot);
	rig_stop(rig);
}

static void C2_Z10__work_of_any_state_keeps_a_spot(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig->manual = true; // "nobody" stays unresolved
	struct dp_spot *waits = rig_spot(rig, "waits", "plain", 0);
	struct dp_spot *yields = rig_spot(rig, "yields", "plain", 0);
	struct dp_spot *queued = rig_spot(rig, "queued", "plain", 1);
	struct rig_message m = rig_request("waits", DO_ASK, "nobody", 6);
	m.budget_us = 4000000000u;
	rig_send(rig, c, 0, &m);
	struct rig_message y = rig_request("yields", DO_ASK_YIELD, "nobody", 6);
	y.budget_us = 4000000000u;
	rig_send(rig, c, 0, &y);
	rig_settle(rig);
	struct rig_message log = rig_request("queued", DO_LOG, "12345678", 8);
	log.budget_us = 4000000000u;
	rig_send(rig, c, 0, &log);
	rig_step(rig, 0); // admitted, on its way to worker 1
	rig_pass(600 * SECOND);
	assert_int_equal(sweep(rig, 60 * SECOND, NULL), 0);
	assert_int_equal(dp_close_idle(rig->dp, yields, 60 * SECOND, 1), DP_DONE);
	assert_int_equal(dp_close_idle(rig->dp, queued, 60 * SECOND, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 0);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < rig->fact_count; i++)
		kept += rig->facts[i].kind == DP_FACT_KEPT;
	assert_int_equal(kept, 2);
	struct dp_spot_view view;
	dp_spot_view(waits, &view);
	assert_false(view.closing);
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1);
	rig_stop(rig);
}

static void C4_Z11__the_callback_hears_idle_evicted_before_the_release(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_pass(61 * SECOND);
	rig->manual = true;
	assert_int_equal(dp_close_idle(rig->dp, spot, 60 * SECOND, 4711), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 1);
	assert_int_equal(rig_log.closing_reason, SPOTLANE_CLOSE_IDLE_EVICTED);
	assert_int_equal(rig_log.closing_deadline, 4711);
	assert_string_equal(rig_log.order, "cfixd");
	const struct dp_fact *f = last_of(rig, DP_FACT_CLOSED);
	assert_non_null(f);
	assert_ptr_equal(f->as.closed.spot, spot);
	// Not yet released: an ordinary message is told, an intent waits for what comes (C5).
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_UNAVAILABLE, REASON_CLOSING, ACCEPTED_NO);
	m.intent = "plain";
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	route_retire(rig->routes, spot->key);
	rig->spot_count = 0;
	dp_spot_destroy(spot);
	rig->manual = false;
	rig_spot(rig, "a", "plain", 0);
	assert_int_equal(dp_release(rig->dp, 0, spot_key_of(rig_id("a"))), DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void C4__quiet_is_judged_again_where_turns_run(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_pass(61 * SECOND);
	assert_int_equal(sweep(rig, 60 * SECOND, NULL), 1);
	// A message comes between the sweep and the close, and is done by the time the close runs.
	struct rig_message m = rig_request("a", DO_ECHO, "x", 1);
	rig_ask(rig, c, 0, &m, &r);
	assert_int_equal(dp_close_idle(rig->dp, spot, 60 * SECOND, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 0);
	const struct dp_fact *f = last_of(rig, DP_FACT_KEPT);
	assert_non_null(f);
	assert_ptr_equal(f->as.kept.spot, spot);
	rig_ask(rig, c, 0, &m, &r); // goes on as before
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.lifecycle.count, 0);
	rig_stop(rig);
}

static void C4__an_idle_close_merges_with_the_one_under_way(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_pass(61 * SECOND);
	rig->manual = true;
	assert_int_equal(dp_close(rig->dp, spot, SPOTLANE_CLOSE_EXPLICIT, 9), DP_DONE);
	assert_int_equal(dp_close_idle(rig->dp, spot, 60 * SECOND, 1), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.closings, 1);
	assert_int_equal(rig_log.closing_reason, SPOTLANE_CLOSE_EXPLICIT);
	assert_null(last_of(rig, DP_FACT_KEPT));
	route_retire(rig->routes, spot->key);
	rig->spot_count = 0;
	dp_spot_destroy(spot);
	rig_stop(rig);
}

static void C3__a_sweep_looks_at_64_and_its_position_carries_over(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	char id[16];
	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "s-%d", i);
		rig_spot(rig, id, i % 2 == 0 ? "plain" : "user", 0);
	}
	rig_pass(61 * SECOND);
	struct dp_spot *found[DP_SWEEP];
	uint64_t cursor = 0, turns = RIG_COUNT(rig, loops);
	uint32_t all = 0, sweeps = 0;
	do {
		all += dp_sweep(rig->dp, &cursor, 60 * SECOND, found);
		sweeps++;
	} while (cursor != 0);
	assert_int_equal(all, 150);
	assert_true(sweeps >= 300 / DP_SWEEP);
	assert_int_equal(RIG_COUNT(rig, loops), turns); // no worker took part
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(C1_C2_Z9__only_idle_instance_spots_are_candidates),
		cmocka_unit_test(C2_Z10__work_of_any_state_keeps_a_spot),
		cmocka_unit_test(C4_Z11__the_callback_hears_idle_evicted_before_the_release),
		cmocka_unit_test(C4__quiet_is_judged_again_where_turns_run),
		cmocka_unit_test(C4__an_idle_close_merges_with_the_one_under_way),
		cmocka_unit_test(C3__a_sweep_looks_at_64_and_its_position_carries_over),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core idle", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
