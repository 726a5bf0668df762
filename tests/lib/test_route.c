// SPDX-License-Identifier: BSD-3-Clause
#include "route/route.h"

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
#include "publish/publish.h"
#include "route/table.h"

// A million keys take minutes under the thread sanitizer and show it nothing more.
enum { MILLION = SANITIZE_THREAD ? 100000 : 1000000 };

static const uint8_t HASH_KEY[16] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12, 13, 14, 15, 16};

static struct spot_key key_of(uint64_t n)
{
	struct rng rng;

	rng_seed(&rng, n);
	uint64_t lo = rng_u64(&rng);
	return (struct spot_key){lo, rng_u64(&rng)};
}

static route_word word_of(uint64_t n)
{
	return (route_word)((n + 1) << 2) | ROUTE_LOCAL;
}

static struct route_table *table_with(uint64_t count, uint64_t expected)
{
	struct route_table *table = route_table_create(HASH_KEY, expected);

	assert_non_null(table);
	for (uint64_t n = 0; n < count; n++)
		assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
	return table;
}

static void R1__only_published_keys_have_a_route(void **state)
{
	struct route_table *table = table_with(3, 0);

	(void)state;
	assert_int_equal(route_lookup(table, key_of(1)), word_of(1));
	assert_int_equal(route_lookup(table, key_of(77)), ROUTE_NONE);
	assert_int_equal(route_lookup(table, (struct spot_key){0, 0}), ROUTE_NONE);
	assert_int_equal(route_retire(table, (struct spot_key){0, 0}), ROUTE_NONE);
	assert_int_equal(route_retire(table, key_of(77)), ROUTE_NONE);
	assert_int_equal(route_tag(word_of(1)), ROUTE_LOCAL);
	assert_ptr_equal(route_pointer(word_of(1)), (void *)8);
	route_table_destroy(table);
	route_table_destroy(NULL);
}

static void R1__keys_with_a_zero_half_are_keys(void **state)
{
	struct route_table *table = table_with(0, 0);
	struct spot_key low = {5, 0}, high = {0, 5};

	(void)state;
	assert_int_equal(route_publish(table, low, word_of(1)), ROUTE_WRITTEN);
	assert_int_equal(route_publish(table, high, word_of(2)), ROUTE_WRITTEN);
	assert_int_equal(route_lookup(table, low), word_of(1));
	assert_int_equal(route_lookup(table, high), word_of(2));
	assert_int_equal(route_count(table), 2);
	route_table_destroy(table);
}

static void R2__a_retired_route_is_gone_at_once_and_can_come_back(void **state)
{
	struct route_table *table = table_with(100, 0);

	(void)state;
	assert_int_equal(route_retire(table, key_of(50)), word_of(50));
	assert_int_equal(route_lookup(table, key_of(50)), ROUTE_NONE);
	assert_int_equal(route_retire(table, key_of(50)), ROUTE_NONE);
	assert_int_equal(route_count(table), 99);
	assert_int_equal(route_publish(table, key_of(50), word_of(500)), ROUTE_WRITTEN);
	assert_int_equal(route_publish(table, key_of(50), word_of(501)), ROUTE_WRITTEN);
	assert_int_equal(route_lookup(table, key_of(50)), word_of(501));
	assert_int_equal(route_count(table), 100);
	route_table_destroy(table);
}

// Random changes against an array that knows the truth.
static void R2_R3__a_long_random_history_matches_the_model(void **state)
{
	enum { KEYS = 20000, STEPS = 600000 };
	struct route_table *table = table_with(0, 0);
	route_word *truth = calloc(KEYS, sizeof(*truth));
	struct spot_key *keys = calloc(KEYS, sizeof(*keys));
	struct rng rng;
	uint64_t live = 0;

	(void)state;
	assert_non_null(truth);
	assert_non_null(keys);
	rng_seed(&rng, 4);
	for (uint64_t n = 0; n < KEYS; n++)
		keys[n] = key_of(n);
	for (uint64_t step = 0; step < STEPS; step++) {
		// Waves: mostly growing, then mostly shrinking, so that shards fill with the dead.
		bool growing = step / 100000 % 2 == 0;
		uint64_t n = rng_below(&rng, KEYS);
		assert_int_equal(route_lookup(table, keys[n]), truth[n]);
		if (rng_below(&rng, 10) < (growing ? 8U : 3U)) {
			live += truth[n] == ROUTE_NONE;
			truth[n] = word_of(step);
			assert_int_equal(route_publish(table, keys[n], truth[n]), ROUTE_WRITTEN);
		} else {
			live -= truth[n] != ROUTE_NONE;
			assert_int_equal(route_retire(table, keys[n]), truth[n]);
			truth[n] = ROUTE_NONE;
		}
		assert_int_equal(route_count(table), live);
	}
	for (uint64_t n = 0; n < KEYS; n++)
		assert_int_equal(route_lookup(table, keys[n]), truth[n]);
	route_table_destroy(table);
	free(truth);
	free(keys);
}

static void R3__slots_of_the_dead_are_recycled(void **state)
{
	struct route_table *table = table_with(1000, 1000);
	uint64_t bytes = route_bytes(table);

	(void)state;
	// A thousand live keys at any time, a million in all: the table must not grow with the million.
	for (uint64_t n = 1000; n < MILLION; n++) {
		assert_int_equal(route_retire(table, key_of(n - 1000)), word_of(n - 1000));
		assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
	}
	assert_int_equal(route_count(table), 1000);
	assert_true(route_bytes(table) <= bytes * 2);
	route_table_destroy(table);
}

static void R3__a_burst_answers_as_single_lookups_do(void **state)
{
	enum { KEYS = 100000 };
	struct route_table *table = table_with(KEYS, 0);
	struct rng rng;

	(void)state;
	rng_seed(&rng, 6);
	for (int round = 0; round < MILLION / 50; round++) {
		struct spot_key keys[ROUTE_BURST_MAX];
		route_word words[ROUTE_BURST_MAX];
		uint32_t n = (uint32_t)rng_below(&rng, ROUTE_BURST_MAX + 1);

		for (uint32_t i = 0; i < n; i++)
			keys[i] = key_of(rng_below(&rng, KEYS * 2)); // half of them unknown
		route_lookup_burst(table, keys, n, words);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(words[i], route_lookup(table, keys[i]));
	}
	route_table_destroy(table);
}

static void R3__one_change_never_copies_more_than_one_shard(void **state)
{
	enum { KEYS = MILLION };
	struct route_table *table = table_with(0, 0);
	uint64_t before = route_bytes(table), jump_max = 0;
	const uint64_t shard_bytes = ROUTE_SHARD_SLOTS_MAX * sizeof(struct route_slot);

	(void)state;
	for (uint64_t n = 0; n < KEYS; n++) {
		assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
		uint64_t after = route_bytes(table);
		if (after > before && after - before > jump_max)
			jump_max = after - before;
		before = after;
	}
	// A split turns one full shard into two; the directory is pointers only.
	assert_true(jump_max <= shard_bytes + 64 * 1024);
	assert_true(before < KEYS * UINT64_C(110));
	for (uint64_t n = 0; n < KEYS; n++)
		assert_int_equal(route_lookup(table, key_of(n)), word_of(n));
	route_table_destroy(table);
}

static void R3__a_table_sized_for_its_keys_does_not_grow(void **state)
{
	struct route_table *table = table_with(0, 200000);
	uint64_t bytes = route_bytes(table);

	(void)state;
	for (uint64_t n = 0; n < 200000; n++)
		assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
	assert_int_equal(route_bytes(table), bytes);
	assert_true(bytes < 200000 * 110);
	route_table_destroy(table);
}

// ---- refusals ----

static void R3__short_memory_refuses_and_changes_nothing(void **state)
{
	struct route_table *table = table_with(0, 0);
	uint64_t n = 0, refused_at = 0;

	(void)state;
	mem_fail_nth(1, 1);
	assert_null(route_table_create(HASH_KEY, 0));
	while (n < 1000000 && route_publish(table, key_of(n), word_of(n)) == ROUTE_WRITTEN)
		n++;
	refused_at = n;
	assert_true(refused_at > 0);
	assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_NO_MEMORY);
	assert_int_equal(route_count(table), refused_at);
	assert_int_equal(route_lookup(table, key_of(n)), ROUTE_NONE);
	// Replacing and retiring need no memory.
	assert_int_equal(route_publish(table, key_of(0), word_of(9)), ROUTE_WRITTEN);
	assert_int_equal(route_retire(table, key_of(0)), word_of(9));
	mem_fail_nth(0, 0);
	assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
	for (uint64_t i = 1; i <= n; i++)
		assert_int_equal(route_lookup(table, key_of(i)), word_of(i));
	route_table_destroy(table);
}

// Each allocation of a split fails once; the table stays whole.
static void R3__short_memory_in_a_split_leaves_the_table_whole(void **state)
{
	enum { KEYS = 300000 };
	struct route_table *table = table_with(0, 0);
	uint64_t refusals = 0;

	(void)state;
	for (uint64_t n = 0; n < KEYS; n++) {
		mem_fail_nth(1 + n % 6, 0);
		enum route_write verdict = route_publish(table, key_of(n), word_of(n));
		mem_fail_nth(0, 0);
		if (verdict == ROUTE_NO_MEMORY) {
			refusals++;
			assert_int_equal(route_lookup(table, key_of(n)), ROUTE_NONE);
			assert_int_equal(route_publish(table, key_of(n), word_of(n)), ROUTE_WRITTEN);
		}
	}
	assert_true(refusals > 0);
	for (uint64_t n = 0; n < KEYS; n++)
		assert_int_equal(route_lookup(table, key_of(n)), word_of(n));
	route_table_destroy(table);
}

struct holder {
	pthread_t thread;
	_Atomic int step; // 1: online, 2: asked to leave
};

static void *hold(void *arg)
{
	struct holder *holder = arg;

	publish_reader_enter();
	atomic_store(&holder->step, 1);
	while (atomic_load(&holder->step) != 2)
		sched_yield();
	publish_reader_leave();
	return NULL;
}

static void free_nothing(struct publish_deferred *node)
{
	(void)node;
}

static void R3__publication_stalls_visibly_when_readers_stall(void **state)
{
	struct route_table *table = table_with(10, 0);
	struct publish_deferred waiting[5];
	struct holder holder = {.step = 0};

	(void)state;
	publish_barrier();
	assert_int_equal(pthread_create(&holder.thread, NULL, hold, &holder), 0);
	while (atomic_load(&holder.step) != 1)
		sched_yield();
	route_table_set_pending_max(table, 4);
	for (int i = 0; i < 4; i++)
		publish_defer(&waiting[i], free_nothing);
	assert_int_equal(route_publish(table, key_of(3), word_of(30)), ROUTE_WRITTEN);
	publish_defer(&waiting[4], free_nothing);
	assert_int_equal(route_publish(table, key_of(3), word_of(31)), ROUTE_STALLED);
	assert_int_equal(route_publish(table, key_of(99), word_of(99)), ROUTE_STALLED);
	assert_int_equal(route_lookup(table, key_of(3)), word_of(30));
	assert_int_equal(route_lookup(table, key_of(99)), ROUTE_NONE);
	assert_int_equal(route_retire(table, key_of(5)), word_of(5)); // dropping goes on
	atomic_store(&holder.step, 2);
	pthread_join(holder.thread, NULL);
	publish_barrier();
	assert_int_equal(route_publish(table, key_of(3), word_of(31)), ROUTE_WRITTEN);
	route_table_destroy(table);
}

// ---- walk ----

struct seen {
	struct route_table *table;
	uint8_t *times; // by n
	uint64_t publish_from;
};

static uint64_t n_of(route_word word)
{
	return (word >> 2) - 1;
}

static void count_visit(struct spot_key key, route_word word, void *arg)
{
	struct seen *seen = arg;

	assert_true(spot_key_equal(key, key_of(n_of(word))));
	seen->times[n_of(word)]++;
}

static void R2__a_walk_visits_everything_once(void **state)
{
	enum { KEYS = 100000 };
	struct route_table *table = table_with(KEYS, 0);
	struct seen seen = {.times = calloc(1, KEYS)};
	uint64_t cursor = 0, visited = 0;

	(void)state;
	assert_non_null(seen.times);
	do {
		uint32_t n = route_walk(table, &cursor, 64, count_visit, &seen);
		assert_true(n <= 64);
		visited += n;
	} while (cursor != 0);
	assert_int_equal(visited, KEYS);
	for (uint64_t n = 0; n < KEYS; n++)
		assert_int_equal(seen.times[n], 1);
	route_table_destroy(table);
	free(seen.times);
	table = table_with(0, 0);
	assert_int_equal(route_walk(table, &cursor, 64, count_visit, NULL), 0);
	assert_int_equal(cursor, 0);
	route_table_destroy(table);
}

static void R2__a_walk_misses_nothing_while_shards_grow_and_split(void **state)
{
	enum { START = 30000, END = 600000 };
	struct route_table *table = table_with(START, 0);
	struct seen seen = {.times = calloc(1, END)};
	uint64_t cursor = 0, next = START;

	(void)state;
	assert_non_null(seen.times);
	do {
		(void)route_walk(table, &cursor, 50, count_visit, &seen);
		for (int i = 0; i < 1000 && next < END; i++, next++)
			assert_int_equal(
				route_publish(table, key_of(next), word_of(next)), ROUTE_WRITTEN);
	} while (cursor != 0);
	assert_int_equal(next, END); // it grew twenty times over during the walk
	for (uint64_t n = 0; n < START; n++)
		assert_true(seen.times[n] >= 1);
	route_table_destroy(table);
	free(seen.times);
}

static void change_visit(struct spot_key key, route_word word, void *arg)
{
	struct seen *seen = arg;
	uint64_t n = n_of(word);

	count_visit(key, word, arg);
	if (n >= seen->publish_from)
		return;
	assert_int_equal(route_retire(seen->table, key), word);
	uint64_t twin = n + seen->publish_from; // grows the table under the walk
	assert_int_equal(route_publish(seen->table, key_of(twin), word_of(twin)), ROUTE_WRITTEN);
}

static void R2__a_visitor_may_retire_and_publish(void **state)
{
	enum { KEYS = 50000 };
	struct route_table *table = table_with(KEYS, 0);
	struct seen seen = {
		.table = table, .times = calloc(1, 2 * (size_t)KEYS), .publish_from = KEYS};
	uint64_t cursor = 0;

	(void)state;
	assert_non_null(seen.times);
	do
		(void)route_walk(table, &cursor, 1000, change_visit, &seen);
	while (cursor != 0);
	assert_int_equal(route_count(table), KEYS);
	for (uint64_t n = 0; n < KEYS; n++) {
		assert_int_equal(seen.times[n], 1); // retired at its visit
		assert_int_equal(route_lookup(table, key_of(n)), ROUTE_NONE);
		assert_int_equal(route_lookup(table, key_of(n + KEYS)), word_of(n + KEYS));
	}
	route_table_destroy(table);
	free(seen.times);
}

// ---- hash ----

static void R3__slots_depend_on_the_secret_of_this_boot(void **state)
{
	static const uint8_t other_key[16] = {1};
	struct route_table *a = route_table_create(HASH_KEY, 0);
	struct route_table *b = route_table_create(other_key, 0);
	uint64_t same = 0;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	for (uint64_t n = 0; n < 100000; n++)
		same += route_slot_home(route_hash(a, key_of(n)), 65536) ==
			route_slot_home(route_hash(b, key_of(n)), 65536);
	assert_true(same < 20); // 1.5 expected by chance
	route_table_destroy(a);
	route_table_destroy(b);
}

// Keys that agree in all but a few bits still spread: buckets of 256 by the bits that
// choose the shard and the slot.
static void R3__similar_keys_spread(void **state)
{
	enum { KEYS = 65536, BUCKETS = 256, EXPECTED = KEYS / BUCKETS };
	struct route_table *table = table_with(0, 0);
	uint32_t low[4][BUCKETS] = {0}, high[4][BUCKETS] = {0};

	(void)state;
	for (uint64_t n = 0; n < KEYS; n++) {
		const struct spot_key shapes[4] = {{n, 7}, {7, n}, {n << 48, 7}, {n, n}};
		for (int s = 0; s < 4; s++) {
			uint64_t hash = route_hash(table, shapes[s]);
			low[s][(uint32_t)hash >> 24]++;
			high[s][hash >> 56]++;
		}
	}
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < BUCKETS; i++) {
			assert_in_range(low[s][i], EXPECTED / 2, EXPECTED * 2);
			assert_in_range(high[s][i], EXPECTED / 2, EXPECTED * 2);
		}
	route_table_destroy(table);
}

static int start(void **state)
{
	(void)state;
	publish_start();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	publish_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R1__only_published_keys_have_a_route),
		cmocka_unit_test(R1__keys_with_a_zero_half_are_keys),
		cmocka_unit_test(R2__a_retired_route_is_gone_at_once_and_can_come_back),
		cmocka_unit_test(R2_R3__a_long_random_history_matches_the_model),
		cmocka_unit_test(R3__slots_of_the_dead_are_recycled),
		cmocka_unit_test(R3__a_burst_answers_as_single_lookups_do),
		cmocka_unit_test(R3__one_change_never_copies_more_than_one_shard),
		cmocka_unit_test(R3__a_table_sized_for_its_keys_does_not_grow),
		cmocka_unit_test(R3__short_memory_refuses_and_changes_nothing),
		cmocka_unit_test(R3__short_memory_in_a_split_leaves_the_table_whole),
		cmocka_unit_test(R3__publication_stalls_visibly_when_readers_stall),
		cmocka_unit_test(R2__a_walk_visits_everything_once),
		cmocka_unit_test(R2__a_walk_misses_nothing_while_shards_grow_and_split),
		cmocka_unit_test(R2__a_visitor_may_retire_and_publish),
		cmocka_unit_test(R3__slots_depend_on_the_secret_of_this_boot),
		cmocka_unit_test(R3__similar_keys_spread),
	};

	return cmocka_run_group_tests_name("route", tests, start, stop);
}
