// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/neighbours.h"

void neighbours_init(struct neighbours *table, uint64_t key)
{
	memset(table, 0, sizeof(*table));
	table->key = key;
}

static void entry_write(
	struct neighbour_bucket *bucket, uint32_t way, const uint64_t ip[2], uint64_t mac)
{
	uint32_t s = atomic_load_explicit(&bucket->sequence, memory_order_relaxed);
	struct neighbour_entry *e = &bucket->entries[way];
	atomic_store_explicit(&bucket->sequence, s + 1, memory_order_relaxed);
	// Release: a reader that sees any of the following stores sees the odd sequence too.
	// (A fence would say the same, but ThreadSanitizer does not know fences.)
	atomic_store_explicit(&e->ip[0], ip[0], memory_order_release);
	atomic_store_explicit(&e->ip[1], ip[1], memory_order_release);
	atomic_store_explicit(&e->mac, mac, memory_order_release);
	atomic_store_explicit(&bucket->sequence, s + 2, memory_order_release);
}

// The way that holds ip, else a free one, else the next in turn; `out_held` says which.
static uint32_t way_for(struct neighbour_bucket *bucket, const uint64_t ip[2], bool *out_held)
{
	uint32_t free_way = NEIGHBOUR_WAYS;
	*out_held = false;
	for (uint32_t way = 0; way < NEIGHBOUR_WAYS; way++) {
		struct neighbour_entry *e = &bucket->entries[way];
		uint64_t mac = atomic_load_explicit(&e->mac, memory_order_relaxed);
		if ((mac & NEIGHBOUR_USED) == 0) {
			free_way = way;
			continue;
		}
		if (atomic_load_explicit(&e->ip[0], memory_order_relaxed) == ip[0] &&
			atomic_load_explicit(&e->ip[1], memory_order_relaxed) == ip[1]) {
			*out_held = true;
			return way;
		}
	}
	if (free_way != NEIGHBOUR_WAYS)
		return free_way;
	return bucket->next_way++ % NEIGHBOUR_WAYS;
}

void neighbours_set(struct neighbours *table, const uint8_t ip[16], const uint8_t mac[6])
{
	uint64_t key[2], word = 0;
	bool held;
	memcpy(key, ip, sizeof(key));
	memcpy(&word, mac, 6);
	struct neighbour_bucket *bucket = &table->buckets[neighbours_bucket_of(table, key)];
	entry_write(bucket, way_for(bucket, key, &held), key, word | NEIGHBOUR_USED);
}

void neighbours_clear(struct neighbours *table, const uint8_t ip[16])
{
	static const uint64_t none[2];
	uint64_t key[2];
	memcpy(key, ip, sizeof(key));
	struct neighbour_bucket *bucket = &table->buckets[neighbours_bucket_of(table, key)];
	for (uint32_t way = 0; way < NEIGHBOUR_WAYS; way++) {
		struct neighbour_entry *e = &bucket->entries[way];
		if (atomic_load_explicit(&e->ip[0], memory_order_relaxed) == key[0] &&
			atomic_load_explicit(&e->ip[1], memory_order_relaxed) == key[1])
			entry_write(bucket, way, none, 0);
	}
}
