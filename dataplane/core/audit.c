// SPDX-License-Identifier: BSD-3-Clause
#include "core/audit.h"

#include <string.h>

#include "core/core.h"
#include "core/cross.h"

// dp->audit_want: 0 = none, else the step workers are to reach. Control raises it when all workers
// have reported the step before; release and acquire carry the workers' books to control.
enum { AUDIT_OFF = 0, AUDIT_GIVE_BACK = 1, AUDIT_FLUSH = 2 };

bool audit_on(const struct dp_worker *w)
{
	return atomic_load_explicit(&w->dp->audit_want, memory_order_acquire) != AUDIT_OFF ||
		atomic_load_explicit(&w->audit_step, memory_order_relaxed) != AUDIT_OFF;
}

bool audit_step(struct dp_worker *w)
{
	uint32_t want = atomic_load_explicit(&w->dp->audit_want, memory_order_acquire);
	uint32_t have = atomic_load_explicit(&w->audit_step, memory_order_relaxed);
	if (want == have)
		return false;
	if (want == AUDIT_GIVE_BACK) {
		w->cross_dirty = true;
		cross_flush(w);
		egress_flush(w);
	} else if (want == AUDIT_FLUSH) {
		item_arena_collect(w->arena);
		item_arena_flush(w->arena);
		ledger_shard_trim(&w->shard);
	}
	atomic_store_explicit(&w->audit_step, want, memory_order_release);
	return true;
}

static bool all_at(const struct dp *dp, uint32_t step)
{
	for (uint16_t i = 0; i < dp->config.workers; i++)
		if (atomic_load_explicit(&dp->workers[i]->audit_step, memory_order_acquire) != step)
			return false;
	return true;
}

enum dp_status dp_audit_begin(struct dp *dp)
{
	if (atomic_load_explicit(&dp->audit_want, memory_order_relaxed) != AUDIT_OFF ||
		!all_at(dp, AUDIT_OFF))
		return DP_BUSY;
	atomic_store_explicit(&dp->audit_want, AUDIT_GIVE_BACK, memory_order_release);
	return DP_DONE;
}

static void add_lane(struct spot_key key, route_word word, void *arg)
{
	struct dp_audit *out = arg;
	// A Spot, or the place of an Actor.
	bool here = route_tag(word) == ROUTE_LOCAL || route_tag(word) == ROUTE_ACTOR;
	struct dp_spot *spot = here ? route_pointer(word) : NULL;
	(void)key;
	if (spot == NULL)
		return;
	struct lane_level level = lane_level(&spot->application);
	out->lane_bytes += level.bytes;
	out->in_flight += level.count;
}

static void add_worker(const struct dp_worker *w, struct dp_audit *out)
{
	struct item_arena_stats stats;
	item_arena_audit(w->arena, &stats);
	out->ledger_bytes += stats.held_bytes;
	out->measured_bytes += stats.measured_bytes;
	out->items += stats.held_items;
	out->process_charged_bytes +=
		atomic_load_explicit(&w->shard.charged_bytes, memory_order_relaxed);
	out->accepted += w->counters.messages_accepted;
	out->delivered += w->counters.messages_delivered;
	out->refused += w->counters.messages_refused;
	out->dropped += w->counters.messages_dropped;
	for (size_t i = 0; i < ARRAY_COUNT(out->dropped_by); i++)
		out->dropped_by[i] += w->counters.drops[i];
	// Half-messages hold a place in a lane and are not accepted yet.
	out->in_flight -= w->reassembly.reserved_messages;
}

bool dp_audit_poll(struct dp *dp, struct dp_audit *out)
{
	uint32_t want = atomic_load_explicit(&dp->audit_want, memory_order_relaxed);
	if (want == AUDIT_OFF || !all_at(dp, want))
		return false;
	if (want == AUDIT_GIVE_BACK) {
		atomic_store_explicit(&dp->audit_want, AUDIT_FLUSH, memory_order_release);
		return false;
	}
	memset(out, 0, sizeof(*out));
	uint64_t cursor = 0;
	// Control is the table's writer: the walk changes nothing.
	struct route_table *routes = (struct route_table *)(uintptr_t)dp->config.routes;
	do
		route_walk(routes, &cursor, 1024, add_lane, out);
	while (cursor != 0);
	for (uint16_t i = 0; i < dp->config.workers; i++)
		add_worker(dp->workers[i], out);
	out->process_taken_bytes = ledger_process_taken(&dp->process);
	out->equal = out->ledger_bytes == out->measured_bytes &&
		out->accepted == out->delivered + out->dropped + out->in_flight;
	atomic_store_explicit(&dp->audit_want, AUDIT_OFF, memory_order_release);
	return true;
}
