// SPDX-License-Identifier: BSD-3-Clause
// The verification list, one test a line.
#include <stdio.h>

#include "publish/publish.h"
#include "spotlane/module.h"
#include "zlist_rig.h"

static struct z_message request(const char *id)
{
	return (struct z_message){WIRE_REQUEST, id, Z_NOTE, 8, 0};
}

static struct z_message intent(const char *id)
{
	return (struct z_message){WIRE_INTENT_REQUEST, id, Z_NOTE, 8, 0};
}

static void is(const struct z_answer *a, enum result_kind kind, enum result_reason reason)
{
	if (a->result.kind != kind || a->result.reason != reason)
		fail_msg("%s/%u", result_kind_name(a->result.kind), a->result.reason);
}

static struct z_answer ask(struct z *z, uint32_t node, struct z_message m)
{
	return z_ask(z, node, &m);
}

struct candidates {
	uint32_t actors, spots;
	bool entry, anna;
};

static void see(const struct node_candidate *candidate, void *arg)
{
	struct candidates *c = arg;
	bool actor = candidate->kind == NODE_CANDIDATE_ACTOR;
	c->actors += actor;
	c->spots += !actor;
	c->entry |= id_has_entry_shape(candidate->id);
	c->anna |= actor && candidate->id.size == 4 && memcmp(candidate->id.data, "anna", 4) == 0;
}

static struct candidates candidates_of(struct z *z)
{
	struct candidates c = {0};
	uint64_t cursor = 0;
	do
		(void)node_candidates(z->nodes[0].node, &cursor, 64, see, &c);
	while (cursor != 0);
	return c;
}

static void Z1_K4__the_entry_spot_is_no_relocation_candidate_and_an_actor_on_it_is(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct candidates c = candidates_of(z);
	assert_int_equal(c.actors + c.spots, 0); // though the Entry Spot lives
	struct span anna = span_of("anna", 4);
	struct z_answer a = z_control(
		z, 0, WIRE_CONTROL_JOIN, anna, actor_key_of(anna), span_of(NULL, 0));
	is(&a, RESULT_OK, REASON_NONE);
	c = candidates_of(z);
	assert_true(c.anna && c.actors == 1 && c.spots == 0 && !c.entry);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	c = candidates_of(z);
	assert_true(c.anna && c.actors == 1 && c.spots == 1 && !c.entry);
	z_stop(z);
}

static void Z2_A1__an_ordinary_message_builds_nothing_and_one_with_intent_does(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, request("s-1"));
	is(&a, RESULT_NOT_FOUND, REASON_NONE);
	assert_int_equal(z_id("s-1")->built, 0);
	assert_int_equal(memory_store_spot_count(z->rows), 1); // the Entry Spot
	a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(z_id("s-1")->built, 1);
	assert_int_equal(z_id("s-1")->ran, 1);
	z_stop(z);
}

static void Z3_A5__many_creators_at_once_one_factory_and_all_reach_its_object(void **state)
{
	(void)state;
	enum { MANY = 6 }; // on each node
	struct z *z = z_start(&(struct z_options){.nodes = 2});
	struct z_message m = intent("s-1");
	uint32_t places[2 * MANY];
	for (uint32_t i = 0; i < 2 * MANY; i++)
		places[i] = z_send(z, i % 2, &m);
	struct z_answer user = z_create(z, 0, "r-1"), again = z_create(z, 0, "r-1");
	z_pass(z, 1500);
	assert_int_equal(z_id("s-1")->built, 1);
	uint32_t reached = 0;
	for (uint32_t i = 0; i < 2 * MANY; i++) {
		const struct z_answer *a = &z->asked[places[i]];
		assert_true(a->come);
		is(a, RESULT_OK, REASON_NONE);
		reached++;
	}
	assert_int_equal(z_id("s-1")->ran, reached);
	is(&user, RESULT_OK, REASON_NONE);
	is(&again, RESULT_ALREADY_EXISTS, REASON_NONE);
	assert_int_equal(z_id("r-1")->built, 1);
	z_stop(z);
}

static void Z4_A6__a_message_right_after_creation_is_handled_at_once(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, request("r-1")); // Missing was seen a moment ago
	is(&a, RESULT_NOT_FOUND, REASON_NONE);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	struct z_message m = request("r-1");
	uint32_t place = z_send(z, 0, &m);
	z_pass(z, 1); // the very next turn
	assert_true(z->asked[place].come);
	is(&z->asked[place], RESULT_OK, REASON_NONE);
	z_stop(z);
}

static void Z5_A3__an_owner_that_cannot_be_used_is_not_missing(void **state)
{
	(void)state;
	struct z *z = z_start(&(struct z_options){.nodes = 2});
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	z->nodes[0].stopped_dead = true;
	bool unavailable = false;
	for (int i = 0; i < 20 && !unavailable; i++) { // until its beat has stood still long enough
		struct z_message asks = intent("s-1"), other = intent("s-2");
		uint32_t place = z_send(z, 1, &asks), beside = z_send(z, 1, &other);
		z_pass(z, 1100);
		// No answer: the caller's own deadline ended it.
		const struct z_answer *got = &z->asked[place];
		unavailable = got->come && got->result.kind == RESULT_UNAVAILABLE;
		assert_true(!got->come || unavailable ||
			got->result.kind == RESULT_DEADLINE_EXCEEDED);
		assert_true(z->asked[beside].come);
		is(&z->asked[beside], RESULT_OK, REASON_NONE); // only who asked for it hears of it
	}
	assert_true(unavailable);
	assert_int_equal(z_id("s-1")->built, 1);
	assert_int_equal(z_id("s-1")->ran, 1);
	a = ask(z, 1, request("s-1")); // and never NotFound
	assert_int_equal(a.result.kind, RESULT_UNAVAILABLE);
	z_stop(z);
}

static void Z6_S2__right_after_a_re_creation_a_message_is_not_refused_for_its_generation(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	a = ask(z, 0, request("r-1"));
	is(&a, RESULT_OK, REASON_NONE);
	struct spot_key key = spot_key_of(span_of("r-1", 3));
	a = z_control(z, 0, WIRE_CONTROL_CLOSE, span_of("r-1", 3), key, span_of(NULL, 0));
	is(&a, RESULT_OK, REASON_NONE);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	a = ask(z, 0, request("r-1")); // the same frame as before, to another incarnation
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(z_id("r-1")->built, 2);
	assert_int_equal(z_id("r-1")->ran, 2);
	z_stop(z);
}

static void Z7_M3__a_call_to_a_stale_owner_ends_in_an_error_and_is_not_tried_again(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	memory_store_hold(z->nodes[0].store, true);
	z_pass(z, 3000); // past its deadline
	a = ask(z, 0, request("s-1"));
	is(&a, RESULT_STALE_ROUTE, REASON_LEASE_LOST);
	memory_store_hold(z->nodes[0].store, false);
	z_pass(z, 1000); // the lease is held again
	assert_int_equal(z_id("s-1")->ran, 1);
	a = ask(z, 0, request("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(z_id("s-1")->ran, 2);
	z_stop(z);
}

static void Z8_N2__at_the_ceiling_an_activation_is_refused_at_that_node(void **state)
{
	(void)state;
	struct z *z = z_start(&(struct z_options){.spots_max = 2});
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	a = ask(z, 0, intent("s-2"));
	is(&a, RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING);
	assert_int_equal(a.refusal.limit, 2);
	assert_int_equal(a.refusal.current, 2);
	a = z_create(z, 0, "r-2");
	is(&a, RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING);
	assert_int_equal(z_id("s-2")->built + z_id("r-2")->built, 0);
	z_stop(z);
}

static void Z9_C1__idle_cleanup_takes_instance_spots_only(void **state)
{
	(void)state;
	struct z *z = z_start(&(struct z_options){.idle_ms = 200});
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	z_pass(z, 3000);
	assert_int_equal(z_id("s-1")->closings, 1);
	assert_int_equal(z_id("r-1")->closings, 0);
	a = ask(z, 0, request("s-1"));
	is(&a, RESULT_NOT_FOUND, REASON_NONE);
	a = ask(z, 0, request("r-1"));
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(memory_store_spot_count(z->rows), 2); // the User Spot and the Entry Spot
	z_stop(z);
}

static void Z10_C2__work_in_progress_keeps_an_instance_spot(void **state)
{
	(void)state;
	struct z *z = z_start(&(struct z_options){.idle_ms = 200});
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	// s-1 waits for s-63 and s-63 for s-62, which keeps both waiting until their budgets end.
	a = ask(z, 0, intent("s-62"));
	is(&a, RESULT_OK, REASON_NONE);
	a = ask(z, 0, intent("s-63"));
	is(&a, RESULT_OK, REASON_NONE);
	struct z_message work = {WIRE_REQUEST, "s-1", Z_WORK, 8, 2000};
	(void)z_send(z, 0, &work);
	z_pass(z, 1500);
	assert_int_equal(z_id("s-1")->ran, 2); // it began
	assert_int_equal(z_id("s-1")->closings, 0);
	z_pass(z, 3000); // its budget ended, and with it the work
	assert_int_equal(z_id("s-1")->closings, 1);
	z_stop(z);
}

static void Z11_C4__cleanup_calls_the_closing_callback_with_its_reason(void **state)
{
	(void)state;
	struct z *z = z_start(&(struct z_options){.idle_ms = 200});
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	z_pass(z, 1000);
	assert_int_equal(z_id("s-1")->closings, 1);
	assert_int_equal(z_id("s-1")->close_reason, SPOTLANE_CLOSE_IDLE_EVICTED);
	assert_int_equal(z_id("s-1")->disposed, 1);
	z_stop(z);
}

// Sends `count` messages that meet the Spot in one burst, before any of them runs; returns the first
// that was refused, or `count`.
static uint32_t burst(struct z *z, const char *id, uint32_t payload_bytes, uint32_t count,
	struct z_answer *out)
{
	uint32_t first = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct z_message m = {WIRE_REQUEST, id, Z_NOTE, payload_bytes, 0};
		uint32_t place = z_send(z, 0, &m);
		first = i == 0 ? place : first;
	}
	z_pass(z, 50);
	for (uint32_t i = 0; i < count; i++) {
		const struct z_answer *a = &z->asked[first + i];
		assert_true(a->come);
		if (a->result.kind == RESULT_OK)
			continue;
		*out = *a;
		return i;
	}
	return count;
}

static void Z12_L1_L4__a_lane_is_bounded_by_count_and_bytes_and_the_first_hit_applies(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-1")), refused;
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(burst(z, "s-1", 0, 12, &refused), 8);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT);
	assert_in_range(burst(z, "s-1", 1200, 12, &refused), 1, 7);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_BYTES);
	assert_int_equal(burst(z, "s-1", 0, 8, &refused), 8); // all came back (L5)
	z_stop(z);
}

static void Z13_L2__large_messages_meet_the_bytes_first(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-1")), refused;
	is(&a, RESULT_OK, REASON_NONE);
	assert_in_range(burst(z, "s-1", 1300, 12, &refused), 1, 7);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_BYTES);
	assert_int_equal(refused.refusal.limit, 8192);
	assert_in_range(refused.refusal.current, 5 * 1300, 8192);
	z_stop(z);
}

static void Z14_L1__empty_messages_meet_the_count_first(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-1")), refused;
	is(&a, RESULT_OK, REASON_NONE);
	assert_int_equal(burst(z, "s-1", 0, 12, &refused), 8);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT);
	assert_int_equal(refused.refusal.limit, 8);
	assert_int_equal(refused.refusal.current, 8);
	z_stop(z);
}

static void Z15_L2__an_empty_payload_counts_bytes(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-50")), refused; // 1,024 bytes, 1,000 places
	is(&a, RESULT_OK, REASON_NONE);
	assert_in_range(burst(z, "s-50", 0, 12, &refused), 1, 11);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_BYTES);
	assert_in_range(refused.refusal.current, 1, 1024);
	z_stop(z);
}

struct lanes {
	uint32_t seen;
	struct spot_key entry;
};

static void both_bounds(struct dp_spot *spot, void *arg)
{
	struct lanes *lanes = arg;
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	assert_true(v.application_bounds.count_max > 0 && v.application_bounds.bytes_max > 0);
	assert_true(v.lifecycle_bounds.count_max > 0 && v.lifecycle_bounds.bytes_max > 0);
	lanes->seen |= 1u << v.kind;
	if (v.kind == SPOT_KIND_ENTRY)
		lanes->entry = v.key;
}

static void refused_by_count_and_by_bytes(struct z *z, const char *id)
{
	struct z_answer refused;
	assert_int_equal(burst(z, id, 0, 12, &refused), 8);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT);
	assert_in_range(burst(z, id, 1300, 12, &refused), 1, 7);
	is(&refused, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_BYTES);
}

static void Z16_L1__every_lane_of_every_kind_has_both_bounds(void **state)
{
	(void)state;
	struct z *z = z_start(NULL);
	struct z_answer a = ask(z, 0, intent("s-1"));
	is(&a, RESULT_OK, REASON_NONE);
	a = z_create(z, 0, "r-1");
	is(&a, RESULT_OK, REASON_NONE);
	struct lanes lanes = {0};
	uint64_t cursor = 0;
	do
		(void)node_walk(z->nodes[0].node, &cursor, 64, both_bounds, &lanes);
	while (cursor != 0);
	assert_int_equal(lanes.seen, 1u << SPOT_KIND_ENTRY | 1u << SPOT_KIND_USER |
					     1u << SPOT_KIND_INSTANCE);
	refused_by_count_and_by_bytes(z, "s-1");
	refused_by_count_and_by_bytes(z, "r-1");
	static const struct lane_bounds missing[] = {{0, 0}, {0, 8}, {8192, 0}};
	for (size_t i = 0; i < ARRAY_COUNT(missing); i++)
		assert_false(lane_bounds_valid(missing[i])); // a node does not start with them
	z_stop(z);
}

int main(void)
{
	publish_start();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			Z1_K4__the_entry_spot_is_no_relocation_candidate_and_an_actor_on_it_is),
		cmocka_unit_test(Z2_A1__an_ordinary_message_builds_nothing_and_one_with_intent_does),
		cmocka_unit_test(Z3_A5__many_creators_at_once_one_factory_and_all_reach_its_object),
		cmocka_unit_test(Z4_A6__a_message_right_after_creation_is_handled_at_once),
		cmocka_unit_test(Z5_A3__an_owner_that_cannot_be_used_is_not_missing),
		cmocka_unit_test(
			Z6_S2__right_after_a_re_creation_a_message_is_not_refused_for_its_generation),
		cmocka_unit_test(
			Z7_M3__a_call_to_a_stale_owner_ends_in_an_error_and_is_not_tried_again),
		cmocka_unit_test(Z8_N2__at_the_ceiling_an_activation_is_refused_at_that_node),
		cmocka_unit_test(Z9_C1__idle_cleanup_takes_instance_spots_only),
		cmocka_unit_test(Z10_C2__work_in_progress_keeps_an_instance_spot),
		cmocka_unit_test(Z11_C4__cleanup_calls_the_closing_callback_with_its_reason),
		cmocka_unit_test(
			Z12_L1_L4__a_lane_is_bounded_by_count_and_bytes_and_the_first_hit_applies),
		cmocka_unit_test(Z13_L2__large_messages_meet_the_bytes_first),
		cmocka_unit_test(Z14_L1__empty_messages_meet_the_count_first),
		cmocka_unit_test(Z15_L2__an_empty_payload_counts_bytes),
		cmocka_unit_test(Z16_L1__every_lane_of_every_kind_has_both_bounds),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	publish_stop();
	return failed;
}
