// SPDX-License-Identifier: BSD-3-Clause
#include "wire/wire.h"

#include <string.h>

#include "base/check.h"
#include "spot/name.h"
#include "wire/rules.h"
#include "wire/segment.h"

// The struct mirrors the wire byte for byte, so one copy decodes a header on a little-endian
// machine.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is copied, not converted");

enum { FAMILY_COUNT = sizeof(family_rules) / sizeof(family_rules[0]) };

#define X(name, number, text) | (UINT64_C(1) << (number))
static const uint64_t kinds_known = 0 RESULT_KINDS(X);
static const uint64_t reasons_known = UINT64_C(1) RESULT_REASONS(X);
#undef X

const char *wire_reject_name(enum wire_reject reject)
{
	switch (reject) {
	case WIRE_TAKEN:
		return "taken";
#define X(name, number, text)                                                                      \
	case WIRE_REJECT_##name:                                                                   \
		return text;
		WIRE_REJECTS(X)
#undef X
	}
	return NULL;
}

const char *wire_family_name(uint8_t family)
{
	return family < FAMILY_COUNT ? family_rules[family].name : NULL;
}

static bool in_set(uint64_t set, uint8_t number)
{
	return number < 64 && ((set >> number) & 1);
}

static bool result_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	if (!(rule->needs & NEED_RESULT))
		return (h->kind | h->reason | h->accepted) == 0;
	return in_set(kinds_known, h->kind) && in_set(reasons_known, h->reason) &&
	       h->accepted >= ACCEPTED_YES && h->accepted <= ACCEPTED_UNKNOWN &&
	       (h->kind != RESULT_OK || h->accepted == ACCEPTED_YES);
}

static bool flags_are_legal(const struct wire_header *h, const struct family_rule *rule)
{
	if (h->flags & ~rule->flags)
		return false;
	return !(h->flags & WIRE_FLAG_ACK_NOW) || (h->flags & WIRE_FLAG_SEGMENTED);
}

static bool reserved_is_zero(const struct wire_header *h, const struct family_rule *rule)
{
	uint8_t any = 0;
	for (size_t i = 0; i < sizeof(h->reserved); i++)
		any |= h->reserved[i];
	if (!(rule->needs & MAY_HINT))
		any |= h->ingress_worker | h->home_worker;
	return any == 0;
}

static bool tag_is_zero(const struct wire_header *h)
{
	uint64_t half[2];
	_Static_assert(sizeof(half) == sizeof(h->tag), "two words");
	memcpy(half, h->tag, sizeof(half));
	return (half[0] | half[1]) == 0;
}

static bool id_is_legal(const struct wire_header *h, const struct family_rule *rule, struct span id)
{
	if (rule->needs & NEED_ROUTE) // any bytes: its maker alone knows what they mean
		return id.size == WIRE_ROUTE_BYTES;
	if (id.size == 0)
		return !(rule->needs & NEED_ID) || h->segment_offset != 0;
	return (rule->needs & MAY_ID) && id_is_valid(id);
}

static bool generation_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	if ((rule->needs & NEED_FENCE) && h->owner_node == 0)
		return false;
	return h->owner_lease <= GENERATION_MAX && h->object_generation <= GENERATION_MAX &&
	       (h->owner_node == 0) == (h->owner_lease == 0);
}

static bool content_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	if (h->content_type > WIRE_CONTENT_ACK || !((rule->contents >> h->content_type) & 1))
		return false;
	return h->content_type != WIRE_CONTENT_REFUSAL || h->kind != RESULT_OK;
}

static bool total_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	if (h->total_bytes > rule->total_bytes_max)
		return false;
	if ((h->flags & WIRE_FLAG_SEGMENTED) == 0 && h->total_bytes != h->segment_bytes)
		return false;
	if (h->content_type != WIRE_CONTENT_REFUSAL)
		return true;
	return h->flags & WIRE_FLAG_EXPLAIN ? h->total_bytes >= 2 + WIRE_REFUSAL_BYTES
					    : h->total_bytes == WIRE_REFUSAL_BYTES;
}

static bool segment_is_legal(const struct wire_header *h)
{
	if ((h->flags & WIRE_FLAG_SEGMENTED) == 0)
		return h->segment_offset == 0 && h->segment_unit == 0;
	if (h->segment_unit < WIRE_SEGMENT_BYTES_MIN || h->total_bytes <= h->segment_unit ||
		h->segment_offset >= h->total_bytes || h->segment_offset % h->segment_unit != 0)
		return false;
	uint32_t left = h->total_bytes - h->segment_offset;
	return h->segment_bytes == (left < h->segment_unit ? left : h->segment_unit);
}
_Static_assert((WIRE_MESSAGE_BYTES_MAX / WIRE_SEGMENT_BYTES_MIN) <= SEG_COUNT_MAX,
	"total and unit bound the count");

static bool ack_is_legal(const struct wire_header *h, struct span segment)
{
	struct seg_ack ack;
	return h->family != WIRE_ACK || seg_ack_decode(segment, &ack);
}

static bool operation_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	bool both = (rule->needs & NEED_OPERATION) || (h->flags & WIRE_FLAG_SEGMENTED);
	if (both)
		return h->operation_scope != 0 && h->operation_id != 0;
	return !(rule->needs & NEED_SCOPE) || h->operation_scope != 0;
}

static bool control_is_legal(const struct wire_header *h)
{
	return h->family != WIRE_CONTROL ||
	       (h->message_type < 32 && ((CONTROL_KNOWN >> h->message_type) & 1));
}

static bool type_is_legal(const struct wire_header *h, const struct family_rule *rule)
{
	bool makes = h->family == WIRE_CONTROL && ((CONTROL_MAKES >> h->message_type) & 1);
	return h->spot_type != 0 || !((rule->needs & NEED_TYPE) || makes);
}

// The fixed part: what says how the rest is to be read.
static enum wire_reject check_shape(const struct wire_header *h, size_t frame_bytes)
{
	if (h->version != WIRE_VERSION)
		return WIRE_REJECT_VERSION;
	if (h->suite_phase != WIRE_SUITE_NONE << 1)
		return WIRE_REJECT_SUITE;
	if (h->family >= FAMILY_COUNT || family_rules[h->family].name == NULL)
		return WIRE_REJECT_FAMILY;
	if (!flags_are_legal(h, &family_rules[h->family]))
		return WIRE_REJECT_FLAGS;
	if (frame_bytes != (size_t)WIRE_HEADER_BYTES + h->id_bytes + h->segment_bytes)
		return WIRE_REJECT_LENGTH;
	return WIRE_TAKEN;
}

static enum wire_reject check_envelope(
	const struct wire_header *h, const struct family_rule *rule, struct span id)
{
	if (!reserved_is_zero(h, rule))
		return WIRE_REJECT_RESERVED;
	if (!tag_is_zero(h))
		return WIRE_REJECT_TAG;
	if (!result_is_legal(h, rule))
		return WIRE_REJECT_RESULT;
	if (h->session == 0)
		return WIRE_REJECT_SESSION;
	if (h->counter == 0 || h->counter > GENERATION_MAX)
		return WIRE_REJECT_COUNTER;
	if ((rule->needs & NEED_KEY) && (h->spot_key_lo | h->spot_key_hi) == 0)
		return WIRE_REJECT_KEY;
	if (!id_is_legal(h, rule, id))
		return WIRE_REJECT_ID;
	if (!generation_is_legal(h, rule))
		return WIRE_REJECT_GENERATION;
	return WIRE_TAKEN;
}

static enum wire_reject check_body(
	const struct wire_header *h, const struct family_rule *rule, struct span segment)
{
	if (!control_is_legal(h))
		return WIRE_REJECT_CONTROL;
	if (!type_is_legal(h, rule))
		return WIRE_REJECT_TYPE;
	if (!content_is_legal(h, rule))
		return WIRE_REJECT_CONTENT;
	if (!total_is_legal(h, rule))
		return WIRE_REJECT_TOTAL;
	if (!segment_is_legal(h))
		return WIRE_REJECT_SEGMENT;
	if (!ack_is_legal(h, segment))
		return WIRE_REJECT_ACK;
	if (!operation_is_legal(h, rule))
		return WIRE_REJECT_OPERATION;
	if (h->family == WIRE_CHALLENGE && h->cookie == 0)
		return WIRE_REJECT_COOKIE;
	return WIRE_TAKEN;
}

static enum wire_reject check(const struct wire_header *h, struct span id, struct span segment)
{
	const struct family_rule *rule = &family_rules[h->family];
	enum wire_reject reject = check_envelope(h, rule, id);
	return reject != WIRE_TAKEN ? reject : check_body(h, rule, segment);
}

static uint64_t word_at(const struct wire_header *h, size_t offset)
{
	uint64_t word;
	memcpy(&word, (const uint8_t *)h + offset, sizeof(word));
	return word;
}

// The frame that a busy node sees most, a send or request of a client in one frame, judged in one
// line of word operations. True: `check_shape` and `check` would take it. False: they have to look.
static inline bool is_plain(const struct wire_header *h, size_t frame_bytes)
{
	const uint64_t not_family = ~(UINT64_C(0xff) << 16);
	_Static_assert(offsetof(struct wire_header, family) == 2, "byte 2 of word 0");
	bool request = h->family == WIRE_REQUEST;
	// Word 0 but family: version, and no suite, flags, result and id.
	uint64_t bad = (word_at(h, 0) & not_family) ^ WIRE_VERSION;
	bad |= !(request | (h->family == WIRE_SEND));
	bad |= frame_bytes ^ (WIRE_HEADER_BYTES + h->segment_bytes);
	bad |= h->owner_node | h->owner_lease | h->object_generation;
	bad |= (h->session == 0) | (h->counter - 1 >= GENERATION_MAX);
	bad |= (h->spot_key_lo | h->spot_key_hi) == 0;
	bad |= request & ((h->operation_scope == 0) | (h->operation_id == 0));
	bad |= h->content_type > WIRE_CONTENT_TEXT;
	bad |= h->total_bytes ^ h->segment_bytes;
	bad |= h->segment_offset | h->segment_unit;
	// Hints and reserved bytes, then the tag.
	_Static_assert(offsetof(struct wire_header, ingress_worker) == 112, "word 14");
	bad |= word_at(h, 112) | word_at(h, 120) | word_at(h, 128);
	return bad == 0;
}

enum wire_reject wire_decode(struct span frame, struct wire_frame *out)
{
	if (UNLIKELY(frame.size < WIRE_HEADER_BYTES))
		return WIRE_REJECT_SHORT;
	memcpy(&out->h, frame.data, sizeof(out->h));
	const struct wire_header *h = &out->h;
	const uint8_t *rest = frame.data + WIRE_HEADER_BYTES;
	if (LIKELY(is_plain(h, frame.size))) {
		out->id = span_of(rest, 0);
		out->segment = span_of(rest, h->segment_bytes);
		return WIRE_TAKEN;
	}
	enum wire_reject reject = check_shape(h, frame.size);
	if (reject != WIRE_TAKEN)
		return reject;
	out->id = span_of(rest, h->id_bytes);
	out->segment = span_of(rest + h->id_bytes, h->segment_bytes);
	return check(h, out->id, out->segment);
}

enum wire_reject wire_check_id(const struct wire_frame *frame)
{
	if (frame->id.size == 0 || (family_rules[frame->h.family].needs & NEED_ROUTE))
		return WIRE_TAKEN;
	const struct wire_header *h = &frame->h;
	bool actor = h->family == WIRE_CONTROL && ((CONTROL_OF_ACTORS >> h->message_type) & 1);
	struct spot_key key = actor ? actor_key_of(frame->id) : spot_key_of(frame->id);
	return spot_key_equal(key, wire_frame_key(frame)) ? WIRE_TAKEN
									     : WIRE_REJECT_ID_KEY;
}

size_t wire_encode(
	struct wire_header *h, struct span id, struct span segment, uint8_t *out, size_t capacity)
{
	if (id.size > UINT8_MAX || segment.size > UINT16_MAX)
		return 0;
	h->id_bytes = (uint8_t)id.size;
	h->segment_bytes = (uint16_t)segment.size;
	size_t size = WIRE_HEADER_BYTES + id.size + segment.size;
	if (size > capacity || check_shape(h, size) != WIRE_TAKEN ||
		check(h, id, segment) != WIRE_TAKEN)
		return 0;
	// The payload may already lie in `out` (a reply made in place), so it moves before the
	// rest.
	if (segment.size > 0 && out + WIRE_HEADER_BYTES + id.size != segment.data)
		memmove(out + WIRE_HEADER_BYTES + id.size, segment.data, segment.size);
	if (id.size > 0)
		memcpy(out + WIRE_HEADER_BYTES, id.data, id.size);
	memcpy(out, h, sizeof(*h));
	return size;
}

void wire_refusal_encode(const struct refusal *r, uint8_t out[WIRE_REFUSAL_BYTES])
{
	memcpy(out, &r->limit, 8);
	memcpy(out + 8, &r->current, 8);
	memcpy(out + 16, r->owner_key, 16);
	memcpy(out + 32, &r->owner_node, 8);
}

enum wire_reject wire_refusal_decode(struct span body, struct refusal *out)
{
	if (body.size != WIRE_REFUSAL_BYTES)
		return WIRE_REJECT_LENGTH;
	memcpy(&out->limit, body.data, 8);
	memcpy(&out->current, body.data + 8, 8);
	memcpy(out->owner_key, body.data + 16, 16);
	memcpy(&out->owner_node, body.data + 32, 8);
	return WIRE_TAKEN;
}
