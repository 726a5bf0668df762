// SPDX-License-Identifier: BSD-3-Clause
#include "core/lifecycle.h"

#include "base/check.h"
#include "core/actor.h"
#include "core/core.h"
#include "core/deliver.h"
#include "core/scheduler.h"
#include "core/timer.h"
#include "core/turn_inline.h"

void lifecycle_enqueue(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	lane_list_push(&spot->lifecycle_list, &command->head);
	spot->lifecycle_waiting++;
	scheduler_ready(w, spot);
}

static struct dp_fact *fact_of(struct dp_worker *w, struct command *command, enum dp_fact_kind kind)
{
	struct dp_fact *fact = &command->node.fact;
	command->node.told = 1;
	fact->kind = kind;
	fact->worker = w->index;
	fact->key = command->spot->key;
	return fact;
}

void lifecycle_give_up_place(struct command *command)
{
	if (command->charge_bytes > 0)
		lane_return(&command->spot->lifecycle, command->charge_bytes);
	command->charge_bytes = 0;
}

static void construct(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	CHECK(spot_state(spot) == SPOT_NEW);
	w->timed_spot = spot;
	turn_mark(w, spot);
	spot->gate = GATE_RUNNING;
	struct result result = spot->type->ops->construct(
		spot, span_of(command->argument, command->argument_bytes));
	spot->gate = GATE_IDLE;
	turn_unmark(w);
	spot_set_state(spot, result.kind == RESULT_OK ? SPOT_READY : SPOT_CLOSED);
	lifecycle_give_up_place(command);
	struct dp_fact *fact = fact_of(w, command, DP_FACT_CONSTRUCTED);
	fact->as.constructed.spot = spot;
	fact->as.constructed.result = result;
	fact_post(w, &command->node);
}

static void close_begin(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	enum spot_state state = spot_state(spot);
	if (state >= SPOT_CLOSING) { // merged with the one under way
		lifecycle_give_up_place(command);
		command_done(w, command);
		return;
	}
	spot_set_state(spot, SPOT_CLOSING);
	spot->closing = command;
	command->next_closing = w->closing;
	w->closing = command;
}

void lifecycle_open(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	CHECK(spot->home_worker == w->index);
	if (command->first != NULL) {
		// Its process charge crossed with it unless it was parked here.
		if (command->crossed)
			ledger_hand_in(&w->shard, command->first->env.process_bytes);
		lane_list_push(&spot->application_list, &command->first->head);
		command->first = NULL;
		scheduler_ready(w, spot);
	}
	if (lane_level(&spot->application).opening)
		lane_open(&spot->application);
	struct dp_fact *fact = fact_of(w, command, DP_FACT_OPENED);
	fact->as.opened.spot = spot;
	fact_post(w, &command->node);
}

static void unlink_closing(struct dp_worker *w, struct command *command)
{
	struct command **link = &w->closing;
	while (*link != command)
		link = &(*link)->next_closing;
	*link = command->next_closing;
}

// Nothing of the Spot runs, waits, or lies in its lists.
static bool is_quiet(const struct dp_spot *spot)
{
	return spot->gate == GATE_IDLE && spot->yields == 0 && spot->application_list.head == NULL &&
		spot->lifecycle_waiting == 0 && !spot->members_ready;
}

// The lane is sealed: closing callback, dispose, CLOSED.
static void close_sealed(struct dp_worker *w, struct dp_spot *spot, struct command *command)
{
	spot_set_state(spot, SPOT_SEALED);
	timer_end_all(w, spot);
	turn_clock(w);
	w->timed_spot = spot;
	turn_mark(w, spot);
	spot->gate = GATE_RUNNING;
	actor_end_members(w, spot);
	bool failed = spot->type->ops->closing(spot, (enum spotlane_close_reason)command->reason,
			      command->deadline_boot_ns) != 0;
	spot->type->ops->dispose(spot);
	spot->gate = GATE_IDLE;
	turn_unmark(w);
	turn_clock(w);
	spot_set_state(spot, SPOT_CLOSED);
	lifecycle_give_up_place(command);
	// Told at the end of this loop turn: until then the Spot's memory stays.
	struct dp_fact *fact = fact_of(w, command, DP_FACT_CLOSED);
	fact->as.closed.spot = spot;
	fact->as.closed.callback_failed = failed;
	fact_post(w, &command->node);
}

void lifecycle_try_close(struct dp_worker *w, struct dp_spot *spot)
{
	struct command *command = spot->closing;
	if (!is_quiet(spot) || !actor_seal_members(spot) || !lane_seal(&spot->application))
		return;
	spot->closing = NULL;
	unlink_closing(w, command);
	close_sealed(w, spot, command);
}

// C4: quiet is judged here, where turns run, and holds from then on: the seal takes only an empty lane.
static void close_idle(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	if (spot_state(spot) >= SPOT_CLOSING) { // merged with the one under way
		lifecycle_give_up_place(command);
		command_done(w, command);
		return;
	}
	if (spot_state(spot) == SPOT_READY && is_quiet(spot) && !lane_level(&spot->application).opening &&
		w->turn_now_ns >= spot->last_finished_boot_ns + command->idle_ns &&
		lane_seal(&spot->application)) {
		close_sealed(w, spot, command);
		return;
	}
	lifecycle_give_up_place(command);
	struct dp_fact *fact = fact_of(w, command, DP_FACT_KEPT);
	fact->as.kept.spot = spot;
	fact_post(w, &command->node);
}

void lifecycle_run(struct dp_worker *w, struct dp_spot *spot)
{
	struct command *command = (struct command *)(void *)lane_list_pop(&spot->lifecycle_list);
	spot->lifecycle_waiting--;
	switch ((enum command_kind)command->what) {
	case COMMAND_CONSTRUCT:
		construct(w, command);
		return;
	case COMMAND_CLOSE:
		close_begin(w, command);
		return;
	case COMMAND_CLOSE_IDLE:
		close_idle(w, command);
		return;
	case COMMAND_ACTOR_ADMIT:
		actor_admit(w, command);
		return;
	case COMMAND_ACTOR_ENTER:
		actor_enter(w, command);
		return;
	case COMMAND_ACTOR_LEAVE:
		actor_leave(w, command);
		return;
	case COMMAND_OPEN:
	case COMMAND_RELEASE:
	case COMMAND_FAIL:
	case COMMAND_CONTROL_REPLY:
		break;
	}
	CHECK(!"not lifecycle work");
}

bool lifecycle_tick(struct dp_worker *w)
{
	struct command *next;
	bool any = false;
	for (struct command *c = w->closing; c != NULL; c = next) {
		struct dp_spot *spot = c->spot;
		next = c->next_closing;
		if (spot->readiness != SPOT_IDLE)
			continue;
		lifecycle_try_close(w, spot);
		any |= spot->closing == NULL;
	}
	return any;
}

void lifecycle_tell_close_self(struct dp_worker *w, struct dp_spot *spot)
{
	struct fact_node *node = fact_begin(w);
	if (node == NULL) { // the wish stays and keeps the Spot in the ready set
		scheduler_ready(w, spot);
		return;
	}
	node->fact.kind = DP_FACT_CLOSE_SELF;
	node->fact.worker = w->index;
	node->fact.key = spot->key;
	node->fact.as.close_self.spot = spot;
	spot->close_self = CLOSE_TOLD;
	fact_post(w, node);
}
