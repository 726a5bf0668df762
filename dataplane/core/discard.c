// SPDX-License-Identifier: BSD-3-Clause
// A Spot that is freed with what it still holds: the node ends by force, or at its deadline, and
// its workers are over. Nobody is answered (callers find out by their own deadlines), no callback
// runs; every block goes back to its arena, so that the end is as clean as any.
#include "base/check.h"
#include "base/mem.h"
#include "core/actor.h"
#include "core/core.h"
#include "core/deliver.h"
#include "core/timer.h"

static void discard_item(struct dp_worker *w, struct item *item)
{
	call_abandon(w, item);
	deliver_item_end(w, item);
}

// Yielded turns are held by nothing but their open calls.
static void discard_yielded(struct dp_worker *w, struct dp_spot *spot)
{
	for (uint32_t i = 0; i < w->calls.slots_used; i++) {
		struct call_slot *slot = &w->calls.slots[i];
		if (slot->used && slot->spot == spot && slot->turn->leave == TURN_YIELDED)
			discard_item(w, slot->turn);
	}
}

void dp_spot_discard(struct dp_spot *spot)
{
	struct item_head *head;
	if (spot == NULL)
		return;
	struct dp_worker *w = spot->dp->workers[spot->home_worker];
	discard_yielded(w, spot);
	if (spot->waiting != NULL)
		discard_item(w, spot->waiting);
	while ((head = lane_list_pop(&spot->application_list)) != NULL)
		discard_item(w, item_of(head));
	while ((head = lane_list_pop(&spot->lifecycle_list)) != NULL)
		mem_free(head);
	mem_free(spot->closing);
	timer_discard_all(w, spot);
	mem_free(atomic_load_explicit(&spot->members, memory_order_relaxed));
	mem_free(spot);
}

// Turns of a User Spot's member are kept by the Spot's gate.
static void discard_turns_of(struct dp_worker *w, struct dp_spot *place)
{
	struct dp_spot *gate = actor_gate(place);
	for (uint32_t i = 0; i < w->calls.slots_used; i++) {
		struct call_slot *slot = &w->calls.slots[i];
		if (slot->used && slot->turn->leave == TURN_YIELDED && slot->turn->env.spot == place)
			discard_item(w, slot->turn);
	}
	if (gate->waiting != NULL && gate->waiting->env.spot == place) {
		discard_item(w, gate->waiting);
		gate->waiting = NULL;
	}
}

void dp_actor_discard(struct dp_actor *actor)
{
	struct item_head *head;
	if (actor == NULL)
		return;
	struct dp_worker *w = actor->base.dp->workers[actor->base.home_worker];
	discard_turns_of(w, &actor->base);
	while ((head = lane_list_pop(&actor->base.application_list)) != NULL)
		discard_item(w, item_of(head));
	mem_free(actor->leaving);
	timer_discard_all(w, &actor->base);
	mem_free(actor);
}
