// SPDX-License-Identifier: BSD-3-Clause
// What the data plane reports, and the operations of operators: both become waiters of an entry.
#include "node/internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "spotlane/module.h"
#include "wire/layout.h"

// The entry of a key that is about to get a waiter; NULL: *out_why says what refused it.
static struct entry *entry_for(struct node *n, struct spot_key key, struct result *out_why)
{
	struct entry *e = entry_find(n, key);
	if (e != NULL)
		return e;
	uint64_t resolving = n->in_state[ACTIVATION_READING] + n->in_state[ACTIVATION_CLEANING] +
			     n->in_state[ACTIVATION_AWAITING];
	if (resolving >= n->config.resolves_max) {
		*out_why = result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PENDING_RESOLVES);
		return NULL;
	}
	e = entry_create(n, key);
	if (e == NULL)
		*out_why = result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY);
	return e;
}

static void join(struct node *n, struct waiter *w)
{
	struct result why = result_ok();
	struct entry *e = entry_for(n, w->key, &why);
	if (e != NULL) {
		entry_join(n, e, w);
		return;
	}
	struct refusal refusal = {.limit = n->config.resolves_max,
		.current = n->in_state[ACTIVATION_READING] + n->in_state[ACTIVATION_CLEANING] +
			   n->in_state[ACTIVATION_AWAITING],
		.owner_node = node_own_key(n).value};
	waiter_end(n, w, why, &refusal);
}

// ---- messages ----
static void take_resolve(struct node *n, const struct dp_fact *fact)
{
	if (actor_takes_resolve(n, fact))
		return;
	struct waiter *w = waiter_create(n, WAITER_MESSAGES, fact->key);
	if (w == NULL) { // they wait on; their own deadlines end them
		node_say(n, "out of memory: a resolve was dropped");
		return;
	}
	w->as.messages.worker = fact->worker;
	w->as.messages.intent = fact->as.resolve.intent;
	w->spot_type = fact->as.resolve.spot_type;
	w->id_bytes = fact->as.resolve.id_bytes;
	memcpy(w->id, fact->as.resolve.id, w->id_bytes);
	struct result verdict = result_ok();
	if (w->as.messages.intent)
		verdict = resolve_check_wish(
			n, span_of(w->id, w->id_bytes), w->spot_type, SPOT_KIND_INSTANCE);
	if (verdict.kind != RESULT_OK)
		waiter_end(n, w, verdict, NULL);
	else
		join(n, w);
}

// ---- create, get-or-create, close, lookup ----
static struct waiter *operation_create(
	struct node *n, uint16_t what, struct spot_key key, struct span id, struct span argument)
{
	struct waiter *w = waiter_create(n, WAITER_OPERATION, key);
	if (w == NULL)
		return NULL;
	w->id_bytes = (uint8_t)id.size;
	memcpy(w->id, id.data, id.size);
	w->as.operation.what = what;
	if (argument.size == 0)
		return w;
	w->as.operation.argument = mem_zalloc(argument.size);
	if (w->as.operation.argument == NULL) {
		waiter_free(w);
		return NULL;
	}
	memcpy(w->as.operation.argument, argument.data, argument.size);
	w->as.operation.argument_bytes = (uint16_t)argument.size;
	return w;
}

static void operation_begin(struct node *n, struct waiter *w)
{
	n->now_ns = clock_boot_ns(n->clock);
	w->as.operation.next = n->operations;
	if (n->operations != NULL)
		n->operations->as.operation.previous = w;
	n->operations = w;
	n->operation_count++;
	if (w->as.operation.deadline_boot_ns < n->operation_next_ns)
		n->operation_next_ns = w->as.operation.deadline_boot_ns;
	bool creates = waiter_wants_creation(w);
	struct result verdict = result_ok();
	if (n->state == NODE_PREPARING)
		verdict = result_refused(RESULT_UNAVAILABLE, REASON_NONE);
	else if (n->state != NODE_SERVING && creates)
		verdict = result_refused(RESULT_SHUTTING_DOWN, REASON_NONE);
	else if (creates)
		verdict = resolve_check_wish(
			n, span_of(w->id, w->id_bytes), w->spot_type, SPOT_KIND_USER);
	if (verdict.kind != RESULT_OK) {
		waiter_end(n, w, verdict, NULL);
	} else if (n->operation_count > OPERATIONS_MAX) {
		struct refusal full = {.limit = OPERATIONS_MAX,
			.current = n->operation_count - 1,
			.owner_node = node_own_key(n).value};
		waiter_end(n, w,
			result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PENDING_RESOLVES), &full);
	} else {
		join(n, w);
	}
}

static void take_control(struct node *n, const struct dp_fact *fact)
{
	if (actor_takes_control(n, fact))
		return;
	struct waiter *w = operation_create(n, fact->as.control.operation, fact->key,
		span_of(fact->as.control.id, fact->as.control.id_bytes),
		span_of(fact->as.control.argument, fact->as.control.argument_bytes));
	if (w == NULL) { // the worker answers at the deadline
		node_say(n, "out of memory: a control request was dropped");
		return;
	}
	w->spot_type = fact->as.control.spot_type;
	w->as.operation.origin = ORIGIN_WIRE;
	w->as.operation.worker = fact->worker;
	w->as.operation.token = fact->as.control.token;
	w->as.operation.generation = fact->as.control.object_generation;
	w->as.operation.deadline_boot_ns = fact->as.control.deadline_boot_ns;
	operation_begin(n, w);
}

static void operator_asks(struct node *n, struct waiter *w, node_done done, void *arg)
{
	w->as.operation.origin = ORIGIN_OPERATOR;
	w->as.operation.done = done;
	w->as.operation.arg = arg;
	operation_begin(n, w);
}

static const struct object_generation none = {0};

void node_create_spot(struct node *n, struct span id, struct type_key type, struct span argument,
	bool existing_ok, uint64_t deadline_boot_ns, node_done done, void *arg)
{
	struct spot_key key = spot_key_of(id);
	if (!id_is_valid(id) || argument.size > UINT16_MAX) {
		bool big = argument.size > UINT16_MAX;
		done(arg,
			result_refused(RESULT_INVALID_OPERATION, big ? REASON_TOO_LARGE : REASON_ID_MISSING),
			NULL, none, false, key);
		return;
	}
	struct waiter *w = operation_create(n,
		existing_ok ? WIRE_CONTROL_GET_OR_CREATE : WIRE_CONTROL_CREATE, key, id, argument);
	if (w == NULL) {
		done(arg, result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY), NULL, none,
			false, key);
		return;
	}
	w->spot_type = type;
	w->as.operation.deadline_boot_ns = deadline_boot_ns;
	operator_asks(n, w, done, arg);
}

void node_close_spot(struct node *n, struct span id, struct object_generation generation,
	uint64_t deadline_boot_ns, node_done done, void *arg)
{
	struct spot_key key = spot_key_of(id);
	struct waiter *w = !id_is_valid(id) ? NULL
					    : operation_create(n, WIRE_CONTROL_CLOSE, key, id,
						      span_of(NULL, 0));
	if (w == NULL) {
		done(arg,
			id_is_valid(id)
				? result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY)
				: result_refused(RESULT_INVALID_OPERATION, REASON_ID_MISSING),
			NULL, none, false, key);
		return;
	}
	w->as.operation.generation = generation;
	w->as.operation.deadline_boot_ns = deadline_boot_ns;
	operator_asks(n, w, done, arg);
}

// ---- where ----
struct where {
	struct node *node;
	struct store_op op;
	node_where_done done;
	void *arg;
};

static void where_cached(struct node *n, struct spot_key key, struct node_where *found)
{
	route_word word = route_lookup(n->routes, key);
	struct dp_remote *remote = dp_remote_of_route(word);
	found->local = node_find(n, key);
	found->route_exists = word != ROUTE_NONE;
	found->remote_exists = remote != NULL;
	if (remote == NULL)
		return;
	uint64_t now = clock_boot_ns(n->clock);
	found->remote_usable = dp_remote_usable(remote, now);
	found->remote_owner = remote->owner->node;
	found->remote_lease = remote->owner->lease;
	found->remote_object_generation = remote->object_generation;
	found->remote_authority_generation = remote->authority_generation;
	found->remote_left_ns = (int64_t)(remote->expires_boot_ns - now);
}

static void where_read(struct store_op *op)
{
	struct where *at = container_of(op, struct where, op);
	struct node *n = at->node;
	struct node_where found = {.store_outcome = op->outcome,
		.store_exists = op->outcome == STORE_DONE && op->row.exists,
		.row = op->row};
	if (!n->halted) {
		where_cached(n, op->row.key, &found);
		if (op->outcome == STORE_DAMAGED)
			node_damaged(n);
	}
	at->done(at->arg, &found);
	mem_free(at);
}

void node_where(struct node *n, struct spot_key key, node_where_done done, void *arg)
{
	struct where *at = mem_zalloc(sizeof(*at));
	if (at == NULL) {
		struct node_where none_found = {.store_outcome = STORE_UNREACHABLE};
		where_cached(n, key, &none_found);
		done(arg, &none_found);
		return;
	}
	*at = (struct where){.node = n, .done = done, .arg = arg};
	at->op.kind = STORE_SPOT_READ;
	at->op.row.key = key;
	at->op.done = where_read;
	node_submit(n, &at->op);
}

// ---- facts ----
// The entry that a fact about this very object belongs to; NULL: the object's story is over.
static struct entry *entry_of(struct node *n, struct spot_key key, const struct dp_spot *spot)
{
	struct entry *e = entry_find(n, key);
	return e != NULL && e->spot == spot ? e : NULL;
}

static void take_constructed(struct node *n, const struct dp_fact *fact)
{
	struct entry *e = entry_of(n, fact->key, fact->as.constructed.spot);
	CHECK(e != NULL && e->state == ACTIVATION_BUILDING);
	if (fact->as.constructed.result.kind != RESULT_OK) {
		entry_fails(e, fact->as.constructed.result);
		entry_event(n, e, ACTIVATION_EV_UNBUILT);
	} else if (!lease_is_live(n)) { // O3: no confirmed activation
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
		entry_event(n, e, ACTIVATION_EV_LAPSED);
	} else {
		entry_event(n, e, ACTIVATION_EV_BUILT);
	}
}

static void take_closed(struct node *n, const struct dp_fact *fact)
{
	struct entry *e = entry_of(n, fact->key, fact->as.closed.spot);
	CHECK(e != NULL);
	if (fact->as.closed.callback_failed) // C4: recorded, and the clean-up goes on
		node_say(n, "closing callback of %.*s failed", (int)e->id_bytes, (const char *)e->id);
	entry_event(n, e, ACTIVATION_EV_CLOSED);
}

// Work came first: whoever waits looks again; a close that was merged goes on as one of its own.
static void take_kept(struct node *n, const struct dp_fact *fact)
{
	struct entry *e = entry_of(n, fact->key, fact->as.kept.spot);
	CHECK(e != NULL && e->idle_ns != 0);
	e->idle_ns = 0;
	e->spot = NULL; // the entry only waited beside it
	e->published = false;
	n->sweep.kept++;
	entry_event(n, e, ACTIVATION_EV_KEPT);
}

static void take_close_self(struct node *n, const struct dp_fact *fact)
{
	struct dp_spot *spot = node_find(n, fact->key);
	struct entry *e = entry_find(n, fact->key);
	if (spot == NULL || spot != fact->as.close_self.spot)
		return;
	if (e != NULL)
		e->close_wanted = true;
	else
		entry_close_begin(n, spot, SPOTLANE_CLOSE_EXPLICIT);
}

static void take_overrun(struct node *n, const struct dp_fact *fact)
{
	struct span id = span_of(NULL, 0);
	struct dp_spot_view view;
	if (node_find(n, fact->key) == fact->as.overrun.spot) {
		dp_spot_view(fact->as.overrun.spot, &view);
		id = view.id;
	}
	node_emit(n, NODE_EVENT_OVERRUN, fact->key, id, result_ok(), fact->as.overrun.took_ns);
}

static void take(struct node *n, const struct dp_fact *fact)
{
	struct entry *e;
	switch (fact->kind) {
	case DP_FACT_RESOLVE:
		take_resolve(n, fact);
		return;
	case DP_FACT_CONSTRUCTED:
		take_constructed(n, fact);
		return;
	case DP_FACT_OPENED:
		e = entry_of(n, fact->key, fact->as.opened.spot);
		CHECK(e != NULL);
		entry_event(n, e, ACTIVATION_EV_OPENED);
		return;
	case DP_FACT_CLOSED:
		take_closed(n, fact);
		return;
	case DP_FACT_CONTROL:
		take_control(n, fact);
		return;
	case DP_FACT_CLOSE_SELF:
		take_close_self(n, fact);
		return;
	case DP_FACT_ACTOR:
		actor_fact(n, fact);
		return;
	case DP_FACT_OVERRUN:
		take_overrun(n, fact);
		return;
	case DP_FACT_KEPT:
		take_kept(n, fact);
		return;
	}
	CHECK(!"fact kind");
}

void facts_take(struct node *n)
{
	struct dp_fact facts[FACTS_PER_TAKE];
	for (int i = 0; i < TAKES_PER_STEP && !dpq_is_crowded(n); i++) {
		uint32_t count = dp_facts(n->dp, facts, FACTS_PER_TAKE);
		for (uint32_t k = 0; k < count; k++)
			take(n, &facts[k]);
		if (count < FACTS_PER_TAKE)
			return;
	}
}
