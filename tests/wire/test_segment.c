// SPDX-License-Identifier: BSD-3-Clause
// Both sides of segmentation against each other over a link that loses, repeats and reorders.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "wire/segment.h"

enum {
	UNIT = 1024,
	LARGEST = WIRE_MESSAGE_BYTES_MAX,
	WORDS_MAX = SEG_COUNT_MAX / 64,
	LINK_MAX = 4096,
};

struct packet { // a segment (index) or a report
	bool is_ack, ask;
	uint32_t index;
	struct seg_ack ack;
};

struct link {
	struct rng rng;
	uint32_t loss, repeat, reorder; // percent
	struct packet waiting[LINK_MAX];
	uint32_t count;
};

static bool chance(struct link *l, uint32_t percent)
{
	return rng_below(&l->rng, 100) < percent;
}

static void link_put(struct link *l, struct packet p)
{
	if (chance(l, l->loss))
		return;
	uint32_t copies = chance(l, l->repeat) ? 2 : 1;
	for (uint32_t i = 0; i < copies && l->count < LINK_MAX; i++)
		l->waiting[l->count++] = p;
}

static bool link_take(struct link *l, struct packet *out)
{
	if (l->count == 0)
		return false;
	uint32_t at = chance(l, l->reorder) ? (uint32_t)rng_below(&l->rng, l->count) : 0;
	*out = l->waiting[at];
	memmove(&l->waiting[at], &l->waiting[at + 1], (--l->count - at) * sizeof(l->waiting[0]));
	return true;
}

struct run {
	struct link link;
	struct seg_tx tx;
	struct seg_rx rx;
	uint64_t tx_bits[WORDS_MAX], rx_bits[WORDS_MAX];
	uint16_t window;
	uint32_t sent, kept, wholes, timeouts;
	uint8_t *source, *target; // NULL: contents are not checked
};

static void run_send(struct run *r)
{
	uint32_t index;
	while (seg_tx_next(&r->tx, &index)) {
		assert_true(index < r->tx.count);
		assert_true(r->tx.next - r->tx.base <= SEG_WINDOW_MAX);
		r->sent++;
		link_put(&r->link, (struct packet){.index = index, .ask = seg_tx_spent(&r->tx)});
	}
	assert_true(seg_tx_spent(&r->tx));
}

static void run_receive(struct run *r, const struct packet *p)
{
	uint32_t offset = seg_tx_offset(&r->tx, p->index);
	uint16_t bytes = seg_tx_bytes(&r->tx, p->index);
	enum seg_rx_verdict verdict =
		seg_rx_accept(&r->rx, r->tx.total_bytes, offset, bytes, r->tx.unit);
	assert_int_not_equal(verdict, SEG_RX_MISMATCH);
	if (verdict == SEG_RX_KEPT || verdict == SEG_RX_WHOLE) {
		r->kept++;
		if (r->target != NULL)
			memcpy(r->target + offset, r->source + offset, bytes);
	}
	r->wholes += verdict == SEG_RX_WHOLE;
	if (!seg_rx_due(&r->rx, r->window, p->ask))
		return;
	struct packet answer = {.is_ack = true};
	seg_rx_report(&r->rx, r->window, r->rx.got == r->rx.count, &answer.ack);
	link_put(&r->link, answer);
}

// To completion; silence is what ends a wait, so no clock is needed.
static void run_all(struct run *r, uint32_t total, uint16_t unit)
{
	seg_tx_init(&r->tx, r->tx_bits, total, unit, r->window);
	seg_rx_init(&r->rx, r->rx_bits, total, unit);
	uint64_t steps = 0, steps_max = 2000000;
	while (!r->tx.done) {
		struct packet p;
		run_send(r);
		if (!link_take(&r->link, &p)) {
			r->timeouts++;
			seg_tx_timeout(&r->tx);
		} else if (p.is_ack) {
			seg_tx_ack(&r->tx, &p.ack);
		} else {
			run_receive(r, &p);
		}
		assert_true(++steps < steps_max);
	}
	assert_int_equal(r->kept, r->rx.count);
	assert_int_equal(r->wholes, 1);
	assert_int_equal(r->rx.base, r->rx.count);
}

static struct run *run_new(uint64_t seed, uint16_t window)
{
	struct run *r = calloc(1, sizeof(*r));
	assert_non_null(r);
	rng_seed(&r->link.rng, seed);
	r->window = window;
	return r;
}

static void M8__a_clean_link_carries_each_segment_once(void **state)
{
	(void)state;
	const uint16_t windows[] = {1, 2, 3, 64, 255, 256};
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct run *r = run_new(1, windows[i]);
		run_all(r, 300 * UNIT + 17, UNIT);
		assert_int_equal(r->sent, 301);
		assert_int_equal(r->timeouts, 0);
		free(r);
	}
}

static void M8_M9__lost_repeated_reordered_segments_arrive_whole(void **state)
{
	(void)state;
	uint8_t *source = malloc(400 * 1500), *target = malloc(400 * 1500);
	assert_true(source != NULL && target != NULL);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct rng rng;
		rng_seed(&rng, seed);
		struct run *r = run_new(seed, (uint16_t)(1 + rng_below(&rng, SEG_WINDOW_MAX)));
		r->link.loss = (uint32_t)rng_below(&rng, 50);
		r->link.repeat = (uint32_t)rng_below(&rng, 30);
		r->link.reorder = (uint32_t)rng_below(&rng, 60);
		uint16_t unit = (uint16_t)(1024 + rng_below(&rng, 477));
		uint32_t total = unit + 1 + (uint32_t)rng_below(&rng, 399 * unit - 1);
		for (uint32_t i = 0; i < total; i++)
			source[i] = (uint8_t)rng_u64(&rng);
		memset(target, 0, total);
		r->source = source;
		r->target = target;
		run_all(r, total, unit);
		assert_memory_equal(source, target, total);
		free(r);
	}
	free(source);
	free(target);
}

static uint32_t sent_for_largest(uint32_t reorder)
{
	struct run *r = run_new(7, SEG_WINDOW_MAX);
	r->link.loss = 10;
	r->link.reorder = reorder;
	run_all(r, LARGEST, UNIT);
	assert_int_equal(r->rx.count, SEG_COUNT_MAX);
	uint32_t sent = r->sent;
	free(r);
	return sent;
}

static void M8__the_largest_message_in_the_smallest_segments(void **state)
{
	(void)state;
	// A tenth is lost each way, so a ninth more is the least; far more would be a storm.
	// Segments that overtake a whole window look lost, so then more is sent.
	assert_in_range(sent_for_largest(0), SEG_COUNT_MAX * 11 / 10, SEG_COUNT_MAX * 5 / 4);
	assert_in_range(sent_for_largest(5), SEG_COUNT_MAX * 11 / 10, SEG_COUNT_MAX * 2);
}

static void M8__one_gap_is_repeated_once_however_often_reported(void **state)
{
	(void)state;
	uint64_t tx_bits[4], rx_bits[4];
	struct seg_tx tx;
	struct seg_rx rx;
	struct seg_ack ack;
	uint32_t index;
	seg_tx_init(&tx, tx_bits, 100 * UNIT, UNIT, 64);
	seg_rx_init(&rx, rx_bits, 100 * UNIT, UNIT);
	for (uint32_t i = 0; i < 20; i++) {
		assert_true(seg_tx_next(&tx, &index));
		if (index != 5)
			assert_int_equal(seg_rx_accept(&rx, 100 * UNIT, index * UNIT, UNIT, UNIT),
				SEG_RX_KEPT);
	}
	seg_rx_report(&rx, 64, false, &ack);
	assert_int_equal(ack.base, 5);
	assert_int_equal(ack.bits[0], (1u << 14) - 1);
	seg_tx_ack(&tx, &ack);
	assert_true(seg_tx_next(&tx, &index));
	assert_int_equal(index, 5);
	for (int i = 0; i < 10; i++) {
		seg_tx_ack(&tx, &ack);
		assert_true(seg_tx_next(&tx, &index));
		assert_int_equal(index, 20 + i);
	}
	// Segment 20 was first sent after the repetition and is here; 5 is not: it is due again.
	assert_int_equal(seg_rx_accept(&rx, 100 * UNIT, 20 * UNIT, UNIT, UNIT), SEG_RX_KEPT);
	seg_rx_report(&rx, 64, false, &ack);
	seg_tx_ack(&tx, &ack);
	assert_true(seg_tx_next(&tx, &index));
	assert_int_equal(index, 5);
}

static void M8__the_window_bounds_what_is_under_way(void **state)
{
	(void)state;
	uint64_t bits[4];
	struct seg_tx tx;
	uint32_t index, n = 0;
	seg_tx_init(&tx, bits, 200 * UNIT, UNIT, 10);
	while (seg_tx_next(&tx, &index))
		n++;
	assert_int_equal(n, 10);
	struct seg_ack ack = {.base = 4, .window = 20};
	seg_tx_ack(&tx, &ack);
	while (seg_tx_next(&tx, &index))
		n++;
	assert_int_equal(n, 24);
	ack = (struct seg_ack){.base = 24, .window = 1};
	seg_tx_ack(&tx, &ack);
	assert_true(seg_tx_next(&tx, &index));
	assert_false(seg_tx_next(&tx, &index));
	ack = (struct seg_ack){.base = 26, .window = 256}; // 25 was never sent
	seg_tx_ack(&tx, &ack);
	assert_int_equal(tx.base, 24);
	assert_false(seg_tx_next(&tx, &index));
	ack = (struct seg_ack){.base = 24, .window = 256, .bits = {~0ull, ~0ull, ~0ull, ~0ull}};
	seg_tx_ack(&tx, &ack); // bits of what was never sent do not count
	assert_int_equal(tx.base, 24);
	seg_tx_init(&tx, bits, 200 * UNIT, UNIT, 0);
	assert_int_equal(tx.window, 1);
}

static void M8__silence_makes_everything_unacknowledged_due_again(void **state)
{
	(void)state;
	uint64_t bits[4];
	struct seg_tx tx;
	uint32_t index;
	seg_tx_init(&tx, bits, 4 * UNIT, UNIT, 256);
	seg_tx_timeout(&tx); // nothing sent yet: nothing due again
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(seg_tx_next(&tx, &index));
		assert_int_equal(index, i);
	}
	struct seg_ack ack = {.base = 0, .window = 256, .bits = {1}}; // segment 1
	seg_tx_ack(&tx, &ack);
	assert_true(seg_tx_next(&tx, &index)); // the gap
	assert_int_equal(index, 0);
	assert_false(seg_tx_next(&tx, &index));
	seg_tx_timeout(&tx);
	const uint32_t want[] = {0, 2, 3};
	for (size_t i = 0; i < 3; i++) {
		assert_true(seg_tx_next(&tx, &index));
		assert_int_equal(index, want[i]);
	}
	assert_false(seg_tx_next(&tx, &index));
	ack = (struct seg_ack){.base = 4, .window = 256};
	seg_tx_ack(&tx, &ack);
	assert_false(seg_tx_next(&tx, &index));
	seg_tx_timeout(&tx); // all there, not done: the last one asks
	assert_false(seg_tx_spent(&tx));
	assert_true(seg_tx_next(&tx, &index));
	assert_int_equal(index, 3);
	assert_false(seg_tx_next(&tx, &index));
	ack.done = 1;
	seg_tx_ack(&tx, &ack);
	seg_tx_timeout(&tx);
	assert_false(seg_tx_next(&tx, &index));
}

static void M8__what_does_not_fit_the_first_segment_is_a_mismatch(void **state)
{
	(void)state;
	uint64_t bits[1];
	struct seg_rx rx;
	seg_rx_init(&rx, bits, 2500, UNIT);
	const struct {
		uint32_t total, offset;
		uint16_t bytes, unit;
		enum seg_rx_verdict verdict;
	} cases[] = {
		{2500, 1024, 1024, 1024, SEG_RX_KEPT},
		{2500, 1024, 1024, 1024, SEG_RX_REPEAT},
		{2501, 0, 1024, 1024, SEG_RX_MISMATCH},
		{2500, 0, 1024, 1025, SEG_RX_MISMATCH},
		{2500, 1, 1024, 1024, SEG_RX_MISMATCH},
		{2500, 3072, 1024, 1024, SEG_RX_MISMATCH},
		{2500, 4294966272u, 1024, 1024, SEG_RX_MISMATCH},
		{2500, 0, 1023, 1024, SEG_RX_MISMATCH},
		{2500, 2048, 453, 1024, SEG_RX_MISMATCH},
		{2500, 2048, 451, 1024, SEG_RX_MISMATCH},
		{2500, 2048, 0, 1024, SEG_RX_MISMATCH},
		{2500, 2048, 452, 1024, SEG_RX_KEPT},
		{2500, 0, 1024, 1024, SEG_RX_WHOLE},
		{2500, 0, 1024, 1024, SEG_RX_REPEAT},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(seg_rx_accept(&rx, cases[i].total, cases[i].offset, cases[i].bytes,
					 cases[i].unit),
			cases[i].verdict);
}

static void M8__a_report_is_due_at_half_a_window_a_gap_and_the_end(void **state)
{
	(void)state;
	uint64_t bits[1];
	struct seg_rx rx;
	seg_rx_init(&rx, bits, 10 * UNIT, UNIT);
	const struct {
		uint32_t index;
		bool ask, due;
	} cases[] = {
		{0, false, false}, {1, false, true}, // half of 4
		{2, false, false}, {4, false, true}, // 3 is missing
		{4, false, false}, {4, false, true}, // repeats count as arrivals
		{5, false, false}, {6, true, true},  // asked
		{7, false, false}, {8, false, true}, // half again
		{9, false, false}, {3, false, true}, // whole
		{3, false, true},                    // a repeat of the whole: the report was lost
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum seg_rx_verdict v =
			seg_rx_accept(&rx, 10 * UNIT, cases[i].index * UNIT, UNIT, UNIT);
		assert_int_not_equal(v, SEG_RX_MISMATCH);
		assert_int_equal(seg_rx_due(&rx, 4, cases[i].ask), cases[i].due);
	}
	assert_int_equal(rx.got, 10);
}

static void M8__a_gap_and_the_end_are_reported_at_once(void **state)
{
	(void)state;
	uint64_t bits[1];
	struct seg_rx rx;
	seg_rx_init(&rx, bits, 5 * UNIT, UNIT);
	const struct {
		uint32_t index;
		bool due;
	} cases[] = {{0, false}, {2, true}, {3, false}, {1, false}, {4, true}, {4, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum seg_rx_verdict v =
			seg_rx_accept(&rx, 5 * UNIT, cases[i].index * UNIT, UNIT, UNIT);
		assert_int_not_equal(v, SEG_RX_MISMATCH);
		assert_int_equal(seg_rx_due(&rx, SEG_WINDOW_MAX, false), cases[i].due);
	}
}

static void M8__a_report_covers_256_segments_past_the_first_missing(void **state)
{
	(void)state;
	uint64_t bits[8];
	struct seg_rx rx;
	struct seg_ack ack;
	seg_rx_init(&rx, bits, 400 * UNIT, UNIT);
	for (uint32_t i = 1; i < 300; i++)
		assert_int_equal(seg_rx_accept(&rx, 400 * UNIT, i * UNIT, UNIT, UNIT), SEG_RX_KEPT);
	seg_rx_report(&rx, 256, false, &ack);
	assert_int_equal(ack.base, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ack.bits[i], UINT64_MAX);
	assert_int_equal(ack.reserved, 0);
	assert_int_equal(seg_rx_accept(&rx, 400 * UNIT, 0, UNIT, UNIT), SEG_RX_KEPT);
	seg_rx_report(&rx, 256, true, &ack);
	assert_int_equal(ack.base, 300);
	assert_int_equal(ack.bits[0], 0);
	assert_int_equal(ack.done, 1);
}

static void M8__random_bytes_never_break_either_side(void **state)
{
	(void)state;
	struct rng rng;
	rng_seed(&rng, 99);
	uint64_t tx_bits[16], rx_bits[16];
	struct seg_tx tx;
	struct seg_rx rx;
	seg_tx_init(&tx, tx_bits, 900 * UNIT, UNIT, 64);
	seg_rx_init(&rx, rx_bits, 900 * UNIT, UNIT);
	for (int i = 0; i < 200000; i++) {
		uint8_t body[SEG_ACK_BYTES];
		struct seg_ack ack;
		uint32_t index;
		for (size_t k = 0; k < sizeof(body); k++)
			body[k] = (uint8_t)(rng_u64(&rng) & rng_u64(&rng));
		memset(body + 40, 0, 8);
		body[2] = body[3] = body[5] = body[6] = body[7] = 0;
		body[1] &= 3;
		if (seg_ack_decode(span_of(body, sizeof(body)), &ack))
			seg_tx_ack(&tx, &ack);
		if (rng_below(&rng, 50) == 0)
			seg_tx_timeout(&tx);
		if (seg_tx_next(&tx, &index))
			assert_true(index < 900);
		enum seg_rx_verdict verdict = seg_rx_accept(
			&rx, 900 * UNIT, (uint32_t)rng_below(&rng, 1000) * UNIT, UNIT, UNIT);
		assert_in_range(verdict, SEG_RX_KEPT, SEG_RX_MISMATCH);
		assert_true(rx.got <= rx.count && rx.base <= rx.count);
		assert_true(tx.base <= tx.next && tx.next <= tx.count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M8__a_clean_link_carries_each_segment_once),
		cmocka_unit_test(M8_M9__lost_repeated_reordered_segments_arrive_whole),
		cmocka_unit_test(M8__the_largest_message_in_the_smallest_segments),
		cmocka_unit_test(M8__one_gap_is_repeated_once_however_often_reported),
		cmocka_unit_test(M8__the_window_bounds_what_is_under_way),
		cmocka_unit_test(M8__silence_makes_everything_unacknowledged_due_again),
		cmocka_unit_test(M8__what_does_not_fit_the_first_segment_is_a_mismatch),
		cmocka_unit_test(M8__a_report_is_due_at_half_a_window_a_gap_and_the_end),
		cmocka_unit_test(M8__a_gap_and_the_end_are_reported_at_once),
		cmocka_unit_test(M8__a_report_covers_256_segments_past_the_first_missing),
		cmocka_unit_test(M8__random_bytes_never_break_either_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
