// SPDX-License-Identifier: BSD-3-Clause
#include "route/route.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "route/table.h"

// The writer's half. Every change is one release store that a reader sees or does not see: a word,
// a directory entry, or the directory. What it replaces is freed after a grace period.

_Static_assert(sizeof(struct route_directory) == CACHE_LINE_BYTES, "entries start a line");

// ---- directory ----

static size_t directory_bytes(uint32_t depth)
{
	size_t count = (size_t)1 << depth;

	return sizeof(struct route_directory) +
	       count * (sizeof(_Atomic uintptr_t) + sizeof(struct route_shard *));
}

static struct route_directory *directory_create(uint32_t depth)
{
	struct route_directory *directory =
		mem_zalloc_aligned(CACHE_LINE_BYTES, directory_bytes(depth));

	if (directory == NULL)
		return NULL;
	directory->depth = depth;
	directory->shards = (struct route_shard **)(void *)&directory->entries[(size_t)1 << depth];
	return directory;
}

static void directory_free(struct publish_deferred *node)
{
	mem_free(container_of(node, struct route_directory, deferred));
}

static uint64_t directory_count(const struct route_directory *directory)
{
	return UINT64_C(1) << directory->depth;
}

static void directory_set(struct route_directory *directory, uint64_t first, uint64_t count,
	struct route_shard *shard)
{
	for (uint64_t i = first; i < first + count; i++) {
		directory->shards[i] = shard;
		// Release pairs with the acquire in lookup.c: the shard is complete.
		atomic_store_explicit(
			&directory->entries[i], route_shard_entry(shard), memory_order_release);
	}
}

// How many entries point at a shard.
static uint64_t directory_span(const struct route_directory *directory, uint32_t shard_depth)
{
	return UINT64_C(1) << (directory->depth - shard_depth);
}

// ---- table ----

static uint32_t version_next(struct route_table *table)
{
	// A version fits a cursor and is never 0 there, so that no cursor but the first is 0.
	table->version_last =
		table->version_last >= ROUTE_VERSION_MAX ? 1 : table->version_last + 1;
	return table->version_last;
}

static void count_bytes(struct route_table *table, int64_t bytes)
{
	table->bytes += (uint64_t)bytes;
}

// Fresh shards are sized to be at most 4/7 full with what is expected: below where they would grow.
static void size_for(uint64_t expected, uint32_t *out_depth, uint32_t *out_log2)
{
	uint64_t bytes = expected * sizeof(struct route_slot) / 4 * 7;
	uint32_t log2 = ROUTE_SHARD_LOG2_MIN;
	uint32_t depth = 0;

	while (log2 < ROUTE_SHARD_LOG2_MAX && (UINT64_C(1) << log2) < bytes)
		log2++;
	while (depth < ROUTE_DEPTH_MAX && (UINT64_C(1) << (log2 + depth)) < bytes)
		depth++;
	*out_depth = depth;
	*out_log2 = log2;
}

static bool create_shards(
	struct route_table *table, struct route_directory *directory, uint32_t log2)
{
	for (uint64_t i = 0; i < directory_count(directory); i++) {
		struct route_shard *shard =
			route_shard_create(log2, directory->depth, version_next(table));
		if (shard == NULL)
			return false;
		directory_set(directory, i, 1, shard);
		count_bytes(table, (int64_t)route_shard_bytes(shard));
	}
	return true;
}

struct route_table *route_table_create(const uint8_t hash_key[16], uint64_t expected)
{
	struct route_table *table = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*table));
	uint32_t depth, log2;

	if (table == NULL)
		return NULL;
	memcpy(&table->hash_lo, hash_key, 8);
	memcpy(&table->hash_hi, hash_key + 8, 8);
	table->pending_max = ROUTE_PENDING_MAX_DEFAULT;
	size_for(expected, &depth, &log2);
	struct route_directory *directory = directory_create(depth);
	if (directory == NULL) {
		mem_free(table);
		return NULL;
	}
	atomic_init(&table->directory, directory);
	table->bytes = sizeof(*table) + directory_bytes(depth);
	if (!create_shards(table, directory, log2)) {
		route_table_destroy(table);
		return NULL;
	}
	return table;
}

void route_table_destroy(struct route_table *table)
{
	if (table == NULL)
		return;
	struct route_directory *directory = route_table_directory(table);
	uint64_t i = 0;

	while (i < directory_count(directory) && directory->shards[i] != NULL) {
		struct route_shard *shard = directory->shards[i];
		i += directory_span(directory, shard->depth);
		route_shard_free(shard);
	}
	mem_free(directory);
	mem_free(table);
}

void route_table_set_pending_max(struct route_table *table, uint64_t pending_max)
{
	table->pending_max = pending_max;
}

// ---- room ----

static uint64_t shard_first(const struct route_directory *directory, uint32_t depth, uint64_t hash)
{
	uint64_t prefix = route_directory_index(depth, hash);

	return prefix << (directory->depth - depth);
}

// Copies what is live in `from`, to the shard that its next hash bit selects.
static void copy_live(const struct route_table *table, const struct route_shard *from,
	struct route_shard *to_zero, struct route_shard *to_one)
{
	for (uint32_t i = 0; i < route_shard_slot_count(from); i++) {
		route_word word =
			atomic_load_explicit(&from->slots[i].word, memory_order_relaxed);
		if (word == ROUTE_NONE)
			continue;
		struct spot_key key = route_slot_key(&from->slots[i]);
		uint64_t hash = route_hash(table, key);
		bool one = ((hash << from->depth) >> 63) != 0;
		struct route_shard *to = one ? to_one : to_zero;
		route_shard_fill(to, route_shard_find(to, key, hash), key, word);
	}
}

static void replace_done(struct route_table *table, struct route_shard *old)
{
	count_bytes(table, -(int64_t)route_shard_bytes(old));
	route_shard_retire(old);
}

static bool rebuild(
	struct route_table *table, struct route_shard *old, uint64_t hash, uint32_t log2)
{
	struct route_directory *directory = route_table_directory(table);
	struct route_shard *fresh = route_shard_create(log2, old->depth, version_next(table));

	if (fresh == NULL)
		return false;
	copy_live(table, old, fresh, fresh);
	count_bytes(table, (int64_t)route_shard_bytes(fresh));
	directory_set(directory, shard_first(directory, old->depth, hash),
		directory_span(directory, old->depth), fresh);
	replace_done(table, old);
	return true;
}

static bool directory_double(struct route_table *table)
{
	struct route_directory *old = route_table_directory(table);
	struct route_directory *fresh = directory_create(old->depth + 1);

	if (fresh == NULL)
		return false;
	for (uint64_t i = 0; i < directory_count(old); i++)
		directory_set(fresh, 2 * i, 2, old->shards[i]);
	count_bytes(table, (int64_t)directory_bytes(fresh->depth));
	count_bytes(table, -(int64_t)directory_bytes(old->depth));
	// Release pairs with the reader's acquire of the directory.
	atomic_store_explicit(&table->directory, fresh, memory_order_release);
	publish_defer(&old->deferred, directory_free);
	return true;
}

static bool split(struct route_table *table, struct route_shard *old, uint64_t hash)
{
	const uint32_t depth = old->depth + 1;

	if (depth > ROUTE_DEPTH_MAX)
		return false;
	struct route_shard *zero = route_shard_create(old->log2, depth, version_next(table));
	struct route_shard *one = route_shard_create(old->log2, depth, version_next(table));
	bool wide_enough = route_table_directory(table)->depth >= depth || directory_double(table);
	if (zero == NULL || one == NULL || !wide_enough) {
		route_shard_free(zero);
		route_shard_free(one);
		return false;
	}
	struct route_directory *directory = route_table_directory(table);
	uint64_t first = shard_first(directory, old->depth, hash);
	uint64_t span = directory_span(directory, depth);

	copy_live(table, old, zero, one);
	count_bytes(table, (int64_t)(route_shard_bytes(zero) + route_shard_bytes(one)));
	directory_set(directory, first, span, zero);
	directory_set(directory, first + span, span, one);
	replace_done(table, old);
	return true;
}

// A shard at its limit that is half dead is rebuilt at its size, otherwise it grows or splits.
// Either way a good part of it is free afterwards, so the cost per insertion stays constant.
static bool make_room(struct route_table *table, struct route_shard *shard, uint64_t hash)
{
	if (shard->live <= route_shard_used_max(shard) / 2)
		return rebuild(table, shard, hash, shard->log2);
	if (shard->log2 < ROUTE_SHARD_LOG2_MAX)
		return rebuild(table, shard, hash, shard->log2 + 1);
	return split(table, shard, hash);
}

// ---- changes ----

static struct route_shard *shard_of(const struct route_table *table, uint64_t hash)
{
	const struct route_directory *directory = route_table_directory(table);

	return directory->shards[route_directory_index(directory->depth, hash)];
}

enum route_write route_publish(struct route_table *table, struct spot_key key, route_word word)
{
	const uint64_t hash = route_hash(table, key);

	CHECK(!spot_key_is_zero(key));
	CHECK(word != ROUTE_NONE);
	if (UNLIKELY(publish_pending() > table->pending_max))
		return ROUTE_STALLED;
	struct route_shard *shard = shard_of(table, hash);
	struct route_slot *slot = route_shard_find(shard, key, hash);

	if (!spot_key_is_zero(route_slot_key(slot))) {
		bool was_live =
			atomic_load_explicit(&slot->word, memory_order_relaxed) != ROUTE_NONE;
		// Release pairs with the reader's acquire: old or new, never a mix.
		atomic_store_explicit(&slot->word, word, memory_order_release);
		shard->live += was_live ? 0 : 1;
		table->live += was_live ? 0 : 1;
		return ROUTE_WRITTEN;
	}
	// A split can leave all keys on one side; each step uses up one bit of the hash.
	for (uint32_t step = 0; !route_shard_has_room(shard); step++) {
		if (step > ROUTE_DEPTH_MAX + ROUTE_SHARD_LOG2_MAX || !make_room(table, shard, hash))
			return ROUTE_NO_MEMORY;
		shard = shard_of(table, hash);
		slot = route_shard_find(shard, key, hash);
	}
	route_shard_fill(shard, slot, key, word);
	table->live++;
	return ROUTE_WRITTEN;
}

route_word route_retire(struct route_table *table, struct spot_key key)
{
	const uint64_t hash = route_hash(table, key);
	struct route_shard *shard = shard_of(table, hash);

	if (spot_key_is_zero(key))
		return ROUTE_NONE;
	struct route_slot *slot = route_shard_find(shard, key, hash);
	route_word word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	if (word == ROUTE_NONE)
		return ROUTE_NONE;
	atomic_store_explicit(&slot->word, ROUTE_NONE, memory_order_release);
	shard->live--;
	table->live--;
	return word;
}

uint64_t route_count(const struct route_table *table)
{
	return table->live;
}

uint64_t route_bytes(const struct route_table *table)
{
	return table->bytes;
}
