// SPDX-License-Identifier: BSD-3-Clause
#include "contract.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/mem.h"

enum { BURST = FABRIC_BURST_MAX, DEADLINE_S = 10, STOCK_MAX = 1 << 17 };

static struct contract_pair *pair_of(void **state)
{
	return *state;
}

static uint32_t payload_max(const struct contract_pair *pair)
{
	return fabric_base(pair->a)->payload_bytes_max;
}

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

// Frames that reach q, up to n, until the deadline.
static uint32_t receive(
	struct contract_pair *pair, struct fabric_queue *q, struct frame *out, uint32_t n)
{
	double deadline = now_s() + DEADLINE_S;
	uint32_t got = 0;
	while (got < n && now_s() < deadline) {
		uint32_t want = n - got < BURST ? n - got : BURST;
		uint32_t more = fabric_base(q)->ops->rx(q, out + got, want);
		assert_true(more <= want);
		got += more;
		if (more == 0) {
			if (pair->step != NULL)
				pair->step(pair);
			sched_yield();
		}
	}
	return got;
}

static void fill(struct frame *frame, uint32_t bytes, uint32_t seed)
{
	assert_true(bytes <= frame->room);
	for (uint32_t i = 0; i < bytes; i++)
		frame->data[i] = (uint8_t)(seed * 31 + i * 7);
	frame->bytes = bytes;
}

static void assert_filled(const struct frame *frame, uint32_t bytes, uint32_t seed)
{
	assert_int_equal(frame->bytes, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(frame->data[i], (uint8_t)(seed * 31 + i * 7));
}

static void send_from(struct fabric_queue *q, const struct peer *to, const uint32_t *bytes,
	uint32_t n, uint32_t first_seed)
{
	struct frame frames[BURST];
	assert_int_equal(fabric_base(q)->ops->alloc(q, frames, n), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_false(frames[i].received);
		assert_true(frames[i].room >= fabric_base(q)->payload_bytes_max);
		fill(&frames[i], bytes[i], first_seed + i);
		frames[i].peer = *to;
	}
	fabric_base(q)->ops->tx(q, frames, n);
}

static void release(struct fabric_queue *q, struct frame *frames, uint32_t n)
{
	fabric_base(q)->ops->release(q, frames, n);
}

static void x__a_burst_arrives_whole_and_in_order(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame got[BURST];
	uint32_t bytes[BURST];
	for (uint32_t i = 0; i < BURST; i++)
		bytes[i] = 64 + i;
	for (uint32_t round = 0; round < 20; round++) {
		send_from(pair->a, &pair->at_b, bytes, BURST, round);
		assert_int_equal(receive(pair, pair->b, got, BURST), BURST);
		for (uint32_t i = 0; i < BURST; i++) {
			assert_filled(&got[i], bytes[i], round + i);
			assert_true(got[i].received);
		}
		release(pair->b, got, BURST);
	}
}

static void x__every_size_from_empty_to_the_largest(void **state)
{
	struct contract_pair *pair = pair_of(state);
	uint32_t max = payload_max(pair);
	uint32_t step = max > 4096 ? max / 97 : 13;
	for (uint32_t bytes = 0; bytes <= max; bytes += bytes < 64 ? 1 : step) {
		struct frame got;
		send_from(pair->a, &pair->at_b, &bytes, 1, bytes);
		assert_int_equal(receive(pair, pair->b, &got, 1), 1);
		assert_filled(&got, bytes, bytes);
		release(pair->b, &got, 1);
	}
	struct frame got;
	send_from(pair->b, &pair->at_a, &max, 1, 3);
	assert_int_equal(receive(pair, pair->a, &got, 1), 1);
	assert_filled(&got, max, 3);
	release(pair->a, &got, 1);
}

static void x__the_source_is_known(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame got;
	uint32_t bytes = 8;
	send_from(pair->a, &pair->at_b, &bytes, 1, 1);
	assert_int_equal(receive(pair, pair->b, &got, 1), 1);
	assert_memory_equal(got.peer.ip, pair->at_a.ip, sizeof(got.peer.ip));
	assert_int_equal(got.peer.port, pair->at_a.port);
	assert_int_equal(got.peer.fabric, fabric_base(pair->b)->fabric);
	release(pair->b, &got, 1);
}

// The reply runs on the received frame, longer or shorter than the request, up to the largest.
static void x__a_received_frame_turns_in_place(void **state)
{
	struct contract_pair *pair = pair_of(state);
	uint32_t max = payload_max(pair);
	const uint32_t answer_bytes[] = {0, 1, 2, 63, 64, 65, max / 2, max - 1, max};
	for (uint32_t i = 0; i < ARRAY_COUNT(answer_bytes); i++) {
		struct frame frame;
		uint32_t bytes = 64;
		send_from(pair->a, &pair->at_b, &bytes, 1, i);
		assert_int_equal(receive(pair, pair->b, &frame, 1), 1);
		assert_true(frame.room >= max);
		fill(&frame, answer_bytes[i], 100 + i);
		fabric_base(pair->b)->ops->tx(pair->b, &frame, 1);
		assert_int_equal(receive(pair, pair->a, &frame, 1), 1);
		assert_filled(&frame, answer_bytes[i], 100 + i);
		assert_int_equal(frame.peer.port, pair->at_b.port);
		assert_memory_equal(frame.peer.ip, pair->at_b.ip, sizeof(frame.peer.ip));
		release(pair->a, &frame, 1);
	}
}

static void x__a_received_frame_can_be_sent_as_a_fresh_one(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame frame;
	uint32_t bytes = 40;
	send_from(pair->a, &pair->at_b, &bytes, 1, 5);
	assert_int_equal(receive(pair, pair->b, &frame, 1), 1);
	frame.peer = pair->at_a;
	frame.received = false;
	fabric_base(pair->b)->ops->tx(pair->b, &frame, 1);
	assert_int_equal(receive(pair, pair->a, &frame, 1), 1);
	assert_filled(&frame, 40, 5);
	release(pair->a, &frame, 1);
}

static void x__an_answer_to_the_stored_way_back_arrives(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame frame;
	uint32_t bytes = 40;
	send_from(pair->a, &pair->at_b, &bytes, 1, 5);
	assert_int_equal(receive(pair, pair->b, &frame, 1), 1);
	struct peer way_back = frame.peer;
	release(pair->b, &frame, 1);
	send_from(pair->b, &way_back, &bytes, 1, 6);
	assert_int_equal(receive(pair, pair->a, &frame, 1), 1);
	assert_filled(&frame, 40, 6);
	release(pair->a, &frame, 1);
}

// Takes every buffer there is and gives it back: the same number can be had again.
static void x__what_is_released_can_be_had_again(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame *frames = mem_zalloc(sizeof(*frames) * STOCK_MAX);
	uint32_t counts[2];
	assert_non_null(frames);
	for (uint32_t round = 0; round < 2; round++) {
		uint32_t held = 0, more;
		do {
			assert_true(held + BURST <= STOCK_MAX);
			more = fabric_base(pair->a)->ops->alloc(pair->a, frames + held, BURST);
			held += more;
		} while (more == BURST);
		counts[round] = held;
		for (uint32_t at = 0; at < held; at += BURST)
			release(pair->a, frames + at, held - at < BURST ? held - at : BURST);
	}
	assert_true(counts[0] >= BURST);
	assert_int_equal(counts[0], counts[1]);
	mem_free(frames);
}

static void x__sending_gives_the_buffers_back(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame got[BURST];
	uint32_t bytes[BURST];
	for (uint32_t i = 0; i < BURST; i++)
		bytes[i] = 16;
	for (uint32_t round = 0; round < 600; round++) {
		send_from(pair->a, &pair->at_b, bytes, BURST, round);
		assert_int_equal(receive(pair, pair->b, got, BURST), BURST);
		fabric_base(pair->b)->ops->tx(pair->b, got, BURST);
		assert_int_equal(receive(pair, pair->a, got, BURST), BURST);
		release(pair->a, got, BURST);
	}
}

static void P3__frames_and_bytes_are_counted(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct fabric_queue_stats a = fabric_base(pair->a)->stats, b = fabric_base(pair->b)->stats;
	struct frame got[3];
	const uint32_t bytes[3] = {10, 20, 30};
	send_from(pair->a, &pair->at_b, bytes, 3, 0);
	assert_int_equal(receive(pair, pair->b, got, 3), 3);
	release(pair->b, got, 3);
	assert_int_equal(fabric_base(pair->a)->stats.tx_frames - a.tx_frames, 3);
	assert_int_equal(fabric_base(pair->a)->stats.tx_bytes - a.tx_bytes, 60);
	assert_int_equal(fabric_base(pair->b)->stats.rx_frames - b.rx_frames, 3);
	assert_int_equal(fabric_base(pair->b)->stats.rx_bytes - b.rx_bytes, 60);
	assert_int_equal(fabric_base(pair->b)->stats.rx_malformed, b.rx_malformed);
}

static void P3__an_oversized_frame_is_refused_and_counted(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct fabric_queue_stats before = fabric_base(pair->a)->stats;
	struct frame frames[3];
	assert_int_equal(fabric_base(pair->a)->ops->alloc(pair->a, frames, 3), 3);
	for (uint32_t i = 0; i < 3; i++) {
		fill(&frames[i], 24, i);
		frames[i].peer = pair->at_b;
	}
	frames[1].bytes = payload_max(pair) + 1;
	fabric_base(pair->a)->ops->tx(pair->a, frames, 3);
	struct frame got[2];
	assert_int_equal(receive(pair, pair->b, got, 2), 2);
	assert_filled(&got[0], 24, 0);
	assert_filled(&got[1], 24, 2);
	release(pair->b, got, 2);
	assert_int_equal(fabric_base(pair->a)->stats.tx_too_large - before.tx_too_large, 1);
	assert_int_equal(fabric_base(pair->a)->stats.tx_frames - before.tx_frames, 2);
}

static void x__an_idle_queue_gives_nothing(void **state)
{
	struct contract_pair *pair = pair_of(state);
	struct frame frames[BURST];
	assert_int_equal(fabric_base(pair->a)->ops->rx(pair->a, frames, BURST), 0);
	assert_int_equal(fabric_base(pair->b)->ops->rx(pair->b, frames, BURST), 0);
}

int contract_run(const char *group, struct contract_pair *pair)
{
#define TEST(name) {#name, name, NULL, NULL, pair}
	const struct CMUnitTest tests[] = {
		TEST(x__a_burst_arrives_whole_and_in_order),
		TEST(x__every_size_from_empty_to_the_largest),
		TEST(x__the_source_is_known),
		TEST(x__a_received_frame_turns_in_place),
		TEST(x__a_received_frame_can_be_sent_as_a_fresh_one),
		TEST(x__an_answer_to_the_stored_way_back_arrives),
		TEST(x__what_is_released_can_be_had_again),
		TEST(x__sending_gives_the_buffers_back),
		TEST(P3__frames_and_bytes_are_counted),
		TEST(P3__an_oversized_frame_is_refused_and_counted),
		TEST(x__an_idle_queue_gives_nothing),
	};
#undef TEST
	return _cmocka_run_group_tests(group, tests, ARRAY_COUNT(tests), NULL, NULL);
}
