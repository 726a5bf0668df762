// SPDX-License-Identifier: BSD-3-Clause
#include "ledger/ledger.h"

#include "base/atomic.h"
#include "base/mem.h"
#include "ledger/item_memory.h"

// One owner thread allocates and frees; other threads only push chains on `returned`, from which
// the owner takes everything at once, so the stack has no ABA problem.

struct item_arena {
	struct item_memory memory; // owner
	uint64_t held_bytes;       // owner
	uint64_t held_items;       // owner
	uint32_t index;            // constant
	bool fail_sticky;          // tests
	uint64_t fail_left;        // tests; 0 = off
	// Written by givers (release) and the owner (acquire), on its own line.
	CACHE_ALIGNED _Atomic(struct item_head *) returned;
};

_Static_assert(sizeof(struct item_head) == 16, "every item pays for its head");

struct item_arena *item_arena_create(uint32_t index)
{
	struct item_arena *arena = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*arena));

	if (arena == NULL)
		return NULL;
	if (!item_memory_init(&arena->memory)) {
		mem_free(arena);
		return NULL;
	}
	arena->index = index;
	atomic_init(&arena->returned, NULL);
	return arena;
}

void item_arena_destroy(struct item_arena *arena)
{
	if (arena == NULL)
		return;
	item_arena_collect(arena);
	CHECK(arena->held_items == 0);
	CHECK(arena->held_bytes == 0);
	item_memory_fini(&arena->memory);
	mem_free(arena);
}

void item_arena_fail_nth(struct item_arena *arena, uint64_t nth, bool sticky)
{
	arena->fail_left = nth;
	arena->fail_sticky = sticky;
}

static bool must_fail(struct item_arena *arena)
{
	if (arena->fail_left > 1) {
		arena->fail_left--;
		return false;
	}
	if (!arena->fail_sticky)
		arena->fail_left = 0;
	return true;
}

struct item_head *item_alloc(struct item_arena *arena, size_t bytes)
{
	struct item_head *item;

	CHECK(bytes >= sizeof(*item));
	if (UNLIKELY(bytes > LEDGER_ITEM_BYTES_MAX))
		return NULL;
	if (UNLIKELY(arena->fail_left != 0) && must_fail(arena))
		return NULL;
	const uint32_t block_bytes = ledger_size_class(bytes);
	item = item_memory_take(&arena->memory, bytes, block_bytes);
	if (UNLIKELY(item == NULL))
		return NULL;
	item->next = NULL;
	item->block_bytes = block_bytes;
	item->owner = arena->index;
	arena->held_bytes += block_bytes;
	arena->held_items++;
	return item;
}

void item_free(struct item_arena *arena, struct item_head *item)
{
	CHECK(item->owner == arena->index);
	CHECK(arena->held_items > 0);
	arena->held_items--;
	arena->held_bytes -= item->block_bytes;
	item_memory_drop(&arena->memory, item, item->block_bytes);
}

void item_give_back(
	struct item_arena *owner, struct item_head *chain_head, struct item_head *chain_tail)
{
	struct item_head *top = at_load(&owner->returned, memory_order_relaxed);

#if EXPLORE_BUG == 5
	chain_tail->next = top;
	at_store(&owner->returned, chain_head, memory_order_release);
	return;
#endif
	do {
		chain_tail->next = top;
		// Release pairs with the acquire in item_arena_collect.
	} while (!at_cas(&owner->returned, &top, chain_head, memory_order_release));
}

void item_arena_collect(struct item_arena *arena)
{
	// The plain look keeps the common empty case free of a locked step.
	if (at_load(&arena->returned, memory_order_relaxed) == NULL)
		return;
	struct item_head *item = at_exchange(&arena->returned, NULL, memory_order_acquire);

	while (item != NULL) {
		struct item_head *next = item->next;
		item_free(arena, item);
		item = next;
	}
}

void item_arena_flush(struct item_arena *arena)
{
	item_memory_flush(&arena->memory);
}

void item_arena_audit(struct item_arena *arena, struct item_arena_stats *out)
{
	out->held_bytes = arena->held_bytes;
	out->held_items = arena->held_items;
	out->measured_bytes = item_memory_measure(&arena->memory);
}
