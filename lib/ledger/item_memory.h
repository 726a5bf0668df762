// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where the blocks of one item arena come from. Two sources, chosen by the build: a jemalloc arena
// with an explicit cache (item_memory_jemalloc.c) or, under the address sanitizer, malloc
// (item_memory_malloc.c). Private to lib/ledger. Owner thread only, but for measure.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct item_memory {
	int flags;               // jemalloc: arena and cache, as mallocx wants them
	unsigned arena;          // jemalloc
	unsigned cache;          // jemalloc
	uint64_t measured_bytes; // malloc: the second sum
};

MUST_USE bool item_memory_init(struct item_memory *memory);
void item_memory_fini(struct item_memory *memory); // every block is back
// A block of `bytes`, which takes block_bytes of its source; NULL when memory is short.
MUST_USE void *item_memory_take(struct item_memory *memory, size_t bytes, uint32_t block_bytes);
void item_memory_drop(struct item_memory *memory, void *block, uint32_t block_bytes);
void item_memory_flush(struct item_memory *memory);
// Bytes that the source says are allocated. Any thread while the owner is parked after a flush.
uint64_t item_memory_measure(struct item_memory *memory);
