// SPDX-License-Identifier: BSD-3-Clause
#include "publish/publish.h"

#include "base/sanitize.h"

#if !SANITIZE_THREAD
#define _LGPL_SOURCE // the library's own inline readers
#endif
#include <urcu-qsbr.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"

// liburcu's call_rcu with its default reclaimer thread, created here on purpose and not at the
// first deferral: that would happen on whatever core the deferring thread is pinned to. call_rcu
// asks its caller to be a reader only to keep per-CPU reclaimers from vanishing under it; there are
// none here, so control may defer without ever being one. The thread sanitizer does not see the
// ordering that the library makes: readers release a token at each quiescent point, the reclaimer
// acquires it before it frees.

struct deferred { // what publish_deferred really is
	struct rcu_head head;
	void (*fn)(struct publish_deferred *node);
};
_Static_assert(sizeof(struct deferred) == sizeof(struct publish_deferred), "opaque size");
_Static_assert(_Alignof(struct deferred) == _Alignof(struct publish_deferred), "opaque alignment");

static CACHE_ALIGNED _Atomic uint64_t deferred_total; // publishers
static CACHE_ALIGNED _Atomic uint64_t done_total;     // reclaimer
static char quiescence_token;

void publish_start(void)
{
	CHECK(get_default_call_rcu_data() != NULL);
}

void publish_stop(void)
{
	publish_barrier();
	CHECK(publish_pending() == 0);
}

void publish_reader_enter(void)
{
	rcu_register_thread();
}

void publish_reader_leave(void)
{
	sanitize_release(&quiescence_token);
	rcu_unregister_thread();
}

void publish_quiescent(void)
{
	sanitize_release(&quiescence_token);
	rcu_quiescent_state();
}

void publish_reader_offline(void)
{
	sanitize_release(&quiescence_token);
	rcu_thread_offline();
}

void publish_reader_online(void)
{
	rcu_thread_online();
}

static void run_deferred(struct rcu_head *head)
{
	struct deferred *deferred = caa_container_of(head, struct deferred, head);

	sanitize_acquire(deferred);
	sanitize_acquire(&quiescence_token);
	deferred->fn((struct publish_deferred *)deferred);
	// Release pairs with the acquire in publish_pending: who sees it counted sees its effects.
	atomic_fetch_add_explicit(&done_total, 1, memory_order_release);
}

void publish_defer(struct publish_deferred *node, void (*fn)(struct publish_deferred *node))
{
	struct deferred *deferred = (struct deferred *)node;

	deferred->fn = fn;
	atomic_fetch_add_explicit(&deferred_total, 1, memory_order_relaxed);
	sanitize_release(deferred);
	call_rcu(&deferred->head, run_deferred);
}

uint64_t publish_pending(void)
{
	// Done first: it never runs ahead of what was deferred before it was read.
	uint64_t done = atomic_load_explicit(&done_total, memory_order_acquire);

	return atomic_load_explicit(&deferred_total, memory_order_relaxed) - done;
}

// A marker behind everything deferred so far: one reclaimer, one queue, first in first out. The
// library's own barrier does the same, but frees its marker where the thread sanitizer cannot
// follow.
struct barrier {
	struct rcu_head head;
	pthread_mutex_t lock;
	pthread_cond_t reached_changed;
	bool reached;
};

static void barrier_reached(struct rcu_head *head)
{
	struct barrier *barrier = caa_container_of(head, struct barrier, head);

	sanitize_acquire(barrier);
	pthread_mutex_lock(&barrier->lock);
	barrier->reached = true;
	pthread_cond_signal(&barrier->reached_changed);
	pthread_mutex_unlock(&barrier->lock);
}

void publish_barrier(void)
{
	struct barrier barrier = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.reached_changed = PTHREAD_COND_INITIALIZER,
	};

	sanitize_release(&barrier);
	call_rcu(&barrier.head, barrier_reached);
	pthread_mutex_lock(&barrier.lock);
	while (!barrier.reached)
		pthread_cond_wait(&barrier.reached_changed, &barrier.lock);
	pthread_mutex_unlock(&barrier.lock);
	pthread_cond_destroy(&barrier.reached_changed);
	pthread_mutex_destroy(&barrier.lock);
}
