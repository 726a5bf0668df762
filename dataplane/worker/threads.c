// SPDX-License-Identifier: BSD-3-Clause
// Threads of a data plane: one per worker, its wake-up, and control's. The only place of the data
// plane that makes threads, beside the pool.
#include "worker/threads.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/step.h"
#include "publish/publish.h"

static void ring_fd(int fd)
{
	uint64_t one = 1;
	// A full counter is as good as a ring: the descriptor is readable.
	(void)!write(fd, &one, sizeof(one));
}

static void wake_control(void *arg)
{
	ring_fd(((struct dp *)arg)->wake_fd);
}

static void wake_worker(struct dp *dp, uint16_t worker)
{
	struct threads *threads = dp->threads;
	ring_fd(threads->workers[worker].wake_fd);
}

bool dp_wake_create(struct dp *dp)
{
	if (dp->wake_fd >= 0)
		return true;
	dp->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	dp->wake_arg = dp;
	dp->wake = dp->wake_fd >= 0 ? wake_control : NULL;
	return dp->wake_fd >= 0;
}

static void *worker_main(void *arg)
{
	struct worker_thread *t = arg;
	struct threads *threads = t->threads;
	struct dp_worker *w = threads->dp->workers[t->index];
	struct idle idle;
	if (threads->hooks.thread_begin != NULL)
		threads->hooks.thread_begin(threads->hooks.arg, t->index);
	publish_reader_enter();
	idle_begin(&idle, t);
	// Ends when told to stop, at a loop boundary.
	while (!atomic_load_explicit(&threads->stop, memory_order_relaxed)) {
		bool had_work = worker_step(w);
		publish_quiescent();
		idle_turn(&idle, t, had_work);
	}
	publish_reader_leave();
	if (threads->hooks.thread_end != NULL)
		threads->hooks.thread_end(threads->hooks.arg, t->index);
	return NULL;
}

static bool pin(pthread_attr_t *attr, int cpu)
{
	cpu_set_t set;
	if (cpu < 0)
		return true;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return pthread_attr_setaffinity_np(attr, sizeof(set), &set) == 0;
}

static bool start_one(struct worker_thread *t)
{
	pthread_attr_t attr;
	char name[16];
	t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->wake_fd < 0 || pthread_attr_init(&attr) != 0)
		return false;
	t->runs = pin(&attr, t->cpu) && pthread_create(&t->thread, &attr, worker_main, t) == 0;
	pthread_attr_destroy(&attr);
	if (t->runs) {
		snprintf(name, sizeof(name), "worker-%u", t->index);
		(void)pthread_setname_np(t->thread, name); // for people
	}
	return t->runs;
}

static struct threads *threads_create(
	struct dp *dp, const int *cpus, const struct dp_thread_hooks *hooks)
{
	struct threads *threads = mem_zalloc(sizeof(*threads));
	if (threads == NULL)
		return NULL;
	threads->dp = dp;
	if (hooks != NULL)
		threads->hooks = *hooks;
	for (uint16_t i = 0; i < DP_WORKERS_MAX; i++) {
		threads->workers[i].threads = threads;
		threads->workers[i].index = i;
		threads->workers[i].cpu = cpus != NULL && i < dp->config.workers ? cpus[i] : -1;
		threads->workers[i].wake_fd = -1;
	}
	return threads;
}

static bool start_all(struct threads *threads)
{
	struct dp *dp = threads->dp;
	sigset_t all, before;
	// Signals are the main thread's business.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	dp->wake_worker = wake_worker;
	threads->pool = pool_create(dp);
	bool ok = threads->pool != NULL && dp_wake_create(dp);
	for (uint16_t i = 0; ok && i < dp->config.workers; i++)
		ok = start_one(&threads->workers[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

bool dp_threads_start(
	struct dp *dp, const int *cpus, const struct dp_thread_hooks *hooks, const char **out_why)
{
	*out_why = NULL;
	struct threads *threads = threads_create(dp, cpus, hooks);
	if (threads == NULL) {
		*out_why = "memory is short";
		return false;
	}
	dp->threads = threads;
	dp->started = true;
	if (start_all(threads))
		return true;
	*out_why = "a thread could not be started (limits, or a core this process may not use)";
	dp_threads_stop(dp);
	return false;
}

void dp_threads_stop(struct dp *dp)
{
	struct threads *threads = dp->threads;
	if (threads == NULL)
		return;
	atomic_store_explicit(&threads->stop, true, memory_order_relaxed);
	for (uint16_t i = 0; i < dp->config.workers; i++) {
		struct worker_thread *t = &threads->workers[i];
		if (t->runs) {
			ring_fd(t->wake_fd);
			pthread_join(t->thread, NULL);
		}
	}
	pool_destroy(threads->pool); // returns jobs to the workers' memory: no worker runs any more
	dp->wake_worker = NULL;
	for (uint16_t i = 0; i < dp->config.workers; i++) {
		worker_detach_queues(dp->workers[i]);
		if (threads->workers[i].wake_fd >= 0)
			close(threads->workers[i].wake_fd);
	}
	if (dp->wake_fd >= 0)
		close(dp->wake_fd);
	dp->wake_fd = -1;
	dp->wake = NULL;
	dp->threads = NULL;
	mem_free(threads);
}
