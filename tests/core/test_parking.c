// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

static struct rig_reply r;

static struct rig_message logged(const char *id, const uint64_t *value, const char *intent)
{
	struct rig_message m = rig_request(id, DO_LOG, value, 8);
	m.intent = intent;
	return m;
}

static void expect_log_in_order(uint64_t n)
{
	assert_int_equal(rig_log.count, n);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(rig_log.values[i], i);
}

static const struct dp_fact *next_fact(struct rig *rig, enum dp_fact_kind kind)
{
	for (; rig->fact_taken < rig->fact_count; rig->fact_taken++)
		if (rig->facts[rig->fact_taken].kind == kind)
			return &rig->facts[rig->fact_taken++];
	return NULL;
}

static void A7_L7__messages_that_waited_go_first_and_in_order(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint64_t v = 0;
	// All before control has seen the first; the later ones are ordinary and wait behind the intent.
	for (; v < 20; v++) {
		struct rig_message m = logged("a", &v, v % 3 == 0 ? "plain" : NULL);
		rig_send(rig, c, 0, &m);
		rig_step(rig, 0);
	}
	rig_settle(rig);
	for (; v < 25; v++) {
		struct rig_message m = logged("a", &v, NULL);
		rig_send(rig, c, 0, &m);
	}
	rig_settle(rig);
	expect_log_in_order(25);
	assert_string_equal(rig_log.order, "cfi");
	rig_stop(rig);
}

static void A10__one_question_per_key_and_class(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	uint64_t v = 5;
	struct rig_message ordinary = logged("a", &v, NULL), intent = logged("a", &v, "plain");
	for (int i = 0; i < 3; i++) {
		rig_send(rig, c, 0, &ordinary);
		rig_send(rig, c, 0, &intent);
	}
	rig_settle(rig);
	assert_int_equal(rig->fact_count, 2);
	const struct dp_fact *f = next_fact(rig, DP_FACT_RESOLVE);
	assert_false(f->as.resolve.intent);
	assert_int_equal(f->as.resolve.spot_type.value, 0);
	f = next_fact(rig, DP_FACT_RESOLVE);
	assert_true(f->as.resolve.intent);
	assert_int_equal(f->as.resolve.spot_type.value, type_key_of("plain").value);
	assert_int_equal(f->as.resolve.id_bytes, 1);
	assert_int_equal(f->as.resolve.id[0], 'a');
	assert_int_equal(dp_process_bytes(rig->dp), 48); // what waits is charged to P
	// Ordinary ones end NotFound; the intents go on waiting, without a second question.
	assert_int_equal(dp_fail(rig->dp, 0, f->key, DP_FAIL_ORDINARY,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	for (int i = 0; i < 3; i++) {
		assert_true(rig_receive(rig, c, &r));
		rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	}
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(rig->fact_count, 2);
	assert_int_equal(dp_fail(rig->dp, 0, f->key, DP_FAIL_ALL,
				 result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE), NULL),
		DP_DONE);
	rig_settle(rig);
	for (int i = 0; i < 3; i++) {
		assert_true(rig_receive(rig, c, &r));
		rig_expect(&r, RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE, ACCEPTED_NO);
	}
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	rig_stop(rig);
}

static void A3__a_bad_intent_is_ended_alone(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	uint64_t v = 5;
	struct rig_message bad = logged("a", &v, "no-such-type"), ordinary = logged("a", &v, NULL),
			   good = logged("a", &v, "plain");
	uint64_t first = rig_send(rig, c, 0, &bad);
	rig_send(rig, c, 0, &ordinary);
	rig_send(rig, c, 0, &good);
	rig_settle(rig);
	const struct dp_fact *f = next_fact(rig, DP_FACT_RESOLVE);
	assert_int_equal(f->as.resolve.spot_type.value, type_key_of("no-such-type").value);
	assert_null(next_fact(rig, DP_FACT_RESOLVE));
	assert_int_equal(dp_fail(rig->dp, 0, f->key, DP_FAIL_INTENT,
				 result_refused(RESULT_NOT_CONFIGURED, REASON_UNKNOWN_TYPE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	assert_int_equal(r.h.operation_id, first);
	rig_expect(&r, RESULT_NOT_CONFIGURED, REASON_UNKNOWN_TYPE, ACCEPTED_NO);
	assert_false(rig_receive(rig, c, &r)); // the two others wait on
	f = next_fact(rig, DP_FACT_RESOLVE);
	assert_non_null(f);
	assert_true(f->as.resolve.intent);
	assert_int_equal(f->as.resolve.spot_type.value, type_key_of("plain").value);
	// The second intent ends too: only then is the ordinary message asked for on its own.
	assert_int_equal(dp_fail(rig->dp, 0, f->key, DP_FAIL_INTENT,
				 result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED, ACCEPTED_NO);
	assert_false(rig_receive(rig, c, &r));
	f = next_fact(rig, DP_FACT_RESOLVE);
	assert_non_null(f);
	assert_false(f->as.resolve.intent);
	assert_int_equal(dp_fail(rig->dp, 0, f->key, DP_FAIL_ORDINARY,
				 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
		DP_DONE);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	rig_stop(rig);
}

static void tight(struct dp_config *c)
{
	c->parked_messages_max = 5;
	c->resolves_in_flight_max = 2;
}

static void A10_M5__waiting_is_bounded_and_the_bound_has_a_name(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = tight};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	uint64_t v = 0;
	static const char *const ids[] = {"a", "b", "c"};
	for (int i = 0; i < 3; i++) {
		struct rig_message m = logged(ids[i], &v, NULL);
		rig_send(rig, c, 0, &m);
	}
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_PENDING_RESOLVES, ACCEPTED_NO);
	struct refusal refusal;
	assert_int_equal(
		wire_refusal_decode(span_of(r.body, r.body_bytes), &refusal), WIRE_TAKEN);
	assert_int_equal(refusal.limit, 2);
	for (int i = 0; i < 4; i++) {
		struct rig_message m = logged("a", &v, NULL);
		rig_send(rig, c, 0, &m);
	}
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_PARKED, ACCEPTED_NO);
	assert_int_equal(
		wire_refusal_decode(span_of(r.body, r.body_bytes), &refusal), WIRE_TAKEN);
	assert_int_equal(refusal.limit, 5);
	assert_int_equal(refusal.current, 5);
	assert_int_equal(RIG_REFUSED(rig, REASON_PARKED), 1);
	assert_int_equal(RIG_REFUSED(rig, REASON_PENDING_RESOLVES), 1);
	rig_pass(10000000000u);
	rig_stop(rig);
}

static void M7_M2__who_waits_past_its_deadline_is_told_so(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	uint64_t v = 0;
	struct rig_message m = logged("a", &v, "plain");
	m.budget_us = 1000;
	rig_send(rig, c, 0, &m);
	m.budget_us = 100000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_NO);
	assert_false(rig_receive(rig, c, &r));
	rig_pass(100000000);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(RIG_COUNT(rig, messages_refused), 2);
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	rig_stop(rig);
}

static void T2__an_intent_whose_id_is_not_its_keys_is_refused(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint8_t frame[2048];
	uint64_t v = 0;
	struct rig_message m = logged("a", &v, "plain");
	size_t n = rig_frame(rig, c, &m, frame, NULL);
	frame[WIRE_HEADER_BYTES] = 'b';
	rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_PROTOCOL_ERROR, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(rig->fact_count, 0);
	rig_stop(rig);
}

static void K5__a_factory_that_fails_ends_all_who_wait_and_blocks_nothing(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint64_t v = 0;
	struct rig_message m = logged("a", &v, "plain");
	rig_log.initialise_returns = SPOTLANE_INTERNAL_FAILURE;
	for (int i = 0; i < 3; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	for (int i = 0; i < 3; i++) {
		assert_true(rig_receive(rig, c, &r));
		rig_expect(&r, RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED, ACCEPTED_NO);
	}
	assert_string_equal(rig_log.order, "cfid");
	rig_log.initialise_returns = 0;
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

static void A6_Z4__a_message_right_after_creation_is_handled_at_once(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint64_t v = 0;
	struct rig_message m = logged("a", &v, NULL);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	rig_spot(rig, "a", "plain", 0);
	rig_ask(rig, c, 0, &m, &r); // no time passed: a missing id is not remembered
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

// Publishes a Spot with its lane opening, by hand, so that a test can stand between the steps of A7.
static struct dp_spot *publish_opening(struct rig *rig, const char *id, uint16_t home)
{
	struct dp_spot_spec spec = {.key = spot_key_of(rig_id(id)), .id = rig_id(id),
		.type = dp_type_by_name(rig->dp, "plain"), .object_generation = {99},
		.authority_generation = {1}, .home_worker = home};
	struct dp_spot *spot = dp_spot_create(rig->dp, &spec);
	assert_non_null(spot);
	rig->spots[rig->spot_count++] = spot;
	assert_int_equal(dp_construct(rig->dp, spot, span_of(NULL, 0)), DP_DONE);
	rig_settle(rig);
	assert_int_equal(route_publish(rig->routes, spec.key, dp_spot_route(spot)), ROUTE_WRITTEN);
	return spot;
}

static void A7__who_meets_opening_waits(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	struct dp_spot *spot = publish_opening(rig, "a", 0);
	uint64_t v = 0;
	for (; v < 3; v++) {
		struct rig_message m = logged("a", &v, NULL);
		rig_send(rig, c, 0, &m);
	}
	rig_settle(rig);
	assert_int_equal(rig_log.count, 0);
	assert_int_equal(RIG_COUNT(rig, messages_parked), 3);
	assert_int_equal(dp_open(rig->dp, spot, 0), DP_DONE);
	struct rig_message m = logged("a", &v, NULL);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_non_null(next_fact(rig, DP_FACT_OPENED));
	expect_log_in_order(4);
	rig_stop(rig);
}

// Four workers receive for one key while it is activated; every possible place for the origin and for
// control's moments, many step orders. Each worker's own messages stay in order, and nothing that
// came after the opening overtakes what waited on the same worker.
static void run_order(uint16_t workers, uint64_t seed)
{
	struct rig *rig = rig_start_plain(workers);
	struct rig_client *c = rig_client(rig);
	struct rng rng;
	rng_seed(&rng, seed);
	uint64_t next[4] = {0};
	enum { EACH = 12 };
	uint32_t left = EACH * workers;
	while (left > 0) {
		uint16_t w = (uint16_t)rng_below(&rng, workers);
		switch (rng_below(&rng, 4)) {
		case 0:
		case 1:
			if (next[w] < EACH) {
				uint64_t v = (uint64_t)w << 32 | next[w]++;
				struct rig_message m = logged("a", &v, "plain");
				m.family = WIRE_INTENT_SEND;
				rig_send(rig, c, w, &m);
				left--;
			}
			break;
		case 2:
			rig_step(rig, w);
			break;
		default:
			rig_control(rig);
			break;
		}
	}
	rig_settle(rig);
	assert_int_equal(rig_log.count, (uint64_t)EACH * workers);
	uint64_t expect[4] = {0};
	for (uint32_t i = 0; i < rig_log.count; i++) {
		uint32_t w = (uint32_t)(rig_log.values[i] >> 32);
		if ((rig_log.values[i] & 0xffffffff) != expect[w]++)
			fail_msg("seed %lu: worker %u out of order", (unsigned long)seed, w);
	}
	assert_string_equal(rig_log.order, "cfi");
	rig_stop(rig);
}

static void A7_L7_I9__no_overtaking_with_two_workers_in_any_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 120; seed++)
		run_order(2, seed);
}

static void A7_L7_I9__no_overtaking_with_four_workers_in_any_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 120; seed++)
		run_order(4, seed);
}

static void A7__the_first_message_of_another_worker_is_the_first_turn(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	uint64_t v = 0;
	for (; v < 3; v++) { // waits with worker 1; home is worker 0
		struct rig_message m = logged("a", &v, "plain");
		rig_send(rig, c, 1, &m);
	}
	rig_settle(rig);
	struct dp_spot *spot = publish_opening(rig, "a", 0);
	assert_int_equal(dp_open(rig->dp, spot, 1), DP_DONE);
	// Until worker 1 has passed its first message on, the lane refuses worker 0's own.
	uint64_t late = 100;
	struct rig_message m = logged("a", &late, NULL);
	rig_send(rig, c, 0, &m);
	rig_step(rig, 0);
	assert_int_equal(rig_log.count, 0);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(rig_log.values[0], 0);
	assert_non_null(next_fact(rig, DP_FACT_OPENED));
	assert_int_equal(dp_release(rig->dp, 1, spot->key), DP_DONE);
	assert_int_equal(dp_release(rig->dp, 0, spot->key), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 4);
	rig_stop(rig);
}

static void A7__opening_with_nobody_waiting_any_more_just_opens(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig->manual = true;
	struct dp_spot *spot = publish_opening(rig, "a", 0);
	assert_int_equal(dp_open(rig->dp, spot, 1), DP_DONE);
	rig_settle(rig);
	assert_non_null(next_fact(rig, DP_FACT_OPENED));
	uint64_t v = 0;
	struct rig_message m = logged("a", &v, NULL);
	rig_ask(rig, c, 1, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A7_L7__messages_that_waited_go_first_and_in_order),
		cmocka_unit_test(A3__a_bad_intent_is_ended_alone),
		cmocka_unit_test(A10__one_question_per_key_and_class),
		cmocka_unit_test(A10_M5__waiting_is_bounded_and_the_bound_has_a_name),
		cmocka_unit_test(M7_M2__who_waits_past_its_deadline_is_told_so),
		cmocka_unit_test(T2__an_intent_whose_id_is_not_its_keys_is_refused),
		cmocka_unit_test(K5__a_factory_that_fails_ends_all_who_wait_and_blocks_nothing),
		cmocka_unit_test(A6_Z4__a_message_right_after_creation_is_handled_at_once),
		cmocka_unit_test(A7__who_meets_opening_waits),
		cmocka_unit_test(A7__the_first_message_of_another_worker_is_the_first_turn),
		cmocka_unit_test(A7__opening_with_nobody_waiting_any_more_just_opens),
		cmocka_unit_test(A7_L7_I9__no_overtaking_with_two_workers_in_any_order),
		cmocka_unit_test(A7_L7_I9__no_overtaking_with_four_workers_in_any_order),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core parking", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
