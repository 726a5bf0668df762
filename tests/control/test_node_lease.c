// SPDX-License-Identifier: BSD-3-Clause
// The owner lease: joining, renewal, losing it, and what the node does without it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "rig.h"
#include "spotlane/module.h"

static int set_up(void **state)
{
	*state = rig_create();
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	return 0;
}

static uint64_t deadline(struct rig *r)
{
	return atomic_load(&dp_lease(r->dp)->deadline_boot_ns);
}

static void O1__impossible_settings_are_refused(void **state)
{
	struct rig *r = *state;
	static const struct {
		uint64_t ttl, renew, timeout, margin;
		bool good;
	} cases[] = {{15000, 5000, 3000, 5000, true}, {15000, 7000, 3000, 5000, false},
		{15000, 6999, 3000, 5000, true}, {15000, 2000, 5000, 5000, false},
		{15000, 5000, 3000, 15000, false}, {0, 0, 0, 0, false}, {15000, 0, 3000, 5000, false},
		{15000, 5000, 0, 5000, false}, {1000, 500, 300, 5000, false}};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		const char *why = NULL;
		struct node_config config = r->config;
		config.lease_ttl_ms = cases[i].ttl;
		config.lease_renew_ms = cases[i].renew;
		config.lease_timeout_ms = cases[i].timeout;
		config.lease_margin_ms = cases[i].margin;
		struct node *n = node_create(
			&config, &r->clock.base, &r->rng, r->store, r->dp, r->routes, &why);
		assert_int_equal(n != NULL, cases[i].good);
		assert_int_equal(why == NULL, cases[i].good);
		if (n != NULL)
			node_halt(n);
		node_destroy(n);
	}
	rig_start(r);
}

static void K3_H1__the_entry_spot_is_there_before_serving(void **state)
{
	struct rig *r = *state;
	rig_begin(r);
	while (rig_status(r).state != NODE_SERVING) {
		assert_false(fake_admits(r->dp));
		assert_false(rig_status(r).ready);
		rig_step(r, MS);
	}
	assert_true(fake_admits(r->dp));
	struct node_status status = rig_status(r);
	assert_int_equal(status.spots_live[SPOT_KIND_ENTRY], 1);
	assert_int_equal(status.spots_live[SPOT_KIND_USER], 0);
	assert_true(status.ready);
	const struct fake_record *opened = fake_last(r->dp, FAKE_OPEN);
	struct dp_spot_view view;
	dp_spot_view(node_find(r->node, opened->key), &view);
	assert_true(id_has_entry_shape(view.id));
	assert_memory_equal(view.id.data, "n1-entry-", 9);
}

static void K3__a_failing_entry_factory_ends_the_start(void **state)
{
	struct rig *r = *state;
	fake_factory_result(r->dp, result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED));
	rig_begin(r);
	rig_until(r, NODE_ERROR);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_INTERNAL);
	assert_non_null(strstr(rig_status(r).why, "FactoryFailed"));
}

// O3: TTL - 1 % - margin, from the clock before the request; ticks say the same moment.
static void O3__the_deadline_counts_from_before_the_request(void **state)
{
	struct rig *r = *state;
	struct memory_faults slow = {.delay_polls_max = 0};
	memory_store_faults(r->store, &slow);
	rig_start(r);
	memory_store_hold(r->store, true);
	rig_run(r, 5 * SECOND); // the renewal went out on the way
	uint64_t before = deadline(r), asked_latest = r->clock.boot_ns;
	rig_run(r, 2 * SECOND);
	memory_store_hold(r->store, false);
	rig_step(r, MS);
	assert_true(deadline(r) > before);
	assert_true(deadline(r) <= asked_latest + 15 * SECOND - 150 * MS - 5 * SECOND);
	assert_true(atomic_load(&dp_lease(r->dp)->deadline_ticks) == deadline(r));
	assert_int_equal(atomic_load(&dp_lease(r->dp)->generation), 1);
	assert_int_equal(rig_status(r).lease_renewals, 1);
}

static void O2_FC73__wall_clocks_decide_nothing(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	r->clock.wall_offset_ns += 3600 * SECOND;
	rig_run(r, 30 * SECOND);
	r->clock.wall_offset_ns -= 7200 * SECOND;
	rig_run(r, 30 * SECOND);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
	assert_true(rig_status(r).ready);
	assert_int_equal(r->events[NODE_EVENT_LEASE_LOST], 0);
}

static void FC76_O5__failing_renewals_give_up_only_at_the_margin(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_BEFORE, 1000);
	uint64_t until = deadline(r);
	while (r->clock.boot_ns < until - MS) {
		rig_step(r, MS);
		assert_int_equal(r->events[NODE_EVENT_LEASE_LOST], 0);
		assert_true(deadline(r) == until);
	}
	assert_true(rig_status(r).lease_failures >= 2);
	assert_false(rig_status(r).ready); // the store is out of reach, and that shows
	rig_run(r, 10 * MS);
	assert_int_equal(r->events[NODE_EVENT_LEASE_LOST], 1);
	assert_true(rig_status(r).lease_left_ns < 0);
	assert_int_equal(rig_status(r).state, NODE_SERVING); // no exit
}

static void O5__a_lapsed_lease_comes_back_with_the_store(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	fake_forget(r->dp);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_BEFORE, 12);
	while (r->events[NODE_EVENT_LEASE_LOST] == 0)
		rig_step(r, MS);
	fake_resolve(r->dp, 0, "truck-2", "tracker"); // no reservation without a lease
	rig_run(r, 10 * MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, LEASE_LOST);
	while (r->events[NODE_EVENT_LEASE_REGAINED] == 0)
		rig_step(r, MS);
	assert_true(rig_status(r).ready);
	assert_non_null(rig_spot(r, "truck-1"));
	fake_resolve(r->dp, 0, "truck-2", "tracker");
	rig_run(r, 100 * MS);
	assert_non_null(rig_spot(r, "truck-2"));
}

static void O3__no_activation_is_confirmed_after_the_deadline(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	fake_resolve(r->dp, 0, "truck-2", "tracker");
	rig_run(r, 100 * MS);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_BEFORE, 100);
	while (rig_status(r).lease_left_ns > (int64_t)(5 * MS))
		rig_step(r, MS);
	fake_hold_factories(r->dp, false);
	memory_store_hold(r->store, false);
	r->clock.boot_ns += SECOND; // suspended between the factory and the commit
	rig_run(r, SECOND);
	assert_null(rig_spot(r, "truck-1"));
	assert_int_equal(fake_count(r->dp, FAKE_OPEN), 0);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 2);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, LEASE_LOST);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_BEFORE, 0);
	rig_run(r, 150 * SECOND);
	assert_false(rig_row(r, "truck-1").exists); // aborted once the lease was back
	publish_barrier();
	assert_int_equal(fake_spots_alive(r->dp), 1);
}

static void O3__a_commit_answered_too_late_is_withdrawn(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_BEFORE, 20);
	while (rig_status(r).lease_left_ns > (int64_t)(5 * MS))
		rig_step(r, MS);
	memory_store_hold(r->store, true);
	fake_hold_factories(r->dp, false);
	rig_run(r, 2 * MS); // the commit is at the store
	r->clock.boot_ns += SECOND;
	memory_store_hold(r->store, false);
	rig_run(r, 100 * MS);
	assert_null(rig_spot(r, "truck-1"));
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, LEASE_LOST);
	assert_int_equal(rig_row(r, "truck-1").state, STORE_SPOT_READY);
	while (r->events[NODE_EVENT_LEASE_REGAINED] == 0)
		rig_step(r, MS);
	rig_run(r, SECOND);
	assert_false(rig_row(r, "truck-1").exists);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	assert_non_null(rig_spot(r, "truck-1"));
}

static void FC77_O7__a_renewal_whose_answer_was_lost_keeps_the_lease(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	memory_store_plant(r->store, STORE_NODE_RENEW, MEMORY_FAULT_ANSWER, 1);
	rig_run(r, 20 * SECOND);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
	assert_true(rig_status(r).ready);
	assert_int_equal(rig_status(r).lease_failures, 1);
	assert_int_equal(r->events[NODE_EVENT_LEASE_LOST], 0);
}

static void O2__a_fenced_node_closes_with_lease_lost_and_exits(void **state)
{
	struct rig *r = *state;
	struct store_node_row row;
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	fake_forget(r->dp);
	assert_true(memory_store_node(r->store, "n1", &row));
	row.fenced = true;
	memory_store_node_put(r->store, &row);
	uint64_t writes = memory_store_writes(r->store);
	rig_until(r, NODE_ERROR);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_LEASE_LOST);
	assert_non_null(strstr(rig_status(r).why, "no longer a member"));
	assert_int_equal(deadline(r), 0);
	assert_false(fake_admits(r->dp));
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 2); // FC28
	assert_int_equal(fake_last(r->dp, FAKE_CLOSE)->reason, SPOTLANE_CLOSE_LEASE_LOST);
	assert_int_equal(memory_store_writes(r->store), writes);
}

static void O5_I21__damage_stops_the_node_with_its_exit_code(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	memory_store_plant(r->store, STORE_SPOT_READ, MEMORY_FAULT_DAMAGE, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_until(r, NODE_ERROR);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_STORE);
	assert_false(fake_admits(r->dp));
	assert_int_equal(deadline(r), 0);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, STORE_UNREACHABLE);
}

static void O5__a_full_store_refuses_and_the_node_lives(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	memory_store_plant(r->store, STORE_SPOT_CLAIM, MEMORY_FAULT_FULL, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, STORE_UNREACHABLE);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
}

static void x__a_store_that_is_away_at_the_start_is_waited_for(void **state)
{
	struct rig *r = *state;
	memory_store_plant(r->store, STORE_NODE_READ, MEMORY_FAULT_BEFORE, 3);
	memory_store_plant(r->store, STORE_NODE_JOIN, MEMORY_FAULT_ANSWER, 1);
	rig_begin(r);
	rig_run(r, 100 * MS);
	assert_non_null(strstr(rig_status(r).why, "unreachable"));
	rig_until(r, NODE_SERVING);
	assert_int_equal(rig_status(r).lease_generation, 1); // the lost join was ours, joined once
}

// ---- O4 ----
static struct store_node_row former_row(struct rig *r, const char *host)
{
	struct store_node_row row = {.node_id = "n1", .lease_generation = {4}, .beat = 9, .ttl_ms = 20000};
	row.boot.bytes[0] = 9;
	snprintf(row.host_id, sizeof(row.host_id), "%s", host);
	memory_store_node_put(r->store, &row);
	return row;
}

static void O4__a_second_start_is_refused_while_the_beat_moves(void **state)
{
	struct rig *r = *state;
	struct store_node_row row = former_row(r, "host-b");
	rig_begin(r);
	rig_run(r, 3 * SECOND);
	assert_int_equal(rig_status(r).state, NODE_PREPARING);
	row.beat++;
	memory_store_node_put(r->store, &row);
	rig_until(r, NODE_ERROR);
	assert_non_null(strstr(rig_status(r).why, "beat moves"));
	assert_non_null(strstr(rig_status(r).why, "host-b"));
	assert_true(memory_store_node(r->store, "n1", &row));
	assert_int_equal(row.boot.bytes[0], 9);
}

static void O4_O6__a_still_beat_is_watched_for_its_own_term(void **state)
{
	struct rig *r = *state;
	(void)former_row(r, "host-b"); // its TTL is 20 s, ours 15 s: the holder's governs (FC79)
	rig_begin(r);
	rig_run(r, 19 * SECOND);
	assert_int_equal(rig_status(r).lease_generation, 0);
	assert_non_null(strstr(rig_status(r).why, "of 20.2 s"));
	memory_store_plant(r->store, STORE_NODE_READ, MEMORY_FAULT_BEFORE, 1); // restarts the watch
	rig_run(r, 19 * SECOND);
	assert_int_equal(rig_status(r).lease_generation, 0);
	rig_until(r, NODE_SERVING);
	assert_int_equal(rig_status(r).lease_generation, 5);
}

static void O4__a_restart_on_the_same_host_is_at_once(void **state)
{
	struct rig *r = *state;
	(void)former_row(r, "host-a");
	rig_begin(r);
	rig_run(r, 100 * MS);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
	assert_int_equal(rig_status(r).lease_generation, 5);
}

static void O4__without_the_file_lock_the_same_host_waits_too(void **state)
{
	struct rig *r = *state;
	(void)former_row(r, "host-a");
	r->config.node_lock_held = false;
	rig_begin(r);
	rig_run(r, 10 * SECOND);
	assert_int_equal(rig_status(r).lease_generation, 0);
}

static void O4__a_fenced_row_needs_no_watch(void **state)
{
	struct rig *r = *state;
	struct store_node_row row = former_row(r, "host-b");
	row.fenced = true;
	memory_store_node_put(r->store, &row);
	rig_begin(r);
	rig_run(r, 100 * MS);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
}

// ---- workers ----
static void X4__a_turn_that_outlasts_the_ttl_ends_the_node(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	fake_turn_running(r->dp, 1, spot_key_of(rig_id("truck-1")), r->clock.boot_ns);
	r->clock.boot_ns += 60 * SECOND; // suspended: does not count
	rig_run(r, 10 * SECOND);
	assert_int_equal(rig_status(r).state, NODE_SERVING);
	rig_until(r, NODE_ERROR);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_INTERNAL);
	assert_non_null(strstr(rig_status(r).why, "truck-1"));
	assert_int_equal(deadline(r), 0);
}

static void X4__turns_that_end_in_time_are_no_matter(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	for (int i = 0; i < 5; i++) {
		fake_turn_running(r->dp, 1, spot_key_of(rig_id("truck-1")), r->clock.boot_ns);
		rig_run(r, 10 * SECOND);
	}
	assert_int_equal(rig_status(r).state, NODE_SERVING);
}

static void FC95__a_stopped_worker_makes_the_node_not_ready(void **state)
{
	struct rig *r = *state;
	rig_start(r);
	assert_true(rig_status(r).ready);
	fake_stop_worker(r->dp, 1);
	rig_run(r, 3 * SECOND);
	assert_false(rig_status(r).ready);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	publish_start();
	const struct CMUnitTest tests[] = {
		TEST(O1__impossible_settings_are_refused),
		TEST(K3_H1__the_entry_spot_is_there_before_serving),
		TEST(K3__a_failing_entry_factory_ends_the_start),
		TEST(O3__the_deadline_counts_from_before_the_request),
		TEST(O2_FC73__wall_clocks_decide_nothing),
		TEST(FC76_O5__failing_renewals_give_up_only_at_the_margin),
		TEST(O5__a_lapsed_lease_comes_back_with_the_store),
		TEST(O3__no_activation_is_confirmed_after_the_deadline),
		TEST(O3__a_commit_answered_too_late_is_withdrawn),
		TEST(FC77_O7__a_renewal_whose_answer_was_lost_keeps_the_lease),
		TEST(O2__a_fenced_node_closes_with_lease_lost_and_exits),
		TEST(O5_I21__damage_stops_the_node_with_its_exit_code),
		TEST(O5__a_full_store_refuses_and_the_node_lives),
		TEST(x__a_store_that_is_away_at_the_start_is_waited_for),
		TEST(O4__a_second_start_is_refused_while_the_beat_moves),
		TEST(O4_O6__a_still_beat_is_watched_for_its_own_term),
		TEST(O4__a_restart_on_the_same_host_is_at_once),
		TEST(O4__without_the_file_lock_the_same_host_waits_too),
		TEST(O4__a_fenced_row_needs_no_watch),
		TEST(X4__a_turn_that_outlasts_the_ttl_ends_the_node),
		TEST(X4__turns_that_end_in_time_are_no_matter),
		TEST(FC95__a_stopped_worker_makes_the_node_not_ready),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
