// SPDX-License-Identifier: BSD-3-Clause
#include "net/neighbour.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define STEP(state, effect) {NEIGHBOUR_##state, NEIGHBOUR_##effect}
#define ENDS {0, NEIGHBOUR_FORGET}

const struct neighbour_step neighbour_steps[NEIGHBOUR_STATES][NEIGHBOUR_EVENTS] = {
	// WANTED, ANSWERED, DUE, SPENT
	[NEIGHBOUR_INCOMPLETE - 1] = {STEP(INCOMPLETE, NOTHING), STEP(REACHABLE, PUBLISH),
		STEP(INCOMPLETE, ASK), STEP(FAILED, NOTHING)},
	// A worker that asks for a reachable one met a full bucket: publish again.
	[NEIGHBOUR_REACHABLE - 1] = {STEP(REACHABLE, PUBLISH), STEP(REACHABLE, PUBLISH),
		STEP(PROBING, PROBE), STEP(REACHABLE, IMPOSSIBLE)},
	[NEIGHBOUR_PROBING - 1] = {STEP(PROBING, PUBLISH), STEP(REACHABLE, PUBLISH),
		STEP(PROBING, PROBE), STEP(FAILED, WITHDRAW)},
	[NEIGHBOUR_LEARNED - 1] = {STEP(REACHABLE, PUBLISH), STEP(LEARNED, PUBLISH), ENDS,
		STEP(LEARNED, IMPOSSIBLE)},
	// Remembering the failure for a while is what keeps a dead address from being asked for
	// with
	// every frame.
	[NEIGHBOUR_FAILED - 1] = {STEP(FAILED, NOTHING), STEP(REACHABLE, PUBLISH), ENDS,
		STEP(FAILED, IMPOSSIBLE)},
};

static bool is_pending(const struct neighbour *n)
{
	return n->state == NEIGHBOUR_INCOMPLETE && !n->gateway;
}

static uint64_t due_after(const struct neighbour *n, uint64_t now_ns)
{
	switch (n->state) {
	case NEIGHBOUR_INCOMPLETE:
	case NEIGHBOUR_PROBING:
		return now_ns + (NEIGHBOUR_ASK_NS << n->tries);
	case NEIGHBOUR_REACHABLE:
		return now_ns + NEIGHBOUR_REACHABLE_NS;
	case NEIGHBOUR_LEARNED:
		return now_ns + NEIGHBOUR_LEARNED_NS;
	case NEIGHBOUR_FAILED:
		return now_ns + NEIGHBOUR_FAILED_NS;
	}
	CHECK(!"a neighbour_state");
}

static void due_set(struct neighbour_table *table, struct neighbour *n, uint64_t due_ns)
{
	n->due_ns = due_ns;
	if (due_ns < table->due_ns || table->count == 1)
		table->due_ns = due_ns;
}

static void entry_remove(struct neighbour_table *table, uint32_t at)
{
	table->pending -= is_pending(table->entries[at]);
	mem_free(table->entries[at]);
	table->entries[at] = table->entries[--table->count];
}

static void entry_end(struct neighbour_table *table, const struct neighbour *n)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (table->entries[i] == n) {
			entry_remove(table, i);
			return;
		}
	}
	CHECK(!"an entry of this table");
}

void neighbour_table_fini(struct neighbour_table *table)
{
	while (table->count > 0)
		entry_remove(table, table->count - 1);
}

struct neighbour *neighbour_find(const struct neighbour_table *table, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (memcmp(table->entries[i]->ip, ip, 16) == 0)
			return table->entries[i];
	}
	return NULL;
}

// Full: the oldest of those that nobody wanted, or that failed, makes room.
static bool room_make(struct neighbour_table *table, struct neighbour_forgotten *out_forgotten)
{
	uint32_t oldest = NEIGHBOURS_MAX;
	if (table->count < NEIGHBOURS_MAX)
		return true;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct neighbour *n = table->entries[i];
		if (n->gateway ||
			(n->state != NEIGHBOUR_LEARNED && n->state != NEIGHBOUR_FAILED))
			continue;
		if (oldest == NEIGHBOURS_MAX || n->due_ns < table->entries[oldest]->due_ns)
			oldest = i;
	}
	if (oldest == NEIGHBOURS_MAX)
		return false;
	out_forgotten->used = true;
	memcpy(out_forgotten->ip, table->entries[oldest]->ip, 16);
	entry_remove(table, oldest);
	return true;
}

struct neighbour *neighbour_add(struct neighbour_table *table, const uint8_t ip[16],
	enum neighbour_state state, uint64_t now_ns, struct neighbour_forgotten *out_forgotten)
{
	CHECK(state == NEIGHBOUR_INCOMPLETE || state == NEIGHBOUR_LEARNED);
	out_forgotten->used = false;
	if (state == NEIGHBOUR_INCOMPLETE && table->pending >= NEIGHBOURS_PENDING_MAX)
		return NULL;
	struct neighbour *n = mem_zalloc(sizeof(*n));
	if (n == NULL || !room_make(table, out_forgotten)) {
		mem_free(n);
		return NULL;
	}
	memcpy(n->ip, ip, 16);
	n->state = state;
	table->entries[table->count++] = n;
	table->pending += is_pending(n);
	due_set(table, n, due_after(n, now_ns));
	return n;
}

enum neighbour_effect neighbour_event(struct neighbour_table *table, struct neighbour *n,
	enum neighbour_event event, uint64_t now_ns)
{
	struct neighbour_step step = neighbour_steps[n->state - 1][event - 1];
	enum neighbour_state before = n->state;
	CHECK(step.effect != NEIGHBOUR_IMPOSSIBLE);
	if (step.next == 0 && n->gateway)
		step = (struct neighbour_step){NEIGHBOUR_INCOMPLETE, NEIGHBOUR_ASK};
	if (step.next == 0) {
		entry_end(table, n);
		return step.effect;
	}
	table->pending -= is_pending(n);
	n->state = step.next;
	table->pending += is_pending(n);
	if (event == NEIGHBOUR_WANTED && n->state == before)
		return step.effect; // asking does not make it younger
	bool asks_again = n->state == before && event == NEIGHBOUR_DUE;
	n->tries = asks_again ? (uint8_t)(n->tries + 1) : 0;
	due_set(table, n, due_after(n, now_ns));
	return step.effect;
}

static bool tries_are_spent(const struct neighbour *n)
{
	return (n->state == NEIGHBOUR_INCOMPLETE || n->state == NEIGHBOUR_PROBING) &&
	       n->tries + 1 >= NEIGHBOUR_TRIES_MAX;
}

struct neighbour *neighbour_due(
	struct neighbour_table *table, uint64_t now_ns, enum neighbour_event *out_event)
{
	uint64_t next = UINT64_MAX;
	if (table->count == 0 || now_ns < table->due_ns)
		return NULL;
	for (uint32_t i = 0; i < table->count; i++) {
		struct neighbour *n = table->entries[i];
		if (n->due_ns <= now_ns) {
			*out_event = tries_are_spent(n) ? NEIGHBOUR_SPENT : NEIGHBOUR_DUE;
			return n;
		}
		if (n->due_ns < next)
			next = n->due_ns;
	}
	table->due_ns = next;
	return NULL;
}
