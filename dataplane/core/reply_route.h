// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sealed reply routes: how the result of a forwarded message finds its way back through a node
// that remembers nothing of it. The node that forwards writes down where the result goes and
// seals it with a MAC keyed at its boot; the owner carries the bytes unread and gives them back.
// A route that this node did not seal in this run, or sealed for another Spot, opens to nothing.
// Pure; any thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "core/item.h"
#include "wire/layout.h"

struct reply_route {
	struct reply_to reply; // kind NOWHERE, CLIENT or CALL
	uint64_t expires_boot_ns;
};

enum { REPLY_ROUTE_KEY_BYTES = 16 };

// The key of this run's routes, from the secret drawn at boot.
void reply_route_key(const uint8_t secret[16], uint8_t out[REPLY_ROUTE_KEY_BYTES]);
void reply_route_seal(const uint8_t key[REPLY_ROUTE_KEY_BYTES], struct spot_key spot,
	const struct reply_route *route, uint8_t out[WIRE_ROUTE_BYTES]);
// False: not sealed by this key for this Spot. Says nothing about the time.
MUST_USE bool reply_route_open(const uint8_t key[REPLY_ROUTE_KEY_BYTES], struct spot_key spot,
	const uint8_t sealed[WIRE_ROUTE_BYTES], struct reply_route *out);
