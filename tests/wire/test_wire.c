// SPDX-License-Identifier: BSD-3-Clause
// The codec against tests/vectors/, and its own properties.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "wire/segment.h"
#include "wire/wire.h"

enum { FRAME_BYTES_MAX = 4096 };

struct bytes {
	size_t size;
	uint8_t data[FRAME_BYTES_MAX];
};

static json_t *load_vectors(const char *name)
{
	char path[512];
	json_error_t error;
	snprintf(path, sizeof(path), "%s/%s.json", VECTORS_DIR, name);
	json_t *root = json_load_file(path, 0, &error);
	if (root == NULL)
		fail_msg("%s: %s", path, error.text);
	assert_int_equal(json_integer_value(json_object_get(root, "wire_version")), WIRE_VERSION);
	return root;
}

static const char *text_of(const json_t *vector, const char *key)
{
	const char *text = json_string_value(json_object_get(vector, key));
	assert_non_null(text);
	return text;
}

static struct bytes hex_of(const json_t *vector, const char *key)
{
	struct bytes b = {0};
	const char *hex = text_of(vector, key);
	b.size = strlen(hex) / 2;
	assert_true(b.size <= sizeof(b.data));
	for (size_t i = 0; i < b.size; i++) {
		unsigned int byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		b.data[i] = (uint8_t)byte;
	}
	return b;
}

static struct span span_from(const struct bytes *b)
{
	return span_of(b->data, b->size);
}

struct field {
	const char *name;
	size_t offset, size;
};

#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct wire_header, name), sizeof(((struct wire_header *)0)->name) \
	}
static const struct field fields[] = {FIELD(version), FIELD(suite_phase), FIELD(family),
	FIELD(flags), FIELD(kind), FIELD(reason), FIELD(accepted), FIELD(id_bytes), FIELD(session),
	FIELD(counter), FIELD(cookie), FIELD(spot_key_lo), FIELD(spot_key_hi),
	FIELD(operation_scope), FIELD(operation_id), FIELD(owner_node), FIELD(owner_lease),
	FIELD(object_generation), FIELD(spot_type), FIELD(message_type), FIELD(content_type),
	FIELD(budget_us), FIELD(total_bytes), FIELD(segment_offset), FIELD(segment_bytes),
	FIELD(segment_unit), FIELD(ingress_worker), FIELD(home_worker), FIELD(reserved),
	FIELD(tag)};
enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static uint64_t field_number(const struct wire_header *h, const struct field *f)
{
	uint64_t value = 0;
	memcpy(&value, (const uint8_t *)h + f->offset, f->size);
	return value;
}

static void check_header(const char *name, const json_t *want, const struct wire_header *h)
{
	assert_int_equal(json_object_size(want), FIELD_COUNT);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const json_t *value = json_object_get(want, fields[i].name);
		if (fields[i].size > 8 || strcmp(fields[i].name, "reserved") == 0) {
			struct bytes b = hex_of(want, fields[i].name);
			assert_memory_equal(b.data, (const uint8_t *)h + fields[i].offset, b.size);
			continue;
		}
		uint64_t number = json_is_string(value)
					  ? strtoull(json_string_value(value), NULL, 0)
					  : (uint64_t)json_integer_value(value);
		if (number != field_number(h, &fields[i]))
			fail_msg("%s: field %s", name, fields[i].name);
	}
}

static void check_taken(const char *name, const json_t *vector, const struct wire_frame *f)
{
	struct bytes id = hex_of(vector, "id_hex"), segment = hex_of(vector, "segment_hex");
	check_header(name, json_object_get(vector, "header"), &f->h);
	assert_int_equal(f->id.size, id.size);
	assert_memory_equal(f->id.data, id.data, id.size);
	assert_int_equal(f->segment.size, segment.size);
	assert_memory_equal(f->segment.data, segment.data, segment.size);
	const char *want = id.size > 0 ? text_of(vector, "id_verdict") : "taken";
	assert_string_equal(wire_reject_name(wire_check_id(f)), want);
}

static void M1_M4_T2__frames_decode_as_the_vectors_say(void **state)
{
	(void)state;
	json_t *root = load_vectors("frames");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct bytes b = hex_of(vector, "hex");
		struct wire_frame f;
		const char *name = text_of(vector, "name");
		enum wire_reject got = wire_decode(span_from(&b), &f);
		if (strcmp(wire_reject_name(got), text_of(vector, "verdict")) != 0)
			fail_msg("%s: %s, not %s", name, wire_reject_name(got),
				text_of(vector, "verdict"));
		if (got == WIRE_TAKEN)
			check_taken(name, vector, &f);
	}
	json_decref(root);
}

// Which numbers of a closed set the vectors show.
struct seen {
	bool reject[64], kind[256], reason[256], family[256], control[8], content[8], id_key;
};

static void note_vector(struct seen *seen, const json_t *vector)
{
	struct bytes b = hex_of(vector, "hex");
	struct wire_frame f;
	enum wire_reject got = wire_decode(span_from(&b), &f);
	seen->reject[got] = true;
	if (got != WIRE_TAKEN)
		return;
	seen->family[f.h.family] = true;
	seen->content[f.h.content_type] = true;
	seen->kind[f.h.kind] = true;
	seen->reason[f.h.reason] = true;
	if (f.h.family == WIRE_CONTROL)
		seen->control[f.h.message_type] = true;
	seen->reject[wire_check_id(&f)] = true;
}

static void M4_M5__every_number_has_a_vector(void **state)
{
	(void)state;
	struct seen seen = {0};
	json_t *root = load_vectors("frames");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector) note_vector(&seen, vector);
	json_decref(root);
#define X(name, number, text) assert_true(seen.reject[number]);
	WIRE_REJECTS(X)
#undef X
#define X(name, number, text) assert_true(seen.kind[number]);
	RESULT_KINDS(X)
#undef X
#define X(name, number, text) assert_true(seen.reason[number]);
	RESULT_REASONS(X)
#undef X
	for (int n = 0; n < 256; n++)
		assert_int_equal(seen.family[n], wire_family_name((uint8_t)n) != NULL);
	for (int n = WIRE_CONTROL_CREATE; n <= WIRE_CONTROL_LEAVE; n++)
		assert_int_equal(seen.control[n], n != 5);
	for (int n = WIRE_CONTENT_BYTES; n <= WIRE_CONTENT_ACK; n++)
		assert_true(seen.content[n]);
}

static void x__names_are_of_the_closed_sets(void **state)
{
	(void)state;
	assert_string_equal(wire_reject_name(WIRE_TAKEN), "taken");
	assert_string_equal(wire_reject_name(WIRE_REJECT_ID_KEY), "id_key");
	assert_null(wire_reject_name((enum wire_reject)200));
	assert_null(wire_family_name(0));
	assert_string_equal(wire_family_name(WIRE_INTENT_REQUEST), "intent_request");
	assert_string_equal(wire_family_name(WIRE_CHALLENGE), "challenge");
	assert_null(wire_family_name(WIRE_CHALLENGE + 1));
}

// Frames that decode encode to the same bytes; headers that do not decode do not encode.
static void encode_again(const struct bytes *b)
{
	struct wire_frame f;
	uint8_t out[FRAME_BYTES_MAX];
	if (wire_decode(span_from(b), &f) == WIRE_TAKEN) {
		struct wire_header h = f.h;
		h.id_bytes = 0;
		h.segment_bytes = 0;
		assert_int_equal(wire_encode(&h, f.id, f.segment, out, sizeof(out)), b->size);
		assert_memory_equal(out, b->data, b->size);
		assert_int_equal(wire_encode(&h, f.id, f.segment, out, b->size), b->size);
		assert_int_equal(wire_encode(&h, f.id, f.segment, out, b->size - 1), 0);
		return;
	}
	if (b->size < WIRE_HEADER_BYTES)
		return;
	memcpy(&f.h, b->data, sizeof(f.h));
	if (b->size != (size_t)WIRE_HEADER_BYTES + f.h.id_bytes + f.h.segment_bytes)
		return;
	f.id = span_of(b->data + WIRE_HEADER_BYTES, f.h.id_bytes);
	f.segment = span_of(f.id.data + f.id.size, f.h.segment_bytes);
	assert_int_equal(wire_encode(&f.h, f.id, f.segment, out, sizeof(out)), 0);
}

static void x__encode_and_decode_are_inverse(void **state)
{
	(void)state;
	json_t *root = load_vectors("frames");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct bytes b = hex_of(vector, "hex");
		encode_again(&b);
	}
	json_decref(root);
}

static void x__every_cut_and_every_extra_byte_is_refused(void **state)
{
	(void)state;
	json_t *root = load_vectors("frames");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct bytes b = hex_of(vector, "hex");
		struct wire_frame f;
		if (wire_decode(span_from(&b), &f) != WIRE_TAKEN)
			continue;
		for (size_t size = 0; size <= b.size + 1; size++) {
			// An exact copy, so that a sanitizer sees a byte too far.
			uint8_t *copy = malloc(size > 0 ? size : 1);
			assert_non_null(copy);
			memcpy(copy, b.data, size);
			enum wire_reject want = size < WIRE_HEADER_BYTES ? WIRE_REJECT_SHORT
						: size == b.size         ? WIRE_TAKEN
									 : WIRE_REJECT_LENGTH;
			assert_int_equal(wire_decode(span_of(copy, size), &f), want);
			free(copy);
		}
	}
	json_decref(root);
}

static struct bytes vector_named(const char *name)
{
	struct bytes b = {0};
	json_t *root = load_vectors("frames");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i,
		vector) if (strcmp(text_of(vector, "name"), name) == 0) b = hex_of(vector, "hex");
	json_decref(root);
	assert_true(b.size > 0);
	return b;
}

static void x__a_reply_can_be_encoded_over_its_request(void **state)
{
	(void)state;
	struct bytes b = vector_named("example_request");
	struct wire_frame f;
	assert_int_equal(wire_decode(span_from(&b), &f), WIRE_TAKEN);
	struct bytes before = b;
	struct wire_header h = f.h;
	h.family = WIRE_REPLY;
	h.kind = RESULT_OK;
	h.accepted = ACCEPTED_YES;
	struct span none = {NULL, 0};
	// The payload moves down to where the id was.
	size_t size = wire_encode(&h, none, f.segment, b.data, sizeof(b.data));
	assert_int_equal(size, WIRE_HEADER_BYTES + f.segment.size);
	struct wire_frame reply;
	assert_int_equal(wire_decode(span_of(b.data, size), &reply), WIRE_TAKEN);
	assert_memory_equal(
		reply.segment.data, before.data + WIRE_HEADER_BYTES + f.id.size, f.segment.size);
	assert_true(spot_key_equal(wire_frame_key(&reply), wire_frame_key(&f)));
}

static void x__encode_refuses_what_has_no_length(void **state)
{
	(void)state;
	static uint8_t big[70000], out[80000];
	struct bytes b = vector_named("family_send");
	struct wire_frame f;
	assert_int_equal(wire_decode(span_from(&b), &f), WIRE_TAKEN);
	struct span none = {NULL, 0};
	f.h.total_bytes = 65536;
	assert_int_equal(wire_encode(&f.h, none, span_of(big, 65536), out, sizeof(out)), 0);
	memset(big, 'a', 300);
	f.h.total_bytes = 0;
	assert_int_equal(wire_encode(&f.h, span_of(big, 256), none, out, sizeof(out)), 0);
	f.h.total_bytes = 65535;
	assert_int_equal(wire_encode(&f.h, none, span_of(big, 65535), out, sizeof(out)),
		WIRE_HEADER_BYTES + 65535);
}

static void M5__refusal_bodies_are_as_the_vectors_say(void **state)
{
	(void)state;
	json_t *root = load_vectors("refusals");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct bytes b = hex_of(vector, "hex"), key = hex_of(vector, "owner_key");
		struct refusal r;
		uint8_t out[WIRE_REFUSAL_BYTES];
		assert_int_equal(wire_refusal_decode(span_from(&b), &r), WIRE_TAKEN);
		assert_int_equal(r.limit, strtoull(text_of(vector, "limit"), NULL, 0));
		assert_int_equal(r.current, strtoull(text_of(vector, "current"), NULL, 0));
		assert_int_equal(r.owner_node, strtoull(text_of(vector, "owner_node"), NULL, 0));
		assert_memory_equal(r.owner_key, key.data, sizeof(r.owner_key));
		wire_refusal_encode(&r, out);
		assert_memory_equal(out, b.data, sizeof(out));
		assert_int_equal(wire_refusal_decode(span_of(b.data, 39), &r), WIRE_REJECT_LENGTH);
		assert_int_equal(wire_refusal_decode(span_of(b.data, 41), &r), WIRE_REJECT_LENGTH);
	}
	json_decref(root);
}

static void M8__reports_are_as_the_vectors_say(void **state)
{
	(void)state;
	json_t *root = load_vectors("acks");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct bytes b = hex_of(vector, "hex"), bits = hex_of(vector, "bits");
		struct seg_ack ack;
		uint8_t out[SEG_ACK_BYTES];
		assert_true(seg_ack_decode(span_from(&b), &ack));
		assert_int_equal(ack.base, json_integer_value(json_object_get(vector, "base")));
		assert_int_equal(ack.window, json_integer_value(json_object_get(vector, "window")));
		assert_int_equal(ack.done, json_integer_value(json_object_get(vector, "done")));
		assert_memory_equal(ack.bits, bits.data, sizeof(ack.bits));
		seg_ack_encode(&ack, out);
		assert_memory_equal(out, b.data, sizeof(out));
	}
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M1_M4_T2__frames_decode_as_the_vectors_say),
		cmocka_unit_test(M4_M5__every_number_has_a_vector),
		cmocka_unit_test(x__names_are_of_the_closed_sets),
		cmocka_unit_test(x__encode_and_decode_are_inverse),
		cmocka_unit_test(x__every_cut_and_every_extra_byte_is_refused),
		cmocka_unit_test(x__a_reply_can_be_encoded_over_its_request),
		cmocka_unit_test(x__encode_refuses_what_has_no_length),
		cmocka_unit_test(M5__refusal_bodies_are_as_the_vectors_say),
		cmocka_unit_test(M8__reports_are_as_the_vectors_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
