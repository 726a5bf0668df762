// SPDX-License-Identifier: BSD-3-Clause
// Adaptive idling: a few empty polls are free, then the core is offered to others between polls,
// then the worker leaves the reader set and sleeps: until a queue's descriptor or a wake-up says
// so, or for a short time where a queue has none to ask.
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "publish/publish.h"
#include "core/step.h"
#include "worker/threads.h"

enum { EMPTY_TURNS_FREE = 8 };
#define IDLE_BEFORE_SLEEP_NS UINT64_C(1000000)
#define SLEEP_NS_TIMED (DP_SLEEP_US_DEFAULT * 1000L)
#define SLEEP_NS_WAKEABLE 1000000L // timers of a sleeping worker are late by no more than this

void idle_begin(struct idle *idle, struct worker_thread *t)
{
	struct dp_worker *w = t->threads->dp->workers[t->index];
	// The default slack of 50 us would double the shortest sleep. Failing changes only that.
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	idle->empty_turns = 0;
	idle->idle_since_ns = 0;
	idle->fd_count = 0;
	idle->all_wait = true;
	idle->fds[idle->fd_count++] = t->wake_fd;
	for (uint16_t i = 0; i < w->queue_count; i++) {
		int fd = w->queues[i]->ops->wait_fd(w->queues[i]->queue);
		if (fd >= 0)
			idle->fds[idle->fd_count++] = fd;
		else
			idle->all_wait = false;
	}
}

static void sleep_once(struct idle *idle, struct worker_thread *t)
{
	struct pollfd fds[DP_QUEUES_MAX + 1];
	struct timespec time = {0, idle->all_wait ? SLEEP_NS_WAKEABLE : SLEEP_NS_TIMED};
	uint64_t rings;
	for (uint32_t i = 0; i < idle->fd_count; i++)
		fds[i] = (struct pollfd){.fd = idle->fds[i], .events = POLLIN};
	if (ppoll(fds, idle->fd_count, &time, NULL) > 0 && (fds[0].revents & POLLIN) != 0)
		(void)!read(t->wake_fd, &rings, sizeof(rings)); // only empties it
}

void idle_turn(struct idle *idle, struct worker_thread *t, bool had_work)
{
	struct dp_worker *w = t->threads->dp->workers[t->index];
	if (had_work || w->dp->config.idle == DP_IDLE_SPIN) {
		idle->empty_turns = 0;
		return;
	}
	if (++idle->empty_turns < EMPTY_TURNS_FREE)
		return;
	if (idle->empty_turns == EMPTY_TURNS_FREE)
		idle->idle_since_ns = w->now_ns;
	if (w->now_ns - idle->idle_since_ns < IDLE_BEFORE_SLEEP_NS) {
		sched_yield();
		return;
	}
	// What was left before, we see below; who leaves work later sees that we sleep and wakes
	// us. Work left in the very moment between waits for the end of the sleep, which is short.
	(void)atomic_exchange_explicit(&w->asleep, 1, memory_order_seq_cst);
	if (worker_may_sleep(w)) {
		publish_reader_offline();
		sleep_once(idle, t);
		publish_reader_online();
	}
	atomic_store_explicit(&w->asleep, 0, memory_order_relaxed);
}
