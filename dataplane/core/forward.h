// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages for Spots that another node owns (S1, R1, R2). The node that received one sends it on to
// the owner, with the owner's fence and a sealed reply route, and forgets it: what comes back says
// where it goes. The owner judges it like any message; it never sends it further. Frames between
// nodes are taken only from addresses of the published peers. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "core/deliver.h"
#include "core/reply_route.h"
#include "dp/remote.h"
#include "wire/wire.h"

struct dp_worker;

// Notices to a peer whose one-way messages meet no owner: one a key and second.
enum { FORWARD_NOTICES = 256 };
#define FORWARD_NOTICE_NS UINT64_C(1000000000)

struct forward_notice { // when a peer was last told of a key
	struct spot_key key;
	uint64_t peer; // address and port, mixed
	uint64_t next_ns;
};

// The nodes that take part, published as a whole.
struct peer_set {
	struct publish_deferred deferred;
	uint32_t count;
	struct dp_peer *peers[];
};

// One way out. Consumes item and frame.
enum delivered forward_offer(struct dp_worker *w, struct offer *offer, struct dp_remote *remote);
// Frames between nodes are taken from here.
bool forward_is_peer(const struct dp_worker *w, const struct peer *peer);
// A FORWARD_REPLY in one frame; its frame stays the caller's.
void forward_reply_frame(
	struct dp_worker *w, const struct peer *from, const struct wire_frame *frame);
// A FORWARD_REPLY in segments, whole or refused on its way through here (item result and payload
// set). Consumes the item.
void forward_reply_item(struct dp_worker *w, struct item *item);
// A one-way message of a peer was refused: tells it of a stale route, if it was not told lately.
void forward_notice(struct dp_worker *w, const struct envelope *env, struct result result);
// The worker of this node that sends under that session; -1: none.
int forward_worker_of(const struct dp *dp, uint64_t session);
