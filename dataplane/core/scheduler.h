// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The home worker's ready set (X8): Spots with something to run, served round-robin, each for at most
// its time budget (X4) in one acquisition; a Spot is in the set at most once. Owner worker only.

#include <stdbool.h>

struct dp_worker;
struct dp_spot;

// The Spot may have work. Harmless when it is in the set already.
void scheduler_ready(struct dp_worker *w, struct dp_spot *spot);
// One pass over those that were ready at its start. True when a turn ran.
bool scheduler_run(struct dp_worker *w);
