// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

struct rig_client *rig_client_raw(struct rig *rig)
{
	struct rig_client *c = &rig->clients[rig->client_count++];
	const uint8_t v4[4] = {10, 0, 0, rig->second ? 102 : 2};
	memset(c, 0, sizeof(*c));
	struct fabric_loop_endpoint e = {
		.port = (uint16_t)(5000 + rig->client_count), .frames = 2 * rig->frames, .payload_bytes_max = 1472};
	peer_ip_from_v4(e.ip, v4);
	c->queue = fabric_loop_open(rig->net, &e);
	assert_non_null(c->queue);
	memcpy(c->peer.ip, e.ip, 16);
	c->peer.port = e.port;
	c->session = 0xabcd000000 + rig->client_count;
	for (uint16_t i = 0; i < rig->workers; i++)
		fabric_loop_wire(c->queue, rig->queues[i]);
	return c;
}

static struct wire_header header(struct rig_client *c, uint8_t family)
{
	return (struct wire_header){.version = WIRE_VERSION,
		.family = family,
		.session = c->session,
		.counter = ++c->counter,
		.cookie = c->cookie};
}

struct rig_client *rig_client(struct rig *rig)
{
	struct rig_client *c = rig_client_raw(rig);
	uint8_t frame[256];
	struct wire_header h = header(c, WIRE_HELLO);
	size_t n = wire_encode(&h, span_of(NULL, 0), span_of(NULL, 0), frame, sizeof(frame));
	assert_true(n > 0);
	rig_inject(rig, c, 0, frame, n);
	rig_settle(rig);
	static struct rig_reply r;
	assert_true(rig_receive(rig, c, &r));
	assert_int_equal(r.h.family, WIRE_CHALLENGE);
	c->cookie = r.h.cookie;
	return c;
}

struct rig_message rig_request(const char *id, uint16_t type, const void *payload, size_t bytes)
{
	return (struct rig_message){.id = id, .type = type, .payload = span_of(payload, bytes)};
}

static struct wire_header message_header(
	struct rig_client *c, const struct rig_message *m, struct span *out_id)
{
	uint8_t family = m->family != 0 ? m->family
		: m->intent != NULL     ? WIRE_INTENT_REQUEST
					: WIRE_REQUEST;
	struct wire_header h = header(c, family);
	struct spot_key key =
		m->actor ? actor_key_of(rig_id(m->id)) : spot_key_of(rig_id(m->id));
	if (m->counter != 0)
		h.counter = m->counter;
	h.flags = m->flags;
	h.spot_key_lo = key.lo;
	h.spot_key_hi = key.hi;
	h.operation_scope = c->session;
	h.operation_id = ++c->operation;
	h.owner_node = m->owner_node;
	h.owner_lease = m->owner_lease;
	h.object_generation = m->object_generation;
	h.message_type = m->type;
	h.budget_us = m->budget_us;
	h.spot_type = m->intent != NULL ? type_key_of(m->intent).value : m->spot_type;
	h.total_bytes = (uint32_t)m->payload.size;
	*out_id = m->intent != NULL || m->with_id ? rig_id(m->id) : span_of(NULL, 0);
	return h;
}

size_t rig_frame(struct rig *rig, struct rig_client *client, const struct rig_message *m, uint8_t *out,
	uint64_t *out_operation)
{
	struct span id;
	struct wire_header h = message_header(client, m, &id);
	(void)rig;
	if (out_operation != NULL)
		*out_operation = h.operation_id;
	size_t n = wire_encode(&h, id, m->payload, out, 65536);
	assert_true(n > 0);
	return n;
}

void rig_inject(
	struct rig *rig, struct rig_client *client, uint16_t worker, const void *data, size_t bytes)
{
	assert_true(fabric_loop_inject(rig->queues[worker], &client->peer, data, (uint32_t)bytes));
}

uint64_t rig_send(struct rig *rig, struct rig_client *client, uint16_t worker, const struct rig_message *m)
{
	uint8_t frame[65536];
	uint64_t operation;
	size_t n = rig_frame(rig, client, m, frame, &operation);
	rig_inject(rig, client, worker, frame, n);
	return operation;
}

bool rig_receive(struct rig *rig, struct rig_client *client, struct rig_reply *out)
{
	struct frame f;
	const struct fabric_ops *ops = fabric_base(client->queue)->ops;
	(void)rig;
	if (ops->rx(client->queue, &f, 1) == 0)
		return false;
	struct wire_frame wf;
	assert_int_equal(wire_decode(span_of(f.data, f.bytes), &wf), WIRE_TAKEN);
	out->h = wf.h;
	out->frame_bytes = f.bytes;
	out->body_bytes = (uint32_t)wf.segment.size;
	memcpy(out->body, wf.segment.data, wf.segment.size);
	ops->release(client->queue, &f, 1);
	return true;
}

void rig_ask(struct rig *rig, struct rig_client *client, uint16_t worker, const struct rig_message *m,
	struct rig_reply *out)
{
	uint64_t operation = rig_send(rig, client, worker, m);
	rig_settle(rig);
	assert_true(rig_receive(rig, client, out));
	assert_int_equal(out->h.family, WIRE_REPLY);
	assert_int_equal(out->h.operation_id, operation);
	assert_int_equal(out->h.operation_scope, client->session);
}

void rig_expect(const struct rig_reply *reply, enum result_kind kind, enum result_reason reason,
	enum result_accepted accepted)
{
	if (reply->h.kind != kind || reply->h.reason != reason || reply->h.accepted != accepted)
		fail_msg("got %s/%s/%s", result_kind_name(reply->h.kind),
			result_reason_name(reply->h.reason),
			result_accepted_name(reply->h.accepted));
}

static void send_segment(struct rig *rig, struct rig_client *c, uint16_t worker, struct wire_header h,
	const struct rig_message *m, struct span id, struct seg_tx *tx, uint32_t index)
{
	static uint8_t frame[65536];
	uint32_t offset = seg_tx_offset(tx, index);
	h.counter = ++c->counter;
	h.segment_offset = offset;
	if (seg_tx_spent(tx))
		h.flags |= WIRE_FLAG_ACK_NOW;
	size_t n = wire_encode(&h, index == 0 ? id : span_of(NULL, 0),
		span_of(m->payload.data + offset, seg_tx_bytes(tx, index)), frame, sizeof(frame));
	assert_true(n > 0);
	rig_inject(rig, c, worker, frame, n);
}

bool rig_send_segmented(struct rig *rig, struct rig_client *client, uint16_t worker,
	const struct rig_message *m, struct rig_reply *out)
{
	static uint64_t bitmap[SEG_COUNT_MAX / 64];
	struct span id;
	struct seg_tx tx;
	struct wire_header h = message_header(client, m, &id);
	memset(bitmap, 0, sizeof(bitmap));
	h.flags |= WIRE_FLAG_SEGMENTED;
	h.segment_unit = 1024;
	seg_tx_init(&tx, bitmap, (uint32_t)m->payload.size, 1024, 64);
	for (int silent = 0; silent < 4 && !tx.done;) {
		uint32_t index;
		while (seg_tx_next(&tx, &index))
			send_segment(rig, client, worker, h, m, id, &tx, index);
		rig_settle(rig);
		bool heard = false;
		while (rig_receive(rig, client, out)) {
			struct seg_ack ack;
			if (out->h.family == WIRE_REPLY)
				return true;
			assert_int_equal(out->h.family, WIRE_ACK);
			assert_true(seg_ack_decode(span_of(out->body, out->body_bytes), &ack));
			seg_tx_ack(&tx, &ack);
			heard = true;
		}
		silent = heard ? 0 : silent + 1;
		if (!heard)
			seg_tx_timeout(&tx);
	}
	return rig_receive(rig, client, out);
}
