// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The contract every fabric keeps, as one suite. An implementation's test opens two queues that reach
// each other and runs the suite over them; every test gets the same pair and leaves it at rest.

#include "fabric/fabric.h"

struct contract_pair {
	struct fabric_queue *a, *b;
	struct peer at_a, at_b; // where to send to reach each
	// Called between polls while a test waits (moves frames for fabrics that need a hand); may be NULL.
	void (*step)(struct contract_pair *pair);
};

// Returns the number of failed tests.
int contract_run(const char *group, struct contract_pair *pair);
