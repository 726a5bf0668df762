// SPDX-License-Identifier: BSD-3-Clause
// The effects of the activation machine: store work, commands to the data plane, counts. What comes
// back becomes the machine's next event.
#include "node/internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "spotlane/module.h"
#include "wire/layout.h"

static struct waiter *pop_waiter(struct entry *e)
{
	struct waiter *w = e->waiters;
	if (w != NULL && (e->waiters = w->next) == NULL)
		e->waiters_end = &e->waiters;
	return w;
}

static void end_all(struct node *n, struct entry *e)
{
	for (struct waiter *w; (w = pop_waiter(e)) != NULL;)
		waiter_end(n, w, e->failure, e->has_refusal ? &e->refusal : NULL);
}

// ---- store work ----
void entry_store_failed(struct node *n, struct entry *e, enum store_outcome outcome)
{
	entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE));
	if (outcome == STORE_DAMAGED)
		node_damaged(n);
}

static bool same_fences(const struct entry *e, const struct store_spot_row *row)
{
	return row->exists && store_boot_equal(row->owner_boot, e->node->boot) &&
	       row->object_generation.value == e->generation.value &&
	       row->authority_generation.value == e->authority.value;
}

static void claim_read_back(struct node *n, struct entry *e)
{
	if (e->op.outcome != STORE_DONE) {
		entry_store_failed(n, e, e->op.outcome);
		entry_event(n, e, ACTIVATION_EV_FAILED);
		return;
	}
	bool ours = same_fences(e, &e->op.row) && store_op_equal(e->op.row.last_operation, e->attempt);
	entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE));
	entry_event(n, e, ours ? ACTIVATION_EV_OURS : ACTIVATION_EV_NOT_OURS);
}

static void commit_read_back(struct node *n, struct entry *e)
{
	if (e->op.outcome != STORE_DONE) {
		entry_store_failed(n, e, e->op.outcome);
		entry_event(n, e, ACTIVATION_EV_FAILED);
		return;
	}
	bool ours = same_fences(e, &e->op.row) && e->op.row.state == STORE_SPOT_READY &&
		    store_op_equal(e->op.row.last_operation, e->commit);
	bool live = lease_is_live(n);
	entry_fails(e, live ? result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE)
			    : result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
	entry_event(n, e,
		!ours  ? ACTIVATION_EV_NOT_OURS
		: live ? ACTIVATION_EV_OURS
		       : ACTIVATION_EV_LAPSED);
}

static void after_change(struct node *n, struct entry *e)
{
	enum store_outcome outcome = e->op.outcome;
	bool commit_late = e->state == ACTIVATION_COMMITTING && outcome == STORE_DONE &&
			   !lease_is_live(n);
	if (commit_late) { // O3: no confirmed activation
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
		entry_event(n, e, ACTIVATION_EV_LAPSED);
		return;
	}
	switch (outcome) {
	case STORE_DONE:
		entry_event(n, e, ACTIVATION_EV_DONE);
		return;
	case STORE_CONFLICT:
		if (e->op.kind == STORE_SPOT_CLEAN && e->op.row.exists)
			peers_watch_anew(n, e->orphan.owner_node);
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_OWNER_UNUSABLE));
		entry_event(n, e, ACTIVATION_EV_CONFLICT);
		return;
	case STORE_UNKNOWN:
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE));
		entry_event(n, e, ACTIVATION_EV_LOST);
		return;
	case STORE_UNREACHABLE:
	case STORE_FULL:
	case STORE_DAMAGED:
	case STORE_EXHAUSTED:
		entry_store_failed(n, e, outcome);
		entry_event(n, e, ACTIVATION_EV_FAILED);
		return;
	}
}

static void op_done(struct store_op *op)
{
	struct entry *e = container_of(op, struct entry, op);
	struct node *n = e->node;
	e->op_lent = false;
	if (n->halted)
		return;
	if (op->kind != STORE_SPOT_READ)
		after_change(n, e);
	else if (e->state == ACTIVATION_READING)
		resolve_row_read(n, e);
	else if (e->state == ACTIVATION_CLAIM_LOST)
		claim_read_back(n, e);
	else
		commit_read_back(n, e);
}

static void ask_store(struct node *n, struct entry *e, enum store_op_kind kind, struct store_op_id id)
{
	CHECK(!e->op_lent);
	e->op.kind = kind;
	e->op.id = id;
	e->op.done = op_done;
	e->op_lent = true;
	node_submit(n, &e->op);
}

static void fill_row(struct node *n, struct entry *e)
{
	struct store_spot_row *row = &e->op.row;
	*row = (struct store_spot_row){.key = e->key, .kind = e->kind};
	row->id_bytes = e->id_bytes;
	memcpy(row->id, e->id, e->id_bytes);
	if (e->type != NULL)
		snprintf(row->type_name, sizeof(row->type_name), "%s", dp_type_name(e->type));
	memcpy(row->owner_node, n->node_id, sizeof(row->owner_node));
	row->owner_boot = n->boot;
	row->owner_lease = n->lease_generation;
	row->object_generation = e->generation;
	row->authority_generation = e->authority;
	row->last_operation = e->attempt;
}

// ---- effects ----
static void do_read(struct node *n, struct entry *e)
{
	if (e->state == ACTIVATION_READING) { // a lost race starts over from the row as it is
		entry_clear_creation(n, e);
		for (struct waiter *w = e->waiters; w != NULL; w = w->next)
			w->creator = false;
	}
	e->read_ns = clock_boot_ns(n->clock);
	e->op.row = (struct store_spot_row){.key = e->key};
	ask_store(n, e, STORE_SPOT_READ, node_draw_id(n));
}

static void do_draw(struct node *n, struct entry *e)
{
	e->running = true;
	n->running++;
	if (n->generation_next < n->generation_end) {
		e->generation.value = n->generation_next++;
		e->authority.value = 1;
		entry_event(n, e, ACTIVATION_EV_DRAWN);
	} else { // the lease part draws a range and calls entry_generations_arrived
		entry_retry_at(n, e, UINT64_MAX);
	}
}

static void do_claim(struct node *n, struct entry *e)
{
	e->attempt = node_draw_id(n);
	fill_row(n, e);
	ask_store(n, e, STORE_SPOT_CLAIM, e->attempt);
}

static void command_send(struct node *n, struct entry *e, enum command_kind kind, uint16_t worker)
{
	CHECK(e->command.kind == COMMAND_NONE);
	e->command.kind = kind;
	e->command.worker = worker;
	dpq_send(n, &e->command);
}

// Control's corner of a Spot.
struct spot_area {
	union {
		struct actor_host host; // while it lives
		struct publish_deferred deferred;
	} as;
	struct dp_spot *spot;
};
_Static_assert(sizeof(struct spot_area) <= DP_SPOT_CONTROL_BYTES, "fits control's corner");

static void free_retired(struct publish_deferred *deferred)
{
	dp_spot_destroy(container_of(deferred, struct spot_area, as.deferred)->spot);
}

struct actor_host *entry_actor_host(struct dp_spot *spot)
{
	struct spot_area *area = dp_spot_control_area(spot);
	return &area->as.host;
}

// After a grace period also where it was never published: the worker that reported the end of its last
// callback is still in that loop turn.
static void free_later(struct entry *e)
{
	struct spot_area *area = dp_spot_control_area(e->spot);
	publish_defer(&area->as.deferred, free_retired);
	e->spot = NULL;
	e->published = false;
}

static void do_build(struct node *n, struct entry *e)
{
	struct dp_spot_spec spec = {.key = e->key,
		.id = span_of(e->id, e->id_bytes),
		.type = e->type,
		.object_generation = e->generation,
		.authority_generation = e->authority,
		.home_worker = dp_home_for(n->dp, e->key)};
	if (!lease_is_live(n)) {
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
		entry_event(n, e, ACTIVATION_EV_UNBUILT);
		return;
	}
	e->spot = dp_spot_create(n->dp, &spec);
	if (e->spot == NULL) {
		entry_fails(e, result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY));
		entry_event(n, e, ACTIVATION_EV_UNBUILT);
		return;
	}
	struct spot_area *area = dp_spot_control_area(e->spot);
	area->spot = e->spot;
	command_send(n, e, COMMAND_CONSTRUCT, spec.home_worker);
}

static void do_commit(struct node *n, struct entry *e)
{
	e->commit = node_draw_id(n);
	fill_row(n, e);
	ask_store(n, e, STORE_SPOT_COMMIT, e->commit);
}

// A7: route and intent become visible in the continuation of the commit, then the lane opens.
static void do_publish(struct node *n, struct entry *e)
{
	enum route_write written = publish_pending() > n->config.rcu_pending_max
					   ? ROUTE_STALLED
					   : route_publish(n->routes, e->key, dp_spot_route(e->spot));
	if (written != ROUTE_WRITTEN) {
		bool stalled = written == ROUTE_STALLED;
		entry_fails(e, stalled ? result_refused(RESULT_UNAVAILABLE, REASON_RCU_STALLED)
				       : result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY));
		entry_event(n, e, ACTIVATION_EV_UNPUBLISHED);
		return;
	}
	e->published = true;
	e->reserved = false; // from reserved to active: the same count (N1)
	n->spots_live[e->kind]++;
	n->activations_total++;
	latency_record(&n->activation_time, n->now_ns - e->reserved_ns);
	command_send(n, e, COMMAND_OPEN, e->origin);
}

static void do_dispose(struct node *n, struct entry *e)
{
	if (e->state == ACTIVATION_CLOSING) {
		e->due_ns = n->now_ns + n->config.closing_limit_ms * NS_PER_MS;
		entry_list_push(&n->closings, e);
	}
	bool idle = e->idle_ns != 0 && e->state == ACTIVATION_CLOSING;
	command_send(n, e, idle ? COMMAND_CLOSE_IDLE : COMMAND_CLOSE, dp_home_for(n->dp, e->key));
}

static void delete_row(struct node *n, struct entry *e, enum store_op_kind kind)
{
	if (n->abandon) {
		entry_event(n, e, ACTIVATION_EV_DONE);
	} else if (!lease_is_live(n)) { // O3: nothing is written under a dead lease
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
		entry_event(n, e, ACTIVATION_EV_FAILED);
	} else {
		fill_row(n, e);
		ask_store(n, e, kind, node_draw_id(n));
	}
}

static void do_abort(struct node *n, struct entry *e)
{
	delete_row(n, e, STORE_SPOT_ABORT);
}

static void do_clean(struct node *n, struct entry *e)
{
	bool creating = e->orphan.state == STORE_SPOT_CREATING;
	e->op.row = e->orphan; // the fences as they were read
	if (creating)
		peers_put_watched(n, &e->orphan, &e->op);
	ask_store(n, e, creating ? STORE_SPOT_CLEAN : STORE_SPOT_RELEASE, node_draw_id(n));
}

static void do_release(struct node *n, struct entry *e)
{
	delete_row(n, e, STORE_SPOT_RELEASE);
}

static void unreserve(struct node *n, const struct dp_type *type, enum spot_kind kind)
{
	if (kind != SPOT_KIND_ENTRY)
		n->spots_counted--;
	node_type_count(n, type)->spots--;
}

static void do_retire(struct node *n, struct entry *e)
{
	struct object_generation generation = e->generation;
	if (!e->published) {
		free_later(e);
		return;
	}
	n->spots_live[e->kind]--;
	n->closes_total++;
	unreserve(n, e->type, e->kind);
	node_emit(n, NODE_EVENT_CLOSED, e->key, span_of(e->id, e->id_bytes), result_ok(),
		e->close_reason);
	(void)route_retire(n->routes, e->key);
	actor_host_closed(n, e->spot);
	free_later(e);
	struct waiter *all = e->waiters, *next;
	e->waiters = NULL;
	e->waiters_end = &e->waiters;
	for (struct waiter *w = all; w != NULL; w = next) {
		next = w->next;
		if (waiter_is(w, WIRE_CONTROL_CLOSE))
			waiter_end_ok(n, w, generation, true);
		else
			entry_add_waiter(e, w);
	}
}

static void do_later(struct node *n, struct entry *e)
{
	uint64_t wait_ms = e->state == ACTIVATION_AWAITING ? e->await_ms : RETRY_MS;
	entry_retry_at(n, e, n->now_ns + wait_ms * NS_PER_MS);
}

static bool is_creation(const struct entry *e)
{
	return e->reserved || e->kind == SPOT_KIND_ENTRY;
}

static void do_fail(struct node *n, struct entry *e)
{
	bool creation = is_creation(e) && e->type != NULL && !e->published;
	if (creation && e->waiters != NULL) {
		n->activation_failures++;
		node_emit(n, NODE_EVENT_ACTIVATION_FAILED, e->key, span_of(e->id, e->id_bytes),
			e->failure, e->generation.value);
	}
	if (creation && e->kind == SPOT_KIND_ENTRY)
		node_entry_spot_failed(n, e->key, e->failure);
	end_all(n, e);
}

static void do_stuck(struct node *n, struct entry *e)
{
	node_say(n, "closing of %.*s outlasts %u ms: it stays owned and unroutable",
		(int)e->id_bytes, (const char *)e->id, n->config.closing_limit_ms);
	node_emit(n, NODE_EVENT_CLOSE_STUCK, e->key, span_of(e->id, e->id_bytes),
		result_refused(RESULT_UNAVAILABLE, REASON_CLOSING), e->generation.value);
}

static void do_destroy(struct node *n, struct entry *e)
{
	(void)n;
	if (e->spot != NULL)
		free_later(e);
}

void entry_clear_creation(struct node *n, struct entry *e)
{
	if (e->running)
		n->running--;
	if (e->reserved)
		unreserve(n, e->type, e->kind);
	e->running = e->reserved = false;
	mem_free(e->argument);
	e->argument = NULL;
	e->argument_bytes = 0;
}

static void do_queue(struct node *n, struct entry *e)
{
	entry_list_push(&n->queued, e);
}

static void do_nothing(struct node *n, struct entry *e)
{
	(void)n;
	(void)e;
}

typedef void (*effect_fn)(struct node *n, struct entry *e);
static const effect_fn effects[ACTIVATION_EFFECT_COUNT] = {
	[ACTIVATION_BIT_FAIL] = do_fail,
	[ACTIVATION_BIT_STUCK] = do_stuck,
	[ACTIVATION_BIT_UNSTUCK] = do_nothing, // the count is the number of entries in that state
	[ACTIVATION_BIT_DESTROY] = do_destroy,
	[ACTIVATION_BIT_READ] = do_read,
	[ACTIVATION_BIT_QUEUE] = do_queue,
	[ACTIVATION_BIT_DRAW] = do_draw,
	[ACTIVATION_BIT_CLAIM] = do_claim,
	[ACTIVATION_BIT_BUILD] = do_build,
	[ACTIVATION_BIT_COMMIT] = do_commit,
	[ACTIVATION_BIT_PUBLISH] = do_publish,
	[ACTIVATION_BIT_DISPOSE] = do_dispose,
	[ACTIVATION_BIT_ABORT] = do_abort,
	[ACTIVATION_BIT_CLEAN] = do_clean,
	[ACTIVATION_BIT_RELEASE] = do_release,
	[ACTIVATION_BIT_RETIRE] = do_retire,
	[ACTIVATION_BIT_LATER] = do_later,
	[ACTIVATION_BIT_SERVE] = entry_serve,
};

void entry_effect(struct node *n, struct entry *e, enum activation_effect_bit effect)
{
	effects[effect](n, e);
}
