// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A whole node in this process: control core, store, data plane with one worker, the shipped
// module `counter`. Control runs in bench_node_step; the worker's turns are the caller's.

#include <stdint.h>

#include "base/compiler.h"
#include "dp/port.h"
#include "fabric/fabric.h"
#include "node/node.h"

struct bench_node {
	struct clock *clock;
	struct rng rng;
	struct store *store;
	struct route_table *routes;
	struct dp *dp;
	struct node *node;
};

// False after printing why. store: NULL for a memory store; the node destroys it. counter_module:
// path of counter.so. Joins and serves; the queue is worker 0's. publish_start has been called.
MUST_USE bool bench_node_open(struct bench_node *n, struct store *store, uint32_t spots,
	const char *counter_module, struct fabric_queue *queue);
void bench_node_step(struct bench_node *n); // control's turn
bool bench_node_serving(const struct bench_node *n);
void bench_node_close(struct bench_node *n); // nobody runs worker 0 any more
