// SPDX-License-Identifier: BSD-3-Clause
// An order: one Spot that waits, yields, uses a timer and hands work off (docs/MODULES.md walks
// through it). It asks two other Spots, named by id: "prices" and "carrier".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

// Messages to an order.
enum {
	ORDER_ADD = 1,    // payload: an article. Waits for its price; answers the sum so far
	ORDER_SHIP = 2,   // yields while the carrier works; answers what the carrier said
	ORDER_STATUS = 3, // answers at once, also while a shipment is under way
	ORDER_SEAL = 4,   // a slow check sum of the articles, off the worker
};
// Messages from an order to the Spots it asks.
enum { PRICE_OF = 1, SHIP = 1 };

enum { ARTICLES_BYTES = 256, HOLD_US = 15 * 60 * 1000000 };

enum step { STEP_NONE = 0, STEP_PRICE, STEP_SHIP, STEP_SEAL };

struct order {
	char articles[ARTICLES_BYTES]; // one a line
	size_t articles_bytes;
	unsigned long sum;
	int shipping, expired;
	// Which call is which: several may be open, since a turn that yielded lets others run.
	spotlane_call price_call, ship_call, seal_call;
};

static const struct spotlane_host *host;

static struct order *order_of(spotlane_instance self)
{
	return (struct order *)(uintptr_t)self.value;
}

static struct spotlane_bytes text(const char *s)
{
	return (struct spotlane_bytes){s, strlen(s)};
}

static void answer_sum(spotlane_turn t, const struct order *o)
{
	char line[64];
	const char *state = o->shipping ? " shipping" : "";
	if (o->expired)
		state = " expired";
	snprintf(line, sizeof(line), "%lu%s", o->sum, state);
	host->reply(t, SPOTLANE_TEXT, text(line));
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct order *o = calloc(1, sizeof(*o));
	(void)info;
	if (o == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)o;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free(order_of(self));
}

// An order that nobody touches for a quarter of an hour expires. Each article sets the timer anew:
// a tick of the earlier setting, even one that waits in the lane already, does not run.
static void hold(spotlane_turn t)
{
	struct spotlane_timer once = {.first_us = HOLD_US};
	host->timer_set(t, text("expire"), &once);
}

// WAIT: the order must not change between the question and the price, so it takes no other message.
static enum spotlane_outcome add(spotlane_turn t, struct order *o, struct spotlane_bytes article)
{
	if (article.size == 0 || o->articles_bytes + article.size + 1 > sizeof(o->articles)) {
		host->reply_error(t, SPOTLANE_REJECTED, text("no article, or too many"));
		return SPOTLANE_DONE;
	}
	memcpy(o->articles + o->articles_bytes, article.data, article.size); // borrowed: copied
	o->articles_bytes += article.size;
	o->articles[o->articles_bytes++] = '\n';
	hold(t);
	o->price_call = host->request(t, text("prices"), PRICE_OF, SPOTLANE_TEXT, article, 0);
	if (o->price_call.value != 0)
		return SPOTLANE_WAIT;
	host->reply_error(t, SPOTLANE_CAPACITY_EXCEEDED, text("no room to ask"));
	return SPOTLANE_DONE;
}

// YIELD: the carrier takes its time, and the order goes on answering. So what it knew before may
// have changed when `answered` comes.
static enum spotlane_outcome ship(spotlane_turn t, struct order *o)
{
	if (o->shipping || o->expired) {
		host->reply_error(
			t, SPOTLANE_REJECTED, text(o->shipping ? "under way" : "expired"));
		return SPOTLANE_DONE;
	}
	o->ship_call = host->request(t, text("carrier"), SHIP, SPOTLANE_TEXT,
		(struct spotlane_bytes){o->articles, o->articles_bytes}, 0);
	if (o->ship_call.value == 0) {
		host->reply_error(t, SPOTLANE_CAPACITY_EXCEEDED, text("no room to ask"));
		return SPOTLANE_DONE;
	}
	o->shipping = 1;
	host->timer_cancel(t, text("expire"));
	return SPOTLANE_YIELD;
}

// Runs on the pool for blocking work: it sees its argument and nothing else.
static size_t check_sum(const void *argument, size_t argument_size, void *out, size_t capacity)
{
	unsigned long sum = 5381;
	for (size_t i = 0; i < argument_size; i++)
		sum = sum * 33 + ((const unsigned char *)argument)[i];
	int n = snprintf(out, capacity, "%lx", sum);
	return n < 0 ? 0 : (size_t)n;
}

static enum spotlane_outcome seal(spotlane_turn t, struct order *o)
{
	o->seal_call = host->offload(
		t, check_sum, (struct spotlane_bytes){o->articles, o->articles_bytes}, 32);
	if (o->seal_call.value != 0)
		return SPOTLANE_YIELD;
	host->reply_error(t, SPOTLANE_CAPACITY_EXCEEDED, text("the pool is full"));
	return SPOTLANE_DONE;
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	struct order *o = order_of(self);
	spotlane_turn t = spotlane_instance_common(turn);
	switch (m->type) {
	case ORDER_ADD:
		return add(t, o, m->payload);
	case ORDER_SHIP:
		return ship(t, o);
	case ORDER_STATUS:
		answer_sum(t, o);
		return SPOTLANE_DONE;
	case ORDER_SEAL:
		return seal(t, o);
	default:
		host->reply_error(t, SPOTLANE_UNSUPPORTED, text("no such message"));
		return SPOTLANE_DONE;
	}
}

static enum step step_of(const struct order *o, spotlane_call call)
{
	if (call.value == o->price_call.value)
		return STEP_PRICE;
	if (call.value == o->ship_call.value)
		return STEP_SHIP;
	return call.value == o->seal_call.value ? STEP_SEAL : STEP_NONE;
}

static enum spotlane_outcome answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *a)
{
	struct order *o = order_of(self);
	spotlane_turn t = spotlane_instance_common(turn);
	char number[24] = "";
	enum step step = step_of(o, call);
	if (step == STEP_SHIP)
		o->shipping = 0;
	// The other side refused, or was silent: the caller decides what next.
	if (a->kind != SPOTLANE_OK) {
		host->reply_error(t, SPOTLANE_UNAVAILABLE, text("could not be asked"));
		return SPOTLANE_DONE;
	}
	if (step == STEP_PRICE) {
		memcpy(number, a->payload.data,
			a->payload.size < sizeof(number) ? a->payload.size : sizeof(number) - 1);
		o->sum += strtoul(number, NULL, 10);
		answer_sum(t, o);
	} else {
		host->reply(t, SPOTLANE_TEXT, a->payload);
	}
	return SPOTLANE_DONE;
}

static enum spotlane_outcome ticked(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_tick *tick)
{
	struct order *o = order_of(self);
	(void)turn;
	(void)tick; // the only timer here
	o->expired = 1;
	o->articles_bytes = 0;
	o->sum = 0;
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type order = {
	.name = "order",
	.limits = {.application_count_max = 64},
	.construct = construct,
	.dispose = dispose,
	.message = message,
	.answered = answered,
	.ticked = ticked,
};

static int attach(const struct spotlane_host *h)
{
	// timer_set is newer than the first nodes: a module that needs it says so.
	if (h->size < sizeof(*h))
		return 1;
	host = h;
	return 0;
}

static const struct spotlane_instance_type *const types[] = {&order, NULL};

extern const struct spotlane_module spotlane_module_v1;
const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "order",
	.version = "1",
	.attach = attach,
	.instance_types = types,
};
