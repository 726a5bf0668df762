// SPDX-License-Identifier: BSD-3-Clause
#include "publish/publish.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEADLINE_S = 30 };

struct thing {
	struct publish_deferred deferred;
	_Atomic uint64_t *freed;
	int value;
};

static void thing_free(struct publish_deferred *node)
{
	struct thing *thing = container_of(node, struct thing, deferred);

	atomic_fetch_add(thing->freed, 1);
	free(thing);
}

static struct thing *thing_create(_Atomic uint64_t *freed, int value)
{
	struct thing *thing = calloc(1, sizeof(*thing));

	assert_non_null(thing);
	thing->freed = freed;
	thing->value = value;
	return thing;
}

static void R3__deferred_work_runs_and_is_counted(void **state)
{
	_Atomic uint64_t freed = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		publish_defer(&thing_create(&freed, i)->deferred, thing_free);
	publish_barrier();
	assert_int_equal(atomic_load(&freed), 100);
	assert_int_equal(publish_pending(), 0);
}

// ---- a reader that holds back, step by step ----

enum reader_step { STEP_NONE, STEP_ONLINE, STEP_QUIESCED, STEP_OFFLINE, STEP_LEFT };

struct reader {
	pthread_t thread;
	_Atomic int wanted;
	_Atomic int reached;
};

static void reader_wait(struct reader *reader, int step)
{
	while (atomic_load(&reader->wanted) < step)
		sched_yield();
}

static void *reader_run(void *arg)
{
	struct reader *reader = arg;

	publish_reader_enter();
	atomic_store(&reader->reached, STEP_ONLINE);
	reader_wait(reader, STEP_QUIESCED);
	publish_quiescent();
	atomic_store(&reader->reached, STEP_QUIESCED);
	reader_wait(reader, STEP_OFFLINE);
	publish_reader_offline();
	atomic_store(&reader->reached, STEP_OFFLINE);
	reader_wait(reader, STEP_LEFT);
	publish_reader_online();
	publish_reader_leave();
	atomic_store(&reader->reached, STEP_LEFT);
	return NULL;
}

static void reader_to(struct reader *reader, int step)
{
	atomic_store(&reader->wanted, step);
	while (atomic_load(&reader->reached) < step)
		sched_yield();
}

static void wait_freed(_Atomic uint64_t *freed, uint64_t n)
{
	alarm(DEADLINE_S); // an event with a deadline: nothing here depends on how long it takes
	while (atomic_load(freed) < n)
		sched_yield();
	alarm(0);
}

static void R3__nothing_is_freed_under_a_reader_that_has_not_been_quiescent(void **state)
{
	_Atomic uint64_t freed = 0;
	struct reader reader = {.wanted = STEP_ONLINE};

	(void)state;
	assert_int_equal(pthread_create(&reader.thread, NULL, reader_run, &reader), 0);
	reader_to(&reader, STEP_ONLINE);
	publish_defer(&thing_create(&freed, 1)->deferred, thing_free);
	// However long this takes it must not be freed: give the reclaimer every chance to be wrong.
	for (int i = 0; i < 2000; i++) {
		sched_yield();
		assert_int_equal(atomic_load(&freed), 0);
		assert_int_equal(publish_pending(), 1);
	}
	reader_to(&reader, STEP_QUIESCED);
	// One quiescent point may fall before the grace period began; going offline ends all doubt.
	reader_to(&reader, STEP_OFFLINE);
	wait_freed(&freed, 1);
	// Offline readers hold nobody up.
	publish_defer(&thing_create(&freed, 2)->deferred, thing_free);
	wait_freed(&freed, 2);
	reader_to(&reader, STEP_LEFT);
	pthread_join(reader.thread, NULL);
	publish_barrier();
	assert_int_equal(publish_pending(), 0);
}

// ---- storm ----

enum { READERS = 2, SWAPS = 20000, FREED_VALUE = -1 };

struct shared {
	_Atomic(struct thing *) current;
	_Atomic bool done;
	_Atomic uint64_t bad;
	_Atomic int online;
};

static void poison_free(struct publish_deferred *node)
{
	container_of(node, struct thing, deferred)->value = FREED_VALUE;
	thing_free(node);
}

static void *storm_read(void *arg)
{
	struct shared *shared = arg;
	uint64_t turns = 0;

	publish_reader_enter();
	atomic_fetch_add(&shared->online, 1);
	while (!atomic_load_explicit(&shared->done, memory_order_relaxed)) {
		for (int i = 0; i < 32; i++) {
			const struct thing *thing =
				atomic_load_explicit(&shared->current, memory_order_acquire);
			if (thing->value == FREED_VALUE)
				atomic_fetch_add(&shared->bad, 1);
		}
		publish_quiescent();
		if (++turns % 64 == 0) {
			publish_reader_offline();
			sched_yield();
			publish_reader_online();
		}
	}
	publish_reader_leave();
	return NULL;
}

static void R3__readers_never_see_freed_memory(void **state)
{
	_Atomic uint64_t freed = 0;
	struct shared shared = {.current = thing_create(&freed, 0)};
	pthread_t threads[READERS];

	(void)state;
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, storm_read, &shared), 0);
	while (atomic_load(&shared.online) < READERS)
		sched_yield();
	for (int i = 1; i <= SWAPS; i++) {
		struct thing *old = atomic_exchange_explicit(
			&shared.current, thing_create(&freed, i), memory_order_acq_rel);
		publish_defer(&old->deferred, poison_free);
	}
	atomic_store(&shared.done, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	publish_barrier();
	assert_int_equal(atomic_load(&shared.bad), 0);
	assert_int_equal(atomic_load(&freed), SWAPS);
	assert_int_equal(publish_pending(), 0);
	free(atomic_load(&shared.current));
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
		cmocka_unit_test(R3__deferred_work_runs_and_is_counted),
		cmocka_unit_test(R3__nothing_is_freed_under_a_reader_that_has_not_been_quiescent),
		cmocka_unit_test(R3__readers_never_see_freed_memory),
	};

	return cmocka_run_group_tests_name("publish", tests, start, stop);
}
