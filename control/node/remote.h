// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Routes to Spots of other nodes, control's half (R1, R2): published when a stored row says Ready
// and its owner counts as live, retired when they age, when their owner's run is over, when the
// store comes back after it was out of reach, and replaced by whatever is read next. Workers see
// the rest by themselves (dp/remote.h). Control thread only.

#include <stdbool.h>
#include <stdint.h>

#include "dp/remote.h"
#include "store/store.h"

struct node;

enum {
	ROUTE_CACHE_MAX_AGE_MS = 15000, // R1
	REMOTES_MAX = 65536,            // routes kept; the oldest goes first
};

struct remote_peer { // one run of another node that has an address
	char node_id[65];
	struct store_boot_id boot;
	struct dp_peer *peer;
};

struct remotes {
	struct dp_remote *first, *last; // oldest first
	uint32_t count;
	struct remote_peer peers[STORE_NODES_MAX];
	uint32_t peer_count;
};

// A new view of the nodes; recovered: a read failed since the one before.
void remote_peers_changed(struct node *n, bool recovered);
void remote_step(struct node *n); // ages
uint64_t remote_next(const struct node *n);
void remote_end(struct node *n); // no worker reads any more

enum remote_verdict {
	REMOTE_PUBLISHED = 1,
	REMOTE_NOT_USABLE = 2, // its beat stands still, or it is not in the view: look again later
	REMOTE_NO_ADDRESS = 3, // the owner cannot be reached from here
	REMOTE_STALLED = 4,    // R3
	REMOTE_NO_MEMORY = 5,
};
// row: Ready, of another node. asked_ns: when it was asked for.
enum remote_verdict remote_publish(
	struct node *n, const struct store_spot_row *row, uint64_t asked_ns);
