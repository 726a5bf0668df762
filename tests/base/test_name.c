// SPDX-License-Identifier: BSD-3-Clause
// Ids, keys and shapes (T1, T2, T7), against tests/vectors/ and by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "spot/name.h"

static json_t *load_vectors(const char *name)
{
	char path[512];
	json_error_t error;
	snprintf(path, sizeof(path), "%s/%s.json", VECTORS_DIR, name);
	json_t *root = json_load_file(path, 0, &error);
	if (root == NULL)
		fail_msg("%s: %s", path, error.text);
	return root;
}

static const char *text_of(const json_t *vector, const char *key)
{
	const char *text = json_string_value(json_object_get(vector, key));
	assert_non_null(text);
	return text;
}

// The bytes are alone in their block, so that a sanitizer sees a byte too far.
static struct span hex_of(const json_t *vector, const char *key)
{
	const char *hex = text_of(vector, key);
	size_t size = strlen(hex) / 2;
	uint8_t *data = malloc(size > 0 ? size : 1);
	assert_non_null(data);
	for (size_t i = 0; i < size; i++) {
		unsigned int byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		data[i] = (uint8_t)byte;
	}
	return span_of(data, size);
}

static void span_free(struct span s)
{
	free((void *)(uintptr_t)s.data);
}

static void T1__ids_are_utf8_of_1_to_255_bytes_without_nul(void **state)
{
	(void)state;
	json_t *root = load_vectors("ids");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct span id = hex_of(vector, "hex");
		bool want = json_is_true(json_object_get(vector, "valid"));
		if (id_is_valid(id) != want)
			fail_msg("id %s", text_of(vector, "name"));
		span_free(id);
	}
	assert_true(i > 20);
	json_decref(root);
}

// Every scalar value in its one encoding is valid; every other value of up to four bytes is not.
static size_t encode(uint32_t c, uint8_t out[4])
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

static void T1__every_scalar_value_has_exactly_one_form(void **state)
{
	(void)state;
	uint8_t b[4];
	for (uint32_t c = 0; c < 0x200000; c++) {
		size_t n = encode(c, b);
		bool want = c != 0 && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
		if (id_is_valid(span_of(b, n)) != want)
			fail_msg("U+%x", c);
		for (size_t cut = 1; cut < n; cut++)
			assert_false(id_is_valid(span_of(b, cut)));
	}
	uint32_t valid_two = 0, valid_three = 0;
	for (uint32_t x = 0; x < 0x10000; x++) {
		b[0] = (uint8_t)(x >> 8);
		b[1] = (uint8_t)x;
		valid_two += id_is_valid(span_of(b, 2));
	}
	// Two bytes: two of 127 ASCII characters, or one of U+80..U+7FF.
	assert_int_equal(valid_two, 127 * 127 + (0x800 - 0x80));
	for (uint32_t x = 0; x < 0x1000000; x++) {
		b[0] = (uint8_t)(x >> 16);
		b[1] = (uint8_t)(x >> 8);
		b[2] = (uint8_t)x;
		valid_three += id_is_valid(span_of(b, 3));
	}
	assert_int_equal(valid_three,
		127 * 127 * 127 + 2 * 127 * (0x800 - 0x80) + (0x10000 - 0x800 - 0x800));
}

static void check_key(const json_t *vector, struct span name, struct span want)
{
	const char *of = text_of(vector, "of");
	uint8_t bytes[KEY_BYTES];
	if (strcmp(of, "spot") == 0 || strcmp(of, "actor") == 0) {
		struct spot_key key = of[0] == 's' ? spot_key_of(name) : actor_key_of(name);
		spot_key_bytes(key, bytes);
		assert_true(spot_key_equal(spot_key_from_bytes(bytes), key));
		assert_int_equal(want.size, KEY_BYTES);
	} else if (strcmp(of, "type") == 0) {
		struct type_key key = type_key_of(text_of(vector, "text"));
		memcpy(bytes, &key, sizeof(key));
		assert_int_equal(want.size, sizeof(key));
	} else {
		assert_string_equal(of, "node");
		struct node_key key = node_key_of(name);
		memcpy(bytes, &key, sizeof(key));
		assert_int_equal(want.size, sizeof(key));
	}
	assert_memory_equal(bytes, want.data, want.size);
}

static void T2__keys_are_as_the_vectors_say(void **state)
{
	(void)state;
	json_t *root = load_vectors("keys");
	size_t i;
	json_t *vector;
	json_array_foreach(json_object_get(root, "vectors"), i, vector)
	{
		struct span name = hex_of(vector, "name_hex"), want = hex_of(vector, "key");
		check_key(vector, name, want);
		span_free(name);
		span_free(want);
	}
	json_decref(root);
}

// printf '\001a' | sha256sum begins with these bytes.
static void T2__a_key_is_the_start_of_sha256(void **state)
{
	(void)state;
	static const uint8_t want[KEY_BYTES] = {0xe3, 0x25, 0x4e, 0xa6, 0x1c, 0x09, 0xea, 0xd5,
		0xa0, 0x1d, 0x3b, 0xf0, 0x7e, 0x94, 0x6a, 0x56};
	uint8_t bytes[KEY_BYTES];
	spot_key_bytes(spot_key_of(span_of("a", 1)), bytes);
	assert_memory_equal(bytes, want, KEY_BYTES);
	assert_false(spot_key_equal(spot_key_of(span_of("a", 1)), actor_key_of(span_of("a", 1))));
	assert_false(spot_key_equal(spot_key_of(span_of("a", 1)), spot_key_of(span_of("A", 1))));
	assert_true(spot_key_is_zero((struct spot_key){0, 0}));
	assert_false(spot_key_is_zero((struct spot_key){0, 1}));
}

static void T7__entry_ids_have_one_shape(void **state)
{
	(void)state;
	static const struct {
		const char *id;
		bool entry;
	} cases[] = {
		{"n-entry-01234567-89ab-4cde-8f01-23456789abcd", true},
		{"eu/west 1-entry-01234567-89ab-4cde-bf01-23456789abcd", true},
		{"a-entry-a-entry-01234567-89ab-4cde-9f01-23456789abcd", true},
		{"-entry-01234567-89ab-4cde-8f01-23456789abcd", false},  // no prefix
		{"n-entry-01234567-89ab-3cde-8f01-23456789abcd", false}, // not version 4
		{"n-entry-01234567-89ab-4cde-cf01-23456789abcd", false}, // variant
		{"n-entry-01234567-89AB-4cde-8f01-23456789abcd", false}, // capitals
		{"n-entry-0123456789ab-4cde-8f01-23456789abcd", false},
		{"n-entry-01234567-89ab-4cde-8f01-23456789abcd ", false},
		{"n-entry-01234567-89ab-4cde-8f01-23456789abcg", false},
		{"n-Entry-01234567-89ab-4cde-8f01-23456789abcd", false},
		{"nentry-01234567-89ab-4cde-8f01-23456789abcd", false},
		{"n-entry-", false},
		{"", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (id_has_entry_shape(span_of(cases[i].id, strlen(cases[i].id))) != cases[i].entry)
			fail_msg("%s", cases[i].id);
}

static void K1__the_kinds_are_a_closed_set(void **state)
{
	(void)state;
	assert_int_equal(SPOT_KIND_INVALID, 0);
	assert_string_equal(spot_kind_name(SPOT_KIND_ENTRY), "entry");
	assert_string_equal(spot_kind_name(SPOT_KIND_USER), "user");
	assert_string_equal(spot_kind_name(SPOT_KIND_INSTANCE), "instance");
	assert_string_equal(spot_kind_name(SPOT_KIND_INVALID), "invalid");
	assert_string_equal(spot_kind_name((enum spot_kind)4), "invalid");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(T1__ids_are_utf8_of_1_to_255_bytes_without_nul),
		cmocka_unit_test(T1__every_scalar_value_has_exactly_one_form),
		cmocka_unit_test(T2__keys_are_as_the_vectors_say),
		cmocka_unit_test(T2__a_key_is_the_start_of_sha256),
		cmocka_unit_test(T7__entry_ids_have_one_shape),
		cmocka_unit_test(K1__the_kinds_are_a_closed_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
