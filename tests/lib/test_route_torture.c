// SPDX-License-Identifier: BSD-3-Clause
#include "route/route.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/sanitize.h"
#include "publish/publish.h"

// One writer grows a table to a million keys while it replaces, removes and brings back others;
// readers look everything up under RCU. A route points at an object that carries its own number and
// version, so a mix, a freed object, a lost stable key or a step back in time is seen.

enum {
	KEYS = SANITIZE_THREAD || SANITIZE_ADDRESS ? 100000 : 1000000,
	READERS = 2,
	BURST = 32,
	ALIVE = 0x5afe,
	FREED = 0xdead,
};

struct target {
	struct publish_deferred deferred;
	uint32_t n;
	uint32_t version;
	uint32_t state;
	uint32_t n_again;
};

struct torture {
	struct route_table *table;
	struct spot_key *keys;
	uint32_t *versions;         // writer: last version of each key
	_Atomic uint32_t published; // keys below it were published; even ones are never removed
	_Atomic bool done;
	_Atomic int online;
};

struct reader {
	struct torture *torture;
	pthread_t thread;
	uint64_t seed;
	uint32_t *versions; // last version of each key that this reader saw
	uint64_t found, wrong_target, freed_target, went_back, lost;
};

static void target_free(struct publish_deferred *node)
{
	struct target *target = container_of(node, struct target, deferred);

	target->state = FREED;
	free(target);
}

static void judge(struct reader *reader, uint32_t n, uint32_t published, route_word word)
{
	const struct target *target = route_pointer(word);

	if (word == ROUTE_NONE) {
		reader->lost += n % 2 == 0 && n < published;
		return;
	}
	reader->found++;
	reader->freed_target += target->state != ALIVE;
	reader->wrong_target += target->n != n || target->n_again != n ||
				route_tag(word) != (n % 3 == 0 ? ROUTE_REMOTE : ROUTE_LOCAL);
	reader->went_back += target->version < reader->versions[n];
	reader->versions[n] = target->version;
}

static void read_burst(struct reader *reader, struct rng *rng)
{
	struct torture *t = reader->torture;
	uint32_t published = atomic_load_explicit(&t->published, memory_order_acquire);
	struct spot_key keys[BURST];
	uint32_t numbers[BURST];
	route_word words[BURST];

	for (uint32_t i = 0; i < BURST; i++) {
		// Most among the published, some beyond.
		numbers[i] = (uint32_t)rng_below(rng, published + 64 < KEYS ? published + 64 : KEYS);
		keys[i] = t->keys[numbers[i]];
	}
	route_lookup_burst(t->table, keys, BURST, words);
	for (uint32_t i = 0; i < BURST; i++)
		judge(reader, numbers[i], published, words[i]);
	judge(reader, numbers[0], published, route_lookup(t->table, keys[0]));
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	struct torture *t = reader->torture;
	struct rng rng;

	rng_seed(&rng, reader->seed);
	publish_reader_enter();
	atomic_fetch_add(&t->online, 1);
	while (!atomic_load_explicit(&t->done, memory_order_relaxed)) {
		read_burst(reader, &rng);
		publish_quiescent();
	}
	publish_reader_leave();
	return NULL;
}

static void write_one(struct torture *t, uint32_t n)
{
	struct target *target = calloc(1, sizeof(*target));
	route_word old = route_lookup(t->table, t->keys[n]); // the writer may look, it never frees itself

	assert_non_null(target);
	*target = (struct target){
		.n = n, .n_again = n, .state = ALIVE, .version = ++t->versions[n]};
	route_word word = route_make(target, n % 3 == 0 ? ROUTE_REMOTE : ROUTE_LOCAL);
	enum route_write verdict;
	while ((verdict = route_publish(t->table, t->keys[n], word)) == ROUTE_STALLED)
		sched_yield();
	assert_int_equal(verdict, ROUTE_WRITTEN);
	if (old != ROUTE_NONE)
		publish_defer(&((struct target *)route_pointer(old))->deferred, target_free);
}

static void remove_one(struct torture *t, uint32_t n)
{
	route_word old = route_retire(t->table, t->keys[n]);

	if (old != ROUTE_NONE)
		publish_defer(&((struct target *)route_pointer(old))->deferred, target_free);
}

static void write_all(struct torture *t)
{
	struct rng rng;

	rng_seed(&rng, 2026);
	for (uint32_t n = 0; n < KEYS; n++) {
		write_one(t, n);
		atomic_store_explicit(&t->published, n + 1, memory_order_release);
		uint32_t other = (uint32_t)rng_below(&rng, n + 1);
		if (other % 2 == 1 && rng_below(&rng, 2) == 0)
			remove_one(t, other);
		else if (n % 2 == 0)
			write_one(t, other);
	}
}

static void free_visit(struct spot_key key, route_word word, void *arg)
{
	(void)key;
	(*(uint64_t *)arg)++;
	free(route_pointer(word));
}

static void torture_init(struct torture *t)
{
	static const uint8_t hash_key[16] = {42, 1, 2, 3, 4, 5, 6, 7, 8};
	struct rng rng;

	rng_seed(&rng, 1);
	t->keys = calloc(KEYS, sizeof(*t->keys));
	t->versions = calloc(KEYS, sizeof(*t->versions));
	t->table = route_table_create(hash_key, 0);
	assert_non_null(t->keys);
	assert_non_null(t->versions);
	assert_non_null(t->table);
	route_table_set_pending_max(t->table, 100000);
	for (uint32_t n = 0; n < KEYS; n++)
		t->keys[n] = (struct spot_key){rng_u64(&rng), rng_u64(&rng)};
}

static void R3__every_read_is_old_or_new_while_the_table_grows_to_a_million(void **state)
{
	struct torture t = {0};
	struct reader readers[READERS] = {0};
	uint64_t cursor = 0, walked = 0;

	(void)state;
	torture_init(&t);
	for (int i = 0; i < READERS; i++) {
		readers[i].torture = &t;
		readers[i].seed = 70 + (uint64_t)i;
		readers[i].versions = calloc(KEYS, sizeof(uint32_t));
		assert_non_null(readers[i].versions);
		assert_int_equal(
			pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
	}
	while (atomic_load(&t.online) < READERS)
		sched_yield();
	write_all(&t);
	atomic_store(&t.done, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_true(readers[i].found > 0);
		assert_int_equal(readers[i].wrong_target, 0);
		assert_int_equal(readers[i].freed_target, 0);
		assert_int_equal(readers[i].went_back, 0);
		assert_int_equal(readers[i].lost, 0);
		free(readers[i].versions);
	}
	do
		(void)route_walk(t.table, &cursor, 1024, free_visit, &walked);
	while (cursor != 0);
	assert_int_equal(walked, route_count(t.table));
	publish_barrier();
	assert_int_equal(publish_pending(), 0);
	route_table_destroy(t.table);
	free(t.keys);
	free(t.versions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R3__every_read_is_old_or_new_while_the_table_grows_to_a_million),
	};

	publish_start();
	int failed = cmocka_run_group_tests_name("route_torture", tests, NULL, NULL);
	publish_stop();
	return failed;
}
