// SPDX-License-Identifier: BSD-3-Clause
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "publish/publish.h"
#include "spotlane/module.h"
#include "worker/worker.h"

struct sim *sim_world;

void sim_note(struct sim *s, uint64_t a, uint64_t b)
{
	s->hash = (s->hash ^ (a * UINT64_C(0x9e3779b97f4a7c15) + b)) * UINT64_C(0xff51afd7ed558ccd);
	s->hash ^= s->hash >> 29;
	s->hash += s->step;
}

void sim_check(struct sim *s, bool good, const char *promise)
{
	if (good)
		return;
	struct node_status status = {0};
	if (s->node != NULL)
		node_status(s->node, &status);
	printf("seed %llu, step %llu: broken: %s (node: %s)\n", (unsigned long long)s->seed,
		(unsigned long long)s->step, promise, status.why);
	fflush(stdout);
	abort();
}

static uint64_t clock_read(struct clock *c)
{
	return ((struct sim_clock *)(void *)c)->boot_ns;
}

static struct dp *make_dp(struct sim *s)
{
	const char *why = NULL;
	struct dp_config c = {.workers = SIM_WORKERS,
		.idle = DP_IDLE_SPIN,
		.accounting = LEDGER_MEASURED,
		.application = {64u << 20, 1024},
		.lifecycle = {4u << 20, 128},
		.process_mark_bytes = 256u << 20,
		.parked_messages_max = 64,
		.resolves_in_flight_max = 32,
		.message_bytes_max = 1u << 20,
		.peer_reassembly_bytes_max = 2u << 20,
		.reassembly_expiry_ms = 500,
		.sessions_max = 64,
		.turn_budget_us = 10000,
		.default_budget_ms = 200,
		.offload_queue_max = 16,
		.insecure = true,
		.node = node_key_of(span_of("sim", 3)),
		.cookie_key = "fifteen bytes..",
		.clock = &s->clock.base,
		.routes = s->routes};
	struct dp *dp = dp_create(&c, &why);
	sim_check(s, dp != NULL, why);
	sim_check(s, dp_register_module(dp, &sim_module, NULL, &why) == DP_DONE, "module");
	return dp;
}

static void on_event(void *arg, const struct node_event *e)
{
	struct sim *s = arg;
	s->lapses += e->kind == NODE_EVENT_LEASE_LOST;
	sim_note(s, 100 + (uint64_t)e->kind, e->key.lo * (e->kind != NODE_EVENT_STATE) + e->result.kind);
}

static struct node *make_node(struct sim *s)
{
	const char *why = NULL;
	struct node_config c = {.node_id = "sim",
		.entry_prefix = "sim",
		.entry_type = "door",
		.lease_ttl_ms = 300,
		.lease_renew_ms = 100,
		.lease_timeout_ms = 50,
		.lease_margin_ms = 50,
		.clock_rate_error_percent = 1,
		.activations_max = 4,
		.activations_waiting_max = 6,
		.resolves_max = 6,
		.spots_max = 16,
		.closing_limit_ms = 500,
		.drain_deadline_ms = 5000,
		.rcu_pending_max = 1000000,
		.workers = SIM_WORKERS,
		.host_id = "sim",
		.node_lock_held = true};
	struct node *n = node_create(
		&c, &s->clock.base, &s->node_rng, s->store, s->dp, s->routes, &why);
	sim_check(s, n != NULL, why);
	node_set_event_sink(n, on_event, s);
	return n;
}

static struct fabric_loop_fault on_frame(void *arg, const struct fabric_loop_pass *pass)
{
	struct sim *s = arg;
	(void)pass;
	uint64_t dice = rng_below(&s->rng, 1000);
	if (dice < s->drop_permille)
		return (struct fabric_loop_fault){FABRIC_LOOP_DROP, 0};
	if (dice < s->drop_permille + s->repeat_permille)
		return (struct fabric_loop_fault){FABRIC_LOOP_DUPLICATE, 0};
	if (dice < s->drop_permille + 2 * s->repeat_permille)
		return (struct fabric_loop_fault){FABRIC_LOOP_LATE, 3};
	return (struct fabric_loop_fault){FABRIC_LOOP_DELIVER, 0};
}

static void open_queues(struct sim *s)
{
	static const uint8_t v4[4] = {10, 0, 0, 1};
	for (uint16_t w = 0; w < SIM_WORKERS; w++) {
		struct fabric_loop_endpoint e = {.port = 9000, .worker = w, .frames = 4096};
		peer_ip_from_v4(e.ip, v4);
		s->queues[w] = fabric_loop_open(s->net, &e);
		sim_check(s, s->queues[w] != NULL, "memory");
		sim_check(s, dp_attach_queue(s->dp, w, s->queues[w]), "memory");
	}
}

static void faults_begin(struct sim *s)
{
	struct memory_faults f = {.before_permille = (uint32_t)rng_below(&s->rng, 40),
		.answer_permille = (uint32_t)rng_below(&s->rng, 40),
		.lost_permille = (uint32_t)rng_below(&s->rng, 40),
		.full_permille = (uint32_t)rng_below(&s->rng, 20),
		.delay_polls_max = (uint32_t)rng_below(&s->rng, 8)};
	memory_store_faults(s->store, &f);
	s->drop_permille = (uint32_t)rng_below(&s->rng, 200);
	s->repeat_permille = (uint32_t)rng_below(&s->rng, 200);
	s->factory_fail_permille = (uint32_t)rng_below(&s->rng, 200);
	fabric_loop_hook_set(s->net, on_frame, s);
}

struct sim *sim_create(uint64_t seed)
{
	static const uint8_t hash_key[16] = "sim routes";
	struct sim *s = calloc(1, sizeof(*s));
	if (s == NULL)
		abort();
	sim_world = s;
	s->seed = seed;
	s->clock = (struct sim_clock){{clock_read, clock_read, clock_read, 1000000000u},
		UINT64_C(1000000000000)};
	rng_seed(&s->rng, seed);
	rng_seed(&s->node_rng, seed + 1000000);
	s->store = memory_store_create(&s->clock.base, seed + 2000000);
	s->routes = route_table_create(hash_key, 64);
	s->net = fabric_loop_create();
	s->dp = make_dp(s);
	open_queues(s);
	s->node = make_node(s);
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		sim_client_open(s, i);
	node_start(s->node);
	sim_settle(s, 20 * SIM_MS);
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		sim_client_hello(s, i);
	sim_settle(s, 20 * SIM_MS);
	faults_begin(s);
	return s;
}

// ---- promises that hold after every step ----
static void check_spot(struct dp_spot *spot, void *arg)
{
	struct sim *s = arg;
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	sim_check(s,
		v.application.bytes <= v.application_bounds.bytes_max &&
			v.application.count <= v.application_bounds.count_max,
		"I12: the application lane is within its bounds");
	sim_check(s,
		v.lifecycle.bytes <= v.lifecycle_bounds.bytes_max &&
			v.lifecycle.count <= v.lifecycle_bounds.count_max,
		"I12: the lifecycle lane is within its bounds");
}

static void check_step(struct sim *s)
{
	uint64_t cursor = 0;
	do
		(void)node_walk(s->node, &cursor, 64, check_spot, s);
	while (cursor != 0);
	struct node_status status;
	node_status(s->node, &status);
	sim_check(s, status.activations_running <= 4 && status.activations_waiting <= 6 &&
			status.resolves_running <= 6 + 4 + 6,
		"A10: bounds of activations and resolves");
	sim_check(s,
		status.spots_live[SPOT_KIND_USER] + status.spots_live[SPOT_KIND_INSTANCE] <= 16,
		"N1: the ceiling");
}

// ---- one step ----
static void operator_answered(void *arg, struct result result, const struct refusal *refusal,
	struct object_generation generation, bool changed, struct spot_key key)
{
	struct sim *s = arg;
	(void)refusal;
	(void)generation;
	(void)key;
	s->operator_answered++;
	sim_note(s, 7, (uint64_t)result.kind << 1 | changed);
}

static void operator_acts(struct sim *s)
{
	char id[16];
	bool creates = rng_below(&s->rng, 2) == 0;
	bool user = creates || rng_below(&s->rng, 2) == 0;
	int n = snprintf(id, sizeof(id), "%c-%u", user ? 'r' : 's',
		(unsigned)rng_below(&s->rng, SIM_SPOTS));
	struct span span = span_of(id, (size_t)n);
	uint64_t until = s->clock.boot_ns + (1 + rng_below(&s->rng, 200)) * SIM_MS;
	s->operator_asked++;
	if (creates)
		node_create_spot(s->node, span, type_key_of("room"), span_of(NULL, 0),
			rng_below(&s->rng, 2) == 0, until, operator_answered, s);
	else
		node_close_spot(s->node, span, (struct object_generation){0}, until,
			operator_answered, s);
}

static void act(struct sim *s)
{
	uint64_t dice = rng_below(&s->rng, 1000);
	if (dice < 300)
		(void)dp_worker_turn(s->dp, (uint16_t)rng_below(&s->rng, SIM_WORKERS));
	else if (dice < 560)
		(void)node_step(s->node);
	else if (dice < 720 && s->air_count > 0)
		sim_client_deliver(s, (uint32_t)rng_below(&s->rng, s->air_count));
	else if (dice < 850)
		sim_client_new_op(s);
	else if (dice < 900)
		sim_client_repeat(s);
	else if (dice < 930)
		operator_acts(s);
	else if (dice < 990)
		s->clock.boot_ns += rng_below(&s->rng, 5 * SIM_MS);
	else if (dice < 996)
		memory_store_hold(s->store, rng_below(&s->rng, 3) == 0);
	else if (dice < 998)
		s->clock.boot_ns += rng_below(&s->rng, 400 * SIM_MS); // suspended
}

void sim_run(struct sim *s, uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++) {
		s->step++;
		s->clock.boot_ns += rng_below(&s->rng, 20000);
		act(s);
		sim_client_receive(s);
		check_step(s);
	}
}

void sim_settle(struct sim *s, uint64_t ns)
{
	for (uint64_t until = s->clock.boot_ns + ns; s->clock.boot_ns < until;) {
		s->step++;
		while (s->air_count > 0)
			sim_client_deliver(s, s->air_count - 1);
		for (uint16_t w = 0; w < SIM_WORKERS; w++)
			(void)dp_worker_turn(s->dp, w);
		(void)node_step(s->node);
		sim_client_receive(s);
		s->clock.boot_ns += SIM_MS;
	}
}

// ---- the end ----
static void check_empty_lanes(struct dp_spot *spot, void *arg)
{
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	sim_check(arg,
		v.application.bytes + v.application.count + v.lifecycle.bytes + v.lifecycle.count == 0,
		"I10: every reservation returned");
}

static void check_row(const struct store_spot_row *row, void *arg)
{
	struct sim *s = arg;
	struct dp_spot_view v;
	sim_check(s, row->state == STORE_SPOT_READY, "A8: nothing is Creating for ever");
	struct dp_spot *spot = node_find(s->node, row->key);
	sim_check(s, spot != NULL, "a Ready row has its object");
	dp_spot_view(spot, &v);
	sim_check(s, v.object_generation.value == row->object_generation.value,
		"row and object are one incarnation");
}

static void check_ops(struct sim *s)
{
	for (uint32_t i = 0; i < s->op_count; i++) {
		struct sim_op *op = &s->ops[i];
		if (op->results > 0 && op->first.accepted == ACCEPTED_NO)
			sim_check(s, op->executions == 0, "I8: a definite no never ran");
		sim_note(s, 8, op->results > 0 ? op->first.kind : 0);
	}
	sim_check(s, s->operator_answered == s->operator_asked,
		"every operator's operation has exactly one end");
}

static void check_quiet(struct sim *s)
{
	struct node_status status;
	uint64_t cursor = 0;
	node_status(s->node, &status);
	sim_check(s, status.state == NODE_SERVING && status.ready, "the node serves again");
	sim_check(s,
		status.activations_running + status.activations_waiting + status.resolves_running +
				status.closes_running + status.closes_stuck ==
			0,
		"nothing is under way for ever");
	do
		(void)node_walk(s->node, &cursor, 64, check_empty_lanes, s);
	while (cursor != 0);
	memory_store_each(s->store, check_row, s);
	sim_check(s, memory_store_spot_count(s->store) == status.routes, "a route per Ready row");
	sim_check(s, dp_process_bytes(s->dp) == 0, "P1: nothing charged at rest");
	check_ops(s);
}

static void check_audit(struct sim *s)
{
	struct dp_audit audit;
	sim_check(s, dp_audit_begin(s->dp) == DP_DONE, "audit begins");
	for (int i = 0; !dp_audit_poll(s->dp, &audit); i++) {
		sim_check(s, i < 1000, "the audit ends");
		for (uint16_t w = 0; w < SIM_WORKERS; w++)
			(void)dp_worker_turn(s->dp, w);
	}
	sim_check(s, audit.equal, "L3, I11: the ledger is what the allocator says");
	sim_check(s, audit.items == 0, "I10: no item is left");
}

void sim_finish(struct sim *s)
{
	static const struct memory_faults none = {0};
	memory_store_faults(s->store, &none);
	memory_store_hold(s->store, false);
	fabric_loop_hook_set(s->net, NULL, NULL);
	s->drop_permille = s->repeat_permille = 0;
	s->quiet = true;
	sim_settle(s, 1500 * SIM_MS);
	check_quiet(s);
	check_audit(s);
	sim_settle(s, 10 * SIM_MS);
	struct node_status status;
	node_stop(s->node, 5000);
	for (int i = 0;; i++) {
		node_status(s->node, &status);
		if (status.state == NODE_STOPPED)
			break;
		sim_check(s, i < 2000, "H3: the drain ends");
		sim_settle(s, SIM_MS);
	}
	sim_check(s, status.exit_code == NODE_EXIT_CLEAN, "a clean end");
	sim_check(s, memory_store_spot_count(s->store) == 0, "H3: authorities are released");
	for (uint32_t i = 0; i < SIM_SPOTS; i++)
		sim_check(s, s->alive[0][i] + s->alive[1][i] == 0, "H3: every object was disposed of");
	node_halt(s->node);
	store_destroy(s->store);
	publish_barrier();
	node_destroy(s->node);
	dp_destroy(s->dp);
	fabric_loop_destroy(s->net);
	route_table_destroy(s->routes);
}
