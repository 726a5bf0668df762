// SPDX-License-Identifier: BSD-3-Clause
// Idle cleanup, control's half: who is looked at, what is closed, and what it merges with.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "rig.h"
#include "spotlane/module.h"
#include "wire/layout.h"

static int set_up(void **state)
{
	struct rig *r = rig_create();
	r->config.idle_ms = 60000;
	rig_start(r);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	return 0;
}

static struct dp_spot *build(struct rig *r, const char *id, const char *type)
{
	fake_resolve(r->dp, 0, id, type);
	rig_run(r, 50 * MS);
	struct dp_spot *spot = rig_spot(r, id);
	assert_non_null(spot);
	return spot;
}

static void C1__off_by_default(void **state)
{
	struct rig *r = *state;
	rig_destroy(r);
	*state = r = rig_serving();
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	rig_run(r, 120 * SECOND);
	assert_int_equal(fake_sweeps(r->dp), 0);
	assert_non_null(rig_spot(r, "truck-1"));
}

static void C1__an_interval_of_nothing_is_refused(void **state)
{
	struct rig *r = *state;
	const char *why = NULL;
	struct node_config config = r->config;
	config.sweep_interval_ms = 0;
	assert_null(node_create(&config, &r->clock.base, &r->rng, r->store, r->dp, r->routes,
		&why));
	assert_non_null(strstr(why, "idle"));
}

static void C2_C4_Z11__quiet_for_its_time_is_closed_and_released(void **state)
{
	struct rig *r = *state;
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	rig_run(r, 59 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), 0);
	rig_run(r, 3 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), 1);
	assert_null(rig_spot(r, "truck-1"));
	assert_false(rig_row(r, "truck-1").exists);
	assert_int_equal(r->events[NODE_EVENT_CLOSED], 1);
	assert_int_equal(r->last_event_of[NODE_EVENT_CLOSED], SPOTLANE_CLOSE_IDLE_EVICTED);
	assert_non_null(strstr(r->last_text_of[NODE_EVENT_CLOSED], "IdleEvicted"));
	build(r, "truck-1", "tracker"); // intent builds it anew
	assert_int_equal(rig_status(r).spots_live[SPOT_KIND_INSTANCE], 1);
}

static void C2__a_type_has_its_own_time(void **state)
{
	struct rig *r = *state;
	assert_true(node_idle_set(r->node, "small", 5000));
	assert_false(node_idle_set(r->node, "room", 5000)); // C1: Instance types only
	assert_false(node_idle_set(r->node, "nobody", 5000));
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	fake_idle(r->dp, build(r, "car-1", "small"), r->clock.boot_ns);
	rig_run(r, 10 * SECOND);
	assert_null(rig_spot(r, "car-1"));
	assert_non_null(rig_spot(r, "truck-1"));
	assert_true(node_idle_set(r->node, "tracker", 0));
	rig_run(r, 120 * SECOND);
	assert_non_null(rig_spot(r, "truck-1"));
}

static void C4__what_found_work_stays_and_serves(void **state)
{
	struct rig *r = *state;
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	uint32_t activated = r->events[NODE_EVENT_ACTIVATED];
	fake_keep(r->dp, true);
	rig_run(r, 62 * SECOND);
	assert_true(fake_count(r->dp, FAKE_CLOSE_IDLE) > 0);
	assert_non_null(rig_spot(r, "truck-1"));
	assert_true(rig_row(r, "truck-1").exists);
	assert_int_equal(r->events[NODE_EVENT_CLOSED], 0);
	assert_int_equal(r->events[NODE_EVENT_ACTIVATED], activated); // it was live all along
	assert_int_equal(rig_status(r).closes_running, 0);
	assert_int_equal(rig_status(r).spots_live[SPOT_KIND_INSTANCE], 1);
}

static void C4__a_close_merges_with_the_idle_one(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	fake_hold_closings(r->dp, true);
	rig_run(r, 62 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), 1);
	rig_close_spot(r, "truck-1", 0, &close);
	rig_run(r, SECOND);
	assert_int_equal(close.count, 0);
	fake_hold_closings(r->dp, false);
	rig_run(r, SECOND);
	assert_result(close.result, OK, NONE);
	assert_true(close.changed);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 0);
	assert_int_equal(r->events[NODE_EVENT_CLOSED], 1);
}

static void C4__a_handlers_own_close_is_not_lost_in_a_kept_one(void **state)
{
	struct rig *r = *state;
	struct dp_spot *spot = build(r, "truck-1", "tracker");
	fake_idle(r->dp, spot, r->clock.boot_ns);
	fake_keep(r->dp, true);
	fake_busy(r->dp, 1); // the idle close is on its way when the handler asks
	while (rig_status(r).closes_running == 0)
		rig_step(r, MS);
	fake_close_self(r->dp, spot);
	rig_run(r, SECOND);
	assert_null(rig_spot(r, "truck-1"));
	assert_int_equal(r->last_event_of[NODE_EVENT_CLOSED], SPOTLANE_CLOSE_EXPLICIT);
}

static void C5__an_intent_that_meets_the_release_gets_a_fresh_object(void **state)
{
	struct rig *r = *state;
	struct dp_spot *old = build(r, "truck-1", "tracker");
	uint64_t generation = rig_row(r, "truck-1").object_generation.value;
	fake_idle(r->dp, old, r->clock.boot_ns);
	fake_hold_closings(r->dp, true);
	rig_run(r, 62 * SECOND);
	fake_resolve(r->dp, 1, "truck-1", "tracker");
	fake_resolve(r->dp, 0, "truck-1", NULL);
	rig_run(r, SECOND);
	// C4: not before
	assert_int_equal(rig_row(r, "truck-1").object_generation.value, generation);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	fake_hold_closings(r->dp, false);
	rig_run(r, SECOND);
	assert_true(rig_row(r, "truck-1").object_generation.value != generation);
	assert_int_equal(fake_last(r->dp, FAKE_RELEASE)->worker, 1);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->worker, 0);
}

static void C3__a_bounded_number_closes_at_once(void **state)
{
	struct rig *r = *state;
	char id[32];
	uint64_t begin = r->clock.boot_ns;
	fake_hold_closings(r->dp, true);
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "truck-%d", i);
		fake_idle(r->dp, build(r, id, "tracker"), begin);
	}
	fake_forget(r->dp);
	rig_run(r, 62 * SECOND - 600 * 50 * MS);
	uint64_t now = fake_count(r->dp, FAKE_CLOSE_IDLE);
	assert_in_range(now, 256, 256 + DP_SWEEP);
	assert_int_equal(rig_status(r).closes_running + rig_status(r).closes_stuck, now);
	rig_run(r, SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), now); // waits for those
	fake_hold_closings(r->dp, false);
	rig_run(r, 60 * SECOND);
	assert_int_equal(rig_status(r).spots_live[SPOT_KIND_INSTANCE], 0);
}

static void C4_O3__nothing_is_cleaned_up_without_a_lease(void **state)
{
	struct rig *r = *state;
	fake_idle(r->dp, build(r, "truck-1", "tracker"), r->clock.boot_ns);
	rig_run(r, 45 * SECOND);
	memory_store_hold(r->store, true);
	rig_run(r, 20 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), 0);
	memory_store_hold(r->store, false);
	rig_run(r, 10 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE_IDLE), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(C1__off_by_default),
		TEST(C1__an_interval_of_nothing_is_refused),
		TEST(C2_C4_Z11__quiet_for_its_time_is_closed_and_released),
		TEST(C2__a_type_has_its_own_time),
		TEST(C4__what_found_work_stays_and_serves),
		TEST(C4__a_close_merges_with_the_idle_one),
		TEST(C4__a_handlers_own_close_is_not_lost_in_a_kept_one),
		TEST(C5__an_intent_that_meets_the_release_gets_a_fresh_object),
		TEST(C3__a_bounded_number_closes_at_once),
		TEST(C4_O3__nothing_is_cleaned_up_without_a_lease),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	publish_barrier();
	return failed;
}
