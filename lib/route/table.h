// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The table behind route.h: an extendible directory of shards. Private to lib/route.
// A reader takes three dependent loads to its slot: directory, entry, slot. Directory and entries
// are small and stay in the nearest cache; the slot is the miss that the burst prefetches.

#include "route/shard.h"

enum {
	ROUTE_DEPTH_MAX = 24,
	ROUTE_VERSION_MAX = (1 << 23) - 1, // what a walk cursor has room for
};

struct route_directory {
	struct publish_deferred deferred;
	uint32_t depth;              // top bits of the hash that index entries
	struct route_shard **shards; // writer: same order as entries
	// Readers: slots pointer | log2, written by the writer with release.
	CACHE_ALIGNED _Atomic uintptr_t entries[];
};

struct route_table {
	// Readers: written at creation, but for `directory`, which changes when it doubles.
	CACHE_ALIGNED _Atomic(struct route_directory *) directory;
	uint64_t hash_lo;
	uint64_t hash_hi;
	// Writer only.
	CACHE_ALIGNED uint64_t live;
	uint64_t bytes;
	uint64_t pending_max;
	uint32_t version_last;
};

// Keys are already cut from SHA-256, but anybody can search for ids whose keys share bits; with a
// secret drawn at boot they cannot know which bits matter. Two folded 64x64 multiplications: one
// alone leaves similar keys in a pattern, and a keyed cipher costs several times the probe.
static inline uint64_t route_hash(const struct route_table *table, struct spot_key key)
{
	__extension__ typedef unsigned __int128 wide;
	wide first = (wide)(key.lo ^ table->hash_lo) * (key.hi ^ table->hash_hi);
	// The golden ratio's digits keep a zero half from ending the mix.
	wide second = (wide)((uint64_t)first ^ UINT64_C(0x9e3779b97f4a7c15)) *
		      ((uint64_t)(first >> 64) ^ table->hash_lo);

	return (uint64_t)second ^ (uint64_t)(second >> 64);
}

static inline uint64_t route_directory_index(uint32_t depth, uint64_t hash)
{
	return hash >> 1 >> (63 - depth); // two steps: depth may be 0
}

// The single writer's view; readers load with acquire.
static inline struct route_directory *route_table_directory(const struct route_table *table)
{
	return atomic_load_explicit(&table->directory, memory_order_relaxed);
}
