// SPDX-License-Identifier: BSD-3-Clause
#include "mill.h"

#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/mem.h"

enum {
	SLOT_BYTES = MILL_HEADROOM_BYTES + MILL_ROOM_BYTES,
	MAC_BYTES = 6,
	FRESH = MILL_FRAMES + FABRIC_BURST_MAX, // the worker keeps a few in its hand
	SLOTS = MILL_FRAMES + FRESH,
};

struct mill_answer {
	uint8_t *data;
	uint32_t bytes;
};

struct mill {
	struct fabric_queue_base base; // first
	uint8_t *memory;               // MILL_FRAMES received frames, then FRESH ones
	uint32_t count, next;
	uint16_t sizes[MILL_FRAMES];
	uint8_t *fresh[FRESH]; // those that nobody has
	uint32_t fresh_count;
	uint32_t answers;
	struct mill_answer answer[2 * MILL_FRAMES];
};

static struct mill *mill_of(struct fabric_queue *q)
{
	return (struct mill *)(void *)q;
}

static uint8_t *slot(struct mill *m, uint32_t i)
{
	return m->memory + (size_t)i * SLOT_BYTES + MILL_HEADROOM_BYTES;
}

static uint32_t mill_rx(struct fabric_queue *q, struct frame *out, uint32_t n)
{
	struct mill *m = mill_of(q);
	uint32_t left = m->count - m->next;
	if (n > left)
		n = left;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *data = slot(m, m->next + i);
		__builtin_prefetch(data);
		__builtin_prefetch(data + CACHE_LINE_BYTES);
		__builtin_prefetch(data + 2 * CACHE_LINE_BYTES);
		out[i].data = data;
		out[i].bytes = m->sizes[m->next + i];
		out[i].room = MILL_ROOM_BYTES;
		out[i].handle = NULL;
		out[i].peer = (struct peer){.port = 40000};
		out[i].received = true;
	}
	m->next += n;
	return n;
}

static void mill_tx(struct fabric_queue *q, struct frame *frames, uint32_t n)
{
	struct mill *m = mill_of(q);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(m->answers < 2 * MILL_FRAMES);
		m->answer[m->answers++] = (struct mill_answer){frames[i].data, frames[i].bytes};
	}
}

static uint32_t mill_alloc(struct fabric_queue *q, struct frame *out, uint32_t n)
{
	struct mill *m = mill_of(q);
	uint32_t got = n < m->fresh_count ? n : m->fresh_count;
	for (uint32_t i = 0; i < got; i++)
		out[i] =
			(struct frame){.data = m->fresh[--m->fresh_count], .room = MILL_ROOM_BYTES};
	return got;
}

// Received frames stay where they are; fresh ones can be handed out again.
static void put_back(struct mill *m, uint8_t *data)
{
	if (data < slot(m, MILL_FRAMES))
		return;
	CHECK(m->fresh_count < FRESH);
	m->fresh[m->fresh_count++] = data;
}

static void mill_release(struct fabric_queue *q, struct frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put_back(mill_of(q), frames[i].data);
}

// What testpmd's macswap does: one burst in, two addresses exchanged in each frame, one burst out.
static uint32_t mill_swap(struct fabric_queue *q, uint32_t n)
{
	struct mill *m = mill_of(q);
	struct frame frames[FABRIC_BURST_MAX];
	uint32_t got = mill_rx(q, frames, n);
	for (uint32_t i = 0; i < got; i++) {
		uint8_t *link = frames[i].data - MILL_HEADROOM_BYTES, mac[MAC_BYTES];
		memcpy(mac, link, MAC_BYTES);
		memcpy(link, link + MAC_BYTES, MAC_BYTES);
		memcpy(link + MAC_BYTES, mac, MAC_BYTES);
	}
	mill_tx(q, frames, got);
	(void)m;
	return got;
}

static int mill_wait_fd(const struct fabric_queue *q)
{
	(void)q;
	return -1;
}

static const struct fabric_ops mill_ops = {
	"mill", mill_rx, mill_tx, mill_alloc, mill_release, mill_swap, mill_wait_fd};

struct mill *mill_create(void)
{
	struct mill *m = mem_zalloc(sizeof(*m));
	if (m == NULL)
		return NULL;
	m->base.ops = &mill_ops;
	m->base.payload_bytes_max = MILL_ROOM_BYTES;
	m->memory = mem_zalloc_aligned(2u << 20, (size_t)SLOTS * SLOT_BYTES);
	if (m->memory == NULL) {
		mem_free(m);
		return NULL;
	}
	madvise(m->memory, (size_t)SLOTS * SLOT_BYTES, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < FRESH; i++)
		put_back(m, slot(m, SLOTS - 1 - i));
	return m;
}

void mill_destroy(struct mill *m)
{
	if (m == NULL)
		return;
	mem_free(m->memory);
	mem_free(m);
}

struct fabric_queue *mill_queue(struct mill *m)
{
	return (struct fabric_queue *)(void *)m;
}

uint8_t *mill_payload(struct mill *m, uint32_t i)
{
	return slot(m, i);
}

void mill_set_bytes(struct mill *m, uint32_t i, uint32_t bytes)
{
	CHECK(i < MILL_FRAMES && bytes <= MILL_ROOM_BYTES);
	m->sizes[i] = (uint16_t)bytes;
}

void mill_load(struct mill *m, uint32_t count)
{
	CHECK(count <= MILL_FRAMES);
	m->count = count;
	m->next = 0;
	for (uint32_t i = 0; i < m->answers; i++)
		put_back(m, m->answer[i].data);
	m->answers = 0;
}

uint32_t mill_left(const struct mill *m)
{
	return m->count - m->next;
}

uint32_t mill_answers(const struct mill *m)
{
	return m->answers;
}

const uint8_t *mill_answer(const struct mill *m, uint32_t i, uint32_t *out_bytes)
{
	*out_bytes = m->answer[i].bytes;
	return m->answer[i].data;
}
