// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include "base/rng.h"

static struct rig_reply r;
static const uint8_t key[16] = "a key of sixteen";

static struct peer peer_of(uint16_t port)
{
	struct peer p = {.port = port, .ip = {1, 2, 3}};
	return p;
}

static enum session_verdict offer(
	struct session_table *t, struct peer p, uint64_t id, uint64_t counter, uint64_t now)
{
	struct session *s = NULL;
	enum session_verdict v = session_check(
		t, &p, id, counter, session_cookie(t, &p, now), now, &s);
	if (v == SESSION_FRESH)
		session_take(t, s, counter, now);
	return v;
}

static void M9_I19__each_counter_is_taken_once_within_the_window(void **state)
{
	(void)state;
	struct session_table t;
	assert_true(session_table_init(&t, 4, key));
	struct peer p = peer_of(1);
	for (uint64_t c = 1; c <= 5000; c += 2)
		assert_int_equal(offer(&t, p, 9, c, 1), SESSION_FRESH);
	for (uint64_t c = 1; c <= 4999; c += 2)
		assert_int_equal(offer(&t, p, 9, c, 1), SESSION_REPEAT);
	// The even ones inside the window are new, those behind it count as seen.
	assert_int_equal(offer(&t, p, 9, 4998, 1), SESSION_FRESH);
	assert_int_equal(offer(&t, p, 9, 4998, 1), SESSION_REPEAT);
	assert_int_equal(offer(&t, p, 9, 4999 - 2047, 1), SESSION_FRESH);
	assert_int_equal(offer(&t, p, 9, 4999 - 2049, 1), SESSION_REPEAT);
	assert_int_equal(offer(&t, p, 9, 1000000, 1), SESSION_FRESH);
	assert_int_equal(offer(&t, p, 9, 1000000 - 2047, 1), SESSION_FRESH);
	session_table_fini(&t);
}

// As ingress does it: the short way first.
static enum session_verdict offer_short(
	struct session_table *t, struct peer p, uint64_t id, uint64_t counter, uint64_t now)
{
	return session_take_next(t, &p, id, counter, now) ? SESSION_FRESH
							  : offer(t, p, id, counter, now);
}

// Two sessions, repeats, gaps, a wrong source, time: both ways must say the same of every frame.
static void M9_I19__the_short_way_judges_as_the_long_one(void **state)
{
	(void)state;
	struct session_table plain, quick;
	struct rng rng;
	uint64_t next[2] = {1, 1}, now = 1, fresh = 0;
	assert_true(session_table_init(&plain, 4, key));
	assert_true(session_table_init(&quick, 4, key));
	rng_seed(&rng, 7);
	for (int i = 0; i < 200000; i++) {
		uint32_t which = rng_below(&rng, 16) == 0, turn = (uint32_t)rng_below(&rng, 32);
		uint64_t counter = next[which];
		struct peer p = peer_of(turn == 0 ? 9 : (uint16_t)(1 + which));
		if (turn == 1)
			counter += rng_below(&rng, 5000);
		else if (turn == 2 && counter > 1)
			counter -= rng_below(&rng, counter < 3000 ? counter : 3000);
		if (turn == 3)
			now += 700000000;
		if (turn != 0 && counter >= next[which])
			next[which] = counter + 1;
		enum session_verdict v = offer(&plain, p, 5 + which, counter, now);
		assert_int_equal(offer_short(&quick, p, 5 + which, counter, now), v);
		fresh += v == SESSION_FRESH;
	}
	assert_true(fresh > 100000 && fresh < 200000);
	session_table_fini(&plain);
	session_table_fini(&quick);
}

static void M9__the_window_moves_only_when_the_frame_is_taken(void **state)
{
	(void)state;
	struct session_table t;
	struct session *s;
	assert_true(session_table_init(&t, 4, key));
	struct peer p = peer_of(1);
	uint64_t cookie = session_cookie(&t, &p, 1);
	assert_int_equal(session_check(&t, &p, 9, 5, cookie, 1, &s), SESSION_FRESH);
	assert_int_equal(session_check(&t, &p, 9, 5, cookie, 1, &s), SESSION_FRESH);
	session_take(&t, s, 5, 1);
	assert_int_equal(session_check(&t, &p, 9, 5, cookie, 1, &s), SESSION_REPEAT);
	session_table_fini(&t);
}

static void M9__a_session_belongs_to_one_source(void **state)
{
	(void)state;
	struct session_table t;
	assert_true(session_table_init(&t, 4, key));
	assert_int_equal(offer(&t, peer_of(1), 9, 1, 1), SESSION_FRESH);
	assert_int_equal(offer(&t, peer_of(2), 9, 2, 1), SESSION_FOREIGN);
	session_table_fini(&t);
}

static void M9__a_cookie_lives_for_its_slot_and_the_next(void **state)
{
	(void)state;
	struct session_table t;
	assert_true(session_table_init(&t, 4, key));
	struct peer p = peer_of(1), q = peer_of(2);
	const uint64_t slot = 60000000000u;
	uint64_t cookie = session_cookie(&t, &p, slot);
	assert_true(session_cookie_valid(&t, &p, cookie, slot));
	assert_true(session_cookie_valid(&t, &p, cookie, 3 * slot - 1));
	assert_false(session_cookie_valid(&t, &p, cookie, 3 * slot));
	assert_false(session_cookie_valid(&t, &q, cookie, slot));
	assert_false(session_cookie_valid(&t, &p, 0, slot));
	session_table_fini(&t);
}

static void M9_I20__the_table_is_bounded_and_forgets_the_oldest_idle(void **state)
{
	(void)state;
	struct session_table t;
	const uint64_t s = 1000000000u;
	assert_true(session_table_init(&t, 3, key));
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(offer(&t, peer_of(1), id, 1, 10 * s), SESSION_FRESH);
	assert_int_equal(offer(&t, peer_of(1), 4, 1, 10 * s), SESSION_NO_ROOM);
	assert_int_equal(offer(&t, peer_of(1), 1, 2, 100 * s), SESSION_FRESH);
	assert_int_equal(offer(&t, peer_of(1), 4, 1, 100 * s), SESSION_NO_ROOM);
	// 2 and 3 were silent for longer than any cookie of theirs lives; 1 was not.
	assert_int_equal(offer(&t, peer_of(1), 4, 1, 140 * s), SESSION_FRESH);
	assert_int_equal(offer(&t, peer_of(1), 1, 2, 140 * s), SESSION_REPEAT);
	assert_int_equal(offer(&t, peer_of(1), 5, 1, 140 * s), SESSION_FRESH);
	assert_int_equal(offer(&t, peer_of(1), 6, 1, 140 * s), SESSION_NO_ROOM);
	session_table_fini(&t);
}

static void M9__a_recorded_frame_of_a_forgotten_session_finds_no_cookie(void **state)
{
	(void)state;
	struct session_table t;
	struct session *session;
	const uint64_t s = 1000000000u;
	assert_true(session_table_init(&t, 1, key));
	struct peer p = peer_of(1);
	uint64_t cookie = session_cookie(&t, &p, 119 * s);
	assert_int_equal(session_check(&t, &p, 1, 1, cookie, 119 * s, &session), SESSION_FRESH);
	session_take(&t, session, 1, 119 * s);
	assert_int_equal(offer(&t, peer_of(2), 2, 1, 241 * s), SESSION_FRESH);
	assert_int_equal(session_check(&t, &p, 1, 1, cookie, 241 * s, &session), SESSION_NO_COOKIE);
	session_table_fini(&t);
}

static void M9__without_a_cookie_only_a_challenge_comes_back(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client_raw(rig);
	uint8_t frame[65536];
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	size_t n = rig_frame(rig, c, &m, frame, NULL);
	rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	assert_int_equal(r.h.family, WIRE_CHALLENGE);
	assert_true(r.frame_bytes <= n);
	assert_int_equal(rig_log.count, 0);
	assert_int_equal(RIG_COUNT(rig, frames_challenged), 1);
	// The same frame with the cookie is taken: the window was not touched.
	memcpy(frame + offsetof(struct wire_header, cookie), &r.h.cookie, 8);
	rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.count, 1);
	rig_stop(rig);
}

static void M9_I6__a_repeated_frame_is_dropped_and_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint8_t frame[65536];
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	size_t n = rig_frame(rig, c, &m, frame, NULL);
	for (int i = 0; i < 5; i++)
		rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(RIG_COUNT(rig, frames_repeated), 4);
	rig_stop(rig);
}

static void M2_M9__a_held_result_is_sent_again_on_a_repeat(void **state)
{
	(void)state;
	for (uint16_t home = 0; home < 2; home++) {
		struct rig *rig = rig_start_plain(2);
		struct rig_client *c = rig_client(rig), *other = rig_client(rig);
		uint8_t frame[512];
		uint64_t operation;
		struct rig_message m = rig_request("a", DO_ECHO, "lost", 4);
		rig_spot(rig, "a", "plain", home);
		size_t n = rig_frame(rig, c, &m, frame, &operation);
		rig_inject(rig, c, 0, frame, n);
		rig_settle(rig);
		assert_true(rig_receive(rig, c, &r));
		uint64_t counter = r.h.counter;
		for (int i = 0; i < 3; i++) {
			rig_inject(rig, c, 0, frame, n);
			rig_settle(rig);
			assert_true(rig_receive(rig, c, &r));
			rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
			assert_int_equal(r.h.operation_id, operation);
			assert_memory_equal(r.body, "lost", 4);
			assert_true(r.h.counter > counter); // a frame of its own
			counter = r.h.counter;
			assert_false(rig_receive(rig, c, &r));
		}
		assert_int_equal(RIG_COUNT(rig, turns), 1); // it ran once
		assert_int_equal(RIG_COUNT(rig, replies), 1);
		assert_int_equal(RIG_COUNT(rig, replies_again), 3);
		// Another client that names the operation in a repeat of its own gets nothing.
		struct rig_message theirs = rig_request("a", DO_NOTHING, "x", 1);
		n = rig_frame(rig, other, &theirs, frame, NULL);
		rig_inject(rig, other, 0, frame, n);
		rig_settle(rig);
		assert_true(rig_receive(rig, other, &r));
		struct wire_header h;
		memcpy(&h, frame, sizeof(h));
		h.operation_scope = c->session;
		h.operation_id = operation;
		memcpy(frame, &h, sizeof(h));
		rig_inject(rig, other, 0, frame, n);
		rig_settle(rig);
		assert_false(rig_receive(rig, other, &r));
		assert_false(rig_receive(rig, c, &r));
		assert_int_equal(RIG_COUNT(rig, replies_again), 3);
		rig_stop(rig);
	}
}

static void no_held(struct dp_config *c)
{
	c->held_replies_bytes = 0;
}

static void M9_I20__held_results_are_bounded_and_the_newest_stay(void **state)
{
	(void)state;
	static uint8_t body[1000], frames[300][1400];
	size_t sizes[300];
	struct rig *rig = rig_start_plain(1); // 256 KiB: about 210 of these
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_ECHO, body, sizeof(body));
	for (int i = 0; i < 300; i++) {
		memset(body, i, sizeof(body));
		sizes[i] = rig_frame(rig, c, &m, frames[i], NULL);
		rig_inject(rig, c, 0, frames[i], sizes[i]);
		rig_settle(rig);
		assert_true(rig_receive(rig, c, &r));
	}
	int again = 0, first = -1;
	for (int i = 0; i < 300; i++) {
		rig_inject(rig, c, 0, frames[i], sizes[i]);
		rig_settle(rig);
		if (!rig_receive(rig, c, &r))
			continue;
		assert_int_equal(r.body_bytes, sizeof(body));
		for (size_t b = 0; b < sizeof(body); b++)
			assert_int_equal(r.body[b], (uint8_t)i);
		again++;
		first = first < 0 ? i : first;
	}
	assert_in_range(again, 150, 218); // a few lose their place in the index
	assert_true(first >= 300 - 218);
	assert_int_equal(RIG_COUNT(rig, frames_repeated), 300);
	rig_stop(rig);
	struct rig_config config = {.workers = 1, .adjust = no_held};
	rig = rig_start(&config);
	c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	sizes[0] = rig_frame(rig, c, &m, frames[0], NULL);
	for (int i = 0; i < 2; i++) {
		rig_inject(rig, c, 0, frames[0], sizes[0]);
		rig_settle(rig);
		assert_int_equal(rig_receive(rig, c, &r), i == 0);
	}
	rig_stop(rig);
}

static void M9__a_session_from_another_source_is_refused_and_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig), *thief = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_ask(rig, c, 0, &m, &r);
	thief->session = c->session;
	thief->counter = 100;
	rig_send(rig, thief, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, thief, &r));
	assert_int_equal(rig_log.count, 1);
	assert_int_equal(RIG_COUNT(rig, frames_session_refused), 1);
	rig_stop(rig);
}

static void not_insecure(struct dp_config *c)
{
	c->insecure = false;
}

static void I19__suite_0_is_refused_unless_insecure(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = not_insecure};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client_raw(rig);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(RIG_COUNT(rig, frames_rejected), 1);
	assert_int_equal(rig_counter(rig, offsetof(struct dp_counters, rejects) +
					      WIRE_REJECT_SUITE * sizeof(uint64_t)),
		1);
	rig_stop(rig);
}

static void x__garbage_and_client_families_are_counted_drops(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	uint8_t junk[200] = {1, 2, 3};
	rig_inject(rig, c, 0, junk, 3);
	rig_inject(rig, c, 0, junk, sizeof(junk));
	struct wire_header h = {.version = WIRE_VERSION, .family = WIRE_REPLY, .kind = RESULT_OK,
		.accepted = ACCEPTED_YES, .session = c->session, .counter = 50, .cookie = c->cookie,
		.spot_key_lo = 1, .operation_scope = 1, .operation_id = 1};
	size_t n = wire_encode(&h, span_of(NULL, 0), span_of(NULL, 0), junk, sizeof(junk));
	assert_true(n > 0);
	rig_inject(rig, c, 0, junk, n);
	rig_settle(rig);
	assert_int_equal(RIG_COUNT(rig, frames_rejected), 3);
	assert_false(rig_receive(rig, c, &r));
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M9_I19__the_short_way_judges_as_the_long_one),
		cmocka_unit_test(M9_I19__each_counter_is_taken_once_within_the_window),
		cmocka_unit_test(M9__the_window_moves_only_when_the_frame_is_taken),
		cmocka_unit_test(M9__a_session_belongs_to_one_source),
		cmocka_unit_test(M9__a_cookie_lives_for_its_slot_and_the_next),
		cmocka_unit_test(M9_I20__the_table_is_bounded_and_forgets_the_oldest_idle),
		cmocka_unit_test(M9__a_recorded_frame_of_a_forgotten_session_finds_no_cookie),
		cmocka_unit_test(M9__without_a_cookie_only_a_challenge_comes_back),
		cmocka_unit_test(M9_I6__a_repeated_frame_is_dropped_and_counted),
		cmocka_unit_test(M2_M9__a_held_result_is_sent_again_on_a_repeat),
		cmocka_unit_test(M9_I20__held_results_are_bounded_and_the_newest_stay),
		cmocka_unit_test(M9__a_session_from_another_source_is_refused_and_counted),
		cmocka_unit_test(I19__suite_0_is_refused_unless_insecure),
		cmocka_unit_test(x__garbage_and_client_families_are_counted_drops),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core session", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
