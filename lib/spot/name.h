// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Names, keys and kinds (semantics T1, T2, T7, K1). Pure; any thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"

// K1: the closed set. Spots themselves are three sibling types (dataplane/core/spot.h); this enum
// names them in stores, on the wire and for people.
enum spot_kind {
	SPOT_KIND_INVALID = 0,
	SPOT_KIND_ENTRY = 1,
	SPOT_KIND_USER = 2,
	SPOT_KIND_INSTANCE = 3,
};

const char *spot_kind_name(enum spot_kind kind); // "entry", "user", "instance", "invalid"

// T1: well-formed UTF-8, 1..255 bytes, no NUL.
bool id_is_valid(struct span id);
// T7: `<prefix>-entry-<uuid4>`.
bool id_has_entry_shape(struct span id);

struct spot_key spot_key_of(struct span id);
struct spot_key actor_key_of(struct span id);
struct type_key type_key_of(const char *name);
struct node_key node_key_of(struct span id);

// The 16 bytes of T2 in wire order.
void spot_key_bytes(struct spot_key key, uint8_t out[KEY_BYTES]);
struct spot_key spot_key_from_bytes(const uint8_t bytes[KEY_BYTES]);
