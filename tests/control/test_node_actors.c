// SPDX-License-Identifier: BSD-3-Clause
// Changes of membership as control leads them (B1-B3), and what may move (K4, Z1).
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "rig.h"
#include "wire/layout.h"

static uint64_t tokens;

static void settle(struct rig *r)
{
	rig_run(r, 20 * MS);
}

static int setup(void **state)
{
	struct rig *r = rig_serving();
	struct rig_answer answer;
	rig_create_spot(r, "room-1", "room", false, &answer);
	rig_create_spot(r, "room-2", "room", false, &answer);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	tokens = 100;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

static void ask(struct rig *r, uint16_t operation, const char *actor, const char *spot)
{
	fake_change(r->dp, ++tokens, operation, actor, spot, r->clock.boot_ns + 10 * SECOND);
	settle(r);
}

static const struct fake_record *answer_to(struct rig *r, uint64_t token)
{
	for (uint32_t i = fake_records(r->dp); i > 0; i--) {
		const struct fake_record *at = fake_record_at(r->dp, i - 1);
		if (at->command == FAKE_REPLY && at->token == token)
			return at;
	}
	return NULL;
}

#define assert_answer(r, k, why, did)                                                              \
	do {                                                                                       \
		const struct fake_record *got = answer_to(r, tokens);                              \
		assert_non_null(got);                                                              \
		assert_result(got->result, k, why);                                                \
		if (got->result.kind == RESULT_OK)                                                 \
			assert_int_equal(got->body[8], did);                                       \
	} while (0)

static struct dp_actor *find_actor(struct rig *r, const char *id)
{
	return dp_actor_of_route(route_lookup(r->routes, actor_key_of(rig_id(id))));
}

static bool is_at(struct rig *r, const char *id, struct dp_spot *host)
{
	struct dp_actor_view view;
	struct dp_actor *actor = find_actor(r, id);
	if (actor == NULL)
		return host == NULL;
	dp_actor_view(actor, &view);
	return view.host == host;
}

static void B1_G5__an_actor_comes_to_be_by_joining_and_is_in_one_spot(void **state)
{
	struct rig *r = *state;
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	assert_answer(r, OK, NONE, 1);
	assert_true(is_at(r, "anna", rig_spot(r, "room-1")));
	assert_int_equal(node_actors(r->node), 1);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1"); // said again: nothing to do
	assert_answer(r, OK, NONE, 0);
	assert_int_equal(fake_count(r->dp, FAKE_ADMIT), 1);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	assert_answer(r, OK, NONE, 1);
	assert_true(is_at(r, "anna", rig_spot(r, "room-2")));
	assert_int_equal(node_actors(r->node), 1);
	// Asked at the new Spot first, then left, then entered.
	uint32_t admitted = 0, left = 0, entered = 0;
	for (uint32_t i = 0; i < fake_records(r->dp); i++) {
		enum fake_command command = fake_record_at(r->dp, i)->command;
		if (command == FAKE_ADMIT)
			admitted = i;
		else if (command == FAKE_LEAVE)
			left = i;
		else if (command == FAKE_ENTER)
			entered = i;
	}
	assert_true(admitted < left && left < entered);
	ask(r, WIRE_CONTROL_LEAVE, "nobody", "");
	assert_answer(r, OK, NONE, 0);
}

static void B2__the_second_of_two_pending_changes_is_unavailable(void **state)
{
	struct rig *r = *state;
	fake_hold_actors(r->dp, true);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	uint64_t first = tokens;
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	assert_answer(r, UNAVAILABLE, NONE, 0);
	ask(r, WIRE_CONTROL_LEAVE, "anna", "");
	assert_answer(r, UNAVAILABLE, NONE, 0);
	assert_int_equal(fake_count(r->dp, FAKE_ADMIT), 1);
	assert_null(answer_to(r, first));
	fake_hold_actors(r->dp, false);
	settle(r);
	tokens = first;
	assert_answer(r, OK, NONE, 1);
	tokens += 10;
	ask(r, WIRE_CONTROL_LEAVE, "anna", ""); // at rest again
	assert_answer(r, OK, NONE, 1);
}

static void B3__a_refused_join_changes_nothing(void **state)
{
	struct rig *r = *state;
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	fake_refuse_actors(r->dp, true);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	assert_answer(r, REJECTED, DECLINED, 0);
	assert_true(is_at(r, "anna", rig_spot(r, "room-1")));
	assert_int_equal(fake_count(r->dp, FAKE_LEAVE), 0);
	ask(r, WIRE_CONTROL_JOIN, "bert", "room-2");
	assert_answer(r, REJECTED, DECLINED, 0);
	assert_null(find_actor(r, "bert"));
	assert_int_equal(node_actors(r->node), 1);
	fake_refuse_actors(r->dp, false);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	assert_answer(r, OK, NONE, 1);
}

static void B1__who_leaves_a_user_spot_is_on_the_entry_spot_and_from_there_gone(void **state)
{
	struct rig *r = *state;
	struct dp_actor_view view;
	struct dp_spot_view host;
	ask(r, WIRE_CONTROL_JOIN, "anna", ""); // by default
	assert_answer(r, OK, NONE, 1);
	dp_actor_view(find_actor(r, "anna"), &view);
	dp_spot_view(view.host, &host);
	struct dp_spot *gate = view.host;
	assert_int_equal(host.kind, SPOT_KIND_ENTRY);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	assert_true(is_at(r, "anna", rig_spot(r, "room-1")));
	ask(r, WIRE_CONTROL_LEAVE, "anna", "");
	assert_answer(r, OK, NONE, 1);
	assert_true(is_at(r, "anna", gate));
	ask(r, WIRE_CONTROL_LEAVE, "anna", "");
	assert_answer(r, OK, NONE, 1);
	assert_true(is_at(r, "anna", NULL));
	assert_int_equal(node_actors(r->node), 0);
}

static void K3_B1__who_cannot_be_joined(void **state)
{
	struct rig *r = *state;
	ask(r, WIRE_CONTROL_JOIN, "anna", "truck-1"); // Instance: never
	assert_answer(r, INVALID_OPERATION, NONE, 0);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-9"); // a join builds nothing
	assert_answer(r, NOT_FOUND, NONE, 0);
	assert_null(rig_spot(r, "room-9"));
	assert_int_equal(fake_count(r->dp, FAKE_ADMIT), 0);
	assert_int_equal(node_actors(r->node), 0);
}

static void C7_K3__a_user_spot_with_members_is_not_closed(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	rig_close_spot(r, "room-1", 0, &close);
	settle(r);
	assert_result(close.result, OK, HAS_MEMBERS);
	assert_false(close.changed);
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 0);
	assert_non_null(rig_spot(r, "room-1"));
	ask(r, WIRE_CONTROL_JOIN, "bert", "room-1"); // admission goes on
	assert_answer(r, OK, NONE, 1);
	ask(r, WIRE_CONTROL_LEAVE, "anna", "");
	ask(r, WIRE_CONTROL_LEAVE, "bert", "");
	// One that is only asked for counts, too: its Spot may not go under it.
	fake_hold_actors(r->dp, true);
	ask(r, WIRE_CONTROL_JOIN, "carl", "room-1");
	rig_close_spot(r, "room-1", 0, &close);
	settle(r);
	assert_result(close.result, OK, HAS_MEMBERS);
	fake_hold_actors(r->dp, false);
	settle(r);
	ask(r, WIRE_CONTROL_LEAVE, "carl", "");
	rig_close_spot(r, "room-1", 0, &close);
	settle(r);
	assert_result(close.result, OK, NONE);
	assert_true(close.changed);
}

static void B1_A7__messages_between_two_spots_are_released_when_the_actor_has_entered(void **state)
{
	struct rig *r = *state;
	struct spot_key key = actor_key_of(rig_id("anna"));
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-1");
	fake_hold_actors(r->dp, true);
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	fake_forget(r->dp);
	fake_resolve_key(r->dp, 1, key, NULL, NULL);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 0);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	fake_hold_actors(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	assert_int_equal(fake_last(r->dp, FAKE_RELEASE)->worker, 1);
	assert_true(spot_key_equal(fake_last(r->dp, FAKE_RELEASE)->key, key));
	// One that comes late meets an Actor at rest.
	fake_resolve_key(r->dp, 0, key, NULL, NULL);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 2);
	// Nobody of that id: as for any unknown key.
	fake_resolve_key(r->dp, 0, actor_key_of(rig_id("zoe")), NULL, NULL);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
}

struct named {
	uint32_t count;
	char text[512];
};

static void name(const struct node_candidate *one, void *arg)
{
	struct named *named = arg;
	size_t n = strlen(named->text);
	named->count++;
	snprintf(named->text + n, sizeof(named->text) - n, "%d:%.*s ", (int)one->kind,
		(int)one->id.size, (const char *)one->id.data);
}

static void K4_Z1_V1__candidates_are_entry_actors_and_spots_but_never_the_entry_spot(void **state)
{
	struct rig *r = *state;
	ask(r, WIRE_CONTROL_JOIN, "anna", "");
	ask(r, WIRE_CONTROL_JOIN, "bert", "room-1");
	struct named named = {0};
	uint64_t cursor = 0;
	do
		node_candidates(r->node, &cursor, 64, name, &named);
	while (cursor != 0);
	assert_int_equal(named.count, 4); // bert moves with the room
	assert_non_null(strstr(named.text, "1:anna "));
	assert_non_null(strstr(named.text, "2:room-1 "));
	assert_non_null(strstr(named.text, "2:room-2 "));
	assert_non_null(strstr(named.text, "3:truck-1 "));
}

static void N1_N2__a_node_has_a_ceiling_of_actors(void **state)
{
	struct rig *r = *state;
	rig_crash(r);
	rig_restart(r);
	r->config.actors_max = 1;
	rig_start(r);
	struct rig_answer answer;
	rig_create_spot(r, "hall", "room", false, &answer);
	settle(r);
	ask(r, WIRE_CONTROL_JOIN, "anna", "hall");
	assert_answer(r, OK, NONE, 1);
	ask(r, WIRE_CONTROL_JOIN, "bert", "hall");
	assert_answer(r, CAPACITY_EXCEEDED, ACTIVATION_CEILING, 0);
	assert_int_equal(answer_to(r, tokens)->refusal.limit, 1);
	assert_int_equal(answer_to(r, tokens)->refusal.current, 1);
	ask(r, WIRE_CONTROL_LEAVE, "anna", ""); // to the Entry Spot: still there
	ask(r, WIRE_CONTROL_LEAVE, "anna", "");
	ask(r, WIRE_CONTROL_JOIN, "bert", "hall");
	assert_answer(r, OK, NONE, 1);
}

static void H3_B2__a_stop_waits_for_changes_and_ends_the_members(void **state)
{
	struct rig *r = *state;
	ask(r, WIRE_CONTROL_JOIN, "anna", "room-2");
	fake_hold_actors(r->dp, true);
	ask(r, WIRE_CONTROL_JOIN, "bert", "room-1");
	node_stop(r->node, 30000);
	settle(r);
	assert_non_null(rig_spot(r, "room-1")); // not closed under the change
	assert_null(rig_spot(r, "room-2"));
	assert_null(find_actor(r, "anna"));
	ask(r, WIRE_CONTROL_JOIN, "carl", "room-1");
	assert_answer(r, SHUTTING_DOWN, NONE, 0);
	fake_hold_actors(r->dp, false);
	rig_until(r, NODE_STOPPED);
	assert_int_equal(node_actors(r->node), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			B1_G5__an_actor_comes_to_be_by_joining_and_is_in_one_spot, setup, teardown),
		cmocka_unit_test_setup_teardown(
			B2__the_second_of_two_pending_changes_is_unavailable, setup, teardown),
		cmocka_unit_test_setup_teardown(
			B3__a_refused_join_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			B1__who_leaves_a_user_spot_is_on_the_entry_spot_and_from_there_gone, setup,
			teardown),
		cmocka_unit_test_setup_teardown(K3_B1__who_cannot_be_joined, setup, teardown),
		cmocka_unit_test_setup_teardown(
			C7_K3__a_user_spot_with_members_is_not_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			B1_A7__messages_between_two_spots_are_released_when_the_actor_has_entered,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			K4_Z1_V1__candidates_are_entry_actors_and_spots_but_never_the_entry_spot,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			N1_N2__a_node_has_a_ceiling_of_actors, setup, teardown),
		cmocka_unit_test_setup_teardown(
			H3_B2__a_stop_waits_for_changes_and_ends_the_members, setup, teardown),
	};
	publish_start();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	publish_stop();
	return failed;
}
