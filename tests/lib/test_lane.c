// SPDX-License-Identifier: BSD-3-Clause
#include "lane/lane.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

static const struct lane_bounds DEFAULTS = {.bytes_max = 64 << 20, .count_max = 1024};

static void assert_level(struct lane_word *word, uint64_t bytes, uint32_t count)
{
	struct lane_level level = lane_level(word);

	assert_int_equal(level.bytes, bytes);
	assert_int_equal(level.count, count);
}

static void L1__bounds_that_the_word_cannot_hold_are_refused(void **state)
{
	(void)state;
	static const struct {
		struct lane_bounds bounds;
		bool valid;
	} cases[] = {
		{{64 << 20, 1024}, true},
		{{1, 1}, true},
		{{LANE_BYTES_LIMIT, LANE_COUNT_LIMIT}, true},
		{{0, 1024}, false}, // zero would mean "no bound" to somebody
		{{64 << 20, 0}, false},
		{{LANE_BYTES_LIMIT + 1, 1024}, false},
		{{64 << 20, LANE_COUNT_LIMIT + 1}, false},
		{{UINT64_MAX, 1024}, false},
		{{64 << 20, UINT32_MAX}, false},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		assert_int_equal(lane_bounds_valid(cases[i].bounds), cases[i].valid);
}

static void L1__two_lanes_count_separately(void **state)
{
	struct lane_word application, lifecycle;
	struct lane_bounds one = {.bytes_max = 100, .count_max = 1};

	(void)state;
	lane_word_init(&application, false);
	lane_word_init(&lifecycle, false);
	assert_int_equal(lane_reserve(&application, one, 10), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&application, one, 10), LANE_FULL_COUNT);
	assert_int_equal(lane_reserve(&lifecycle, one, 10), LANE_ADMITTED);
}

static void L1_L4__whichever_bound_is_hit_first_refuses_and_changes_nothing(void **state)
{
	struct lane_word word;
	struct lane_bounds by_count = {.bytes_max = 1000, .count_max = 2};
	struct lane_bounds by_bytes = {.bytes_max = 100, .count_max = 10};

	(void)state;
	lane_word_init(&word, false);
	assert_int_equal(lane_reserve(&word, by_count, 16), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, by_count, 16), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, by_count, 16), LANE_FULL_COUNT);
	assert_level(&word, 32, 2);
	assert_int_equal(lane_reserve(&word, by_bytes, 69), LANE_FULL_BYTES);
	assert_level(&word, 32, 2);
	assert_int_equal(lane_reserve(&word, by_bytes, 68), LANE_ADMITTED); // exactly full
	assert_level(&word, 100, 3);
	assert_int_equal(lane_reserve(&word, by_bytes, 1), LANE_FULL_BYTES);
	// Over both: the count is named.
	assert_int_equal(
		lane_reserve(&word, (struct lane_bounds){100, 3}, 1), LANE_FULL_COUNT);
}

static void L1__the_largest_bounds_are_exact(void **state)
{
	struct lane_word word;
	struct lane_bounds largest = {LANE_BYTES_LIMIT, LANE_COUNT_LIMIT};
	const uint32_t charge = LEDGER_ITEM_BYTES_MAX;
	const uint32_t fits = (uint32_t)(LANE_BYTES_LIMIT / LEDGER_ITEM_BYTES_MAX);

	(void)state;
	lane_word_init(&word, false);
	for (uint32_t i = 0; i < fits; i++)
		assert_int_equal(lane_reserve(&word, largest, charge), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, largest, charge), LANE_FULL_BYTES);
	assert_level(&word, (uint64_t)fits * charge, fits);
	assert_int_equal(lane_reserve(&word, largest, charge - 1), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, largest, 1), LANE_FULL_BYTES);
	assert_false(lane_level(&word).sealed);
	lane_return(&word, charge - 1);
	for (uint32_t i = 0; i < fits; i++)
		lane_return(&word, charge);
	assert_level(&word, 0, 0);

	for (uint32_t i = 0; i < LANE_COUNT_LIMIT; i++)
		assert_int_equal(lane_reserve(&word, largest, 8), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, largest, 8), LANE_FULL_COUNT);
	assert_false(lane_level(&word).sealed);
	assert_level(&word, UINT64_C(8) * LANE_COUNT_LIMIT, LANE_COUNT_LIMIT);
}

static void reserve_empty_and_return(bool sole)
{
	struct lane_word word;
	struct lane_bounds one = {.bytes_max = 100, .count_max = 1};

	lane_word_init(&word, false);
	assert_false(lane_reserve_empty(&word, one, 101, sole)); // beyond the bytes
	assert_level(&word, 0, 0);
	assert_true(lane_reserve_empty(&word, one, 100, sole));
	assert_level(&word, 100, 1);
	assert_false(lane_reserve_empty(&word, DEFAULTS, 10, sole)); // not empty any more
	assert_int_equal(lane_reserve(&word, DEFAULTS, 10), LANE_ADMITTED); // others may
	assert_level(&word, 110, 2);
	assert_false(lane_return_last(&word, 100, sole));
	assert_level(&word, 10, 1);
	assert_true(lane_return_last(&word, 10, sole));
	assert_level(&word, 0, 0);
	assert_true(lane_seal(&word));
	assert_false(lane_reserve_empty(&word, DEFAULTS, 10, sole));
	lane_word_init(&word, true);
	assert_false(lane_reserve_empty(&word, DEFAULTS, 10, sole)); // opening
	assert_true(lane_level(&word).opening);
}

static void L1_L4_L5__a_turn_at_once_reserves_an_empty_lane_exactly(void **state)
{
	(void)state;
	reserve_empty_and_return(true);
	reserve_empty_and_return(false);
}

static void A7__an_opening_lane_admits_only_its_first_message(void **state)
{
	struct lane_word word;

	(void)state;
	lane_word_init(&word, true);
	assert_true(lane_level(&word).opening);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_OPENING);
	assert_level(&word, 0, 0);
	assert_int_equal(lane_reserve_first(&word, DEFAULTS, 64), LANE_ADMITTED);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_OPENING);
	lane_open(&word);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_ADMITTED);
	assert_level(&word, 128, 2);
	assert_false(lane_level(&word).opening);
}

static void L4_C4__a_seal_is_one_step_from_empty(void **state)
{
	struct lane_word word;

	(void)state;
	lane_word_init(&word, false);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_ADMITTED);
	assert_false(lane_seal(&word));
	lane_return(&word, 64);
	assert_true(lane_seal(&word));
	assert_false(lane_seal(&word)); // of two sealers one wins
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_SEALED);
	assert_int_equal(lane_reserve_first(&word, DEFAULTS, 64), LANE_SEALED);
	assert_level(&word, 0, 0);
	lane_unseal(&word);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_ADMITTED);
	lane_return(&word, 64);

	lane_word_init(&word, true);
	assert_true(lane_seal(&word)); // an opening lane too
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_SEALED);
	lane_unseal(&word);
	assert_int_equal(lane_reserve(&word, DEFAULTS, 64), LANE_OPENING);
}

static void L6__lifecycle_first_and_the_ninth_turn_pays_the_debt(void **state)
{
	uint8_t run = 0;

	(void)state;
	assert_int_equal(lane_choose(false, false, &run), LANE_NONE);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < LANE_LIFECYCLE_RUN_MAX; i++)
			assert_int_equal(lane_choose(true, true, &run), LANE_LIFECYCLE);
		assert_int_equal(lane_choose(true, true, &run), LANE_APPLICATION);
		assert_int_equal(run, 0);
	}
}

static void L6__the_debt_stays_until_an_application_item_is_ready(void **state)
{
	uint8_t run = 0;

	(void)state;
	for (int i = 0; i < 300; i++) // more than a uint8_t counts
		assert_int_equal(lane_choose(true, false, &run), LANE_LIFECYCLE);
	assert_int_equal(run, LANE_LIFECYCLE_RUN_MAX);
	assert_int_equal(lane_choose(false, false, &run), LANE_NONE);
	assert_int_equal(run, LANE_LIFECYCLE_RUN_MAX);
	assert_int_equal(lane_choose(true, true, &run), LANE_APPLICATION);
	assert_int_equal(lane_choose(true, true, &run), LANE_LIFECYCLE);
	assert_int_equal(run, 1);
}

static void L6__an_application_turn_clears_the_run(void **state)
{
	uint8_t run = 0;

	(void)state;
	for (int i = 0; i < LANE_LIFECYCLE_RUN_MAX - 1; i++)
		assert_int_equal(lane_choose(true, true, &run), LANE_LIFECYCLE);
	assert_int_equal(lane_choose(false, true, &run), LANE_APPLICATION);
	for (int i = 0; i < LANE_LIFECYCLE_RUN_MAX; i++)
		assert_int_equal(lane_choose(true, true, &run), LANE_LIFECYCLE);
	assert_int_equal(lane_choose(true, true, &run), LANE_APPLICATION);
}

static void L7_I9__the_list_keeps_admission_order(void **state)
{
	struct lane_list list = {NULL, NULL};
	struct item_head items[64];
	struct rng rng;
	uint32_t in = 0, out = 0;

	(void)state;
	rng_seed(&rng, 7);
	for (int step = 0; step < 100000; step++) {
		if (rng_below(&rng, 2) == 0 && in - out < ARRAY_COUNT(items)) {
			items[in % ARRAY_COUNT(items)].block_bytes = in;
			lane_list_push(&list, &items[in++ % ARRAY_COUNT(items)]);
			continue;
		}
		struct item_head *item = lane_list_pop(&list);
		if (in == out) {
			assert_null(item);
			continue;
		}
		assert_int_equal(item->block_bytes, out++);
	}
}

// ---- many producers ----

enum { PRODUCERS = 4, PRODUCER_STEPS = 60000, HELD_MAX = 8 };

struct stress {
	struct lane_word word;
	struct lane_bounds bounds;
	_Atomic uint64_t admitted_bytes;
	_Atomic uint64_t returned_bytes;
	_Atomic uint64_t refused;
	_Atomic uint64_t overshoots;
	_Atomic bool done;
};

struct producer {
	struct stress *stress;
	uint64_t seed;
	pthread_t thread;
};

static void *produce(void *arg)
{
	struct producer *self = arg;
	struct stress *s = self->stress;
	uint32_t held[HELD_MAX];
	uint32_t count = 0;
	struct rng rng;

	rng_seed(&rng, self->seed);
	for (int step = 0; step < PRODUCER_STEPS; step++) {
		if (count > 0 && (count == HELD_MAX || rng_below(&rng, 2) == 0)) {
			atomic_fetch_add(&s->returned_bytes, held[--count]);
			lane_return(&s->word, held[count]);
			continue;
		}
		uint32_t charge = 16 + (uint32_t)rng_below(&rng, 4096);
		if (lane_reserve(&s->word, s->bounds, charge) == LANE_ADMITTED) {
			atomic_fetch_add(&s->admitted_bytes, charge);
			held[count++] = charge;
		} else {
			atomic_fetch_add(&s->refused, 1);
		}
	}
	while (count > 0) {
		atomic_fetch_add(&s->returned_bytes, held[--count]);
		lane_return(&s->word, held[count]);
	}
	return NULL;
}

static void *sample(void *arg)
{
	struct stress *s = arg;

	while (!atomic_load(&s->done)) {
		struct lane_level level = lane_level(&s->word);
		if (level.bytes > s->bounds.bytes_max || level.count > s->bounds.count_max ||
			level.sealed || level.opening)
			atomic_fetch_add(&s->overshoots, 1);
	}
	return NULL;
}

static void run_stress(struct stress *s)
{
	struct producer producers[PRODUCERS];
	pthread_t sampler;

	lane_word_init(&s->word, false);
	assert_int_equal(pthread_create(&sampler, NULL, sample, s), 0);
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){.stress = s, .seed = 100 + (uint64_t)i};
		assert_int_equal(
			pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	atomic_store(&s->done, true);
	pthread_join(sampler, NULL);
}

static void L4_I12__many_producers_never_overshoot_the_count(void **state)
{
	struct stress s = {.bounds = {.bytes_max = 64 << 20, .count_max = 5}};

	(void)state;
	run_stress(&s);
	assert_int_equal(atomic_load(&s.overshoots), 0);
	assert_true(atomic_load(&s.refused) > 0);
}

static void L4_I12__many_producers_never_overshoot_the_bytes(void **state)
{
	struct stress s = {.bounds = {.bytes_max = 9000, .count_max = 1024}};

	(void)state;
	run_stress(&s);
	assert_int_equal(atomic_load(&s.overshoots), 0);
	assert_true(atomic_load(&s.refused) > 0);
}

static void L5_I10__after_the_storm_the_total_is_exactly_zero(void **state)
{
	struct stress s = {.bounds = {.bytes_max = 20000, .count_max = 9}};

	(void)state;
	run_stress(&s);
	assert_level(&s.word, 0, 0);
	assert_int_equal(atomic_load(&s.admitted_bytes), atomic_load(&s.returned_bytes));
	assert_true(lane_seal(&s.word));
}

// A sealer races with producers: whoever holds the seal is alone.
struct seal_race {
	struct lane_word word;
	_Atomic int holders; // admitted producers, or SEAL_WEIGHT for the sealer
	_Atomic uint64_t violations;
	_Atomic uint64_t seals;
	_Atomic int running;
};
enum { SEAL_WEIGHT = 1000 };

static void *race_produce(void *arg)
{
	struct seal_race *race = arg;

	for (int i = 0; i < PRODUCER_STEPS; i++) {
		if (lane_reserve(&race->word, DEFAULTS, 64) != LANE_ADMITTED)
			continue;
		if (atomic_fetch_add(&race->holders, 1) >= SEAL_WEIGHT)
			atomic_fetch_add(&race->violations, 1);
		atomic_fetch_sub(&race->holders, 1);
		lane_return(&race->word, 64);
	}
	atomic_fetch_sub(&race->running, 1);
	return NULL;
}

static void *race_seal(void *arg)
{
	struct seal_race *race = arg;

	while (atomic_load(&race->running) > 0 || atomic_load(&race->seals) == 0) {
		if (!lane_seal(&race->word))
			continue;
		atomic_fetch_add(&race->seals, 1);
		if (atomic_fetch_add(&race->holders, SEAL_WEIGHT) != 0)
			atomic_fetch_add(&race->violations, 1);
		atomic_fetch_sub(&race->holders, SEAL_WEIGHT);
		lane_unseal(&race->word);
	}
	return NULL;
}

static void L4_C4__who_seals_is_alone_among_producers(void **state)
{
	struct seal_race race = {.running = 2};
	pthread_t threads[3];

	(void)state;
	lane_word_init(&race.word, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
					 i == 2 ? race_seal : race_produce, &race),
			0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&race.violations), 0);
	assert_true(atomic_load(&race.seals) > 0);
	assert_level(&race.word, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L1__bounds_that_the_word_cannot_hold_are_refused),
		cmocka_unit_test(L1__two_lanes_count_separately),
		cmocka_unit_test(L1_L4__whichever_bound_is_hit_first_refuses_and_changes_nothing),
		cmocka_unit_test(L1__the_largest_bounds_are_exact),
		cmocka_unit_test(L1_L4_L5__a_turn_at_once_reserves_an_empty_lane_exactly),
		cmocka_unit_test(A7__an_opening_lane_admits_only_its_first_message),
		cmocka_unit_test(L4_C4__a_seal_is_one_step_from_empty),
		cmocka_unit_test(L6__lifecycle_first_and_the_ninth_turn_pays_the_debt),
		cmocka_unit_test(L6__the_debt_stays_until_an_application_item_is_ready),
		cmocka_unit_test(L6__an_application_turn_clears_the_run),
		cmocka_unit_test(L7_I9__the_list_keeps_admission_order),
		cmocka_unit_test(L4_I12__many_producers_never_overshoot_the_count),
		cmocka_unit_test(L4_I12__many_producers_never_overshoot_the_bytes),
		cmocka_unit_test(L5_I10__after_the_storm_the_total_is_exactly_zero),
		cmocka_unit_test(L4_C4__who_seals_is_alone_among_producers),
	};

	return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
