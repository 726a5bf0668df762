// SPDX-License-Identifier: BSD-3-Clause
// A defect on purpose: two producers on a ring for one. The thread sanitizer must report it, or its
// silence about the other tests means nothing. Both find the ring full and write head_seen, whoever
// comes first. Run by test_sanitizer.c.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include "lane/ring.h"

static _Atomic int present; // relaxed: brings both together in time and orders nothing

static void *produce(void *arg)
{
	void *item = arg;

	atomic_fetch_add_explicit(&present, 1, memory_order_relaxed);
	while (atomic_load_explicit(&present, memory_order_relaxed) < 2)
		sched_yield();
	for (int i = 0; i < 1000; i++)
		(void)ring_push(arg, &item, 1);
	return NULL;
}

int main(void)
{
	struct ring *ring = ring_create(2);
	pthread_t threads[2];

	if (ring == NULL)
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, produce, ring) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ring_destroy(ring);
	return 0;
}
