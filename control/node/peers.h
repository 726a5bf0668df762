// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The other nodes on the same store, as this one sees them: every renewal interval all rows are
// read (O4), and a beat is watched on this node's own clock. Nothing here compares wall clocks.
//
// Control thread only.

#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "store/store.h"

// What a run's standing is here. Only FENCED, LEFT, FOLLOWED and STILL are evidence against an
// owner.
enum peer_standing {
	PEER_UNKNOWN = 1,  // the view is older than that run: read it anew
	PEER_LIVE = 2,     // its beat moved, or was not watched long enough
	PEER_STILL = 3,    // watched without a gap for TTL * (1 + rho), and its beat stood still
	PEER_FENCED = 4,
	PEER_LEFT = 5,     // left cleanly
	PEER_FOLLOWED = 6, // a later run holds its node id
	PEER_GONE = 7,     // no row for its node id any more
};
const char *peer_standing_name(enum peer_standing standing);
bool peer_is_over(enum peer_standing standing); // evidence that this run owns nothing any more

// What one row says about the run (boot, lease generation), pure. still_ns: how long its beat was
// seen to stand still without a gap.
enum peer_standing peer_judge(const struct store_node_row *row, struct store_boot_id boot,
	struct lease_generation lease, uint64_t still_ns, uint64_t rho_percent);

enum { PEER_VIEW_MS = 30000 }; // O5: how long the last view serves while the store is out of reach

struct node_peer {
	struct store_node_row row;
	enum peer_standing standing; // of the run in the row
	uint64_t still_ns;           // its beat stands still here for so long
	uint64_t needed_ns;          // and would have to, to be evidence
	bool self;
};
// All nodes of the last view, this one among them; returns how many. *out_age_ns: how old the view
// is (UINT64_MAX: none, or older than PEER_VIEW_MS: then nothing is returned).
uint32_t node_peers(const struct node *node, struct node_peer out[STORE_NODES_MAX],
	uint64_t *out_age_ns);
