// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// From a burst of messages to their Spots: looks all keys up, fetches all Spots' first lines, then
// hands each message to admission, in order. Owner worker, inside a read section (one loop turn).

#include <stdint.h>

#include "core/deliver.h"

struct dp_worker;

// S1's first half and the node's own state: what can be said before the route is known. True when the
// offer was ended.
MUST_USE bool resolve_refuses(
	struct dp_worker *w, struct offer *offer, uint64_t owner_node, uint64_t owner_lease);
// n <= FABRIC_BURST_MAX. Consumes items and frames.
void resolve_burst(struct dp_worker *w, struct offer *offers, uint32_t n);
enum delivered resolve_one(struct dp_worker *w, struct offer *offer);
