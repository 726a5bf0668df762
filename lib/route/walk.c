// SPDX-License-Identifier: BSD-3-Clause
#include "route/route.h"
#include "route/table.h"

// A cursor names a place in the space of hashes, not in memory: the first hash prefix of a shard,
// the next slot in it, and the version of the shard. A shard that was rebuilt or split since has
// another version and is walked again from its first slot: twice rather than never.

enum {
	CURSOR_SLOT_SHIFT = 23,   // version below
	CURSOR_PREFIX_SHIFT = 40, // slot below: 17 bits, 0..ROUTE_SHARD_SLOTS_MAX
};
_Static_assert(ROUTE_VERSION_MAX == (1 << CURSOR_SLOT_SHIFT) - 1, "a version fills its bits");
_Static_assert(ROUTE_SHARD_SLOTS_MAX < 1 << (CURSOR_PREFIX_SHIFT - CURSOR_SLOT_SHIFT), "slot fits");
_Static_assert(ROUTE_DEPTH_MAX + CURSOR_PREFIX_SHIFT == 64, "prefix fits");

struct place {
	uint64_t prefix; // top ROUTE_DEPTH_MAX bits of the hash
	uint32_t slot;
	uint32_t version;
};

static struct place place_decode(uint64_t cursor)
{
	return (struct place){
		.prefix = cursor >> CURSOR_PREFIX_SHIFT,
		.slot = (uint32_t)(cursor >> CURSOR_SLOT_SHIFT) &
			((1U << (CURSOR_PREFIX_SHIFT - CURSOR_SLOT_SHIFT)) - 1),
		.version = (uint32_t)cursor & ROUTE_VERSION_MAX,
	};
}

static uint64_t place_encode(struct place place)
{
	return place.prefix << CURSOR_PREFIX_SHIFT | (uint64_t)place.slot << CURSOR_SLOT_SHIFT |
	       place.version;
}

static const struct route_shard *place_shard(const struct route_table *table, struct place *place)
{
	const struct route_directory *directory = route_table_directory(table);
	const struct route_shard *shard =
		directory->shards[place->prefix >> (ROUTE_DEPTH_MAX - directory->depth)];

	if (shard->version != place->version) {
		place->version = shard->version;
		place->slot = 0;
	}
	return shard;
}

// Moves past the next live slot of the shard; NULL at its end.
static const struct route_slot *next_live(const struct route_shard *shard, struct place *place)
{
	while (place->slot < route_shard_slot_count(shard)) {
		const struct route_slot *slot = &shard->slots[place->slot++];
		if (atomic_load_explicit(&slot->word, memory_order_relaxed) != ROUTE_NONE)
			return slot;
	}
	return NULL;
}

uint32_t route_walk(struct route_table *table, uint64_t *cursor, uint32_t max,
	void (*visit)(struct spot_key key, route_word word, void *arg), void *arg)
{
	struct place place = place_decode(*cursor);
	uint32_t visited = 0;

	while (visited < max) {
		// Looked up again each time: the visitor may have had the shard rebuilt.
		const struct route_shard *shard = place_shard(table, &place);
		const struct route_slot *slot = next_live(shard, &place);

		if (slot != NULL) {
			visit(route_slot_key(slot),
				atomic_load_explicit(&slot->word, memory_order_relaxed), arg);
			visited++;
			continue;
		}
		place.prefix += UINT64_C(1) << (ROUTE_DEPTH_MAX - shard->depth);
		if (place.prefix >> ROUTE_DEPTH_MAX != 0) {
			*cursor = 0;
			return visited;
		}
	}
	*cursor = place_encode(place);
	return visited;
}
