// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Identities and generations (semantics T1-T6), as one-field structs so that they cannot be mixed.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum {
	ID_BYTES_MAX = 255, // T1: an id is 1..255 bytes of UTF-8 without NUL
	KEY_BYTES = 16,
};

// The largest value of any generation or counter (T6).
#define GENERATION_MAX ((UINT64_C(1) << 63) - 1)

// T2: first 16 bytes of SHA-256(domain byte || id); domain 1 for Spots, 2 for Actors. Kept as the
// two little-endian halves of those bytes, so that compares and hashes are two words.
struct spot_key {
	uint64_t lo; // bytes 0..7
	uint64_t hi; // bytes 8..15
};

struct object_generation { // T3; 0 = none
	uint64_t value;
};
struct authority_generation { // T4; 0 = none
	uint64_t value;
};
struct lease_generation { // T4; 0 = none
	uint64_t value;
};
struct store_version { // T5; opaque, equality only
	uint64_t value;
};
struct node_key { // first 8 bytes (little-endian) of SHA-256(5 || node id); 0 = none
	uint64_t value;
};
struct type_key { // first 4 bytes (little-endian) of SHA-256(3 || type name); 0 = none
	uint32_t value;
};

struct span { // borrowed bytes
	const uint8_t *data;
	size_t size;
};

static inline struct span span_of(const void *data, size_t size)
{
	return (struct span){(const uint8_t *)data, size};
}

static inline bool spot_key_equal(struct spot_key a, struct spot_key b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

static inline bool spot_key_is_zero(struct spot_key k)
{
	return (k.lo | k.hi) == 0;
}
