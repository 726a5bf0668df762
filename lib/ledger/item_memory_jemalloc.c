// SPDX-License-Identifier: BSD-3-Clause
#include "base/sanitize.h"
#include "ledger/item_memory.h"

#if !SANITIZE_ADDRESS

#include <jemalloc/jemalloc.h>
#include <stdio.h>

#include "base/check.h"

// Read by jemalloc when the process starts: all its memory asks for huge pages. A million Spots lie in
// more 4 KiB pages than any translation buffer covers, and where a hypervisor shadows page tables each
// miss can cost microseconds (docs/PERFORMANCE.md). MALLOC_CONF in the environment outranks it.
extern const char *malloc_conf;
const char *malloc_conf = "thp:always,metadata_thp:auto";

// An own arena holds nothing but items, and an own cache keeps other allocations of this thread out
// of it and these out of the thread's cache: that is what makes the audit exact (L3).

bool item_memory_init(struct item_memory *memory)
{
	size_t size = sizeof(unsigned);

	if (mallctl("arenas.create", &memory->arena, &size, NULL, 0) != 0)
		return false;
	if (mallctl("tcache.create", &memory->cache, &size, NULL, 0) != 0) {
		char name[64];

		snprintf(name, sizeof(name), "arena.%u.destroy", memory->arena);
		CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
		return false;
	}
	memory->flags = MALLOCX_ARENA(memory->arena) | MALLOCX_TCACHE(memory->cache);
	return true;
}

void item_memory_fini(struct item_memory *memory)
{
	char name[64];

	CHECK(mallctl("tcache.destroy", NULL, NULL, &memory->cache, sizeof(memory->cache)) == 0);
	snprintf(name, sizeof(name), "arena.%u.destroy", memory->arena);
	CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
}

void *item_memory_take(struct item_memory *memory, size_t bytes, uint32_t block_bytes)
{
	(void)block_bytes;
	return mallocx(bytes, memory->flags);
}

void item_memory_drop(struct item_memory *memory, void *block, uint32_t block_bytes)
{
	sdallocx(block, block_bytes, memory->flags);
}

void item_memory_flush(struct item_memory *memory)
{
	CHECK(mallctl("tcache.flush", NULL, NULL, &memory->cache, sizeof(memory->cache)) == 0);
}

static uint64_t arena_figure(unsigned arena, const char *group)
{
	char name[64];
	size_t figure;
	size_t size = sizeof(figure);

	snprintf(name, sizeof(name), "stats.arenas.%u.%s.allocated", arena, group);
	CHECK(mallctl(name, &figure, &size, NULL, 0) == 0);
	return figure;
}

uint64_t item_memory_measure(struct item_memory *memory)
{
	uint64_t epoch = 1;

	// jemalloc answers from a snapshot; a new epoch takes a new one.
	CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) == 0);
	return arena_figure(memory->arena, "small") + arena_figure(memory->arena, "large");
}

#else
typedef int item_memory_from_jemalloc_is_off;
#endif
