// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Decode and encode one frame (docs/WIRE.md). Pure functions of their arguments; any thread; never
// block or allocate. Bytes come from hostile hosts: every field is checked here, once, and nothing
// behind this module looks at raw bytes again (parser rules: docs/WIRE.md, "Checking a frame").

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/layout.h"

// Why a frame was not taken (the list is in layout.h).
enum wire_reject {
	WIRE_TAKEN = 0,
#define X(name, number, text) WIRE_REJECT_##name = (number),
	WIRE_REJECTS(X)
#undef X
};

const char *wire_reject_name(enum wire_reject reject);
const char *wire_family_name(uint8_t family); // NULL outside the closed set

// A checked frame. id and segment borrow from the input buffer.
struct wire_frame {
	struct wire_header h;
	struct span id;      // empty when h.id_bytes is 0
	struct span segment; // h.segment_bytes bytes of payload
};

static inline struct spot_key wire_frame_key(const struct wire_frame *f)
{
	return (struct spot_key){f->h.spot_key_lo, f->h.spot_key_hi};
}

// Checks everything that can be checked without state. `out` may be read only when WIRE_TAKEN.
// The hot path: header copied once, into `out`, then compared. Checking that a full id hashes to
// its key (ID_KEY) costs a SHA-256 and is left to wire_check_id, called only where the id is used.
MUST_USE enum wire_reject wire_decode(struct span frame, struct wire_frame *out);
MUST_USE enum wire_reject wire_check_id(const struct wire_frame *frame);

// Writes header, id and segment into out (capacity in bytes). Returns the frame's size, or 0 when
// the frame would not fit or would not decode (a defect of the caller, CHECKed in tests).
// h->id_bytes and h->segment_bytes are set from the spans.
MUST_USE size_t wire_encode(
	struct wire_header *h, struct span id, struct span segment, uint8_t *out, size_t capacity);

// The body of a refusal (content type WIRE_CONTENT_REFUSAL).
void wire_refusal_encode(const struct refusal *r, uint8_t out[WIRE_REFUSAL_BYTES]);
MUST_USE enum wire_reject wire_refusal_decode(struct span body, struct refusal *out);
