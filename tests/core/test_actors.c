// SPDX-License-Identifier: BSD-3-Clause
// Actors on their node (B1-B3, X1): places, gates, queues, membership. The steps of control by
// hand.
#include "rig.h"

static struct rig_reply r;

static struct rig_message to_actor(const char *id, uint16_t type, const void *payload, size_t bytes)
{
	struct rig_message m = rig_request(id, type, payload, bytes);
	m.actor = true;
	return m;
}

static void expect_body(const struct rig_reply *reply, const char *text)
{
	rig_expect(reply, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(reply->body_bytes, strlen(text));
	assert_memory_equal(reply->body, text, reply->body_bytes);
}

static void end_nobody(struct rig *rig)
{
	assert_int_equal(dp_fail(rig->dp, 0, spot_key_of(rig_id("nobody")), DP_FAIL_ALL,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
}

static void B1_T1__a_message_to_an_actor_runs_on_its_entry_or_user_spot(void **state)
{
	(void)state;
	for (uint16_t workers = 1; workers <= 3; workers += 2) {
		struct rig *rig = rig_start_plain(workers);
		struct rig_client *c = rig_client(rig);
		struct dp_spot *hall = rig_spot(rig, "hall", "entry", 0);
		struct dp_spot *room = rig_spot(rig, "room", "user", (uint16_t)(workers - 1));
		rig_spot(rig, "anna", "plain", 0); // a Spot of the same id is somebody else
		rig_join(rig, "anna", hall);
		rig_join(rig, "bert", room);
		struct rig_message m = to_actor("anna", DO_WHO, "x", 1);
		rig_ask(rig, c, 0, &m, &r);
		expect_body(&r, "anna");
		m = to_actor("bert", DO_WHO, "x", 1);
		rig_ask(rig, c, 0, &m, &r);
		expect_body(&r, "bert");
		m = rig_request("anna", DO_WHO, "x", 1); // the Spot
		rig_ask(rig, c, 0, &m, &r);
		expect_body(&r, "");
		m = to_actor("carl", DO_WHO, "x", 1);
		rig_ask(rig, c, 0, &m, &r);
		rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
		m = to_actor("anna", DO_WHO, "x", 1);
		m.spot_type = 1;
		rig_stop(rig);
	}
}

static void X1__two_actors_of_an_entry_spot_have_a_gate_each(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *hall = rig_spot(rig, "hall", "entry", 0);
	rig_join(rig, "anna", hall);
	rig_join(rig, "bert", hall);
	rig->manual = true; // "nobody" stays unresolved: anna's turn waits and keeps her gate
	struct rig_message wait = to_actor("anna", DO_ASK, "nobody", 6);
	struct rig_message anna = to_actor("anna", DO_LOG, "a2345678", 8);
	struct rig_message bert = to_actor("bert", DO_LOG, "b2345678", 8);
	struct rig_message spot = rig_request("hall", DO_LOG, "s2345678", 8);
	rig_send(rig, c, 0, &wait);
	rig_send(rig, c, 0, &anna);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 0); // never two turns of one gate
	rig_ask(rig, c, 0, &bert, &r);
	rig_ask(rig, c, 0, &spot, &r); // the Spot's lane has one more
	assert_int_equal(rig_log.count, 2);
	assert_memory_equal(&rig_log.values[0], "b2345678", 8);
	assert_memory_equal(&rig_log.values[1], "s2345678", 8);
	end_nobody(rig);
	assert_int_equal(rig_log.count, 3);
	rig_stop(rig);
}

static void X1__a_user_spot_has_one_gate_for_everything(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	rig_join(rig, "anna", room);
	rig_join(rig, "bert", room);
	rig->manual = true;
	struct rig_message wait = to_actor("anna", DO_ASK, "nobody", 6);
	struct rig_message bert = to_actor("bert", DO_LOG, "b2345678", 8);
	struct rig_message spot = rig_request("room", DO_LOG, "s2345678", 8);
	rig_send(rig, c, 0, &wait);
	rig_settle(rig);
	rig_send(rig, c, 0, &bert);
	rig_send(rig, c, 0, &spot);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 0);
	end_nobody(rig);
	assert_int_equal(rig_log.count, 2);
	rig_stop(rig);
}

// The Spot's own lane and its members alternate, members round-robin, FIFO within each (L7, X8).
static void X1_L7__members_and_the_spot_take_turns_in_order(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	rig_join(rig, "anna", room);
	rig_join(rig, "bert", room);
	rig->manual = true;
	struct rig_message m = rig_request("room", DO_ASK, "nobody", 6); // keeps the gate meanwhile
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	static const char *const sent[] = {"a1", "a2", "b1", "s1", "s2", "b2"};
	for (size_t i = 0; i < ARRAY_COUNT(sent); i++) {
		const char *to = sent[i][0] == 'a' ? "anna" : sent[i][0] == 'b' ? "bert" : "room";
		m = rig_request(to, DO_LOG, sent[i], 2);
		m.actor = sent[i][0] != 's';
		rig_send(rig, c, 0, &m);
	}
	rig_settle(rig);
	end_nobody(rig);
	static const char *const ran[] = {"s1", "a1", "s2", "b1", "a2", "b2"};
	assert_int_equal(rig_log.count, ARRAY_COUNT(ran));
	for (size_t i = 0; i < ARRAY_COUNT(ran); i++)
		assert_memory_equal(&rig_log.values[i], ran[i], 2);
	rig_stop(rig);
}

static void X2_B1__a_members_yielded_turn_resumes_behind_its_own_queue(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	struct dp_actor *anna = rig_join(rig, "anna", room);
	rig->manual = true;
	struct rig_message m = to_actor("anna", DO_ASK_YIELD, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	struct dp_actor_view view;
	dp_actor_view(anna, &view);
	assert_int_equal(view.application.count, 1); // held until it ends (L5)
	m = to_actor("anna", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &m, &r);
	assert_int_equal(rig_log.count, 1);
	end_nobody(rig);
	assert_int_equal(rig_log.answers, 1);
	dp_actor_view(anna, &view);
	assert_int_equal(view.application.count, 0);
	rig_stop(rig);
}

static void X3__awaiting_an_actor_on_ones_own_gate_is_refused(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	struct dp_spot *hall = rig_spot(rig, "hall", "entry", 0);
	rig_join(rig, "anna", room);
	rig_join(rig, "bert", room);
	rig_join(rig, "carl", hall);
	rig_join(rig, "dora", hall);
	struct rig_message m = to_actor("anna", DO_ASK_ACTOR, "bert", 4); // another member: same gate
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_NONE, ACCEPTED_YES);
	m = rig_request("room", DO_ASK_ACTOR, "bert", 4);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_NONE, ACCEPTED_YES);
	m = to_actor("anna", DO_ASK, "room", 4); // the Spot that it is on
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_NONE, ACCEPTED_YES);
	m = to_actor("carl", DO_ASK_ACTOR, "carl", 4);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_NONE, ACCEPTED_YES);
	m = to_actor("carl", DO_ASK_ACTOR, "dora", 4); // her own gate
	rig_ask(rig, c, 0, &m, &r);
	expect_body(&r, "dora");
	m = to_actor("carl", DO_ASK_ACTOR, "anna", 4);
	rig_ask(rig, c, 0, &m, &r);
	expect_body(&r, "anna");
	m = to_actor("anna", DO_ASK_ACTOR_YIELD, "dora", 4);
	rig_ask(rig, c, 0, &m, &r);
	expect_body(&r, "dora");
	rig_stop(rig);
}

static void B1_L1_M5__an_actor_has_its_own_bounds(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "small", 0); // 4 items
	rig_join(rig, "anna", room);
	rig_join(rig, "bert", room);
	rig->manual = true;
	struct rig_message m = rig_request("room", DO_ASK, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	m = to_actor("anna", DO_LOG, "12345678", 8);
	for (int i = 0; i < 4; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	rig_ask(rig, c, 0, &m, &r); // anna's lane is full, and says whose it is
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT, ACCEPTED_NO);
	struct refusal refusal;
	assert_int_equal(
		wire_refusal_decode(span_of(r.body, r.body_bytes), &refusal), WIRE_TAKEN);
	uint8_t key[KEY_BYTES];
	spot_key_bytes(actor_key_of(rig_id("anna")), key);
	assert_memory_equal(refusal.owner_key, key, sizeof(key));
	assert_int_equal(refusal.limit, 4);
	m = to_actor("bert", DO_LOG, "12345678", 8); // bert's is not, nor is the Spot's
	rig_send(rig, c, 0, &m);
	m = rig_request("room", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	end_nobody(rig);
	assert_int_equal(rig_log.count, 6);
	rig_stop(rig);
}

static void B3__a_user_spot_may_refuse_and_is_told_in_order(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	struct dp_actor *anna = rig_join(rig, "anna", room);
	rig_log.joining_returns = 1;
	assert_null(rig_join(rig, "bert", room));
	rig_log.joining_returns = 0;
	rig_join(rig, "carl", room);
	assert_int_equal(rig->facts[rig->fact_count - 1].as.actor.result.kind, RESULT_OK);
	for (uint32_t i = 0; i < rig->fact_count; i++)
		if (rig->facts[i].kind == DP_FACT_ACTOR &&
			rig->facts[i].as.actor.step == DP_ACTOR_REFUSED) {
			assert_int_equal(rig->facts[i].as.actor.result.kind, RESULT_REJECTED);
			assert_int_equal(rig->facts[i].as.actor.result.reason, REASON_DECLINED);
		}
	rig_leave(rig, anna);
	assert_string_equal(rig_log.members, "?a+a?b?c+c-a");
	rig_stop(rig); // HostShutdown: the rest is told before the Spot's own end
	assert_string_equal(rig_log.members, "?a+a?b?c+c-a-c");
}

static void B3_H3_C4__a_host_that_shuts_down_tells_its_members_in_order_of_joining(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	rig_join(rig, "anna", room);
	rig_join(rig, "bert", room);
	rig_join(rig, "carl", room);
	rig->manual = true;
	struct rig_message m = to_actor("bert", DO_ASK_YIELD, "nobody", 6);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig->manual = false;
	rig_log.members[0] = 0;
	memset(rig_log.members, 0, sizeof(rig_log.members));
	rig_close(rig, room, SPOTLANE_CLOSE_HOST_SHUTDOWN);
	assert_int_equal(rig_log.closings, 0); // bert's accepted work comes first
	assert_string_equal(rig_log.members, "");
	end_nobody(rig);
	assert_string_equal(rig_log.members, "-a-b-c");
	assert_int_equal(rig_log.closings, 1);
	assert_null(rig_find(rig, "room"));
	m = to_actor("bert", DO_LOG, "12345678", 8);
	while (rig_receive(rig, c, &r))
		;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	rig_stop(rig);
}

static void B1_B2_L5__a_leave_ends_after_what_was_accepted_and_newer_messages_wait(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *hall = rig_spot(rig, "hall", "entry", 0);
	struct dp_spot *room = rig_spot(rig, "room", "user", 1);
	struct dp_actor *old = rig_join(rig, "anna", hall);
	rig->manual = true;
	struct rig_message wait = to_actor("anna", DO_ASK, "nobody", 6);
	struct rig_message log = to_actor("anna", DO_LOG, "1234567a", 8);
	rig_send(rig, c, 0, &wait);
	rig_send(rig, c, 0, &log);
	rig_settle(rig);
	struct dp_actor *new = rig_place(rig, "anna", room);
	assert_int_equal(dp_actor_admit(rig->dp, new), DP_DONE);
	assert_int_equal(dp_actor_leave(rig->dp, old), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_actor_step(rig, new), DP_ACTOR_ADMITTED);
	assert_int_equal(rig_actor_step(rig, old), DP_ACTOR_ENTERED); // not left yet
	log.payload = span_of("1234567b", 8); // meets her between two Spots: it waits
	rig_send(rig, c, 0, &log);
	rig_send(rig, c, 1, &log);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 0);
	end_nobody(rig);
	assert_int_equal(rig_log.count, 1); // what was accepted ran where it was accepted
	assert_int_equal(rig_actor_step(rig, old), DP_ACTOR_LEFT);
	rig_enter(rig, new);
	dp_actor_destroy(old);
	for (uint16_t w = 0; w < 2; w++)
		assert_int_equal(dp_release(rig->dp, w, actor_key_of(rig_id("anna"))), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 3);
	assert_memory_equal(&rig_log.values[2], "1234567b", 8);
	assert_string_equal(rig_log.members, "?a+a");
	rig_stop(rig);
}

static void B1_S4_O8__an_actor_admits_and_runs_under_the_nodes_lease_only(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *room = rig_spot(rig, "room", "user", 0);
	rig_join(rig, "anna", room);
	dp_lease(rig->dp)->deadline_boot_ns = rig_clock.boot_ns;
	struct rig_message m = to_actor("anna", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_NO);
	dp_lease(rig->dp)->deadline_boot_ns = UINT64_MAX;
	dp_lease(rig->dp)->deadline_ticks = rig_clock.boot_ns;
	assert_null(rig_join(rig, "bert", room)); // no membership begins under a dead lease
	assert_string_equal(rig_log.members, "?a+a");
	dp_lease(rig->dp)->deadline_ticks = UINT64_MAX;
	rig_stop(rig);
}

static void K3__an_instance_spot_takes_no_actors(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	assert_false(dp_spot_takes_actors(rig_spot(rig, "a", "plain", 0)));
	assert_true(dp_spot_takes_actors(rig_spot(rig, "b", "user", 0)));
	assert_true(dp_spot_takes_actors(rig_spot(rig, "c", "entry", 0)));
	rig_stop(rig);
}

static void X6_B2__a_handler_asks_control_to_join(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "hall", "entry", 0);
	rig->manual = true;
	struct rig_message m = rig_request("hall", DO_JOIN, "aroom", 5);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	const struct dp_fact *f = &rig->facts[rig->fact_count - 1];
	assert_int_equal(f->kind, DP_FACT_CONTROL);
	assert_int_equal(f->as.control.token, 0);
	assert_int_equal(f->as.control.operation, WIRE_CONTROL_JOIN);
	assert_true(spot_key_equal(f->key, actor_key_of(rig_id("a"))));
	assert_int_equal(f->as.control.argument_bytes, 4);
	assert_memory_equal(f->as.control.argument, "room", 4);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B1_T1__a_message_to_an_actor_runs_on_its_entry_or_user_spot),
		cmocka_unit_test(X1__two_actors_of_an_entry_spot_have_a_gate_each),
		cmocka_unit_test(X1__a_user_spot_has_one_gate_for_everything),
		cmocka_unit_test(X1_L7__members_and_the_spot_take_turns_in_order),
		cmocka_unit_test(X2_B1__a_members_yielded_turn_resumes_behind_its_own_queue),
		cmocka_unit_test(X3__awaiting_an_actor_on_ones_own_gate_is_refused),
		cmocka_unit_test(B1_L1_M5__an_actor_has_its_own_bounds),
		cmocka_unit_test(B3__a_user_spot_may_refuse_and_is_told_in_order),
		cmocka_unit_test(
			B3_H3_C4__a_host_that_shuts_down_tells_its_members_in_order_of_joining),
		cmocka_unit_test(
			B1_B2_L5__a_leave_ends_after_what_was_accepted_and_newer_messages_wait),
		cmocka_unit_test(B1_S4_O8__an_actor_admits_and_runs_under_the_nodes_lease_only),
		cmocka_unit_test(K3__an_instance_spot_takes_no_actors),
		cmocka_unit_test(X6_B2__a_handler_asks_control_to_join),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_main_end();
	return failed;
}
