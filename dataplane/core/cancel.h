// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Cancellation of a handler's request (L5). Work that waits (parked, or in the target's lane) ends
// its request at once, Cancelled and not accepted to run, and keeps place and charge until it is
// taken; work that has begun goes on and answers. Either way the call has one result. Owner worker
// only.

#include <stdbool.h>
#include <stdint.h>

struct dp_worker;
struct dp_spot;
struct item;

// False: the Spot has no such open request.
bool cancel_call(struct dp_worker *w, struct dp_spot *spot, uint64_t call);
// The wish of another worker's Spot. Consumes the item.
void cancel_arrived(struct dp_worker *w, struct item *item);
