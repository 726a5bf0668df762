// SPDX-License-Identifier: BSD-3-Clause
#include "lane/ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"

static void *number(uintptr_t n)
{
	return (void *)n;
}

static void L8__a_full_ring_refuses_and_overwrites_nothing(void **state)
{
	struct ring *ring = ring_create(8);
	void *in[16], *out[16];

	(void)state;
	for (uintptr_t i = 0; i < 16; i++)
		in[i] = number(i + 1);
	assert_non_null(ring);
	assert_int_equal(ring_pop(ring, out, 16), 0);
	assert_int_equal(ring_push(ring, in, 5), 5);
	assert_int_equal(ring_push(ring, in + 5, 11), 3); // from the front, what fits
	assert_int_equal(ring_push(ring, in, 1), 0);
	assert_int_equal(ring_count(ring), 8);
	assert_int_equal(ring_pop(ring, out, 3), 3);
	assert_int_equal(ring_push(ring, in + 8, 8), 3);
	assert_int_equal(ring_pop(ring, out + 3, 13), 8);
	for (uintptr_t i = 0; i < 11; i++)
		assert_ptr_equal(out[i], number(i + 1));
	assert_int_equal(ring_count(ring), 0);
	ring_destroy(ring);
	ring_destroy(NULL);
}

static void L7_L8__order_holds_over_the_wrap_of_the_indexes(void **state)
{
	struct ring *ring = ring_create(4);
	uintptr_t in = 1, out = 1;
	struct rng rng;

	(void)state;
	// Just before the 32-bit indexes wrap.
	atomic_store(&ring->tail, UINT32_MAX - 5);
	atomic_store(&ring->head, UINT32_MAX - 5);
	ring->tail_seen = ring->head_seen = UINT32_MAX - 5;
	rng_seed(&rng, 3);
	for (int step = 0; step < 10000; step++) {
		void *burst[4];
		uint32_t n = 1 + (uint32_t)rng_below(&rng, 4);
		if (rng_below(&rng, 2) == 0) {
			for (uint32_t i = 0; i < n; i++)
				burst[i] = number(in + i);
			in += ring_push(ring, burst, n);
		} else {
			n = ring_pop(ring, burst, n);
			for (uint32_t i = 0; i < n; i++)
				assert_ptr_equal(burst[i], number(out++));
		}
		assert_int_equal(ring_count(ring), in - out);
	}
	ring_destroy(ring);
}

static void x__create_reports_short_memory(void **state)
{
	(void)state;
	mem_fail_nth(1, 0);
	assert_null(ring_create(8));
	mem_fail_nth(0, 0);
}

enum { ITEMS = 2000000 };

struct transfer {
	struct ring *ring;
	_Atomic bool fed;
	uint64_t wrong;
	uintptr_t received;
};

static void *feed(void *arg)
{
	struct transfer *t = arg;
	struct rng rng;
	uintptr_t next = 1;

	rng_seed(&rng, 11);
	while (next <= ITEMS) {
		void *burst[32];
		uint32_t n = 1 + (uint32_t)rng_below(&rng, 32);
		if (n > ITEMS - next + 1)
			n = (uint32_t)(ITEMS - next + 1);
		for (uint32_t i = 0; i < n; i++)
			burst[i] = number(next + i);
		uint32_t pushed = ring_push(t->ring, burst, n);
		if (pushed == 0)
			sched_yield();
		next += pushed;
	}
	atomic_store(&t->fed, true);
	return NULL;
}

static void *drain(void *arg)
{
	struct transfer *t = arg;

	for (;;) {
		void *burst[32];
		bool fed = atomic_load(&t->fed); // before the look, so that nothing is left behind
		uint32_t n = ring_pop(t->ring, burst, 32);
		for (uint32_t i = 0; i < n; i++)
			t->wrong += burst[i] != number(++t->received);
		if (n == 0 && fed)
			return NULL;
		if (n == 0)
			sched_yield();
	}
}

static void L7_L8__two_threads_lose_double_and_reorder_nothing(void **state)
{
	struct transfer t = {.ring = ring_create(64)};
	pthread_t producer, consumer;

	(void)state;
	assert_non_null(t.ring);
	assert_int_equal(pthread_create(&producer, NULL, feed, &t), 0);
	assert_int_equal(pthread_create(&consumer, NULL, drain, &t), 0);
	pthread_join(producer, NULL);
	pthread_join(consumer, NULL);
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.received, ITEMS);
	assert_int_equal(ring_count(t.ring), 0);
	ring_destroy(t.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L8__a_full_ring_refuses_and_overwrites_nothing),
		cmocka_unit_test(L7_L8__order_holds_over_the_wrap_of_the_indexes),
		cmocka_unit_test(x__create_reports_short_memory),
		cmocka_unit_test(L7_L8__two_threads_lose_double_and_reorder_nothing),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
