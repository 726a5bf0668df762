// SPDX-License-Identifier: BSD-3-Clause
// The histogram and the timer wheel.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/histogram.h"
#include "base/rng.h"
#include "base/wheel.h"

static void x__histogram_cells_cover_everything_in_order(void **state)
{
	(void)state;
	for (uint32_t cell = 0; cell < HISTOGRAM_CELLS; cell++) {
		uint64_t max = histogram_cell_max(cell);
		assert_int_equal(histogram_cell(max), cell);
		if (cell + 1 < HISTOGRAM_CELLS)
			assert_int_equal(histogram_cell(max + 1), cell + 1);
	}
	assert_true(histogram_cell_max(HISTOGRAM_CELLS - 1) == UINT64_MAX);
}

static void x__histogram_is_within_two_percent(void **state)
{
	(void)state;
	struct rng rng;
	rng_seed(&rng, 3);
	for (int i = 0; i < 100000; i++) {
		uint64_t value = rng_u64(&rng) >> rng_below(&rng, 64);
		uint64_t max = histogram_cell_max(histogram_cell(value));
		assert_true(max >= value);
		assert_true(max - value <= value / 64);
	}
}

static void x__histogram_ranks(void **state)
{
	(void)state;
	static struct histogram h, other;
	histogram_init(&h);
	assert_int_equal(histogram_at(&h, 50000), 0);
	for (uint64_t i = 1; i <= 100; i++)
		histogram_record(&h, i);
	assert_int_equal(histogram_at(&h, 0), 1);
	assert_int_equal(histogram_at(&h, 50000), 50);
	assert_int_equal(histogram_at(&h, 99000), 99);
	assert_int_equal(histogram_at(&h, 99900), 100);
	assert_int_equal(histogram_at(&h, 100000), 100);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 100);
	assert_int_equal(h.sum, 5050);
	histogram_init(&other);
	histogram_record(&other, 1000000);
	histogram_merge(&h, &other);
	assert_int_equal(h.count, 101);
	assert_int_equal(histogram_at(&h, 100000), 1000000); // never above what was recorded
}

enum { TIMERS = 20000 };
struct timer {
	struct wheel_node node;
	uint64_t due_ns;
	uint64_t fired_ns;
};

static void x__wheel_fires_each_timer_once_and_never_early(void **state)
{
	(void)state;
	struct wheel *wheel = calloc(1, sizeof(*wheel));
	struct timer *timers = calloc(TIMERS, sizeof(*timers));
	struct rng rng;
	uint64_t now = 77777777777;
	uint64_t cancelled = 0, fired = 0;
	rng_seed(&rng, 5);
	wheel_init(wheel, now);
	assert_true(wheel_next_ns(wheel) == UINT64_MAX);
	for (int i = 0; i < TIMERS; i++) {
		timers[i].due_ns = now + rng_below(&rng, 30000000000); // several rounds
		wheel_set(wheel, &timers[i].node, timers[i].due_ns);
	}
	for (int i = 0; i < TIMERS; i += 7, cancelled++) {
		wheel_cancel(&timers[i].node);
		wheel_cancel(&timers[i].node);
	}
	for (uint64_t end = now + 31000000000; now < end;) {
		uint64_t next = wheel_next_ns(wheel);
		now += 1 + rng_below(&rng, 20000000);
		struct wheel_node *node;
		while ((node = wheel_take(wheel, now))) {
			struct timer *timer = container_of(node, struct timer, node);
			assert_int_equal(timer->fired_ns, 0);
			assert_true(now >= timer->due_ns);
			assert_true(now >= next);
			timer->fired_ns = now;
			fired++;
		}
	}
	for (int i = 0; i < TIMERS; i++)
		if (timers[i].fired_ns != 0)
			assert_true(timers[i].fired_ns - timers[i].due_ns < 20000000 + (2u << WHEEL_TICK_SHIFT));
	assert_int_equal(fired + cancelled, TIMERS);
	assert_true(wheel_next_ns(wheel) == UINT64_MAX);
	free(timers);
	free(wheel);
}

static void x__wheel_survives_a_long_sleep(void **state)
{
	(void)state;
	struct wheel *wheel = calloc(1, sizeof(*wheel));
	struct timer near = {0}, far = {0};
	wheel_init(wheel, 0);
	wheel_set(wheel, &near.node, 1000000);
	wheel_set(wheel, &far.node, UINT64_C(3600) * 1000000000);
	struct wheel_node *node = wheel_take(wheel, UINT64_C(600) * 1000000000);
	assert_ptr_equal(node, &near.node);
	assert_null(wheel_take(wheel, UINT64_C(600) * 1000000000));
	assert_ptr_equal(wheel_take(wheel, UINT64_C(3601) * 1000000000), &far.node);
	free(wheel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__histogram_cells_cover_everything_in_order),
		cmocka_unit_test(x__histogram_is_within_two_percent),
		cmocka_unit_test(x__histogram_ranks),
		cmocka_unit_test(x__wheel_fires_each_timer_once_and_never_early),
		cmocka_unit_test(x__wheel_survives_a_long_sleep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
