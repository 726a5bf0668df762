// SPDX-License-Identifier: BSD-3-Clause
// Stopping (H3): admission is over, what was accepted is finished by the closings themselves, every
// Spot is closed in bounded batches and its row released, then the node leaves. The same walk serves a
// node that lost its place (no store writes, closing reason LeaseLost, ends in ERROR).
#include "node/internal.h"

#include "base/check.h"
#include "spotlane/module.h"

enum { WALK_MAX = 64 };

static bool local_spots_left(const struct node *n)
{
	uint64_t live = 0;
	for (int kind = SPOT_KIND_ENTRY; kind <= SPOT_KIND_INSTANCE; kind++)
		live += n->spots_live[kind];
	return live > n->in_state[ACTIVATION_STUCK];
}

// A closing that waits past its limit holds nobody up (C4).
static bool is_drained(const struct node *n)
{
	return !local_spots_left(n) && n->entries == n->in_state[ACTIVATION_STUCK] &&
	       n->commands_queued == 0;
}

struct batch {
	struct dp_spot *spots[WALK_MAX];
	uint32_t count;
};

static void collect(struct spot_key key, route_word word, void *arg)
{
	struct batch *batch = arg;
	struct dp_spot *spot = dp_spot_of_route(word);
	(void)key;
	if (spot != NULL && batch->count < WALK_MAX)
		batch->spots[batch->count++] = spot;
}

static void close_some(struct node *n)
{
	uint64_t running = n->in_state[ACTIVATION_CLOSING] + n->in_state[ACTIVATION_RELEASING];
	// A full turn of the cursor at most, so that one step stays short.
	for (int i = 0; i < 8 && running < DRAIN_CLOSINGS_MAX; i++) {
		struct batch batch = {.count = 0};
		(void)route_walk(n->routes, &n->drain.cursor, WALK_MAX, collect, &batch);
		for (uint32_t k = 0; k < batch.count; k++)
			entry_close_begin(n, batch.spots[k], n->drain.reason);
		running = n->in_state[ACTIVATION_CLOSING] + n->in_state[ACTIVATION_RELEASING];
		if (n->drain.cursor == 0)
			return;
	}
}

static const struct entry *first_blocked(const struct node *n)
{
	for (uint32_t b = 0; b < ENTRY_BUCKETS; b++)
		for (const struct entry *e = n->buckets[b]; e != NULL; e = e->hash_next)
			if (e->id_bytes > 0)
				return e;
	return NULL;
}

// H2: says which Spot, and what would help.
static void name_blocker(struct node *n)
{
	const struct entry *e = first_blocked(n);
	uint64_t left = n->entries;
	if (e != NULL && !n->abandon) // then `why` says what matters more
		node_say(n, "drain ended with %llu left; first: %.*s (%s); its rows are released at "
			    "this node's next start",
			(unsigned long long)left, (int)e->id_bytes, (const char *)e->id,
			activation_state_name(e->state));
}

void drain_begin(struct node *n, uint8_t reason, uint32_t deadline_ms)
{
	n->now_ns = clock_boot_ns(n->clock);
	n->drain = (struct drain){.active = true,
		.reason = reason,
		.deadline_ns = n->now_ns + (uint64_t)deadline_ms * NS_PER_MS};
	dp_admit_set(n->dp, false,
		reason == SPOTLANE_CLOSE_HOST_SHUTDOWN ? RESULT_SHUTTING_DOWN : RESULT_STALE_ROUTE);
	node_enter(n, NODE_DRAINING);
}

static void finish(struct node *n)
{
	if (n->abandon)
		node_end_now(n, NODE_ERROR, n->exit_code);
	else if (n->phase == LEASE_HELD || n->phase == LEASE_LEAVING)
		lease_leave(n);
	else
		node_end_now(n, NODE_STOPPED, n->exit_code);
}

void drain_step(struct node *n)
{
	if (!n->drain.active || n->state != NODE_DRAINING || n->phase == LEASE_LEAVING)
		return;
	bool late = n->now_ns >= n->drain.deadline_ns;
	if (is_drained(n)) {
		if (n->in_state[ACTIVATION_STUCK] > 0)
			name_blocker(n);
		else if (!n->abandon)
			node_say(n, "everything is closed");
		finish(n);
	} else if (late || n->drain.forced) {
		name_blocker(n);
		if (n->drain.forced && !n->abandon && n->phase != LEASE_HELD)
			node_end_now(n, NODE_STOPPED, n->exit_code);
		else
			finish(n);
	} else {
		close_some(n);
	}
}
