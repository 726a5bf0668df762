// SPDX-License-Identifier: BSD-3-Clause
// Carries out the effects of the activation machine and turns what comes back into its events.
#include "node/internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "spotlane/module.h"
#include "wire/layout.h"

// ---- lists ----
static void list_push(struct entry_list *l, struct entry *e)
{
	e->link = (struct link){l->last, NULL};
	if (l->last != NULL)
		l->last->link.next = e;
	else
		l->first = e;
	l->last = e;
}

static void list_remove(struct entry_list *l, struct entry *e)
{
	struct link at = e->link;
	*(at.previous != NULL ? &at.previous->link.next : &l->first) = at.next;
	*(at.next != NULL ? &at.next->link.previous : &l->last) = at.previous;
	e->link = (struct link){NULL, NULL};
}

static struct entry *list_pop(struct entry_list *l)
{
	struct entry *e = l->first;
	if (e != NULL)
		list_remove(l, e);
	return e;
}

// ---- the table of entries ----
static struct entry **bucket(struct node *n, struct spot_key key)
{
	uint64_t mixed = (key.lo ^ n->hash_seed) * UINT64_C(0x9e3779b97f4a7c15);
	return &n->buckets[mixed >> 51 & (ENTRY_BUCKETS - 1)];
}

struct entry *entry_find(struct node *n, struct spot_key key)
{
	struct entry *e = *bucket(n, key);
	while (e != NULL && !spot_key_equal(e->key, key))
		e = e->hash_next;
	return e;
}

struct entry *entry_create(struct node *n, struct spot_key key)
{
	struct entry *e = mem_zalloc(sizeof(*e));
	if (e == NULL)
		return NULL;
	struct entry **head = bucket(n, key);
	e->hash_next = *head;
	*head = e;
	e->node = n;
	e->key = key;
	e->state = ACTIVATION_IDLE;
	e->waiters_end = &e->waiters;
	n->entries++;
	n->in_state[ACTIVATION_IDLE]++;
	return e;
}

static void entry_free(struct node *n, struct entry *e)
{
	struct entry **at = bucket(n, e->key);
	while (*at != e)
		at = &(*at)->hash_next;
	*at = e->hash_next;
	n->in_state[e->state]--;
	n->entries--;
	mem_free(e->argument);
	mem_free(e);
}

void entry_free_all(struct node *n)
{
	for (uint32_t b = 0; b < ENTRY_BUCKETS; b++)
		while (n->buckets[b] != NULL) {
			struct entry *e = n->buckets[b];
			while (e->waiters != NULL) {
				struct waiter *w = e->waiters;
				e->waiters = w->next;
				waiter_free(w);
			}
			if (e->spot != NULL && !e->published)
				dp_spot_destroy(e->spot);
			entry_free(n, e);
		}
}

void entry_fails(struct entry *e, struct result result)
{
	e->failure = result;
	e->has_refusal = false;
}

void entry_refused(struct node *n, struct entry *e, struct result result, uint64_t limit, uint64_t now)
{
	e->failure = result;
	e->refusal =
		(struct refusal){.limit = limit, .current = now, .owner_node = node_own_key(n).value};
	e->has_refusal = true;
}

void entry_add_waiter(struct entry *e, struct waiter *w)
{
	w->next = NULL;
	*e->waiters_end = w;
	e->waiters_end = &w->next;
}

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
static void store_failed(struct node *n, struct entry *e, enum store_outcome outcome)
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
		store_failed(n, e, e->op.outcome);
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
		store_failed(n, e, e->op.outcome);
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
		store_failed(n, e, outcome);
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
static void clear_creation(struct node *n, struct entry *e);

static void do_read(struct node *n, struct entry *e)
{
	if (e->state == ACTIVATION_READING) { // a lost race starts over from the row as it is
		clear_creation(n, e);
		for (struct waiter *w = e->waiters; w != NULL; w = w->next)
			w->creator = false;
	}
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
		list_push(&n->retries, e);
		e->due_ns = UINT64_MAX;
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
	struct publish_deferred deferred;
	struct dp_spot *spot;
};
_Static_assert(sizeof(struct spot_area) <= DP_SPOT_CONTROL_BYTES, "fits control's corner");

static void free_retired(struct publish_deferred *deferred)
{
	dp_spot_destroy(container_of(deferred, struct spot_area, deferred)->spot);
}

// After a grace period also where it was never published: the worker that reported the end of its last
// callback is still in that loop turn.
static void free_later(struct entry *e)
{
	struct spot_area *area = dp_spot_control_area(e->spot);
	publish_defer(&area->deferred, free_retired);
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
	command_send(n, e, COMMAND_OPEN, e->origin);
}

static void do_dispose(struct node *n, struct entry *e)
{
	if (e->state == ACTIVATION_CLOSING) {
		e->due_ns = n->now_ns + n->config.closing_limit_ms * NS_PER_MS;
		list_push(&n->closings, e);
	}
	command_send(n, e, COMMAND_CLOSE, dp_home_for(n->dp, e->key));
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
	ask_store(n, e, creating ? STORE_SPOT_ABORT : STORE_SPOT_RELEASE, node_draw_id(n));
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
	uint32_t wait_ms = e->state == ACTIVATION_AWAITING ? AWAIT_MS : RETRY_MS;
	e->due_ns = n->now_ns + wait_ms * NS_PER_MS;
	list_push(&n->retries, e);
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

static void clear_creation(struct node *n, struct entry *e)
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

// What somebody new is told at once, by where the key stands; OK: waits.
static struct result verdict_on_joining(const struct entry *e, const struct waiter *w)
{
	bool waits_for_attempt = waiter_wants_creation(w) || waiter_is(w, WIRE_CONTROL_CLOSE);
	switch (e->state) {
	case ACTIVATION_AWAITING:
	case ACTIVATION_QUEUED:
	case ACTIVATION_DRAWING:
	case ACTIVATION_CLAIMING:
	case ACTIVATION_CLAIM_LOST:
	case ACTIVATION_BUILDING:
	case ACTIVATION_COMMITTING:
	case ACTIVATION_COMMIT_LOST:
	case ACTIVATION_UNBUILDING:
	case ACTIVATION_ABORTING:
	case ACTIVATION_WITHDRAWING:
		return waits_for_attempt ? result_ok()
					 : result_refused(RESULT_NOT_FOUND, REASON_NONE); // A2
	case ACTIVATION_STUCK:
		return result_refused(RESULT_UNAVAILABLE, REASON_CLOSING);
	case ACTIVATION_IDLE:
	case ACTIVATION_READING:
	case ACTIVATION_CLEANING:
	case ACTIVATION_OPENING:
	case ACTIVATION_CLOSING:
	case ACTIVATION_RELEASING:
	case ACTIVATION_STATE_NONE:
	case ACTIVATION_STATE_END:
		break;
	}
	return result_ok();
}

void entry_join(struct node *n, struct entry *e, struct waiter *w)
{
	struct result verdict = verdict_on_joining(e, w);
	bool wrong_incarnation = waiter_is(w, WIRE_CONTROL_CLOSE) && e->spot != NULL &&
				 w->as.operation.generation.value != 0 &&
				 w->as.operation.generation.value != e->generation.value;
	if (verdict.kind == RESULT_OK && wrong_incarnation) // C7
		verdict = result_refused(RESULT_INVALID_OPERATION, REASON_GENERATION_MISMATCH);
	if (verdict.kind != RESULT_OK) {
		waiter_end(n, w, verdict, NULL);
		return;
	}
	entry_add_waiter(e, w);
	if (e->state == ACTIVATION_IDLE)
		entry_serve(n, e);
}

void entry_serve(struct node *n, struct entry *e)
{
	bool opened = e->published;
	clear_creation(n, e);
	struct dp_spot *spot = dp_spot_of_route(route_lookup(n->routes, e->key));
	if (opened) {
		node_emit(n, NODE_EVENT_ACTIVATED, e->key, span_of(e->id, e->id_bytes), result_ok(),
			e->generation.value);
		if (e->kind == SPOT_KIND_ENTRY)
			node_entry_spot_ready(n);
	}
	if (spot != NULL)
		resolve_serve_here(n, e, spot);
	if (e->waiters == NULL)
		entry_free(n, e);
	else if (spot != NULL)
		entry_event(n, e, ACTIVATION_EV_CLOSE);
	else
		entry_event(n, e, ACTIVATION_EV_ASKED);
}

static void do_queue(struct node *n, struct entry *e)
{
	list_push(&n->queued, e);
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

// Only the last effect of a step may lead to another event (or free the entry).
void entry_event(struct node *n, struct entry *e, enum activation_event event)
{
	struct activation_step step = activation_next(e->state, event);
	CHECK(step.next != ACTIVATION_STATE_NONE);
	if (e->state == ACTIVATION_CLOSING)
		list_remove(&n->closings, e);
	n->in_state[e->state]--;
	n->in_state[step.next]++;
	e->state = (enum activation_state)step.next;
	for (uint32_t left = step.effects; left != 0; left &= left - 1)
		effects[__builtin_ctz(left)](n, e);
}

// ---- commands, timers, places ----
enum dp_status entry_command(struct node *n, struct command *c)
{
	struct entry *e = container_of(c, struct entry, command);
	enum dp_status status;
	if (c->kind == COMMAND_CONSTRUCT)
		status = dp_construct(n->dp, e->spot, span_of(e->argument, e->argument_bytes));
	else if (c->kind == COMMAND_OPEN)
		status = dp_open(n->dp, e->spot, e->origin);
	else
		status = dp_close(n->dp, e->spot, e->close_reason,
			n->now_ns + n->config.closing_limit_ms * NS_PER_MS);
	return status;
}

static bool is_refused_state(const struct node *n)
{
	return n->state != NODE_SERVING && n->state != NODE_PREPARING;
}

void entry_start_queued(struct node *n)
{
	while (n->queued.first != NULL &&
		(n->running < n->config.activations_max || is_refused_state(n))) {
		struct entry *e = list_pop(&n->queued);
		if (is_refused_state(n)) {
			entry_fails(e, result_refused(RESULT_SHUTTING_DOWN, REASON_NONE));
			entry_event(n, e, ACTIVATION_EV_REFUSED);
		} else {
			entry_event(n, e, ACTIVATION_EV_TURN);
		}
	}
}

void entry_timers(struct node *n)
{
	// Fixed waits per list, so heads are due first; entries that wait for a range are never due.
	for (struct entry *e = n->retries.first, *next; e != NULL; e = next) {
		next = e->link.next;
		if (e->due_ns == UINT64_MAX)
			continue;
		if (e->due_ns > n->now_ns)
			break;
		list_remove(&n->retries, e);
		entry_event(n, e, ACTIVATION_EV_RETRY);
		next = n->retries.first; // effects may have moved others
	}
	while (n->closings.first != NULL && n->closings.first->due_ns <= n->now_ns) {
		entry_fails(n->closings.first, result_refused(RESULT_UNAVAILABLE, REASON_CLOSING));
		entry_event(n, n->closings.first, ACTIVATION_EV_LIMIT);
	}
}

// A range came, or could not be had: everybody in DRAWING goes on or fails.
void entry_generations_arrived(struct node *n)
{
	struct entry_list waiting = {NULL, NULL};
	for (struct entry *e = n->retries.first, *next; e != NULL; e = next) {
		next = e->link.next;
		if (e->state != ACTIVATION_DRAWING)
			continue;
		list_remove(&n->retries, e);
		list_push(&waiting, e);
	}
	enum store_outcome outcome = n->draw_op.outcome;
	for (struct entry *e; (e = list_pop(&waiting)) != NULL;) {
		if (n->generation_next < n->generation_end) {
			e->generation.value = n->generation_next++;
			e->authority.value = 1;
			entry_event(n, e, ACTIVATION_EV_DRAWN);
		} else if (outcome == STORE_DONE) { // more waited than the range holds: the next one
			list_push(&n->retries, e);
		} else if (outcome == STORE_EXHAUSTED) {
			entry_fails(e, result_refused(
					       RESULT_INTERNAL_FAILURE, REASON_GENERATION_EXHAUSTED));
			entry_event(n, e, ACTIVATION_EV_REFUSED);
		} else {
			store_failed(n, e, outcome);
			entry_event(n, e, ACTIVATION_EV_FAILED);
		}
	}
}

void entry_close_begin(struct node *n, struct dp_spot *spot, uint8_t reason)
{
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	struct entry *e = entry_find(n, view.key);
	if (e != NULL)
		return; // on its way already; a later look finds what is left
	e = entry_create(n, view.key);
	if (e == NULL)
		return; // memory is short: the next look tries again
	e->close_reason = reason;
	e->spot = spot;
	e->published = true;
	e->type = view.type;
	e->kind = view.kind;
	e->generation = view.object_generation;
	e->authority = view.authority_generation;
	e->id_bytes = (uint8_t)view.id.size;
	memcpy(e->id, view.id.data, view.id.size);
	entry_event(n, e, ACTIVATION_EV_CLOSE);
}
