// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Charges (L2), item memory, and the process-wide inbound bound (P1, P2).
//
// 1. The charge of an item is the jemalloc size class of its one block; it is computed once, stored
//    in the item and returned unchanged. Under `accounting: fixed` it is payload + 256 instead.
// 2. Items live in arenas that hold nothing else: at a quiet moment, after every worker returned
//    foreign items and flushed its cache, the sum of held size classes equals jemalloc's figure
//    (L3).
// 3. An item is freed where it was allocated: a worker that ends a foreign item puts it on a return
//    list per owner, handed over in batches.
// 4. The process bound is never overshot: a shard takes chunks from one central word before it
//    admits against them, and returns what it does not need (P1).

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum ledger_accounting { LEDGER_MEASURED = 1, LEDGER_FIXED = 2 };
enum {
	LEDGER_FIXED_OVERHEAD_BYTES = 256,
	LEDGER_CHUNK_BYTES = 64 * 1024, // a shard's idle budget never exceeds this
	LEDGER_ITEM_BYTES_MAX = 32 * 1024 * 1024,
};

// First member of every item.
struct item_head {
	struct item_head *next;
	uint32_t block_bytes; // size class of the block, what jemalloc holds
	uint32_t owner;       // index of the arena that allocated it
};

// The allocator that runs, for display. Any thread.
const char *ledger_allocator_version(void);

// The size class that an allocation of `bytes` really takes (sole caller of nallocx, at start: the
// tables are filled from it before main). 0 counts as 1. Any thread.
static inline uint32_t ledger_size_class(size_t bytes);
// The charge of an item of `block_bytes` in all that carries `payload_bytes` (L2).
static inline uint32_t ledger_charge_of(
	enum ledger_accounting accounting, size_t block_bytes, size_t payload_bytes);

// ---- item memory: one arena per worker, owner thread only unless stated ----
struct item_arena;
MUST_USE struct item_arena *item_arena_create(uint32_t index);
// Tests: the nth item_alloc from now finds no memory (1 = the next); sticky: and every later one. 0 ends
// it. Owner thread.
void item_arena_fail_nth(struct item_arena *arena, uint64_t nth, bool sticky);
void item_arena_destroy(struct item_arena *arena); // accepts NULL; every item must be back
// NULL when memory is short or bytes > LEDGER_ITEM_BYTES_MAX. bytes >= sizeof(struct item_head);
// the head is set (next NULL), the rest is not cleared.
MUST_USE struct item_head *item_alloc(struct item_arena *arena, size_t bytes);
// Frees an item of this arena: owner thread only, and CHECKed.
void item_free(struct item_arena *arena, struct item_head *item);
// Any thread, any number of them: hands a chain of foreign items (linked by next, all of this
// owner) back. Lock-free, one atomic step per chain; the owner frees them at its next
// item_arena_collect.
void item_give_back(
	struct item_arena *owner, struct item_head *chain_head, struct item_head *chain_tail);
void item_arena_collect(struct item_arena *arena);
// Returns cached memory to the arena, for the audit.
void item_arena_flush(struct item_arena *arena);
struct item_arena_stats {
	uint64_t held_bytes;     // our books: sum of block_bytes of live items
	uint64_t held_items;
	// jemalloc's books for this arena; equals held_bytes, or L3 is broken
	uint64_t measured_bytes;
};
// Under the address sanitizer items come from malloc, so that it sees every overflow;
// measured_bytes is then a second sum of our own (by usable block), not jemalloc's. Any thread
// while the owner is parked after item_arena_flush.
void item_arena_audit(struct item_arena *arena, struct item_arena_stats *out);

// ---- process inbound bound (P) ----
struct ledger_process { // shared by all workers; central words on their own lines
	CACHE_ALIGNED _Atomic uint64_t free_bytes; // budget that no shard has taken
	CACHE_ALIGNED uint64_t mark_bytes;         // written at start only
};
struct ledger_shard { // owner: one worker (or control)
	struct ledger_process *process;
	uint64_t budget_bytes; // taken from the centre and not charged
	_Atomic uint64_t charged_bytes; // written by the owner, read by anyone (relaxed)
};
void ledger_process_init(struct ledger_process *p, uint64_t mark_bytes);
void ledger_shard_init(struct ledger_shard *s, struct ledger_process *p);
// True when `bytes` now count against the bound. False changes nothing (P3: refuse).
MUST_USE static inline bool ledger_charge(struct ledger_shard *s, uint64_t bytes);
static inline void ledger_release(struct ledger_shard *s, uint64_t bytes);
// An item changes worker: the giver calls hand_out before it pushes, the taker hand_in after it
// popped; in between the bytes belong to neither shard and stay taken from the centre.
static inline void ledger_hand_out(struct ledger_shard *s, uint64_t bytes);
static inline void ledger_hand_in(struct ledger_shard *s, uint64_t bytes);
// Bytes taken from the centre (charged plus idle budgets): never above mark_bytes. Any thread.
uint64_t ledger_process_taken(const struct ledger_process *p);
// Returns idle budget to the centre (before sleep, for the audit).
void ledger_shard_trim(struct ledger_shard *s);

#include "ledger/ledger_inline.h"
