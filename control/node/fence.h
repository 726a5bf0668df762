// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fence under way (fence.c); part of struct node.

#include "node/node.h"
#include "store/store.h"

enum fence_phase { FENCE_NONE = 0, FENCE_MARKING = 1, FENCE_RELEASING = 2 };

struct fence {
	enum fence_phase phase;
	char node_id[65];
	struct store_boot_id boot; // of the run that is over; zero: it left
	uint64_t beat;             // as watched
	bool was_over;             // fenced or left before this
	bool marked;
	struct store_op op;
	bool lent;
	uint64_t next_ns;
	uint64_t released;
	node_fence_done done; // NULL: by policy, or answered
	void *arg;
	uint64_t deadline_ns;
};

enum fence_may {
	FENCE_MAY = 1,
	FENCE_IS_SELF = 2,
	FENCE_NOBODY = 3,
	FENCE_NO_VIEW = 4,
	FENCE_WATCHED = 5, // counts as live: the watch is not over, or the beat moves
};
struct fence_verdict {
	enum fence_may may;
	uint64_t still_ns, needed_ns;
};
struct fence_verdict fence_judge(struct node *n, const char *node_id);
void fence_step(struct node *n);
uint64_t fence_next(const struct node *n);
void fence_end(struct node *n); // the asker hears that the node stops
