// SPDX-License-Identifier: BSD-3-Clause
#include "ledger/ledger.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/sanitize.h"
#include "lane/lane.h"
#include "lane/ring.h"

static void assert_audit(struct item_arena *arena, uint64_t held_bytes, uint64_t held_items)
{
	struct item_arena_stats stats;

	item_arena_flush(arena);
	item_arena_audit(arena, &stats);
	assert_int_equal(stats.held_bytes, held_bytes);
	assert_int_equal(stats.held_items, held_items);
	assert_int_equal(stats.measured_bytes, held_bytes);
}

static void L3__the_audit_follows_every_size(void **state)
{
	static const size_t sizes[] = {16, 17, 64, 129, 1500, 4096, 4097, 14336, 14337, 32768, 32769,
		65000, 1 << 20, (1 << 20) + 1, LEDGER_ITEM_BYTES_MAX};
	struct item_arena *arena = item_arena_create(3);
	struct item_head *items[ARRAY_COUNT(sizes)];
	uint64_t held = 0;

	(void)state;
	assert_non_null(arena);
	assert_audit(arena, 0, 0);
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		items[i] = item_alloc(arena, sizes[i]);
		assert_non_null(items[i]);
		assert_int_equal(items[i]->block_bytes, ledger_size_class(sizes[i]));
		assert_int_equal(items[i]->owner, 3);
		assert_null(items[i]->next);
		held += items[i]->block_bytes;
		assert_audit(arena, held, i + 1);
	}
	assert_null(item_alloc(arena, LEDGER_ITEM_BYTES_MAX + 1));
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		held -= items[i]->block_bytes;
		item_free(arena, items[i]);
		assert_audit(arena, held, ARRAY_COUNT(sizes) - 1 - i);
	}
	item_arena_destroy(arena);
	item_arena_destroy(NULL);
}

static void L3__other_allocations_do_not_show(void **state)
{
	struct item_arena *arena = item_arena_create(0), *other = item_arena_create(1);
	struct item_head *mine = item_alloc(arena, 100), *theirs = item_alloc(other, 5000);
	void *stray[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(stray); i++)
		stray[i] = malloc(100);
	assert_audit(arena, 112, 1);
	assert_audit(other, ledger_size_class(5000), 1);
	for (size_t i = 0; i < ARRAY_COUNT(stray); i++)
		free(stray[i]);
	item_free(arena, mine);
	item_free(other, theirs);
	item_arena_destroy(arena);
	item_arena_destroy(other);
}

static void L3__what_was_given_back_counts_until_it_is_collected(void **state)
{
	struct item_arena *arena = item_arena_create(0);
	struct item_head *a = item_alloc(arena, 64), *b = item_alloc(arena, 64);
	struct item_head *c = item_alloc(arena, 64);

	(void)state;
	a->next = b;
	item_give_back(arena, a, b);
	item_give_back(arena, c, c);
	assert_audit(arena, 192, 3);
	item_arena_collect(arena);
	assert_audit(arena, 0, 0);
	item_arena_destroy(arena);
}

static void x__create_reports_short_memory(void **state)
{
	(void)state;
	mem_fail_nth(1, 0);
	assert_null(item_arena_create(0));
	mem_fail_nth(0, 0);
}

// ---- storm: items cross workers and come home in chains ----

enum {
	WORKERS = 3,
	ROUNDS = 4,
	ROUND_STEPS = SANITIZE_THREAD || SANITIZE_ADDRESS ? 5000 : 30000,
	KEPT = 256,
	CHAIN = 16,
};

struct worker {
	struct storm *storm;
	uint32_t index;
	pthread_t thread;
	struct item_arena *arena;
	struct item_head *kept[KEPT]; // items of any owner
	struct rng rng;
	uint64_t damaged;
};

struct storm {
	struct worker workers[WORKERS];
	struct ring *rings[WORKERS][WORKERS];
	_Atomic int running;
};

static size_t random_size(struct rng *rng)
{
	size_t tail = rng_below(rng, UINT64_C(1) << (4 + rng_below(rng, 13))); // up to 64 KiB

	return sizeof(struct item_head) + 8 + tail;
}

// The first word after the head carries the item's address: a block handed out twice is noticed.
static void stamp(struct item_head *item)
{
	uintptr_t mark = (uintptr_t)item;

	memcpy(item + 1, &mark, sizeof(mark));
}

static void check_stamp(struct worker *self, struct item_head *item)
{
	uintptr_t mark;

	memcpy(&mark, item + 1, sizeof(mark));
	self->damaged += mark != (uintptr_t)item;
	memset(item + 1, 0, sizeof(mark));
}

static void finish(struct worker *self, struct item_head *item)
{
	check_stamp(self, item);
	if (item->owner == self->index)
		item_free(self->arena, item);
	else
		item_give_back(self->storm->workers[item->owner].arena, item, item);
}

static void finish_chain(struct worker *self, struct item_head *const *items, uint32_t n)
{
	// All from one ring, so all of one owner.
	for (uint32_t i = 0; i < n; i++) {
		check_stamp(self, items[i]);
		items[i]->next = i + 1 < n ? items[i + 1] : NULL;
	}
	item_give_back(self->storm->workers[items[0]->owner].arena, items[0], items[n - 1]);
}

static void receive(struct worker *self)
{
	for (uint32_t from = 0; from < WORKERS; from++) {
		void *burst[CHAIN];
		struct item_head *items[CHAIN];
		uint32_t n = from == self->index
				     ? 0
				     : ring_pop(self->storm->rings[from][self->index], burst, CHAIN);
		if (n == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			items[i] = burst[i];
		struct item_head **slot = &self->kept[rng_below(&self->rng, KEPT)];
		if (*slot == NULL)
			*slot = items[--n];
		if (n > 0)
			finish_chain(self, items, n);
	}
}

static void step(struct worker *self)
{
	struct item_head **slot = &self->kept[rng_below(&self->rng, KEPT)];
	uint32_t to = (uint32_t)rng_below(&self->rng, WORKERS);

	if (*slot != NULL) {
		finish(self, *slot);
		*slot = NULL;
		return;
	}
	struct item_head *item = item_alloc(self->arena, random_size(&self->rng));
	if (item == NULL)
		return;
	stamp(item);
	void *pointer = item;
	if (to == self->index || ring_push(self->storm->rings[self->index][to], &pointer, 1) == 0)
		*slot = item;
}

static void *work(void *arg)
{
	struct worker *self = arg;

	for (int i = 0; i < ROUND_STEPS; i++) {
		step(self);
		receive(self);
		if (i % 32 == 0)
			item_arena_collect(self->arena);
	}
	atomic_fetch_sub(&self->storm->running, 1);
	while (atomic_load(&self->storm->running) > 0) {
		receive(self);
		sched_yield();
	}
	receive(self);
	return NULL;
}

// Runs on the test's thread while all are parked: what workers do before an audit.
static void drain_rings(struct storm *storm)
{
	for (int again = 0; again < 64; again++)
		for (uint32_t to = 0; to < WORKERS; to++)
			receive(&storm->workers[to]);
}

static void audit_all(struct storm *storm)
{
	uint64_t bytes[WORKERS] = {0}, items[WORKERS] = {0};

	for (uint32_t w = 0; w < WORKERS; w++) {
		item_arena_collect(storm->workers[w].arena);
		for (uint32_t k = 0; k < KEPT; k++) {
			const struct item_head *item = storm->workers[w].kept[k];
			if (item == NULL)
				continue;
			bytes[item->owner] += item->block_bytes;
			items[item->owner]++;
		}
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		assert_int_equal(storm->workers[w].damaged, 0);
		assert_audit(storm->workers[w].arena, bytes[w], items[w]);
	}
}

static void run_round(struct storm *storm)
{
	atomic_store(&storm->running, WORKERS);
	for (uint32_t w = 0; w < WORKERS; w++)
		assert_int_equal(
			pthread_create(&storm->workers[w].thread, NULL, work, &storm->workers[w]), 0);
	for (uint32_t w = 0; w < WORKERS; w++)
		pthread_join(storm->workers[w].thread, NULL);
	drain_rings(storm);
}

static void L3_I11__the_audit_is_exact_after_a_storm_of_crossing_items(void **state)
{
	struct storm *storm = calloc(1, sizeof(*storm));

	(void)state;
	assert_non_null(storm);
	for (uint32_t w = 0; w < WORKERS; w++) {
		struct worker *worker = &storm->workers[w];
		worker->storm = storm;
		worker->index = w;
		worker->arena = item_arena_create(w);
		assert_non_null(worker->arena);
		rng_seed(&worker->rng, 40 + w);
		for (uint32_t to = 0; to < WORKERS; to++) {
			storm->rings[w][to] = ring_create(64);
			assert_non_null(storm->rings[w][to]);
		}
	}
	for (int round = 0; round < ROUNDS; round++) {
		run_round(storm);
		audit_all(storm);
	}
	for (uint32_t w = 0; w < WORKERS; w++)
		for (uint32_t k = 0; k < KEPT; k++)
			if (storm->workers[w].kept[k] != NULL) {
				finish(&storm->workers[w], storm->workers[w].kept[k]);
				storm->workers[w].kept[k] = NULL;
			}
	audit_all(storm);
	for (uint32_t w = 0; w < WORKERS; w++) {
		for (uint32_t to = 0; to < WORKERS; to++)
			ring_destroy(storm->rings[w][to]);
		item_arena_destroy(storm->workers[w].arena);
	}
	free(storm);
}

// ---- FC71: what was charged is what is returned ----

static void FC71_L2_L5_I10__ten_million_random_items_end_at_exactly_zero(void **state)
{
	enum { WINDOW = 4096, ITEMS = SANITIZE_THREAD || SANITIZE_ADDRESS ? 500000 : 10000000 };
	const struct lane_bounds bounds = {.bytes_max = 64 << 20, .count_max = WINDOW};
	struct item_arena *arena = item_arena_create(0);
	struct item_head **held = calloc(WINDOW, sizeof(*held));
	struct lane_word word;
	struct rng rng;
	uint64_t admitted = 0, refused = 0;

	(void)state;
	assert_non_null(arena);
	assert_non_null(held);
	lane_word_init(&word, false);
	rng_seed(&rng, 71);
	for (uint64_t i = 0; i < ITEMS; i++) {
		uint64_t random = rng_u64(&rng);
		struct item_head **slot = &held[random % WINDOW];
		size_t bytes = sizeof(struct item_head) + (random >> 32) % (16 << (random >> 16) % 11);

		if (*slot != NULL) {
			lane_return(&word, (*slot)->block_bytes);
			item_free(arena, *slot);
			*slot = NULL;
		}
		uint32_t charge = ledger_charge_of(LEDGER_MEASURED, bytes, 0);
		if (lane_reserve(&word, bounds, charge) != LANE_ADMITTED) {
			refused++;
			continue;
		}
		*slot = item_alloc(arena, bytes);
		if (*slot == NULL || (*slot)->block_bytes != charge)
			fail_msg("item %lu: charged %u", (unsigned long)i, charge);
		admitted++;
	}
	for (int i = 0; i < WINDOW; i++)
		if (held[i] != NULL) {
			lane_return(&word, held[i]->block_bytes);
			item_free(arena, held[i]);
		}
	assert_int_equal(admitted + refused, ITEMS);
	assert_int_equal(refused, 0);
	assert_int_equal(lane_level(&word).bytes, 0);
	assert_int_equal(lane_level(&word).count, 0);
	assert_audit(arena, 0, 0);
	item_arena_destroy(arena);
	free(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L3__the_audit_follows_every_size),
		cmocka_unit_test(L3__other_allocations_do_not_show),
		cmocka_unit_test(L3__what_was_given_back_counts_until_it_is_collected),
		cmocka_unit_test(x__create_reports_short_memory),
		cmocka_unit_test(L3_I11__the_audit_is_exact_after_a_storm_of_crossing_items),
		cmocka_unit_test(FC71_L2_L5_I10__ten_million_random_items_end_at_exactly_zero),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
