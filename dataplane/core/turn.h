// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Turns (X1, X2, L5): runs one callback of one Spot and carries its outcome out. The clock is read
// once per turn start; that reading also ends the turn before. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "core/egress.h"
#include "core/item.h"
#include "core/spot.h"

struct dp_worker;

// Reads the tick clock and ends the account of the turn before, if any.
uint64_t turn_clock(struct dp_worker *w);
// The scheduler reads the clock before each of the next two.
// An item taken from the application lane: a message, or a yielded turn whose call ended.
void turn_queued(struct dp_worker *w, struct dp_spot *spot, struct item *item);
// A waiting turn with an answer.
void turn_resume(struct dp_worker *w, struct dp_spot *spot, struct item *item);
// A yielded turn whose call ended goes to the back of the application lane.
void turn_requeue(struct dp_worker *w, struct item *item);
// Ends the turn on the stack that is over: sends its answer, or the one that its outcome stands for.
void turn_answer(struct dp_worker *w, enum spotlane_outcome outcome);

extern const struct spotlane_host host_table; // host.c
