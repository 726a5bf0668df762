// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The route table (R1-R3): Spot key -> tagged word. Flat, open-addressed, sharded, 16-byte keys,
// slots chosen by a mix keyed at boot. One writer (control); readers are publish/ readers and take
// no lock and write nothing. A slot's key is written once, its value is published by a release
// store (pairs with the reader's acquire load); removal stores ROUTE_NONE; slots are recycled when
// their shard is rebuilt for growth, and the old shard is freed after a grace period.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"

// A value: 0 = no route, else a pointer with a tag in its low bits.
typedef uintptr_t route_word;
#define ROUTE_NONE ((route_word)0)
enum route_tag { ROUTE_LOCAL = 1, ROUTE_REMOTE = 2, ROUTE_ACTOR = 3, ROUTE_TAG_MASK = 3 };

static inline enum route_tag route_tag(route_word w)
{
	return (enum route_tag)(w & ROUTE_TAG_MASK);
}
static inline void *route_pointer(route_word w)
{
	return (void *)(w & ~(route_word)ROUTE_TAG_MASK);
}
static inline route_word route_make(void *pointer, enum route_tag tag)
{
	return (route_word)pointer | (route_word)tag;
}

struct route_table;
enum { ROUTE_SHARD_SLOTS_MAX = 87381 }; // 24 bytes each: one huge page
// hash_key: 16 random bytes drawn at boot. expected: keys to size for. NULL when memory is short.
MUST_USE struct route_table *route_table_create(const uint8_t hash_key[16], uint64_t expected);
void route_table_destroy(struct route_table *table); // no reader left; accepts NULL

// How many deferred frees (publish_pending, of the whole process) may wait before route_publish
// answers ROUTE_STALLED; the default is ROUTE_PENDING_MAX_DEFAULT. The writer.
enum { ROUTE_PENDING_MAX_DEFAULT = 1024 * 1024 };
void route_table_set_pending_max(struct route_table *table, uint64_t pending_max);

// ---- readers ----
// The word stays valid until the reader's next quiescent point. The zero key has no route.
route_word route_lookup(const struct route_table *table, struct spot_key key);
enum { ROUTE_BURST_MAX = 64 };
// Hashes and prefetches all, then probes all. n <= ROUTE_BURST_MAX.
void route_lookup_burst(
	const struct route_table *table, const struct spot_key *keys, uint32_t n, route_word *out);

// ---- the writer (control) ----
enum route_write { ROUTE_WRITTEN = 1, ROUTE_NO_MEMORY = 2, ROUTE_STALLED = 3 };
// Insert or replace in one step: readers see the old word or the new one. STALLED when readers keep
// too much retired memory alive (R3); nothing changed, as with NO_MEMORY. The key is not zero, the
// word not ROUTE_NONE. The caller defers what a replaced word pointed to.
MUST_USE enum route_write route_publish(
	struct route_table *table, struct spot_key key, route_word word);
// Removes; returns the word that was there, ROUTE_NONE if none. Never fails and takes no memory.
route_word route_retire(struct route_table *table, struct spot_key key);
uint64_t route_count(const struct route_table *table);
uint64_t route_bytes(const struct route_table *table); // memory of the table
// Walks up to `max` live entries from *cursor (0 = start); returns how many were visited and moves
// the cursor (back to 0 at the end). An entry that is live all the time is visited at least once,
// and twice only if its shard was rebuilt in between. `visit` may publish and retire.
uint32_t route_walk(struct route_table *table, uint64_t *cursor, uint32_t max,
	void (*visit)(struct spot_key key, route_word word, void *arg), void *arg);
