// SPDX-License-Identifier: BSD-3-Clause
#include "worker/pool.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "lane/ring.h"

enum { POOL_THREADS_MAX = 64 };

struct pool {
	struct dp *dp;
	struct ring *jobs[DP_WORKERS_MAX]; // worker → pool; consumers under take_lock
	struct ring *done[DP_WORKERS_MAX]; // pool → worker; producers under done_lock
	pthread_mutex_t take_lock;         // pool threads only
	pthread_mutex_t done_lock;         // pool threads only
	sem_t waiting;                     // jobs in the rings
	_Atomic uint32_t under_way;        // submitted and not collected
	_Atomic bool stop;
	uint32_t jobs_max;
	uint32_t thread_count;
	uint16_t next; // under take_lock: next ring to look at
	pthread_t threads[POOL_THREADS_MAX];
};

// Worker.
static bool submit(void *arg, struct offload_job *job)
{
	struct pool *pool = arg;
	void *p = job;
	if (atomic_fetch_add_explicit(&pool->under_way, 1, memory_order_relaxed) >=
		pool->jobs_max) {
		atomic_fetch_sub_explicit(&pool->under_way, 1, memory_order_relaxed);
		return false;
	}
	CHECK(ring_push(pool->jobs[job->worker], &p, 1) == 1); // the rings hold jobs_max
	sem_post(&pool->waiting);
	return true;
}

// Worker.
static uint32_t collect(void *arg, uint16_t worker, struct offload_job **out, uint32_t n)
{
	struct pool *pool = arg;
	uint32_t got = ring_pop(pool->done[worker], (void **)out, n);
	if (got > 0)
		atomic_fetch_sub_explicit(&pool->under_way, got, memory_order_relaxed);
	return got;
}

static struct offload_job *take(struct pool *pool)
{
	void *p = NULL;
	pthread_mutex_lock(&pool->take_lock);
	for (uint16_t i = 0; i < pool->dp->config.workers && p == NULL; i++) {
		pool->next = (uint16_t)((pool->next + 1) % pool->dp->config.workers);
		if (ring_pop(pool->jobs[pool->next], &p, 1) == 0)
			p = NULL;
	}
	pthread_mutex_unlock(&pool->take_lock);
	return p;
}

static void finish(struct pool *pool, struct offload_job *job)
{
	void *p = job;
	uint16_t worker = job->worker;
	pthread_mutex_lock(&pool->done_lock);
	CHECK(ring_push(pool->done[worker], &p, 1) == 1);
	pthread_mutex_unlock(&pool->done_lock);
	worker_nudge(pool->dp, worker);
}

static void *pool_main(void *arg)
{
	struct pool *pool = arg;
	for (;;) { // ends at stop
		while (sem_wait(&pool->waiting) != 0)
			;
		if (atomic_load(&pool->stop))
			return NULL;
		struct offload_job *job = take(pool);
		if (job == NULL)
			continue;
		job->out_bytes = job->work(job->room, job->argument_bytes,
			job->room + job->argument_bytes, job->capacity);
		finish(pool, job);
	}
}

static bool make_rings(struct pool *pool)
{
	uint32_t capacity = 1;
	while (capacity < pool->jobs_max)
		capacity <<= 1;
	for (uint16_t i = 0; i < pool->dp->config.workers; i++) {
		pool->jobs[i] = ring_create(capacity);
		pool->done[i] = ring_create(capacity);
		if (pool->jobs[i] == NULL || pool->done[i] == NULL)
			return false;
	}
	return true;
}

struct pool *pool_create(struct dp *dp)
{
	struct pool *pool = mem_zalloc(sizeof(*pool));
	if (pool == NULL)
		return NULL;
	uint32_t want = dp->config.offload_threads;
	if (want > POOL_THREADS_MAX)
		want = POOL_THREADS_MAX;
	pool->dp = dp;
	pool->jobs_max =
		dp->config.offload_queue_max > 0 && want > 0 ? dp->config.offload_queue_max : 0;
	pthread_mutex_init(&pool->take_lock, NULL);
	pthread_mutex_init(&pool->done_lock, NULL);
	sem_init(&pool->waiting, 0, 0);
	bool ok = make_rings(pool);
	while (ok && pool->thread_count < want) {
		ok = pthread_create(&pool->threads[pool->thread_count], NULL, pool_main, pool) == 0;
		pool->thread_count += ok;
	}
	if (!ok) {
		pool_destroy(pool);
		return NULL;
	}
	dp->offload = (struct offload_ops){submit, collect, pool};
	return pool;
}

static void drop_jobs(struct pool *pool, struct ring *ring)
{
	void *p;
	while (ring != NULL && ring_pop(ring, &p, 1) == 1) {
		struct offload_job *job = p;
		item_free(pool->dp->workers[job->worker]->arena, &job->head);
	}
}

void pool_destroy(struct pool *pool)
{
	if (pool == NULL)
		return;
	atomic_store(&pool->stop, true);
	for (uint32_t i = 0; i < pool->thread_count; i++)
		sem_post(&pool->waiting);
	for (uint32_t i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	pool->dp->offload = (struct offload_ops){NULL, NULL, NULL};
	for (uint16_t i = 0; i < pool->dp->config.workers; i++) {
		drop_jobs(pool, pool->jobs[i]);
		drop_jobs(pool, pool->done[i]);
		ring_destroy(pool->jobs[i]);
		ring_destroy(pool->done[i]);
	}
	sem_destroy(&pool->waiting);
	pthread_mutex_destroy(&pool->take_lock);
	pthread_mutex_destroy(&pool->done_lock);
	mem_free(pool);
}
