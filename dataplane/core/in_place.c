// SPDX-License-Identifier: BSD-3-Clause
#include "core/in_place.h"

#include "core/core.h"
#include "core/explain.h"
#include "core/scheduler.h"
#include "core/turn_inline.h"

static inline bool may_run(
	const struct dp_worker *w, const struct offer *offer, const struct dp_spot *spot)
{
	return offer->frame != NULL && spot->home_worker == w->index && spot->gate == GATE_IDLE &&
		spot->readiness == SPOT_IDLE && spot_state(spot) == SPOT_READY &&
		(spot->type->flags & SPOTLANE_TYPE_NOWAIT) && offer->env.explain == NULL &&
		offer->env.spot_type.value == 0 && lease_valid(w, w->now_ns);
}

static void run(struct dp_worker *w, struct dp_spot *spot, struct offer *offer)
{
	struct spotlane_message message;
	struct turn_event event = {.message = &message};
	turn_message(&offer->env, &message);
	turn_begin(w, spot, &offer->env, NULL, offer->frame);
	enum spotlane_outcome outcome = spot->type->ops->run(spot, turn_handle(w), &event);
	struct turn *t = &w->turn;
	if (UNLIKELY(outcome != SPOTLANE_DONE) || UNLIKELY(!t->reply_pending) ||
		UNLIKELY(!egress_turn_frame(w, offer->queue, &offer->env, offer->frame, t)))
		turn_answer(w, outcome);
	t->serial = 0;
	turn_unmark(w);
	spot->gate = GATE_IDLE;
	spot->turns++;
}

// Its lease ran out between admission and the turn's start (S4): admitted, and ended without a turn.
static void drop(struct dp_worker *w, struct offer *offer)
{
	struct reply reply = {.result = result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST)};
	COUNT(w, messages_accepted);
	COUNT(w, messages_dropped);
	counter_add(&w->counters.drops[RESULT_STALE_ROUTE], 1);
	egress_reply(w, &offer->env, offer->frame, &reply);
}

bool in_place_try(struct dp_worker *w, struct offer *offer, struct dp_spot *spot)
{
	if (!may_run(w, offer, spot))
		return false;
	uint32_t charge = deliver_charge(w->dp->config.accounting, &offer->env, false);
	if (!lane_reserve_empty(&spot->application, *spot_bounds(spot), charge, w->sole))
		return false;
	offer->env.spot = spot;
	offer->env.charge_bytes = charge;
	if (LIKELY(lease_valid_ticks(w, turn_clock(w)))) {
		w->in_place++;
		run(w, spot, offer);
	} else {
		drop(w, offer);
	}
	// What the handler sent to its own Spot waits in the lane, and then something is left reserved.
	bool empty = lane_return_last(&spot->application, charge, w->sole);
	if ((UNLIKELY(!empty) && spot->application_list.head != NULL) ||
		UNLIKELY(spot->close_self == CLOSE_WISHED))
		scheduler_ready(w, spot);
	return true;
}

void in_place_count(struct dp_worker *w)
{
	uint64_t n = w->in_place;
	w->in_place = 0;
	counter_add(&w->counters.messages_accepted, n);
	counter_add(&w->counters.messages_in_place, n);
	counter_add(&w->counters.messages_delivered, n);
}
