// SPDX-License-Identifier: BSD-3-Clause
#include "core/actor.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/lifecycle.h"
#include "core/scheduler.h"
#include "core/timer.h"
#include "core/turn.h"
#include "core/turn_inline.h"

struct span actor_id(const struct dp_actor *actor)
{
	return span_of(actor->id, actor->base.id_bytes);
}

static enum spotlane_outcome run(
	struct dp_spot *place, uint64_t turn, const struct turn_event *event)
{
	struct dp_spot *host = actor_of(place)->host;
	return host->type->ops->run(host, turn, event);
}

// Timers that an Entry Actor's turn sets are its place's; a member's are its User Spot's.
static bool entry_hears_ticks(const struct dp_type *type)
{
	const struct entry_type *entry = container_of(type, const struct entry_type, actor);
	return entry->base.ops->hears_ticks(&entry->base);
}

static bool user_hears_ticks(const struct dp_type *type)
{
	const struct user_type *user = container_of(type, const struct user_type, actor);
	return user->base.ops->hears_ticks(&user->base);
}

// Control asks for the kind of Spots only, and makes no place through a Spot's constructor.
const struct spot_ops entry_actor_ops = {
	.kind = SPOT_KIND_INVALID, .run = run, .hears_ticks = entry_hears_ticks};
const struct spot_ops user_actor_ops = {
	.kind = SPOT_KIND_INVALID, .run = run, .hears_ticks = user_hears_ticks};

static struct members *members_of(struct dp_spot *host)
{
	// Pairs with the store in dp_actor_create.
	return atomic_load_explicit(&host->members, memory_order_acquire);
}

// ---- the ring of ready members ----
void actor_ready(struct dp_worker *w, struct dp_spot *place)
{
	struct dp_spot *host = actor_of(place)->host;
	struct members *m = members_of(host);
	place->readiness = SPOT_QUEUED;
	if (m->ready_last == NULL) {
		place->ready_next = place;
	} else {
		place->ready_next = m->ready_last->ready_next;
		m->ready_last->ready_next = place;
	}
	m->ready_last = place;
	host->members_ready = 1;
	scheduler_ready(w, host);
}

static struct dp_spot *take_ready(struct dp_spot *host)
{
	struct members *m = members_of(host);
	struct dp_spot *last = m->ready_last, *first = last->ready_next;
	if (first == last)
		m->ready_last = NULL;
	else
		last->ready_next = first->ready_next;
	host->members_ready = m->ready_last != NULL;
	first->readiness = SPOT_IDLE;
	return first;
}

void actor_run_member(struct dp_worker *w, struct dp_spot *host)
{
	if (host->application_list.head != NULL && !host->members_next) {
		host->members_next = 1;
		turn_queued(w, host, item_of(lane_list_pop(&host->application_list)));
		return;
	}
	host->members_next = 0;
	struct dp_spot *place = take_ready(host);
	struct item *item = item_of(lane_list_pop(&place->application_list));
	if (place->application_list.head != NULL)
		actor_ready(w, place); // behind the others
	turn_queued(w, host, item);
}

// ---- membership ----
static void link_member(struct dp_spot *host, struct dp_actor *actor)
{
	struct members *m = members_of(host);
	if (m->last == NULL) {
		actor->next_member = actor->previous_member = actor;
	} else {
		actor->next_member = m->last->next_member;
		actor->previous_member = m->last;
		actor->next_member->previous_member = actor;
		m->last->next_member = actor;
	}
	m->last = actor;
	actor->member = true;
}

static void unlink_member(struct dp_spot *host, struct dp_actor *actor)
{
	struct members *m = members_of(host);
	struct dp_actor *before = actor->previous_member;
	before->next_member = actor->next_member;
	actor->next_member->previous_member = before;
	if (m->last == actor)
		m->last = before == actor ? NULL : before;
	actor->member = false;
}

static void callback_begin(struct dp_worker *w, struct dp_spot *host)
{
	w->timed_spot = host;
	turn_mark(w, host);
	host->gate = GATE_RUNNING;
}

static void callback_end(struct dp_worker *w, struct dp_spot *host)
{
	host->gate = GATE_IDLE;
	turn_unmark(w);
}

static void report(struct dp_worker *w, struct command *command, enum dp_actor_step step,
	struct result result)
{
	struct dp_fact *fact = &command->node.fact;
	lifecycle_give_up_place(command);
	command->node.told = 1;
	fact->kind = DP_FACT_ACTOR;
	fact->worker = w->index;
	fact->key = command->actor->base.key;
	fact->as.actor.actor = command->actor;
	fact->as.actor.step = step;
	fact->as.actor.result = result;
	fact_post(w, &command->node);
}

static struct result judge(struct dp_worker *w, struct dp_spot *host, struct dp_actor *actor)
{
	if (spot_state(host) >= SPOT_CLOSING)
		return result_refused(RESULT_UNAVAILABLE, REASON_CLOSING);
	if (!lease_valid_ticks(w, w->last_ticks))
		return result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST);
	if (host->type->ops->joining == NULL)
		return result_ok();
	callback_begin(w, host);
	bool admitted = host->type->ops->joining(host, actor_id(actor));
	callback_end(w, host);
	return admitted ? result_ok() : result_refused(RESULT_REJECTED, REASON_DECLINED);
}

void actor_admit(struct dp_worker *w, struct command *command)
{
	struct dp_actor *actor = command->actor;
	struct result result = judge(w, command->spot, actor);
	if (result.kind == RESULT_OK) {
		actor->base.instance = command->spot->instance;
		link_member(command->spot, actor);
	}
	report(w, command, result.kind == RESULT_OK ? DP_ACTOR_ADMITTED : DP_ACTOR_REFUSED, result);
}

void actor_enter(struct dp_worker *w, struct command *command)
{
	struct dp_spot *host = command->spot;
	struct dp_actor *actor = command->actor;
	CHECK(actor->member && spot_state(&actor->base) == SPOT_NEW);
	spot_set_state(&actor->base, SPOT_READY);
	if (host->type->ops->joined != NULL) {
		callback_begin(w, host);
		host->type->ops->joined(host, actor_id(actor));
		callback_end(w, host);
	}
	lane_open(&actor->base.application);
	report(w, command, DP_ACTOR_ENTERED, result_ok());
}

// ---- leaving ----
// A place is quiet when its lane can be sealed: a reservation lasts until the turn's end (L5).
static bool is_sealed(struct dp_actor *actor)
{
	struct dp_spot *place = &actor->base;
	return place->readiness == SPOT_IDLE && place->application_list.head == NULL &&
		(lane_level(&place->application).sealed || lane_seal(&place->application));
}

static void tell_left(struct dp_worker *w, struct dp_spot *host, struct dp_actor *actor)
{
	timer_end_all(w, &actor->base);
	bool entered = spot_state(&actor->base) != SPOT_NEW;
	if (entered && host->type->ops->left != NULL)
		host->type->ops->left(host, actor_id(actor));
	spot_set_state(&actor->base, SPOT_CLOSED);
}

static bool try_leave(struct dp_worker *w, struct dp_actor *actor)
{
	struct dp_spot *host = actor->host;
	bool calls_host = host->type->ops->left != NULL;
	if ((calls_host && host->gate != GATE_IDLE) || !is_sealed(actor))
		return false;
	if (calls_host) {
		turn_clock(w);
		callback_begin(w, host);
	}
	tell_left(w, host, actor);
	if (calls_host) {
		callback_end(w, host);
		turn_clock(w);
	}
	unlink_member(host, actor);
	struct command *command = actor->leaving;
	actor->leaving = NULL;
	report(w, command, DP_ACTOR_LEFT, result_ok());
	return true;
}

void actor_leave(struct dp_worker *w, struct command *command)
{
	struct dp_actor *actor = command->actor;
	CHECK(actor->member && actor->leaving == NULL);
	actor->leaving = command;
	if (spot_state(&actor->base) == SPOT_READY)
		spot_set_state(&actor->base, SPOT_CLOSING);
	if (try_leave(w, actor))
		return;
	command->next_closing = w->leaving;
	w->leaving = command;
}

bool actor_tick(struct dp_worker *w)
{
	struct command **link = &w->leaving, *command;
	bool any = false;
	while ((command = *link) != NULL) {
		struct command *next = command->next_closing;
		if (try_leave(w, command->actor)) {
			*link = next;
			any = true;
		} else {
			link = &command->next_closing;
		}
	}
	return any;
}

// ---- the host closes ----
static struct dp_actor *last_member(struct dp_spot *host)
{
	struct members *m = members_of(host);
	return m == NULL ? NULL : m->last;
}

bool actor_seal_members(struct dp_spot *host)
{
	struct dp_actor *last = last_member(host), *actor = last;
	bool all = true;
	if (last == NULL)
		return true;
	do {
		actor = actor->next_member;
		if (actor->leaving != NULL) { // its own end comes
			all = false;
			continue;
		}
		if (spot_state(&actor->base) == SPOT_READY)
			spot_set_state(&actor->base, SPOT_CLOSING);
		all &= is_sealed(actor);
	} while (actor != last);
	return all;
}

void actor_end_members(struct dp_worker *w, struct dp_spot *host)
{
	struct dp_actor *last = last_member(host), *actor = last;
	if (last == NULL)
		return;
	do { // the ring stays: control frees the places after the host's end
		actor = actor->next_member;
		tell_left(w, host, actor);
	} while (actor != last);
}

// ---- port ----
// The worker sees the block by a command that comes later.
static bool has_members(struct dp_spot *host)
{
	if (members_of(host) != NULL)
		return true;
	struct members *m = mem_zalloc(sizeof(*m));
	if (m != NULL)
		atomic_store_explicit(&host->members, m, memory_order_release);
	return m != NULL;
}

struct dp_actor *dp_actor_create(struct dp *dp, const struct dp_actor_spec *spec)
{
	struct dp_spot *host = spec->host;
	CHECK(host->type->ops->actor_type != NULL); // K3
	CHECK(spec->id.size > 0 && spec->id.size <= ID_BYTES_MAX);
	if (!has_members(host))
		return NULL;
	struct dp_actor *actor =
		mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*actor) + spec->id.size);
	if (actor == NULL)
		return NULL;
	struct dp_spot *place = &actor->base;
	place->dp = dp;
	place->type = host->type->ops->actor_type(host->type);
	lane_word_init(&place->application, true);
	lane_word_init(&place->lifecycle, false);
	place->home_worker = host->home_worker;
	place->gate = place->type->ops == &user_actor_ops ? GATE_HOSTED : GATE_IDLE;
	place->readiness = SPOT_IDLE;
	atomic_init(&place->state, SPOT_NEW);
	atomic_init(&place->refused, 0);
	place->key = spec->key;
	place->object_generation = host->object_generation;
	place->authority_generation = host->authority_generation;
	place->id_bytes = (uint16_t)spec->id.size;
	memcpy(actor->id, spec->id.data, spec->id.size);
	actor->host = host;
	return actor;
}

void dp_actor_destroy(struct dp_actor *actor)
{
	if (actor == NULL)
		return;
	struct lane_level level = lane_level(&actor->base.application);
	CHECK(level.count == 0 && level.bytes == 0 && actor->base.readiness == SPOT_IDLE);
	mem_free(actor);
}

bool dp_spot_takes_actors(const struct dp_spot *spot)
{
	return spot->type->ops->actor_type != NULL;
}

route_word dp_actor_route(struct dp_actor *actor)
{
	return route_make(actor, ROUTE_ACTOR);
}

struct dp_actor *dp_actor_of_route(route_word word)
{
	return route_tag(word) == ROUTE_ACTOR ? route_pointer(word) : NULL;
}

void *dp_actor_control_area(struct dp_actor *actor)
{
	return actor->base.control_area;
}

void dp_actor_view(const struct dp_actor *actor, struct dp_actor_view *out)
{
	const struct dp_spot *place = &actor->base;
	*out = (struct dp_actor_view){.key = place->key,
		.id = actor_id(actor),
		.host = actor->host,
		.application = lane_level(&place->application),
		.application_bounds = place->type->bounds,
		.refused = atomic_load_explicit(&place->refused, memory_order_relaxed)};
}

struct dp_actor *dp_closed_member(struct dp_spot *spot, struct dp_actor *before)
{
	CHECK(spot_state(spot) == SPOT_CLOSED);
	struct dp_actor *last = last_member(spot);
	if (last == NULL || before == last)
		return NULL;
	return before == NULL ? last->next_member : before->next_member;
}
