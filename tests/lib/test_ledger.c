// SPDX-License-Identifier: BSD-3-Clause
#include "ledger/ledger.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jemalloc/jemalloc.h>

#include "base/rng.h"
#include "lane/ring.h"

// ---- L2 ----

static void L2__size_class_is_what_the_allocator_takes(void **state)
{
	uint64_t differ = 0;

	(void)state;
	for (size_t bytes = 1; bytes <= 4000000; bytes++)
		differ += ledger_size_class(bytes) != nallocx(bytes, 0);
	assert_int_equal(differ, 0);
	for (size_t bytes = 4000000; bytes <= LEDGER_ITEM_BYTES_MAX; bytes += 4093)
		differ += ledger_size_class(bytes) != nallocx(bytes, 0);
	for (unsigned log2 = 12; log2 <= 25; log2++)
		for (int around = -1; around <= 1; around++) {
			size_t bytes = ((size_t)1 << log2) + (size_t)around;
			differ += ledger_size_class(bytes) != nallocx(bytes, 0);
		}
	assert_int_equal(differ, 0);
	// Beyond items (nobody allocates them, somebody may ask): still the truth.
	assert_int_equal(
		ledger_size_class(LEDGER_ITEM_BYTES_MAX * UINT64_C(3)), nallocx(100663296, 0));
}

static void L2_I12__an_empty_item_costs_more_than_nothing(void **state)
{
	(void)state;
	assert_int_equal(ledger_charge_of(LEDGER_MEASURED, sizeof(struct item_head), 0), 16);
	assert_true(ledger_size_class(0) > 0);
	assert_int_equal(
		ledger_charge_of(LEDGER_FIXED, sizeof(struct item_head), 0), LEDGER_FIXED_OVERHEAD_BYTES);
}

static void L2__measured_charges_the_block_and_fixed_the_payload(void **state)
{
	(void)state;
	// A block just over a class pays the next one: 129 asked, 160 taken.
	assert_int_equal(ledger_charge_of(LEDGER_MEASURED, 129, 1), 160);
	assert_int_equal(ledger_charge_of(LEDGER_MEASURED, 1100, 1000), 1280);
	assert_int_equal(ledger_charge_of(LEDGER_FIXED, 1100, 1000), 1256);
	assert_int_equal(ledger_charge_of(LEDGER_FIXED, 1, 1), 257);
}

// The tables of docs/LEDGER.md.
static void L2__the_examples_of_the_page_hold(void **state)
{
	static const struct {
		uint32_t payload, measured, fixed;
	} rows[] = {{0, 224, 256}, {100, 320, 356}, {1000, 1280, 1256}, {4000, 5120, 4256},
		{1048576, 1310720, 1048832}};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		size_t block = 200 + (size_t)rows[i].payload;
		assert_int_equal(ledger_charge_of(LEDGER_MEASURED, block, rows[i].payload),
			rows[i].measured);
		assert_int_equal(
			ledger_charge_of(LEDGER_FIXED, block, rows[i].payload), rows[i].fixed);
	}
}

// ---- P ----

static void assert_books(const struct ledger_process *p, const struct ledger_shard *a,
	const struct ledger_shard *b, const uint64_t expected[5])
{
	assert_int_equal(p->mark_bytes - ledger_process_taken(p), expected[0]);
	assert_int_equal(a->budget_bytes, expected[1]);
	assert_int_equal(a->charged_bytes, expected[2]);
	assert_int_equal(b->budget_bytes, expected[3]);
	assert_int_equal(b->charged_bytes, expected[4]);
}

static void P1__the_example_of_the_page_holds(void **state)
{
	struct ledger_process p;
	struct ledger_shard a, b;

	(void)state;
	ledger_process_init(&p, 1 << 20);
	ledger_shard_init(&a, &p);
	ledger_shard_init(&b, &p);
	assert_books(&p, &a, &b, (uint64_t[]){1048576, 0, 0, 0, 0});
	assert_true(ledger_charge(&a, 1000));
	assert_books(&p, &a, &b, (uint64_t[]){1014808, 32768, 1000, 0, 0});
	assert_true(ledger_charge(&a, 1000));
	assert_books(&p, &a, &b, (uint64_t[]){1014808, 31768, 2000, 0, 0});
	assert_true(ledger_charge(&b, 900000));
	assert_books(&p, &a, &b, (uint64_t[]){82040, 31768, 2000, 32768, 900000});
	ledger_hand_out(&b, 900000);
	assert_books(&p, &a, &b, (uint64_t[]){82040, 31768, 2000, 32768, 0});
	ledger_hand_in(&a, 900000);
	assert_books(&p, &a, &b, (uint64_t[]){82040, 31768, 902000, 32768, 0});
	ledger_release(&a, 900000);
	assert_books(&p, &a, &b, (uint64_t[]){981040, 32768, 2000, 32768, 0});
}

static void P1__the_mark_refuses_exactly_when_one_shard_is_alone(void **state)
{
	struct ledger_process p;
	struct ledger_shard s;

	(void)state;
	ledger_process_init(&p, 1000000);
	ledger_shard_init(&s, &p);
	assert_true(ledger_charge(&s, 999999));
	assert_false(ledger_charge(&s, 2));
	assert_int_equal(s.charged_bytes, 999999); // P3: a refusal changes nothing
	assert_true(ledger_charge(&s, 1));
	assert_false(ledger_charge(&s, 1));
	assert_int_equal(ledger_process_taken(&p), 1000000);
	ledger_release(&s, 1000000);
	assert_true(s.budget_bytes <= LEDGER_CHUNK_BYTES);
	ledger_shard_trim(&s);
	assert_int_equal(ledger_process_taken(&p), 0);
}

static void P1__a_mark_smaller_than_a_chunk_works(void **state)
{
	struct ledger_process p;
	struct ledger_shard s;

	(void)state;
	ledger_process_init(&p, 100);
	ledger_shard_init(&s, &p);
	assert_false(ledger_charge(&s, 101));
	assert_true(ledger_charge(&s, 60));
	assert_true(ledger_charge(&s, 40));
	assert_false(ledger_charge(&s, 1));
	ledger_release(&s, 40);
	assert_true(ledger_charge(&s, 40));
	ledger_release(&s, 100);
	ledger_shard_trim(&s);
	assert_int_equal(ledger_process_taken(&p), 0);
}

static void P1__early_refusal_is_at_most_the_idle_budget_of_the_others(void **state)
{
	enum { OTHERS = 7 };
	const uint64_t mark = 4 << 20;
	struct ledger_process p;
	struct ledger_shard others[OTHERS], s;
	uint64_t charged = 0;

	(void)state;
	ledger_process_init(&p, mark);
	ledger_shard_init(&s, &p);
	for (int i = 0; i < OTHERS; i++) {
		ledger_shard_init(&others[i], &p);
		// The most idle that a shard can be left with.
		assert_true(ledger_charge(&others[i], 1));
		assert_true(ledger_charge(&others[i], 32 * 1024));
		ledger_release(&others[i], 32 * 1024);
		ledger_release(&others[i], 1);
		assert_true(others[i].budget_bytes <= LEDGER_CHUNK_BYTES);
		assert_true(others[i].budget_bytes > 0);
	}
	while (charged <= mark && ledger_charge(&s, 1000))
		charged += 1000;
	assert_true(charged > mark - OTHERS * LEDGER_CHUNK_BYTES - 1000);
	assert_true(charged <= mark);
	// Trimmed (they sleep), nothing of the mark is out of reach.
	for (int i = 0; i < OTHERS; i++)
		ledger_shard_trim(&others[i]);
	while (charged <= mark && ledger_charge(&s, 1000))
		charged += 1000;
	assert_true(charged > mark - 1000);
	assert_true(ledger_process_taken(&p) <= mark);
}

static void P1__idle_budget_never_exceeds_a_chunk(void **state)
{
	struct ledger_process p;
	struct ledger_shard s;
	struct rng rng;
	uint64_t held[64] = {0};

	(void)state;
	ledger_process_init(&p, 256 << 20);
	ledger_shard_init(&s, &p);
	rng_seed(&rng, 5);
	for (int step = 0; step < 200000; step++) {
		uint64_t *slot = &held[rng_below(&rng, ARRAY_COUNT(held))];
		if (*slot != 0) {
			ledger_release(&s, *slot);
			*slot = 0;
		} else {
			uint64_t bytes = rng_below(&rng, 1 << (1 + rng_below(&rng, 20)));
			if (ledger_charge(&s, bytes))
				*slot = bytes;
		}
		assert_true(s.budget_bytes <= LEDGER_CHUNK_BYTES);
		assert_int_equal(ledger_process_taken(&p), s.budget_bytes + s.charged_bytes);
	}
}

static void P1__bytes_between_two_workers_stay_taken(void **state)
{
	struct ledger_process p;
	struct ledger_shard giver, taker;

	(void)state;
	ledger_process_init(&p, 1 << 20);
	ledger_shard_init(&giver, &p);
	ledger_shard_init(&taker, &p);
	assert_true(ledger_charge(&giver, 1 << 19));
	ledger_hand_out(&giver, 1 << 19);
	assert_int_equal(giver.charged_bytes, 0);
	ledger_shard_trim(&giver);
	assert_int_equal(ledger_process_taken(&p), 1 << 19);
	assert_false(ledger_charge(&taker, (1 << 19) + 1));
	ledger_hand_in(&taker, 1 << 19);
	ledger_release(&taker, 1 << 19);
	ledger_shard_trim(&taker);
	assert_int_equal(ledger_process_taken(&p), 0);
}

// ---- storm: shards charge, hand over and release; a sampler watches the central word ----

enum { SHARDS = 4, STEPS = 40000, IN_HAND = 32 };

struct storm {
	struct ledger_process process;
	_Atomic uint64_t overshoots;
	_Atomic uint64_t refused;
	_Atomic uint64_t idle_overshoots;
	_Atomic int running;
	_Atomic uint64_t charged; // all shards and rings, counted apart: charged first, so a lower bound
	struct ring *to_next[SHARDS];
};

struct storm_shard {
	struct storm *storm;
	int index;
	pthread_t thread;
	struct ledger_shard shard;
};

static void charge_one(struct storm_shard *self, struct rng *rng, uint64_t *slot)
{
	struct storm *storm = self->storm;
	uint64_t bytes = 1 + rng_below(rng, 1 << (4 + rng_below(rng, 17))); // up to 1 MiB

	if (!ledger_charge(&self->shard, bytes)) {
		atomic_fetch_add(&storm->refused, 1);
		return;
	}
	*slot = bytes;
	if (atomic_fetch_add(&storm->charged, bytes) + bytes > storm->process.mark_bytes)
		atomic_fetch_add(&storm->overshoots, 1);
}

static void release_one(struct storm_shard *self, uint64_t bytes)
{
	atomic_fetch_sub(&self->storm->charged, bytes);
	ledger_release(&self->shard, bytes);
}

static void hand_over(struct storm_shard *self, uint64_t *slot)
{
	void *item = (void *)(uintptr_t)*slot;

	ledger_hand_out(&self->shard, *slot);
	if (ring_push(self->storm->to_next[self->index], &item, 1) == 1)
		*slot = 0;
	else
		ledger_hand_in(&self->shard, *slot);
}

static void take_over(struct storm_shard *self)
{
	void *item;

	while (ring_pop(self->storm->to_next[(self->index + SHARDS - 1) % SHARDS], &item, 1) == 1) {
		ledger_hand_in(&self->shard, (uintptr_t)item);
		release_one(self, (uintptr_t)item);
	}
}

static void *storm_run(void *arg)
{
	struct storm_shard *self = arg;
	uint64_t held[IN_HAND] = {0};
	struct rng rng;

	rng_seed(&rng, 900 + (uint64_t)self->index);
	for (int step = 0; step < STEPS; step++) {
		uint64_t *slot = &held[rng_below(&rng, IN_HAND)];
		if (*slot == 0) {
			charge_one(self, &rng, slot);
		} else if (rng_below(&rng, 4) == 0) {
			hand_over(self, slot);
		} else {
			release_one(self, *slot);
			*slot = 0;
		}
		if (self->shard.budget_bytes > LEDGER_CHUNK_BYTES)
			atomic_fetch_add(&self->storm->idle_overshoots, 1);
		take_over(self);
	}
	for (int i = 0; i < IN_HAND; i++)
		if (held[i] != 0)
			release_one(self, held[i]);
	atomic_fetch_sub(&self->storm->running, 1);
	while (atomic_load(&self->storm->running) > 0) {
		take_over(self);
		sched_yield();
	}
	take_over(self);
	ledger_shard_trim(&self->shard);
	return NULL;
}

static void P1_P2_P3_I10__shards_in_a_storm_never_pass_the_mark_and_end_at_zero(void **state)
{
	struct storm storm = {.running = SHARDS};
	struct storm_shard shards[SHARDS];

	(void)state;
	ledger_process_init(&storm.process, 8 << 20);
	for (int i = 0; i < SHARDS; i++) {
		storm.to_next[i] = ring_create(64);
		assert_non_null(storm.to_next[i]);
		shards[i] = (struct storm_shard){.storm = &storm, .index = i};
		ledger_shard_init(&shards[i].shard, &storm.process);
	}
	for (int i = 0; i < SHARDS; i++)
		assert_int_equal(pthread_create(&shards[i].thread, NULL, storm_run, &shards[i]), 0);
	while (atomic_load(&storm.running) > 0) {
		if (ledger_process_taken(&storm.process) > storm.process.mark_bytes)
			atomic_fetch_add(&storm.overshoots, 1);
		sched_yield();
	}
	for (int i = 0; i < SHARDS; i++)
		pthread_join(shards[i].thread, NULL);
	assert_int_equal(atomic_load(&storm.overshoots), 0);
	assert_int_equal(atomic_load(&storm.idle_overshoots), 0);
	assert_true(atomic_load(&storm.refused) > 0);
	assert_int_equal(atomic_load(&storm.charged), 0);
	assert_int_equal(ledger_process_taken(&storm.process), 0);
	for (int i = 0; i < SHARDS; i++) {
		assert_int_equal(shards[i].shard.charged_bytes, 0);
		ring_destroy(storm.to_next[i]);
	}
}

// P2: the two accounts differ in unit and limit, and either can be full alone.
static void P2__lane_and_process_are_separate_accounts(void **state)
{
	struct ledger_process p;
	struct ledger_shard s;

	(void)state;
	// P counts payload bytes as received; L counts blocks. One 100-byte message:
	ledger_process_init(&p, 100);
	ledger_shard_init(&s, &p);
	assert_true(ledger_charge(&s, 100));
	assert_int_equal(ledger_process_taken(&p), 100);
	assert_int_equal(ledger_charge_of(LEDGER_MEASURED, 100 + 96, 100), 224);
	assert_false(ledger_charge(&s, 1)); // full here says nothing about any lane
	ledger_release(&s, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L2__size_class_is_what_the_allocator_takes),
		cmocka_unit_test(L2_I12__an_empty_item_costs_more_than_nothing),
		cmocka_unit_test(L2__measured_charges_the_block_and_fixed_the_payload),
		cmocka_unit_test(L2__the_examples_of_the_page_hold),
		cmocka_unit_test(P1__the_example_of_the_page_holds),
		cmocka_unit_test(P1__the_mark_refuses_exactly_when_one_shard_is_alone),
		cmocka_unit_test(P1__a_mark_smaller_than_a_chunk_works),
		cmocka_unit_test(P1__early_refusal_is_at_most_the_idle_budget_of_the_others),
		cmocka_unit_test(P1__idle_budget_never_exceeds_a_chunk),
		cmocka_unit_test(P1__bytes_between_two_workers_stay_taken),
		cmocka_unit_test(P2__lane_and_process_are_separate_accounts),
		cmocka_unit_test(
			P1_P2_P3_I10__shards_in_a_storm_never_pass_the_mark_and_end_at_zero),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
