// SPDX-License-Identifier: BSD-3-Clause
#include "node/listing.h"

#include "base/mem.h"
#include "node/internal.h"

struct listing {
	struct node *node;
	struct store_op op;
	struct store_node_row rows[STORE_NODES_MAX];
	node_listing_done done;
	void *arg;
};

static void listing_read(struct store_op *op)
{
	struct listing *at = container_of(op, struct listing, op);
	bool done = op->outcome == STORE_DONE;
	struct node_listing found = {
		.outcome = op->outcome, .nodes = at->rows, .count = done ? op->count : 0};
	if (!at->node->halted && op->outcome == STORE_DAMAGED)
		node_damaged(at->node);
	at->done(at->arg, &found);
	mem_free(at);
}

void node_list(struct node *n, node_listing_done done, void *arg)
{
	struct listing *at = mem_zalloc(sizeof(*at));
	if (at == NULL) {
		struct node_listing nothing = {.outcome = STORE_UNREACHABLE};
		done(arg, &nothing);
		return;
	}
	at->node = n;
	at->done = done;
	at->arg = arg;
	at->op.kind = STORE_NODE_LIST;
	at->op.nodes = at->rows;
	at->op.done = listing_read;
	node_submit(n, &at->op);
}
