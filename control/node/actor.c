// SPDX-License-Identifier: BSD-3-Clause
// Actors on this node (B1-B3). One `struct change` per Actor whose membership changes; an Actor at
// rest is its route and its place in the data plane, nothing here.
//
//   join   ADMITTING ─► (LEAVING) ─► ENTERING      leave for good   LEAVING
//              └ refused: nothing changed           (another Spot: as join)
//
// The new host is asked before the old one is left, so that a refusal changes nothing. UNDOING: the
// route could not be published, and the new place is given up again.
#include "node/internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "wire/layout.h"

enum { CHANGES_MAX = 4096 };

enum change_stage {
	CHANGE_ADMITTING = 1,
	CHANGE_LEAVING = 2,
	CHANGE_ENTERING = 3,
	CHANGE_UNDOING = 4,
	CHANGE_ENDED = 5, // only the reply is left to send
};

struct change {
	struct change *hash_next;
	struct node *node;
	struct spot_key key; // of the Actor
	enum change_stage stage;
	struct dp_actor *old, *new; // NULL: none
	struct dp_spot *old_host, *new_host;
	uint64_t askers; // bit per worker with messages that wait for the Actor
	struct command command;
	uint64_t token; // 0: nobody waits for the end
	uint16_t worker;
	struct result result;
	bool changed;
};
_Static_assert(DP_WORKERS_MAX <= 64, "a bit per worker");

// Control's corner of a place.
struct actor_area {
	struct publish_deferred deferred;
	struct dp_actor *actor;
};
_Static_assert(sizeof(struct actor_area) <= DP_SPOT_CONTROL_BYTES, "fits control's corner");

// ---- the table of changes ----
static struct change **bucket(struct node *n, struct spot_key key)
{
	uint64_t mixed = (key.lo ^ n->hash_seed) * UINT64_C(0x9e3779b97f4a7c15);
	return &n->actors.changes[mixed >> 54 & (ACTOR_CHANGE_BUCKETS - 1)];
}

static struct change *change_find(struct node *n, struct spot_key key)
{
	struct change *c = *bucket(n, key);
	while (c != NULL && !spot_key_equal(c->key, key))
		c = c->hash_next;
	return c;
}

static void change_link(struct node *n, struct change *c)
{
	struct change **head = bucket(n, c->key);
	c->hash_next = *head;
	*head = c;
	n->actors.change_count++;
}

static void change_unlink(struct node *n, struct change *c)
{
	struct change **at = bucket(n, c->key);
	while (*at != c)
		at = &(*at)->hash_next;
	*at = c->hash_next;
	n->actors.change_count--;
}

// ---- places ----
static void free_place(struct publish_deferred *deferred)
{
	dp_actor_destroy(container_of(deferred, struct actor_area, deferred)->actor);
}

// After a grace period: a worker may still look at it.
static void place_free_later(struct dp_actor *actor)
{
	struct actor_area *area = dp_actor_control_area(actor);
	area->actor = actor;
	publish_defer(&area->deferred, free_place);
}

static struct actor_host *host_of(struct dp_spot *spot)
{
	return entry_actor_host(spot);
}

bool actor_host_is_busy(struct dp_spot *spot)
{
	return host_of(spot)->changes > 0;
}

bool actor_host_has_members(struct dp_spot *spot)
{
	return host_of(spot)->members > 0;
}

void actor_host_closed(struct node *n, struct dp_spot *spot)
{
	if (!actor_host_has_members(spot))
		return;
	struct dp_actor *actor = dp_closed_member(spot, NULL);
	while (actor != NULL) {
		struct dp_actor *next = dp_closed_member(spot, actor);
		struct dp_actor_view view;
		dp_actor_view(actor, &view);
		(void)route_retire(n->routes, view.key);
		n->actors.count--;
		place_free_later(actor);
		actor = next;
	}
}

// ---- the end of a change ----
static void release_messages(struct node *n, struct spot_key key, uint16_t worker)
{
	struct waiter *w = waiter_create(n, WAITER_MESSAGES, key);
	if (w == NULL) { // they wait on; their own deadlines end them
		node_say(n, "out of memory: messages for an Actor were not released");
		return;
	}
	w->as.messages.worker = worker;
	waiter_release(n, w);
}

static void send(struct node *n, struct change *c, enum command_kind kind, uint16_t worker)
{
	CHECK(c->command.kind == COMMAND_NONE);
	c->command.kind = kind;
	c->command.worker = worker;
	dpq_send(n, &c->command);
}

static void finish(struct node *n, struct change *c, struct result result, bool changed)
{
	c->stage = CHANGE_ENDED;
	c->result = result;
	c->changed = changed;
	if (c->old_host != NULL)
		host_of(c->old_host)->changes--;
	if (c->new_host != NULL)
		host_of(c->new_host)->changes--;
	change_unlink(n, c);
	for (uint64_t left = c->askers; left != 0; left &= left - 1)
		release_messages(n, c->key, (uint16_t)__builtin_ctzll(left));
	if (c->token != 0)
		send(n, c, COMMAND_ACTOR_REPLY, c->worker);
	else
		mem_free(c);
}

static uint16_t home_of(const struct dp_spot *host)
{
	struct dp_spot_view view;
	dp_spot_view(host, &view);
	return view.home_worker;
}

// ---- steps ----
static void leave(struct node *n, struct change *c)
{
	c->stage = CHANGE_LEAVING;
	send(n, c, COMMAND_ACTOR_LEAVE, home_of(c->old_host));
}

static void undo(struct node *n, struct change *c, struct result why)
{
	c->stage = CHANGE_UNDOING;
	c->result = why;
	send(n, c, COMMAND_ACTOR_LEAVE, home_of(c->new_host));
}

static void enter(struct node *n, struct change *c)
{
	bool stalls = publish_pending() > n->config.rcu_pending_max;
	enum route_write written = stalls
		? ROUTE_STALLED
		: route_publish(n->routes, c->key, dp_actor_route(c->new));
	if (written == ROUTE_WRITTEN) {
		c->stage = CHANGE_ENTERING;
		send(n, c, COMMAND_ACTOR_ENTER, home_of(c->new_host));
	} else if (written == ROUTE_STALLED) {
		undo(n, c, result_refused(RESULT_UNAVAILABLE, REASON_RCU_STALLED));
	} else {
		undo(n, c, result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY));
	}
}

// The new place is not, or no longer, a member.
static void drop_new(struct node *n, struct change *c)
{
	place_free_later(c->new);
	host_of(c->new_host)->members--;
	if (c->old == NULL)
		n->actors.count--;
	c->new = NULL;
}

static void left(struct node *n, struct change *c)
{
	if (c->stage == CHANGE_UNDOING) {
		(void)route_retire(n->routes, c->key); // of a place that was left before
		drop_new(n, c);
		finish(n, c, c->result, false);
		return;
	}
	place_free_later(c->old);
	host_of(c->old_host)->members--;
	if (c->new != NULL) {
		enter(n, c);
		if (c->stage == CHANGE_UNDOING)
			c->old = NULL; // then the Actor is nowhere
		return;
	}
	(void)route_retire(n->routes, c->key);
	n->actors.count--;
	finish(n, c, result_ok(), true);
}

void actor_fact(struct node *n, const struct dp_fact *fact)
{
	struct change *c = change_find(n, fact->key);
	CHECK(c != NULL && (fact->as.actor.actor == c->old || fact->as.actor.actor == c->new));
	switch (fact->as.actor.step) {
	case DP_ACTOR_ADMITTED:
		if (c->old != NULL)
			leave(n, c);
		else
			enter(n, c);
		return;
	case DP_ACTOR_REFUSED:
		drop_new(n, c);
		finish(n, c, fact->as.actor.result, false);
		return;
	case DP_ACTOR_ENTERED:
		finish(n, c, result_ok(), true);
		return;
	case DP_ACTOR_LEFT:
		left(n, c);
		return;
	}
	CHECK(!"a step of no kind");
}

// ---- commands ----
static enum dp_status send_reply(struct node *n, const struct change *c)
{
	uint8_t body[9] = {0}; // object generation (none), changed
	struct refusal full = {.limit = c->result.reason == REASON_ACTIVATION_CEILING
					? n->config.actors_max
					: CHANGES_MAX,
		.current = c->result.reason == REASON_ACTIVATION_CEILING ? n->actors.count
									 : CHANGES_MAX,
		.owner_node = node_own_key(n).value};
	bool room = c->result.kind == RESULT_CAPACITY_EXCEEDED;
	body[8] = c->changed ? 1 : 0;
	return dp_control_reply(n->dp, c->worker, c->token, c->result, room ? &full : NULL,
		span_of(body, c->result.kind == RESULT_OK ? sizeof(body) : 0));
}

enum dp_status actor_command(struct node *n, struct command *command)
{
	struct change *c = container_of(command, struct change, command);
	if (command->kind == COMMAND_ACTOR_REPLY)
		return send_reply(n, c);
	if (command->kind == COMMAND_ACTOR_ADMIT)
		return dp_actor_admit(n->dp, c->new);
	if (command->kind == COMMAND_ACTOR_ENTER)
		return dp_actor_enter(n->dp, c->new);
	return dp_actor_leave(n->dp, c->stage == CHANGE_UNDOING ? c->new : c->old);
}

void actor_command_done(struct command *command, enum command_kind kind)
{
	if (kind == COMMAND_ACTOR_REPLY)
		mem_free(container_of(command, struct change, command));
}

// ---- the beginning ----
static struct result check_node(const struct node *n)
{
	if (n->state == NODE_PREPARING)
		return result_refused(RESULT_UNAVAILABLE, REASON_NONE);
	if (n->state != NODE_SERVING)
		return result_refused(RESULT_SHUTTING_DOWN, REASON_NONE);
	if (!lease_is_live(n)) // O3
		return result_refused(RESULT_UNAVAILABLE, REASON_LEASE_LOST);
	if (n->actors.change_count >= CHANGES_MAX)
		return result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PENDING_RESOLVES);
	return result_ok();
}

static bool host_closes(struct node *n, struct spot_key key)
{
	const struct entry *e = entry_find(n, key);
	return e != NULL &&
	       (e->state == ACTIVATION_CLOSING || e->state == ACTIVATION_RELEASING ||
		       e->state == ACTIVATION_STUCK);
}

// Finds the Spot that is to be joined; an empty id is the Entry Spot.
static struct result find_host(struct node *n, struct span id, struct dp_spot **out)
{
	struct spot_key key = id.size == 0 ? n->entry_spot_key : spot_key_of(id);
	if (id.size > 0 && !id_is_valid(id))
		return result_refused(RESULT_INVALID_OPERATION, REASON_ID_MISSING);
	if (id.size == 0 && n->config.entry_type == NULL)
		return result_refused(RESULT_NOT_CONFIGURED, REASON_NONE);
	*out = node_find(n, key);
	if (*out == NULL)
		return result_refused(RESULT_NOT_FOUND, REASON_NONE);
	if (!dp_spot_takes_actors(*out)) // K3
		return result_refused(RESULT_INVALID_OPERATION, REASON_NONE);
	if (host_closes(n, key))
		return result_refused(RESULT_UNAVAILABLE, REASON_CLOSING);
	return result_ok();
}

static struct result make_place(struct node *n, struct change *c, struct span id)
{
	uint64_t max = n->config.actors_max;
	if (c->old == NULL && max != 0 && n->actors.count >= max) // N1, N2
		return result_refused(RESULT_CAPACITY_EXCEEDED, REASON_ACTIVATION_CEILING);
	struct dp_actor_spec spec = {.key = c->key, .id = id, .host = c->new_host};
	c->new = dp_actor_create(n->dp, &spec);
	if (c->new == NULL)
		return result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY);
	if (c->old == NULL)
		n->actors.count++;
	host_of(c->new_host)->members++;
	return result_ok();
}

static bool is_same_id(const struct dp_actor *actor, struct span id)
{
	struct dp_actor_view view;
	dp_actor_view(actor, &view);
	return view.id.size == id.size && memcmp(view.id.data, id.data, id.size) == 0;
}

// What is to be done, or why not. OK with no place on either side: nothing.
static struct result plan(struct node *n, struct change *c, const struct dp_fact *fact)
{
	struct span id = span_of(fact->as.control.id, fact->as.control.id_bytes);
	struct span target =
		span_of(fact->as.control.argument, fact->as.control.argument_bytes);
	bool joins = fact->as.control.operation == WIRE_CONTROL_JOIN;
	struct result verdict = check_node(n);
	struct dp_actor *old = dp_actor_of_route(route_lookup(n->routes, c->key));
	struct dp_spot *host = NULL, *old_host = NULL;
	if (verdict.kind != RESULT_OK)
		return verdict;
	if (old != NULL && !is_same_id(old, id)) // T2
		return result_refused(RESULT_INTERNAL_FAILURE, REASON_KEY_COLLISION);
	if (old != NULL) {
		struct dp_actor_view view;
		dp_actor_view(old, &view);
		old_host = view.host;
	}
	if (!joins && old == NULL)
		return result_ok();
	if (joins || (old_host != node_find(n, n->entry_spot_key) && n->config.entry_type != NULL))
		verdict = find_host(n, joins ? target : span_of(NULL, 0), &host);
	if (verdict.kind != RESULT_OK || (joins && host == old_host))
		return verdict;
	c->old = old;
	c->old_host = old_host;
	c->new_host = host;
	return host == NULL ? result_ok() : make_place(n, c, id);
}

static void begin(struct node *n, struct change *c)
{
	if (c->old_host != NULL)
		host_of(c->old_host)->changes++;
	if (c->new_host != NULL)
		host_of(c->new_host)->changes++;
	change_link(n, c);
	if (c->new == NULL) {
		leave(n, c);
		return;
	}
	c->stage = CHANGE_ADMITTING;
	send(n, c, COMMAND_ACTOR_ADMIT, home_of(c->new_host));
}

bool actor_takes_control(struct node *n, const struct dp_fact *fact)
{
	uint16_t what = fact->as.control.operation;
	if (what != WIRE_CONTROL_JOIN && what != WIRE_CONTROL_LEAVE)
		return false;
	struct change *c = mem_zalloc(sizeof(*c));
	if (c == NULL) { // the worker answers at the deadline
		node_say(n, "out of memory: a change of membership was dropped");
		return true;
	}
	*c = (struct change){.node = n,
		.key = fact->key,
		.worker = fact->worker,
		.token = fact->as.control.token,
		.stage = CHANGE_ENDED};
	c->result = change_find(n, fact->key) != NULL // B2
			    ? result_refused(RESULT_UNAVAILABLE, REASON_NONE)
			    : plan(n, c, fact);
	if (c->result.kind == RESULT_OK && (c->old != NULL || c->new != NULL))
		begin(n, c);
	else if (c->token != 0)
		send(n, c, COMMAND_ACTOR_REPLY, c->worker);
	else
		mem_free(c);
	return true;
}

bool actor_takes_resolve(struct node *n, const struct dp_fact *fact)
{
	struct change *c = change_find(n, fact->key);
	if (c != NULL)
		c->askers |= UINT64_C(1) << fact->worker;
	else if (dp_actor_of_route(route_lookup(n->routes, fact->key)) != NULL)
		release_messages(n, fact->key, fact->worker);
	else
		return false;
	return true;
}

// ---- candidates for relocation (V1, K4) ----
struct candidates {
	void (*visit)(const struct node_candidate *candidate, void *arg);
	void *arg;
	uint32_t named;
};

static void name_candidate(struct spot_key key, route_word word, void *arg)
{
	struct candidates *all = arg;
	struct node_candidate one = {.key = key};
	struct dp_actor *actor = dp_actor_of_route(word);
	struct dp_spot *spot = dp_spot_of_route(word);
	struct dp_spot_view host;
	if (actor != NULL) {
		struct dp_actor_view view;
		dp_actor_view(actor, &view);
		dp_spot_view(view.host, &host);
		if (host.kind != SPOT_KIND_ENTRY)
			return; // moves with its User Spot
		one.kind = NODE_CANDIDATE_ACTOR;
		one.id = view.id;
	} else if (spot != NULL) {
		dp_spot_view(spot, &host);
		if (host.kind == SPOT_KIND_ENTRY)
			return; // its Actors move, it does not
		one.kind = host.kind == SPOT_KIND_USER ? NODE_CANDIDATE_USER
						       : NODE_CANDIDATE_INSTANCE;
		one.id = host.id;
		one.members = host.kind == SPOT_KIND_USER ? host_of(spot)->members : 0;
	} else {
		return;
	}
	all->named++;
	all->visit(&one, all->arg);
}

uint32_t node_candidates(struct node *n, uint64_t *cursor, uint32_t max,
	void (*visit)(const struct node_candidate *candidate, void *arg), void *arg)
{
	struct candidates all = {visit, arg, 0};
	(void)route_walk(n->routes, cursor, max, name_candidate, &all);
	return all.named;
}

uint64_t node_actors(const struct node *n)
{
	return n->actors.count;
}

// ---- the end of the node: its workers have ended ----
void actor_free_changes(struct node *n)
{
	for (uint32_t b = 0; b < ACTOR_CHANGE_BUCKETS; b++)
		while (n->actors.changes[b] != NULL) {
			struct change *c = n->actors.changes[b];
			n->actors.changes[b] = c->hash_next;
			// Published from ENTERING on: then it goes with its route.
			if (c->new != NULL && c->stage != CHANGE_ENTERING)
				dp_actor_discard(c->new);
			mem_free(c);
		}
}

void actor_free_queued(struct command *command)
{
	if (command->kind == COMMAND_ACTOR_REPLY)
		mem_free(container_of(command, struct change, command));
}
