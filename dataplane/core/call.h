// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Requests and blocking work that handlers of this worker's Spots wait for (M2, X2, X5). A call
// number carries its slot's generation: an answer that comes after the call ended finds another
// generation, is counted and dropped. Deadlines sit in a heap. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/result.h"
#include "core/item.h"

struct dp_worker;

enum { CALLS_MAX = 8192 };

struct call_slot {
	struct item *turn; // whose turn made it
	struct dp_spot *spot;
	struct spot_key key; // whom it asks; zero: blocking work
	uint64_t deadline_boot_ns; // UINT64_MAX for blocking work
	uint32_t generation;
	uint32_t heap_position; // index + 1; 0 = not in the heap
	uint32_t next;          // of the free list, or of the turn's calls; index + 1
	uint8_t used;
};

struct call_table {
	struct call_slot *slots;
	uint32_t *heap; // slot indexes by deadline
	uint32_t heap_count;
	uint32_t free_chain;
	uint32_t slots_used;
};

MUST_USE bool call_table_init(struct call_table *calls);
void call_table_fini(struct call_table *calls);

// A new call number; 0 when there is no room. key: whom it asks; zero for blocking work.
MUST_USE uint64_t call_begin(struct dp_worker *w, struct dp_spot *spot, struct item *turn,
	struct spot_key key, uint64_t deadline_boot_ns);
// Whom an open request of this Spot asks; false: there is no such request.
MUST_USE bool call_target(
	struct dp_worker *w, const struct dp_spot *spot, uint64_t call, struct spot_key *out_key);
// Takes back a call that was never submitted.
void call_cancel(struct dp_worker *w, uint64_t call);
// The turn of these calls ends: their answers will be late.
void call_abandon(struct dp_worker *w, struct item *turn);
// An answer for a call of this worker. Consumes the item (it may wait on the turn).
void call_answer(struct dp_worker *w, struct item *answer);
// Sends an answer to the worker that made the call. False: memory is short, nothing was sent.
bool call_send_answer(struct dp_worker *w, const struct envelope *env, struct result result,
	uint16_t content, struct span payload);
bool call_tick(struct dp_worker *w);
