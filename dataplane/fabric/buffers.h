// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A fixed stock of equal payload buffers for the fabrics that have no driver pool of their own.
// One owner thread. Never grows: an empty stock is a verdict (NULL), counted by the caller.

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/compiler.h"

struct fabric_buffers {
	uint8_t **free; // stack
	uint32_t free_count, count;
	uint32_t buffer_bytes; // usable size of each
	uint8_t *memory;
};

// False when memory is short; nothing is held then.
MUST_USE bool fabric_buffers_init(
	struct fabric_buffers *buffers, uint32_t count, uint32_t buffer_bytes);
// Accepts a zeroed struct.
void fabric_buffers_fini(struct fabric_buffers *buffers);

static inline uint8_t *fabric_buffers_take(struct fabric_buffers *buffers)
{
	return buffers->free_count == 0 ? NULL : buffers->free[--buffers->free_count];
}

static inline void fabric_buffers_give(struct fabric_buffers *buffers, uint8_t *buffer)
{
	CHECK(buffers->free_count < buffers->count);
	buffers->free[buffers->free_count++] = buffer;
}
