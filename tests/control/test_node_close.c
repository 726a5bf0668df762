// SPDX-License-Identifier: BSD-3-Clause
// Closing and stopping: order, repeats, refusals, limits, drains.
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
	struct rig *r = rig_serving();
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 50 * MS);
	fake_forget(r->dp);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	return 0;
}

static void settle(struct rig *r)
{
	rig_run(r, 50 * MS);
}

// The callback ends, then the row goes, then the route, then (after a grace period) the memory.
static void C4_I17__the_row_goes_after_the_callback_and_the_route_after_the_row(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &close);
	rig_run(r, SECOND);
	assert_int_equal(fake_last(r->dp, FAKE_CLOSE)->reason, SPOTLANE_CLOSE_EXPLICIT);
	assert_true(rig_row(r, "truck-1").exists);
	assert_non_null(rig_spot(r, "truck-1"));
	assert_int_equal(close.count, 0);
	memory_store_hold(r->store, true);
	fake_hold_closings(r->dp, false);
	settle(r);
	assert_non_null(rig_spot(r, "truck-1")); // until the release is stored
	memory_store_hold(r->store, false);
	settle(r);
	assert_false(rig_row(r, "truck-1").exists);
	assert_null(rig_spot(r, "truck-1"));
	assert_result(close.result, OK, NONE);
	assert_true(close.changed);
	publish_barrier();
	assert_int_equal(fake_spots_alive(r->dp), 1);
	assert_int_equal(rig_status(r).spots_live[SPOT_KIND_INSTANCE], 0);
}

static void C4__closes_of_one_id_are_merged(void **state)
{
	struct rig *r = *state;
	struct rig_answer first, second;
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &first);
	rig_close_spot(r, "truck-1", 0, &second);
	fake_close_self(r->dp, rig_spot(r, "truck-1"));
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 1);
	fake_hold_closings(r->dp, false);
	settle(r);
	assert_result(first.result, OK, NONE);
	assert_result(second.result, OK, NONE);
}

static void C5__who_meets_a_closing_reads_again_until_missing(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	uint64_t generation = rig_row(r, "truck-1").object_generation.value;
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &close);
	settle(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	fake_resolve(r->dp, 1, "truck-1", NULL);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL) + fake_count(r->dp, FAKE_RELEASE), 0);
	fake_hold_closings(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	assert_true(rig_row(r, "truck-1").object_generation.value > generation); // a new incarnation
}

static void C7__gone_other_and_wrong(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	uint64_t generation = rig_row(r, "truck-1").object_generation.value;
	rig_close_spot(r, "truck-1", generation + 1, &close);
	settle(r);
	assert_result(close.result, INVALID_OPERATION, GENERATION_MISMATCH);
	assert_non_null(rig_spot(r, "truck-1"));
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", generation, &close);
	settle(r);
	struct rig_answer late;
	rig_close_spot(r, "truck-1", generation + 1, &late); // also while it closes
	assert_result(late.result, INVALID_OPERATION, GENERATION_MISMATCH);
	fake_hold_closings(r->dp, false);
	settle(r);
	assert_result(close.result, OK, NONE);
	assert_true(close.changed);
	rig_close_spot(r, "truck-1", generation, &close);
	settle(r);
	assert_result(close.result, OK, NONE); // gone: false, and no error (G5)
	assert_false(close.changed);
}

static void K3__who_may_close_what(void **state)
{
	struct rig *r = *state;
	struct rig_answer answer;
	uint64_t until = r->clock.boot_ns + 10 * SECOND;
	rig_create_spot(r, "room-1", "room", false, &answer);
	settle(r);
	fake_control(r->dp, 0, 1, WIRE_CONTROL_CLOSE, "truck-1", NULL, 0, until);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_REPLY)->result, INVALID_OPERATION, NONE);
	fake_control(r->dp, 0, 2, WIRE_CONTROL_CLOSE, "room-1", NULL, 0, until);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_REPLY)->result, OK, NONE);
	assert_int_equal(fake_last(r->dp, FAKE_REPLY)->body[8], 1);
	fake_close_self(r->dp, rig_spot(r, "truck-1"));
	settle(r);
	assert_null(rig_spot(r, "truck-1"));
}

static void K3__the_entry_spot_is_not_closed_by_anybody(void **state)
{
	struct rig *r = *state;
	rig_crash(r);
	rig_restart(r);
	rig_begin(r);
	rig_until(r, NODE_SERVING);
	struct dp_spot_view view;
	dp_spot_view(node_find(r->node, fake_last(r->dp, FAKE_OPEN)->key), &view);
	char id[ID_BYTES_MAX + 1] = {0};
	memcpy(id, view.id.data, view.id.size);
	struct rig_answer close;
	rig_close_spot(r, id, 0, &close);
	settle(r);
	assert_result(close.result, INVALID_OPERATION, NONE);
	fake_control(r->dp, 0, 1, WIRE_CONTROL_CLOSE, id, NULL, 0, r->clock.boot_ns + SECOND);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_REPLY)->result, INVALID_OPERATION, NONE);
	fake_control(r->dp, 0, 2, WIRE_CONTROL_LOOKUP, id, NULL, 0, r->clock.boot_ns + SECOND);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_REPLY)->result, OK, NONE);
}

static void C4__a_closing_past_its_limit_is_owned_unroutable_and_named(void **state)
{
	struct rig *r = *state;
	struct rig_answer close, other, again;
	rig_create_spot(r, "room-1", "room", false, &other);
	settle(r);
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &close);
	settle(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 6 * SECOND);
	assert_int_equal(rig_status(r).closes_stuck, 1);
	assert_int_equal(r->events[NODE_EVENT_CLOSE_STUCK], 1);
	assert_non_null(strstr(rig_status(r).why, "truck-1"));
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, CLOSING);
	assert_result(close.result, UNAVAILABLE, CLOSING);
	assert_true(rig_row(r, "truck-1").exists); // owned
	fake_resolve(r->dp, 1, "truck-1", NULL);   // and unroutable
	settle(r);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->worker, 1);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, CLOSING);
	rig_close_spot(r, "room-1", 0, &again); // others go on
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 2);
	fake_hold_closings(r->dp, false); // it ends after all
	settle(r);
	assert_int_equal(rig_status(r).closes_stuck, 0);
	assert_false(rig_row(r, "truck-1").exists);
}

static void O7__a_release_is_repeated_until_it_is_known(void **state)
{
	struct rig *r = *state;
	static const enum memory_fault faults[] = {
		MEMORY_FAULT_BEFORE, MEMORY_FAULT_ANSWER, MEMORY_FAULT_LOST};
	for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
		struct rig_answer close;
		memory_store_plant(r->store, STORE_SPOT_RELEASE, faults[i], 1);
		fake_close_self(r->dp, rig_spot(r, "truck-1"));
		rig_run(r, 2 * SECOND);
		assert_false(rig_row(r, "truck-1").exists);
		assert_null(rig_spot(r, "truck-1"));
		rig_close_spot(r, "truck-1", 0, &close);
		settle(r);
		assert_false(close.changed);
		fake_resolve(r->dp, 0, "truck-1", "tracker");
		settle(r);
	}
}

// ---- stop ----
static void H3__stop_closes_everything_releases_and_leaves(void **state)
{
	struct rig *r = *state;
	struct store_node_row row;
	char id[32];
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "bus-%d", i);
		fake_resolve(r->dp, 0, id, "tracker");
		rig_step(r, MS);
	}
	settle(r);
	assert_int_equal(memory_store_spot_count(r->store), 1002);
	fake_forget(r->dp);
	node_stop(r->node, 30000);
	assert_int_equal(rig_status(r).state, NODE_DRAINING);
	assert_false(fake_admits(r->dp));
	fake_resolve(r->dp, 0, "late-1", "tracker");
	rig_until(r, NODE_STOPPED);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, SHUTTING_DOWN, NONE);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 1002);
	assert_int_equal(fake_last(r->dp, FAKE_CLOSE)->reason, SPOTLANE_CLOSE_HOST_SHUTDOWN);
	assert_int_equal(memory_store_spot_count(r->store), 0);
	assert_true(memory_store_node(r->store, "n1", &row));
	assert_true(store_boot_is_zero(row.boot)); // left: the next start is at once
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_CLEAN);
	assert_int_equal(atomic_load(&dp_lease(r->dp)->deadline_boot_ns), 0);
}

static void H1_H3__waiting_creations_end_and_running_ones_finish(void **state)
{
	struct rig *r = *state;
	struct rig_answer create;
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "bus-1", "tracker");
	settle(r);
	node_stop(r->node, 30000);
	rig_create_spot(r, "room-1", "room", false, &create);
	assert_result(create.result, SHUTTING_DOWN, NONE);
	settle(r);
	fake_hold_factories(r->dp, false);
	rig_until(r, NODE_STOPPED);
	assert_int_equal(memory_store_spot_count(r->store), 0);
	publish_barrier();
	assert_int_equal(fake_spots_alive(r->dp), 0);
}

static void H2_FC53_FC46__a_blocked_drain_ends_at_its_deadline_with_a_name(void **state)
{
	struct rig *r = *state;
	fake_hold_closings(r->dp, true);
	uint64_t began = r->clock.boot_ns;
	node_stop(r->node, 3000);
	rig_until(r, NODE_STOPPED);
	assert_true(r->clock.boot_ns - began >= 3 * SECOND);
	assert_true(r->clock.boot_ns - began < 4 * SECOND);
	bool named = strstr(rig_status(r).why, "truck-1") != NULL ||
		     strstr(rig_status(r).why, "n1-entry-") != NULL;
	assert_true(named);
	assert_true(rig_row(r, "truck-1").exists);
}

static void C4_H3__a_stuck_closing_does_not_hold_up_the_drain(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &close);
	rig_run(r, 6 * SECOND); // stuck
	uint64_t began = r->clock.boot_ns;
	node_stop(r->node, 60000);
	rig_until(r, NODE_STOPPED);
	assert_true(r->clock.boot_ns - began < 10 * SECOND); // the Entry Spot's own limit
	assert_int_equal(rig_status(r).closes_stuck, 2);
}

static void H3__a_second_signal_forces(void **state)
{
	struct rig *r = *state;
	fake_hold_closings(r->dp, true);
	node_stop(r->node, 30000);
	rig_run(r, 100 * MS);
	assert_int_equal(rig_status(r).state, NODE_DRAINING);
	node_stop_now(r->node);
	rig_run(r, 100 * MS);
	assert_int_equal(rig_status(r).state, NODE_STOPPED);
}

static void H3__stopping_before_serving_is_clean(void **state)
{
	struct rig *r = *state;
	rig_crash(r);
	rig_restart(r);
	memory_store_plant(r->store, STORE_NODE_READ, MEMORY_FAULT_BEFORE, 1000);
	rig_begin(r);
	rig_run(r, SECOND);
	node_stop(r->node, 1000);
	rig_until(r, NODE_STOPPED);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_CLEAN);
}

static void FC32__after_a_restart_nothing_lives_unlisted(void **state)
{
	struct rig *r = *state;
	struct node_status status = rig_status(r);
	assert_int_equal(status.routes, 2);
	assert_int_equal(status.spots_live[SPOT_KIND_INSTANCE] + status.spots_live[SPOT_KIND_ENTRY], 2);
	assert_int_equal(fake_spots_alive(r->dp), 2);
}

struct where_answer {
	uint32_t count;
	struct node_where where;
};

static void where_answered(void *arg, const struct node_where *where)
{
	struct where_answer *answer = arg;
	answer->count++;
	answer->where = *where;
}

static void x__where_shows_store_route_and_object(void **state)
{
	struct rig *r = *state;
	struct where_answer answer = {0};
	node_where(r->node, spot_key_of(rig_id("truck-1")), where_answered, &answer);
	settle(r);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.where.store_outcome, STORE_DONE);
	assert_true(answer.where.store_exists);
	assert_true(answer.where.route_exists);
	assert_non_null(answer.where.local);
	assert_string_equal(answer.where.row.owner_node, "n1");
	memory_store_plant(r->store, STORE_SPOT_READ, MEMORY_FAULT_BEFORE, 1);
	node_where(r->node, spot_key_of(rig_id("truck-2")), where_answered, &answer);
	settle(r);
	assert_int_equal(answer.where.store_outcome, STORE_UNREACHABLE);
	assert_false(answer.where.store_exists);
	assert_false(answer.where.route_exists);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	publish_start();
	const struct CMUnitTest tests[] = {
		TEST(C4_I17__the_row_goes_after_the_callback_and_the_route_after_the_row),
		TEST(C4__closes_of_one_id_are_merged),
		TEST(C5__who_meets_a_closing_reads_again_until_missing),
		TEST(C7__gone_other_and_wrong),
		TEST(K3__who_may_close_what),
		TEST(K3__the_entry_spot_is_not_closed_by_anybody),
		TEST(C4__a_closing_past_its_limit_is_owned_unroutable_and_named),
		TEST(O7__a_release_is_repeated_until_it_is_known),
		TEST(H3__stop_closes_everything_releases_and_leaves),
		TEST(H1_H3__waiting_creations_end_and_running_ones_finish),
		TEST(H2_FC53_FC46__a_blocked_drain_ends_at_its_deadline_with_a_name),
		TEST(C4_H3__a_stuck_closing_does_not_hold_up_the_drain),
		TEST(H3__a_second_signal_forces),
		TEST(H3__stopping_before_serving_is_clean),
		TEST(FC32__after_a_restart_nothing_lives_unlisted),
		TEST(x__where_shows_store_route_and_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
