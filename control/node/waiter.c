// SPDX-License-Identifier: BSD-3-Clause
#include "node/internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "wire/layout.h"

enum { CONTROL_BODY_BYTES = 9 }; // object generation (8, little-endian), changed (1)

struct waiter *waiter_create(struct node *n, enum waiter_kind kind, struct spot_key key)
{
	struct waiter *w = mem_zalloc(sizeof(*w));
	if (w == NULL)
		return NULL;
	w->node = n;
	w->kind = kind;
	w->key = key;
	return w;
}

void waiter_free(struct waiter *w)
{
	if (w->kind == WAITER_OPERATION)
		mem_free(w->as.operation.argument);
	mem_free(w);
}

bool waiter_is(const struct waiter *w, uint16_t operation)
{
	return w->kind == WAITER_OPERATION && w->as.operation.what == operation;
}

bool waiter_wants_creation(const struct waiter *w)
{
	if (w->kind == WAITER_MESSAGES)
		return w->as.messages.intent;
	return w->as.operation.what == WIRE_CONTROL_CREATE ||
	       w->as.operation.what == WIRE_CONTROL_GET_OR_CREATE;
}

static void operation_unlink(struct node *n, struct waiter *w)
{
	struct waiter *previous = w->as.operation.previous, *next = w->as.operation.next;
	if (previous != NULL)
		previous->as.operation.next = next;
	else
		n->operations = next;
	if (next != NULL)
		next->as.operation.previous = previous;
	n->operation_count--;
}

static void send_end(struct node *n, struct waiter *w, enum command_kind kind)
{
	bool messages = w->kind == WAITER_MESSAGES;
	w->command.kind = kind;
	w->command.worker = messages ? w->as.messages.worker : w->as.operation.worker;
	dpq_send(n, &w->command);
}

static bool is_capacity(struct result r)
{
	return r.reason >= REASON_PROCESS_INBOUND && r.reason <= REASON_REASSEMBLY;
}

static void operation_end(struct node *n, struct waiter *w)
{
	operation_unlink(n, w);
	if (w->as.operation.origin == ORIGIN_WIRE) {
		send_end(n, w, COMMAND_REPLY);
		return;
	}
	if (w->as.operation.done != NULL)
		w->as.operation.done(w->as.operation.arg, w->result,
			is_capacity(w->result) ? &w->refusal : NULL,
			w->as.operation.answer_generation, w->as.operation.changed, w->key);
	waiter_free(w);
}

void waiter_end(struct node *n, struct waiter *w, struct result result, const struct refusal *refusal)
{
	w->result = result;
	if (refusal != NULL)
		w->refusal = *refusal;
	if (w->kind == WAITER_MESSAGES)
		send_end(n, w, COMMAND_FAIL);
	else
		operation_end(n, w);
}

void waiter_end_ok(
	struct node *n, struct waiter *w, struct object_generation generation, bool changed)
{
	CHECK(w->kind == WAITER_OPERATION);
	w->as.operation.answer_generation = generation;
	w->as.operation.changed = changed;
	waiter_end(n, w, result_ok(), NULL);
}

void waiter_release(struct node *n, struct waiter *w)
{
	CHECK(w->kind == WAITER_MESSAGES);
	send_end(n, w, COMMAND_RELEASE);
}

static enum dp_status send_reply(struct node *n, struct waiter *w)
{
	uint8_t body[CONTROL_BODY_BYTES];
	struct span span = span_of(NULL, 0);
	if (w->result.kind == RESULT_OK) {
		for (int i = 0; i < 8; i++)
			body[i] = (uint8_t)(w->as.operation.answer_generation.value >> (8 * i));
		body[8] = w->as.operation.changed ? 1 : 0;
		span = span_of(body, sizeof(body));
	}
	return dp_control_reply(n->dp, w->as.operation.worker, w->as.operation.token, w->result,
		is_capacity(w->result) ? &w->refusal : NULL, span);
}

enum dp_status waiter_command(struct node *n, struct command *c)
{
	struct waiter *w = container_of(c, struct waiter, command);
	if (c->kind == COMMAND_RELEASE)
		return dp_release(n->dp, c->worker, w->key);
	if (c->kind == COMMAND_REPLY)
		return send_reply(n, w);
	enum dp_fail_scope scope = w->as.messages.intent ? DP_FAIL_INTENT : DP_FAIL_ORDINARY;
	return dp_fail(n->dp, c->worker, w->key, scope, w->result,
		is_capacity(w->result) ? &w->refusal : NULL);
}

void waiter_command_done(struct node *n, struct command *c)
{
	(void)n;
	waiter_free(container_of(c, struct waiter, command));
}

// Takes the waiter out of its entry's list.
static void leave_entry(struct node *n, struct waiter *w)
{
	struct entry *e = entry_find(n, w->key);
	CHECK(e != NULL);
	struct waiter **at = &e->waiters;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (w->next == NULL)
		e->waiters_end = at;
}

// The node is over: what was begun may have been done (its row tells), and nobody will look again.
void waiter_end_operators(struct node *n)
{
	for (struct waiter *w = n->operations, *next; w != NULL; w = next) {
		next = w->as.operation.next;
		if (w->as.operation.origin != ORIGIN_OPERATOR)
			continue; // the worker answers at the deadline
		leave_entry(n, w);
		waiter_end(n, w,
			result_make(RESULT_SHUTTING_DOWN, REASON_NONE, ACCEPTED_UNKNOWN), NULL);
	}
}

// The attempt goes on without them (A5). By wire the worker has answered by then itself.
void waiter_expire(struct node *n)
{
	if (n->now_ns < n->operation_next_ns)
		return;
	n->operation_next_ns = UINT64_MAX;
	for (struct waiter *w = n->operations, *next; w != NULL; w = next) {
		next = w->as.operation.next;
		if (w->as.operation.deadline_boot_ns > n->now_ns) {
			if (w->as.operation.deadline_boot_ns < n->operation_next_ns)
				n->operation_next_ns = w->as.operation.deadline_boot_ns;
			continue;
		}
		leave_entry(n, w);
		waiter_end(n, w,
			result_make(RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_UNKNOWN), NULL);
	}
}
