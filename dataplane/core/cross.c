// SPDX-License-Identifier: BSD-3-Clause
#include "core/cross.h"

#include "base/check.h"
#include "core/cancel.h"
#include "core/core.h"
#include "core/deliver.h"
#include "core/lifecycle.h"
#include "core/push.h"

void cross_send(struct dp_worker *w, uint16_t to, struct item_head *node)
{
	CHECK(to != w->index && to < w->dp->config.workers);
	lane_list_push(&w->cross[to].list, node);
	w->cross[to].count++;
	w->cross_dirty = true;
}

static void arrive(struct dp_worker *w, struct item_head *node)
{
	struct node_head *head = (struct node_head *)(void *)node;
	switch ((enum item_kind)head->kind) {
	case ITEM_MESSAGE:
		deliver_arrived(w, item_of(node));
		return;
	case ITEM_ANSWER:
		call_answer(w, item_of(node));
		return;
	case ITEM_REPLY:
		egress_reply_item(w, item_of(node));
		return;
	case ITEM_COMMAND:
		lifecycle_open(w, (struct command *)(void *)node);
		return;
	case ITEM_REPEAT:
		held_repeat_arrived(w, item_of(node));
		return;
	case ITEM_ACK:
		segment_out_ack_item(w, item_of(node));
		return;
	case ITEM_CANCEL:
		cancel_arrived(w, item_of(node));
		return;
	case ITEM_PUSH:
		push_arrived(w, item_of(node));
		return;
	case ITEM_BLOCK:
	case ITEM_TICK:
		break;
	}
	CHECK(!"a node that never crosses");
}

bool cross_poll(struct dp_worker *w)
{
	bool any = false;
	for (uint16_t from = 0; from < w->dp->config.workers; from++) {
		void *nodes[FABRIC_BURST_MAX];
		if (w->cross_in[from] == NULL)
			continue;
		uint32_t n = ring_pop(w->cross_in[from], nodes, FABRIC_BURST_MAX);
		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(nodes[i]);
		for (uint32_t i = 0; i < n; i++)
			arrive(w, nodes[i]);
		any |= n > 0;
	}
	return any;
}

// A burst at a time; stops at a full ring.
static void push_list(struct cross_out *out, struct ring *ring)
{
	while (out->list.head != NULL) {
		void *nodes[FABRIC_BURST_MAX];
		uint32_t n = 0;
		for (struct item_head *i = out->list.head; i != NULL && n < FABRIC_BURST_MAX; i = i->next)
			nodes[n++] = i;
		// The receiver owns a node from the push on, so its link is read before.
		struct item_head *rest = ((struct item_head *)nodes[n - 1])->next;
		struct item_head *links[FABRIC_BURST_MAX];
		for (uint32_t i = 0; i < n; i++)
			links[i] = nodes[i];
		uint32_t pushed = ring_push(ring, nodes, n);
		out->count -= pushed;
		if (pushed < n) {
			out->list.head = links[pushed];
			return;
		}
		out->list.head = rest;
	}
}

static void give_back(struct dp_worker *w, uint16_t owner)
{
	struct cross_out *out = &w->cross[owner];
	if (out->foreign_head == NULL)
		return;
	item_give_back(w->dp->workers[owner]->arena, out->foreign_head, out->foreign_tail);
	out->foreign_head = out->foreign_tail = NULL;
}

void cross_flush(struct dp_worker *w)
{
	if (!w->cross_dirty)
		return;
	w->cross_dirty = false;
	for (uint16_t to = 0; to < w->dp->config.workers; to++) {
		if (to == w->index)
			continue;
		if (w->cross[to].list.head != NULL) {
			push_list(&w->cross[to], w->cross_out_rings[to]);
			worker_nudge(w->dp, to);
		}
		give_back(w, to);
		if (w->cross[to].list.head != NULL)
			w->cross_dirty = true;
	}
}

void item_end(struct dp_worker *w, struct item_head *item)
{
	if (LIKELY(item->owner == w->index)) {
		item_free(w->arena, item);
		return;
	}
	uint16_t owner = (uint16_t)item->owner;
	struct cross_out *out = &w->cross[owner];
	bool large = item->block_bytes >= CROSS_FOREIGN_LARGE_BYTES;
	item->next = out->foreign_head;
	if (out->foreign_head == NULL)
		out->foreign_tail = item;
	out->foreign_head = item;
	w->cross_dirty = true;
	if (large)
		give_back(w, owner);
}

struct item *item_new(struct dp_worker *w, enum item_kind kind, size_t bytes)
{
	struct item_head *head = item_alloc(w->arena, sizeof(struct item) + bytes);
	if (UNLIKELY(head == NULL))
		return NULL;
	struct item *item = item_of(head);
	item->kind = (uint8_t)kind;
	item->leave = TURN_FRESH;
	item->answered = 0;
	item->cancelled = 0;
	item->calls_open = 0;
	item->calls_head = 0;
	item->call = 0;
	item_set_result(item, (struct result){0, 0, 0});
	item->answers.head = item->answers.tail = NULL;
	return item;
}
