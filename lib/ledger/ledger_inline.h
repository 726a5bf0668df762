// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Bodies of ledger.h that sit on the path of every message. Include ledger/ledger.h, not this.

#include "base/check.h"
#include "ledger/ledger.h"

enum {
	LEDGER_SMALL_BYTES_MAX = 4096, // up to here one table entry per 8 bytes
	LEDGER_SMALL_CLASSES = LEDGER_SMALL_BYTES_MAX / 8 + 1,
};
extern uint16_t ledger_small_class[LEDGER_SMALL_CLASSES]; // filled before main, then constant
uint32_t ledger_large_class(size_t bytes);

static inline uint32_t ledger_size_class(size_t bytes)
{
	if (LIKELY(bytes <= LEDGER_SMALL_BYTES_MAX))
		return ledger_small_class[(bytes + 7) / 8];
	return ledger_large_class(bytes);
}

static inline uint32_t ledger_charge_of(
	enum ledger_accounting accounting, size_t block_bytes, size_t payload_bytes)
{
	return accounting == LEDGER_FIXED ? (uint32_t)(payload_bytes + LEDGER_FIXED_OVERHEAD_BYTES)
					  : ledger_size_class(block_bytes);
}

// The slow halves: to and from the central word.
bool ledger_shard_borrow(struct ledger_shard *s, uint64_t bytes);
void ledger_shard_give(struct ledger_shard *s);

// charged_bytes has one writer; the atomic store only makes other threads' reads whole.
static inline uint64_t ledger_shard_charged(const struct ledger_shard *s)
{
	return atomic_load_explicit(&s->charged_bytes, memory_order_relaxed);
}

static inline void ledger_shard_set_charged(struct ledger_shard *s, uint64_t bytes)
{
	atomic_store_explicit(&s->charged_bytes, bytes, memory_order_relaxed);
}

MUST_USE static inline bool ledger_charge(struct ledger_shard *s, uint64_t bytes)
{
	if (UNLIKELY(s->budget_bytes < bytes) && !ledger_shard_borrow(s, bytes))
		return false;
	s->budget_bytes -= bytes;
	ledger_shard_set_charged(s, ledger_shard_charged(s) + bytes);
	return true;
}

static inline void ledger_hand_out(struct ledger_shard *s, uint64_t bytes)
{
	uint64_t charged = ledger_shard_charged(s);

	CHECK(charged >= bytes);
	ledger_shard_set_charged(s, charged - bytes);
}

static inline void ledger_hand_in(struct ledger_shard *s, uint64_t bytes)
{
	ledger_shard_set_charged(s, ledger_shard_charged(s) + bytes);
}

static inline void ledger_release(struct ledger_shard *s, uint64_t bytes)
{
	ledger_hand_out(s, bytes);
	s->budget_bytes += bytes;
	if (UNLIKELY(s->budget_bytes > LEDGER_CHUNK_BYTES))
		ledger_shard_give(s);
}
