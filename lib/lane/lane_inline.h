// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Bodies of lane.h that sit on the path of every message. Include lane/lane.h, not this.

#include "base/atomic.h"
#include "base/check.h"
#include "lane/lane.h"

// bytes 0..39, count 40..61, sealed 62, opening 63.
#define LANE_COUNT_SHIFT 40
#define LANE_COUNT_ONE (UINT64_C(1) << LANE_COUNT_SHIFT)
#define LANE_SEALED_BIT (UINT64_C(1) << 62)
#define LANE_OPENING_BIT (UINT64_C(1) << 63)

static inline uint64_t lane_bits_bytes(uint64_t bits)
{
	return bits & LANE_BYTES_LIMIT;
}

static inline uint32_t lane_bits_count(uint64_t bits)
{
	return (uint32_t)(bits >> LANE_COUNT_SHIFT) & LANE_COUNT_LIMIT;
}

static inline enum lane_verdict lane_bits_judge(
	uint64_t bits, struct lane_bounds bounds, uint32_t charge_bytes, uint64_t refusing)
{
	if (UNLIKELY((bits & refusing) != 0))
		return (bits & LANE_SEALED_BIT) != 0 ? LANE_SEALED : LANE_OPENING;
	if (UNLIKELY(lane_bits_count(bits) >= bounds.count_max))
		return LANE_FULL_COUNT;
	if (UNLIKELY(lane_bits_bytes(bits) + charge_bytes > bounds.bytes_max))
		return LANE_FULL_BYTES;
	return LANE_ADMITTED;
}

// The acquire pairs with the release of lane_open, lane_unseal and lane_return. A failed step means
// that another thread's step succeeded, so the loop is lock-free.
static inline enum lane_verdict lane_reserve_past(struct lane_word *word, struct lane_bounds bounds,
	uint32_t charge_bytes, uint64_t refusing)
{
	const uint64_t step = LANE_COUNT_ONE + charge_bytes;

	CHECK(charge_bytes > 0);
#if EXPLORE_BUG == 1
	uint64_t before = at_fetch_add(&word->value, step, memory_order_acquire);
	enum lane_verdict late = lane_bits_judge(before, bounds, charge_bytes, refusing);
	if (late != LANE_ADMITTED)
		at_fetch_sub(&word->value, step, memory_order_release);
	return late;
#else
	uint64_t bits = at_load(&word->value, memory_order_relaxed);
	for (;;) {
		enum lane_verdict verdict = lane_bits_judge(bits, bounds, charge_bytes, refusing);
		if (UNLIKELY(verdict != LANE_ADMITTED))
			return verdict;
		if (LIKELY(at_cas(&word->value, &bits, bits + step, memory_order_acquire)))
			return LANE_ADMITTED;
	}
#endif
}

MUST_USE static inline enum lane_verdict lane_reserve(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes)
{
	return lane_reserve_past(word, bounds, charge_bytes, LANE_SEALED_BIT | LANE_OPENING_BIT);
}

MUST_USE static inline enum lane_verdict lane_reserve_first(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes)
{
	return lane_reserve_past(word, bounds, charge_bytes, LANE_SEALED_BIT);
}

MUST_USE static inline bool lane_reserve_empty(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes, bool sole)
{
	const uint64_t step = LANE_COUNT_ONE + charge_bytes;
	uint64_t bits = 0;

	CHECK(charge_bytes > 0);
	if (UNLIKELY(charge_bytes > bounds.bytes_max)) // valid bounds have room for one
		return false;
	if (!sole)
		return at_cas(&word->value, &bits, step, memory_order_acquire);
	if (at_load(&word->value, memory_order_relaxed) != 0)
		return false;
	at_store(&word->value, step, memory_order_relaxed);
	return true;
}

static inline void lane_return_check(uint64_t before, uint32_t charge_bytes)
{
	CHECK(lane_bits_count(before) > 0);
	CHECK(lane_bits_bytes(before) >= charge_bytes);
}

static inline bool lane_return_last(struct lane_word *word, uint32_t charge_bytes, bool sole)
{
	const uint64_t step = LANE_COUNT_ONE + charge_bytes;
	uint64_t before;

	if (sole) {
		before = at_load(&word->value, memory_order_relaxed);
		lane_return_check(before, charge_bytes);
		at_store(&word->value, before - step, memory_order_release);
	} else {
		before = at_fetch_sub(&word->value, step, memory_order_release);
		lane_return_check(before, charge_bytes);
	}
	return before == step;
}

// The release pairs with the acquire of the reservation, or of the seal, that finds the room.
static inline void lane_return(struct lane_word *word, uint32_t charge_bytes)
{
	const uint64_t step = LANE_COUNT_ONE + charge_bytes;
	uint64_t before = at_fetch_sub(&word->value, step, memory_order_release);

	lane_return_check(before, charge_bytes);
#if EXPLORE_BUG == 2
	// "Somebody else was here, so my step was lost": it was not.
	if (at_load(&word->value, memory_order_relaxed) != before - step)
		at_fetch_sub(&word->value, step, memory_order_release);
#endif
}

MUST_USE static inline bool lane_seal(struct lane_word *word)
{
	uint64_t bits = at_load(&word->value, memory_order_relaxed);

	for (;;) {
		if ((bits & ~LANE_OPENING_BIT) != 0)
			return false;
#if EXPLORE_BUG == 4
		at_fetch_or(&word->value, LANE_SEALED_BIT, memory_order_acquire);
		return true;
#endif
		// Acquire pairs with the release of the last lane_return.
		if (at_cas(&word->value, &bits, bits | LANE_SEALED_BIT, memory_order_acquire))
			return true;
	}
}
