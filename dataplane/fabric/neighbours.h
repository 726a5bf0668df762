// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// IP address → link-layer address of one port. Control writes (one thread), workers read without
// waiting. A bucket of two cache lines has a sequence that is odd while it is written; a reader
// that meets a write tries again a few times and then takes it as a miss, which costs one frame.
// Full buckets overwrite their oldest entry: control knows all neighbours and publishes again when
// a worker asks.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum { NEIGHBOUR_BUCKETS = 256, NEIGHBOUR_WAYS = 5, NEIGHBOUR_TRIES = 8 };

struct neighbour_entry {
	_Atomic uint64_t ip[2];
	_Atomic uint64_t mac; // low 48 bits; NEIGHBOUR_USED set when the entry is in use
};

#define NEIGHBOUR_USED (UINT64_C(1) << 63)

struct neighbour_bucket {
	CACHE_ALIGNED _Atomic uint32_t sequence;
	uint32_t next_way; // writer only
	struct neighbour_entry entries[NEIGHBOUR_WAYS];
};
_Static_assert(sizeof(struct neighbour_bucket) == 2 * CACHE_LINE_BYTES, "two lines");

struct neighbours {
	uint64_t key; // drawn at start, so that nobody can aim at one bucket
	struct neighbour_bucket buckets[NEIGHBOUR_BUCKETS];
};

void neighbours_init(struct neighbours *table, uint64_t key);
// Control.
void neighbours_set(struct neighbours *table, const uint8_t ip[16], const uint8_t mac[6]);
void neighbours_clear(struct neighbours *table, const uint8_t ip[16]);

static inline uint32_t neighbours_bucket_of(
	const struct neighbours *table, const uint64_t ip[2])
{
	uint64_t h = (ip[0] ^ table->key) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ (h >> 29) ^ ip[1]) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(h >> 40) % NEIGHBOUR_BUCKETS;
}

// Any worker.
static inline bool neighbours_lookup(
	const struct neighbours *table, const uint8_t ip[16], uint8_t out_mac[6])
{
	uint64_t key[2];
	memcpy(key, ip, sizeof(key));
	const struct neighbour_bucket *bucket = &table->buckets[neighbours_bucket_of(table, key)];
	for (uint32_t try = 0; try < NEIGHBOUR_TRIES; try++) {
		uint64_t mac = 0;
		// Partner: the last store of entry_write.
		uint32_t before = atomic_load_explicit(&bucket->sequence, memory_order_acquire);
		for (uint32_t way = 0; way < NEIGHBOUR_WAYS; way++) {
			const struct neighbour_entry *e = &bucket->entries[way];
			// Acquire: whoever sees a new field also sees the odd sequence below.
			uint64_t m = atomic_load_explicit(&e->mac, memory_order_acquire);
			if (atomic_load_explicit(&e->ip[0], memory_order_acquire) == key[0] &&
				atomic_load_explicit(&e->ip[1], memory_order_acquire) == key[1] &&
				(m & NEIGHBOUR_USED) != 0)
				mac = m;
		}
		if (atomic_load_explicit(&bucket->sequence, memory_order_relaxed) != before ||
			(before & 1) != 0)
			continue;
		if (mac == 0)
			return false;
		memcpy(out_mac, &mac, 6);
		return true;
	}
	return false;
}
