// SPDX-License-Identifier: BSD-3-Clause
// Two nodes: what one receives for a Spot of the other's goes there, and its result comes back.
#include "rig.h"

#include "core/reply_route.h"

static struct rig_reply r;

static void R1_S1__a_request_reaches_its_spot_on_another_node(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	struct rig_message m = rig_request("far", DO_ECHO, "hello", 5);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(r.body_bytes, 5);
	assert_memory_equal(r.body, "hello", 5);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 1);
	assert_int_equal(RIG_COUNT(p.a, messages_accepted), 0);
	assert_int_equal(RIG_COUNT(p.b, messages_delivered), 1);
	assert_false(rig_receive(p.a, c, &r));
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void R1__a_send_and_an_intent_reach_it_too(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	uint64_t value = 77;
	struct rig_message m = rig_request("far", DO_LOG, &value, sizeof(value));
	m.family = WIRE_SEND;
	rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(rig_log.values[0], 77);
	assert_false(rig_receive(p.a, c, &r));
	m = rig_request("far", DO_ECHO, "x", 1);
	m.intent = "plain";
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	m.intent = "narrow"; // not the type of what is there
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_TYPE_MISMATCH, REASON_NONE, ACCEPTED_NO);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void M2_X2__a_handler_asks_a_spot_on_another_node(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(2, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.a, "near", "plain", 1);
	rig_spot(p.b, "far", "plain", 1);
	struct rig_message m = rig_request("near", DO_ASK, "far", 3);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 1);
	assert_int_equal(rig_log.answers, 1);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

// R2, M3, Z7: the request ends StaleRoute, nothing is sent again, and the route is gone at once.
static void R2_M3_S1_Z7__a_stale_route_ends_the_request_and_is_dropped(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far"); // b does not own it
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 1);
	assert_int_equal(RIG_COUNT(p.a, routes_stale), 1);
	assert_int_equal(RIG_COUNT(p.b, resolves), 0); // nobody is asked, nothing is built
	assert_false(rig_receive(p.a, c, &r));
	// The next one asks control, which knows nothing of it.
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 1);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void S1__a_fence_of_another_run_is_refused(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	p.b_at_a->lease.value = 6; // the run before
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.b, messages_accepted), 0);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void S1_S4_O3__an_owner_past_its_lease_refuses(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	dp_lease(p.b->dp)->deadline_boot_ns = 1;
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.b, turns), 0);
	dp_lease(p.b->dp)->deadline_boot_ns = UINT64_MAX;
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

// A message that was forwarded goes no further, even if the one it reached knows another owner.
static void S1__a_forwarded_message_is_never_forwarded_again(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	struct dp_remote back = {
		.key = remote->key, .owner = p.a_at_b, .expires_boot_ns = UINT64_MAX};
	assert_int_equal(
		route_publish(p.b->routes, back.key, dp_remote_route(&back)), ROUTE_WRITTEN);
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.b, messages_forwarded), 0);
	(void)route_retire(p.b->routes, back.key);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void R1__an_aged_route_is_asked_for_again(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	remote->expires_boot_ns = rig_clock.boot_ns; // RouteCacheMaxAge is over
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	remote->expires_boot_ns = UINT64_MAX;
	p.b_at_a->usable_until_boot_ns = rig_clock.boot_ns; // its owner's lease may be over
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 0);
	assert_int_equal(RIG_COUNT(p.a, resolves), 2);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

// M5: the same room, the same reason; but it is not this node's.
static void M5_L4__a_full_lane_on_another_node_is_unavailable(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "n");
	struct refusal refusal;
	uint32_t refused = 0;
	rig_spot(p.b, "n", "narrow", 0); // 4 items
	struct rig_message m = rig_request("n", DO_LOG, "12345678", 8);
	for (int i = 0; i < 7; i++)
		rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	for (int i = 0; i < 7; i++) {
		assert_true(rig_receive(p.a, c, &r));
		if (r.h.kind == RESULT_OK)
			continue;
		rig_expect(&r, RESULT_UNAVAILABLE, REASON_APPLICATION_LANE_COUNT, ACCEPTED_NO);
		assert_int_equal(wire_refusal_decode(span_of(r.body, r.body_bytes), &refusal),
			WIRE_TAKEN);
		assert_int_equal(refusal.limit, 4);
		assert_int_equal(refusal.owner_node, 0x5678);
		refused++;
	}
	assert_int_equal(refused, 3);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void M8__large_messages_go_both_ways(void **state)
{
	(void)state;
	static uint8_t payload[300000];
	struct rig_pair p = rig_pair_start(2, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 1);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 >> 3);
	struct rig_message m = rig_request("far", DO_LOG, payload, sizeof(payload));
	assert_true(rig_send_segmented(p.a, c, 0, &m, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.count, 1);
	assert_memory_equal(&rig_log.values[0], payload, 8);
	assert_true(RIG_COUNT(p.b, reassemblies) == 1);
	uint32_t big = 50000;
	m = rig_request("far", DO_BIG, &big, sizeof(big));
	rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	// The client gets it in segments from the node it asked.
	uint32_t got = 0;
	while (rig_receive(p.a, c, &r)) {
		assert_int_equal(r.h.family, WIRE_REPLY);
		assert_true(r.h.flags & WIRE_FLAG_SEGMENTED);
		assert_int_equal(r.h.total_bytes, big);
		got += r.body_bytes;
	}
	assert_true(got >= big);
	assert_int_equal(RIG_COUNT(p.a, reassemblies), 2); // the client's message, and the result
	rig_pass(UINT64_C(20000000000));
	rig_settle(p.a);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

// What the owner refuses at the first segment is told then.
static void M8_S1__a_large_message_to_no_owner_is_refused(void **state)
{
	(void)state;
	static uint8_t payload[100000];
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	struct rig_message m = rig_request("far", DO_LOG, payload, sizeof(payload));
	assert_true(rig_send_segmented(p.a, c, 0, &m, &r));
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_WRONG_OWNER, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.b, reassemblies), 0);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void R2_M6__a_node_that_only_sends_hears_of_a_stale_route(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	struct rig_message m = rig_request("far", DO_LOG, "12345678", 8);
	m.family = WIRE_SEND;
	for (int i = 0; i < 20; i++)
		rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	assert_int_equal(RIG_COUNT(p.b, sends_refused), 20);
	assert_int_equal(RIG_COUNT(p.b, notices), 1); // one a peer and key, however many
	assert_int_equal(RIG_COUNT(p.a, routes_stale), 1);
	assert_false(rig_receive(p.a, c, &r));
	atomic_store(&remote->stale, 0); // read again, and stale again
	rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	assert_int_equal(RIG_COUNT(p.b, notices), 1);
	rig_pass(1000000001);
	rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	assert_int_equal(RIG_COUNT(p.b, notices), 2);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

// ---- what strangers may not do ----
static size_t forged(const struct rig_pair *p, uint8_t family,
	const uint8_t route[WIRE_ROUTE_BYTES], uint64_t counter, uint8_t *out)
{
	struct spot_key key = spot_key_of(rig_id("far"));
	struct wire_header h = {.version = WIRE_VERSION,
		.family = family,
		.session = 0x7777,
		.counter = counter,
		.spot_key_lo = key.lo,
		.spot_key_hi = key.hi,
		.operation_scope = 1,
		.operation_id = 1,
		.total_bytes = 4};
	if (family == WIRE_FORWARD_REPLY) {
		h.kind = RESULT_OK;
		h.accepted = ACCEPTED_YES;
	} else {
		h.owner_node = p->b->dp->config.node.value;
		h.owner_lease = 7;
	}
	size_t n = wire_encode(&h, span_of(route, WIRE_ROUTE_BYTES), span_of("evil", 4), out, 2048);
	assert_true(n > 0);
	return n;
}

static void M9_I19__frames_between_nodes_from_strangers_are_dropped(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.b);
	static const uint8_t route[WIRE_ROUTE_BYTES];
	uint8_t frame[2048];
	rig_spot(p.b, "far", "plain", 0);
	for (uint8_t family = WIRE_FORWARD_SEND; family <= WIRE_FORWARD_REPLY; family++) {
		size_t n = forged(&p, family, route, family, frame);
		rig_inject(p.b, c, 0, frame, n);
	}
	rig_settle(p.b);
	assert_int_equal(RIG_COUNT(p.b, frames_foreign), 3);
	assert_int_equal(RIG_COUNT(p.b, messages_accepted), 0);
	assert_false(rig_receive(p.b, c, &r)); // nothing is reflected
	rig_pair_stop(&p);
}

// M10's kin: a node that never sealed a route sends nothing to where it points.
static void R1_I19__a_reply_route_that_was_not_sealed_here_is_dropped(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct peer from = {.port = NODE_PORT};
	uint8_t sealed[WIRE_ROUTE_BYTES], frame[2048], wrong_key[16] = "not the boot's";
	struct reply_route route = {.reply = {.peer = c->peer,
					    .scope = c->session,
					    .operation_id = 1,
					    .kind = REPLY_CLIENT},
		.expires_boot_ns = UINT64_MAX};
	memcpy(from.ip, p.b_at_a->ip, 16);
	reply_route_seal(wrong_key, spot_key_of(rig_id("far")), &route, sealed);
	size_t n = forged(&p, WIRE_FORWARD_REPLY, sealed, 1, frame);
	assert_true(fabric_loop_inject(p.a->queues[0], &from, frame, (uint32_t)n));
	// Sealed here, for another Spot.
	reply_route_seal(p.a->dp->route_key, spot_key_of(rig_id("near")), &route, sealed);
	n = forged(&p, WIRE_FORWARD_REPLY, sealed, 2, frame);
	assert_true(fabric_loop_inject(p.a->queues[0], &from, frame, (uint32_t)n));
	rig_settle(p.a);
	assert_int_equal(RIG_COUNT(p.a, routes_forged), 2);
	assert_false(rig_receive(p.a, c, &r));
	// The same with the right seal arrives: it was the seal.
	reply_route_seal(p.a->dp->route_key, spot_key_of(rig_id("far")), &route, sealed);
	n = forged(&p, WIRE_FORWARD_REPLY, sealed, 3, frame);
	assert_true(fabric_loop_inject(p.a->queues[0], &from, frame, (uint32_t)n));
	rig_settle(p.a);
	assert_true(rig_receive(p.a, c, &r));
	assert_int_equal(r.body_bytes, 4);
	rig_pair_stop(&p);
}

// M5: a full queue on the way is told as it is; so is what a handler itself answered.
static void M5__capacity_of_the_way_stays_capacity(void **state)
{
	static const struct { uint8_t reason, accepted, told; } cases[] = {
		{REASON_SCHEDULER_QUEUE, ACCEPTED_NO, RESULT_CAPACITY_EXCEEDED},
		{REASON_PROCESS_INBOUND, ACCEPTED_NO, RESULT_UNAVAILABLE},
		{REASON_ACTIVATION_CEILING, ACCEPTED_NO, RESULT_UNAVAILABLE},
		{REASON_NONE, ACCEPTED_YES, RESULT_CAPACITY_EXCEEDED},
	};
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct peer from = {.port = NODE_PORT};
	uint8_t sealed[WIRE_ROUTE_BYTES], frame[2048];
	struct reply_route route = {.reply = {.peer = c->peer,
					    .scope = c->session,
					    .operation_id = 1,
					    .kind = REPLY_CLIENT},
		.expires_boot_ns = UINT64_MAX};
	memcpy(from.ip, p.b_at_a->ip, 16);
	reply_route_seal(p.a->dp->route_key, spot_key_of(rig_id("far")), &route, sealed);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct wire_header h;
		size_t n = forged(&p, WIRE_FORWARD_REPLY, sealed, i + 1, frame);
		memcpy(&h, frame, sizeof(h));
		h.kind = RESULT_CAPACITY_EXCEEDED;
		h.reason = cases[i].reason;
		h.accepted = cases[i].accepted;
		memcpy(frame, &h, sizeof(h));
		assert_true(fabric_loop_inject(p.a->queues[0], &from, frame, (uint32_t)n));
		rig_settle(p.a);
		assert_true(rig_receive(p.a, c, &r));
		assert_int_equal(r.h.kind, cases[i].told);
		assert_int_equal(r.h.reason, cases[i].reason);
	}
	rig_pair_stop(&p);
}

// A handler that never waits answers on the frame it came in.
static void R1__a_forwarded_message_may_run_on_its_frame(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "quick", 0);
	struct rig_message m = rig_request("far", DO_ECHO, "hello", 5);
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_memory_equal(r.body, "hello", 5);
	assert_int_equal(RIG_COUNT(p.b, messages_in_place), 1);
	m.flags = WIRE_FLAG_EXPLAIN;
	rig_ask(p.a, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_true(r.h.flags & WIRE_FLAG_EXPLAIN);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static void I19__every_bit_of_a_reply_route_is_sealed(void **state)
{
	(void)state;
	const uint8_t key[16] = "a key";
	struct spot_key spot = {1, 2};
	struct reply_route route = {.reply = {.scope = 3, .operation_id = 4, .kind = REPLY_CALL,
					    .ingress_worker = 5, .explain = 1},
		.expires_boot_ns = 6};
	struct reply_route out;
	uint8_t sealed[WIRE_ROUTE_BYTES];
	route.reply.peer.port = 99;
	reply_route_seal(key, spot, &route, sealed);
	assert_true(reply_route_open(key, spot, sealed, &out));
	assert_memory_equal(&out, &route, sizeof(out));
	for (uint32_t bit = 0; bit < 8 * WIRE_ROUTE_BYTES; bit++) {
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(reply_route_open(key, spot, sealed, &out));
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	spot.hi++;
	assert_false(reply_route_open(key, spot, sealed, &out));
}

static void M7__spent_work_is_not_forwarded(void **state)
{
	(void)state;
	struct rig_pair p = rig_pair_start(1, NULL);
	struct rig_client *c = rig_client(p.a);
	struct dp_remote *remote = rig_remote(&p, "far");
	rig_spot(p.b, "far", "plain", 0);
	dp_lease(p.b->dp)->deadline_boot_ns = UINT64_MAX;
	struct rig_message m = rig_request("far", DO_ECHO, "x", 1);
	m.budget_us = 1000;
	remote->expires_boot_ns = 0; // it waits for control
	p.a->manual = true;
	rig_send(p.a, c, 0, &m);
	rig_settle(p.a);
	remote->expires_boot_ns = UINT64_MAX;
	rig_pass(2000000);
	assert_int_equal(dp_release(p.a->dp, 0, remote->key), DP_DONE);
	rig_settle(p.a);
	assert_true(rig_receive(p.a, c, &r));
	rig_expect(&r, RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(p.a, messages_forwarded), 0);
	rig_remote_retire(&p, remote);
	rig_pair_stop(&p);
}

static int begin(void **state)
{
	(void)state;
	return rig_main_begin();
}

static int end(void **state)
{
	(void)state;
	rig_main_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R1_S1__a_request_reaches_its_spot_on_another_node),
		cmocka_unit_test(R1__a_send_and_an_intent_reach_it_too),
		cmocka_unit_test(M2_X2__a_handler_asks_a_spot_on_another_node),
		cmocka_unit_test(R2_M3_S1_Z7__a_stale_route_ends_the_request_and_is_dropped),
		cmocka_unit_test(S1__a_fence_of_another_run_is_refused),
		cmocka_unit_test(S1_S4_O3__an_owner_past_its_lease_refuses),
		cmocka_unit_test(S1__a_forwarded_message_is_never_forwarded_again),
		cmocka_unit_test(R1__an_aged_route_is_asked_for_again),
		cmocka_unit_test(M5_L4__a_full_lane_on_another_node_is_unavailable),
		cmocka_unit_test(M8__large_messages_go_both_ways),
		cmocka_unit_test(M8_S1__a_large_message_to_no_owner_is_refused),
		cmocka_unit_test(R2_M6__a_node_that_only_sends_hears_of_a_stale_route),
		cmocka_unit_test(M9_I19__frames_between_nodes_from_strangers_are_dropped),
		cmocka_unit_test(R1_I19__a_reply_route_that_was_not_sealed_here_is_dropped),
		cmocka_unit_test(M5__capacity_of_the_way_stays_capacity),
		cmocka_unit_test(R1__a_forwarded_message_may_run_on_its_frame),
		cmocka_unit_test(I19__every_bit_of_a_reply_route_is_sealed),
		cmocka_unit_test(M7__spent_work_is_not_forwarded),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
