// SPDX-License-Identifier: BSD-3-Clause
// The promises. Each is checked from outside the node: from the store's rows, the clocks and the
// module's own view, not from the node's counters, except where a promise is about those.
#include <stdio.h>

#include "sim.h"
#include "worker/worker.h"

static struct spot_key key_of(uint32_t kind, uint32_t number)
{
	static struct spot_key keys[2][SIM_SPOTS];
	struct spot_key *key = &keys[kind][number];
	if (spot_key_is_zero(*key)) {
		char id[16];
		int n = snprintf(id, sizeof(id), "%c-%u", kind == 1 ? 'r' : 's', number);
		*key = spot_key_of(span_of(id, (size_t)n));
	}
	return *key;
}

// ---- turns and births ----
void sim_check_turn(struct sim_node *n, uint32_t kind, uint32_t number)
{
	struct sim *s = n->sim;
	const struct sim_object *o = &n->objects[kind][number];
	struct store_spot_row row;
	sim_check(s, sim_node_lease_live(n), "I2, O3: no turn after the lease deadline");
	sim_check(s, o->alive, "turns run on live objects");
	sim_check(s, !o->closing, "C4: no turn after the closing callback");
	bool exists = memory_store_spot(s->rows, key_of(kind, number), &row);
	sim_check(s,
		exists && row.state == STORE_SPOT_READY &&
			store_boot_equal(row.owner_boot, n->boot) &&
			row.object_generation.value == o->generation,
		"I4, A5: a turn runs under a stored authority of its own incarnation");
	for (uint32_t m = 0; m < s->node_count; m++) {
		struct sim_node *other = &s->nodes[m];
		bool rival = other != n && other->state != SIM_DOWN &&
			     other->objects[kind][number].alive && sim_node_lease_live(other) &&
			     node_find(other->node, key_of(kind, number)) != NULL;
		sim_check(s, !rival, "I4: one activation of an id is routed to under a live lease");
	}
}

static uint64_t claimed_ns(const struct sim *s, uint64_t generation)
{
	for (uint32_t i = s->claim_count; i > 0; i--)
		if (s->claims[i - 1].generation == generation)
			return s->claims[i - 1].at_ns;
	return UINT64_MAX;
}

void sim_check_built(struct sim_node *n, uint32_t kind, uint32_t number, uint64_t generation)
{
	struct sim *s = n->sim;
	struct store_spot_row row;
	sim_check(s, !n->objects[kind][number].alive, "I4: never two objects of one id on a node");
	for (uint32_t i = 0; i < s->built_count; i++)
		sim_check(s, s->built[i] != generation, "T3, A5: one factory call for an incarnation");
	sim_check(s, s->built_count < SIM_BUILT_MAX, "room for births");
	s->built[s->built_count++] = generation;
	if (!sim_node_lease_live(n))
		return; // whatever it is, it is never published
	// A claimant that was without a lease may have lost its claim to who cleans up after the
	// dead (A8); when it is back it goes on, and its commit meets no claim.
	if (n->lapsed_ns >= claimed_ns(s, generation))
		return;
	bool exists = memory_store_spot(s->rows, key_of(kind, number), &row);
	sim_check(s,
		exists && row.state == STORE_SPOT_CREATING &&
			store_boot_equal(row.owner_boot, n->boot) &&
			row.object_generation.value == generation,
		"A5: a factory runs under its own stored claim");
}

// ---- one node after it acted ----
static void check_lane(struct sim *s, struct lane_level level, struct lane_bounds bounds)
{
	sim_check(s, level.bytes <= bounds.bytes_max && level.count <= bounds.count_max,
		"I12: a lane is within its bounds");
}

static void check_spot(struct dp_spot *spot, void *arg)
{
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	check_lane(arg, v.application, v.application_bounds);
	check_lane(arg, v.lifecycle, v.lifecycle_bounds);
}

void sim_check_node(struct sim_node *n)
{
	struct sim *s = n->sim;
	uint64_t cursor = 0;
	if (n->state == SIM_DOWN)
		return;
	do
		(void)node_walk(n->node, &cursor, 64, check_spot, s);
	while (cursor != 0);
	struct node_status status;
	node_status(n->node, &status);
	sim_check(s,
		status.activations_running <= 2 && status.activations_waiting <= 3 &&
			status.resolves_running <= 6 + 2 + 3,
		"A10: bounds of activations and resolves");
	sim_check(s,
		status.spots_live[SPOT_KIND_USER] + status.spots_live[SPOT_KIND_INSTANCE] <= 8,
		"N1: the ceiling");
	sim_check(s, dp_process_bytes(n->dp) <= 8u << 20, "P1: the process bound");
}

// ---- the store after it changed ----
// An authority that is gone, or is another's now, was released after its object was disposed of, or
// its owner's process is over.
static void check_gone(struct sim *s, uint32_t kind, uint32_t number, const struct sim_row *was)
{
	for (uint32_t i = 0; i < s->node_count; i++) {
		const struct sim_node *n = &s->nodes[i];
		const struct sim_object *o = &n->objects[kind][number];
		bool owner = n->state != SIM_DOWN && store_boot_equal(n->boot, was->boot);
		sim_check(s, !owner || !o->alive || o->generation != was->generation,
			"A3: a Ready row ends after its object, or after its owner");
	}
}

static void check_row(struct sim *s, uint32_t kind, uint32_t number)
{
	struct sim_row *was = &s->seen[kind][number];
	struct store_spot_row row;
	struct sim_row now = {0};
	if (memory_store_spot(s->rows, key_of(kind, number), &row))
		now = (struct sim_row){true, row.state == STORE_SPOT_READY, row.owner_boot,
			row.object_generation.value, row.authority_generation.value};
	bool same = now.exists && now.generation == was->generation;
	if (now.exists && !same) {
		sim_check(s, s->claim_count < SIM_BUILT_MAX, "room for claims");
		s->claims[s->claim_count++] = (struct sim_claim){now.generation, s->now_ns};
	}
	if (was->exists && was->ready && !same)
		check_gone(s, kind, number, was);
	if (was->exists && same)
		sim_check(s,
			now.authority >= was->authority &&
				(now.authority > was->authority ||
					store_boot_equal(now.boot, was->boot)) &&
				(now.ready || !was->ready),
			"T4, A9: within an incarnation the owner changes with the authority generation");
	if (now.exists != was->exists || !same || now.ready != was->ready)
		sim_trace(s, "  row %c-%u: %s, generation %llu", kind == 1 ? 'r' : 's', number,
			!now.exists ? "none"
			: now.ready ? "Ready"
				    : "Creating",
			(unsigned long long)now.generation);
	*was = now;
}

void sim_check_rows(struct sim *s)
{
	uint64_t writes = memory_store_writes(s->rows);
	if (writes == s->writes_seen)
		return;
	s->writes_seen = writes;
	for (uint32_t kind = 0; kind < 2; kind++)
		for (uint32_t number = 0; number < SIM_SPOTS; number++)
			check_row(s, kind, number);
}

// ---- at rest ----
static void check_empty_lanes(struct dp_spot *spot, void *arg)
{
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	sim_check(arg,
		v.application.bytes + v.application.count + v.lifecycle.bytes +
				v.lifecycle.count ==
			0,
		"I10: every reservation returned");
}

static void check_node_rests(struct sim_node *n)
{
	struct sim *s = n->sim;
	struct node_status status;
	uint64_t cursor = 0;
	sim_check(s, n->state == SIM_RUNNING, "every node is back");
	node_status(n->node, &status);
	sim_check(s, status.state == NODE_SERVING && status.ready, "every node serves again");
	sim_check(s,
		status.activations_running + status.activations_waiting + status.resolves_running +
				status.closes_running + status.closes_stuck ==
			0,
		"nothing is under way for ever");
	sim_check(s, n->operator_answered == n->operator_asked,
		"every operator's operation has exactly one end");
	do
		(void)node_walk(n->node, &cursor, 64, check_empty_lanes, s);
	while (cursor != 0);
	sim_check(s, dp_process_bytes(n->dp) == 0, "P1: nothing charged at rest");
}

static void check_audit(struct sim_node *n)
{
	struct sim *s = n->sim;
	struct dp_audit audit;
	sim_check(s, dp_audit_begin(n->dp) == DP_DONE, "audit begins");
	for (int i = 0; !dp_audit_poll(n->dp, &audit); i++) {
		sim_check(s, i < 1000, "the audit ends");
		for (uint16_t w = 0; w < SIM_WORKERS; w++)
			sim_node_turn(n, w);
	}
	sim_check(s, audit.ledger_bytes == audit.measured_bytes, "L3, I11: the ledger is right");
	sim_check(s, audit.accepted == audit.delivered + audit.dropped && audit.in_flight == 0,
		"conservation: accepted = delivered + dropped");
	sim_check(s, audit.items == 0, "I10: no item is left");
	for (uint16_t w = 0; w < SIM_WORKERS; w++)
		sim_node_turn(n, w);
}

static void check_row_rests(const struct store_spot_row *row, void *arg)
{
	struct sim *s = arg;
	struct dp_spot_view v;
	sim_check(s, row->state == STORE_SPOT_READY, "A8: nothing is Creating for ever");
	for (uint32_t i = 0; i < s->node_count; i++) {
		struct sim_node *n = &s->nodes[i];
		if (!store_boot_equal(row->owner_boot, n->boot))
			continue;
		struct dp_spot *spot = node_find(n->node, row->key);
		sim_check(s, spot != NULL, "a Ready row has its object");
		dp_spot_view(spot, &v);
		sim_check(s, v.object_generation.value == row->object_generation.value,
			"row and object are one incarnation");
		return;
	}
	sim_check(s, false, "O6: a former run's rows are released by its restart");
}

void sim_check_rest(struct sim *s)
{
	uint64_t routes = 0;
	for (uint32_t i = 0; i < s->node_count; i++) {
		struct node_status status;
		check_node_rests(&s->nodes[i]);
		node_status(s->nodes[i].node, &status);
		for (int kind = SPOT_KIND_ENTRY; kind <= SPOT_KIND_INSTANCE; kind++)
			routes += status.spots_live[kind];
	}
	memory_store_each(s->rows, check_row_rests, s);
	sim_check(s, memory_store_spot_count(s->rows) == routes, "an object for each Ready row");
	for (uint32_t i = 0; i < s->node_count; i++)
		check_audit(&s->nodes[i]);
	for (uint32_t i = 0; i < s->op_count; i++) {
		const struct sim_op *op = &s->ops[i];
		if (op->probe)
			sim_check(s, op->results > 0, "I7: in calm weather every request has its result");
		sim_note(s, 8, op->results > 0 ? op->first.kind : 0);
	}
}
