// SPDX-License-Identifier: BSD-3-Clause
#include "bench_node.h"

#include <stdio.h>

#include "modules/loader.h"
#include "publish/publish.h"
#include "store/memory/memory.h"
#include "worker/worker.h"

static struct dp_config data_plane_config(const struct bench_node *n)
{
	struct dp_config c = {
		.workers = 1,
		.idle = DP_IDLE_SPIN,
		.accounting = LEDGER_MEASURED,
		.application = {64u << 20, 1024},
		.lifecycle = {4u << 20, 128},
		.process_mark_bytes = 256u << 20,
		.parked_messages_max = 65536,
		.resolves_in_flight_max = 4096,
		.message_bytes_max = 16u << 20,
		.peer_reassembly_bytes_max = 32u << 20,
		.reassembly_expiry_ms = 500,
		.sessions_max = 4096,
		.turn_budget_us = 10000,
		.default_budget_ms = 5000,
		.offload_threads = 1,
		.offload_queue_max = 64,
		.insecure = true,
		.node = {1},
		.clock = n->clock,
		.routes = n->routes,
	};
	rng_secret(c.cookie_key, sizeof(c.cookie_key));
	return c;
}

static struct node *make_node(struct bench_node *n, const char **out_why)
{
	struct node_config c = {
		.node_id = "bench",
		.entry_prefix = "bench",
		.lease_ttl_ms = 600000, // a machine that stalls for a while disturbs the figures, not the run
		.lease_renew_ms = 5000,
		.lease_timeout_ms = 3000,
		.lease_margin_ms = 5000,
		.clock_rate_error_percent = 1,
		.activations_max = 128,
		.activations_waiting_max = 16384,
		.resolves_max = 4096,
		.closing_limit_ms = 5000,
		.drain_deadline_ms = 5000,
		.rcu_pending_max = 1u << 20,
		.workers = 1,
		.node_lock_held = true,
	};
	return node_create(&c, n->clock, &n->rng, n->store, n->dp, n->routes, out_why);
}

bool bench_node_open(struct bench_node *n, struct store *store, uint32_t spots,
	const char *counter_module, struct fabric_queue *queue)
{
	uint8_t hash_key[16];
	const struct spotlane_module *module = NULL;
	const char *no_config[MODULE_TYPES_MAX] = {NULL};
	char why[MODULE_WHY_BYTES] = "";
	const char *refused = "out of memory";
	n->clock = clock_system();
	rng_seed_system(&n->rng);
	rng_secret(hash_key, sizeof(hash_key));
	if (module_load(counter_module, &module, why) != MODULE_LOADED) {
		fprintf(stderr, "spotbench: %s\n", why);
		return false;
	}
	n->store = store != NULL ? store : memory_store_create(n->clock, rng_u64(&n->rng));
	n->routes = route_table_create(hash_key, spots);
	if (n->store == NULL || n->routes == NULL)
		return false;
	struct dp_config config = data_plane_config(n);
	n->dp = dp_create(&config, &refused);
	if (n->dp == NULL || dp_register_module(n->dp, module, no_config, &refused) != DP_DONE ||
		!dp_attach_queue(n->dp, 0, queue) || (n->node = make_node(n, &refused)) == NULL) {
		fprintf(stderr, "spotbench: node: %s\n", refused);
		return false;
	}
	node_start(n->node);
	return true;
}

void bench_node_step(struct bench_node *n)
{
	node_step(n->node);
}

bool bench_node_serving(const struct bench_node *n)
{
	struct node_status status;
	node_status(n->node, &status);
	return status.state == NODE_SERVING;
}

void bench_node_close(struct bench_node *n)
{
	node_halt(n->node);
	store_destroy(n->store);
	node_destroy(n->node);
	publish_stop();
	dp_destroy(n->dp);
	route_table_destroy(n->routes);
}
