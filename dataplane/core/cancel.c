// SPDX-License-Identifier: BSD-3-Clause
#include "core/cancel.h"

#include <string.h>

#include "core/call.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/park.h"

static bool is_of(const struct envelope *env, uint16_t caller, uint64_t call)
{
	return env->reply.kind == REPLY_CALL && env->reply.ingress_worker == caller &&
		env->reply.operation_id == call;
}

// In the lane of a Spot at home here. A turn that has begun is not found: it is on no list, or
// fresh no more.
static struct item *queued(const struct dp_spot *spot, uint16_t caller, uint64_t call)
{
	struct item_head *i = spot->application_list.head;
	while (i != NULL &&
		(item_of(i)->leave != TURN_FRESH || !is_of(&item_of(i)->env, caller, call)))
		i = i->next;
	return i == NULL ? NULL : item_of(i);
}

static void cancel_queued(
	struct dp_worker *w, const struct dp_spot *spot, uint16_t caller, uint64_t call)
{
	struct item *item = queued(spot, caller, call);
	if (item == NULL)
		return;
	struct reply reply = {.result = result_refused(RESULT_CANCELLED, REASON_NONE)};
	COUNT(w, messages_cancelled);
	egress_reply(w, &item->env, NULL, &reply);
	item->env.reply.kind = REPLY_NOWHERE;
	item->cancelled = 1;
}

static void tell_home(struct dp_worker *w, const struct dp_spot *spot, uint64_t call)
{
	struct item *item = item_new(w, ITEM_CANCEL, 0);
	if (item == NULL)
		return; // the wish is lost, the call ends by itself
	memset(&item->env, 0, sizeof(item->env));
	item->env.key = spot->key;
	item->env.reply.ingress_worker = (uint8_t)w->index;
	item->call = call;
	cross_send(w, spot->home_worker, &item->head); // behind the request itself
}

bool cancel_call(struct dp_worker *w, struct dp_spot *spot, uint64_t call)
{
	struct spot_key key;
	if (!call_target(w, spot, call, &key))
		return false;
	if (park_cancel(w, key, call))
		return true;
	const struct dp_spot *target = dp_spot_of_route(route_lookup(w->dp->config.routes, key));
	if (target == NULL)
		return true;
	if (target->home_worker == w->index)
		cancel_queued(w, target, w->index, call);
	else
		tell_home(w, target, call);
	return true;
}

void cancel_arrived(struct dp_worker *w, struct item *item)
{
	const struct dp_spot *spot =
		dp_spot_of_route(route_lookup(w->dp->config.routes, item->env.key));
	if (spot != NULL && spot->home_worker == w->index)
		cancel_queued(w, spot, item->env.reply.ingress_worker, item->call);
	item_end(w, &item->head);
}
