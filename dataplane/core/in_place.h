// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The short way of most messages: a plain message on a received frame, for a Spot at home here that has
// nothing to do and whose handler never waits, runs at once on the frame it came in. It passes every
// check that the long way (deliver.c) makes, in the same order of effects: lease, state, lane bounds;
// what differs is that nothing is queued, so there is no item and no charge to the process bound, which
// counts messages that have not started. Owner worker only.

#include <stdbool.h>

#include "core/deliver.h"
#include "core/spot.h"

struct dp_worker;

// True: the message was admitted and its turn is over; the frame is consumed. False: nothing happened,
// and the long way decides. The route led to `spot`, and no message of its key waits in the parking.
MUST_USE bool in_place_try(struct dp_worker *w, struct offer *offer, struct dp_spot *spot);
// After the burst: the counters take what was run.
void in_place_count(struct dp_worker *w);
