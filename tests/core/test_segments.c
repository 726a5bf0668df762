// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

static struct rig_reply r;
static uint8_t big[16 * 1024 * 1024];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 31 + (i >> 10));
}

// Takes a segmented reply as a well-behaved client; returns its size. `lose`: every n-th frame is not
// seen at first.
static uint32_t take_reply(struct rig *rig, struct rig_client *c, uint16_t worker, uint8_t *out, int lose)
{
	static uint64_t bitmap[SEG_COUNT_MAX / 64];
	struct seg_rx rx;
	bool begun = false, whole = false;
	uint32_t total = 0;
	int seen = 0;
	memset(bitmap, 0, sizeof(bitmap));
	for (int silent = 0; !whole && silent < 40;) {
		bool any = false, due = false;
		while (rig_receive(rig, c, &r)) {
			if (r.h.family != WIRE_REPLY || (lose > 0 && ++seen % lose == 0))
				continue;
			any = true;
			assert_true(r.h.flags & WIRE_FLAG_SEGMENTED);
			if (!begun)
				seg_rx_init(&rx, bitmap, r.h.total_bytes, r.h.segment_unit);
			begun = true;
			total = r.h.total_bytes;
			enum seg_rx_verdict v = seg_rx_accept(&rx, r.h.total_bytes,
				r.h.segment_offset, r.h.segment_bytes, r.h.segment_unit);
			assert_int_not_equal(v, SEG_RX_MISMATCH);
			memcpy(out + r.h.segment_offset, r.body, r.body_bytes);
			whole |= v == SEG_RX_WHOLE;
			due |= seg_rx_due(&rx, 64, r.h.flags & WIRE_FLAG_ACK_NOW);
		}
		silent = any ? 0 : silent + 1;
		if (due || whole) {
			struct seg_ack ack;
			uint8_t body[SEG_ACK_BYTES], frame[512];
			seg_rx_report(&rx, 64, whole, &ack);
			seg_ack_encode(&ack, body);
			struct wire_header h = {.version = WIRE_VERSION, .family = WIRE_ACK,
				.session = c->session, .counter = ++c->counter, .cookie = c->cookie,
				.spot_key_lo = r.h.spot_key_lo, .spot_key_hi = r.h.spot_key_hi,
				.operation_scope = r.h.operation_scope,
				.operation_id = r.h.operation_id, .content_type = WIRE_CONTENT_ACK,
				.total_bytes = SEG_ACK_BYTES};
			size_t n = wire_encode(&h, span_of(NULL, 0), span_of(body, sizeof(body)),
				frame, sizeof(frame));
			assert_true(n > 0);
			rig_inject(rig, c, worker, frame, n);
		} else if (!any) {
			rig_pass(20000000);
		}
		rig_settle(rig);
	}
	assert_true(whole);
	return total;
}

static void M8__a_message_of_many_frames_is_delivered_whole(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {1025, 65536, 1 << 20, 16 << 20};
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		struct rig *rig = rig_start_plain(2);
		struct rig_client *c = rig_client(rig);
		rig_spot(rig, "a", "plain", 1); // received by worker 0
		struct rig_message m = rig_request("a", DO_LOG, big, sizes[i]);
		assert_true(rig_send_segmented(rig, c, 0, &m, &r));
		rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
		assert_int_equal(rig_log.count, 1);
		assert_int_equal(RIG_COUNT(rig, reassemblies), 1);
		assert_int_equal(dp_process_bytes(rig->dp), 0);
		rig_stop(rig);
	}
}

static void M8_A7__a_large_first_message_builds_its_spot(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct rig_message m = rig_request("a", DO_LOG, big, 100000);
	m.intent = "plain";
	assert_true(rig_send_segmented(rig, c, 0, &m, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.count, 1);
	assert_string_equal(rig_log.order, "cfi");
	assert_non_null(rig_find(rig, "a"));
	rig_stop(rig);
}

static void M8_I8__an_echo_of_a_mebibyte_comes_back_equal(void **state)
{
	(void)state;
	static uint8_t back[1 << 20];
	struct rig *rig = rig_start_plain(2);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 1); // the reply leaves through worker 0, where its reports arrive
	struct rig_message m = rig_request("a", DO_ECHO, big, sizeof(back));
	(void)rig_send_segmented(rig, c, 0, &m, &r);
	// The first reply segment was taken by the sender above; it comes again.
	assert_int_equal(take_reply(rig, c, 0, back, 0), sizeof(back));
	assert_memory_equal(back, big, sizeof(back));
	assert_int_equal(rig->dp->workers[0]->segment_out.count, 0);
	assert_int_equal(RIG_COUNT(rig, replies_segmented), 1);
	rig_stop(rig);
}

static void M8_M9__lost_reply_segments_are_sent_again(void **state)
{
	(void)state;
	static uint8_t back[300000];
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	uint32_t n = sizeof(back);
	struct rig_message m = rig_request("a", DO_BIG, &n, 4);
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(take_reply(rig, c, 0, back, 7), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(back[i], (uint8_t)(i * 7 + (i >> 8)));
	assert_true(RIG_COUNT(rig, segments_resent) > 0);
	assert_int_equal(rig->dp->workers[0]->segment_out.count, 0);
	rig_stop(rig);
}

static void M8_I20__a_reply_nobody_takes_is_given_up_at_the_deadline(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	uint32_t n = 300000;
	struct rig_message m = rig_request("a", DO_BIG, &n, 4);
	m.budget_us = 1000000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	assert_int_equal(rig->dp->workers[0]->segment_out.count, 1);
	for (int i = 0; i < 10; i++) {
		rig_pass(110000000);
		rig_settle(rig);
		while (rig_receive(rig, c, &r))
			;
	}
	assert_int_equal(rig->dp->workers[0]->segment_out.count, 0);
	assert_int_equal(rig->dp->workers[0]->segment_out.bytes, 0);
	rig_stop(rig);
}

// One segment by hand.
static uint8_t segment_family = WIRE_REQUEST;

static void segment(struct rig *rig, struct rig_client *c, uint16_t type, uint64_t operation,
	uint32_t total, uint32_t index, uint8_t flags)
{
	uint8_t frame[2048];
	uint32_t left = total - index * 1024;
	struct spot_key key = spot_key_of(rig_id("a"));
	struct wire_header h = {.version = WIRE_VERSION, .family = segment_family,
		.flags = WIRE_FLAG_SEGMENTED | flags, .session = c->session, .counter = ++c->counter,
		.cookie = c->cookie, .spot_key_lo = key.lo, .spot_key_hi = key.hi,
		.operation_scope = c->session, .operation_id = operation, .message_type = type,
		.total_bytes = total, .segment_offset = index * 1024, .segment_unit = 1024};
	size_t n = wire_encode(&h, span_of(NULL, 0),
		span_of(big + index * 1024, left < 1024 ? left : 1024), frame, sizeof(frame));
	assert_true(n > 0);
	rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
}

static void M8_L4_P1__the_whole_item_is_reserved_at_the_first_segment(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	segment(rig, c, DO_LOG, 1, 100000, 50, 0);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 1);
	assert_true(view.application.bytes >= 100000);
	assert_int_equal(dp_process_bytes(rig->dp), 100000);
	// A half-message is never delivered and gives everything back.
	rig_pass(499999999);
	rig_settle(rig);
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 1);
	rig_pass(1);
	rig_settle(rig);
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	assert_int_equal(view.application.bytes, 0);
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	assert_int_equal(RIG_COUNT(rig, reassemblies_expired), 1);
	assert_int_equal(rig_log.count, 0);
	rig_stop(rig);
}

static void M8__a_segment_that_does_not_fit_ends_the_message(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	segment(rig, c, DO_LOG, 1, 3000, 0, 0);
	segment(rig, c, DO_LOG, 1, 5000, 1, 0); // another total
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_PROTOCOL_ERROR, REASON_REASSEMBLY, ACCEPTED_NO);
	segment(rig, c, DO_LOG, 2, 3000, 0, 0);
	segment(rig, c, DO_ECHO, 2, 3000, 1, 0); // another message type
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_PROTOCOL_ERROR, REASON_REASSEMBLY, ACCEPTED_NO);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	assert_int_equal(rig_log.count, 0);
	rig_stop(rig);
}

static void M8_M9__late_repeats_of_an_admitted_message_are_told_done(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	segment(rig, c, DO_LOG, 1, 2000, 0, 0);
	segment(rig, c, DO_LOG, 1, 2000, 1, 0);
	while (rig_receive(rig, c, &r))
		;
	segment(rig, c, DO_LOG, 1, 2000, 1, 0);
	assert_true(rig_receive(rig, c, &r));
	struct seg_ack ack;
	assert_int_equal(r.h.family, WIRE_ACK);
	assert_true(seg_ack_decode(span_of(r.body, r.body_bytes), &ack));
	assert_int_equal(ack.done, 1);
	assert_int_equal(rig_log.count, 1);
	rig_stop(rig);
}

static void M4_I8__late_segments_of_a_refused_message_meet_the_same_refusal(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "narrow", 0);
	segment(rig, c, DO_LOG, 1, 5000, 0, 0);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_TOO_LARGE, ACCEPTED_NO);
	segment(rig, c, DO_LOG, 1, 5000, 1, 0);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_INVALID_OPERATION, REASON_TOO_LARGE, ACCEPTED_NO);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 0);
	assert_int_equal(RIG_COUNT(rig, messages_refused), 1);
	rig_stop(rig);
}

static void expect_wants_nothing(struct rig *rig, struct rig_client *c)
{
	struct seg_ack ack;
	assert_true(rig_receive(rig, c, &r));
	assert_int_equal(r.h.family, WIRE_ACK);
	assert_true(seg_ack_decode(span_of(r.body, r.body_bytes), &ack));
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.base, 0); // refused: nothing of it is here
	assert_false(rig_receive(rig, c, &r));
}

static void M6_M8__the_sender_of_a_refused_one_way_message_learns_that_nothing_is_wanted(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	segment_family = WIRE_SEND;
	rig_spot(rig, "a", "narrow", 0);
	segment(rig, c, DO_LOG, 1, 5000, 0, 0); // never fits this lane
	expect_wants_nothing(rig, c);
	segment(rig, c, DO_LOG, 1, 5000, 1, 0); // late: the same answer
	expect_wants_nothing(rig, c);
	segment(rig, c, DO_LOG, 2, 3000, 0, 0);
	segment(rig, c, DO_LOG, 2, 3500, 1, 0); // another total
	expect_wants_nothing(rig, c);
	dp_admit_set(rig->dp, false, RESULT_SHUTTING_DOWN);
	segment(rig, c, DO_LOG, 3, 3000, 0, 0);
	expect_wants_nothing(rig, c);
	segment_family = WIRE_REQUEST;
	assert_int_equal(RIG_COUNT(rig, sends_refused), 3);
	assert_int_equal(rig_log.count, 0);
	rig_stop(rig);
}

static void few(struct dp_config *c)
{
	c->process_mark_bytes = 4u << 20;
	c->message_bytes_max = 256 << 10;
}

static void M5_I8__late_segments_of_a_message_refused_for_room_are_told_the_same_figures(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = few};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	for (uint64_t i = 1; i <= 6; i++) // the worker's reassembly takes a MiB
		segment(rig, c, DO_LOG, i, 250 << 10, 0, 0);
	while (rig_receive(rig, c, &r) && r.h.family != WIRE_REPLY)
		;
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_REASSEMBLY, ACCEPTED_NO);
	struct refusal first, late;
	uint64_t operation = r.h.operation_id;
	assert_int_equal(wire_refusal_decode(span_of(r.body, r.body_bytes), &first), WIRE_TAKEN);
	while (rig_receive(rig, c, &r))
		;
	segment(rig, c, DO_LOG, operation, 250 << 10, 1, 0);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_CAPACITY_EXCEEDED, REASON_REASSEMBLY, ACCEPTED_NO);
	assert_int_equal(wire_refusal_decode(span_of(r.body, r.body_bytes), &late), WIRE_TAKEN);
	assert_int_equal(first.limit, late.limit);
	assert_int_equal(first.current, late.current);
	rig_pass(1000000000);
	rig_stop(rig);
}

static void M8_I20__a_peer_over_its_budget_loses_its_own_oldest(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	// The budget is 32 MiB: two messages of 14 MiB (16 MiB class) fit, a third ends the first.
	for (uint64_t i = 1; i <= 2; i++)
		segment(rig, c, DO_LOG, i, 14 << 20, 0, 0);
	assert_int_equal(RIG_COUNT(rig, reassemblies_expired), 0);
	segment(rig, c, DO_LOG, 3, 14 << 20, 0, 0);
	assert_int_equal(RIG_COUNT(rig, reassemblies_expired), 1);
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	assert_int_equal(view.application.count, 2);
	rig_pass(1000000000);
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M8__a_message_of_many_frames_is_delivered_whole),
		cmocka_unit_test(M8_A7__a_large_first_message_builds_its_spot),
		cmocka_unit_test(M8_I8__an_echo_of_a_mebibyte_comes_back_equal),
		cmocka_unit_test(M8_M9__lost_reply_segments_are_sent_again),
		cmocka_unit_test(M8_I20__a_reply_nobody_takes_is_given_up_at_the_deadline),
		cmocka_unit_test(M8_L4_P1__the_whole_item_is_reserved_at_the_first_segment),
		cmocka_unit_test(M8__a_segment_that_does_not_fit_ends_the_message),
		cmocka_unit_test(M8_M9__late_repeats_of_an_admitted_message_are_told_done),
		cmocka_unit_test(M4_I8__late_segments_of_a_refused_message_meet_the_same_refusal),
		cmocka_unit_test(
			M6_M8__the_sender_of_a_refused_one_way_message_learns_that_nothing_is_wanted),
		cmocka_unit_test(
			M5_I8__late_segments_of_a_message_refused_for_room_are_told_the_same_figures),
		cmocka_unit_test(M8_I20__a_peer_over_its_budget_loses_its_own_oldest),
	};
	fill();
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core segments", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
