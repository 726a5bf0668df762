// SPDX-License-Identifier: BSD-3-Clause
#include "client/internal.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "spot/name.h"

enum {
	BUDGET_US_DEFAULT = 5 * 1000 * 1000,
	TYPE_BYTES_MAX = 64,
};
#define BUDGET_US_MAX (UINT64_C(3600) * 1000 * 1000)

// ---- slots ----

static struct client_op *op_make(spotlane_client *client)
{
	if (client->op_count == client->op_max)
		return NULL;
	struct client_op *op = mem_zalloc(sizeof(*op));
	if (!op)
		return NULL;
	op->state = OP_FREE;
	op->slot = client->op_count;
	op->deadline.kind = TIMER_DEADLINE;
	op->repeat.kind = TIMER_REPEAT;
	client->ops[client->op_count++] = op;
	return op;
}

static struct client_op *op_take(spotlane_client *client)
{
	struct client_op *op = client->free_ops;
	if (op)
		client->free_ops = op->next_free;
	else
		op = op_make(client);
	return op;
}

static void op_put(spotlane_client *client, struct client_op *op)
{
	if (op->capacity > CLIENT_KEPT_BYTES_MAX) {
		mem_free(op->bytes);
		op->bytes = NULL;
		op->capacity = 0;
	}
	op->state = OP_FREE;
	op->next_free = client->free_ops;
	client->free_ops = op;
}

struct client_op *op_find(spotlane_client *client, uint64_t id)
{
	uint32_t slot = (uint32_t)id - 1;
	if (slot >= client->op_count)
		return NULL;
	struct client_op *op = client->ops[slot];
	return op->state != OP_FREE && op_id(op) == id ? op : NULL;
}

// ---- starting ----

static bool type_is_valid(const char *type)
{
	size_t size = strlen(type);
	return size >= 1 && size <= TYPE_BYTES_MAX;
}

static bool call_makes(const struct spotlane_client_call *call)
{
	return call->family == SPOTLANE_CALL_CREATE || call->family == SPOTLANE_CALL_GET_OR_CREATE;
}

static int call_check(const spotlane_client *client, const struct spotlane_client_call *call)
{
	if (call->size != sizeof(*call) || call->family < SPOTLANE_CALL_SEND ||
		call->family > SPOTLANE_CALL_LEAVE || call->port > client->port_count)
		return -EINVAL;
	if (!call->id || !id_is_valid(span_of(call->id, call->id_bytes)))
		return -EINVAL;
	if (call->type ? !type_is_valid(call->type) : call_makes(call))
		return -EINVAL;
	if (call->actor && (call->type || call->family > SPOTLANE_CALL_REQUEST))
		return -EINVAL;
	if (call->content_type > SPOTLANE_CONTENT_TEXT || call->budget_us > BUDGET_US_MAX ||
		(call->payload_bytes > 0 && !call->payload))
		return -EINVAL;
	bool control = call->family >= SPOTLANE_CALL_CREATE;
	size_t most = control ? WIRE_CONTROL_BYTES_MAX : WIRE_MESSAGE_BYTES_MAX;
	return call->payload_bytes <= most ? 0 : -EMSGSIZE;
}

static uint8_t call_family(const struct spotlane_client_call *call)
{
	switch (call->family) {
	case SPOTLANE_CALL_SEND:
		return call->type ? WIRE_INTENT_SEND : WIRE_SEND;
	case SPOTLANE_CALL_REQUEST:
		return call->type ? WIRE_INTENT_REQUEST : WIRE_REQUEST;
	case SPOTLANE_CALL_CREATE:
	case SPOTLANE_CALL_GET_OR_CREATE:
	case SPOTLANE_CALL_CLOSE:
	case SPOTLANE_CALL_LOOKUP:
	case SPOTLANE_CALL_JOIN:
	case SPOTLANE_CALL_LEAVE:
		return WIRE_CONTROL;
	}
	CHECK(!"call_check let an unknown family pass");
	return 0;
}

static uint16_t call_message_type(const struct spotlane_client_call *call)
{
	switch (call->family) {
	case SPOTLANE_CALL_SEND:
	case SPOTLANE_CALL_REQUEST:
		return call->message_type;
	case SPOTLANE_CALL_CREATE:
		return WIRE_CONTROL_CREATE;
	case SPOTLANE_CALL_GET_OR_CREATE:
		return WIRE_CONTROL_GET_OR_CREATE;
	case SPOTLANE_CALL_CLOSE:
		return WIRE_CONTROL_CLOSE;
	case SPOTLANE_CALL_LOOKUP:
		return WIRE_CONTROL_LOOKUP;
	case SPOTLANE_CALL_JOIN:
		return WIRE_CONTROL_JOIN;
	case SPOTLANE_CALL_LEAVE:
		return WIRE_CONTROL_LEAVE;
	}
	CHECK(!"call_check let an unknown family pass");
	return 0;
}

static struct client_port *call_port(
	spotlane_client *client, const struct spotlane_client_call *call)
{
	if (call->port > 0)
		return &client->ports[call->port - 1];
	struct client_port *port = &client->ports[client->port_next];
	client->port_next = (client->port_next + 1) % client->port_count;
	return port;
}

// The full id travels where an object may have to be made (T2); elsewhere the key is enough.
static bool family_needs_id(uint8_t family)
{
	return family == WIRE_INTENT_SEND || family == WIRE_INTENT_REQUEST ||
	       family == WIRE_CONTROL;
}

static bool op_keep_bytes(struct client_op *op, const struct spotlane_client_call *call)
{
	op->id_bytes = family_needs_id(op->h.family) ? (uint8_t)call->id_bytes : 0;
	op->payload_bytes = (uint32_t)call->payload_bytes;
	size_t size = (size_t)op->id_bytes + op->payload_bytes;
	if (size > op->capacity) {
		size_t capacity = size < 256 ? 256 : size;
		uint8_t *bytes = mem_zalloc(capacity);
		if (!bytes)
			return false;
		mem_free(op->bytes);
		op->bytes = bytes;
		op->capacity = capacity;
	}
	if (op->id_bytes > 0)
		memcpy(op->bytes, call->id, op->id_bytes);
	if (op->payload_bytes > 0)
		memcpy(op->bytes + op->id_bytes, call->payload, op->payload_bytes);
	return true;
}

static void op_fill_header(struct client_op *op, const struct spotlane_client_call *call)
{
	struct span id = span_of(call->id, call->id_bytes);
	bool actor = call->actor || call->family >= SPOTLANE_CALL_JOIN;
	struct spot_key key = actor ? actor_key_of(id) : spot_key_of(id);
	op->h = (struct wire_header){
		.version = WIRE_VERSION,
		.family = call_family(call),
		.session = op->port->session,
		.spot_key_lo = key.lo,
		.spot_key_hi = key.hi,
		.operation_scope = op->port->session,
		.operation_id = op_id(op),
		.spot_type = call->type ? type_key_of(call->type).value : 0,
		.message_type = call_message_type(call),
		.content_type = call->content_type,
		.total_bytes = (uint32_t)call->payload_bytes,
	};
	if (call->explain && !op_is_one_way(op))
		op->h.flags |= WIRE_FLAG_EXPLAIN;
}

// A payload that does not fit one frame goes in segments; the first of them also carries the id.
static bool op_prepare_upload(const spotlane_client *client, struct client_op *op)
{
	uint32_t room = client->frame_bytes_max - WIRE_HEADER_BYTES - op->id_bytes;
	if (op->payload_bytes <= room)
		return true;
	uint32_t words = seg_bitmap_words(seg_count(op->payload_bytes, (uint16_t)room));
	op->upload = mem_zalloc(sizeof(*op->upload) + words * sizeof(uint64_t));
	if (!op->upload)
		return false;
	seg_tx_init(&op->upload->tx, op->upload->bitmap, op->payload_bytes, (uint16_t)room,
		CLIENT_UPLOAD_WINDOW);
	op->h.flags |= WIRE_FLAG_SEGMENTED;
	op->h.segment_unit = (uint16_t)room;
	return true;
}

int spotlane_client_start(
	spotlane_client *client, const struct spotlane_client_call *call, uint64_t *out_ticket)
{
	int bad = client->closing ? -ESHUTDOWN : call_check(client, call);
	if (bad)
		return bad;
	struct client_op *op = op_take(client);
	if (!op)
		return client->op_count == client->op_max ? -EAGAIN : -ENOMEM;
	op->round++;
	op->port = call_port(client, call);
	op_fill_header(op, call);
	if (!op_keep_bytes(op, call) || !op_prepare_upload(client, op)) {
		op_put(client, op);
		return -ENOMEM;
	}
	op->state = OP_QUEUED;
	op->done = call->done;
	op->arg = call->arg;
	op->sent_cookie = 0;
	op->sendings = 0;
	op->repeat_wait_ms = 0;
	op->started_ns = clock_boot_ns(client->clock);
	uint64_t budget_us = call->budget_us ? call->budget_us : BUDGET_US_DEFAULT;
	op->deadline_ns = op->started_ns + budget_us * 1000;
	wheel_set(&client->wheel, &op->deadline.node, op->deadline_ns);
	client->stats.started++;
	client->stats.in_flight++;
	port_queue(op->port, op);
	if (out_ticket)
		*out_ticket = op_id(op);
	return 0;
}

// ---- ending ----

static void op_detach(spotlane_client *client, struct client_op *op)
{
	wheel_cancel(&op->deadline.node);
	wheel_cancel(&op->repeat.node);
	if (op->state == OP_LEAVING)
		TAILQ_REMOVE(&op->port->leaving, op, queue_link);
	else if (op->in_queue)
		TAILQ_REMOVE(&op->port->queue, op, queue_link);
	if (op->in_acks)
		TAILQ_REMOVE(&op->port->acks, op, acks_link);
	op->in_queue = false;
	op->in_acks = false;
	mem_free(op->upload);
	op->upload = NULL;
	if (op->download)
		client->reply_bytes -= op->download->rx.total_bytes;
}

static void end_count(
	struct spotlane_client_stats *stats, const struct spotlane_client_result *result)
{
	stats->in_flight--;
	switch ((enum spotlane_end)result->end) {
	case SPOTLANE_END_REPLY:
		stats->replies++;
		stats->by_kind[result->kind % ARRAY_COUNT(stats->by_kind)]++;
		stats->by_reason[result->reason % ARRAY_COUNT(stats->by_reason)]++;
		return;
	case SPOTLANE_END_SENT:
		stats->sent++;
		return;
	case SPOTLANE_END_DEADLINE:
		stats->deadlines++;
		return;
	case SPOTLANE_END_CANCELLED:
		stats->cancelled++;
		return;
	case SPOTLANE_END_LOCAL:
		stats->local++;
		return;
	}
}

void op_end(spotlane_client *client, struct client_op *op, struct spotlane_client_result *result)
{
	CHECK(op->state != OP_FREE);
	op_detach(client, op);
	end_count(&client->stats, result);
	client->ended++;
	// The op is free before its completion runs, so that the completion may start the next
	// call.
	struct op_download *download = op->download;
	spotlane_client_done *done = op->done;
	void *arg = op->arg;
	op->download = NULL;
	op_put(client, op);
	if (done)
		done(arg, result);
	if (download) {
		mem_free(download->bytes);
		mem_free(download);
	}
}

struct spotlane_client_result op_result(const struct client_op *op, uint64_t now_ns)
{
	return (struct spotlane_client_result){
		.port = op->port->index,
		.latency_ns = now_ns > op->started_ns ? now_ns - op->started_ns : 0,
	};
}

void op_end_here(spotlane_client *client, struct client_op *op, enum spotlane_end end,
	enum spotlane_kind kind, uint8_t reason)
{
	struct spotlane_client_result result = op_result(op, clock_boot_ns(client->clock));
	result.end = (uint8_t)end;
	result.kind = (uint8_t)kind;
	result.reason = reason;
	result.accepted = op->state == OP_QUEUED ? ACCEPTED_NO : ACCEPTED_UNKNOWN;
	op_end(client, op, &result);
}

int spotlane_client_cancel(spotlane_client *client, uint64_t ticket)
{
	struct client_op *op = op_find(client, ticket);
	if (!op)
		return -ENOENT;
	op_end_here(client, op, SPOTLANE_END_CANCELLED, SPOTLANE_KIND_CANCELLED, REASON_NONE);
	return 0;
}
