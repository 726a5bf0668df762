// SPDX-License-Identifier: BSD-3-Clause
#include "yardstick.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "base/mem.h"
#include "base/result.h"
#include "wire/wire.h"

enum { HUGE_BYTES = 2 << 20, CHARGE_BYTES = 320, LANE_BYTES_MAX = 64 << 20, LANE_COUNT_MAX = 1024 };

struct message {
	struct message *next;
	struct frame *frame;
	struct spot *spot;
};

struct state {
	uint64_t value;
};

struct lease {
	CACHE_ALIGNED uint64_t deadline;
	uint64_t generation;
};

struct spot {
	// Line 0.
	CACHE_ALIGNED struct spot_key key;
	uint64_t lane_bytes;
	uint32_t lane_count;
	uint32_t turns;
	const struct lease *lease;
	struct message *head, *tail;
	uint64_t (*handler)(struct state *state, const uint8_t *payload);
	// Line 1.
	CACHE_ALIGNED struct state state;
};
_Static_assert(sizeof(struct spot) == 2 * CACHE_LINE_BYTES, "two lines a Spot");

struct slot { // at most half full
	uint64_t key_lo;
	struct spot *spot;
};

struct yardstick {
	struct slot *slots;
	struct spot *spots;
	uint32_t mask;
	uint64_t turn_ticks; // of the last turn
	uint64_t last_ticks;
	struct lease lease;
};

static void *huge_zalloc(size_t bytes)
{
	bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	void *memory = aligned_alloc(HUGE_BYTES, bytes);
	if (memory == NULL)
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memset(memory, 0, bytes);
}

static uint64_t count_up(struct state *state, const uint8_t *payload)
{
	uint64_t amount;
	memcpy(&amount, payload, sizeof(amount));
	state->value += amount;
	return state->value;
}

static inline uint32_t home_of(const struct yardstick *y, uint64_t key_lo)
{
	return (uint32_t)((key_lo * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & y->mask;
}

static void insert(struct yardstick *y, struct spot *spot)
{
	uint32_t i = home_of(y, spot->key.lo);
	while (y->slots[i].spot != NULL)
		i = (i + 1) & y->mask;
	y->slots[i] = (struct slot){spot->key.lo, spot};
}

struct yardstick *yardstick_create(const struct spot_key *keys, uint32_t spots)
{
	struct yardstick *y = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*y));
	uint32_t slots = 64;
	if (y == NULL)
		return NULL;
	while (slots < 2 * (uint64_t)spots)
		slots *= 2;
	y->mask = slots - 1;
	y->slots = huge_zalloc(slots * sizeof(y->slots[0]));
	y->spots = huge_zalloc(spots * sizeof(y->spots[0]));
	if (y->slots == NULL || y->spots == NULL) {
		yardstick_destroy(y);
		return NULL;
	}
	y->lease.deadline = UINT64_MAX;
	for (uint32_t i = 0; i < spots; i++) {
		y->spots[i].key = keys[i];
		y->spots[i].lease = &y->lease;
		y->spots[i].handler = count_up;
		insert(y, &y->spots[i]);
	}
	return y;
}

void yardstick_destroy(struct yardstick *y)
{
	if (y == NULL)
		return;
	free(y->slots);
	free(y->spots);
	mem_free(y);
}

// What a frame must be to be read at all.
static inline bool is_request(const struct wire_header *h, uint32_t bytes)
{
	return h->version == WIRE_VERSION && h->family == WIRE_REQUEST && h->flags == 0 &&
	       h->id_bytes == 0 && bytes == (uint32_t)WIRE_HEADER_BYTES + h->segment_bytes &&
	       h->total_bytes == h->segment_bytes && h->segment_bytes >= sizeof(uint64_t);
}

static inline struct wire_header *header_of(const struct frame *f)
{
	return (struct wire_header *)(void *)f->data;
}

static inline struct spot *find(const struct yardstick *y, uint32_t home, const struct wire_header *h)
{
	uint32_t i = home;
	while (y->slots[i].spot != NULL && y->slots[i].key_lo != h->spot_key_lo)
		i = (i + 1) & y->mask;
	return y->slots[i].spot;
}

static inline bool admit(struct spot *spot, struct message *m, uint64_t now)
{
	if (now >= spot->lease->deadline || spot->lane_count >= LANE_COUNT_MAX ||
		spot->lane_bytes + CHARGE_BYTES > LANE_BYTES_MAX)
		return false;
	spot->lane_bytes += CHARGE_BYTES;
	spot->lane_count++;
	m->next = NULL;
	if (spot->head == NULL)
		spot->head = m;
	else
		spot->tail->next = m;
	spot->tail = m;
	return true;
}

static inline void reply(struct frame *f, uint64_t value)
{
	struct wire_header *h = header_of(f);
	h->family = WIRE_REPLY;
	h->kind = RESULT_OK;
	h->accepted = ACCEPTED_YES;
	h->total_bytes = sizeof(value);
	h->segment_bytes = sizeof(value);
	memcpy(f->data + WIRE_HEADER_BYTES, &value, sizeof(value));
	f->bytes = WIRE_HEADER_BYTES + sizeof(value);
}

static inline void run(struct yardstick *y, struct spot *spot)
{
	struct message *m = spot->head;
	uint64_t ticks = __rdtsc();
	spot->head = m->next;
	y->turn_ticks += ticks - y->last_ticks;
	y->last_ticks = ticks;
	uint64_t value = spot->handler(&spot->state, m->frame->data + WIRE_HEADER_BYTES);
	spot->turns++;
	spot->lane_bytes -= CHARGE_BYTES;
	spot->lane_count--;
	reply(m->frame, value);
}

uint32_t yardstick_turn(struct yardstick *y, struct fabric_queue *queue)
{
	const struct fabric_ops *ops = fabric_base(queue)->ops;
	struct frame frames[FABRIC_BURST_MAX];
	struct message messages[FABRIC_BURST_MAX];
	uint32_t homes[FABRIC_BURST_MAX];
	uint32_t n = ops->rx(queue, frames, FABRIC_BURST_MAX), kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_header *h = header_of(&frames[i]);
		if (!is_request(h, frames[i].bytes))
			continue;
		homes[kept] = home_of(y, h->spot_key_lo);
		__builtin_prefetch(&y->slots[homes[kept]]);
		messages[kept++].frame = &frames[i];
	}
	for (uint32_t i = 0; i < kept; i++) {
		struct spot *spot = find(y, homes[i], header_of(messages[i].frame));
		messages[i].spot = spot;
		__builtin_prefetch(spot, 1);
		__builtin_prefetch(&spot->state, 1);
	}
	uint64_t now = y->last_ticks;
	for (uint32_t i = 0; i < kept; i++) {
		struct spot *spot = messages[i].spot;
		if (spot != NULL && spot->key.hi == header_of(messages[i].frame)->spot_key_hi &&
			admit(spot, &messages[i], now))
			run(y, spot);
	}
	ops->tx(queue, frames, n);
	return n;
}
