// SPDX-License-Identifier: BSD-3-Clause
#include "core/scheduler.h"

#include "core/actor.h"
#include "core/core.h"
#include "core/lifecycle.h"
#include "core/turn.h"

void scheduler_ready(struct dp_worker *w, struct dp_spot *spot)
{
	if (spot->readiness == SPOT_QUEUED)
		return;
	if (UNLIKELY(spot->gate == GATE_HOSTED)) {
		actor_ready(w, spot);
		return;
	}
	spot->readiness = SPOT_QUEUED;
	spot->ready_next = NULL;
	if (w->ready_head == NULL)
		w->ready_head = spot;
	else
		w->ready_tail->ready_next = spot;
	w->ready_tail = spot;
	w->ready_count++;
}

static struct dp_spot *pop(struct dp_worker *w)
{
	struct dp_spot *spot = w->ready_head;
	w->ready_head = spot->ready_next;
	w->ready_count--;
	return spot;
}

// A waiting turn keeps the gate: then only its answers run.
static bool has_work(const struct dp_spot *spot)
{
	if (spot->gate == GATE_WAITING)
		return spot->waiting->answers.head != NULL;
	return spot->application_list.head != NULL || spot->lifecycle_waiting > 0 ||
		spot->close_self == CLOSE_WISHED || spot->members_ready;
}

static void run_one(struct dp_worker *w, struct dp_spot *spot)
{
	if (spot->gate == GATE_WAITING) {
		turn_resume(w, spot, spot->waiting);
		return;
	}
	bool application = spot->application_list.head != NULL || spot->members_ready;
	switch (lane_choose(spot->lifecycle_waiting > 0, application, &spot->lifecycle_run)) {
	case LANE_LIFECYCLE:
		lifecycle_run(w, spot);
		return;
	case LANE_APPLICATION:
		if (UNLIKELY(spot->members_ready)) {
			actor_run_member(w, spot);
			return;
		}
		turn_queued(w, spot, item_of(lane_list_pop(&spot->application_list)));
		return;
	case LANE_NONE:
		return;
	}
}

// The budget of the type also bounds the batch.
static void run_batch(struct dp_worker *w, struct dp_spot *spot)
{
	uint64_t start = w->last_ticks;
	uint64_t budget = spot->type->turn_budget_ticks;
	if (spot->close_self == CLOSE_WISHED)
		lifecycle_tell_close_self(w, spot);
	// A Spot may be here for nothing: a message came, and its gate is kept by a turn that waits.
	while (has_work(spot) && spot->close_self != CLOSE_WISHED) {
		run_one(w, spot);
		// One reading ends this turn and starts the next, here or in another Spot.
		if (turn_clock(w) - start >= budget)
			break;
	}
}

bool scheduler_run(struct dp_worker *w)
{
	uint32_t n = w->ready_count;
	if (n == 0)
		return false;
	uint64_t start = turn_clock(w);
	uint64_t pass_ticks = w->pass_ticks;
	while (n-- > 0) {
		struct dp_spot *spot = pop(w);
		run_batch(w, spot);
		spot->readiness = SPOT_IDLE;
		if (has_work(spot))
			scheduler_ready(w, spot);
		else if (spot->closing != NULL)
			lifecycle_try_close(w, spot);
		// Receiving must go on, whatever the handlers take.
		if (w->last_ticks - start >= pass_ticks)
			break;
	}
	return true;
}
