// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One shard of the route table: flat slots, probed linearly. Private to lib/route.
// The writer owns every field; readers see only `slots`, through a directory entry.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "publish/publish.h"
#include "route/route.h"

// Key halves are written once, before the word's first release store; a key of zero marks a slot
// never used, where every probe ends. Slots are packed: one in four lies across two cache lines,
// and still they beat padded ones, because more of the table fits each cache.
struct route_slot {
	_Atomic uint64_t key_lo;
	_Atomic uint64_t key_hi;
	_Atomic route_word word;
};

enum {
	ROUTE_SHARD_LOG2_MIN = 13, // 8 KiB
	ROUTE_SHARD_LOG2_MAX = 21, // 2 MiB: one huge page
	// a directory entry is a slots pointer with log2 in its low bits
	ROUTE_ENTRY_LOG2_MASK = 63,
};

struct route_shard {
	struct publish_deferred deferred;
	struct route_slot *slots;
	uint32_t log2;    // of the size of the slots in bytes
	uint32_t depth;   // how many top bits of the hash all its keys share
	uint32_t used;    // slots with a key, live or not
	uint32_t live;    // slots with a word
	uint32_t version; // tells a cursor that the shard was rebuilt
};

// NULL when memory is short.
MUST_USE struct route_shard *route_shard_create(uint32_t log2, uint32_t depth, uint32_t version);
void route_shard_free(struct route_shard *shard); // nobody reads it; accepts NULL
void route_shard_retire(struct route_shard *shard); // freed after a grace period
uint64_t route_shard_bytes(const struct route_shard *shard);

// The slot that holds key, or the empty one where it would go.
struct route_slot *route_shard_find(
	const struct route_shard *shard, struct spot_key key, uint64_t hash);
// Into an empty slot that route_shard_find returned.
void route_shard_fill(struct route_shard *shard, struct route_slot *slot, struct spot_key key,
	route_word word);

static inline uint32_t route_slot_count(uint32_t log2)
{
	// The same as 2^log2 / sizeof(struct route_slot), without a division per look-up.
	return (uint32_t)ROUTE_SHARD_SLOTS_MAX >> (ROUTE_SHARD_LOG2_MAX - log2);
}

// Where a probe begins: the low half of the hash, scaled to the count, which is no power of two.
// (The directory uses the top bits.)
static inline uint32_t route_slot_home(uint64_t hash, uint32_t count)
{
	return (uint32_t)(((hash & UINT32_MAX) * count) >> 32);
}

static inline uint32_t route_slot_next(uint32_t i, uint32_t count)
{
	return i + 1 == count ? 0 : i + 1;
}

static inline uint32_t route_shard_slot_count(const struct route_shard *shard)
{
	return route_slot_count(shard->log2);
}

// Five eighths full is where probes start to leave their line too often.
static inline uint32_t route_shard_used_max(const struct route_shard *shard)
{
	return route_shard_slot_count(shard) / 8 * 5;
}

static inline bool route_shard_has_room(const struct route_shard *shard)
{
	return shard->used < route_shard_used_max(shard);
}

static inline uintptr_t route_shard_entry(const struct route_shard *shard)
{
	return (uintptr_t)shard->slots | shard->log2;
}

static inline struct spot_key route_slot_key(const struct route_slot *slot)
{
	return (struct spot_key){
		atomic_load_explicit(&slot->key_lo, memory_order_relaxed),
		atomic_load_explicit(&slot->key_hi, memory_order_relaxed),
	};
}
