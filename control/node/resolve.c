// SPDX-License-Identifier: BSD-3-Clause
// What a key's stored row, or its object here, means for each of those who wait. The resolver's answer
// (lib/spot/activation) goes to exactly one of: the creation coordinator, the waiter on an attempt,
// route admission, the terminal completion adapter; none of them looks at the row again.
#include "node/internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "spotlane/module.h"
#include "wire/layout.h"

struct result resolve_check_wish(
	const struct node *n, struct span id, struct type_key type, enum spot_kind wanted)
{
	const struct dp_type *known = dp_type_by_key(n->dp, type);
	if (!id_is_valid(id))
		return result_refused(RESULT_INVALID_OPERATION, REASON_ID_MISSING);
	if (id_has_entry_shape(id)) // T7
		return result_refused(RESULT_INVALID_OPERATION, REASON_ENTRY_ID_SHAPE);
	if (known == NULL)
		return result_refused(RESULT_NOT_CONFIGURED, REASON_UNKNOWN_TYPE);
	if (dp_type_kind(known) != wanted)
		return result_refused(RESULT_INVALID_OPERATION, REASON_NONE);
	return result_ok();
}

// Takes all waiters off; those that keep() says no to were ended by it.
typedef bool (*keep_fn)(struct node *n, struct entry *e, struct waiter *w);
static void sift(struct node *n, struct entry *e, keep_fn keep)
{
	struct waiter *all = e->waiters, *next;
	e->waiters = NULL;
	e->waiters_end = &e->waiters;
	for (struct waiter *w = all; w != NULL; w = next) {
		next = w->next;
		if (keep(n, e, w))
			entry_add_waiter(e, w);
	}
}

static const struct object_generation no_generation = {0};

// ---- creation coordinator ----
static bool keep_wishes(struct node *n, struct entry *e, struct waiter *w)
{
	(void)e;
	if (waiter_wants_creation(w))
		return true;
	if (waiter_is(w, WIRE_CONTROL_CLOSE)) // C7: a gone incarnation: nothing changed
		waiter_end_ok(n, w, no_generation, false);
	else
		waiter_end(n, w, result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL);
	return false;
}

static bool take_wish(struct node *n, struct entry *e, struct waiter *w)
{
	e->type = dp_type_by_key(n->dp, w->spot_type);
	CHECK(e->type != NULL); // checked when it came in
	e->kind = dp_type_kind(e->type);
	e->id_bytes = w->id_bytes;
	memcpy(e->id, w->id, w->id_bytes);
	e->origin = dp_home_for(n->dp, e->key);
	e->close_reason = SPOTLANE_CLOSE_EXPLICIT;
	w->creator = true;
	if (w->kind == WAITER_MESSAGES) {
		e->origin = w->as.messages.worker;
		return true;
	}
	if (w->as.operation.argument_bytes == 0)
		return true;
	e->argument = mem_zalloc(w->as.operation.argument_bytes);
	if (e->argument == NULL)
		return false;
	memcpy(e->argument, w->as.operation.argument, w->as.operation.argument_bytes);
	e->argument_bytes = w->as.operation.argument_bytes;
	return true;
}

// N1, N2, A10: one counter for what is active and what is reserved.
static bool reserve(struct node *n, struct entry *e)
{
	struct type_count *count = node_type_count(n, e->type);
	uint64_t type_max = dp_type_spots_max(e->type), node_max = n->config.spots_max;
	struct result full =
		result_refused(RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING);
	if (node_max != 0 && n->spots_counted >= node_max) {
		entry_refused(n, e, full, node_max, n->spots_counted);
	} else if (type_max != 0 && count->spots >= type_max) {
		entry_refused(n, e, full, type_max, count->spots);
	} else if (n->in_state[ACTIVATION_QUEUED] >= n->config.activations_waiting_max) {
		entry_refused(n, e,
			result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PENDING_ACTIVATIONS),
			n->config.activations_waiting_max, n->in_state[ACTIVATION_QUEUED]);
	} else {
		n->spots_counted++;
		count->spots++;
		e->reserved = true;
		e->reserved_ns = n->now_ns;
	}
	return e->reserved;
}

static bool may_create(struct node *n, struct entry *e)
{
	if (n->state != NODE_SERVING)
		entry_fails(e, result_refused(RESULT_SHUTTING_DOWN, REASON_NONE));
	else if (!lease_is_live(n))
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
	else if (publish_pending() > n->config.rcu_pending_max)
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_RCU_STALLED));
	else if (!take_wish(n, e, e->waiters))
		entry_fails(e, result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY));
	else
		return reserve(n, e);
	return false;
}

static void found_missing(struct node *n, struct entry *e)
{
	sift(n, e, keep_wishes);
	if (e->waiters == NULL)
		entry_event(n, e, ACTIVATION_EV_MISSING);
	else
		entry_event(n, e, may_create(n, e) ? ACTIVATION_EV_WANTED : ACTIVATION_EV_REFUSED);
}

// ---- waiter on an attempt ----
static bool keep_those_who_wait_for_an_attempt(struct node *n, struct entry *e, struct waiter *w)
{
	(void)e;
	if (waiter_wants_creation(w))
		return true;
	waiter_end(n, w, result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL); // A2
	return false;
}

static bool is_ready(const struct entry *e)
{
	return e->op.row.exists && e->op.row.state == STORE_SPOT_READY;
}

// Each look doubles the pause. The limit is per stretch of waiting, whoever waits.
static void look_again_later(struct node *n, struct entry *e)
{
	if (e->await_until_ns == 0) {
		e->await_until_ns = n->now_ns + AWAIT_LIMIT_MS * NS_PER_MS;
		e->await_ms = AWAIT_MS;
	} else if (e->await_ms < AWAIT_MAX_MS) {
		e->await_ms *= 2;
	}
	e->ready_elsewhere = is_ready(e);
	if (e->waiters != NULL && n->now_ns < e->await_until_ns) {
		entry_event(n, e, ACTIVATION_EV_OTHERS);
		return;
	}
	e->await_until_ns = 0;
	entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_OWNER_UNUSABLE));
	entry_event(n, e, ACTIVATION_EV_REFUSED);
}

static void found_creating(struct node *n, struct entry *e)
{
	sift(n, e, keep_those_who_wait_for_an_attempt);
	e->waits_for_view = true; // a dead claimant shows there
	look_again_later(n, e);
}

// ---- terminal completion adapter (A3): authority stays, nothing is built ----
static void owner_cannot_be_used(
	struct node *n, struct entry *e, struct owner_availability_changed what)
{
	(void)what;
	entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_OWNER_UNUSABLE));
	entry_event(n, e, ACTIVATION_EV_ELSEWHERE);
}

// A row of this node's that nobody works on: of a former run (O6), or left by a lost answer; or the
// claim of another node's run that is over (A8). Its formal release comes first; only what is read
// after it can be Missing.
static void found_orphan(struct node *n, struct entry *e)
{
	if (!lease_is_live(n)) {
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST));
		entry_event(n, e, ACTIVATION_EV_FAILED);
		return;
	}
	e->orphan = e->op.row;
	entry_event(n, e, ACTIVATION_EV_ORPHAN);
}

static bool keep_same_id(struct node *n, struct entry *e, struct waiter *w)
{
	const struct store_spot_row *row = &e->op.row;
	if (w->id_bytes == 0 ||
		(w->id_bytes == row->id_bytes && memcmp(w->id, row->id, row->id_bytes) == 0))
		return true;
	waiter_end(n, w, result_refused(RESULT_INTERNAL_FAILURE, REASON_KEY_COLLISION), NULL); // T2
	return false;
}

// ---- owned by another node ----
static enum peer_standing owner_standing(struct node *n, struct entry *e)
{
	const struct store_spot_row *row = &e->op.row;
	if (!store_boot_equal(e->seen_boot, row->owner_boot)) {
		e->seen_boot = row->owner_boot;
		e->seen_ns = n->now_ns;
	}
	return peers_standing(n, row->owner_node, row->owner_boot, row->owner_lease, e->seen_ns);
}

static bool keep_messages_and_closes(struct node *n, struct entry *e, struct waiter *w)
{
	const struct store_spot_row *row = &e->op.row;
	if (w->kind == WAITER_MESSAGES || waiter_is(w, WIRE_CONTROL_CLOSE))
		return true;
	const struct dp_type *type = dp_type_by_name(n->dp, row->type_name);
	bool same_type = type != NULL && dp_type_key(type).value == w->spot_type.value;
	if (waiter_is(w, WIRE_CONTROL_CREATE))
		waiter_end(n, w, result_refused(RESULT_ALREADY_EXISTS, REASON_NONE), NULL);
	else if (waiter_wants_creation(w) && !same_type)
		waiter_end(n, w, result_refused(RESULT_TYPE_MISMATCH, REASON_NONE), NULL);
	else
		waiter_end_ok(n, w, row->object_generation, false);
	return false;
}

// The route leads there now: messages look it up again. A close is for the owner to hear.
static bool release_messages(struct node *n, struct entry *e, struct waiter *w)
{
	(void)e;
	if (w->kind == WAITER_MESSAGES)
		waiter_release(n, w);
	else
		waiter_end(n, w, result_refused(RESULT_STALE_ROUTE, REASON_WRONG_OWNER), NULL);
	return false;
}

// Ready on another node that is live: what needs only the row is answered here, messages go there.
static void found_elsewhere(struct node *n, struct entry *e)
{
	sift(n, e, keep_messages_and_closes);
	enum remote_verdict verdict =
		e->waiters == NULL ? REMOTE_NO_ADDRESS : remote_publish(n, &e->op.row, e->read_ns);
	entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_OWNER_UNUSABLE));
	if (verdict == REMOTE_NOT_USABLE) { // live as far as anybody knows (O4): the view will tell
		e->waits_for_view = true;
		look_again_later(n, e);
		return;
	}
	if (verdict == REMOTE_PUBLISHED)
		sift(n, e, release_messages);
	else if (verdict == REMOTE_STALLED)
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_RCU_STALLED));
	else if (verdict == REMOTE_NO_MEMORY)
		entry_fails(e, result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY));
	entry_event(n, e, ACTIVATION_EV_ELSEWHERE);
}

static enum owner_standing owner_of(
	const struct node *n, const struct store_spot_row *row, enum peer_standing peer)
{
	if (strcmp(row->owner_node, n->node_id) != 0)
		return peer_is_over(peer) ? OWNER_OTHER_OVER : OWNER_OTHER_LIVE;
	return store_boot_equal(row->owner_boot, n->boot) ? OWNER_THIS_RUN : OWNER_FORMER_RUN;
}

static struct resolve_row look_at(struct node *n, struct entry *e, enum peer_standing peer)
{
	const struct store_spot_row *row = &e->op.row;
	struct resolve_row look = {.exists = row->exists,
		.ready = row->state == STORE_SPOT_READY,
		.owner = owner_of(n, row, peer),
		.owner_lease = row->owner_lease,
		.read_wall_ns = e->op.store_wall_ns};
	struct dp_spot *spot = dp_spot_of_route(route_lookup(n->routes, e->key));
	if (spot != NULL) {
		struct dp_spot_view view;
		dp_spot_view(spot, &view);
		look.object_here = view.object_generation.value == row->object_generation.value;
	}
	memcpy(look.fence.owner_boot, row->owner_boot.bytes, sizeof(look.fence.owner_boot));
	look.fence.object_generation = row->object_generation;
	look.fence.authority_generation = row->authority_generation;
	memcpy(look.last_operation, row->last_operation.bytes, sizeof(look.last_operation));
	return look;
}

static void resolve_creating(struct node *n, struct entry *e, enum claimant claimant)
{
	switch (claimant) {
	case CLAIMANT_OTHER:
		found_creating(n, e);
		return;
	case CLAIMANT_OURS_LOST:
	case CLAIMANT_DEAD:
		found_orphan(n, e);
		return;
	}
}

static void resolve_unavailable(struct node *n, struct entry *e, const struct resolved *r)
{
	if (r->as.unavailable.evidence == EVIDENCE_OWNER_OVER)
		owner_cannot_be_used(n, e,
			(struct owner_availability_changed){
				r->as.unavailable.authority, r->as.unavailable.evidence});
	else
		found_orphan(n, e);
}

static void row_read(struct node *n, struct entry *e, enum peer_standing peer)
{
	struct resolve_row look = look_at(n, e, peer);
	struct resolved r = activation_resolve(&look);
	bool waits = (r.kind == RESOLVED_CREATING && r.as.creating.claimant == CLAIMANT_OTHER) ||
		     (r.kind == RESOLVED_READY && r.as.ready.place == READY_ELSEWHERE);
	if (!waits)
		e->await_until_ns = 0;
	switch (r.kind) {
	case RESOLVED_MISSING:
		found_missing(n, e);
		return;
	case RESOLVED_CREATING:
		resolve_creating(n, e, r.as.creating.claimant);
		return;
	case RESOLVED_READY:
		if (r.as.ready.place == READY_HERE)
			entry_event(n, e, ACTIVATION_EV_HERE);
		else
			found_elsewhere(n, e);
		return;
	case RESOLVED_UNAVAILABLE:
		resolve_unavailable(n, e, &r);
		return;
	}
}

void resolve_row_read(struct node *n, struct entry *e)
{
	const struct store_spot_row *row = &e->op.row;
	if (e->op.outcome != STORE_DONE) { // a store failure is not a state (A2)
		entry_fails(e, result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE));
		if (e->op.outcome == STORE_DAMAGED)
			node_damaged(n);
		entry_event(n, e, ACTIVATION_EV_FAILED);
		return;
	}
	if (row->exists)
		sift(n, e, keep_same_id);
	bool others = row->exists && strcmp(row->owner_node, n->node_id) != 0;
	enum peer_standing peer = others ? owner_standing(n, e) : PEER_LIVE;
	if (peer == PEER_UNKNOWN) { // a run that joined after the view: look at the nodes first
		peers_refresh(n);
		e->waits_for_view = true;
		look_again_later(n, e);
		return;
	}
	row_read(n, e, peer);
}

// ---- route admission: the Spot lives here ----
static bool close_is_refused(
	struct node *n, struct entry *e, struct waiter *w, const struct dp_spot_view *view)
{
	struct object_generation asked = w->as.operation.generation;
	bool by_wire = w->as.operation.origin == ORIGIN_WIRE;
	// K3: an Entry Spot never; an Instance Spot from its own handler, or by management.
	bool kind_refuses = view->kind == SPOT_KIND_ENTRY ||
			    (view->kind == SPOT_KIND_INSTANCE && by_wire);
	if (kind_refuses) {
		waiter_end(n, w, result_refused(RESULT_INVALID_OPERATION, REASON_NONE), NULL);
		return true;
	}
	if (asked.value != 0 && asked.value != view->object_generation.value) { // C7
		waiter_end(n, w,
			result_refused(RESULT_INVALID_OPERATION, REASON_GENERATION_MISMATCH), NULL);
		return true;
	}
	if (actor_host_has_members(e->spot)) { // C7, K3: false, and it goes on
		w->as.operation.answer_generation = view->object_generation;
		waiter_end(n, w, result_make(RESULT_OK, REASON_HAS_MEMBERS, ACCEPTED_YES), NULL);
		return true;
	}
	return false;
}

static void serve_create(struct node *n, struct waiter *w, const struct dp_spot_view *view)
{
	bool same_id = w->id_bytes == view->id.size && memcmp(w->id, view->id.data, w->id_bytes) == 0;
	if (!same_id)
		waiter_end(n, w, result_refused(RESULT_INTERNAL_FAILURE, REASON_KEY_COLLISION), NULL);
	else if (w->creator)
		waiter_end_ok(n, w, view->object_generation, true);
	else if (waiter_is(w, WIRE_CONTROL_CREATE))
		waiter_end(n, w, result_refused(RESULT_ALREADY_EXISTS, REASON_NONE), NULL);
	else if (dp_type_key(view->type).value != w->spot_type.value)
		waiter_end(n, w, result_refused(RESULT_TYPE_MISMATCH, REASON_NONE), NULL);
	else
		waiter_end_ok(n, w, view->object_generation, false);
}

static bool keep_closes(struct node *n, struct entry *e, struct waiter *w)
{
	struct dp_spot_view view;
	dp_spot_view(e->spot, &view);
	if (w->kind == WAITER_MESSAGES)
		waiter_release(n, w);
	else if (waiter_wants_creation(w))
		serve_create(n, w, &view);
	else if (waiter_is(w, WIRE_CONTROL_LOOKUP))
		waiter_end_ok(n, w, view.object_generation, false);
	else
		return !close_is_refused(n, e, w, &view);
	return false;
}

void resolve_serve_here(struct node *n, struct entry *e, struct dp_spot *spot)
{
	struct dp_spot_view view;
	dp_spot_view(spot, &view);
	e->spot = spot;
	e->published = true;
	e->type = view.type;
	e->kind = view.kind;
	e->generation = view.object_generation;
	e->authority = view.authority_generation;
	e->id_bytes = (uint8_t)view.id.size;
	memcpy(e->id, view.id.data, view.id.size);
	e->close_reason = SPOTLANE_CLOSE_EXPLICIT;
	e->idle_ns = 0;
	sift(n, e, keep_closes);
}
