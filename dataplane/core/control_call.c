// SPDX-License-Identifier: BSD-3-Clause
#include "core/control_call.h"

#include <string.h>

#include "base/mem.h"
#include "core/core.h"
#include "core/deliver.h"

static uint64_t token_of(uint32_t index, uint32_t generation)
{
	return (uint64_t)generation << 32 | (index + 1);
}

bool control_calls_init(struct dp_worker *w)
{
	struct control_calls *c = &w->control_calls;
	c->slots = mem_zalloc(CONTROL_CALLS_MAX * sizeof(c->slots[0]));
	c->next_expiry_ns = UINT64_MAX;
	return c->slots != NULL;
}

static struct control_call *slot_take(struct control_calls *c, uint32_t *out_index)
{
	if (c->free_chain != 0) {
		*out_index = c->free_chain - 1;
		c->free_chain = c->slots[*out_index].next_free;
	} else if (c->slots_used < CONTROL_CALLS_MAX) {
		*out_index = c->slots_used++;
	} else {
		return NULL;
	}
	c->slots[*out_index].used = 1;
	return &c->slots[*out_index];
}

static void slot_free(struct control_calls *c, struct control_call *slot)
{
	slot->used = 0;
	slot->generation++;
	slot->next_free = c->free_chain;
	c->free_chain = (uint32_t)(slot - c->slots) + 1;
}

static void answer(struct dp_worker *w, const struct control_call *slot, struct result result,
	const struct refusal *refusal, struct span body)
{
	struct envelope env;
	memset(&env, 0, sizeof(env));
	env.key = slot->key;
	env.deadline_boot_ns = slot->deadline_boot_ns;
	env.reply = slot->reply;
	struct reply reply = {
		.result = result, .content = WIRE_CONTENT_BYTES, .payload = body, .refusal = refusal};
	egress_reply(w, &env, NULL, &reply);
}

static void refuse(struct dp_worker *w, const struct envelope *env, struct result result,
	const struct refusal *refusal)
{
	struct reply reply = {.result = result, .refusal = refusal};
	COUNT(w, messages_refused);
	counter_add(&w->counters.refusals[result.reason % ARRAY_COUNT(w->counters.refusals)], 1);
	egress_reply(w, env, NULL, &reply);
}

static void fill_fact(struct dp_worker *w, struct dp_fact *fact, const struct envelope *env,
	const struct wire_frame *frame, uint64_t token)
{
	fact->kind = DP_FACT_CONTROL;
	fact->worker = w->index;
	fact->key = env->key;
	fact->as.control.token = token;
	fact->as.control.operation = frame->h.message_type;
	fact->as.control.spot_type = env->spot_type;
	fact->as.control.object_generation.value = frame->h.object_generation;
	fact->as.control.deadline_boot_ns = env->deadline_boot_ns;
	fact->as.control.id_bytes = (uint8_t)frame->id.size;
	memcpy(fact->as.control.id, frame->id.data, frame->id.size);
	fact->as.control.argument_bytes = (uint16_t)frame->segment.size;
	if (frame->segment.size > 0)
		memcpy(fact->as.control.argument, frame->segment.data, frame->segment.size);
}
_Static_assert(sizeof(((struct dp_fact *)0)->as.control.argument) >= WIRE_CONTROL_BYTES_MAX,
	"what decodes fits the fact");

void control_call_begin(struct dp_worker *w, const struct envelope *env, const struct wire_frame *frame)
{
	struct control_calls *c = &w->control_calls;
	if (wire_check_id(frame) != WIRE_TAKEN) {
		counter_add(&w->counters.rejects[WIRE_REJECT_ID_KEY], 1);
		refuse(w, env, result_refused(RESULT_PROTOCOL_ERROR, REASON_NONE), NULL);
		return;
	}
	uint32_t index = 0;
	struct control_call *slot = slot_take(c, &index);
	struct fact_node *node = slot == NULL ? NULL : fact_begin(w);
	if (node == NULL) {
		if (slot != NULL)
			slot_free(c, slot);
		struct refusal r = deliver_node_refusal(w, CONTROL_CALLS_MAX, c->slots_used);
		refuse(w, env, result_refused(RESULT_CAPACITY_EXCEEDED, REASON_SCHEDULER_QUEUE), &r);
		return;
	}
	slot->reply = env->reply;
	slot->key = env->key;
	slot->deadline_boot_ns = env->deadline_boot_ns;
	if (slot->deadline_boot_ns < c->next_expiry_ns)
		c->next_expiry_ns = slot->deadline_boot_ns;
	fill_fact(w, &node->fact, env, frame, token_of(index, slot->generation));
	fact_post(w, node);
}

void control_call_answer(struct dp_worker *w, struct command *command)
{
	struct control_calls *c = &w->control_calls;
	uint32_t index = (uint32_t)command->token - 1;
	uint32_t generation = (uint32_t)(command->token >> 32);
	if (index < c->slots_used && c->slots[index].used && c->slots[index].generation == generation) {
		answer(w, &c->slots[index], command->result,
			command->has_refusal ? &command->refusal : NULL,
			span_of(command->argument, command->argument_bytes));
		slot_free(c, &c->slots[index]);
	} else {
		COUNT(w, calls_late);
	}
	command_done(w, command);
}

bool control_call_tick(struct dp_worker *w)
{
	struct control_calls *c = &w->control_calls;
	if (LIKELY(w->now_ns < c->next_expiry_ns))
		return false;
	c->next_expiry_ns = UINT64_MAX;
	for (uint32_t i = 0; i < c->slots_used; i++) {
		struct control_call *slot = &c->slots[i];
		if (!slot->used)
			continue;
		if (slot->deadline_boot_ns > w->now_ns) {
			if (slot->deadline_boot_ns < c->next_expiry_ns)
				c->next_expiry_ns = slot->deadline_boot_ns;
			continue;
		}
		// Control may have begun: only it could tell.
		answer(w, slot, result_make(RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_UNKNOWN),
			NULL, span_of(NULL, 0));
		slot_free(c, slot);
	}
	return true;
}
