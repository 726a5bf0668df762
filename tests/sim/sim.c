// SPDX-License-Identifier: BSD-3-Clause
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "publish/publish.h"

struct sim *sim_world;

void sim_note(struct sim *s, uint64_t a, uint64_t b)
{
	s->hash = (s->hash ^ (a * UINT64_C(0x9e3779b97f4a7c15) + b)) * UINT64_C(0xff51afd7ed558ccd);
	s->hash ^= s->hash >> 29;
	s->hash += s->step;
}

void sim_trace(struct sim *s, const char *format, ...)
{
	va_list args;
	if (!s->trace)
		return;
	printf("%6llu %9.3f ms  ", (unsigned long long)s->step, (double)(s->now_ns % (1000000 * SIM_MS)) / 1e6);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

void sim_check(struct sim *s, bool good, const char *promise)
{
	if (good)
		return;
	struct node_status status = {0};
	const struct sim_node *n = s->current;
	if (n != NULL && n->node != NULL)
		node_status(n->node, &status);
	printf("seed %llu, step %llu: broken: %s (n%d: %s)\n", (unsigned long long)s->seed,
		(unsigned long long)s->step, promise, n != NULL ? (int)n->index : -1, status.why);
	fflush(stdout);
	abort();
}

bool sim_chance(struct sim *s, uint32_t permille)
{
	return rng_below(&s->rng, 1000) < permille;
}

// ---- making ----
static void faults_begin(struct sim *s)
{
	s->store_faults = (struct memory_faults){
		.before_permille = (uint32_t)rng_below(&s->rng, 40),
		.answer_permille = (uint32_t)rng_below(&s->rng, 40),
		.lost_permille = (uint32_t)rng_below(&s->rng, 40),
		.full_permille = (uint32_t)rng_below(&s->rng, 20),
		.delay_polls_max = (uint32_t)rng_below(&s->rng, 8)};
	s->drop_permille = (uint32_t)rng_below(&s->rng, 150);
	s->repeat_permille = (uint32_t)rng_below(&s->rng, 150);
	s->late_permille = (uint32_t)rng_below(&s->rng, 150);
	s->factory_fail_permille = (uint32_t)rng_below(&s->rng, 200);
	for (uint32_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].store != NULL)
			memory_store_faults(s->nodes[i].store, &s->store_faults);
}

static void settle(struct sim *s, uint64_t ns, uint64_t tick_ns)
{
	for (uint64_t until = s->now_ns + ns; s->now_ns < until;) {
		s->step++;
		for (uint32_t i = 0; i < s->node_count; i++) {
			struct sim_node *n = &s->nodes[i];
			sim_node_due(n);
			for (uint16_t w = 0; n->state == SIM_RUNNING && w < SIM_WORKERS; w++)
				sim_node_turn(n, w);
			if (n->state == SIM_RUNNING)
				sim_node_step(n);
			for (uint16_t w = 0; n->state == SIM_RUNNING && w < SIM_WORKERS; w++)
				sim_node_turn(n, w);
		}
		sim_check_rows(s);
		sim_publish_turn();
		s->now_ns += tick_ns;
		sim_net_turn(s);
	}
}

struct sim *sim_create(uint64_t seed, bool trace)
{
	struct sim *s = calloc(1, sizeof(*s));
	if (s == NULL)
		abort();
	sim_world = s;
	s->seed = seed;
	s->trace = trace;
	s->now_ns = UINT64_C(1000000000000);
	rng_seed(&s->rng, seed);
	rng_seed(&s->fault_rng, seed + 1000000007);
	sim_publish_hold(false);
	sim_clock_init(&s->store_clock, s, 0, 0);
	s->rows = memory_store_create(&s->store_clock.base, seed);
	s->node_count = 3 + (uint32_t)(rng_below(&s->rng, 8) == 0) + (uint32_t)(seed % 16 == 0);
	s->idle_ms = rng_below(&s->rng, 2) == 0 ? 0 : 20 + rng_below(&s->rng, 200);
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		sim_client_open(s, i);
	for (uint32_t i = 0; i < s->node_count; i++) {
		sim_node_init(s, i);
		sim_node_boot(&s->nodes[i]);
	}
	settle(s, 5 * SIM_MS, SIM_MS);
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		for (uint32_t n = 0; n < s->node_count; n++)
			sim_client_hello(s, i, n);
	settle(s, 4 * SIM_MS, SIM_MS);
	faults_begin(s);
	return s;
}

// ---- what may go wrong ----
static struct sim_node *any_node(struct sim *s)
{
	return &s->nodes[rng_below(&s->rng, s->node_count)];
}

static void cut_something(struct sim *s)
{
	struct sim_node *n = any_node(s);
	uint32_t to = (uint32_t)rng_below(&s->rng, SIM_NODES_MAX + 1);
	n->cut[to] = !n->cut[to];
	sim_trace(s, "n%u %s %s %u", n->index, n->cut[to] ? "cut off from" : "reaches again",
		to == SIM_NODES_MAX ? "clients" : "node", to);
}

static void store_misbehaves(struct sim *s)
{
	struct sim_node *n = any_node(s);
	uint64_t dice = rng_below(&s->rng, 10);
	if (dice == 0) {
		sim_trace(s, "the store restarts");
		sim_fault(SIM_FAULT_STORE_RESTART);
		for (uint32_t i = 0; i < s->node_count; i++)
			if (s->nodes[i].store != NULL)
				memory_store_restart(s->nodes[i].store);
	} else if (dice == 1) {
		sim_fault(SIM_FAULT_STORE_CLOCK);
		s->store_clock.wall_offset_ns +=
			((int64_t)rng_below(&s->rng, 20000) - 10000) * (int64_t)SIM_MS;
	} else if (n->store != NULL) {
		bool hold = dice < 5;
		sim_trace(s, "the store %s n%u", hold ? "stalls for" : "answers", n->index);
		if (hold)
			sim_fault(SIM_FAULT_STORE_HELD);
		memory_store_hold(n->store, hold);
	}
}

static void node_suffers(struct sim *s)
{
	struct sim_node *n = any_node(s);
	uint64_t dice = rng_below(&s->rng, 100);
	if (n->state != SIM_RUNNING)
		return;
	if (dice < 40) {
		sim_node_crash(n);
	} else if (dice < 80) {
		sim_node_pause(n, rng_below(&s->rng, 900 * SIM_MS));
	} else if (dice < 90) {
		sim_trace(s, "n%u is asked to stop", n->index);
		sim_fault(SIM_FAULT_STOP);
		s->current = n;
		node_stop(n->node, (uint32_t)rng_below(&s->rng, 1000));
	} else {
		sim_trace(s, "n%u is stopped by force", n->index);
		sim_fault(SIM_FAULT_STOP_FORCED);
		s->current = n;
		node_stop_now(n->node);
	}
}

static void readers_stall(struct sim *s)
{
	s->retired_waits = !s->retired_waits;
	if (s->retired_waits)
		sim_fault(SIM_FAULT_READERS_STALL);
	sim_publish_hold(s->retired_waits);
}

// The store goes on while a node is suspended.
static void store_turns(struct sim *s)
{
	struct sim_node *n = any_node(s);
	if (n->state != SIM_PAUSED || memory_store_pending(n->store) == 0)
		return;
	uint64_t before = memory_store_writes(n->store);
	memory_store_turn(n->store);
	if (memory_store_writes(n->store) != before)
		sim_fault(SIM_FAULT_PAUSE_IN_STORE);
}

// ---- one step ----
static void act(struct sim *s)
{
	uint64_t dice = rng_below(&s->rng, 1000);
	struct sim_node *n = any_node(s);
	bool runs = n->state == SIM_RUNNING;
	if (dice < 350 && runs) {
		sim_node_turn(n, (uint16_t)rng_below(&s->rng, SIM_WORKERS));
		sim_check_node(n);
	} else if (dice < 650 && runs) {
		sim_node_step(n);
		sim_check_node(n);
	} else if (dice < 820) {
		(void)sim_client_new_op(s, (uint32_t)rng_below(&s->rng, s->node_count));
	} else if (dice < 860) {
		sim_client_repeat(s);
	} else if (dice < 890 && runs) {
		sim_node_act_as_operator(n);
	} else if (dice < 965) {
		s->now_ns += rng_below(&s->rng, 8 * SIM_MS);
	} else if (dice < 975) {
		store_misbehaves(s);
	} else if (dice < 982) {
		cut_something(s);
	} else if (dice < 988) {
		node_suffers(s);
	} else if (dice < 990) {
		readers_stall(s);
	} else {
		store_turns(s);
	}
}

void sim_run(struct sim *s, uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++) {
		s->step++;
		s->now_ns += rng_below(&s->rng, 300000);
		sim_net_turn(s);
		act(s);
		sim_check_rows(s);
		sim_publish_turn();
		for (uint32_t n = 0; n < s->node_count; n++)
			sim_node_due(&s->nodes[n]);
	}
	sim_totals.steps += steps;
}

// ---- the end ----
static void heal(struct sim *s)
{
	sim_trace(s, "everything heals");
	s->store_faults = (struct memory_faults){0};
	s->drop_permille = s->repeat_permille = s->late_permille = s->factory_fail_permille = 0;
	s->quiet = true;
	s->retired_waits = false;
	sim_publish_hold(false);
	for (uint32_t i = 0; i < s->node_count; i++) {
		struct sim_node *n = &s->nodes[i];
		memset(n->cut, 0, sizeof(n->cut));
		if (n->store == NULL)
			continue;
		memory_store_faults(n->store, &s->store_faults);
		memory_store_hold(n->store, false);
	}
}

static bool all_serve(struct sim *s)
{
	for (uint32_t i = 0; i < s->node_count; i++) {
		struct sim_node *n = &s->nodes[i];
		struct node_status status;
		if (n->state != SIM_RUNNING)
			return false;
		node_status(n->node, &status);
		if (status.state != NODE_SERVING || !status.ready)
			return false;
	}
	return true;
}

// New requests to every node: with nothing in the way each has its result.
static void probe(struct sim *s)
{
	for (uint32_t i = 0; i < SIM_CLIENTS; i++)
		for (uint32_t n = 0; n < s->node_count; n++)
			sim_client_hello(s, i, n);
	settle(s, 4 * SIM_MS, SIM_MS);
	for (uint32_t i = 0; i < 4 * s->node_count; i++) {
		uint32_t number = sim_client_new_op(s, i % s->node_count);
		if (number == SIM_OPS_MAX)
			break;
		uint8_t family = s->ops[number].header.family;
		s->ops[number].probe = family != WIRE_SEND && family != WIRE_INTENT_SEND;
	}
	settle(s, 800 * SIM_MS, 4 * SIM_MS);
}

static void stop_all(struct sim *s)
{
	for (uint32_t i = 0; i < s->node_count; i++) {
		s->nodes[i].stopping = true;
		s->current = &s->nodes[i];
		node_stop(s->nodes[i].node, 5000);
	}
	for (int left = (int)s->node_count, i = 0; left > 0; i++) {
		left = (int)s->node_count;
		for (uint32_t k = 0; k < s->node_count; k++) {
			struct node_status status;
			node_status(s->nodes[k].node, &status);
			bool over = status.state == NODE_STOPPED;
			left -= over;
			sim_check(s, !over || status.exit_code == NODE_EXIT_CLEAN, "a clean end");
			for (uint16_t w = 0; !over && w < SIM_WORKERS; w++)
				sim_node_turn(&s->nodes[k], w);
			if (!over)
				sim_node_step(&s->nodes[k]);
		}
		s->now_ns += SIM_MS;
		sim_check(s, i < 2000, "H3: the drain ends");
	}
	sim_check(s, memory_store_spot_count(s->rows) == 0, "H3: authorities are released");
	for (uint32_t i = 0; i < s->node_count; i++)
		for (uint32_t k = 0; k < 2 * SIM_SPOTS; k++)
			sim_check(s, !s->nodes[i].objects[k / SIM_SPOTS][k % SIM_SPOTS].alive,
				"H3: every object was disposed of");
}

void sim_finish(struct sim *s)
{
	heal(s);
	for (int i = 0; !all_serve(s); i++) {
		sim_check(s, i < 400, "healed, every node serves again in bounded time");
		settle(s, 20 * SIM_MS, 4 * SIM_MS);
	}
	settle(s, 1500 * SIM_MS, 5 * SIM_MS);
	probe(s);
	sim_check_rest(s);
	stop_all(s);
	sim_net_clear(s);
	for (uint32_t i = 0; i < s->node_count; i++)
		sim_node_end(&s->nodes[i]);
	store_destroy(s->rows);
}
