// SPDX-License-Identifier: BSD-3-Clause
// What the libraries get from the system, in the simulator's own form. Grace periods: everything
// runs in one thread and a worker's turn ends without holding a route, so what was deferred may be
// freed between any two steps; the simulator frees it when it likes, and counts what waits. Item
// memory: malloc, so that an arena costs nothing to make (the audit compares two sums of our own,
// as under the address sanitizer).
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/item_memory.h"
#include "publish/publish.h"
#include "sim.h"

struct deferred {
	struct deferred *next;
	void (*fn)(struct publish_deferred *node);
	void *unused;
};
_Static_assert(sizeof(struct deferred) == sizeof(struct publish_deferred), "same size");

extern const char *malloc_conf; // read by jemalloc, which is this program's malloc

static struct deferred *first, **end = &first;
static uint64_t pending;
static bool held;

void publish_start(void)
{
}

void publish_stop(void)
{
}

void publish_reader_enter(void)
{
}

void publish_reader_leave(void)
{
}

void publish_quiescent(void)
{
}

void publish_reader_offline(void)
{
}

void publish_reader_online(void)
{
}

void publish_defer(struct publish_deferred *node, void (*fn)(struct publish_deferred *node))
{
	struct deferred *d = (struct deferred *)(void *)node;
	d->next = NULL;
	d->fn = fn;
	*end = d;
	end = &d->next;
	pending++;
}

uint64_t publish_pending(void)
{
	return pending;
}

void publish_barrier(void)
{
	while (first != NULL) {
		struct deferred *d = first;
		first = d->next;
		if (first == NULL)
			end = &first;
		pending--;
		d->fn((struct publish_deferred *)(void *)d);
	}
}

void sim_publish_hold(bool hold)
{
	held = hold;
}

void sim_publish_turn(void)
{
	if (!held)
		publish_barrier();
}

// ---- item memory ----
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

// ---- memory ----
// calloc gives pages back to the kernel to have them zeroed; here they are cleared in place, which for
// tables that are made and freed many times a second costs a fraction.
const char *malloc_conf =
	"dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:never,narenas:1";

void *mem_zalloc(size_t size)
{
	void *p = malloc(size);
	__asm__ volatile("" : "+r"(p)); // else the compiler makes it the calloc it is not to be
	return p == NULL ? NULL : memset(p, 0, size);
}

void *mem_zalloc_aligned(size_t alignment, size_t size)
{
	void *p = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
	return p == NULL ? NULL : memset(p, 0, size);
}

void *mem_resize(void *p, size_t size)
{
	return realloc(p, size);
}

char *mem_strdup(const char *s)
{
	return strdup(s);
}

void mem_free(void *p)
{
	free(p);
}
