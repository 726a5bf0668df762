// SPDX-License-Identifier: BSD-3-Clause
#include "lane/lane.h"

_Static_assert(sizeof(struct lane_word) == 8, "a lane word is one atomic step");
_Static_assert(sizeof(struct lane_list) == 16, "an idle lane costs two pointers (L8)");
_Static_assert(LANE_BYTES_LIMIT + 1 == LANE_COUNT_ONE, "the count starts where the bytes end");
_Static_assert(LANE_COUNT_ONE * (LANE_COUNT_LIMIT + UINT64_C(1)) == LANE_SEALED_BIT,
	"the marks start where the count ends");

bool lane_bounds_valid(struct lane_bounds bounds)
{
	return bounds.bytes_max > 0 && bounds.bytes_max <= LANE_BYTES_LIMIT &&
	       bounds.count_max > 0 && bounds.count_max <= LANE_COUNT_LIMIT;
}

void lane_word_init(struct lane_word *word, bool opening)
{
	atomic_init(&word->value, opening ? LANE_OPENING_BIT : 0);
}

void lane_open(struct lane_word *word)
{
	// What the home worker queued before this is seen by everyone admitted after it.
	at_fetch_and(&word->value, ~LANE_OPENING_BIT, memory_order_release);
}

void lane_unseal(struct lane_word *word)
{
	uint64_t before = at_fetch_and(&word->value, ~LANE_SEALED_BIT, memory_order_release);

	CHECK((before & LANE_SEALED_BIT) != 0);
}

struct lane_level lane_level(const struct lane_word *word)
{
	uint64_t bits = at_load(&word->value, memory_order_relaxed);

	return (struct lane_level){
		.bytes = lane_bits_bytes(bits),
		.count = lane_bits_count(bits),
		.opening = (bits & LANE_OPENING_BIT) != 0,
		.sealed = (bits & LANE_SEALED_BIT) != 0,
	};
}

enum lane_choice lane_choose(bool lifecycle_ready, bool application_ready, uint8_t *run)
{
	// Yield debt: after a full run the next ready application item goes first and clears it.
	// While none is ready lifecycle goes on, and the debt stays due.
	if (application_ready && (!lifecycle_ready || *run >= LANE_LIFECYCLE_RUN_MAX)) {
		*run = 0;
		return LANE_APPLICATION;
	}
	if (!lifecycle_ready)
		return LANE_NONE;
	if (*run < LANE_LIFECYCLE_RUN_MAX)
		(*run)++;
	return LANE_LIFECYCLE;
}
