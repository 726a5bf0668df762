// SPDX-License-Identifier: BSD-3-Clause
#include "core/timer.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "core/core.h"
#include "core/deliver.h"

enum { PERIOD_US_MIN = 1000, CATCH_UP_DEFAULT = 8 };
#define TIME_US_MAX (UINT64_C(10) * 365 * 86400 * 1000000)
// A tick that found its lane full is tried again no sooner than this.
#define AGAIN_NS UINT64_C(1000000)

enum timer_state {
	TIMER_ARMED = 1, // on the wheel
	TIMER_OUT = 2,   // its tick is queued or under way; the next is planned when that ends
	TIMER_DUE = 3,   // due, but a tick of an earlier setting has not ended
	TIMER_ENDED = 4, // cancelled; stays only until a tick of it has ended
};

struct timer {
	struct item_head head;
	uint8_t kind;       // ITEM_BLOCK
	uint8_t state;      // enum timer_state
	uint8_t ticks_out;  // 1: an item of it exists
	uint8_t name_bytes;
	struct wheel_node node;
	struct dp_spot *spot;
	struct timer *next; // of the Spot
	uint64_t generation;
	uint64_t due_ns;
	uint64_t period_ns; // 0 = once
	uint64_t left_out;  // since the last tick that ran
	enum spotlane_timer_overrun overrun;
	uint32_t catch_up_max;
	uint8_t name[];
};

// What a tick's item carries behind its struct.
struct tick_body {
	struct timer *timer;
	uint64_t generation;
	uint64_t due_ns;
	uint64_t left_out;
};

static const struct tick_body *body_of(const struct item *item)
{
	return (const struct tick_body *)(const void *)item->env.payload;
}

struct timer *timer_of_tick(const struct item *item)
{
	return body_of(item)->timer;
}

bool timer_wheel_init(struct dp_worker *w)
{
	w->timers = mem_zalloc(sizeof(*w->timers));
	w->timers_next_ns = UINT64_MAX;
	if (w->timers != NULL)
		wheel_init(w->timers, w->now_ns);
	return w->timers != NULL;
}

void timer_wheel_fini(struct dp_worker *w)
{
	struct wheel_node *node;
	// Those of Spots that were not closed: the node ends.
	while (w->timers != NULL && (node = wheel_take(w->timers, UINT64_MAX)) != NULL)
		item_free(w->arena, &container_of(node, struct timer, node)->head);
	mem_free(w->timers);
	w->timers = NULL;
}

// ---- setting ----
static struct timer **find(struct dp_spot *spot, struct span name)
{
	struct timer **link = &spot->timers;
	while (*link != NULL && ((*link)->name_bytes != name.size ||
					memcmp((*link)->name, name.data, name.size) != 0))
		link = &(*link)->next;
	return link;
}

static uint32_t count(const struct dp_spot *spot)
{
	uint32_t n = 0;
	for (const struct timer *t = spot->timers; t != NULL; t = t->next)
		n++;
	return n;
}

static void arm(struct dp_worker *w, struct timer *t, uint64_t at_ns)
{
	t->state = TIMER_ARMED;
	wheel_set(w->timers, &t->node, at_ns);
	if (at_ns < w->timers_next_ns)
		w->timers_next_ns = at_ns;
}

static bool setting_holds(struct span name, const struct spotlane_timer *s)
{
	return name.size > 0 && name.size <= SPOTLANE_TIMER_NAME_MAX && s->first_us <= TIME_US_MAX &&
		s->period_us <= TIME_US_MAX && (s->period_us == 0 || s->period_us >= PERIOD_US_MIN) &&
		(unsigned)s->overrun <= SPOTLANE_TIMER_DELAY_NEXT;
}

static struct timer *make(struct dp_worker *w, struct dp_spot *spot, struct span name)
{
	if (count(spot) >= SPOTLANE_TIMERS_MAX)
		return NULL;
	struct item_head *head = item_alloc(w->arena, sizeof(struct timer) + name.size);
	if (head == NULL)
		return NULL;
	struct timer *t = (struct timer *)(void *)head;
	memset((uint8_t *)t + sizeof(*head), 0, sizeof(*t) - sizeof(*head));
	t->kind = ITEM_BLOCK;
	t->spot = spot;
	t->name_bytes = (uint8_t)name.size;
	memcpy(t->name, name.data, name.size);
	t->next = spot->timers;
	spot->timers = t;
	return t;
}

bool timer_set(struct dp_worker *w, struct dp_spot *spot, struct span name,
	const struct spotlane_timer *setting)
{
	if (!spot->type->ops->hears_ticks(spot->type) || !setting_holds(name, setting) ||
		spot_state(spot) != SPOT_READY)
		return false;
	struct timer *t = *find(spot, name);
	if (t == NULL)
		t = make(w, spot, name);
	if (t == NULL)
		return false;
	t->generation++;
	t->left_out = 0;
	t->period_ns = setting->period_us * 1000;
	t->overrun = setting->overrun;
	t->catch_up_max = setting->catch_up_max > 0 ? setting->catch_up_max : CATCH_UP_DEFAULT;
	t->due_ns = w->turn_now_ns + setting->first_us * 1000;
	arm(w, t, t->due_ns);
	return true;
}

static void unlink_and_free(struct dp_worker *w, struct timer *t)
{
	struct timer **link = &t->spot->timers;
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	item_free(w->arena, &t->head);
}

// Stays while an item of it exists: a tick under way must not overlap one of a later setting.
static void end(struct dp_worker *w, struct timer *t)
{
	wheel_cancel(&t->node);
	t->generation++;
	t->state = TIMER_ENDED;
	if (!t->ticks_out)
		unlink_and_free(w, t);
}

bool timer_cancel(struct dp_worker *w, struct dp_spot *spot, struct span name)
{
	struct timer *t = *find(spot, name);
	if (t == NULL || t->state == TIMER_ENDED)
		return false;
	end(w, t);
	return true;
}

void timer_end_all(struct dp_worker *w, struct dp_spot *spot)
{
	while (spot->timers != NULL) {
		CHECK(!spot->timers->ticks_out);
		end(w, spot->timers);
	}
}

void timer_discard_all(struct dp_worker *w, struct dp_spot *spot)
{
	while (spot->timers != NULL) {
		wheel_cancel(&spot->timers->node);
		unlink_and_free(w, spot->timers);
	}
}

// ---- what is due ----
static void leave_out(struct dp_worker *w, struct timer *t, uint64_t n)
{
	t->left_out += n;
	t->due_ns += n * t->period_ns;
	counter_add(&w->counters.timer_ticks_left_out, n);
}

// From due_ns, the first tick not put out yet, to the one that comes next by the policy.
static void plan(struct dp_worker *w, struct timer *t)
{
	uint64_t now = w->turn_now_ns;
	uint64_t late = t->due_ns <= now ? (now - t->due_ns) / t->period_ns + 1 : 0;
	switch (t->overrun) {
	case SPOTLANE_TIMER_SKIP_LATE:
		leave_out(w, t, late);
		break;
	case SPOTLANE_TIMER_CATCH_UP_BOUNDED:
		if (late > t->catch_up_max)
			leave_out(w, t, late - t->catch_up_max);
		break;
	case SPOTLANE_TIMER_DELAY_NEXT:
		t->due_ns = now + t->period_ns;
		break;
	}
	arm(w, t, t->due_ns);
}

static bool put_out(struct dp_worker *w, struct timer *t)
{
	struct dp_spot *spot = t->spot;
	struct item *item = item_new(w, ITEM_TICK, sizeof(struct tick_body));
	if (item == NULL)
		return false;
	struct envelope *env = &item->env;
	memset(env, 0, sizeof(*env));
	env->key = spot->key;
	env->payload = item->payload;
	env->reply.kind = REPLY_NOWHERE;
	env->reply.ingress_worker = (uint8_t)w->index;
	uint32_t charge = deliver_item_charge(w, item);
	if (lane_reserve(&spot->application, *spot_bounds(spot), charge) != LANE_ADMITTED) {
		item_free(w->arena, &item->head);
		return false;
	}
	env->spot = spot;
	env->charge_bytes = charge;
	env->authority = spot->authority_generation;
	env->since_ticks = w->now_ticks;
	struct tick_body body = {t, t->generation, t->due_ns, t->left_out};
	memcpy(item->payload, &body, sizeof(body));
	COUNT(w, messages_accepted);
	t->ticks_out = 1;
	t->state = TIMER_OUT;
	t->left_out = 0;
	deliver_enqueue(w, item);
	return true;
}

static void not_now(struct dp_worker *w, struct timer *t)
{
	// A single tick and those to be made up for wait for room; the others are left out.
	if (t->period_ns == 0 || t->overrun == SPOTLANE_TIMER_CATCH_UP_BOUNDED) {
		arm(w, t, w->now_ns + AGAIN_NS);
		return;
	}
	leave_out(w, t, 1);
	plan(w, t);
}

static void due(struct dp_worker *w, struct timer *t)
{
	if (t->ticks_out) {
		t->state = TIMER_DUE;
		return;
	}
	if (spot_state(t->spot) >= SPOT_CLOSING) {
		end(w, t);
		return;
	}
	// A late start is late by the same rule.
	if (t->overrun == SPOTLANE_TIMER_SKIP_LATE && t->period_ns > 0)
		leave_out(w, t, (w->now_ns - t->due_ns) / t->period_ns);
	// O3: none starts after the lease ran out.
	if (!lease_valid(w, w->now_ns) || !put_out(w, t))
		not_now(w, t);
}

bool timer_tick(struct dp_worker *w)
{
	struct wheel_node *node;
	bool any = false;
	if (LIKELY(w->now_ns < w->timers_next_ns))
		return false;
	while ((node = wheel_take(w->timers, w->now_ns)) != NULL) {
		due(w, container_of(node, struct timer, node));
		any = true;
	}
	w->timers_next_ns = wheel_next_ns(w->timers);
	return any;
}

// ---- a tick's turn ----
bool timer_tick_begin(struct dp_worker *w, const struct item *item, struct spotlane_tick *out)
{
	const struct tick_body *body = body_of(item);
	const struct timer *t = body->timer;
	if (body->generation != t->generation) {
		COUNT(w, timer_ticks_old);
		return false;
	}
	COUNT(w, timer_ticks);
	out->name = (struct spotlane_bytes){t->name, t->name_bytes};
	out->due_ns = body->due_ns;
	out->generation = body->generation;
	out->left_out = body->left_out;
	return true;
}

void timer_tick_end(struct dp_worker *w, struct timer *t)
{
	t->ticks_out = 0;
	switch ((enum timer_state)t->state) {
	case TIMER_ARMED: // set anew meanwhile
		return;
	case TIMER_OUT:
		if (t->period_ns == 0) {
			end(w, t);
			return;
		}
		t->due_ns += t->period_ns;
		plan(w, t);
		return;
	case TIMER_DUE:
		arm(w, t, t->due_ns);
		return;
	case TIMER_ENDED:
		end(w, t);
		return;
	}
	CHECK(!"a timer's state");
}
