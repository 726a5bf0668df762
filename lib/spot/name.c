// SPDX-License-Identifier: BSD-3-Clause
#include "spot/name.h"

#include <sodium.h>

enum { DOMAIN_SPOT = 1, DOMAIN_ACTOR = 2, DOMAIN_TYPE = 3, DOMAIN_NODE = 5 };

const char *spot_kind_name(enum spot_kind kind)
{
	switch (kind) {
	case SPOT_KIND_ENTRY:
		return "entry";
	case SPOT_KIND_USER:
		return "user";
	case SPOT_KIND_INSTANCE:
		return "instance";
	case SPOT_KIND_INVALID:
		break;
	}
	return "invalid";
}

// How many bytes the UTF-8 sequence at p takes (RFC 3629: shortest form, no surrogates), 0 = bad.
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
	uint8_t b = p[0];
	if (b < 0x80)
		return 1;
	size_t need = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2;
	if (b < 0xc2 || b > 0xf4 || left < need)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((b == 0xe0 && p[1] < 0xa0) || (b == 0xed && p[1] > 0x9f) ||
		(b == 0xf0 && p[1] < 0x90) || (b == 0xf4 && p[1] > 0x8f))
		return 0;
	return need;
}

bool id_is_valid(struct span id)
{
	if (id.size == 0 || id.size > ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < id.size;) {
		size_t n = utf8_sequence(id.data + i, id.size - i);
		if (n == 0 || id.data[i] == 0)
			return false;
		i += n;
	}
	return true;
}

static bool is_lower_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx with y in 8, 9, a, b.
static bool is_uuid4(const uint8_t *p)
{
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? p[i] != '-' : !is_lower_hex(p[i]))
			return false;
	}
	return p[14] == '4' && (p[19] == '8' || p[19] == '9' || p[19] == 'a' || p[19] == 'b');
}

bool id_has_entry_shape(struct span id)
{
	static const char middle[] = "-entry-";
	enum { MIDDLE_BYTES = sizeof(middle) - 1, UUID_BYTES = 36 };
	if (id.size < 1 + MIDDLE_BYTES + UUID_BYTES)
		return false;
	const uint8_t *uuid = id.data + id.size - UUID_BYTES;
	return is_uuid4(uuid) && memcmp(uuid - MIDDLE_BYTES, middle, MIDDLE_BYTES) == 0;
}

static void domain_hash(uint8_t domain, struct span bytes, uint8_t out[32])
{
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, &domain, 1);
	crypto_hash_sha256_update(&state, bytes.data, bytes.size);
	crypto_hash_sha256_final(&state, out);
}

struct spot_key spot_key_from_bytes(const uint8_t bytes[KEY_BYTES])
{
	struct spot_key key;
	memcpy(&key.lo, bytes, 8);
	memcpy(&key.hi, bytes + 8, 8);
	return key;
}

void spot_key_bytes(struct spot_key key, uint8_t out[KEY_BYTES])
{
	memcpy(out, &key.lo, 8);
	memcpy(out + 8, &key.hi, 8);
}

struct spot_key spot_key_of(struct span id)
{
	uint8_t hash[32];
	domain_hash(DOMAIN_SPOT, id, hash);
	return spot_key_from_bytes(hash);
}

struct spot_key actor_key_of(struct span id)
{
	uint8_t hash[32];
	domain_hash(DOMAIN_ACTOR, id, hash);
	return spot_key_from_bytes(hash);
}

struct type_key type_key_of(const char *name)
{
	uint8_t hash[32];
	struct type_key key;
	domain_hash(DOMAIN_TYPE, span_of(name, strlen(name)), hash);
	memcpy(&key.value, hash, sizeof(key.value));
	return key;
}

struct node_key node_key_of(struct span id)
{
	uint8_t hash[32];
	struct node_key key;
	domain_hash(DOMAIN_NODE, id, hash);
	memcpy(&key.value, hash, sizeof(key.value));
	return key;
}
