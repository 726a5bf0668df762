// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"
#include "route/route.h"
#include "route/table.h"

// The readers' half: no lock, no store to shared memory, and a bounded number of steps (R3).

static inline uintptr_t entry_of(const struct route_directory *directory, uint64_t hash)
{
	// Acquire pairs with the release that published the shard.
	return atomic_load_explicit(
		&directory->entries[route_directory_index(directory->depth, hash)],
		memory_order_acquire);
}

static inline const struct route_slot *entry_slots(uintptr_t entry)
{
	return (const struct route_slot *)(entry & ~(uintptr_t)ROUTE_ENTRY_LOG2_MASK);
}

static inline uint32_t entry_count(uintptr_t entry)
{
	return route_slot_count(entry & ROUTE_ENTRY_LOG2_MASK);
}

// A slot whose key is half written compares unequal to every key but, by chance, a zero one; either
// way the answer is the one from before the insertion.
static inline route_word probe(uintptr_t entry, struct spot_key key, uint32_t home)
{
	const struct route_slot *slots = entry_slots(entry);
	const uint32_t count = entry_count(entry);
	uint32_t i = home;

	for (uint32_t n = 0; n < count; n++, i = route_slot_next(i, count)) {
		struct spot_key found = route_slot_key(&slots[i]);
		if (LIKELY(spot_key_equal(found, key)))
			return atomic_load_explicit(&slots[i].word, memory_order_acquire);
		if (spot_key_is_zero(found))
			return ROUTE_NONE;
	}
	return ROUTE_NONE;
}

route_word route_lookup(const struct route_table *table, struct spot_key key)
{
	const struct route_directory *directory =
		atomic_load_explicit(&table->directory, memory_order_acquire);
	uint64_t hash = route_hash(table, key);
	uintptr_t entry = entry_of(directory, hash);

	return probe(entry, key, route_slot_home(hash, entry_count(entry)));
}

void route_lookup_burst(
	const struct route_table *table, const struct spot_key *keys, uint32_t n, route_word *out)
{
	const struct route_directory *directory =
		atomic_load_explicit(&table->directory, memory_order_acquire);
	uint32_t homes[ROUTE_BURST_MAX];
	uintptr_t entries[ROUTE_BURST_MAX];

	CHECK(n <= ROUTE_BURST_MAX);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t hash = route_hash(table, keys[i]);
		entries[i] = entry_of(directory, hash);
		homes[i] = route_slot_home(hash, entry_count(entries[i]));
		// Both ends: the slot may lie across two lines.
		const struct route_slot *slot = &entry_slots(entries[i])[homes[i]];
		__builtin_prefetch((const void *)&slot->key_lo);
		__builtin_prefetch((const void *)&slot->word);
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = probe(entries[i], keys[i], homes[i]);
}
