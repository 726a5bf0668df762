// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A bounded mailbox of small byte strings between two threads: one puts, one takes. Copies both
// ways are the price for holding no driver buffer while control is busy.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct mailbox {
	CACHE_ALIGNED _Atomic uint32_t head; // putter's
	_Atomic uint64_t refused;            // putter writes: did not fit
	CACHE_ALIGNED _Atomic uint32_t tail; // taker's
	CACHE_ALIGNED uint32_t slots; // power of two; the rest is constant
	uint32_t slot_bytes;
	uint32_t *sizes;
	uint8_t *memory;
};

// False when memory is short. slots: a power of two.
MUST_USE bool mailbox_init(struct mailbox *box, uint32_t slots, uint32_t slot_bytes);
void mailbox_fini(struct mailbox *box);
// Putter. False: full, or longer than a slot; counted.
bool mailbox_put(struct mailbox *box, const void *data, uint32_t bytes);
// Taker. The oldest entry, borrowed until mailbox_drop; NULL when empty.
const uint8_t *mailbox_peek(struct mailbox *box, uint32_t *out_bytes);
void mailbox_drop(struct mailbox *box);

// Taker: one load of a line that is written only when something came.
static inline bool mailbox_empty(const struct mailbox *box)
{
	return atomic_load_explicit(&box->head, memory_order_acquire) ==
	       atomic_load_explicit(&box->tail, memory_order_relaxed);
}
