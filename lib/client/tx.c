// SPDX-License-Identifier: BSD-3-Clause
#include "client/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/check.h"

// Sending. Frames are encoded into the port's batch in this order: the request for a cookie,
// reports of segments received, then calls in turn. Nothing but the request for a cookie leaves
// before a cookie is held: the node would only answer with a challenge.

enum { PUMP_ROUNDS = 64 };

static uint64_t ms_ns(uint64_t ms)
{
	return ms * 1000 * 1000;
}

// ---- the batch ----

static bool batch_is_full(const struct client_port *port)
{
	return port->out_count == CLIENT_BATCH_FRAMES;
}

static void batch_put(
	struct client_port *port, struct wire_header *h, struct span id, struct span segment)
{
	struct spotlane_client *client = port->client;
	CHECK(!batch_is_full(port));
	uint8_t *out = port->out_bytes + (size_t)port->out_count * client->frame_bytes_max;
	size_t size = wire_encode(h, id, segment, out, client->frame_bytes_max);
	CHECK(size > 0);
	port->out_iov[port->out_count] = (struct iovec){.iov_base = out, .iov_len = size};
	port->out_count++;
}

static void batch_watch(struct client_port *port, bool blocked)
{
	if (port->blocked == blocked)
		return;
	port->blocked = blocked;
	struct epoll_event event = {
		.events = EPOLLIN | (blocked ? EPOLLOUT : 0u), .data.u32 = port->index};
	CHECK(epoll_ctl(port->client->epoll_fd, EPOLL_CTL_MOD, port->fd, &event) == 0);
}

// One frame the kernel would not take is skipped and counted: to the protocol it is a lost frame.
// A pending "nothing listens there" is reported once by the next call in place of sending.
static bool batch_skip(struct client_port *port, int error)
{
	struct spotlane_client_stats *stats = &port->client->stats;
	if (error == EAGAIN || error == EWOULDBLOCK) {
		batch_watch(port, true);
		return false;
	}
	if (error == ECONNREFUSED) {
		stats->refused++;
		port->refused = true;
		return true;
	}
	if (error != EINTR) {
		stats->send_errors++;
		port->out_sent++;
	}
	return true;
}

// One-way calls end when the kernel has their frame.
static void batch_left(struct client_port *port)
{
	struct spotlane_client *client = port->client;
	while (!TAILQ_EMPTY(&port->leaving)) {
		struct client_op *op = TAILQ_FIRST(&port->leaving);
		struct spotlane_client_result result = op_result(op, client->now_ns);
		result.end = SPOTLANE_END_SENT;
		result.kind = SPOTLANE_KIND_OK;
		result.accepted = SPOTLANE_ACCEPTED_UNKNOWN;
		op_end(client, op, &result);
	}
}

static void batch_flush(struct client_port *port)
{
	struct spotlane_client_stats *stats = &port->client->stats;
	// Each round sends, skips one frame or uses up one pending error.
	for (uint32_t round = 0;
		port->out_sent < port->out_count && round < 4 * CLIENT_BATCH_FRAMES; round++) {
		uint32_t from = port->out_sent;
		int sent = sendmmsg(port->fd, port->out_msgs + from, port->out_count - from, 0);
		if (sent < 0 && !batch_skip(port, errno))
			return;
		for (int i = 0; i < sent; i++)
			stats->bytes_sent += port->out_iov[from + (uint32_t)i].iov_len;
		if (sent > 0) {
			stats->frames_sent += (uint32_t)sent;
			port->used_ns = port->client->now_ns;
			port->out_sent += (uint32_t)sent;
		}
	}
	stats->send_errors += port->out_count - port->out_sent;
	port->out_count = 0;
	port->out_sent = 0;
	batch_watch(port, false);
	batch_left(port);
}

// ---- cookie and reports ----

void port_ask_cookie(struct client_port *port)
{
	if (port->cookie_state != COOKIE_ABSENT)
		return;
	port->cookie_state = COOKIE_ASKED;
	port->hello_wait_ms = CLIENT_REPEAT_MS_MIN;
	port->hello_due = true;
}

static void hello_put(struct client_port *port)
{
	struct spotlane_client *client = port->client;
	struct wire_header h = {
		.version = WIRE_VERSION,
		.family = WIRE_HELLO,
		.session = port->session,
		.counter = ++port->counter,
		// A keepalive of a known session shows its cookie (M10).
		.cookie = port->cookie_state == COOKIE_HELD ? port->cookie : 0,
	};
	batch_put(port, &h, span_of(NULL, 0), span_of(NULL, 0));
	port->hello_due = false;
	client->stats.hellos++;
	wheel_set(&client->wheel, &port->hello.node, client->now_ns + ms_ns(port->hello_wait_ms));
	port->hello_wait_ms = port->hello_wait_ms * 2 < CLIENT_REPEAT_MS_MAX
				      ? port->hello_wait_ms * 2
				      : CLIENT_REPEAT_MS_MAX;
}

static void ack_put(
	struct client_port *port, const struct wire_header *of, const struct seg_ack *ack)
{
	uint8_t body[SEG_ACK_BYTES];
	seg_ack_encode(ack, body);
	struct wire_header h = {
		.version = WIRE_VERSION,
		.family = WIRE_ACK,
		.session = port->session,
		.counter = ++port->counter,
		.cookie = port->cookie,
		.spot_key_lo = of->spot_key_lo,
		.spot_key_hi = of->spot_key_hi,
		.operation_scope = of->operation_scope,
		.operation_id = of->operation_id,
		.content_type = WIRE_CONTENT_ACK,
		.total_bytes = SEG_ACK_BYTES,
	};
	batch_put(port, &h, span_of(NULL, 0), span_of(body, sizeof(body)));
}

void port_queue_ack(struct client_port *port, struct client_op *op)
{
	if (op->in_acks)
		return;
	op->in_acks = true;
	TAILQ_INSERT_TAIL(&port->acks, op, acks_link);
}

static void acks_put(struct client_port *port)
{
	while (!TAILQ_EMPTY(&port->acks) && !batch_is_full(port)) {
		struct client_op *op = TAILQ_FIRST(&port->acks);
		TAILQ_REMOVE(&port->acks, op, acks_link);
		op->in_acks = false;
		struct seg_ack ack;
		seg_rx_report(&op->download->rx, port->client->receive_window, false, &ack);
		ack_put(port, &op->download->h, &ack);
	}
}

void port_ack_done(struct client_port *port, const struct wire_header *reply)
{
	// Room is made at once: a report that found none would leave the node repeating segments.
	if (batch_is_full(port))
		batch_flush(port);
	if (batch_is_full(port))
		return;
	// Base 0 is right whatever the node has sent so far: `done` alone ends its sending.
	struct seg_ack ack = {.window = port->client->receive_window, .done = 1};
	ack_put(port, reply, &ack);
}

// ---- calls ----

void port_queue(struct client_port *port, struct client_op *op)
{
	if (op->in_queue || op->state == OP_LEAVING)
		return;
	op->in_queue = true;
	TAILQ_INSERT_TAIL(&port->queue, op, queue_link);
}

static void queue_drop_first(struct client_port *port, struct client_op *op)
{
	TAILQ_REMOVE(&port->queue, op, queue_link);
	op->in_queue = false;
}

static void repeat_arm(struct client_port *port, struct client_op *op, uint32_t first_ms)
{
	if (op->repeat_wait_ms == 0)
		op->repeat_wait_ms = first_ms;
	wheel_set(&port->client->wheel, &op->repeat.node,
		port->client->now_ns + ms_ns(op->repeat_wait_ms));
}

static void op_stamp_budget(const struct client_port *port, struct client_op *op)
{
	uint64_t left_us = op_budget_left_ns(op, port->client->now_ns) / 1000;
	op->h.budget_us = left_us == 0 ? 1 : left_us > UINT32_MAX ? UINT32_MAX : (uint32_t)left_us;
}

// A single frame. Sent again (after a challenge, or by option) it is the same frame: same counter,
// same budget; only the cookie is the present one (M9).
static void op_put_frame(struct client_port *port, struct client_op *op)
{
	queue_drop_first(port, op);
	if (op->h.counter != 0 && port->counter - op->h.counter >= CLIENT_COUNTER_WINDOW)
		return; // the node would drop it unseen: too many frames have followed
	if (op->h.counter == 0) {
		op->h.counter = ++port->counter;
		op_stamp_budget(port, op);
	} else {
		port->client->stats.repeats++;
	}
	op->h.cookie = port->cookie;
	op->sent_cookie = port->cookie;
	op->sendings++;
	batch_put(port, &op->h, span_of(op->bytes, op->id_bytes),
		span_of(op->bytes + op->id_bytes, op->payload_bytes));
	if (op_is_one_way(op)) {
		op->state = OP_LEAVING;
		TAILQ_INSERT_TAIL(&port->leaving, op, queue_link);
		return;
	}
	op->state = OP_SENT;
	if (port->client->repeat_after_ms > 0)
		repeat_arm(port, op, port->client->repeat_after_ms);
}

static void op_put_segment(
	struct client_port *port, struct client_op *op, uint32_t index, bool last)
{
	struct op_upload *upload = op->upload;
	struct wire_header h = op->h;
	h.counter = ++port->counter;
	h.cookie = port->cookie;
	h.segment_offset = seg_tx_offset(&upload->tx, index);
	if (last)
		h.flags |= WIRE_FLAG_ACK_NOW;
	const uint8_t *payload = op->bytes + op->id_bytes + h.segment_offset;
	batch_put(port, &h, span_of(op->bytes, index == 0 ? op->id_bytes : 0),
		span_of(payload, seg_tx_bytes(&upload->tx, index)));
	struct spotlane_client_stats *stats = &port->client->stats;
	stats->segments_sent++;
	if (index < upload->sent_end)
		stats->repeats++;
	else
		upload->sent_end = index + 1;
}

// Some segments, then the next call's turn. What follows is driven by reports and by silence.
static void op_put_segments(struct client_port *port, struct client_op *op)
{
	queue_drop_first(port, op);
	if (op->state == OP_QUEUED)
		op->state = OP_SENDING;
	op_stamp_budget(port, op);
	op->sent_cookie = port->cookie;
	uint32_t index = 0;
	for (uint32_t i = 0; i < CLIENT_SEGMENTS_IN_TURN && !batch_is_full(port); i++) {
		if (!seg_tx_next(&op->upload->tx, &index))
			break;
		op_put_segment(port, op, index, seg_tx_spent(&op->upload->tx));
	}
	if (!seg_tx_spent(&op->upload->tx))
		port_queue(port, op);
	repeat_arm(port, op, CLIENT_REPEAT_MS_MIN);
}

static void queue_put(struct client_port *port)
{
	while (!TAILQ_EMPTY(&port->queue) && !batch_is_full(port)) {
		struct client_op *op = TAILQ_FIRST(&port->queue);
		if (op->upload)
			op_put_segments(port, op);
		else
			op_put_frame(port, op);
	}
}

bool port_is_ready(const struct client_port *port)
{
	if (port->blocked)
		return false;
	if (port->hello_due || port->out_count > 0)
		return true;
	if (port->cookie_state == COOKIE_ABSENT)
		return !TAILQ_EMPTY(&port->queue);
	return port->cookie_state == COOKIE_HELD &&
		!(TAILQ_EMPTY(&port->queue) && TAILQ_EMPTY(&port->acks));
}

// A node forgets a silent session, and then takes nothing without a fresh cookie. A request would
// be challenged, but a one-way message would be lost unnoticed: so the cookie is asked for first.
static void cookie_age(struct client_port *port)
{
	uint64_t fresh_ns = (uint64_t)CLIENT_COOKIE_FRESH_S * 1000000000u;
	if (port->cookie_state == COOKIE_HELD && port->client->now_ns - port->used_ns > fresh_ns)
		port->cookie_state = COOKIE_ABSENT;
}

void port_pump(struct client_port *port)
{
	cookie_age(port);
	if (port->cookie_state == COOKIE_ABSENT && !TAILQ_EMPTY(&port->queue))
		port_ask_cookie(port);
	// The ceiling keeps completions that start calls from holding the loop for ever.
	for (uint32_t round = 0; round < PUMP_ROUNDS && port_is_ready(port); round++) {
		if (port->hello_due && !batch_is_full(port))
			hello_put(port);
		if (port->cookie_state == COOKIE_HELD) {
			acks_put(port);
			queue_put(port);
		}
		batch_flush(port);
	}
	// The kernel's buffer may have room again.
	if (port->blocked)
		batch_flush(port);
}
