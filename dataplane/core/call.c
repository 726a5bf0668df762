// SPDX-License-Identifier: BSD-3-Clause
#include "core/call.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/scheduler.h"
#include "core/turn.h"

// Number: generation above, index + 1 below; never 0.
static uint64_t number_of(uint32_t index, uint32_t generation)
{
	return (uint64_t)generation << 32 | (index + 1);
}

bool call_table_init(struct call_table *calls)
{
	memset(calls, 0, sizeof(*calls));
	calls->slots = mem_zalloc(CALLS_MAX * sizeof(calls->slots[0]));
	calls->heap = mem_zalloc(CALLS_MAX * sizeof(calls->heap[0]));
	return calls->slots != NULL && calls->heap != NULL;
}

void call_table_fini(struct call_table *calls)
{
	mem_free(calls->slots);
	mem_free(calls->heap);
}

// ---- the heap of deadlines ----
static void heap_put(struct call_table *c, uint32_t position, uint32_t index)
{
	c->heap[position] = index;
	c->slots[index].heap_position = position + 1;
}

static uint64_t due(const struct call_table *c, uint32_t position)
{
	return c->slots[c->heap[position]].deadline_boot_ns;
}

static void heap_up(struct call_table *c, uint32_t position)
{
	uint32_t index = c->heap[position];
	while (position > 0 && due(c, (position - 1) / 2) > c->slots[index].deadline_boot_ns) {
		heap_put(c, position, c->heap[(position - 1) / 2]);
		position = (position - 1) / 2;
	}
	heap_put(c, position, index);
}

static void heap_down(struct call_table *c, uint32_t position)
{
	uint32_t index = c->heap[position];
	for (;;) {
		uint32_t child = 2 * position + 1;
		if (child >= c->heap_count)
			break;
		if (child + 1 < c->heap_count && due(c, child + 1) < due(c, child))
			child++;
		if (c->slots[index].deadline_boot_ns <= due(c, child))
			break;
		heap_put(c, position, c->heap[child]);
		position = child;
	}
	heap_put(c, position, index);
}

static void heap_remove(struct call_table *c, struct call_slot *slot)
{
	uint32_t position = slot->heap_position - 1;
	uint32_t last = c->heap[--c->heap_count];
	slot->heap_position = 0;
	if (position == c->heap_count)
		return;
	heap_put(c, position, last);
	heap_up(c, position);
	heap_down(c, c->slots[last].heap_position - 1);
}

// ---- slots ----
static struct call_slot *slot_of(struct call_table *c, uint64_t call)
{
	uint32_t index = (uint32_t)call - 1;
	if (index >= c->slots_used)
		return NULL;
	struct call_slot *slot = &c->slots[index];
	return slot->used && slot->generation == (uint32_t)(call >> 32) ? slot : NULL;
}

static uint32_t index_of(const struct call_table *c, const struct call_slot *slot)
{
	return (uint32_t)(slot - c->slots);
}

uint64_t call_begin(struct dp_worker *w, struct dp_spot *spot, struct item *turn,
	struct spot_key key, uint64_t deadline_boot_ns)
{
	struct call_table *c = &w->calls;
	uint32_t index;
	if (c->free_chain != 0) {
		index = c->free_chain - 1;
		c->free_chain = c->slots[index].next;
	} else if (c->slots_used < CALLS_MAX) {
		index = c->slots_used++;
	} else {
		return 0;
	}
	struct call_slot *slot = &c->slots[index];
	slot->used = 1;
	slot->turn = turn;
	slot->spot = spot;
	slot->key = key;
	slot->deadline_boot_ns = deadline_boot_ns;
	slot->next = turn->calls_head;
	turn->calls_head = index + 1;
	turn->calls_open++;
	spot->calls_open++;
	c->heap[c->heap_count] = index;
	slot->heap_position = ++c->heap_count;
	heap_up(c, c->heap_count - 1);
	return number_of(index, slot->generation);
}

static void slot_free(struct call_table *c, struct call_slot *slot)
{
	if (slot->heap_position != 0)
		heap_remove(c, slot);
	slot->used = 0;
	slot->generation++;
	slot->turn = NULL;
	slot->next = c->free_chain;
	c->free_chain = index_of(c, slot) + 1;
}

static void unlink_from_turn(struct call_table *c, struct call_slot *slot)
{
	uint32_t index1 = index_of(c, slot) + 1;
	uint32_t *link = &slot->turn->calls_head;
	while (*link != index1)
		link = &c->slots[*link - 1].next;
	*link = slot->next;
	slot->turn->calls_open--;
	slot->spot->calls_open--;
}

bool call_target(
	struct dp_worker *w, const struct dp_spot *spot, uint64_t call, struct spot_key *out_key)
{
	const struct call_slot *slot = slot_of(&w->calls, call);
	if (slot == NULL || slot->spot != spot || (slot->key.lo == 0 && slot->key.hi == 0))
		return false;
	*out_key = slot->key;
	return true;
}

void call_cancel(struct dp_worker *w, uint64_t call)
{
	struct call_slot *slot = slot_of(&w->calls, call);
	CHECK(slot != NULL);
	unlink_from_turn(&w->calls, slot);
	slot_free(&w->calls, slot);
}

void call_abandon(struct dp_worker *w, struct item *turn)
{
	struct item_head *head;
	while (turn->calls_head != 0) {
		struct call_slot *slot = &w->calls.slots[turn->calls_head - 1];
		unlink_from_turn(&w->calls, slot);
		slot_free(&w->calls, slot);
	}
	while ((head = lane_list_pop(&turn->answers)) != NULL) {
		COUNT(w, calls_late);
		item_end(w, head);
	}
}

void call_answer(struct dp_worker *w, struct item *answer)
{
	struct call_slot *slot = slot_of(&w->calls, answer->call);
	if (slot == NULL) { // the first confirmed end counts (M2)
		COUNT(w, calls_late);
		item_end(w, &answer->head);
		return;
	}
	struct item *turn = slot->turn;
	struct dp_spot *spot = slot->spot;
	unlink_from_turn(&w->calls, slot);
	slot_free(&w->calls, slot);
	lane_list_push(&turn->answers, &answer->head);
	if (w->turn.serial != 0 && w->turn.item == turn)
		return; // still on the stack: it looks when it leaves
	if (turn->leave == TURN_WAITING)
		scheduler_ready(w, spot);
	else if (turn->leave == TURN_YIELDED)
		turn_requeue(w, turn);
}

static struct item *answer_item(
	struct dp_worker *w, uint64_t call, struct result result, uint16_t content, struct span payload)
{
	struct item *item = item_new(w, ITEM_ANSWER, payload.size);
	if (item == NULL && payload.size > 0) {
		payload.size = 0;
		result = result_make(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY, result.accepted);
		item = item_new(w, ITEM_ANSWER, 0);
	}
	if (item == NULL)
		return NULL;
	memset(&item->env, 0, sizeof(item->env));
	item->call = call;
	item->env.content = content;
	item->env.payload = item->payload;
	item->env.payload_bytes = (uint32_t)payload.size;
	if (payload.size > 0)
		memcpy(item->payload, payload.data, payload.size);
	item_set_result(item, result);
	return item;
}

bool call_send_answer(struct dp_worker *w, const struct envelope *env, struct result result,
	uint16_t content, struct span payload)
{
	struct item *item = answer_item(w, env->reply.operation_id, result, content, payload);
	if (item == NULL)
		return false;
	if (env->reply.ingress_worker == w->index)
		call_answer(w, item);
	else
		cross_send(w, env->reply.ingress_worker, &item->head);
	return true;
}

bool call_tick(struct dp_worker *w)
{
	struct call_table *c = &w->calls;
	bool any = false;
	while (c->heap_count > 0 && due(c, 0) <= w->now_ns) {
		struct call_slot *slot = &c->slots[c->heap[0]];
		// The message was handed over and has not answered: it may have run or not.
		struct item *item = answer_item(w, number_of(c->heap[0], slot->generation),
			result_make(RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_UNKNOWN),
			WIRE_CONTENT_BYTES, span_of(NULL, 0));
		if (item == NULL)
			return any; // memory is short: again at the next loop turn
		call_answer(w, item);
		any = true;
	}
	return any;
}
