// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One lane of a Spot (L1-L8): a reservation word and the home worker's list.
//
// The word packs bytes (40 bits), count (22 bits), `opening` and `sealed`. Promises:
// 1. Count and bytes are admitted or refused by one atomic step; the bounds are never overshot, not
//    even for an instant, by any number of producers (L4, I12).
// 2. Lock-free: a stalled producer delays nobody (L8).
// 3. Sealing is one step from empty: after it no reservation exists and none can be made.
// 4. `opening` (A7): the lane exists and refuses everybody but lane_reserve_first.
// Reserve and return: any worker or control. The list: home worker only.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "ledger/ledger.h"

#define LANE_BYTES_LIMIT ((UINT64_C(1) << 40) - 1)
#define LANE_COUNT_LIMIT ((UINT32_C(1) << 22) - 1)

struct lane_bounds {
	uint64_t bytes_max;
	uint32_t count_max;
};

struct lane_word {
	_Atomic uint64_t value;
};

enum lane_verdict {
	LANE_ADMITTED = 1,
	LANE_FULL_COUNT = 2,
	LANE_FULL_BYTES = 3,
	LANE_OPENING = 4,
	LANE_SEALED = 5,
};

struct lane_level {
	uint64_t bytes;
	uint32_t count;
	bool opening;
	bool sealed;
};

// Bounds that the word cannot hold, or zero bounds, are refused at start (L1: no lane unbounded).
bool lane_bounds_valid(struct lane_bounds bounds);

void lane_word_init(struct lane_word *word, bool opening);
// Admits one item of charge_bytes (> 0) or changes nothing. `bounds` are valid ones. Count is
// judged before bytes, so an item over both names the count; a seal is named before `opening`.
MUST_USE static inline enum lane_verdict lane_reserve(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes);
// The first message of a fresh Spot, by the one who carries it: passes `opening`.
MUST_USE static inline enum lane_verdict lane_reserve_first(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes);
// For a turn that is to run at once: as lane_reserve, but only when nothing at all is reserved and the
// lane is neither opening nor sealed; false changes nothing and says nothing about why. `sole`: the
// caller's is the only thread that changes this word (docs/decisions/lane-word.md).
MUST_USE static inline bool lane_reserve_empty(
	struct lane_word *word, struct lane_bounds bounds, uint32_t charge_bytes, bool sole);
// As lane_return; true when nothing is left reserved.
static inline bool lane_return_last(struct lane_word *word, uint32_t charge_bytes, bool sole);
// Ends one reservation of exactly charge_bytes: once per admitted item, at its terminal completion
// (L5), whether it was queued or its turn ran in place.
static inline void lane_return(struct lane_word *word, uint32_t charge_bytes);
void lane_open(struct lane_word *word); // clears `opening`; home worker
// From empty only (opening or not); false when anything is reserved or the lane is sealed already,
// so of two sealers one wins.
MUST_USE static inline bool lane_seal(struct lane_word *word);
void lane_unseal(struct lane_word *word); // by the one whose lane_seal was true
struct lane_level lane_level(const struct lane_word *word); // any thread, a snapshot

// The home worker's FIFO.
struct lane_list {
	struct item_head *head;
	struct item_head *tail;
};
static inline void lane_list_push(struct lane_list *list, struct item_head *item)
{
	item->next = NULL;
	if (list->head == NULL)
		list->head = item;
	else
		list->tail->next = item;
	list->tail = item;
}
static inline struct item_head *lane_list_pop(struct lane_list *list)
{
	struct item_head *item = list->head;
	if (item != NULL)
		list->head = item->next;
	return item;
}

// L6: which lane goes next. `run` counts lifecycle turns in a row; pure.
enum lane_choice { LANE_NONE = 0, LANE_LIFECYCLE = 1, LANE_APPLICATION = 2 };
enum { LANE_LIFECYCLE_RUN_MAX = 8 };
enum lane_choice lane_choose(bool lifecycle_ready, bool application_ready, uint8_t *run);

#include "lane/lane_inline.h"
