// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a node needs to be of use, part by part, and how much room it has: for readiness, metrics and
// status. A reading of fixed size that costs no walk; control thread only.

#include "base/latency.h"
#include "node/node.h"

enum { NODE_CLOSE_BACKLOG_MAX = 4096 }; // more closings than this at once: not ready

// The parts of readiness; node_ready_name gives the word an operator reads.
enum node_ready_part {
	NODE_READY_STATE = 1,         // Serving (H1)
	NODE_READY_LEASE = 2,         // held, by our own clock (O3)
	NODE_READY_STORE = 3,         // its last answer was one
	NODE_READY_WORKERS = 4,       // every polled core turned over within two seconds
	NODE_READY_CLOSE_BACKLOG = 5, // closings under way and stuck are bounded
	NODE_READY_PART_END,
};
const char *node_ready_name(enum node_ready_part part);

struct node_health {
	uint32_t failing;         // bit 1 << part
	uint64_t workers_stalled; // a bit for each worker
	uint64_t close_backlog;   // closings under way, stuck ones included
	uint64_t spots_counted, spots_max; // N1: User + Instance, active + reserved; max 0 = none
	uint64_t lease_ttl_ms;
	struct latency activation_time; // reservation to published route
};
void node_health(const struct node *node, struct node_health *out);
// Spots of a type, active and reserved: what its own ceiling counts (N1).
uint64_t node_type_spots(const struct node *node, const struct dp_type *type);
