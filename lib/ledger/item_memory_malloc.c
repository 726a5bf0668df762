// SPDX-License-Identifier: BSD-3-Clause
#include "base/sanitize.h"
#include "ledger/item_memory.h"

#if SANITIZE_ADDRESS

#include <stdlib.h>

// The address sanitizer cannot see into jemalloc's blocks: an overflow between two of them would go
// unnoticed. Here each block is a malloc block of exactly the size asked, so every byte past it is
// poisoned. The audit then compares two sums of our own: a documented exception to L3.

bool item_memory_init(struct item_memory *memory)
{
	memory->measured_bytes = 0;
	return true;
}

void item_memory_fini(struct item_memory *memory)
{
	(void)memory;
}

void *item_memory_take(struct item_memory *memory, size_t bytes, uint32_t block_bytes)
{
	void *block = malloc(bytes);

	if (block != NULL)
		memory->measured_bytes += block_bytes;
	return block;
}

void item_memory_drop(struct item_memory *memory, void *block, uint32_t block_bytes)
{
	memory->measured_bytes -= block_bytes;
	free(block);
}

void item_memory_flush(struct item_memory *memory)
{
	(void)memory;
}

uint64_t item_memory_measure(struct item_memory *memory)
{
	return memory->measured_bytes;
}

#else
typedef int item_memory_from_malloc_is_off;
#endif
