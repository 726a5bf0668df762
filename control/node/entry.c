// SPDX-License-Identifier: BSD-3-Clause
// Entries: their table and lists, the machine's step, who joins, timers and places.
#include "node/internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "spotlane/module.h"
#include "wire/layout.h"

// ---- lists ----
void entry_list_push(struct entry_list *l, struct entry *e)
{
	e->link = (struct link){l->last, NULL};
	if (l->last != NULL)
		l->last->link.next = e;
	else
		l->first = e;
	l->last = e;
}

void entry_list_remove(struct entry_list *l, struct entry *e)
{
	struct link at = e->link;
	*(at.previous != NULL ? &at.previous->link.next : &l->first) = at.next;
	*(at.next != NULL ? &at.next->link.previous : &l->last) = at.previous;
	e->link = (struct link){NULL, NULL};
}

struct entry *entry_list_pop(struct entry_list *l)
{
	struct entry *e = l->first;
	if (e != NULL)
		entry_list_remove(l, e);
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
				dp_spot_discard(e->spot);
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

// What somebody new is told at once, by where the key stands; OK: waits.
static struct result verdict_on_joining(const struct entry *e, const struct waiter *w)
{
	bool waits_for_attempt = waiter_wants_creation(w) || waiter_is(w, WIRE_CONTROL_CLOSE);
	if (e->state == ACTIVATION_AWAITING && e->ready_elsewhere)
		return result_ok();
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
	entry_clear_creation(n, e);
	struct dp_spot *spot = dp_spot_of_route(route_lookup(n->routes, e->key));
	if (opened) {
		node_emit(n, NODE_EVENT_ACTIVATED, e->key, span_of(e->id, e->id_bytes), result_ok(),
			e->generation.value);
		if (e->kind == SPOT_KIND_ENTRY)
			node_entry_spot_ready(n);
	}
	if (spot != NULL)
		resolve_serve_here(n, e, spot);
	bool close = spot != NULL && (e->waiters != NULL || e->close_wanted);
	e->close_wanted = false;
	if (close)
		entry_event(n, e, ACTIVATION_EV_CLOSE);
	else if (e->waiters == NULL)
		entry_free(n, e);
	else
		entry_event(n, e, ACTIVATION_EV_ASKED);
}

// Only the last effect of a step may lead to another event (or free the entry).
void entry_event(struct node *n, struct entry *e, enum activation_event event)
{
	struct activation_step step = activation_next(e->state, event);
	CHECK(step.next != ACTIVATION_STATE_NONE);
	if (e->state == ACTIVATION_CLOSING)
		entry_list_remove(&n->closings, e);
	n->in_state[e->state]--;
	n->in_state[step.next]++;
	e->state = (enum activation_state)step.next;
	for (uint32_t left = step.effects; left != 0; left &= left - 1)
		entry_effect(n, e, (enum activation_effect_bit)__builtin_ctz(left));
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
	else if (c->kind == COMMAND_CLOSE_IDLE)
		status = dp_close_idle(n->dp, e->spot, e->idle_ns,
			n->now_ns + n->config.closing_limit_ms * NS_PER_MS);
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
		struct entry *e = entry_list_pop(&n->queued);
		if (is_refused_state(n)) {
			entry_fails(e, result_refused(RESULT_SHUTTING_DOWN, REASON_NONE));
			entry_event(n, e, ACTIVATION_EV_REFUSED);
		} else {
			entry_event(n, e, ACTIVATION_EV_TURN);
		}
	}
}

void entry_retry_at(struct node *n, struct entry *e, uint64_t due_ns)
{
	e->due_ns = due_ns;
	if (due_ns < n->retry_next_ns)
		n->retry_next_ns = due_ns;
	entry_list_push(&n->retries, e);
}

static void retry_due(struct node *n)
{
	struct entry_list due = {NULL, NULL};
	if (n->retry_next_ns > n->now_ns)
		return;
	n->retry_next_ns = UINT64_MAX;
	for (struct entry *e = n->retries.first, *next; e != NULL; e = next) {
		next = e->link.next;
		if (e->due_ns > n->now_ns) {
			if (e->due_ns < n->retry_next_ns)
				n->retry_next_ns = e->due_ns;
			continue;
		}
		entry_list_remove(&n->retries, e);
		entry_list_push(&due, e);
	}
	for (struct entry *e; (e = entry_list_pop(&due)) != NULL;)
		entry_event(n, e, ACTIVATION_EV_RETRY);
}

void entry_timers(struct node *n)
{
	retry_due(n);
	while (n->closings.first != NULL && n->closings.first->due_ns <= n->now_ns) {
		entry_fails(n->closings.first, result_refused(RESULT_UNAVAILABLE, REASON_CLOSING));
		entry_event(n, n->closings.first, ACTIVATION_EV_LIMIT);
	}
}

void entry_peers_changed(struct node *n)
{
	for (struct entry *e = n->retries.first; e != NULL; e = e->link.next)
		if (e->state == ACTIVATION_AWAITING && e->waits_for_view)
			e->due_ns = n->retry_next_ns = n->now_ns;
}

// A range came, or could not be had: everybody in DRAWING goes on or fails.
void entry_generations_arrived(struct node *n)
{
	struct entry_list waiting = {NULL, NULL};
	for (struct entry *e = n->retries.first, *next; e != NULL; e = next) {
		next = e->link.next;
		if (e->state != ACTIVATION_DRAWING)
			continue;
		entry_list_remove(&n->retries, e);
		entry_list_push(&waiting, e);
	}
	enum store_outcome outcome = n->draw_op.outcome;
	for (struct entry *e; (e = entry_list_pop(&waiting)) != NULL;) {
		if (n->generation_next < n->generation_end) {
			e->generation.value = n->generation_next++;
			e->authority.value = 1;
			entry_event(n, e, ACTIVATION_EV_DRAWN);
		} else if (outcome == STORE_DONE) { // more waited than the range holds: the next one
			entry_list_push(&n->retries, e);
		} else if (outcome == STORE_EXHAUSTED) {
			entry_fails(e, result_refused(
					       RESULT_INTERNAL_FAILURE, REASON_GENERATION_EXHAUSTED));
			entry_event(n, e, ACTIVATION_EV_REFUSED);
		} else {
			entry_store_failed(n, e, outcome);
			entry_event(n, e, ACTIVATION_EV_FAILED);
		}
	}
}

// NULL: something is under way for its key, or memory is short; a later look finds what is left.
static struct entry *entry_of_spot(struct node *n, struct dp_spot *spot, uint8_t reason)
{
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	bool taken = entry_find(n, view.key) != NULL || actor_host_is_busy(spot);
	struct entry *e = taken ? NULL : entry_create(n, view.key);
	if (e == NULL)
		return NULL;
	e->close_reason = reason;
	e->spot = spot;
	e->published = true;
	e->type = view.type;
	e->kind = view.kind;
	e->generation = view.object_generation;
	e->authority = view.authority_generation;
	e->id_bytes = (uint8_t)view.id.size;
	memcpy(e->id, view.id.data, view.id.size);
	return e;
}

void entry_close_begin(struct node *n, struct dp_spot *spot, uint8_t reason)
{
	struct entry *e = entry_of_spot(n, spot, reason);
	if (e != NULL)
		entry_event(n, e, ACTIVATION_EV_CLOSE);
}

void entry_close_idle(struct node *n, struct dp_spot *spot, uint64_t idle_ns)
{
	struct entry *e = entry_of_spot(n, spot, SPOTLANE_CLOSE_IDLE_EVICTED);
	if (e == NULL)
		return;
	e->idle_ns = idle_ns;
	entry_event(n, e, ACTIVATION_EV_CLOSE);
}
