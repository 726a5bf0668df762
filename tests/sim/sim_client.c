// SPDX-License-Identifier: BSD-3-Clause
// The clients of the simulator: they repeat unanswered frames unchanged (M9) and keep books of results.
#include <stdio.h>

#include "sim.h"

void sim_client_open(struct sim *s, uint32_t index)
{
	static const uint8_t v4[4] = {10, 0, 0, 2};
	struct sim_client *c = &s->clients[index];
	struct fabric_loop_endpoint e = {.port = (uint16_t)(5000 + index), .frames = 4096};
	peer_ip_from_v4(e.ip, v4);
	c->queue = fabric_loop_open(s->net, &e);
	sim_check(s, c->queue != NULL, "memory");
	memcpy(c->peer.ip, e.ip, sizeof(e.ip));
	c->peer.port = e.port;
	c->session = 0xc1000000 + index;
	for (uint32_t w = 0; w < SIM_WORKERS; w++)
		fabric_loop_wire(c->queue, s->queues[w]);
}

void sim_client_hello(struct sim *s, uint32_t index)
{
	struct sim_client *c = &s->clients[index];
	uint8_t frame[256];
	struct wire_header h = {.version = WIRE_VERSION, .family = WIRE_HELLO, .session = c->session,
		.counter = ++c->counter};
	size_t n = wire_encode(&h, span_of(NULL, 0), span_of(NULL, 0), frame, sizeof(frame));
	(void)fabric_loop_inject(s->queues[0], &c->peer, frame, (uint32_t)n);
}

static void launch(struct sim *s, uint32_t op)
{
	if (rng_below(&s->rng, 1000) < s->drop_permille)
		return;
	uint32_t copies = rng_below(&s->rng, 1000) < s->repeat_permille ? 2 : 1;
	for (; copies > 0 && s->air_count < SIM_AIR_MAX; copies--)
		// A source port always reaches the same worker, as receive-side scaling would have it.
		s->air[s->air_count++] = (struct sim_air){
			op, s->ops[op].client, (uint8_t)(s->ops[op].client % SIM_WORKERS)};
}

void sim_client_deliver(struct sim *s, uint32_t at)
{
	struct sim_air flying = s->air[at];
	s->air[at] = s->air[--s->air_count];
	const struct sim_op *op = &s->ops[flying.op];
	(void)fabric_loop_inject(
		s->queues[flying.worker], &s->clients[flying.client].peer, op->frame, op->bytes);
}

static void fill_message(struct sim *s, struct wire_header *h)
{
	static const uint16_t types[] = {SIM_COUNT, SIM_COUNT, SIM_COUNT, SIM_ASK, SIM_CLOSE};
	h->message_type = types[rng_below(&s->rng, 5)];
	bool intent = rng_below(&s->rng, 2) == 0;
	h->family = intent ? WIRE_INTENT_REQUEST : WIRE_REQUEST;
	if (intent)
		h->spot_type = type_key_of("cell").value;
}

static void fill_control(struct sim *s, struct wire_header *h)
{
	h->family = WIRE_CONTROL;
	h->message_type = (uint16_t)(WIRE_CONTROL_CREATE + rng_below(&s->rng, 4));
	if (h->message_type <= WIRE_CONTROL_GET_OR_CREATE)
		h->spot_type = type_key_of("room").value;
}

void sim_client_new_op(struct sim *s)
{
	if (s->op_count == SIM_OPS_MAX)
		return;
	struct sim_op *op = &s->ops[s->op_count];
	uint64_t number = s->op_count++;
	op->client = (uint8_t)rng_below(&s->rng, SIM_CLIENTS);
	op->message = rng_below(&s->rng, 5) != 0;
	struct sim_client *c = &s->clients[op->client];
	bool user = !op->message || rng_below(&s->rng, 4) == 0;
	char text[16];
	int n = snprintf(text, sizeof(text), "%c-%u", user ? 'r' : 's',
		(unsigned)rng_below(&s->rng, SIM_SPOTS));
	struct span id = span_of(text, (size_t)n);
	struct spot_key key = spot_key_of(id);
	struct wire_header h = {.version = WIRE_VERSION, .session = c->session,
		.counter = ++c->counter, .cookie = c->cookie, .spot_key_lo = key.lo,
		.spot_key_hi = key.hi, .operation_scope = c->session, .operation_id = number + 1,
		.budget_us = (uint32_t)(20000 + rng_below(&s->rng, 180000))};
	if (op->message)
		fill_message(s, &h);
	else
		fill_control(s, &h);
	bool whole_id = h.family != WIRE_REQUEST;
	struct span payload = op->message ? span_of(&number, sizeof(number)) : span_of(NULL, 0);
	h.total_bytes = (uint32_t)payload.size;
	op->bytes = (uint16_t)wire_encode(
		&h, whole_id ? id : span_of(NULL, 0), payload, op->frame, sizeof(op->frame));
	sim_check(s, op->bytes > 0, "the client's frames encode");
	op->deadline_ns = s->clock.boot_ns + h.budget_us * UINT64_C(1000);
	launch(s, (uint32_t)number);
}

void sim_client_repeat(struct sim *s)
{
	if (s->op_count == 0)
		return;
	uint64_t recent = s->op_count < 20 ? s->op_count : 20;
	uint32_t at = s->op_count - 1 - (uint32_t)rng_below(&s->rng, recent);
	if (s->ops[at].results == 0 && s->clock.boot_ns < s->ops[at].deadline_ns)
		launch(s, at);
}

static void take_reply(struct sim *s, const struct wire_frame *f)
{
	uint64_t number = f->h.operation_id - 1;
	sim_check(s, number < s->op_count, "replies name an operation of ours");
	struct sim_op *op = &s->ops[number];
	struct result got = {f->h.kind, f->h.reason, f->h.accepted};
	sim_note(s, 6, number << 16 | (uint64_t)got.kind << 8 | got.reason);
	if (op->results++ == 0)
		op->first = got;
	sim_check(s, memcmp(&op->first, &got, sizeof(got)) == 0, "I7: one result, however often sent");
	if (op->message && got.kind == RESULT_OK)
		sim_check(s, op->executions == 1, "I8: OK means it ran");
}

void sim_client_receive(struct sim *s)
{
	struct frame f;
	for (uint32_t i = 0; i < SIM_CLIENTS; i++) {
		struct sim_client *c = &s->clients[i];
		const struct fabric_ops *ops = fabric_base(c->queue)->ops;
		while (ops->rx(c->queue, &f, 1) == 1) {
			struct wire_frame wf;
			sim_check(s, wire_decode(span_of(f.data, f.bytes), &wf) == WIRE_TAKEN,
				"the node's frames decode");
			if (wf.h.family == WIRE_CHALLENGE)
				c->cookie = wf.h.cookie;
			else if (wf.h.family == WIRE_REPLY)
				take_reply(s, &wf);
			ops->release(c->queue, &f, 1);
		}
	}
}
