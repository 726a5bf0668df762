// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a store is asked and how long it takes, by kind of operation and outcome. A store without a
// meter is not measured (tests, the simulator). Control thread only; constant size.

#include "base/clock.h"
#include "base/latency.h"
#include "store/store.h"

enum { STORE_OP_KINDS = STORE_SPOT_FENCE + 1, STORE_OUTCOMES = STORE_EXHAUSTED + 1 };

struct store_meter {
	struct clock *clock;
	uint64_t pending; // submitted and not yet completed
	uint64_t outcomes[STORE_OP_KINDS][STORE_OUTCOMES];
	struct latency latency[STORE_OP_KINDS]; // submit to completion, as control sees it
};

// From now on operations of this store are measured; set before the first submit. Borrowed.
void store_measure(struct store *store, struct store_meter *meter, struct clock *clock);
// "node.read", "spot.claim", …; NULL for a number that is none.
const char *store_op_kind_name(enum store_op_kind kind);
