// SPDX-License-Identifier: BSD-3-Clause
#include "route/shard.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/mem.h"

_Static_assert(sizeof(struct route_slot) == 24, "a packed key and word");
_Static_assert(CACHE_LINE_BYTES > ROUTE_ENTRY_LOG2_MASK, "slots leave room for log2 in a pointer");

// A full-grown shard is exactly one huge page of 2 MiB.
#define HUGE_BYTES ((size_t)2 * 1024 * 1024)
_Static_assert(HUGE_BYTES == (size_t)1 << ROUTE_SHARD_LOG2_MAX, "one huge page");
_Static_assert(HUGE_BYTES / sizeof(struct route_slot) == ROUTE_SHARD_SLOTS_MAX, "the stated limit");

static size_t slots_bytes(uint32_t log2)
{
	return (size_t)1 << log2;
}

// Twice the size is mapped and the unaligned ends are returned: only an aligned stretch can become
// a huge page. Where the kernel has none to give, small pages do.
static struct route_slot *map_huge(void)
{
	uint8_t *raw = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	size_t skip = (HUGE_BYTES - ((uintptr_t)raw & (HUGE_BYTES - 1))) & (HUGE_BYTES - 1);
	size_t rest = HUGE_BYTES - skip;

	if (skip > 0)
		munmap(raw, skip);
	if (rest > 0)
		munmap(raw + skip + HUGE_BYTES, rest);
	madvise(raw + skip, HUGE_BYTES, MADV_HUGEPAGE);
	return (struct route_slot *)(void *)(raw + skip);
}

struct route_shard *route_shard_create(uint32_t log2, uint32_t depth, uint32_t version)
{
	struct route_shard *shard = mem_zalloc(sizeof(*shard));

	if (shard == NULL)
		return NULL;
	shard->slots = slots_bytes(log2) == HUGE_BYTES
			       ? map_huge()
			       : mem_zalloc_aligned(CACHE_LINE_BYTES, slots_bytes(log2));
	if (shard->slots == NULL) {
		mem_free(shard);
		return NULL;
	}
	shard->log2 = log2;
	shard->depth = depth;
	shard->version = version;
	return shard;
}

void route_shard_free(struct route_shard *shard)
{
	if (shard == NULL)
		return;
	if (slots_bytes(shard->log2) == HUGE_BYTES)
		CHECK(munmap(shard->slots, HUGE_BYTES) == 0);
	else
		mem_free(shard->slots);
	mem_free(shard);
}

static void free_deferred(struct publish_deferred *node)
{
	route_shard_free(container_of(node, struct route_shard, deferred));
}

void route_shard_retire(struct route_shard *shard)
{
	publish_defer(&shard->deferred, free_deferred);
}

uint64_t route_shard_bytes(const struct route_shard *shard)
{
	return sizeof(*shard) + slots_bytes(shard->log2);
}

struct route_slot *route_shard_find(
	const struct route_shard *shard, struct spot_key key, uint64_t hash)
{
	const uint32_t count = route_shard_slot_count(shard);
	uint32_t i = route_slot_home(hash, count);

	for (uint32_t n = 0; n < count; n++, i = route_slot_next(i, count)) {
		struct spot_key found = route_slot_key(&shard->slots[i]);
		if (spot_key_equal(found, key) || spot_key_is_zero(found))
			return &shard->slots[i];
	}
	CHECK(!"a shard always has an empty slot");
	return NULL;
}

void route_shard_fill(
	struct route_shard *shard, struct route_slot *slot, struct spot_key key, route_word word)
{
	atomic_store_explicit(&slot->key_lo, key.lo, memory_order_relaxed);
	atomic_store_explicit(&slot->key_hi, key.hi, memory_order_relaxed);
	// Release pairs with the reader's acquire: a word is seen with its key and what it points
	// to.
	atomic_store_explicit(&slot->word, word, memory_order_release);
	shard->used++;
	shard->live++;
}
