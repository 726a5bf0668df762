// SPDX-License-Identifier: BSD-3-Clause
// Idle cleanup, control's half (C1-C4): a look at 64 routes at a time, a close for each candidate
// that nothing else is under way for. The rest (is it still quiet, callback, dispose) is the data
// plane's.
#include "node/internal.h"

#include "base/check.h"

enum {
	SWEEP_CLOSINGS_MAX = 256, // closings at once: with a slow store the sweep waits
	ROUND_PAUSE_MS = 1000,    // at most, between two rounds over all routes
};

static uint64_t idle_of(const struct node *n, const struct type_count *type)
{
	return (type->idle_set ? type->idle_ms : n->config.idle_ms) * NS_PER_MS;
}

// The shortest time of all Instance types; 0: nothing is ever cleaned up.
static uint64_t shortest_ns(const struct node *n)
{
	uint64_t shortest = 0;
	for (uint32_t i = 0; i < n->type_count; i++) {
		uint64_t idle = idle_of(n, &n->types[i]);
		bool instance = dp_type_kind(n->types[i].type) == SPOT_KIND_INSTANCE; // C1
		if (instance && idle != 0 && (shortest == 0 || idle < shortest))
			shortest = idle;
	}
	return shortest;
}

bool node_idle_set(struct node *n, const char *type_name, uint64_t idle_ms)
{
	const struct dp_type *type = dp_type_by_name(n->dp, type_name);
	if (type == NULL || dp_type_kind(type) != SPOT_KIND_INSTANCE)
		return false;
	struct type_count *count = node_type_count(n, type);
	count->idle_set = true;
	count->idle_ms = idle_ms;
	return true;
}

// Its own type's time has passed, and nothing else is under way for its id.
static void close_candidate(struct node *n, struct dp_spot *spot)
{
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	uint64_t idle = idle_of(n, node_type_count(n, view.type));
	if (idle == 0 || view.last_finished_boot_ns + idle > n->now_ns)
		return;
	n->sweep.candidates++;
	entry_close_idle(n, spot, idle);
}

static uint64_t closings(const struct node *n)
{
	return n->in_state[ACTIVATION_CLOSING] + n->in_state[ACTIVATION_RELEASING];
}

void sweep_step(struct node *n)
{
	struct dp_spot *found[DP_SWEEP];
	uint64_t idle = shortest_ns(n);
	bool off = idle == 0 || n->state != NODE_SERVING || !lease_is_live(n);
	if (off || n->now_ns < n->sweep.next_ns)
		return;
	uint64_t pause = n->config.sweep_interval_ms * NS_PER_MS;
	n->sweep.next_ns = n->now_ns + pause;
	if (closings(n) >= SWEEP_CLOSINGS_MAX)
		return;
	uint32_t count = dp_sweep(n->dp, &n->sweep.cursor, idle, found);
	for (uint32_t i = 0; i < count; i++)
		close_candidate(n, found[i]);
	if (n->sweep.cursor != 0)
		return;
	n->sweep.rounds++;
	uint64_t round_pause = idle / 8 < ROUND_PAUSE_MS * NS_PER_MS ? idle / 8
								     : ROUND_PAUSE_MS * NS_PER_MS;
	n->sweep.next_ns = n->now_ns + (round_pause > pause ? round_pause : pause);
}

uint64_t sweep_next(const struct node *n)
{
	bool off = shortest_ns(n) == 0 || n->state != NODE_SERVING || n->lease_lapsed;
	return off ? UINT64_MAX : n->sweep.next_ns;
}
