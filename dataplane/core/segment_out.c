// SPDX-License-Identifier: BSD-3-Clause
#include "core/segment_out.h"

#include <string.h>

#include "core/core.h"

// The sender's state and its bitmap lie in one block beside the reply's item.
struct sender {
	struct item_head head;
	uint8_t kind; // ITEM_BLOCK
	struct segment_out out;
	uint64_t bitmap[];
};

static struct sender *sender_of(struct segment_out *out)
{
	return container_of(out, struct sender, out);
}

static void refuse_to_hold(struct dp_worker *w, struct item *item)
{
	// The work was done, its answer finds no room: a short terminal result instead of a long one.
	struct result result = result_make(
		RESULT_CAPACITY_EXCEEDED, REASON_REASSEMBLY, item_result(item).accepted);
	struct wire_header h;
	struct refusal r = {.limit = SEGMENT_OUT_BYTES_MAX,
		.current = w->segment_out.bytes,
		.owner_node = w->dp->config.node.value};
	uint8_t body[WIRE_REFUSAL_BYTES];
	wire_refusal_encode(&r, body);
	egress_header(w, &item->env, result, WIRE_REPLY, &h);
	h.content_type = WIRE_CONTENT_REFUSAL;
	h.total_bytes = sizeof(body);
	egress_small(w, &item->env.reply.peer, &h, span_of(body, sizeof(body)));
	item_end(w, &item->head);
}

static void send_one(struct dp_worker *w, struct segment_out *out, uint32_t index)
{
	struct wire_header h = out->header;
	uint32_t offset = seg_tx_offset(&out->tx, index);
	h.counter = ++w->session_counter;
	h.segment_offset = offset;
	if (seg_tx_spent(&out->tx))
		h.flags |= WIRE_FLAG_ACK_NOW;
	COUNT(w, segments_out);
	egress_small(w, &out->item->env.reply.peer, &h,
		span_of(out->item->env.payload + offset, seg_tx_bytes(&out->tx, index)));
}

// Up to a burst; the rest at the next loop turn.
static bool pump(struct dp_worker *w, struct segment_out *out)
{
	uint32_t index;
	uint32_t sent = 0;
	while (sent < SEGMENT_OUT_BURST && seg_tx_next(&out->tx, &index)) {
		bool again = index < out->sent_once;
		if (again)
			COUNT(w, segments_resent);
		else
			out->sent_once = index + 1;
		send_one(w, out, index);
		sent++;
	}
	return sent > 0;
}

static void start(struct dp_worker *w, struct segment_out *out, struct item *item, uint16_t unit)
{
	out->item = item;
	seg_tx_init(&out->tx, sender_of(out)->bitmap, item->env.payload_bytes, unit,
		SEGMENT_OUT_WINDOW);
	egress_header(w, &item->env, item_result(item), WIRE_REPLY, &out->header);
	out->header.flags |= WIRE_FLAG_SEGMENTED;
	if (item->env.reply.explain)
		out->header.flags |= WIRE_FLAG_EXPLAIN;
	out->header.content_type = item->env.content;
	out->header.total_bytes = item->env.payload_bytes;
	out->header.segment_unit = unit;
	out->sent_once = 0;
	out->repeat_ns = SEGMENT_OUT_REPEAT_NS_MIN;
	out->repeat_at_ns = w->now_ns + out->repeat_ns;
	// A client gives up at its deadline; there is always time for one full repetition.
	uint64_t least = w->now_ns + SEGMENT_OUT_REPEAT_NS_MAX;
	out->expires_ns = item->env.deadline_boot_ns > least ? item->env.deadline_boot_ns : least;
	out->next = w->segment_out.first;
	w->segment_out.first = out;
	w->segment_out.bytes += item->head.block_bytes;
	w->segment_out.count++;
	COUNT(w, replies_segmented);
	pump(w, out);
}

static uint16_t unit_of(const struct worker_queue *q)
{
	uint32_t room = q->payload_bytes_max - WIRE_HEADER_BYTES;
	return (uint16_t)(room > UINT16_MAX ? UINT16_MAX : room);
}

void segment_out_begin(struct dp_worker *w, struct item *item)
{
	struct worker_queue *q = egress_queue(w, item->env.reply.peer.fabric);
	uint16_t unit = unit_of(q);
	uint32_t words = seg_bitmap_words(seg_count(item->env.payload_bytes, unit));
	bool room = w->segment_out.bytes + item->head.block_bytes <= SEGMENT_OUT_BYTES_MAX &&
		unit >= WIRE_SEGMENT_BYTES_MIN;
	size_t bytes = sizeof(struct sender) + words * sizeof(uint64_t);
	struct item_head *head = room ? item_alloc(w->arena, bytes) : NULL;
	if (head == NULL) {
		refuse_to_hold(w, item);
		return;
	}
	struct sender *sender = (struct sender *)(void *)head;
	sender->kind = ITEM_BLOCK;
	memset(sender->bitmap, 0, words * sizeof(uint64_t));
	start(w, &sender->out, item, unit);
}

static void end(struct dp_worker *w, struct segment_out *out)
{
	struct segment_out **link = &w->segment_out.first;
	while (*link != out)
		link = &(*link)->next;
	*link = out->next;
	w->segment_out.bytes -= out->item->head.block_bytes;
	w->segment_out.count--;
	item_end(w, &out->item->head);
	item_free(w->arena, &sender_of(out)->head);
}

static struct segment_out *find(struct dp_worker *w, uint64_t scope, uint64_t operation)
{
	struct segment_out *out = w->segment_out.first;
	while (out != NULL && (out->item->env.reply.scope != scope ||
				      out->item->env.reply.operation_id != operation))
		out = out->next;
	return out;
}

void segment_out_ack(struct dp_worker *w, const struct wire_frame *frame)
{
	struct segment_out *out = find(w, frame->h.operation_scope, frame->h.operation_id);
	struct seg_ack ack;
	if (out == NULL || !seg_ack_decode(frame->segment, &ack))
		return;
	uint32_t before = out->tx.base;
	seg_tx_ack(&out->tx, &ack);
	if (out->tx.done) {
		end(w, out);
		return;
	}
	if (out->tx.base > before)
		out->repeat_ns = SEGMENT_OUT_REPEAT_NS_MIN;
	out->repeat_at_ns = w->now_ns + out->repeat_ns;
	pump(w, out);
}

bool segment_out_repeat(struct dp_worker *w, uint64_t scope, uint64_t operation)
{
	struct segment_out *out = find(w, scope, operation);
	if (out == NULL)
		return false;
	seg_tx_timeout(&out->tx);
	pump(w, out);
	return true;
}

static void repeat(struct dp_worker *w, struct segment_out *out)
{
	seg_tx_timeout(&out->tx);
	out->repeat_ns *= 2;
	if (out->repeat_ns > SEGMENT_OUT_REPEAT_NS_MAX)
		out->repeat_ns = SEGMENT_OUT_REPEAT_NS_MAX;
	out->repeat_at_ns = w->now_ns + out->repeat_ns;
}

bool segment_out_tick(struct dp_worker *w)
{
	bool any = false;
	struct segment_out *next;
	for (struct segment_out *out = w->segment_out.first; out != NULL; out = next) {
		next = out->next;
		if (w->now_ns >= out->expires_ns) {
			end(w, out);
			any = true;
			continue;
		}
		if (w->now_ns >= out->repeat_at_ns)
			repeat(w, out);
		any |= pump(w, out);
	}
	return any;
}

void segment_out_fini(struct dp_worker *w)
{
	while (w->segment_out.first != NULL)
		end(w, w->segment_out.first);
}
