// SPDX-License-Identifier: BSD-3-Clause
// The client library against a scripted node: payloads in segments, both ways (M8).
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

enum { PAYLOAD_BYTES = 300 * 1000, PAYLOAD_BYTES_MAX = 16 * 1024 * 1024, UNIT = 1024 };

static uint8_t payload[PAYLOAD_BYTES_MAX];
static uint8_t received[PAYLOAD_BYTES_MAX];
static uint64_t bitmap[SEG_COUNT_MAX / 64];

struct fixture {
	struct peer peer;
	struct stepped_clock clock;
	spotlane_client *client;
	uint32_t ends;
	struct spotlane_client_result last;
	bool body_equal; // the reply's body is `payload`
	struct rng rng;
};

static void take_end(void *arg, const struct spotlane_client_result *result)
{
	struct fixture *f = arg;
	f->ends++;
	f->last = *result;
	f->body_equal = result->payload_bytes > 0 &&
		memcmp(result->payload, payload, result->payload_bytes) == 0;
}

static int setup(void **state)
{
	static struct fixture f;
	memset(&f, 0, sizeof(f));
	rng_seed(&f.rng, 11);
	for (size_t i = 0; i < sizeof(payload); i += 8) {
		uint64_t word = rng_u64(&f.rng);
		memcpy(payload + i, &word, 8);
	}
	peer_open(&f.peer);
	f.client = peer_client(&f.peer, &f.clock, NULL);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	peer_close(&((struct fixture *)*state)->peer);
	return 0;
}

static uint64_t start(struct fixture *f, enum spotlane_call_family family, size_t bytes)
{
	struct spotlane_client_call call = {
		.size = sizeof(call),
		.family = family,
		.id = "echo-1",
		.id_bytes = 6,
		.type = "echo",
		.message_type = 1,
		.payload = payload,
		.payload_bytes = bytes,
		.done = take_end,
		.arg = f,
	};
	uint64_t ticket = 0;
	assert_int_equal(spotlane_client_start(f->client, &call, &ticket), 0);
	return ticket;
}

static struct spotlane_client_stats stats_of(const struct fixture *f)
{
	struct spotlane_client_stats stats;
	spotlane_client_stats_read(f->client, &stats);
	return stats;
}

// The node's side of an upload.
struct taking {
	struct seg_rx rx;
	struct wire_header first;
	uint64_t last_counter;
	uint32_t frames;
	uint32_t window_used; // most segments beyond base that were seen
	bool begun;
};

// Takes the segment in peer.frame; answers with a report when one is due. `lose` = as if it had not come.
static void taking_segment(struct fixture *f, struct taking *t, bool lose)
{
	const struct wire_frame *frame = &f->peer.frame;
	const struct wire_header *h = &frame->h;
	assert_true(h->flags & WIRE_FLAG_SEGMENTED);
	assert_int_equal(h->cookie, 77);
	assert_true(h->counter > t->last_counter); // each frame has its own counter
	t->last_counter = h->counter;
	t->frames++;
	assert_int_equal(h->id_bytes, h->segment_offset == 0 ? 6 : 0);
	if (lose)
		return;
	if (!t->begun) {
		seg_rx_init(&t->rx, bitmap, h->total_bytes, h->segment_unit);
		t->first = *h;
		t->begun = true;
	}
	assert_int_equal(h->operation_id, t->first.operation_id);
	uint32_t beyond = h->segment_offset / h->segment_unit - t->rx.base;
	if (beyond < SEG_COUNT_MAX && beyond > t->window_used)
		t->window_used = beyond;
	enum seg_rx_verdict verdict =
		seg_rx_accept(&t->rx, h->total_bytes, h->segment_offset, h->segment_bytes, h->segment_unit);
	assert_int_not_equal(verdict, SEG_RX_MISMATCH);
	memcpy(received + h->segment_offset, frame->segment.data, frame->segment.size);
	if (seg_rx_due(&t->rx, 64, (h->flags & WIRE_FLAG_ACK_NOW) != 0)) {
		struct seg_ack ack;
		seg_rx_report(&t->rx, 64, t->rx.got == t->rx.count, &ack);
		peer_ack(&f->peer, h, &ack);
	}
}

static void greet(struct fixture *f)
{
	peer_greet(&f->peer, 77);
}

// Takes all segments, losing some at random; steps the clock when nothing comes.
static void take_upload(struct fixture *f, struct taking *t, uint32_t lose_percent)
{
	for (uint32_t silent = 0; silent < 500 && !(t->begun && t->rx.got == t->rx.count);) {
		if (peer_take(&f->peer)) {
			taking_segment(f, t, rng_below(&f->rng, 100) < lose_percent);
			silent = 0;
			continue;
		}
		step_ms(&f->peer, &f->clock, 10);
		silent++;
	}
	assert_true(t->begun && t->rx.got == t->rx.count);
}

static void reply_ok(struct fixture *f, const struct wire_header *call)
{
	peer_reply(&f->peer, call, result_ok(), 0, "done", 4);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_OK);
}

// ---- sending ----

static void M8__largest_payload_arrives_whole(void **state)
{
	struct fixture *f = *state;
	struct taking t = {0};
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES_MAX);
	greet(f);
	take_upload(f, &t, 0);
	assert_int_equal(t.frames, t.rx.count);
	assert_true(t.window_used <= 64);
	assert_memory_equal(received, payload, PAYLOAD_BYTES_MAX);
	reply_ok(f, &t.first);
	assert_int_equal(stats_of(f).repeats, 0);
}

static void M8__lost_segments_are_repeated_until_the_message_is_whole(void **state)
{
	struct fixture *f = *state;
	struct taking t = {0};
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES);
	greet(f);
	take_upload(f, &t, 20);
	assert_memory_equal(received, payload, PAYLOAD_BYTES);
	assert_true(stats_of(f).repeats > 0);
	assert_int_equal(stats_of(f).segments_sent, t.frames);
	reply_ok(f, &t.first);
}

static void M8__silence_repeats_the_window_at_doubling_intervals(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES);
	greet(f);
	uint32_t first = 0;
	while (peer_take(&f->peer))
		first++;
	assert_int_equal(first, 64); // the window before the first report
	assert_true(f->peer.frame.h.flags & WIRE_FLAG_ACK_NOW);
	const uint64_t waits_ms[] = {20, 40, 80, 160, 200, 200};
	for (size_t i = 0; i < ARRAY_COUNT(waits_ms); i++) {
		step_ms(&f->peer, &f->clock, waits_ms[i] - 3);
		peer_expect_silence(&f->peer);
		step_ms(&f->peer, &f->clock, 5);
		uint32_t again = 0;
		while (peer_take(&f->peer))
			again++;
		assert_int_equal(again, 64);
	}
}

static void M2_M8__reply_ends_an_unfinished_upload(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES);
	greet(f);
	peer_expect(&f->peer, WIRE_INTENT_REQUEST);
	struct wire_header h = f->peer.frame.h;
	peer_reply(&f->peer, &h, result_refused(RESULT_INVALID_OPERATION, REASON_TOO_LARGE), 0, NULL, 0);
	while (peer_take(&f->peer))
		;
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.reason, REASON_TOO_LARGE);
	step_ms(&f->peer, &f->clock, 1000);
	peer_expect_silence(&f->peer);
}

static void M7_M8__upload_without_an_answer_ends_with_its_budget(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES);
	greet(f);
	uint32_t budget_us = UINT32_MAX;
	for (int i = 0; i < 60; i++) {
		while (peer_take(&f->peer)) {
			assert_true(f->peer.frame.h.budget_us <= budget_us);
			budget_us = f->peer.frame.h.budget_us;
		}
		step_ms(&f->peer, &f->clock, 100);
	}
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
	assert_int_equal(f->last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
	while (peer_take(&f->peer))
		;
	step_ms(&f->peer, &f->clock, 1000);
	peer_expect_silence(&f->peer);
}

static void M8_M9__challenged_upload_starts_over_with_the_cookie(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_REQUEST, 10 * 1000);
	peer_greet(&f->peer, 50);
	peer_expect(&f->peer, WIRE_INTENT_REQUEST);
	peer_challenge(&f->peer, 77);
	struct taking t = {0};
	while (peer_take(&f->peer) && f->peer.frame.h.cookie == 50)
		;
	taking_segment(f, &t, false);
	take_upload(f, &t, 0);
	assert_memory_equal(received, payload, 10 * 1000);
	reply_ok(f, &t.first);
}

static void M6_M8__one_way_message_in_segments_ends_when_nothing_more_is_needed(void **state)
{
	struct fixture *f = *state;
	struct taking t = {0};
	(void)start(f, SPOTLANE_CALL_SEND, PAYLOAD_BYTES);
	greet(f);
	take_upload(f, &t, 5);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.end, SPOTLANE_END_SENT);
	assert_int_equal(f->last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
}

static void M6_M8__one_way_message_that_is_refused_ends_its_sending(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_SEND, PAYLOAD_BYTES);
	greet(f);
	assert_true(peer_take(&f->peer));
	struct wire_header first = f->peer.frame.h;
	while (peer_take(&f->peer))
		;
	struct seg_ack ack = {.window = 64, .done = 1};
	peer_ack(&f->peer, &first, &ack);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.end, SPOTLANE_END_SENT);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_UNAVAILABLE);
	assert_int_equal(f->last.accepted, SPOTLANE_ACCEPTED_NO);
}

static void x__small_calls_overtake_a_large_one(void **state)
{
	struct fixture *f = *state;
	(void)start(f, SPOTLANE_CALL_REQUEST, PAYLOAD_BYTES_MAX);
	(void)start(f, SPOTLANE_CALL_REQUEST, 10);
	greet(f);
	uint32_t before = 0;
	while (peer_take(&f->peer) && (f->peer.frame.h.flags & WIRE_FLAG_SEGMENTED))
		before++;
	assert_int_equal(f->peer.frame.h.total_bytes, 10);
	assert_int_equal(before, CLIENT_SEGMENTS_IN_TURN);
}

// ---- receiving ----

static void send_segment(struct fixture *f, const struct wire_header *call, uint32_t index, uint32_t total,
	bool ack_now)
{
	struct wire_header h = peer_reply_header(&f->peer, call, result_ok());
	h.flags = WIRE_FLAG_SEGMENTED | (ack_now ? WIRE_FLAG_ACK_NOW : 0);
	h.total_bytes = total;
	h.segment_unit = UNIT;
	h.segment_offset = index * UNIT;
	uint32_t left = total - h.segment_offset;
	peer_send_frame(&f->peer, &h, payload + h.segment_offset, left < UNIT ? left : UNIT);
}

static struct wire_header asked(struct fixture *f)
{
	(void)start(f, SPOTLANE_CALL_REQUEST, 3);
	greet(f);
	peer_expect(&f->peer, WIRE_INTENT_REQUEST);
	return f->peer.frame.h;
}

static struct seg_ack expect_ack(struct fixture *f)
{
	peer_expect(&f->peer, WIRE_ACK);
	struct seg_ack ack;
	assert_true(seg_ack_decode(f->peer.frame.segment, &ack));
	assert_int_equal(f->peer.frame.h.cookie, 77);
	return ack;
}

static void M8_M9__reply_segments_in_any_order_with_repeats(void **state)
{
	struct fixture *f = *state;
	struct wire_header h = asked(f);
	enum { COUNT = 100, TOTAL = COUNT * UNIT - 100 };
	uint32_t order[COUNT];
	for (uint32_t i = 0; i < COUNT; i++)
		order[i] = i;
	for (uint32_t i = COUNT; i > 1; i--) {
		uint32_t k = (uint32_t)rng_below(&f->rng, i);
		uint32_t other = order[i - 1];
		order[i - 1] = order[k];
		order[k] = other;
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(f->ends, 0);
		send_segment(f, &h, order[i], TOTAL, false);
		if (i % 3 == 0 && i + 1 < COUNT)
			send_segment(f, &h, order[i], TOTAL, false);
		(void)spotlane_client_poll(f->client, 0);
	}
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.payload_bytes, TOTAL);
	assert_true(f->body_equal);
	struct seg_ack ack = {0};
	while (peer_take(&f->peer)) {
		assert_int_equal(f->peer.frame.h.family, WIRE_ACK);
		assert_int_equal(f->peer.frame.h.operation_id, h.operation_id);
		assert_int_equal(f->peer.frame.h.operation_scope, h.operation_scope);
		assert_true(seg_ack_decode(f->peer.frame.segment, &ack));
	}
	assert_int_equal(ack.done, 1);
	assert_int_equal(stats_of(f).segments_repeated, 33);
}

static void M8__gap_is_reported_at_once(void **state)
{
	struct fixture *f = *state;
	struct wire_header h = asked(f);
	send_segment(f, &h, 0, 10 * UNIT, false);
	peer_expect_silence(&f->peer);
	send_segment(f, &h, 2, 10 * UNIT, false);
	struct seg_ack ack = expect_ack(f);
	assert_int_equal(ack.base, 1);
	assert_int_equal(ack.bits[0], 1);
	assert_int_equal(ack.done, 0);
	send_segment(f, &h, 3, 10 * UNIT, true);
	ack = expect_ack(f);
	assert_int_equal(ack.bits[0], 3);
}

static void M8__sender_that_asks_again_after_the_end_is_told_done(void **state)
{
	struct fixture *f = *state;
	struct wire_header h = asked(f);
	send_segment(f, &h, 0, UNIT + 1, false);
	send_segment(f, &h, 1, UNIT + 1, true);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(expect_ack(f).done, 1);
	peer_expect_silence(&f->peer);
	// That report was lost.
	send_segment(f, &h, 1, UNIT + 1, true);
	struct seg_ack ack = expect_ack(f);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.base, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(stats_of(f).late, 1);
}

static void M8__contradicting_segment_ends_the_call(void **state)
{
	struct fixture *f = *state;
	struct wire_header h = asked(f);
	send_segment(f, &h, 0, 10 * UNIT, false);
	send_segment(f, &h, 1, 11 * UNIT, false);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_PROTOCOL_ERROR);
	assert_int_equal(f->last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
	assert_int_equal(expect_ack(f).done, 1);
}

static void M8__half_a_reply_is_never_delivered(void **state)
{
	struct fixture *f = *state;
	struct wire_header h = asked(f);
	for (uint32_t i = 0; i < 9; i++)
		send_segment(f, &h, i, 10 * UNIT, false);
	step_ms(&f->peer, &f->clock, 5100);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
	assert_int_equal(f->last.payload_bytes, 0);
}

static void M8__reply_memory_is_bounded_and_returned(void **state)
{
	struct fixture *f = *state;
	spotlane_client_close(f->client);
	struct spotlane_client_options options = {.size = sizeof(options), .reply_bytes_max = 20 * UNIT};
	f->client = peer_client(&f->peer, &f->clock, &options);
	struct wire_header h = asked(f);
	send_segment(f, &h, 0, 21 * UNIT, false);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->last.kind, SPOTLANE_KIND_INTERNAL_FAILURE);
	assert_int_equal(f->last.reason, REASON_OUT_OF_MEMORY);
	for (int i = 0; i < 3; i++) { // each fits only if the one before gave its room back
		(void)start(f, SPOTLANE_CALL_REQUEST, 3);
		while (peer_take(&f->peer) && f->peer.frame.h.family == WIRE_ACK)
			;
		h = f->peer.frame.h;
		for (uint32_t k = 0; k < 15; k++)
			send_segment(f, &h, k, 15 * UNIT, false);
		(void)spotlane_client_poll(f->client, 0);
		assert_int_equal(f->last.kind, SPOTLANE_KIND_OK);
	}
	assert_int_equal(f->client->reply_bytes, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(M8__largest_payload_arrives_whole),
		T(M8__lost_segments_are_repeated_until_the_message_is_whole),
		T(M8__silence_repeats_the_window_at_doubling_intervals),
		T(M2_M8__reply_ends_an_unfinished_upload),
		T(M7_M8__upload_without_an_answer_ends_with_its_budget),
		T(M8_M9__challenged_upload_starts_over_with_the_cookie),
		T(M6_M8__one_way_message_in_segments_ends_when_nothing_more_is_needed),
		T(M6_M8__one_way_message_that_is_refused_ends_its_sending),
		T(x__small_calls_overtake_a_large_one),
		T(M8_M9__reply_segments_in_any_order_with_repeats),
		T(M8__gap_is_reported_at_once),
		T(M8__sender_that_asks_again_after_the_end_is_told_done),
		T(M8__contradicting_segment_ends_the_call),
		T(M8__half_a_reply_is_never_delivered),
		T(M8__reply_memory_is_bounded_and_returned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
