// SPDX-License-Identifier: BSD-3-Clause
#include "ledger/ledger.h"

// The central word holds the budget nobody has taken, so "never above the mark" is "never below
// zero", which one compare-and-swap decides. Only counts travel through it: relaxed order is
// enough; items themselves are published by the rings and return stacks that carry them.

_Static_assert(sizeof(struct ledger_process) == 2 * CACHE_LINE_BYTES,
	"the word that all workers write has its own line");
_Static_assert(sizeof(struct ledger_shard) == 24, "a shard is three words of its worker");

// After a borrow or a give a shard keeps half a chunk, so that traffic around either edge does not
// touch the centre on every message.
enum { LEDGER_KEEP_BYTES = LEDGER_CHUNK_BYTES / 2 };

void ledger_process_init(struct ledger_process *p, uint64_t mark_bytes)
{
	atomic_init(&p->free_bytes, mark_bytes);
	p->mark_bytes = mark_bytes;
}

void ledger_shard_init(struct ledger_shard *s, struct ledger_process *p)
{
	s->process = p;
	s->budget_bytes = 0;
	atomic_init(&s->charged_bytes, 0);
}

bool ledger_shard_borrow(struct ledger_shard *s, uint64_t bytes)
{
	_Atomic uint64_t *centre = &s->process->free_bytes;
	uint64_t need = bytes - s->budget_bytes;
	uint64_t found = atomic_load_explicit(centre, memory_order_relaxed);
	uint64_t take;

	do {
		if (found < need)
			return false;
		take = found - need < LEDGER_KEEP_BYTES ? found : need + LEDGER_KEEP_BYTES;
	} while (!atomic_compare_exchange_weak_explicit(
		centre, &found, found - take, memory_order_relaxed, memory_order_relaxed));
	s->budget_bytes += take;
	return true;
}

static void give_back(struct ledger_shard *s, uint64_t bytes)
{
	uint64_t before = atomic_fetch_add_explicit(
		&s->process->free_bytes, bytes, memory_order_relaxed);

	CHECK(before + bytes <= s->process->mark_bytes);
	s->budget_bytes -= bytes;
}

void ledger_shard_give(struct ledger_shard *s)
{
	give_back(s, s->budget_bytes - LEDGER_KEEP_BYTES);
}

void ledger_shard_trim(struct ledger_shard *s)
{
	if (s->budget_bytes > 0)
		give_back(s, s->budget_bytes);
}

uint64_t ledger_process_taken(const struct ledger_process *p)
{
	return p->mark_bytes - atomic_load_explicit(&p->free_bytes, memory_order_relaxed);
}
