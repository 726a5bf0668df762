// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Bodies of ring.h. Include lane/ring.h, not this. Indexes run freely and wrap; index & mask is the
// slot, tail - head the fill.

#include "base/atomic.h"
#include "lane/ring.h"

static inline uint32_t ring_push(struct ring *ring, void *const *items, uint32_t n)
{
	const uint32_t capacity = ring->mask + 1;
	// Nobody else writes tail: the plain value is our own.
	const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t room = capacity - (tail - ring->head_seen);

	if (UNLIKELY(room < n)) {
		// Acquire: the consumer has read the slots that it gave back.
		ring->head_seen = at_load(&ring->head, memory_order_acquire);
		room = capacity - (tail - ring->head_seen);
		if (room < n)
			n = room;
	}
	if (UNLIKELY(n == 0))
		return 0;
#if EXPLORE_BUG == 3
	at_store(&ring->tail, tail + n, memory_order_release);
#endif
	for (uint32_t i = 0; i < n; i++)
		ring->slots[(tail + i) & ring->mask] = items[i];
#if EXPLORE_BUG != 3
	at_store(&ring->tail, tail + n, memory_order_release); // publishes the slots
#endif
	return n;
}

static inline uint32_t ring_pop(struct ring *ring, void **out, uint32_t n)
{
	const uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t fill = ring->tail_seen - head;

	if (fill < n) {
		// Acquire: the producer's slots are written.
		ring->tail_seen = at_load(&ring->tail, memory_order_acquire);
		fill = ring->tail_seen - head;
		if (fill < n)
			n = fill;
	}
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		out[i] = ring->slots[(head + i) & ring->mask];
	at_store(&ring->head, head + n, memory_order_release); // gives the slots back
	return n;
}

static inline uint32_t ring_count(const struct ring *ring)
{
	// Head first: tail can only be ahead of it, so the difference never wraps below zero.
	uint32_t head = at_load(&ring->head, memory_order_acquire);
	uint32_t tail = at_load(&ring->tail, memory_order_acquire);
	uint32_t fill = tail - head;

	return fill <= ring->mask + 1 ? fill : ring->mask + 1;
}
