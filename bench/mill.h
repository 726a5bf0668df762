// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A fabric of frames that are already in memory: MILL_FRAMES requests are written ahead of a round,
// then the router (or the swap-only stage) works them off, then the answers are looked at. Only the
// middle part is timed. One thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/fabric.h"

enum {
	MILL_FRAMES = 4096,
	MILL_HEADROOM_BYTES = 64, // stands for the link and IP headers in front of a payload
	MILL_ROOM_BYTES = 512 - MILL_HEADROOM_BYTES,
};

struct mill;
MUST_USE struct mill *mill_create(void);
void mill_destroy(struct mill *mill);
struct fabric_queue *mill_queue(struct mill *mill);
// Frame i: where its payload is written before a round, and what came back after it (0 = nothing).
uint8_t *mill_payload(struct mill *mill, uint32_t i);
void mill_set_bytes(struct mill *mill, uint32_t i, uint32_t bytes);
void mill_load(struct mill *mill, uint32_t count); // frames 0..count-1 are next
uint32_t mill_left(const struct mill *mill);     // requests not handed out yet
uint32_t mill_answers(const struct mill *mill);  // frames sent since mill_load
const uint8_t *mill_answer(const struct mill *mill, uint32_t i, uint32_t *out_bytes);
