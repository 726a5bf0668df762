// SPDX-License-Identifier: BSD-3-Clause
// Workers under watch: a turn that outlasts the owner TTL ends the node (X4), a worker that stopped
// turning makes it not ready. Time is counted by control's own ticks, each worth at most TICK_MAX_MS,
// so that a suspended process does not count.
#include "node/internal.h"

#include <stdio.h>

enum { TICK_MAX_MS = 2 * TICK_MS, HEARTBEAT_LIMIT_MS = 2000 };

static void watch_turn(struct node *n, uint16_t worker)
{
	struct worker_watch *w = &n->watches[worker];
	struct spot_key key;
	uint64_t since;
	if (!dp_worker_running(n->dp, worker, &key, &since)) {
		w->turn_since_ns = 0;
		return;
	}
	if (since != w->turn_since_ns) {
		w->turn_since_ns = since;
		w->turn_seen_awake_ns = n->awake_ns;
		return;
	}
	if (n->awake_ns - w->turn_seen_awake_ns <= n->config.lease_ttl_ms * NS_PER_MS)
		return;
	struct dp_spot *spot = node_find(n, key);
	struct dp_spot_view view = {.id = span_of("(unknown)", 9)};
	if (spot != NULL)
		dp_spot_view(spot, &view);
	node_say(n, "a turn of %.*s on worker %u outlasts the owner lease: ending the node",
		(int)view.id.size, (const char *)view.id.data, worker);
	lease_drop(n);
	node_end_now(n, NODE_ERROR, NODE_EXIT_INTERNAL);
}

static void watch_heartbeat(struct node *n, uint16_t worker)
{
	struct worker_watch *w = &n->watches[worker];
	uint64_t beat = dp_worker_heartbeat(n->dp, worker);
	if (beat != w->heartbeat) {
		w->heartbeat = beat;
		w->heartbeat_seen_awake_ns = n->awake_ns;
	}
}

uint64_t watch_workers_stalled(const struct node *n)
{
	uint64_t stalled = 0;
	for (uint16_t i = 0; i < n->config.workers; i++)
		if (n->awake_ns - n->watches[i].heartbeat_seen_awake_ns >
			HEARTBEAT_LIMIT_MS * NS_PER_MS)
			stalled |= UINT64_C(1) << i;
	return stalled;
}

void watch_step(struct node *n)
{
	uint64_t passed = n->last_step_ns == 0 ? 0 : n->now_ns - n->last_step_ns;
	n->last_step_ns = n->now_ns;
	n->awake_ns += passed < TICK_MAX_MS * NS_PER_MS ? passed : TICK_MAX_MS * NS_PER_MS;
	for (uint16_t i = 0; i < n->config.workers; i++) {
		watch_heartbeat(n, i);
		if (n->state != NODE_ERROR && n->state != NODE_STOPPED)
			watch_turn(n, i);
	}
}
