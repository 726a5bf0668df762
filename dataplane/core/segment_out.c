// SPDX-License-Identifier: BSD-3-Clause
#include "core/segment_out.h"

#include <string.h>

#include "core/core.h"
#include "core/cross.h"

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
	egress_header(w, &item->env, result, egress_reply_family(&item->env), &h);
	h.content_type = WIRE_CONTENT_REFUSAL;
	h.total_bytes = sizeof(body);
	egress_small(w, &item->env.reply.peer, &h, egress_front(&item->env),
		span_of(body, sizeof(body)));
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
	const struct envelope *env = &out->item->env;
	egress_small(w, &env->reply.peer, &h,
		span_of(env->payload - h.id_bytes, h.id_bytes),
		span_of(env->payload + offset, seg_tx_bytes(&out->tx, index)));
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

static void start(struct dp_worker *w, struct segment_out *out, struct item *item, uint16_t unit,
	const struct wire_header *header)
{
	out->item = item;
	seg_tx_init(&out->tx, sender_of(out)->bitmap, item->env.payload_bytes, unit,
		SEGMENT_OUT_WINDOW);
	out->header = *header;
	out->header.flags |= WIRE_FLAG_SEGMENTED;
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
	pump(w, out);
}

static uint16_t unit_of(const struct worker_queue *q, uint8_t front_bytes)
{
	uint32_t room = q->payload_bytes_max - WIRE_HEADER_BYTES - front_bytes;
	return (uint16_t)(room > UINT16_MAX ? UINT16_MAX : room);
}

// False: no room; the item stays the caller's.
static bool begin(struct dp_worker *w, struct item *item, const struct wire_header *header)
{
	struct worker_queue *q = egress_queue(w, item->env.reply.peer.fabric);
	uint16_t unit = unit_of(q, header->id_bytes);
	uint32_t words = seg_bitmap_words(seg_count(item->env.payload_bytes, unit));
	bool room = w->segment_out.bytes + item->head.block_bytes <= SEGMENT_OUT_BYTES_MAX &&
		unit >= WIRE_SEGMENT_BYTES_MIN;
	size_t bytes = sizeof(struct sender) + words * sizeof(uint64_t);
	struct item_head *head = room ? item_alloc(w->arena, bytes) : NULL;
	if (head == NULL)
		return false;
	struct sender *sender = (struct sender *)(void *)head;
	sender->kind = ITEM_BLOCK;
	memset(sender->bitmap, 0, words * sizeof(uint64_t));
	start(w, &sender->out, item, unit, header);
	return true;
}

void segment_out_begin(struct dp_worker *w, struct item *item)
{
	struct wire_header h;
	egress_header(w, &item->env, item_result(item), egress_reply_family(&item->env), &h);
	h.id_bytes = (uint8_t)egress_front(&item->env).size;
	if (item->env.reply.explain)
		h.flags |= WIRE_FLAG_EXPLAIN;
	h.content_type = item->env.content;
	h.total_bytes = item->env.payload_bytes;
	if (begin(w, item, &h))
		COUNT(w, replies_segmented);
	else
		refuse_to_hold(w, item);
}

bool segment_out_send(struct dp_worker *w, struct item *item, const struct wire_header *header)
{
	if (begin(w, item, header))
		return true;
	item_end(w, &item->head);
	return false;
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

static void take_report(struct dp_worker *w, struct segment_out *out, const struct seg_ack *ack)
{
	uint32_t before = out->tx.base;
	seg_tx_ack(&out->tx, ack);
	if (out->tx.done) {
		end(w, out);
		return;
	}
	if (out->tx.base > before)
		out->repeat_ns = SEGMENT_OUT_REPEAT_NS_MIN;
	out->repeat_at_ns = w->now_ns + out->repeat_ns;
	pump(w, out);
}

// Reports on what one worker sends to a node may come in at another.
static bool pass_report(struct dp_worker *w, const struct wire_frame *frame)
{
	int to = forward_worker_of(w->dp, frame->h.operation_scope);
	if (to < 0 || to == w->index)
		return false;
	struct item *item = item_new(w, ITEM_ACK, frame->segment.size);
	if (item == NULL)
		return true; // sent again soon
	memset(&item->env, 0, sizeof(item->env));
	item->env.payload = item->payload;
	item->env.payload_bytes = (uint32_t)frame->segment.size;
	item->env.reply.scope = frame->h.operation_scope;
	item->env.reply.operation_id = frame->h.operation_id;
	memcpy(item->payload, frame->segment.data, frame->segment.size);
	cross_send(w, (uint16_t)to, &item->head);
	return true;
}

void segment_out_ack(struct dp_worker *w, const struct wire_frame *frame)
{
	struct segment_out *out = find(w, frame->h.operation_scope, frame->h.operation_id);
	struct seg_ack ack;
	if (out == NULL && w->dp->config.workers > 1 && pass_report(w, frame))
		return;
	if (out != NULL && seg_ack_decode(frame->segment, &ack))
		take_report(w, out, &ack);
}

void segment_out_ack_item(struct dp_worker *w, struct item *item)
{
	const struct envelope *env = &item->env;
	struct segment_out *out = find(w, env->reply.scope, env->reply.operation_id);
	struct seg_ack ack;
	if (out != NULL && seg_ack_decode(span_of(env->payload, env->payload_bytes), &ack))
		take_report(w, out, &ack);
	item_end(w, &item->head);
}

void segment_out_answered(struct dp_worker *w, uint64_t scope, uint64_t operation)
{
	struct segment_out *out = w->segment_out.count == 0 ? NULL : find(w, scope, operation);
	if (out != NULL)
		end(w, out);
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
