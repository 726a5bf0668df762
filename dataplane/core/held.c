// SPDX-License-Identifier: BSD-3-Clause
#include "core/held.h"

#include <string.h>

#include "base/mem.h"
#include "core/core.h"
#include "core/cross.h"
#include "wire/wire.h"

enum { GRAIN_SHIFT = 6, RECORD_BYTES_TYPICAL = 256 };

struct record {
	uint64_t scope;
	uint64_t operation;
	uint64_t position; // tells it from what lay or lies here at another time
	uint64_t frame_bytes;
	struct peer peer;
	uint8_t frame[];
};
_Static_assert(sizeof(struct record) == 1 << GRAIN_SHIFT, "records start on lines");

static uint64_t power_of_two_below(uint64_t n)
{
	return n == 0 ? 0 : UINT64_C(1) << (63 - __builtin_clzll(n));
}

bool held_init(struct held_replies *held, uint64_t bytes)
{
	memset(held, 0, sizeof(*held));
	if (bytes < HELD_BYTES_MIN)
		return true;
	held->bytes = power_of_two_below(bytes);
	held->index_mask = (uint32_t)(held->bytes / RECORD_BYTES_TYPICAL) - 1;
	held->log = mem_zalloc_aligned(CACHE_LINE_BYTES, held->bytes);
	held->index = mem_zalloc((size_t)(held->index_mask + 1) * sizeof(held->index[0]));
	held->head = held->bytes; // position 0 names nothing
	return held->log != NULL && held->index != NULL;
}

void held_fini(struct held_replies *held)
{
	mem_free(held->log);
	mem_free(held->index);
	memset(held, 0, sizeof(*held));
}

static uint32_t slot_of(const struct held_replies *held, uint64_t scope, uint64_t operation)
{
	uint64_t x = (scope ^ operation * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)(x >> 32) & held->index_mask;
}

static struct record *record_at(const struct held_replies *held, uint64_t position)
{
	return (struct record *)(void *)(held->log + (position & (held->bytes - 1)));
}

static void put(struct held_replies *held, const struct frame *frame)
{
	uint64_t need = sizeof(struct record) +
		(((uint64_t)frame->bytes + (1 << GRAIN_SHIFT) - 1) >> GRAIN_SHIFT << GRAIN_SHIFT);
	if (need > held->bytes / 16)
		return;
	uint64_t to_end = held->bytes - (held->head & (held->bytes - 1));
	if (need > to_end) // records do not wrap
		held->head += to_end;
	struct record *r = record_at(held, held->head);
	memcpy(&r->scope, frame->data + offsetof(struct wire_header, operation_scope), 8);
	memcpy(&r->operation, frame->data + offsetof(struct wire_header, operation_id), 8);
	r->position = held->head;
	r->frame_bytes = frame->bytes;
	r->peer = frame->peer;
	memcpy(r->frame, frame->data, frame->bytes);
	held->index[slot_of(held, r->scope, r->operation)] = (uint32_t)(held->head >> GRAIN_SHIFT);
	held->head += need;
}

void held_put_burst(struct held_replies *held, const struct frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;
		if (data[offsetof(struct wire_header, family)] == WIRE_REPLY &&
			!(data[offsetof(struct wire_header, flags)] & WIRE_FLAG_SEGMENTED))
			put(held, &frames[i]);
	}
}

// NULL: not held here, or no longer.
static const struct record *find(const struct held_replies *held, const struct peer *from,
	uint64_t scope, uint64_t operation)
{
	if (held->bytes == 0)
		return NULL;
	uint64_t now = held->head >> GRAIN_SHIFT;
	uint32_t low = held->index[slot_of(held, scope, operation)];
	uint32_t ago = (uint32_t)now - low; // less than a log ago, or it is gone
	uint64_t position = (now - ago) << GRAIN_SHIFT;
	if (ago == 0 || held->head - position > held->bytes)
		return NULL;
	const struct record *r = record_at(held, position);
	bool right = r->position == position && r->scope == scope && r->operation == operation &&
		r->peer.port == from->port && memcmp(r->peer.ip, from->ip, sizeof(from->ip)) == 0;
	return right ? r : NULL;
}

static bool send_again(
	struct dp_worker *w, const struct peer *from, uint64_t scope, uint64_t operation)
{
	const struct record *r = find(&w->held, from, scope, operation);
	struct worker_queue *q = r == NULL ? NULL : egress_queue(w, r->peer.fabric);
	struct frame fresh;
	struct wire_header h;
	if (q == NULL || !egress_fresh(q, &fresh))
		return false;
	// A frame of its own: its counter is new, what it says is what was said.
	memcpy(&h, r->frame, sizeof(h));
	h.counter = ++w->session_counter;
	memcpy(fresh.data, &h, sizeof(h));
	memcpy(fresh.data + sizeof(h), r->frame + sizeof(h), r->frame_bytes - sizeof(h));
	fresh.bytes = (uint32_t)r->frame_bytes;
	fresh.peer = r->peer;
	egress_frame(q, &fresh);
	COUNT(w, replies_again);
	return true;
}

void held_repeat(struct dp_worker *w, struct spot_key key, const struct peer *from, uint64_t scope,
	uint64_t operation)
{
	if (w->held.bytes == 0 || send_again(w, from, scope, operation))
		return;
	struct dp_spot *spot = dp_spot_of_route(route_lookup(w->dp->config.routes, key));
	if (spot == NULL || spot->home_worker == w->index)
		return;
	struct item *item = item_new(w, ITEM_REPEAT, 0);
	if (item == NULL)
		return;
	memset(&item->env, 0, sizeof(item->env));
	item->env.reply.peer = *from;
	item->env.reply.scope = scope;
	item->env.reply.operation_id = operation;
	cross_send(w, spot->home_worker, &item->head);
}

void held_repeat_arrived(struct dp_worker *w, struct item *item)
{
	(void)send_again(w, &item->env.reply.peer, item->env.reply.scope, item->env.reply.operation_id);
	item_end(w, &item->head);
}
