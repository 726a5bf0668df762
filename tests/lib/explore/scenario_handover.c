// SPDX-License-Identifier: BSD-3-Clause
#include "scenarios.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "lane/lane.h"
#include "lane/ring.h"
#include "ledger/item_memory.h"

static struct ring *ring_fresh(struct ring **kept, uint32_t capacity)
{
	if (*kept == NULL)
		*kept = ring_create(capacity);
	if (*kept == NULL)
		abort();
	atomic_init(&(*kept)->tail, 0);
	atomic_init(&(*kept)->head, 0);
	(*kept)->tail_seen = (*kept)->head_seen = 0;
	memset((*kept)->slots, 0, capacity * sizeof(void *));
	return *kept;
}

// ---- ring: order, nothing lost, nothing twice ----

static struct ring *ring;
static uintptr_t pushed, popped;

static void reset_ring(void)
{
	static struct ring *kept;

	ring = ring_fresh(&kept, 2);
	pushed = popped = 0;
}

static void ring_feed(void)
{
	static const uint32_t bursts[] = {1, 2, 1, 2};

	for (size_t b = 0; b < ARRAY_COUNT(bursts); b++) {
		void *items[2] = {(void *)(pushed + 1), (void *)(pushed + 2)};
		pushed += ring_push(ring, items, bursts[b]);
	}
}

static void ring_take(uint32_t burst)
{
	void *out[2];
	uint32_t n = ring_pop(ring, out, burst);

	for (uint32_t i = 0; i < n; i++)
		EXPLORE_ASSERT(out[i] == (void *)(++popped));
}

static void ring_drain(void)
{
	for (uint32_t i = 0; i < 4; i++)
		ring_take(1 + i % 2);
}

static const char *ring_always(void)
{
	return ring_count(ring) > 2 ? "the ring holds more than it has slots" : NULL;
}

static const char *ring_at_end(void)
{
	void *out;

	while (ring_pop(ring, &out, 1) == 1)
		if (out != (void *)(++popped))
			return "L7: out of order";
	return pushed == popped ? NULL : "an item is lost";
}

const struct explore_scenario scenario_ring = {
	.name = "ring", .threads = 2, .preemptions_max = 7, .reset = reset_ring,
	.thread = {ring_feed, ring_drain},
	.always = ring_always, .at_end = ring_at_end,
};

// ---- two producers reserve and pass items to one home worker, which runs and returns them ----

enum { CHARGE = 16 };
static const struct lane_bounds CROSSING_BOUNDS = {.bytes_max = 2 * CHARGE, .count_max = 2};
static struct lane_word word;
static struct ring *crossing[2];
static uint32_t sent, refused, run;

static void reset_crossing(void)
{
	static struct ring *kept[2];

	lane_word_init(&word, false);
	for (int i = 0; i < 2; i++)
		crossing[i] = ring_fresh(&kept[i], 2);
	sent = refused = run = 0;
}

static void produce(struct ring *to)
{
	static int item;

	for (int i = 0; i < 2; i++) {
		void *pointer = &item;
		if (lane_reserve(&word, CROSSING_BOUNDS, CHARGE) != LANE_ADMITTED) {
			refused++;
			continue;
		}
		// Two items at most are admitted and not returned: a ring of two never refuses.
		EXPLORE_ASSERT(ring_push(to, &pointer, 1) == 1);
		sent++;
	}
}

static void produce_first(void)
{
	produce(crossing[0]);
}

static void produce_second(void)
{
	produce(crossing[1]);
}

static void serve(void)
{
	void *out[2];

	for (int from = 0; from < 2; from++) {
		uint32_t n = ring_pop(crossing[from], out, 2);
		for (uint32_t i = 0; i < n; i++) {
			EXPLORE_ASSERT(out[i] != NULL);
			run++;
			lane_return(&word, CHARGE);
		}
	}
}

static void home(void)
{
	serve();
	serve();
}

static const char *crossing_always(void)
{
	struct lane_level level = lane_level(&word);

	return level.count > 2 || level.bytes > 2 * CHARGE ? "I12: over the bound" : NULL;
}

static const char *crossing_at_end(void)
{
	serve();
	if (sent != run)
		return "an admitted item never ran";
	if (sent + refused != 4)
		return "an offer has no verdict";
	struct lane_level level = lane_level(&word);
	return level.count == 0 && level.bytes == 0 ? NULL : "I10: the word is not zero at the end";
}

const struct explore_scenario scenario_crossing = {
	.name = "reserve, hand over, return", .threads = 3, .preemptions_max = 3, .reset = reset_crossing,
	.thread = {produce_first, produce_second, home},
	.always = crossing_always, .at_end = crossing_at_end,
};

// ---- foreign items come home: the arena's own code over memory that counts ----

enum { BLOCKS = 5, BLOCK_BYTES = 64 };
static struct {
	char bytes[BLOCKS][BLOCK_BYTES] __attribute__((aligned(16)));
	uint32_t taken;
	uint32_t dropped[BLOCKS];
} memory;
static struct item_arena *arena;
static struct item_head *items[BLOCKS];

bool item_memory_init(struct item_memory *unused)
{
	(void)unused;
	memset(&memory, 0, sizeof(memory));
	return true;
}

void item_memory_fini(struct item_memory *unused)
{
	(void)unused;
}

void *item_memory_take(struct item_memory *unused, size_t bytes, uint32_t block_bytes)
{
	(void)unused;
	(void)bytes;
	(void)block_bytes;
	return memory.taken < BLOCKS ? memory.bytes[memory.taken++] : NULL;
}

void item_memory_drop(struct item_memory *unused, void *block, uint32_t block_bytes)
{
	(void)unused;
	(void)block_bytes;
	memory.dropped[((char *)block - memory.bytes[0]) / BLOCK_BYTES]++;
}

void item_memory_flush(struct item_memory *unused)
{
	(void)unused;
}

uint64_t item_memory_measure(struct item_memory *unused)
{
	(void)unused;
	return 0;
}

static void reset_give_back(void)
{
	free(arena); // a failed run may leave items out: the arena is not asked
	arena = item_arena_create(0);
	if (arena == NULL)
		abort();
	for (int i = 0; i < BLOCKS; i++) {
		items[i] = item_alloc(arena, BLOCK_BYTES);
		if (items[i] == NULL)
			abort();
	}
}

static void give_chain(void)
{
	items[0]->next = items[1];
	item_give_back(arena, items[0], items[1]);
	item_give_back(arena, items[2], items[2]);
}

static void give_single(void)
{
	item_give_back(arena, items[3], items[3]);
	item_give_back(arena, items[4], items[4]);
}

static void collect(void)
{
	item_arena_collect(arena);
	item_arena_collect(arena);
}

static const char *freed_at_most_once(void)
{
	for (int i = 0; i < BLOCKS; i++)
		if (memory.dropped[i] > 1)
			return "an item is freed twice";
	return NULL;
}

static const char *freed_exactly_once(void)
{
	struct item_arena_stats stats;

	item_arena_collect(arena);
	for (int i = 0; i < BLOCKS; i++)
		if (memory.dropped[i] != 1)
			return "an item given back is lost";
	item_arena_audit(arena, &stats);
	return stats.held_items == 0 && stats.held_bytes == 0 ? NULL : "the books are not zero";
}

const struct explore_scenario scenario_give_back = {
	.name = "give back", .threads = 3, .preemptions_max = 3, .reset = reset_give_back,
	.thread = {give_chain, give_single, collect},
	.always = freed_at_most_once, .at_end = freed_exactly_once,
};
