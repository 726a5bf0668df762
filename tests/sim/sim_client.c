// SPDX-License-Identifier: BSD-3-Clause
// The clients: one session with each node, unanswered frames repeated unchanged (M9), books of results.
#include <stdio.h>

#include "sim.h"

void sim_client_open(struct sim *s, uint32_t index)
{
	struct sim_client *c = &s->clients[index];
	uint8_t v4[4] = {10, 0, 1, (uint8_t)(index + 1)};
	peer_ip_from_v4(c->peer.ip, v4);
	c->peer.port = 5000;
	for (uint32_t n = 0; n < SIM_NODES_MAX; n++)
		c->sessions[n].id = 0xc1000000 + index * 16 + n;
}

static void send(struct sim *s, uint32_t client, uint32_t node, const void *frame, size_t bytes)
{
	sim_check(s, bytes > 0, "the client's frames encode");
	sim_net_send(s, &s->clients[client].peer, &s->nodes[node].address, frame, (uint32_t)bytes);
}

void sim_client_hello(struct sim *s, uint32_t index, uint32_t node)
{
	struct sim_session *session = &s->clients[index].sessions[node];
	uint8_t frame[256];
	struct wire_header h = {.version = WIRE_VERSION,
		.family = WIRE_HELLO,
		.session = session->id,
		.counter = ++session->counter};
	send(s, index, node, frame,
		wire_encode(&h, span_of(NULL, 0), span_of(NULL, 0), frame, sizeof(frame)));
}

// The same frame each time, but for the cookie, which is the present one.
static void launch(struct sim *s, uint32_t number)
{
	struct sim_op *op = &s->ops[number];
	uint8_t frame[512];
	uint64_t payload = number;
	bool whole_id = op->header.family != WIRE_REQUEST && op->header.family != WIRE_SEND;
	op->header.cookie = s->clients[op->client].sessions[op->node].cookie;
	op->launches++;
	op->boots_seen = (uint8_t)s->nodes[op->node].boots;
	send(s, op->client, op->node, frame,
		wire_encode(&op->header, whole_id ? span_of(op->id, op->id_bytes) : span_of(NULL, 0),
			op->message ? span_of(&payload, sizeof(payload)) : span_of(NULL, 0), frame,
			sizeof(frame)));
}

static void fill_message(struct sim *s, struct wire_header *h)
{
	static const uint16_t types[] = {
		SIM_COUNT, SIM_COUNT, SIM_COUNT, SIM_ASK, SIM_ASK, SIM_WORK, SIM_CLOSE};
	h->message_type = types[rng_below(&s->rng, 7)];
	if (s->quiet && h->message_type == SIM_ASK) // Spots that wait for each other use budgets up
		h->message_type = SIM_WORK;
	bool intent = rng_below(&s->rng, 2) == 0, one_way = rng_below(&s->rng, 8) == 0;
	if (intent)
		h->spot_type = type_key_of("cell").value;
	if (intent)
		h->family = one_way ? WIRE_INTENT_SEND : WIRE_INTENT_REQUEST;
	else
		h->family = one_way ? WIRE_SEND : WIRE_REQUEST;
	h->total_bytes = sizeof(uint64_t);
}

static void fill_control(struct sim *s, struct wire_header *h)
{
	h->family = WIRE_CONTROL;
	h->message_type = (uint16_t)(WIRE_CONTROL_CREATE + rng_below(&s->rng, 4));
	if (h->message_type <= WIRE_CONTROL_GET_OR_CREATE)
		h->spot_type = type_key_of("room").value;
}

uint32_t sim_client_new_op(struct sim *s, uint32_t node)
{
	if (s->op_count == SIM_OPS_MAX)
		return SIM_OPS_MAX;
	uint32_t number = s->op_count++;
	struct sim_op *op = &s->ops[number];
	op->client = (uint8_t)rng_below(&s->rng, SIM_CLIENTS);
	op->node = (uint8_t)node;
	op->message = rng_below(&s->rng, 5) != 0;
	struct sim_session *session = &s->clients[op->client].sessions[node];
	bool user = !op->message || rng_below(&s->rng, 4) == 0;
	char text[16];
	op->id_bytes = (uint8_t)snprintf(text, sizeof(text), "%c-%u", user ? 'r' : 's',
		(unsigned)rng_below(&s->rng, SIM_SPOTS));
	memcpy(op->id, text, op->id_bytes);
	struct spot_key key = spot_key_of(span_of(op->id, op->id_bytes));
	op->header = (struct wire_header){.version = WIRE_VERSION,
		.session = session->id,
		.counter = ++session->counter,
		.spot_key_lo = key.lo,
		.spot_key_hi = key.hi,
		.operation_scope = session->id,
		.operation_id = number + 1,
		// In calm weather enough for every step: a result must come, also by way of a peer.
		.budget_us = s->quiet ? 500000 : (uint32_t)(20000 + rng_below(&s->rng, 180000))};
	if (op->message)
		fill_message(s, &op->header);
	else
		fill_control(s, &op->header);
	op->deadline_ns = s->now_ns + op->header.budget_us * UINT64_C(1000);
	sim_totals.operations++;
	sim_trace(s, "client %u op %u to n%u: %s %s type %u", op->client, number, node,
		wire_family_name(op->header.family), text, op->header.message_type);
	launch(s, number);
	return number;
}

// A frame that an earlier run of the node may have taken is not sent to the next one: it could run
// twice. (Its first challenge after a restart is answered all the same when it was sent only once.)
static bool may_repeat(const struct sim *s, const struct sim_op *op)
{
	return op->results == 0 && s->now_ns < op->deadline_ns &&
	       op->boots_seen == (uint8_t)s->nodes[op->node].boots && op->launches < 5;
}

void sim_client_repeat(struct sim *s)
{
	if (s->op_count == 0)
		return;
	uint64_t recent = s->op_count < 20 ? s->op_count : 20;
	uint32_t at = s->op_count - 1 - (uint32_t)rng_below(&s->rng, recent);
	if (may_repeat(s, &s->ops[at]))
		launch(s, at);
}

// ---- what comes back ----
static void take_reply(struct sim *s, uint32_t client, const struct wire_frame *f)
{
	uint64_t number = f->h.operation_id - 1;
	sim_check(s, number < s->op_count && s->ops[number].client == client,
		"replies name an operation of the client's");
	struct sim_op *op = &s->ops[number];
	struct result got = {f->h.kind, f->h.reason, f->h.accepted};
	sim_note(s, 6, number << 16 | (uint64_t)got.kind << 8 | got.reason);
	sim_trace(s, "client %u op %llu: %s/%s", client, (unsigned long long)number,
		result_kind_name(got.kind), got.reason == 0 ? "-" : result_reason_name(got.reason));
	bool one_way = op->header.family == WIRE_SEND || op->header.family == WIRE_INTENT_SEND;
	sim_check(s, !one_way, "M6: a send has no result");
	if (op->results++ == 0) {
		op->first = got;
		sim_totals.results++;
		sim_totals.kinds[got.kind % 24]++;
	}
	sim_check(s, memcmp(&op->first, &got, sizeof(got)) == 0, "I7: one result, however often sent");
	if (op->message && got.kind == RESULT_OK)
		sim_check(s, op->executions == 1, "I8: OK means it ran");
	if (got.accepted == ACCEPTED_NO)
		sim_check(s, op->executions == 0, "I8: a definite no never ran");
}

static void take_challenge(struct sim *s, uint32_t client, uint32_t node, const struct wire_frame *f)
{
	struct sim_session *session = &s->clients[client].sessions[node];
	session->cookie = f->h.cookie;
	if (f->h.operation_id == 0 || f->h.operation_id > s->op_count)
		return;
	uint32_t number = (uint32_t)f->h.operation_id - 1;
	struct sim_op *op = &s->ops[number];
	bool once = op->launches == 1 && s->now_ns < op->deadline_ns && op->results == 0;
	if (op->client == client && op->node == node && op->header.cookie != session->cookie &&
		(once || may_repeat(s, op)))
		launch(s, number);
}

void sim_client_receive(struct sim *s, uint32_t client, const struct peer *from, struct span frame)
{
	struct wire_frame f;
	sim_check(s, wire_decode(frame, &f) == WIRE_TAKEN, "the node's frames decode");
	if (f.h.family == WIRE_CHALLENGE)
		take_challenge(s, client, from->ip[15] - 1u, &f);
	else if (f.h.family == WIRE_REPLY)
		take_reply(s, client, &f);
}
