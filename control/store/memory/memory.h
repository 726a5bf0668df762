// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The in-memory store provider, with planted faults: for tests and the simulator. One thread.
//
// Nothing happens between turns: an operation waits `delay` polls, is then applied and completed in
// one step. All chance comes from one seeded generator, so a seed replays a run exactly.

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/store.h"

enum memory_fault {
	MEMORY_FAULT_NONE = 0,
	MEMORY_FAULT_BEFORE = 1, // UNREACHABLE, nothing applied
	MEMORY_FAULT_ANSWER = 2, // applied, answered UNKNOWN (a lost answer)
	MEMORY_FAULT_LOST = 3,   // not applied, answered UNKNOWN (a lost request)
	MEMORY_FAULT_FULL = 4,   // writes: FULL, nothing applied; reads and releases go on
	MEMORY_FAULT_DAMAGE = 5, // DAMAGED, and so is everything after it
	MEMORY_FAULT_END,
};

struct memory_faults { // each in 1/1000 of all operations
	uint32_t before_permille, answer_permille, lost_permille, full_permille;
	uint32_t delay_polls_max; // uniform in 0..max
};

// clock is borrowed (store_wall_ns). NULL when memory is short.
MUST_USE struct store *memory_store_create(struct clock *clock, uint64_t seed);
// Another process at the same store: rows are shared; what it lent, its faults and holds are its own.
// The rows live until the last door is destroyed.
MUST_USE struct store *memory_store_share(struct store *store, struct clock *clock, uint64_t seed);
void memory_store_faults(struct store *store, const struct memory_faults *faults);
// The next `count` operations of `kind` (0: any) meet this fault.
void memory_store_plant(
	struct store *store, enum store_op_kind kind, enum memory_fault fault, uint32_t count);
// While held, operations wait: nothing is applied, nothing completes.
void memory_store_hold(struct store *store, bool hold);
// The store does what is due although its submitter does not look (it is suspended): the answers wait
// for poll, which takes such a turn itself.
void memory_store_turn(struct store *store);
// The store restarted: what is pending was applied or not, as the seed has it; the answers are lost.
void memory_store_restart(struct store *store);
// The process of the submitter died: what it lent is forgotten; each pending operation was applied or
// not, as the seed has it.
void memory_store_crash(struct store *store);
// Where the next drawn generation continues (T6).
void memory_store_generation_set(struct store *store, uint64_t last);

// ---- looking inside, for checks ----
bool memory_store_spot(struct store *store, struct spot_key key, struct store_spot_row *out);
bool memory_store_node(struct store *store, const char *node_id, struct store_node_row *out);
// Overwrites a node's row (another host's, a fenced one …) as somebody else would.
void memory_store_node_put(struct store *store, const struct store_node_row *row);
void memory_store_spot_put(struct store *store, const struct store_spot_row *row);
uint64_t memory_store_spot_count(struct store *store);
uint64_t memory_store_fault_count(struct store *store, enum memory_fault fault); // met at this door
uint64_t memory_store_pending(struct store *store);
uint64_t memory_store_writes(struct store *store); // changes ever made to Spot rows
void memory_store_each(
	struct store *store, void (*visit)(const struct store_spot_row *row, void *arg), void *arg);
