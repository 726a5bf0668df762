// SPDX-License-Identifier: BSD-3-Clause
#include "core/turn.h"

#include "base/check.h"
#include "core/core.h"
#include "core/deliver.h"
#include "core/explain.h"
#include "core/lifecycle.h"
#include "core/scheduler.h"
#include "core/turn_inline.h"
#include "core/timer.h"

static void account(struct dp_worker *w, struct dp_spot *spot, uint64_t took)
{
	w->turn_ticks += took;
	if (LIKELY(took <= spot->type->turn_budget_ticks))
		return;
	COUNT(w, turn_overruns);
	spot->overruns++;
	struct fact_node *node = fact_begin(w);
	if (node == NULL)
		return; // the counters still say it
	node->fact.kind = DP_FACT_OVERRUN;
	node->fact.worker = w->index;
	node->fact.key = spot->key;
	node->fact.as.overrun.spot = spot;
	node->fact.as.overrun.took_ns = ticks_to_ns(w, took);
	fact_post(w, node);
}

uint64_t turn_clock(struct dp_worker *w)
{
	uint64_t ticks = clock_ticks(w->clock);
	struct dp_spot *spot = w->timed_spot;
	w->turn_now_ns = w->now_ns + ticks_to_ns(w, ticks - w->now_ticks);
	if (spot != NULL) {
		account(w, spot, ticks - w->last_ticks);
		__atomic_store_n(&spot->last_finished_boot_ns, w->turn_now_ns, __ATOMIC_RELAXED);
	}
	w->timed_spot = NULL;
	w->last_ticks = ticks;
	return ticks;
}

static void explain_turn(struct dp_worker *w, struct envelope *env, const char *what)
{
	env->explain->turn = what;
	env->explain->turn_ticks += clock_ticks(w->clock) - w->last_ticks;
}

static void fault_answer(struct turn *t)
{
	if (t->answered)
		return;
	t->answered = 1;
	t->reply_pending = 1;
	t->reply_result = result_make(RESULT_INTERNAL_FAILURE, REASON_HANDLER_FAULT, ACCEPTED_YES);
	t->reply_content = WIRE_CONTENT_BYTES;
	t->reply_bytes = 0;
}

static void ok_answer(struct turn *t)
{
	if (t->answered)
		return;
	t->answered = 1;
	t->reply_pending = 1;
	t->reply_result = result_ok();
	t->reply_content = WIRE_CONTENT_BYTES;
	t->reply_bytes = 0;
}

// Sends what the turn answered. A frame is consumed.
static void send_answer(struct dp_worker *w, struct frame *frame)
{
	struct turn *t = &w->turn;
	const uint8_t *body = t->reply_item != NULL ? t->reply_item->payload : t->reply_room;
	struct reply reply = {.result = t->reply_result, .content = t->reply_content,
		.payload = span_of(body, t->reply_bytes)};
	if (UNLIKELY(t->env->explain != NULL))
		explain_turn(w, t->env, "ran");
	egress_reply(w, t->env, frame, &reply);
	t->reply_pending = 0;
	if (t->reply_item != NULL)
		item_end(w, &t->reply_item->head);
	t->reply_item = NULL;
}

void turn_answer(struct dp_worker *w, enum spotlane_outcome outcome)
{
	if (UNLIKELY(outcome != SPOTLANE_DONE))
		fault_answer(&w->turn); // waits for nothing, or may not wait
	ok_answer(&w->turn);
	send_answer(w, w->turn.frame);
}

static void leave(struct dp_worker *w)
{
	w->turn.serial = 0;
	turn_unmark(w);
}

// Terminal completion (L5): the reservation goes back, once.
static void finish(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	struct timer *timer = item->kind == ITEM_TICK ? timer_of_tick(item) : NULL;
	COUNT(w, messages_delivered);
	spot->turns++;
	if (item->calls_open > 0 || item->answers.head != NULL)
		call_abandon(w, item);
	deliver_item_end(w, item);
	if (timer != NULL) {
		turn_clock(w); // the next tick is planned from the end of this one
		timer_tick_end(w, timer);
	}
	if (UNLIKELY(spot->close_self == CLOSE_WISHED))
		lifecycle_tell_close_self(w, spot);
}

static void keep_turn(struct dp_worker *w, struct dp_spot *spot, struct item *item, bool yields)
{
	item->answered = w->turn.answered;
	if (yields) {
		item->leave = TURN_YIELDED;
		spot->yields++;
		spot->gate = GATE_IDLE;
		if (item->answers.head != NULL)
			turn_requeue(w, item);
		return;
	}
	item->leave = TURN_WAITING;
	spot->waiting = item;
	spot->running_since_boot_ns = w->turn_now_ns;
	spot->gate = GATE_WAITING;
	if (item->answers.head != NULL)
		scheduler_ready(w, spot);
}

void turn_requeue(struct dp_worker *w, struct item *item)
{
	struct dp_spot *place = item->env.spot; // the Spot, or the Actor's place whose lane it holds
	CHECK(item->leave == TURN_YIELDED);
	item->leave = TURN_QUEUED;
	lane_list_push(&place->application_list, &item->head);
	scheduler_ready(w, place);
}

static void run(struct dp_worker *w, struct dp_spot *spot, const struct turn_event *event)
{
	struct turn *t = &w->turn;
	struct item *item = t->item;
	enum spotlane_outcome outcome = spot->type->ops->run(spot, turn_handle(w), event);
	bool stays = (outcome == SPOTLANE_WAIT || outcome == SPOTLANE_YIELD) && item != NULL &&
		(item->calls_open > 0 || item->answers.head != NULL);
	if (stays) {
		if (t->reply_pending)
			send_answer(w, NULL);
	} else {
		turn_answer(w, outcome);
	}
	leave(w);
	if (stays) {
		keep_turn(w, spot, item, outcome == SPOTLANE_YIELD);
		return;
	}
	spot->gate = GATE_IDLE;
	if (item != NULL)
		finish(w, spot, item);
}

// S4, O8, M7: whether an admitted message may still start. Zero kind: it may.
static struct result may_start(
	const struct dp_worker *w, const struct dp_spot *spot, const struct item *item)
{
	if (!lease_valid_ticks(w, w->last_ticks))
		return result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST);
	if (item->env.authority != spot->authority_generation)
		return result_refused(RESULT_STALE_ROUTE, REASON_NONE);
	if (item->env.deadline_boot_ns <= w->turn_now_ns)
		return result_refused(RESULT_DEADLINE_EXCEEDED, REASON_NONE);
	return (struct result){0, 0, 0};
}

static void tick_turn(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	struct spotlane_tick tick;
	struct turn_event event = {.tick = &tick};
	// A tick has no caller whose budget could be spent: its own begins with its turn.
	item->env.deadline_boot_ns = w->turn_now_ns + w->dp->default_budget_ns;
	struct result no = may_start(w, spot, item);
	if (no.kind != 0)
		COUNT(w, timer_ticks_left_out);
	if (no.kind != 0 || !timer_tick_begin(w, item, &tick)) {
		struct timer *timer = timer_of_tick(item);
		deliver_drop(w, item, no);
		timer_tick_end(w, timer);
		return;
	}
	turn_begin(w, spot, &item->env, item, NULL);
	run(w, spot, &event);
}

void turn_queued(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	if (item->leave == TURN_QUEUED) {
		spot->yields--;
		turn_resume(w, spot, item);
		return;
	}
	if (UNLIKELY(item->kind == ITEM_TICK)) {
		tick_turn(w, spot, item);
		return;
	}
	struct result no = may_start(w, spot, item);
	if (UNLIKELY(no.kind != 0) || UNLIKELY(item->cancelled)) {
		if (item->env.explain != NULL)
			item->env.explain->turn = "not started";
		deliver_drop(w, item, no);
		return;
	}
	if (item->env.process_bytes > 0) { // P1: released when the handler starts
		ledger_release(&w->shard, item->env.process_bytes);
		item->env.process_bytes = 0;
	}
	if (UNLIKELY(item->env.explain != NULL))
		item->env.explain->queue_ticks = w->last_ticks - item->env.since_ticks;
	struct spotlane_message message;
	struct turn_event event = {.message = &message};
	turn_message(&item->env, &message);
	turn_begin(w, spot, &item->env, item, NULL);
	run(w, spot, &event);
}

// O3: a continuation is a turn, and there is none after the lease. The message was accepted and
// began; it ends here.
static void end_without_lease(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	struct timer *timer = item->kind == ITEM_TICK ? timer_of_tick(item) : NULL;
	call_abandon(w, item);
	if (item->answered)
		item->env.reply.kind = REPLY_NOWHERE;
	deliver_drop(w, item, result_make(RESULT_STALE_ROUTE, REASON_LEASE_LOST, ACCEPTED_YES));
	if (timer != NULL)
		timer_tick_end(w, timer);
	spot->gate = GATE_IDLE;
}

void turn_resume(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	spot->waiting = NULL;
	spot->running_since_boot_ns = 0;
	if (UNLIKELY(!lease_valid_ticks(w, w->last_ticks))) {
		end_without_lease(w, spot, item);
		return;
	}
	struct item *answer = item_of(lane_list_pop(&item->answers));
	struct result result = item_result(answer);
	struct spotlane_answer given = {.kind = result.kind,
		.reason = result.reason,
		.accepted = result.accepted,
		.content = answer->env.content,
		.payload = {answer->env.payload, answer->env.payload_bytes}};
	struct turn_event event = {.answer = &given, .call = {answer->call}};
	turn_begin(w, spot, &item->env, item, NULL);
	run(w, spot, &event);
	item_end(w, &answer->head);
}
