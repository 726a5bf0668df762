// SPDX-License-Identifier: BSD-3-Clause
#include "node/health.h"

#include "node/internal.h"

const char *node_ready_name(enum node_ready_part part)
{
	switch (part) {
	case NODE_READY_STATE:
		return "state";
	case NODE_READY_LEASE:
		return "lease";
	case NODE_READY_STORE:
		return "store";
	case NODE_READY_WORKERS:
		return "workers";
	case NODE_READY_CLOSE_BACKLOG:
		return "close_backlog";
	case NODE_READY_PART_END:
		break;
	}
	return NULL;
}

static uint32_t fails(bool good, enum node_ready_part part)
{
	return good ? 0 : 1u << part;
}

void node_health(const struct node *n, struct node_health *out)
{
	uint64_t stalled = watch_workers_stalled(n);
	uint64_t backlog = n->in_state[ACTIVATION_CLOSING] + n->in_state[ACTIVATION_RELEASING] +
			   n->in_state[ACTIVATION_STUCK];
	*out = (struct node_health){
		.workers_stalled = stalled,
		.close_backlog = backlog,
		.spots_counted = n->spots_counted,
		.spots_max = n->config.spots_max,
		.lease_ttl_ms = n->config.lease_ttl_ms,
		.activation_time = n->activation_time,
	};
	out->failing = fails(n->state == NODE_SERVING, NODE_READY_STATE) |
		       fails(lease_is_live(n), NODE_READY_LEASE) |
		       fails(n->store_reachable, NODE_READY_STORE) |
		       fails(stalled == 0, NODE_READY_WORKERS) |
		       fails(backlog <= NODE_CLOSE_BACKLOG_MAX, NODE_READY_CLOSE_BACKLOG);
}

uint64_t node_type_spots(const struct node *n, const struct dp_type *type)
{
	for (uint32_t i = 0; i < n->type_count; i++)
		if (n->types[i].type == type)
			return n->types[i].spots;
	return 0;
}
