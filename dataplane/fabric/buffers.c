// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/buffers.h"

#include "base/mem.h"

bool fabric_buffers_init(struct fabric_buffers *buffers, uint32_t count, uint32_t buffer_bytes)
{
	size_t stride = ((size_t)buffer_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES *
			CACHE_LINE_BYTES;
	*buffers = (struct fabric_buffers){.count = count, .buffer_bytes = buffer_bytes};
	buffers->free = mem_zalloc(sizeof(*buffers->free) * count);
	buffers->memory = mem_zalloc_aligned(CACHE_LINE_BYTES, stride * count);
	if (buffers->free == NULL || buffers->memory == NULL) {
		fabric_buffers_fini(buffers);
		return false;
	}
	// Taken from the top: the first buffer handed out is the first in memory.
	for (uint32_t i = 0; i < count; i++)
		buffers->free[i] = buffers->memory + stride * (count - 1 - i);
	buffers->free_count = count;
	return true;
}

void fabric_buffers_fini(struct fabric_buffers *buffers)
{
	mem_free(buffers->free);
	mem_free(buffers->memory);
	*buffers = (struct fabric_buffers){0};
}
