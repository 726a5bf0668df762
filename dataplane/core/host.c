// SPDX-License-Identifier: BSD-3-Clause
// What modules may ask of the host during a turn (X2, X3, X5, X6). Every function finds its worker
// through the turn's number and refuses a number that names no turn on the stack.
#include "core/host.h"

#include <string.h>

#include "core/call.h"
#include "core/cancel.h"
#include "core/copy.h"
#include "core/core.h"
#include "core/offload.h"
#include "core/push.h"
#include "core/resolve.h"
#include "core/timer.h"
#include "core/turn_inline.h"
#include "spot/name.h"

static uint8_t *reply_place(struct dp_worker *w, size_t bytes)
{
	struct turn *t = &w->turn;
	if (bytes <= sizeof(t->reply_room))
		return t->reply_room;
	t->reply_item = item_new(w, ITEM_BLOCK, bytes);
	return t->reply_item == NULL ? NULL : t->reply_item->payload;
}

static int answer(struct dp_worker *w, struct result result, uint16_t content, struct spotlane_bytes body)
{
	struct turn *t = &w->turn;
	if (!reply_is_wanted(t->env->reply.kind))
		return -1;
	if (t->answered) {
		COUNT(w, second_answers);
		return -1;
	}
	if (content > SPOTLANE_TEXT || body.size > w->dp->config.message_bytes_max)
		return -1;
	uint8_t *place = reply_place(w, body.size);
	if (place == NULL)
		return -1;
	copy_body(place, body.data, body.size);
	t->answered = 1;
	t->reply_pending = 1;
	t->reply_result = result;
	t->reply_content = content;
	t->reply_bytes = (uint32_t)body.size;
	return 0;
}

static int host_reply(spotlane_turn turn, uint16_t content, struct spotlane_bytes payload)
{
	struct dp_worker *w = turn_worker(turn.value);
	return w == NULL ? -1 : answer(w, result_ok(), content, payload);
}

static int host_reply_error(
	spotlane_turn turn, enum spotlane_result kind, struct spotlane_bytes text)
{
	struct dp_worker *w = turn_worker(turn.value);
	if (w == NULL || kind == SPOTLANE_OK || result_kind_name((uint8_t)kind) == NULL)
		return -1;
	struct result result =
		result_make((enum result_kind)kind, REASON_NONE, ACCEPTED_YES);
	return answer(w, result, SPOTLANE_TEXT, text);
}

enum delivered host_deliver(struct dp_worker *w, struct spot_key key, const struct host_message *m,
	uint64_t deadline_boot_ns, uint64_t call)
{
	struct offer offer = {.id = span_of(m->id.data, m->id.size), .id_checked = true};
	struct envelope *env = &offer.env;
	env->key = key;
	env->payload = m->payload.data;
	env->payload_bytes = (uint32_t)m->payload.size;
	env->deadline_boot_ns = deadline_boot_ns;
	env->since_ticks = w->last_ticks;
	env->message_type = m->type;
	env->content = m->content;
	env->reply.kind = call != 0 ? REPLY_CALL : REPLY_NOWHERE;
	env->reply.ingress_worker = (uint8_t)w->index;
	env->reply.operation_id = call;
	COUNT(w, messages_internal);
	return resolve_one(w, &offer);
}

bool host_message_is_sound(const struct dp_worker *w, const struct host_message *m)
{
	return id_is_valid(span_of(m->id.data, m->id.size)) && m->content <= SPOTLANE_TEXT &&
		m->payload.size <= w->dp->config.message_bytes_max;
}

static struct spot_key key_of(struct spotlane_bytes id)
{
	return spot_key_of(span_of(id.data, id.size));
}

static int host_send(spotlane_turn turn, struct spotlane_bytes id, uint16_t type, uint16_t content,
	struct spotlane_bytes payload)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct host_message m = {id, type, content, payload};
	if (w == NULL || !host_message_is_sound(w, &m))
		return -1;
	uint64_t deadline = w->turn_now_ns + w->dp->default_budget_ns;
	return host_deliver(w, key_of(id), &m, deadline, 0) == DELIVER_REFUSED ? -1 : 0;
}

static uint64_t call_deadline(const struct dp_worker *w, uint32_t budget_us)
{
	uint64_t own = w->turn.env->deadline_boot_ns;
	uint64_t asked = w->turn_now_ns + (uint64_t)budget_us * 1000;
	return budget_us == 0 || asked > own ? own : asked;
}

spotlane_call host_ask(
	struct dp_worker *w, struct spot_key key, const struct host_message *m, uint32_t budget_us)
{
	uint64_t deadline = call_deadline(w, budget_us);
	uint64_t call = call_begin(w, w->turn.spot, w->turn.item, key, deadline);
	if (call == 0)
		return (spotlane_call){0};
	COUNT(w, calls);
	host_deliver(w, key, m, deadline, call);
	return (spotlane_call){call};
}

static spotlane_call host_request(spotlane_turn turn, struct spotlane_bytes id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload, uint32_t budget_us)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct host_message m = {id, type, content, payload};
	// X3: awaiting one's own gate can never end.
	if (w == NULL || !w->turn.may_wait || !host_message_is_sound(w, &m) ||
		spot_key_equal(key_of(id), w->turn.spot->key))
		return (spotlane_call){0};
	return host_ask(w, key_of(id), &m, budget_us);
}

static spotlane_call host_offload(spotlane_turn turn,
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity),
	struct spotlane_bytes argument, size_t capacity)
{
	spotlane_call none = {0};
	struct dp_worker *w = turn_worker(turn.value);
	if (w == NULL || !w->turn.may_wait || work == NULL)
		return none;
	uint64_t call =
		call_begin(w, w->turn.spot, w->turn.item, (struct spot_key){0, 0}, UINT64_MAX);
	if (call == 0)
		return none;
	if (!offload_begin(w, call, work, span_of(argument.data, argument.size), capacity)) {
		call_cancel(w, call);
		return none;
	}
	COUNT(w, offloads);
	return (spotlane_call){call};
}

static uint64_t host_now_ns(spotlane_turn turn)
{
	struct dp_worker *w = turn_worker(turn.value);
	return w == NULL ? 0 : w->turn_now_ns;
}

static int host_close_self(spotlane_instance_turn turn)
{
	struct dp_worker *w = turn_worker(turn.value);
	if (w == NULL)
		return -1;
	if (w->turn.spot->close_self == CLOSE_NOT_WISHED)
		w->turn.spot->close_self = CLOSE_WISHED;
	return 0;
}

static int host_timer_set(
	spotlane_turn turn, struct spotlane_bytes name, const struct spotlane_timer *timer)
{
	struct dp_worker *w = turn_worker(turn.value);
	if (w == NULL || timer == NULL)
		return -1;
	return timer_set(w, w->turn.spot, span_of(name.data, name.size), timer) ? 0 : -1;
}

static int host_timer_cancel(spotlane_turn turn, struct spotlane_bytes name)
{
	struct dp_worker *w = turn_worker(turn.value);
	return w != NULL && timer_cancel(w, w->turn.spot, span_of(name.data, name.size)) ? 1 : 0;
}

static int host_cancel(spotlane_turn turn, spotlane_call call)
{
	struct dp_worker *w = turn_worker(turn.value);
	return w != NULL && cancel_call(w, w->turn.spot, call.value) ? 0 : -1;
}

const struct spotlane_host host_table = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_host),
	.reply = host_reply,
	.reply_error = host_reply_error,
	.send = host_send,
	.request = host_request,
	.offload = host_offload,
	.now_ns = host_now_ns,
	.close_self = host_close_self,
	.timer_set = host_timer_set,
	.timer_cancel = host_timer_cancel,
	.cancel = host_cancel,
	.actor = host_actor,
	.send_actor = host_send_actor,
	.request_actor = host_request_actor,
	.join = host_join,
	.leave = host_leave,
	.client = host_client,
	.push = host_push,
};
