// SPDX-License-Identifier: BSD-3-Clause
#include "client/internal.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

// Receiving. The sockets are connected, so the kernel lets only the node's frames in; beyond that a
// frame counts only when it names a session of ours and a call in flight.

static struct client_op *frame_op(struct client_port *port, const struct wire_header *h)
{
	struct client_op *op = op_find(port->client, h->operation_id);
	return op && op->port == port ? op : NULL;
}

// ---- challenges ----

// The node did nothing with the frame it answers, so the same frame goes out once more with the new
// cookie. A challenge for a frame that carried this cookie already is not answered: no ping-pong.
// A frame sent several times under an older cookie may have been taken by a former run of the node,
// whose window is gone: sent again it could run twice (M3), so it ends here, not known to be accepted.
static void challenge_repeat(struct client_port *port, struct client_op *op)
{
	if (op->sent_cookie == 0 || op->sent_cookie == port->cookie)
		return;
	if (!op->upload && op->sendings > 1 && op->state == OP_SENT) {
		op_end_here(port->client, op, SPOTLANE_END_DEADLINE,
			SPOTLANE_KIND_DEADLINE_EXCEEDED, REASON_NONE);
		return;
	}
	if (op->upload) {
		seg_tx_timeout(&op->upload->tx);
		port_queue(port, op);
	} else if (op->state == OP_SENT && !(op->h.flags & WIRE_FLAG_SEGMENTED)) {
		port_queue(port, op);
	}
}

static void take_challenge(struct client_port *port, const struct wire_frame *frame)
{
	port->client->stats.challenges++;
	port->cookie = frame->h.cookie;
	port->cookie_state = COOKIE_HELD;
	port->used_ns = port->client->now_ns;
	port->hello_due = false;
	wheel_cancel(&port->hello.node);
	struct client_op *op = frame_op(port, &frame->h);
	if (op)
		challenge_repeat(port, op);
}

// ---- reports about what we send ----

// whole: every segment arrived there. A one-way message that ends without was refused (M8).
static void upload_done(struct client_port *port, struct client_op *op, bool whole)
{
	if (op_is_one_way(op)) {
		struct spotlane_client_result result = op_result(op, port->client->now_ns);
		result.end = SPOTLANE_END_SENT;
		result.kind = whole ? SPOTLANE_KIND_OK : SPOTLANE_KIND_UNAVAILABLE;
		// Whole: taken or refused, a send has no result (M6).
		result.accepted = whole ? SPOTLANE_ACCEPTED_UNKNOWN : SPOTLANE_ACCEPTED_NO;
		op_end(port->client, op, &result);
		return;
	}
	if (op->in_queue) {
		TAILQ_REMOVE(&port->queue, op, queue_link);
		op->in_queue = false;
	}
	wheel_cancel(&op->repeat.node);
	mem_free(op->upload);
	op->upload = NULL;
	op->state = OP_SENT;
}

// How many segments the node is known to have, near the window.
static uint32_t upload_acked(const struct seg_tx *tx)
{
	uint32_t words = seg_bitmap_words(tx->count);
	uint32_t first = tx->base / 64;
	uint32_t acked = first * 64;
	for (uint32_t i = first; i < words && i <= first + SEG_WINDOW_MAX / 64 + 1; i++)
		acked += (uint32_t)__builtin_popcountll(tx->acked[i]);
	return acked;
}

static void take_ack(struct client_port *port, const struct wire_frame *frame)
{
	struct client_op *op = frame_op(port, &frame->h);
	struct seg_ack ack;
	port->client->stats.acks_received++;
	if (!op || !op->upload || !seg_ack_decode(frame->segment, &ack))
		return; // of a call that ended or was taken whole: normal, when reports are repeated
	uint32_t before = upload_acked(&op->upload->tx);
	seg_tx_ack(&op->upload->tx, &ack);
	if (op->upload->tx.done) {
		upload_done(port, op, ack.base >= op->upload->tx.count);
		return;
	}
	// Something new arrived there: the pause before the next repetition starts anew.
	if (upload_acked(&op->upload->tx) > before) {
		op->repeat_wait_ms = CLIENT_REPEAT_MS_MIN;
		wheel_set(&port->client->wheel, &op->repeat.node,
			port->client->now_ns + (uint64_t)CLIENT_REPEAT_MS_MIN * 1000 * 1000);
	}
	if (!seg_tx_spent(&op->upload->tx))
		port_queue(port, op);
}

// ---- replies ----

// The explanation, if any, comes before the body: its length in two bytes, then text.
static bool split_explanation(struct spotlane_client_result *result, struct span *body)
{
	if (body->size < 2)
		return false;
	size_t size = body->data[0] | (size_t)body->data[1] << 8;
	if (size > body->size - 2)
		return false;
	result->explained = 1;
	result->explanation = (const char *)body->data + 2;
	result->explanation_bytes = size;
	*body = span_of(body->data + 2 + size, body->size - 2 - size);
	return true;
}

static bool fill_refusal(struct spotlane_client_result *result, struct span body)
{
	struct refusal refusal;
	if (wire_refusal_decode(body, &refusal) != WIRE_TAKEN)
		return false;
	result->refused = 1;
	result->refusal.limit = refusal.limit;
	result->refusal.current = refusal.current;
	result->refusal.owner_node = refusal.owner_node;
	memcpy(result->refusal.owner_key, refusal.owner_key, sizeof(refusal.owner_key));
	return true;
}

// False when the body is not what the header says.
static bool fill_result(struct spotlane_client_result *result, const struct wire_header *h,
	struct span body)
{
	result->end = SPOTLANE_END_REPLY;
	result->kind = h->kind;
	result->reason = h->reason;
	result->accepted = h->accepted;
	result->content_type = h->content_type;
	result->ingress_worker = h->ingress_worker;
	result->home_worker = h->home_worker;
	result->pressure = (h->flags & WIRE_FLAG_PRESSURE) != 0;
	result->object_generation = h->object_generation;
	if ((h->flags & WIRE_FLAG_EXPLAIN) && !split_explanation(result, &body))
		return false;
	if (h->content_type == WIRE_CONTENT_REFUSAL)
		return fill_refusal(result, body);
	result->payload = body.data;
	result->payload_bytes = body.size;
	return true;
}

static void reply_end(struct client_port *port, struct client_op *op, const struct wire_header *h,
	struct span body)
{
	struct spotlane_client_result result = op_result(op, port->client->now_ns);
	if (fill_result(&result, h, body))
		op_end(port->client, op, &result);
	else
		port->client->stats.frames_unexpected++;
}

static bool download_begin(struct client_port *port, struct client_op *op, const struct wire_header *h)
{
	spotlane_client *client = port->client;
	if (client->reply_bytes + h->total_bytes > client->reply_bytes_max)
		return false;
	uint32_t words = seg_bitmap_words(seg_count(h->total_bytes, h->segment_unit));
	struct op_download *download = mem_zalloc(sizeof(*download) + words * sizeof(uint64_t));
	uint8_t *bytes = mem_zalloc(h->total_bytes);
	if (!download || !bytes) {
		mem_free(download);
		mem_free(bytes);
		return false;
	}
	seg_rx_init(&download->rx, download->bitmap, h->total_bytes, h->segment_unit);
	download->h = *h;
	download->bytes = bytes;
	client->reply_bytes += h->total_bytes;
	op->download = download;
	op->state = OP_REPLYING;
	// An answer means that the node has what it wants of the request.
	wheel_cancel(&op->repeat.node);
	if (op->in_queue) {
		TAILQ_REMOVE(&port->queue, op, queue_link);
		op->in_queue = false;
	}
	mem_free(op->upload);
	op->upload = NULL;
	return true;
}

static void take_segment(struct client_port *port, struct client_op *op, const struct wire_frame *frame)
{
	struct spotlane_client_stats *stats = &port->client->stats;
	const struct wire_header *h = &frame->h;
	if (!op->download && !download_begin(port, op, h)) {
		port_ack_done(port, h);
		op_end_here(port->client, op, SPOTLANE_END_LOCAL, SPOTLANE_KIND_INTERNAL_FAILURE,
			REASON_OUT_OF_MEMORY);
		return;
	}
	struct op_download *download = op->download;
	switch (seg_rx_accept(&download->rx, h->total_bytes, h->segment_offset, h->segment_bytes,
		h->segment_unit)) {
	case SEG_RX_MISMATCH:
		port_ack_done(port, h);
		op_end_here(port->client, op, SPOTLANE_END_LOCAL, SPOTLANE_KIND_PROTOCOL_ERROR, REASON_NONE);
		return;
	case SEG_RX_REPEAT:
		stats->segments_repeated++;
		break;
	case SEG_RX_KEPT:
		memcpy(download->bytes + h->segment_offset, frame->segment.data, frame->segment.size);
		break;
	case SEG_RX_WHOLE:
		memcpy(download->bytes + h->segment_offset, frame->segment.data, frame->segment.size);
		port_ack_done(port, h);
		reply_end(port, op, &download->h, span_of(download->bytes, h->total_bytes));
		return;
	}
	bool now = (h->flags & WIRE_FLAG_ACK_NOW) != 0;
	if (seg_rx_due(&download->rx, port->client->receive_window, now))
		port_queue_ack(port, op);
}

static void take_reply(struct client_port *port, const struct wire_frame *frame)
{
	struct client_op *op = frame_op(port, &frame->h);
	bool segmented = (frame->h.flags & WIRE_FLAG_SEGMENTED) != 0;
	if (segmented)
		port->client->stats.segments_received++;
	if (!op || op->state == OP_QUEUED) {
		port->client->stats.late++;
		if (segmented && (frame->h.flags & WIRE_FLAG_ACK_NOW))
			port_ack_done(port, &frame->h);
		return;
	}
	if (segmented)
		take_segment(port, op, frame);
	else
		reply_end(port, op, &frame->h, frame->segment);
}

// ---- frames ----

static void take_rejected(struct spotlane_client_stats *stats, enum wire_reject reject)
{
	stats->frames_rejected++;
	stats->by_reject[(uint32_t)reject % ARRAY_COUNT(stats->by_reject)]++;
}

void port_take_frame(struct client_port *port, struct span bytes)
{
	struct spotlane_client_stats *stats = &port->client->stats;
	struct wire_frame frame;
	enum wire_reject reject = wire_decode(bytes, &frame);
	if (reject != WIRE_TAKEN) {
		take_rejected(stats, reject);
		return;
	}
	uint8_t family = frame.h.family;
	if (family == WIRE_PUSH && frame.h.operation_scope == port->session) {
		port->refused = false;
		push_take(port, &frame);
		return;
	}
	if (frame.h.operation_scope != port->session ||
		(family != WIRE_CHALLENGE && family != WIRE_ACK && family != WIRE_REPLY)) {
		stats->frames_unexpected++;
		return;
	}
	port->refused = false;
	if (family == WIRE_CHALLENGE)
		take_challenge(port, &frame);
	else if (family == WIRE_ACK)
		take_ack(port, &frame);
	else
		take_reply(port, &frame);
}

static void receive_batch(struct client_port *port, uint32_t count)
{
	spotlane_client *client = port->client;
	client->stats.frames_received += count;
	for (uint32_t i = 0; i < count; i++) {
		const struct mmsghdr *msg = &client->in_msgs[i];
		client->stats.bytes_received += msg->msg_len;
		if (msg->msg_hdr.msg_flags & MSG_TRUNC)
			take_rejected(&client->stats, WIRE_REJECT_LENGTH);
		else
			port_take_frame(port, span_of(client->in_iov[i].iov_base, msg->msg_len));
	}
}

void port_receive(struct client_port *port)
{
	spotlane_client *client = port->client;
	for (uint32_t round = 0; round < CLIENT_RECEIVE_ROUNDS; round++) {
		int count = recvmmsg(
			port->fd, client->in_msgs, CLIENT_BATCH_FRAMES, MSG_DONTWAIT, NULL);
		if (count < 0 && errno == ECONNREFUSED) {
			client->stats.refused++;
			port->refused = true;
			continue;
		}
		if (count <= 0)
			return;
		client->now_ns = clock_boot_ns(client->clock);
		receive_batch(port, (uint32_t)count);
		if (count < CLIENT_BATCH_FRAMES)
			return;
	}
}
