// SPDX-License-Identifier: BSD-3-Clause
#include "lane/ring.h"

#include "base/check.h"
#include "base/mem.h"

_Static_assert(offsetof(struct ring, head) - offsetof(struct ring, tail) == CACHE_LINE_BYTES,
	"the two sides never share a line");
_Static_assert(
	offsetof(struct ring, mask) == 2 * CACHE_LINE_BYTES, "constants have their own line");

struct ring *ring_create(uint32_t capacity)
{
	struct ring *ring;

	CHECK(capacity > 0 && (capacity & (capacity - 1)) == 0 && capacity <= UINT32_C(1) << 31);
	ring = mem_zalloc_aligned(
		CACHE_LINE_BYTES, sizeof(*ring) + (size_t)capacity * sizeof(ring->slots[0]));
	if (ring != NULL)
		ring->mask = capacity - 1;
	return ring;
}

void ring_destroy(struct ring *ring)
{
	mem_free(ring);
}
