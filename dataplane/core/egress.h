// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Everything that leaves: replies, challenges, acknowledgements. Frames gather per queue and go out
// in bursts; payloads larger than a frame go through segment_out.h. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "base/result.h"
#include "core/item.h"
#include "fabric/fabric.h"
#include "wire/wire.h"

struct dp_worker;
struct held_replies;

// One fabric queue of this worker with its bursts under way.
struct worker_queue {
	struct fabric_queue *queue;
	const struct fabric_ops *ops;
	uint32_t payload_bytes_max;
	struct held_replies *held; // what leaves is held there (held.h); NULL = nothing is
	uint32_t tx_count;
	uint32_t stash_count;
	uint32_t dead_count;
	struct frame tx[FABRIC_BURST_MAX];
	struct frame stash[FABRIC_BURST_MAX]; // fresh frames fetched a burst at a time
	struct frame dead[FABRIC_BURST_MAX];  // to be released
};

// The queue of a fabric on this worker; NULL when it has none.
struct worker_queue *egress_queue(struct dp_worker *w, uint8_t fabric);
// Sends the queue's burst.
void egress_flush_tx(struct worker_queue *q);
// Hands the frame with `bytes` of payload to the queue's burst. Takes ownership. (The size is set in
// the copy: set before, the copy's wide load would wait for the narrow store.)
static inline void egress_frame_of(
	struct worker_queue *q, const struct frame *frame, uint32_t bytes)
{
	struct frame *out = &q->tx[q->tx_count++];
	*out = *frame;
	out->bytes = bytes;
	if (UNLIKELY(q->tx_count == FABRIC_BURST_MAX))
		egress_flush_tx(q);
}
static inline void egress_frame(struct worker_queue *q, struct frame *frame)
{
	egress_frame_of(q, frame, frame->bytes);
}
// A received or fresh frame that is not sent. Takes ownership.
void egress_drop(struct worker_queue *q, struct frame *frame);
// A fresh frame; false when the fabric has none (counted by it).
MUST_USE bool egress_fresh(struct worker_queue *q, struct frame *out);
// Sends and releases what gathered.
void egress_flush(struct dp_worker *w);
// Returns fetched frames before the queue ends.
void egress_detach(struct dp_worker *w);

struct reply {
	struct result result;
	uint16_t content;
	struct span payload; // borrowed
	const struct refusal *refusal; // NULL, or the body (M5) instead of payload
};

// Ends a message: sends its one terminal result to wherever it goes. `frame` (may be NULL) is the
// received frame, reused when the reply fits; it is consumed either way.
void egress_reply(
	struct dp_worker *w, const struct envelope *env, struct frame *frame, const struct reply *reply);
// The answer that a turn gave goes out on the frame it ran on, if it can: then the frame is consumed.
// False: nothing happened, egress_reply does it. `q` received the frame.
struct turn;
MUST_USE bool egress_turn_frame(struct dp_worker *w, struct worker_queue *q, const struct envelope *env,
	struct frame *frame, const struct turn *t);
// A reply that another worker passed on (ITEM_REPLY). Consumes the item.
void egress_reply_item(struct dp_worker *w, struct item *item);
// Answers a frame with a cookie. Consumes the frame.
void egress_challenge(
	struct dp_worker *w, struct worker_queue *q, struct frame *frame, const struct wire_frame *in);
// The constant part of a reply header to a client.
void egress_header(struct dp_worker *w, const struct envelope *env, struct result result,
	uint8_t family, struct wire_header *out);
// Builds and sends one small frame with a body (at most one frame's room). Fresh frame.
// id: what travels in the place of the full id, or empty.
void egress_small(struct dp_worker *w, const struct peer *peer, struct wire_header *h, struct span id,
	struct span body);
// A result that is passed on as it came: to a client, or as a notice to a peer.
void egress_pass(struct dp_worker *w, const struct envelope *env, struct result result,
	uint16_t content, uint8_t flags, struct span body);
// What lies in front of the payload and travels with each frame: a sealed reply route, or nothing.
struct span egress_front(const struct envelope *env);
// The family of a reply to there.
uint8_t egress_reply_family(const struct envelope *env);
