// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Results that are still held (M9). Replies of one frame go, as they were sent, into a log of fixed size,
// the newest over the oldest; when a client repeats a request whose result was lost on the way, the
// repeat is dropped and the held frame is sent again. Longer replies are held by their sender
// (segment_out.h). A copy a reply and no look-up: the index is read for repeats only. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/item.h"
#include "fabric/fabric.h"

struct dp_worker;

enum { HELD_BYTES_MIN = 64 * 1024 };

struct held_replies {
	uint8_t *log;
	uint32_t *index;  // by operation: position / 64 of its record
	uint64_t bytes;   // of the log, a power of two; 0 = nothing is held
	uint64_t head;    // position of the next record; never falls
	uint32_t index_mask;
};

MUST_USE bool held_init(struct held_replies *held, uint64_t bytes); // rounded down; 0 = off
void held_fini(struct held_replies *held);
// Frames on their way out; whole replies among them are held. Called for a burst, some time after the
// frames were written: reading them at once would wait for the stores.
void held_put_burst(struct held_replies *held, const struct frame *frames, uint32_t n);
// A request came again: sends its result again, from here or from the Spot's home worker, if it is
// still held. `from` must be whom the result went to.
void held_repeat(struct dp_worker *w, struct spot_key key, const struct peer *from, uint64_t scope,
	uint64_t operation);
// The home worker's part. Consumes the item.
void held_repeat_arrived(struct dp_worker *w, struct item *item);
