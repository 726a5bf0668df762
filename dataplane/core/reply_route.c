// SPDX-License-Identifier: BSD-3-Clause
#include "core/reply_route.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "spot/name.h"

// What is sealed, in the order of its bytes. Only the node that wrote it reads it.
struct sealed {
	uint8_t ip[16];
	uint64_t scope;
	uint64_t operation_id;
	uint64_t expires_boot_ns;
	uint16_t port;
	uint16_t vlan;
	uint8_t mac[6];
	uint8_t fabric;
	uint8_t flags;
	uint8_t kind;
	uint8_t worker;
	uint8_t explain;
	uint8_t zero;
	uint8_t tag[16];
};
_Static_assert(sizeof(struct sealed) == WIRE_ROUTE_BYTES, "no padding");
_Static_assert(crypto_shorthash_siphashx24_BYTES == 16 &&
		crypto_shorthash_siphashx24_KEYBYTES == REPLY_ROUTE_KEY_BYTES,
	"the MAC fits");

void reply_route_key(const uint8_t secret[16], uint8_t out[REPLY_ROUTE_KEY_BYTES])
{
	static const uint8_t what[] = "spotlane reply route";
	(void)crypto_shorthash_siphashx24(out, what, sizeof(what), secret);
}

static void tag_of(const uint8_t key[REPLY_ROUTE_KEY_BYTES], struct spot_key spot,
	const struct sealed *s, uint8_t out[16])
{
	uint8_t text[16 + offsetof(struct sealed, tag)];
	spot_key_bytes(spot, text);
	memcpy(text + 16, s, offsetof(struct sealed, tag));
	(void)crypto_shorthash_siphashx24(out, text, sizeof(text), key);
}

void reply_route_seal(const uint8_t key[REPLY_ROUTE_KEY_BYTES], struct spot_key spot,
	const struct reply_route *route, uint8_t out[WIRE_ROUTE_BYTES])
{
	const struct reply_to *to = &route->reply;
	struct sealed s = {.scope = to->scope,
		.operation_id = to->operation_id,
		.expires_boot_ns = route->expires_boot_ns,
		.port = to->peer.port,
		.vlan = to->peer.vlan,
		.fabric = to->peer.fabric,
		.flags = to->peer.flags,
		.kind = to->kind,
		.worker = to->ingress_worker,
		.explain = to->explain};
	memcpy(s.ip, to->peer.ip, sizeof(s.ip));
	memcpy(s.mac, to->peer.mac, sizeof(s.mac));
	tag_of(key, spot, &s, s.tag);
	memcpy(out, &s, sizeof(s));
}

bool reply_route_open(const uint8_t key[REPLY_ROUTE_KEY_BYTES], struct spot_key spot,
	const uint8_t sealed[WIRE_ROUTE_BYTES], struct reply_route *out)
{
	struct sealed s;
	uint8_t tag[16];
	memcpy(&s, sealed, sizeof(s));
	tag_of(key, spot, &s, tag);
	if (sodium_memcmp(tag, s.tag, sizeof(tag)) != 0)
		return false;
	memset(out, 0, sizeof(*out));
	out->expires_boot_ns = s.expires_boot_ns;
	out->reply.scope = s.scope;
	out->reply.operation_id = s.operation_id;
	out->reply.kind = s.kind;
	out->reply.ingress_worker = s.worker;
	out->reply.explain = s.explain;
	out->reply.peer.port = s.port;
	out->reply.peer.vlan = s.vlan;
	out->reply.peer.fabric = s.fabric;
	out->reply.peer.flags = s.flags;
	memcpy(out->reply.peer.ip, s.ip, sizeof(s.ip));
	memcpy(out->reply.peer.mac, s.mac, sizeof(s.mac));
	return true;
}
