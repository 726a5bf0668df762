// SPDX-License-Identifier: BSD-3-Clause
#include "core/deliver.h"

#include <string.h>

#include "base/check.h"
#include "core/actor.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/explain.h"
#include "core/scheduler.h"

struct item *deliver_copy(struct dp_worker *w, const struct envelope *env, struct span id)
{
	size_t room = id.size + env->payload_bytes +
		(env->explain != NULL ? sizeof(struct explain) + 8 : 0);
	struct item *item = item_new(w, ITEM_MESSAGE, room);
	if (UNLIKELY(item == NULL))
		return NULL;
	item->env = *env;
	if (id.size > 0)
		memcpy(item->payload, id.data, id.size);
	item->env.id_bytes = (uint16_t)id.size;
	uint8_t *payload = item->payload + id.size;
	if (env->payload_bytes > 0)
		memcpy(payload, env->payload, env->payload_bytes);
	item->env.payload = payload;
	if (UNLIKELY(env->explain != NULL)) {
		uintptr_t after = (uintptr_t)(payload + env->payload_bytes + 7) & ~(uintptr_t)7;
		item->env.explain = (struct explain *)after;
		*item->env.explain = *env->explain;
	}
	return item;
}

uint32_t deliver_item_charge(const struct dp_worker *w, const struct item *item)
{
	if (w->dp->config.accounting == LEDGER_FIXED)
		return item->env.payload_bytes + LEDGER_FIXED_OVERHEAD_BYTES;
	return item->head.block_bytes;
}

static void release_holdings(struct dp_worker *w, struct envelope *env)
{
	if (env->process_bytes > 0)
		ledger_release(&w->shard, env->process_bytes);
	env->process_bytes = 0;
	if (env->spot != NULL && env->charge_bytes > 0)
		lane_return(&env->spot->application, env->charge_bytes);
	env->charge_bytes = 0;
}

void deliver_item_end(struct dp_worker *w, struct item *item)
{
	release_holdings(w, &item->env);
	item_end(w, &item->head);
}

enum delivered deliver_refuse(
	struct dp_worker *w, struct offer *offer, struct result result, const struct refusal *refusal)
{
	struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	COUNT(w, messages_refused);
	counter_add(&w->counters.refusals[result.reason % ARRAY_COUNT(w->counters.refusals)], 1);
	if (!reply_is_wanted(env->reply.kind))
		COUNT(w, sends_refused);
	struct reply reply = {.result = result, .refusal = refusal};
	release_holdings(w, env);
	egress_reply(w, env, offer->frame, &reply);
	if (offer->item != NULL)
		item_end(w, &offer->item->head);
	return DELIVER_REFUSED;
}

void deliver_drop(struct dp_worker *w, struct item *item, struct result result)
{
	COUNT(w, messages_dropped);
	counter_add(&w->counters.drops[result.kind % ARRAY_COUNT(w->counters.drops)], 1);
	struct reply reply = {.result = result};
	egress_reply(w, &item->env, NULL, &reply);
	deliver_item_end(w, item);
}

struct refusal deliver_node_refusal(const struct dp_worker *w, uint64_t limit, uint64_t current)
{
	return (struct refusal){
		.limit = limit, .current = current, .owner_node = w->dp->config.node.value};
}

enum result_reason deliver_lane_refusal(const struct dp_worker *w, const struct dp_spot *spot,
	enum lane_verdict verdict, struct refusal *out)
{
	struct lane_level level = lane_level(&spot->application);
	bool count = verdict == LANE_FULL_COUNT;
	*out = deliver_node_refusal(w, count ? spot_bounds(spot)->count_max
					     : spot_bounds(spot)->bytes_max,
		count ? level.count : level.bytes);
	spot_key_bytes(spot->key, out->owner_key);
	return count ? REASON_APPLICATION_LANE_COUNT : REASON_APPLICATION_LANE_BYTES;
}

void deliver_enqueue(struct dp_worker *w, struct item *item)
{
	struct dp_spot *spot = item->env.spot;
	if (spot->home_worker == w->index) {
		lane_list_push(&spot->application_list, &item->head);
		scheduler_ready(w, spot);
		return;
	}
	COUNT(w, messages_crossed);
	ledger_hand_out(&w->shard, item->env.process_bytes);
	cross_send(w, spot->home_worker, &item->head);
}

void deliver_arrived(struct dp_worker *w, struct item *item)
{
	ledger_hand_in(&w->shard, item->env.process_bytes);
	lane_list_push(&item->env.spot->application_list, &item->head);
	scheduler_ready(w, item->env.spot);
}

static enum delivered refuse_kind(
	struct dp_worker *w, struct offer *offer, enum result_kind kind, enum result_reason reason)
{
	return deliver_refuse(w, offer, result_refused(kind, reason), NULL);
}

// An intent that meets a Spot on its way out waits for what comes after it (C5); an ordinary message
// is told. An Actor on its way from Spot to Spot has messages wait, too (B1).
static enum delivered meet_closing(
	struct dp_worker *w, struct offer *offer, const struct dp_spot *spot)
{
	const struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	if (envelope_may_build(env) || actor_is(spot))
		return park_message(w, offer);
	return refuse_kind(w, offer, RESULT_UNAVAILABLE, REASON_CLOSING);
}

static void explain_admission(
	struct dp_worker *w, struct envelope *env, const struct dp_spot *spot, uint32_t charge)
{
	struct explain *e = env->explain;
	e->route = "local";
	e->filter = "passed";
	e->process = "admitted";
	e->process_mark = w->dp->process.mark_bytes;
	e->process_bytes = ledger_process_taken(&w->dp->process);
	e->lane = lane_level(&spot->application);
	e->bounds = *spot_bounds(spot);
	e->charge_bytes = charge;
	e->home_worker = spot->home_worker;
}

static enum delivered admit_in_memory(
	struct dp_worker *w, struct offer *offer, struct dp_spot *spot, uint32_t charge)
{
	struct item *item = offer->item;
	struct envelope *env = item != NULL ? &item->env : &offer->env;
	if (item == NULL) {
		item = deliver_copy(w, env, envelope_is_forwarded(env) ? offer->id : span_of(NULL, 0));
		if (UNLIKELY(item == NULL)) {
			env->spot = spot;
			env->charge_bytes = charge;
			return refuse_kind(
				w, offer, RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY);
		}
		if (offer->frame != NULL)
			egress_drop(offer->queue, offer->frame);
	}
	item->env.spot = spot;
	item->env.charge_bytes = charge;
	item->env.authority = spot->authority_generation;
	item->env.since_ticks = w->now_ticks;
	COUNT(w, messages_accepted);
	deliver_enqueue(w, item);
	return DELIVER_ADMITTED;
}

// P, then the lane; whatever was taken is given back by deliver_refuse.
static enum delivered reserve_and_admit(struct dp_worker *w, struct offer *offer, struct dp_spot *spot)
{
	struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	bool explained = env->explain != NULL;
	uint32_t charge = offer->item != NULL
		? deliver_item_charge(w, offer->item)
		: deliver_charge(w->dp->config.accounting, env, explained);
	if (UNLIKELY(charge > spot_bounds(spot)->bytes_max))
		return refuse_kind(w, offer, RESULT_INVALID_OPERATION, REASON_TOO_LARGE);
	if (UNLIKELY(explained))
		explain_admission(w, env, spot, charge);
	if (env->process_bytes == 0 && env->payload_bytes > 0) {
		if (UNLIKELY(!ledger_charge(&w->shard, env->payload_bytes))) {
			if (explained)
				env->explain->process = "full";
			struct refusal r = deliver_node_refusal(w, w->dp->process.mark_bytes,
				ledger_process_taken(&w->dp->process));
			return deliver_refuse(w, offer,
				result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PROCESS_INBOUND), &r);
		}
		env->process_bytes = env->payload_bytes;
	}
	enum lane_verdict verdict =
		lane_reserve(&spot->application, *spot_bounds(spot), charge);
	if (LIKELY(verdict == LANE_ADMITTED)) {
		if (UNLIKELY(explained))
			env->explain->lane_verdict = "admitted";
		return admit_in_memory(w, offer, spot, charge);
	}
	if (verdict == LANE_OPENING)
		return park_message(w, offer);
	if (verdict == LANE_SEALED)
		return meet_closing(w, offer, spot);
	atomic_fetch_add_explicit(&spot->refused, 1, memory_order_relaxed);
	if (explained)
		env->explain->lane_verdict = verdict == LANE_FULL_COUNT ? "full (count)" : "full (bytes)";
	struct refusal r;
	enum result_reason reason = deliver_lane_refusal(w, spot, verdict, &r);
	return deliver_refuse(w, offer, result_refused(RESULT_CAPACITY_EXCEEDED, reason), &r);
}

// S1: whoever forwarded it took this node for the owner; it is told, and the message goes no further.
static enum delivered not_here(struct dp_worker *w, struct offer *offer, route_word word)
{
	struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	struct dp_remote *remote = dp_remote_of_route(word);
	if (envelope_is_forwarded(env)) {
		if (env->explain != NULL)
			env->explain->filter = "another owner";
		return refuse_kind(w, offer, RESULT_STALE_ROUTE, REASON_WRONG_OWNER);
	}
	if (remote == NULL || !dp_remote_usable(remote, w->now_ns))
		return park_message(w, offer);
	return forward_offer(w, offer, remote);
}

enum delivered deliver_offer(struct dp_worker *w, struct offer *offer, route_word word)
{
	struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	// A7: behind what already waits for this key here.
	if (UNLIKELY(w->park.messages > 0) && park_waits(&w->park, env->key))
		return park_message(w, offer);
	if (UNLIKELY(route_tag(word) != ROUTE_LOCAL)) {
		if (route_tag(word) != ROUTE_ACTOR)
			return not_here(w, offer, word);
		if (env->spot_type.value != 0) // no intent makes an Actor
			return refuse_kind(w, offer, RESULT_INVALID_OPERATION, REASON_NONE);
	}
	struct dp_spot *spot = route_pointer(word);
	// Every delivery checks that the table led to the Spot that the message names.
	CHECK(spot_key_equal(spot->key, env->key));
	if (UNLIKELY(!lease_valid(w, w->now_ns))) {
		if (env->explain != NULL)
			env->explain->filter = "lease lost";
		return refuse_kind(w, offer, RESULT_STALE_ROUTE, REASON_LEASE_LOST);
	}
	if (UNLIKELY(spot_state(spot) >= SPOT_CLOSING))
		return meet_closing(w, offer, spot);
	if (UNLIKELY(env->spot_type.value != 0) && env->spot_type.value != spot->type->key.value)
		return refuse_kind(w, offer, RESULT_TYPE_MISMATCH, REASON_NONE);
	return reserve_and_admit(w, offer, spot);
}
