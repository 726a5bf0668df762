// SPDX-License-Identifier: BSD-3-Clause
// Push to a client whose handle a turn kept (M10).
#include "rig.h"

static struct rig_reply r;

enum { SECOND = 1000000000 };

// From a second client, so that the first one's lease is its own.
static void push(struct rig *rig, struct rig_client *from, const char *text)
{
	struct rig_message m = rig_request("a", DO_PUSH, text, strlen(text));
	rig_ask(rig, from, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
}

static void keep(struct rig *rig, struct rig_client *c)
{
	struct rig_message m = rig_request("a", DO_KEEP, "", 0);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.client_returned, 0);
}

static void M10__a_spot_pushes_to_a_client_whose_handle_it_kept(void **state)
{
	(void)state;
	for (uint16_t workers = 1; workers <= 2; workers++) {
		struct rig *rig = rig_start_plain(workers);
		struct rig_client *c = rig_client(rig), *other = rig_client(rig);
		struct dp_spot *spot = rig_spot(rig, "a", "plain", (uint16_t)(workers - 1));
		keep(rig, c);
		push(rig, other, "news");
		assert_int_equal(rig_log.push_returned, 0);
		assert_true(rig_receive(rig, c, &r));
		assert_int_equal(r.h.family, WIRE_PUSH);
		assert_int_equal(r.h.message_type, 77);
		assert_int_equal(r.h.content_type, WIRE_CONTENT_TEXT);
		assert_int_equal(r.body_bytes, 4);
		assert_memory_equal(r.body, "news", 4);
		struct spot_key key = {r.h.spot_key_lo, r.h.spot_key_hi};
		struct dp_spot_view view;
		dp_spot_view(spot, &view);
		assert_true(spot_key_equal(key, view.key));
		assert_false(rig_receive(rig, other, &r));
		assert_int_equal(RIG_COUNT(rig, pushes), 1);
		rig_stop(rig);
	}
}

static void M10__a_handle_is_leased_for_60_s_and_a_keepalive_renews_it(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig), *other = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	keep(rig, other); // makes its session known
	keep(rig, c);
	rig_pass((uint64_t)40 * SECOND);
	struct wire_header hello = {.version = WIRE_VERSION,
		.family = WIRE_HELLO,
		.session = c->session,
		.counter = ++c->counter,
		.cookie = c->cookie};
	uint8_t frame[WIRE_HEADER_BYTES];
	size_t bytes = wire_encode(
		&hello, span_of(NULL, 0), span_of(NULL, 0), frame, sizeof(frame));
	rig_inject(rig, c, 0, frame, bytes);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r)); // answered with a fresh cookie, too
	assert_int_equal(r.h.family, WIRE_CHALLENGE);
	rig_pass((uint64_t)40 * SECOND);
	push(rig, other, "one");
	assert_true(rig_receive(rig, c, &r));
	assert_int_equal(r.h.family, WIRE_PUSH);
	rig_inject(rig, c, 0, frame, bytes); // the same frame again is a repeat and renews nothing
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_pass((uint64_t)21 * SECOND);
	push(rig, other, "two");
	assert_false(rig_receive(rig, c, &r));
	assert_int_equal(RIG_COUNT(rig, pushes), 1);
	assert_int_equal(RIG_COUNT(rig, pushes_dropped), 1); // counted (M10)
	rig_stop(rig);
}

static void M10__what_cannot_be_pushed_is_refused_or_dropped_and_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	push(rig, c, "to nobody"); // no handle was kept
	assert_int_equal(rig_log.push_returned, -1);
	struct rig_message m = rig_request("a", DO_KEEP, "", 0);
	m.family = WIRE_SEND; // one way: nobody to come back to
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(rig_log.client_returned, -1);
	keep(rig, c);
	static uint8_t big[SPOTLANE_PUSH_BYTES_MAX + 1];
	m = rig_request("a", DO_PUSH, big, sizeof(big));
	rig_ask(rig, c, 0, &m, &r);
	assert_int_equal(rig_log.push_returned, -1);
	rig_log.client.value[4] ^= 1; // the session of somebody else, or of nobody
	m = rig_request("a", DO_PUSH, "x", 1);
	rig_ask(rig, c, 0, &m, &r);
	assert_int_equal(rig_log.push_returned, 0);
	assert_int_equal(RIG_COUNT(rig, pushes), 0);
	assert_int_equal(RIG_COUNT(rig, pushes_dropped), 1);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M10__a_spot_pushes_to_a_client_whose_handle_it_kept),
		cmocka_unit_test(M10__a_handle_is_leased_for_60_s_and_a_keepalive_renews_it),
		cmocka_unit_test(M10__what_cannot_be_pushed_is_refused_or_dropped_and_counted),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_main_end();
	return failed;
}
