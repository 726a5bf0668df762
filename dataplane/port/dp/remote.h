// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Other nodes and routes to their Spots (R1, R2), as workers see them. Control makes, publishes and
// retires all of it; workers read under RCU. What control takes out of publication it frees through
// publish_defer; a peer goes after the routes that point to it, in the same grace period at the
// earliest.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "dp/port.h"
#include "publish/publish.h"

enum { DP_PEERS_MAX = 64 };

// One run of another node. Constant after publication, but for usable_until_boot_ns.
struct dp_peer {
	struct publish_deferred deferred;
	struct node_key node;
	struct lease_generation lease;
	uint8_t ip[16]; // as in struct peer: IPv6, or IPv4 mapped
	uint16_t port;  // host order
	uint8_t fabric; // index of this node's fabric that leads there
	// R1: last seen movement of its beat + TTL. 0 = its lease is known to be over (R2).
	// Control writes, workers read.
	_Atomic uint64_t usable_until_boot_ns;
};

// A route to a Spot of another node. Constant after publication, but for `stale`.
struct dp_remote {
	struct publish_deferred deferred;
	struct dp_remote *previous, *next; // control only
	struct spot_key key;
	struct dp_peer *owner;
	struct authority_generation authority_generation;
	struct object_generation object_generation;
	struct store_version version;
	uint64_t read_boot_ns;    // when control asked the store for it
	uint64_t expires_boot_ns; // RouteCacheMaxAge
	_Atomic uint8_t stale;    // any worker: its owner said StaleRoute
};

static inline route_word dp_remote_route(struct dp_remote *remote)
{
	return route_make(remote, ROUTE_REMOTE);
}

// NULL unless the word is a remote route.
static inline struct dp_remote *dp_remote_of_route(route_word word)
{
	return route_tag(word) == ROUTE_REMOTE ? route_pointer(word) : NULL;
}

static inline bool dp_remote_usable(struct dp_remote *remote, uint64_t now_boot_ns)
{
	return now_boot_ns < remote->expires_boot_ns &&
		now_boot_ns < atomic_load_explicit(
				      &remote->owner->usable_until_boot_ns, memory_order_relaxed) &&
		atomic_load_explicit(&remote->stale, memory_order_relaxed) == 0;
}

// Replaces the set of nodes that frames between nodes may come from and go to. Pointers are kept
// until the next call and a grace period. NO_MEMORY: nothing changed.
MUST_USE enum dp_status dp_peers_set(struct dp *dp, struct dp_peer *const *peers, uint32_t count);
