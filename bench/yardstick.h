// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The yardstick: the least that any router of this kind does for a message, on the same frames, the
// same keys and the same fabric as the router beside which it is timed. Per burst: look at the
// header, hash, fetch the table's slot, fetch the Spot's line and its state, then for each message
// compare the lease, add to the lane's bytes and count, put it on the lane and take it off, read the
// clock once, call the handler through a pointer, give bytes and count back, turn the header into
// the reply's in place. No sessions, no repeat window, no counters, no bounds but the lane's, nobody
// else: what the router does beyond this is its own choice, and the ratio says what it costs.
//
// One thread.

#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "fabric/fabric.h"

struct yardstick;
// Copies the keys. NULL when memory is short.
MUST_USE struct yardstick *yardstick_create(const struct spot_key *keys, uint32_t spots);
void yardstick_destroy(struct yardstick *y); // accepts NULL
// One burst; how many frames it worked off.
uint32_t yardstick_turn(struct yardstick *y, struct fabric_queue *queue);
