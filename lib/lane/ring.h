// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Bounded single-producer single-consumer ring of pointers, for items between two workers, commands
// and facts. Each side caches the other's index. Wait-free; a full ring refuses, never overwrites.
// Ordering: the producer's release store of `tail` pairs with the consumer's acquire load of it,
// and the consumer's release store of `head` with the producer's acquire load.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct ring {
	CACHE_ALIGNED _Atomic uint32_t tail; // producer writes
	uint32_t head_seen;                  // producer only
	CACHE_ALIGNED _Atomic uint32_t head; // consumer writes
	uint32_t tail_seen;                  // consumer only
	CACHE_ALIGNED uint32_t mask;         // constant
	void *slots[];
};

// capacity: power of two. NULL when memory is short.
MUST_USE struct ring *ring_create(uint32_t capacity);
void ring_destroy(struct ring *ring); // accepts NULL

// Producer: how many of the n went in (from the front).
static inline uint32_t ring_push(struct ring *ring, void *const *items, uint32_t n);
// Consumer: how many came out.
static inline uint32_t ring_pop(struct ring *ring, void **out, uint32_t n);
// Exact for a side that stands still, otherwise what was true a moment ago. Any thread.
static inline uint32_t ring_count(const struct ring *ring);

#include "lane/ring_inline.h"
