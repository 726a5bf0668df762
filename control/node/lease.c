// SPDX-License-Identifier: BSD-3-Clause
// The node's row: joining (O4), renewal (O2, O3), the rows of former runs (O6), object generations (T3).
#include "node/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	STORE_RETRY_MS = 1000,     // between tries to join
	SKEW_WARNING_MS = 1000,    // O2: shown, and nothing rests on it
	PERCENT = 100,
};

static uint64_t ms(uint64_t value)
{
	return value * NS_PER_MS;
}

bool lease_relation_holds(const struct node_config *c)
{
	uint64_t slowest = c->lease_renew_ms > c->lease_timeout_ms ? c->lease_renew_ms
								    : c->lease_timeout_ms;
	return c->lease_ttl_ms > c->lease_margin_ms &&
	       slowest + c->lease_timeout_ms < c->lease_ttl_ms - c->lease_margin_ms;
}

// ---- the deadline that workers see ----
static void publish_deadline(struct node *n, uint64_t deadline_ns)
{
	struct dp_lease *lease = dp_lease(n->dp);
	uint64_t ticks = 0;
	n->lease_deadline_ns = deadline_ns;
	if (deadline_ns != 0) {
		uint64_t ahead_ns = deadline_ns - n->lease_asked_ns;
		ticks = n->lease_asked_ticks +
			(uint64_t)((double)ahead_ns * (double)n->clock->ticks_hz / 1e9);
	}
	atomic_store_explicit(&lease->generation, n->lease_generation.value, memory_order_relaxed);
	atomic_store_explicit(&lease->deadline_ticks, ticks, memory_order_relaxed);
	// Pairs with the workers' acquire load: who sees this deadline sees its ticks and generation.
	atomic_store_explicit(&lease->deadline_boot_ns, deadline_ns, memory_order_release);
}

void lease_drop(struct node *n)
{
	publish_deadline(n, 0);
}

bool lease_is_live(const struct node *n)
{
	return n->lease_deadline_ns != 0 && clock_boot_ns(n->clock) < n->lease_deadline_ns;
}

// O3: counted from the clock as it stood before the request went out.
static void lease_extended(struct node *n)
{
	uint64_t term = ms(n->config.lease_ttl_ms);
	term -= term * n->config.clock_rate_error_percent / PERCENT;
	publish_deadline(n, n->lease_asked_ns + term - ms(n->config.lease_margin_ms));
	n->store_reachable = true;
	if (n->lease_lapsed && lease_is_live(n)) {
		n->lease_lapsed = false;
		node_say(n, "owner lease held again");
		node_emit(n, NODE_EVENT_LEASE_REGAINED, (struct spot_key){0, 0}, span_of(NULL, 0),
			result_ok(), n->lease_generation.value);
	}
}

static void lease_done(struct store_op *op);

static void ask(struct node *n, enum store_op_kind kind)
{
	n->lease_op.kind = kind;
	n->lease_op.id = node_draw_id(n);
	n->lease_op.done = lease_done;
	n->lease_op.arg = n;
	memcpy(n->lease_op.node.node_id, n->node_id, sizeof(n->node_id));
	n->lease_op.node.boot = n->boot;
	n->lease_op_lent = true;
	n->lease_counted_late = false;
	n->lease_asked_ticks = clock_ticks(n->clock);
	n->lease_asked_ns = clock_boot_ns(n->clock);
	node_submit(n, &n->lease_op);
}

// ---- joining ----
static void look(struct node *n)
{
	ask(n, STORE_NODE_READ);
}

static void join(struct node *n)
{
	n->phase = LEASE_JOINING;
	struct store_node_row *row = &n->lease_op.node;
	n->lease_op.expect_boot = row->exists ? row->boot : (struct store_boot_id){{0}};
	n->lease_op.expect_beat = row->exists ? row->beat : 0;
	row->ttl_ms = n->config.lease_ttl_ms;
	memcpy(row->host_id, n->host_id, sizeof(row->host_id));
	memcpy(row->address, n->address, sizeof(row->address));
	ask(n, STORE_NODE_JOIN);
}

// O4: at once where the former run is known to be over.
static bool former_run_is_over(const struct node *n, const struct store_node_row *row)
{
	bool same_host = n->host_id[0] != 0 && strcmp(n->host_id, row->host_id) == 0;
	return !row->exists || store_boot_is_zero(row->boot) || row->fenced ||
	       (same_host && n->config.node_lock_held);
}

static uint64_t watch_ns(const struct node *n)
{
	uint64_t term = ms(n->watched_ttl_ms);
	return term + term * n->config.clock_rate_error_percent / PERCENT;
}

static void watch_from_here(struct node *n, const struct store_node_row *row)
{
	n->phase = LEASE_WATCHING;
	n->watched_boot = row->boot;
	n->watched_beat = row->beat;
	n->watched_ttl_ms = row->ttl_ms;
	// The row is at least as old as this answer: count from here, never from before.
	n->watched_since_ns = clock_boot_ns(n->clock);
}

static void watch_goes_on(struct node *n, const struct store_node_row *row)
{
	if (!store_boot_equal(row->boot, n->watched_boot) || row->beat != n->watched_beat) {
		node_say(n, "node id %s is held by a live run on host %s: its beat moves", n->node_id,
			row->host_id[0] != 0 ? row->host_id : "(unknown)");
		node_end_now(n, NODE_ERROR, NODE_EXIT_INTERNAL);
		return;
	}
	uint64_t still = clock_boot_ns(n->clock) - n->watched_since_ns;
	if (still > watch_ns(n)) {
		join(n);
		return;
	}
	node_say(n, "node id %s was held by another run: its beat stands still since %.1f of %.1f s",
		n->node_id, (double)still / 1e9, (double)watch_ns(n) / 1e9);
	uint64_t pause = ms(n->config.lease_renew_ms < STORE_RETRY_MS ? n->config.lease_renew_ms
								     : STORE_RETRY_MS);
	n->lease_next_ns = clock_boot_ns(n->clock) + pause;
}

static void looked(struct node *n)
{
	const struct store_node_row *row = &n->lease_op.node;
	if (former_run_is_over(n, row)) {
		join(n);
		return;
	}
	if (n->phase != LEASE_WATCHING)
		watch_from_here(n, row);
	watch_goes_on(n, row);
}

static void joined(struct node *n)
{
	n->lease_generation = n->lease_op.node.lease_generation;
	n->phase = LEASE_HELD;
	n->lease_next_ns = n->lease_asked_ns + ms(n->config.lease_renew_ms);
	lease_extended(n);
	node_say(n, "joined with lease generation %llu",
		(unsigned long long)n->lease_generation.value);
}

// A lost answer to a join is settled by reading: the row carries our boot id or it does not.
static void look_again(struct node *n, enum store_outcome outcome)
{
	n->store_reachable = false;
	n->phase = LEASE_LOOKING; // a failed read restarts the watch (O6)
	n->lease_next_ns = clock_boot_ns(n->clock) + ms(STORE_RETRY_MS);
	node_say(n, "cannot join: store %s; trying again", store_outcome_name(outcome));
}

static void join_answered(struct node *n)
{
	enum store_outcome outcome = n->lease_op.outcome;
	bool reading = n->lease_op.kind == STORE_NODE_READ;
	bool ours = n->lease_op.node.exists && store_boot_equal(n->lease_op.node.boot, n->boot);
	if (outcome == STORE_DAMAGED)
		node_damaged(n);
	else if (outcome == STORE_EXHAUSTED)
		node_fail(n, NODE_EXIT_INTERNAL, "lease generations are exhausted");
	else if (outcome == STORE_DONE && reading && !ours)
		looked(n);
	else if (outcome == STORE_DONE && reading)
		join(n); // an earlier join was applied: repeated, it answers with our row
	else if (outcome == STORE_DONE)
		joined(n);
	else if (outcome == STORE_CONFLICT) {
		n->phase = LEASE_LOOKING;
		n->lease_next_ns = 0;
	} else
		look_again(n, outcome);
}

// ---- renewal ----
static void measure_skew(struct node *n)
{
	n->skew_ns = (int64_t)(n->lease_op.store_wall_ns - n->clock->wall_ns(n->clock));
	bool far = llabs(n->skew_ns) > (int64_t)ms(SKEW_WARNING_MS);
	if (far && !n->skew_warned)
		node_emit(n, NODE_EVENT_SKEW, (struct spot_key){0, 0}, span_of(NULL, 0), result_ok(),
			(uint64_t)llabs(n->skew_ns));
	n->skew_warned = far;
}

static void renewal_failed(struct node *n, enum store_outcome outcome)
{
	if (!n->lease_counted_late)
		n->lease_failures++;
	n->store_reachable = outcome == STORE_FULL;
	// Sooner than the usual interval: what is left until the deadline is for these tries.
	uint64_t pause = ms(n->config.lease_renew_ms) / 5;
	n->lease_next_ns = clock_boot_ns(n->clock) + (pause > 0 ? pause : 1);
	node_say(n, "lease renewal: store %s (%llu failures so far)", store_outcome_name(outcome),
		(unsigned long long)n->lease_failures);
}

static void renewal_answered(struct node *n)
{
	switch (n->lease_op.outcome) {
	case STORE_DONE:
		n->lease_renewals++;
		n->lease_next_ns = n->lease_asked_ns + ms(n->config.lease_renew_ms);
		measure_skew(n);
		lease_extended(n);
		return;
	case STORE_CONFLICT:
		node_fail(n, NODE_EXIT_LEASE_LOST,
			"no longer a member: the node's row was fenced or taken over");
		return;
	case STORE_DAMAGED:
		node_damaged(n);
		return;
	case STORE_UNREACHABLE:
	case STORE_UNKNOWN: // applied or not: the next renewal says the same either way
	case STORE_FULL:
	case STORE_EXHAUSTED:
		renewal_failed(n, n->lease_op.outcome);
		return;
	}
}

static void left(struct node *n)
{
	enum store_outcome outcome = n->lease_op.outcome;
	bool again = outcome == STORE_UNREACHABLE || outcome == STORE_UNKNOWN || outcome == STORE_FULL;
	if (again && clock_boot_ns(n->clock) < n->drain.deadline_ns) {
		n->lease_next_ns = clock_boot_ns(n->clock) + ms(RETRY_MS);
		return;
	}
	n->phase = LEASE_LEFT;
	node_end_now(n, NODE_STOPPED, n->exit_code);
}

static void lease_done(struct store_op *op)
{
	struct node *n = op->arg;
	n->lease_op_lent = false;
	if (n->halted || n->state == NODE_ERROR || n->state == NODE_STOPPED)
		return;
	switch (n->phase) {
	case LEASE_LOOKING:
	case LEASE_WATCHING:
	case LEASE_JOINING:
		join_answered(n);
		return;
	case LEASE_HELD:
		renewal_answered(n);
		return;
	case LEASE_LEAVING:
		left(n);
		return;
	case LEASE_NONE:
	case LEASE_LEFT:
		return;
	}
}

// ---- rows of former runs, in the background ----
static void former_answered(struct store_op *op)
{
	struct node *n = op->arg;
	n->former_op_lent = false;
	if (n->halted)
		return;
	if (op->outcome == STORE_DAMAGED) {
		node_damaged(n);
	} else if (op->outcome == STORE_DONE) {
		n->former_released += op->count;
		n->former_done = op->count == 0;
	} else { // applied or not: the next batch finds what is left
		n->former_next_ns = clock_boot_ns(n->clock) + ms(STORE_RETRY_MS);
	}
}

static void release_former(struct node *n)
{
	n->former_op = (struct store_op){.kind = STORE_SPOT_FORMER,
		.id = node_draw_id(n),
		.limit = FORMER_BATCH,
		.done = former_answered,
		.arg = n};
	memcpy(n->former_op.row.owner_node, n->node_id, sizeof(n->node_id));
	n->former_op.row.owner_boot = n->boot;
	n->former_op_lent = true;
	node_submit(n, &n->former_op);
}

// ---- object generations ----
static void range_answered(struct store_op *op)
{
	struct node *n = op->arg;
	n->draw_op_lent = false;
	if (n->halted)
		return;
	if (op->outcome == STORE_DAMAGED)
		node_damaged(n);
	// What a former range had left is given up: generations are never used twice, gaps are harmless.
	if (op->outcome == STORE_DONE) {
		n->generation_next = op->range_first;
		n->generation_end = op->range_first + op->range_count;
	}
	entry_generations_arrived(n);
}

static void draw_range(struct node *n)
{
	n->draw_op = (struct store_op){.kind = STORE_GENERATION_DRAW,
		.id = node_draw_id(n),
		.range_count = GENERATION_RANGE,
		.done = range_answered,
		.arg = n};
	n->draw_op_lent = true;
	node_submit(n, &n->draw_op);
}

// ---- turning the wheel ----
void lease_start(struct node *n)
{
	n->phase = LEASE_LOOKING;
	look(n);
}

void lease_leave(struct node *n)
{
	if (n->phase == LEASE_LEAVING || n->lease_op_lent)
		return;
	n->phase = LEASE_LEAVING;
	lease_drop(n);
	ask(n, STORE_NODE_LEAVE);
}

static void ask_next(struct node *n)
{
	switch (n->phase) {
	case LEASE_LOOKING:
	case LEASE_WATCHING:
		look(n);
		return;
	case LEASE_HELD:
		ask(n, STORE_NODE_RENEW);
		return;
	case LEASE_LEAVING:
		ask(n, STORE_NODE_LEAVE);
		return;
	case LEASE_NONE:
	case LEASE_JOINING:
	case LEASE_LEFT:
		return;
	}
}

static void notice_late_answer(struct node *n)
{
	bool late = n->lease_op_lent && n->phase == LEASE_HELD && !n->lease_counted_late &&
		    n->now_ns >= n->lease_asked_ns + ms(n->config.lease_timeout_ms);
	if (!late)
		return;
	n->lease_counted_late = true;
	n->lease_failures++;
	n->store_reachable = false;
	node_say(n, "lease renewal: no answer within %llu ms",
		(unsigned long long)n->config.lease_timeout_ms);
}

static void notice_lapse(struct node *n)
{
	if (n->phase != LEASE_HELD || n->lease_lapsed || n->lease_deadline_ns == 0 ||
		n->now_ns < n->lease_deadline_ns)
		return;
	n->lease_lapsed = true; // the workers refuse by themselves already
	node_say(n, "owner lease ran out: refusing until the store answers a renewal");
	node_emit(n, NODE_EVENT_LEASE_LOST, (struct spot_key){0, 0}, span_of(NULL, 0),
		result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST), n->lease_generation.value);
}

void lease_step(struct node *n)
{
	if (n->abandon)
		return;
	notice_late_answer(n);
	notice_lapse(n);
	if (!n->lease_op_lent && n->now_ns >= n->lease_next_ns)
		ask_next(n);
	if (n->phase != LEASE_HELD || !lease_is_live(n))
		return;
	if (!n->former_done && !n->former_op_lent && n->now_ns >= n->former_next_ns)
		release_former(n);
	bool wanted = n->in_state[ACTIVATION_DRAWING] > 0;
	if (wanted && !n->draw_op_lent && n->generation_next == n->generation_end)
		draw_range(n);
}

uint64_t lease_next(const struct node *n)
{
	return n->lease_op_lent ? UINT64_MAX : n->lease_next_ns;
}
