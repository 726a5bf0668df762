// SPDX-License-Identifier: BSD-3-Clause
// Candidates of the idle cleanup (C1-C3): a look over the route table from control's thread.
#include "core/core.h"

struct sweep {
	struct dp_spot **out;
	uint64_t idle_before_ns; // finished at or before: idle
	uint32_t count;
};

static bool is_idle(const struct dp_spot *spot, uint64_t idle_before_ns)
{
	struct lane_level level = lane_level(&spot->application);
	// A reservation is held while queued, running, waiting and yielded (L5): its count says it all.
	return spot->type->ops->ends_when_idle && spot_state(spot) == SPOT_READY && level.count == 0 &&
		!level.opening && !level.sealed && lane_level(&spot->lifecycle).count == 0 &&
		__atomic_load_n(&spot->last_finished_boot_ns, __ATOMIC_RELAXED) <= idle_before_ns;
}

static void look(struct spot_key key, route_word word, void *arg)
{
	struct sweep *sweep = arg;
	struct dp_spot *spot = dp_spot_of_route(word);
	(void)key;
	if (spot != NULL && is_idle(spot, sweep->idle_before_ns))
		sweep->out[sweep->count++] = spot;
}

uint32_t dp_sweep(struct dp *dp, uint64_t *cursor, uint64_t idle_ns, struct dp_spot *out[DP_SWEEP])
{
	uint64_t now = clock_boot_ns(dp->config.clock);
	struct sweep sweep = {.out = out, .idle_before_ns = now > idle_ns ? now - idle_ns : 0};
	// Control is the table's writer: the walk changes nothing.
	struct route_table *routes = (struct route_table *)(uintptr_t)dp->config.routes;
	route_walk(routes, cursor, DP_SWEEP, look, &sweep);
	return sweep.count;
}
