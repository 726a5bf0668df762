// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The table of nodes as the store has it, for operators. Control thread only.

#include "node/node.h"

struct node_listing {
	enum store_outcome outcome;         // rows only with STORE_DONE
	const struct store_node_row *nodes; // borrowed for the call
	uint32_t count;                     // at most STORE_NODES_MAX
};
typedef void (*node_listing_done)(void *arg, const struct node_listing *listing);
// done is called once, perhaps before this returns; it must not call back into the node.
void node_list(struct node *node, node_listing_done done, void *arg);
