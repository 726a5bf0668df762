// SPDX-License-Identifier: BSD-3-Clause
#include "load.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "spot/name.h"

enum { COUNTER_ADD = 1, COUNTER_GET = 2, BUDGET_US = 60000000 };

static struct span spot_id(uint32_t index, char buffer[32])
{
	int n = snprintf(buffer, 32, "bench/%u", index);
	return span_of(buffer, (size_t)n);
}

static bool init_books(struct load *load, uint64_t seed)
{
	rng_seed(&load->rng, seed);
	load->expected = mem_zalloc((size_t)load->spots * sizeof(*load->expected));
	load->in_flight = mem_zalloc(LOAD_OUTSTANDING_MAX * sizeof(*load->in_flight));
	if (load->expected == NULL || load->in_flight == NULL)
		return false;
	for (uint32_t i = 0; i < LOAD_OUTSTANDING_MAX; i++)
		load->in_flight[i].spot = UINT32_MAX;
	rng_secret(&load->session, sizeof(load->session));
	load->session |= 1;
	load->header = (struct wire_header){
		.version = WIRE_VERSION,
		.family = WIRE_REQUEST,
		.session = load->session,
		.operation_scope = load->session,
		.message_type = COUNTER_ADD,
		.content_type = WIRE_CONTENT_BYTES,
		.budget_us = BUDGET_US,
	};
	return true;
}

bool load_init(struct load *load, uint32_t spots, uint64_t seed)
{
	char buffer[32];
	*load = (struct load){.spots = spots, .seed = seed};
	load->keys = mem_zalloc((size_t)spots * sizeof(*load->keys));
	if (load->keys == NULL || !init_books(load, seed))
		return false;
	for (uint32_t i = 0; i < spots; i++)
		load->keys[i] = spot_key_of(spot_id(i, buffer));
	return true;
}

bool load_init_beside(struct load *load, const struct load *of)
{
	*load = (struct load){
		.spots = of->spots, .seed = of->seed, .keys = of->keys, .keys_borrowed = true};
	return init_books(load, load->seed);
}

void load_fini(struct load *load)
{
	if (!load->keys_borrowed)
		mem_free(load->keys);
	mem_free(load->expected);
	mem_free(load->in_flight);
}

uint32_t load_hello(struct load *load, uint8_t *out)
{
	struct wire_header h = {
		.version = WIRE_VERSION,
		.family = WIRE_HELLO,
		.session = load->session,
		.counter = ++load->counter,
	};
	return (uint32_t)wire_encode(&h, span_of("", 0), span_of("", 0), out, WIRE_HEADER_BYTES);
}

bool load_take_challenge(struct load *load, const uint8_t *payload, uint32_t bytes)
{
	struct wire_frame frame;
	if (wire_decode(span_of(payload, bytes), &frame) != WIRE_TAKEN ||
		frame.h.family != WIRE_CHALLENGE || frame.h.operation_scope != load->session)
		return false;
	load->cookie = frame.h.cookie;
	load->header.cookie = frame.h.cookie;
	return true;
}

// The operation's slot must be free: callers keep fewer than LOAD_OUTSTANDING_MAX in flight.
static void start_operation(struct load *load, uint32_t spot, struct wire_header *h)
{
	uint64_t id = ++load->operation;
	struct load_operation *slot = &load->in_flight[id & (LOAD_OUTSTANDING_MAX - 1)];
	CHECK(slot->spot == UINT32_MAX);
	*slot = (struct load_operation){spot, id};
	h->operation_id = id;
	h->counter = ++load->counter;
	h->spot_key_lo = load->keys[spot].lo;
	h->spot_key_hi = load->keys[spot].hi;
	load->counts.sent++;
}

uint32_t load_build(struct load *load, uint32_t index, uint8_t *out, uint32_t room)
{
	char buffer[32];
	uint8_t amount[8] = {1};
	struct wire_header h = load->header;
	h.family = WIRE_INTENT_REQUEST;
	h.spot_type = type_key_of("counter").value;
	start_operation(load, index, &h);
	h.total_bytes = sizeof(amount);
	return (uint32_t)wire_encode(
		&h, spot_id(index, buffer), span_of(amount, sizeof(amount)), out, room);
}

void load_request(struct load *load, uint8_t *out)
{
	struct wire_header h = load->header;
	uint32_t spot = (uint32_t)(((rng_u64(&load->rng) >> 32) * load->spots) >> 32);
	start_operation(load, spot, &h);
	h.total_bytes = LOAD_PAYLOAD_BYTES;
	h.segment_bytes = LOAD_PAYLOAD_BYTES;
	memcpy(out, &h, sizeof(h));
	memset(out + sizeof(h), 0, LOAD_PAYLOAD_BYTES);
	out[sizeof(h)] = 1; // add one
}

// The operation's slot when the frame belongs to one in flight; it is free again.
static struct load_operation *answered_slot(struct load *load, const uint8_t *payload,
	uint32_t bytes, uint8_t family, struct wire_frame *out)
{
	if (wire_decode(span_of(payload, bytes), out) != WIRE_TAKEN || out->h.family != family ||
		out->h.operation_scope != load->session) {
		load->counts.foreign++;
		return NULL;
	}
	struct load_operation *slot =
		&load->in_flight[out->h.operation_id & (LOAD_OUTSTANDING_MAX - 1)];
	if (slot->spot == UINT32_MAX || slot->id != out->h.operation_id) {
		load->counts.foreign++;
		return NULL;
	}
	return slot;
}

bool load_reply(struct load *load, const uint8_t *payload, uint32_t bytes)
{
	struct wire_frame frame;
	uint64_t value;
	struct load_operation *slot = answered_slot(load, payload, bytes, WIRE_REPLY, &frame);
	if (slot == NULL)
		return false;
	uint32_t spot = slot->spot;
	slot->spot = UINT32_MAX;
	if (frame.h.kind != RESULT_OK) {
		load->wrong_kind = frame.h.kind;
		load->wrong_reason = frame.h.reason;
		load->counts.refused++;
		return false;
	}
	if (frame.segment.size < sizeof(value) ||
		!spot_key_equal(wire_frame_key(&frame), load->keys[spot])) {
		load->counts.wrong++;
		return false;
	}
	memcpy(&value, frame.segment.data, sizeof(value));
	if (value != ++load->expected[spot]) {
		load->counts.wrong++;
		load->expected[spot] = (uint32_t)value;
		return false;
	}
	load->counts.answered++;
	return true;
}

bool load_echo(struct load *load, const uint8_t *payload, uint32_t bytes)
{
	struct wire_frame frame;
	struct load_operation *slot = answered_slot(load, payload, bytes, WIRE_REQUEST, &frame);
	if (slot == NULL)
		return false;
	uint32_t spot = slot->spot;
	slot->spot = UINT32_MAX;
	load->expected[spot]++;
	bool right = spot_key_equal(wire_frame_key(&frame), load->keys[spot]);
	if (right)
		load->counts.answered++;
	else
		load->counts.wrong++;
	return right;
}

uint64_t load_in_flight(const struct load *load)
{
	return load->counts.sent - load->counts.answered - load->counts.wrong -
	       load->counts.refused;
}
