// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Replies, and messages to other nodes, in several frames, going out (M8): kept until the client says done or the request's time is
// over, sent in windows, again after 20 to 200 ms of silence. The kept bytes are bounded. Owner
// worker: the one where the request came in, since reports arrive there.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"
#include "wire/segment.h"
#include "wire/wire.h"

struct dp_worker;

enum {
	SEGMENT_OUT_WINDOW = 64,
	SEGMENT_OUT_REPEAT_NS_MIN = 20 * 1000 * 1000,
	SEGMENT_OUT_REPEAT_NS_MAX = 200 * 1000 * 1000,
	SEGMENT_OUT_BURST = 32, // segments of one message in a row
};
#define SEGMENT_OUT_BYTES_MAX (UINT64_C(64) * 1024 * 1024) // per worker

struct segment_out {
	struct segment_out *next;
	struct item *item; // envelope, payload (explain part included), bitmap behind it
	struct seg_tx tx;
	struct wire_header header;
	uint32_t sent_once; // segments below were sent at least once
	uint64_t repeat_at_ns;
	uint64_t repeat_ns;
	uint64_t expires_ns;
};

struct segment_out_list {
	struct segment_out *first;
	uint64_t bytes;
	uint32_t count;
};

// Takes the item: kind REPLY, result and payload filled in. content: of the payload.
void segment_out_begin(struct dp_worker *w, struct item *item);
// A message to another node, its header filled in, a reply route in front of its payload. Takes the
// item; false: no room for it here, and it is gone.
MUST_USE bool segment_out_send(
	struct dp_worker *w, struct item *item, const struct wire_header *header);
// Its answer came: the receiver needs nothing more of it.
void segment_out_answered(struct dp_worker *w, uint64_t scope, uint64_t operation);
// A report that came to another worker of this node. Consumes the item.
void segment_out_ack_item(struct dp_worker *w, struct item *item);
void segment_out_ack(struct dp_worker *w, const struct wire_frame *frame);
// The client repeated its request: everything unacknowledged is due again.
bool segment_out_repeat(struct dp_worker *w, uint64_t scope, uint64_t operation);
bool segment_out_tick(struct dp_worker *w);
void segment_out_fini(struct dp_worker *w);
