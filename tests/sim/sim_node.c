// SPDX-License-Identifier: BSD-3-Clause
// One node's process: made, crashed, suspended, stopped, and what an operator asks of it.
#include <stdio.h>
#include <stdlib.h>

#include "publish/publish.h"
#include "sim.h"
#include "spotlane/module.h"
#include "worker/worker.h"

static uint64_t boot_read(struct clock *c)
{
	const struct sim_clock *clock = (const struct sim_clock *)(const void *)c;
	uint64_t now = clock->sim->now_ns;
	return clock->zero_ns + now + (uint64_t)((int64_t)(now / 1000) * clock->rate_ppm / 1000);
}

static uint64_t wall_read(struct clock *c)
{
	const struct sim_clock *clock = (const struct sim_clock *)(const void *)c;
	return UINT64_C(1700000000000000000) + clock->sim->now_ns + (uint64_t)clock->wall_offset_ns;
}

void sim_clock_init(struct sim_clock *c, struct sim *s, uint64_t zero_ns, int64_t rate_ppm)
{
	*c = (struct sim_clock){.base = {boot_read, boot_read, wall_read, 1000000000u},
		.sim = s,
		.zero_ns = zero_ns,
		.rate_ppm = rate_ppm};
}

static void name_of(const struct sim_node *n, char out[8])
{
	snprintf(out, 8, "n%u", n->index);
}

void sim_node_init(struct sim *s, uint32_t index)
{
	struct sim_node *n = &s->nodes[index];
	n->sim = s;
	n->index = (uint8_t)index;
	n->state = SIM_DOWN;
	// Any two differ by less than ρ = 1 %.
	int64_t rate = (int64_t)rng_below(&s->rng, 9000) - 4500;
	sim_clock_init(&n->clock, s, rng_below(&s->rng, 1000 * SIM_MS), rate);
	rng_seed(&n->rng, s->seed * 31 + 1000000 + index);
}

// ---- making ----
static void make_dp(struct sim_node *n)
{
	const char *why = NULL;
	char name[8];
	name_of(n, name);
	struct dp_config c = {.workers = SIM_WORKERS,
		.idle = DP_IDLE_SPIN,
		.accounting = LEDGER_MEASURED,
		.application = {1u << 20, 64},
		.lifecycle = {1u << 18, 32},
		.process_mark_bytes = 8u << 20,
		.parked_messages_max = 48,
		.resolves_in_flight_max = 24,
		.message_bytes_max = 1u << 16,
		.peer_reassembly_bytes_max = 1u << 18,
		.reassembly_expiry_ms = 500,
		.sessions_max = 16,
		.turn_budget_us = 10000,
		.default_budget_ms = 200,
		.offload_queue_max = 16,
		.insecure = true,
		.node = node_key_of(span_of(name, strlen(name))),
		.clock = &n->clock.base,
		.routes = n->routes};
	for (size_t i = 0; i < sizeof(c.cookie_key); i++) // drawn at each boot
		c.cookie_key[i] = (uint8_t)rng_u64(&n->rng);
	n->dp = dp_create(&c, &why);
	sim_check(n->sim, n->dp != NULL, why);
	sim_check(n->sim, dp_register_module(n->dp, &sim_module, NULL, &why) == DP_DONE, "module");
	for (uint16_t w = 0; w < SIM_WORKERS; w++)
		sim_check(n->sim,
			dp_attach_queue(n->dp, w, (struct fabric_queue *)(void *)&n->queues[w]),
			"memory");
}

static void on_event(void *arg, const struct node_event *e)
{
	struct sim_node *n = arg;
	if (e->kind == NODE_EVENT_LEASE_LOST)
		sim_fault(SIM_FAULT_LAPSE);
	sim_note(n->sim, 100 + (uint64_t)e->kind + 1000 * n->index,
		e->key.lo * (e->kind != NODE_EVENT_STATE) + e->result.kind);
	sim_trace(n->sim, "  n%u event %d %.*s %s", n->index, (int)e->kind, (int)e->id.size,
		(const char *)e->id.data, e->text);
}

static void make_node(struct sim_node *n)
{
	const char *why = NULL;
	char name[8], address[32];
	name_of(n, name);
	snprintf(address, sizeof(address), "10.0.0.%u:9000", n->index + 1);
	struct node_config c = {.node_id = name,
		.entry_prefix = name,
		.entry_type = "door",
		.address = address,
		.lease_ttl_ms = 300,
		.lease_renew_ms = 100,
		.lease_timeout_ms = 50,
		.lease_margin_ms = 50,
		.clock_rate_error_percent = 1,
		.activations_max = 2,
		.activations_waiting_max = 3,
		.resolves_max = 6,
		.spots_max = 8,
		.idle_ms = n->sim->idle_ms,
		.sweep_interval_ms = 20,
		.closing_limit_ms = 100,
		.drain_deadline_ms = 5000,
		.rcu_pending_max = 4,
		.workers = SIM_WORKERS,
		.host_id = n->lock_lost ? "" : name,
		.node_lock_held = !n->lock_lost};
	route_table_set_pending_max(n->routes, 4);
	n->node = node_create(&c, &n->clock.base, &n->rng, n->store, n->dp, n->routes, &why);
	sim_check(n->sim, n->node != NULL, why);
	struct node_status status;
	node_status(n->node, &status);
	memcpy(n->boot.bytes, status.boot_id, sizeof(n->boot.bytes));
	node_set_event_sink(n->node, on_event, n);
}

void sim_node_boot(struct sim_node *n)
{
	struct sim *s = n->sim;
	static const uint8_t hash_key[16] = "sim routes";
	if (n->boots > 0)
		sim_fault(n->lock_lost ? SIM_FAULT_RESTART_WATCHED : SIM_FAULT_RESTART);
	n->boots++;
	n->state = SIM_RUNNING;
	n->stopping = false;
	n->lapsed_ns = 0;
	n->operator_asked = n->operator_answered = 0;
	memset(n->objects, 0, sizeof(n->objects));
	n->store = memory_store_share(s->rows, &s->store_clock.base, rng_u64(&n->rng));
	memory_store_faults(n->store, &s->store_faults);
	n->routes = route_table_create(hash_key, 16);
	sim_net_open(n);
	make_dp(n);
	make_node(n);
	node_start(n->node);
}

// ---- ending ----
static void take_apart(struct sim_node *n)
{
	for (int f = 0; f <= SIM_FAULT_STORE_FULL - SIM_FAULT_STORE_BEFORE; f++)
		sim_totals.faults[SIM_FAULT_STORE_BEFORE + f] += memory_store_fault_count(
			n->store, (enum memory_fault)(MEMORY_FAULT_BEFORE + f));
	node_halt(n->node);
	store_destroy(n->store);
	publish_barrier();
	node_destroy(n->node);
	dp_destroy(n->dp);
	sim_net_close(n);
	publish_barrier();
	route_table_destroy(n->routes);
	n->node = NULL;
	n->dp = NULL;
	n->store = NULL;
	n->routes = NULL;
	n->state = SIM_DOWN;
	memset(n->objects, 0, sizeof(n->objects));
	memset(&n->boot, 0, sizeof(n->boot));
}

// The process is gone at once; of what is at the store each part was done or not.
void sim_node_crash(struct sim_node *n)
{
	struct sim *s = n->sim;
	sim_trace(s, "n%u crashes", n->index);
	sim_fault(SIM_FAULT_CRASH);
	if (memory_store_pending(n->store) > 0)
		sim_fault(SIM_FAULT_CRASH_IN_STORE);
	memory_store_crash(n->store);
	take_apart(n);
	n->lock_lost = rng_below(&s->rng, 3) == 0;
	// No frame lives longer than a process takes to come back.
	n->until_ns = s->now_ns + (20 + rng_below(&s->rng, 500)) * SIM_MS;
}

void sim_node_end(struct sim_node *n)
{
	take_apart(n);
}

static void bury(struct sim_node *n, const struct node_status *status)
{
	struct sim *s = n->sim;
	sim_trace(s, "n%u ended: %s, exit %d: %s", n->index, node_state_name(status->state),
		(int)status->exit_code, status->why);
	sim_note(s, 9, (uint64_t)status->exit_code);
	sim_check(s, n->operator_asked == n->operator_answered || status->state == NODE_ERROR,
		"every operator's operation has exactly one end");
	take_apart(n);
	n->lock_lost = false;
	n->until_ns = s->now_ns + (20 + rng_below(&s->rng, 300)) * SIM_MS;
}

void sim_node_pause(struct sim_node *n, uint64_t ns)
{
	sim_trace(n->sim, "n%u suspended for %llu ms", n->index, (unsigned long long)(ns / SIM_MS));
	sim_fault(SIM_FAULT_PAUSE);
	n->state = SIM_PAUSED;
	n->until_ns = n->sim->now_ns + ns;
}

void sim_node_continue(struct sim_node *n)
{
	sim_trace(n->sim, "n%u goes on", n->index);
	if (!sim_node_lease_live(n))
		sim_fault(SIM_FAULT_PAUSE_PAST_LEASE);
	n->state = SIM_RUNNING;
}

void sim_node_due(struct sim_node *n)
{
	if (n->state == SIM_RUNNING) {
		struct node_status status;
		node_status(n->node, &status);
		if (status.state == NODE_STOPPED || status.state == NODE_ERROR)
			bury(n, &status);
	} else if (n->sim->now_ns >= n->until_ns) {
		if (n->state == SIM_DOWN)
			sim_node_boot(n);
		else
			sim_node_continue(n);
	}
}

// ---- running ----
bool sim_node_lease_live(const struct sim_node *n)
{
	uint64_t deadline =
		atomic_load_explicit(&dp_lease(n->dp)->deadline_boot_ns, memory_order_acquire);
	return clock_boot_ns((struct clock *)(uintptr_t)&n->clock.base) < deadline;
}

static void begins_to_act(struct sim_node *n)
{
	n->sim->current = n;
	if (!sim_node_lease_live(n))
		n->lapsed_ns = n->sim->now_ns;
}

void sim_node_step(struct sim_node *n)
{
	begins_to_act(n);
	(void)node_step(n->node);
}

void sim_node_turn(struct sim_node *n, uint16_t worker)
{
	begins_to_act(n);
	(void)dp_worker_turn(n->dp, worker);
}

// ---- operators ----
static void operator_answered(void *arg, struct result result, const struct refusal *refusal,
	struct object_generation generation, bool changed, struct spot_key key)
{
	struct sim_node *n = arg;
	(void)refusal;
	(void)generation;
	(void)key;
	n->operator_answered++;
	sim_note(n->sim, 7, (uint64_t)result.kind << 1 | changed);
}

void sim_node_act_as_operator(struct sim_node *n)
{
	struct sim *s = n->sim;
	char id[16];
	bool creates = rng_below(&s->rng, 2) == 0;
	bool user = creates || rng_below(&s->rng, 2) == 0;
	int size = snprintf(id, sizeof(id), "%c-%u", user ? 'r' : 's',
		(unsigned)rng_below(&s->rng, SIM_SPOTS));
	struct span span = span_of(id, (size_t)size);
	uint64_t until = clock_boot_ns(&n->clock.base) + (1 + rng_below(&s->rng, 200)) * SIM_MS;
	n->operator_asked++;
	s->current = n;
	sim_trace(s, "n%u operator %s %s", n->index, creates ? "creates" : "closes", id);
	if (creates)
		node_create_spot(n->node, span, type_key_of("room"), span_of(NULL, 0),
			rng_below(&s->rng, 2) == 0, until, operator_answered, n);
	else
		node_close_spot(n->node, span, (struct object_generation){0}, until,
			operator_answered, n);
}
