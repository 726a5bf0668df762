// SPDX-License-Identifier: BSD-3-Clause
#include "base/wheel.h"

#include <string.h>

static void node_push(struct wheel_node **head, struct wheel_node *node)
{
	node->next = *head;
	if (node->next)
		node->next->link = &node->next;
	node->link = head;
	*head = node;
}

static void node_unlink(struct wheel_node *node)
{
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
	node->link = NULL;
	node->next = NULL;
}

void wheel_init(struct wheel *wheel, uint64_t now_ns)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->tick = now_ns >> WHEEL_TICK_SHIFT;
}

static void slot_put(struct wheel *wheel, struct wheel_node *node)
{
	uint32_t slot = (uint32_t)(node->due_tick % WHEEL_SLOTS);
	node_push(&wheel->slots[slot], node);
	wheel->used[slot / 64] |= UINT64_C(1) << (slot % 64);
}

void wheel_set(struct wheel *wheel, struct wheel_node *node, uint64_t due_ns)
{
	wheel_cancel(node);
	// Rounded up, so that it does not fire early; a tick that was taken already comes next.
	uint64_t tick = (due_ns >> WHEEL_TICK_SHIFT) + 1;
	node->due_tick = tick > wheel->tick ? tick : wheel->tick + 1;
	slot_put(wheel, node);
}

void wheel_cancel(struct wheel_node *node)
{
	// The slot's bit stays: wheel_next_ns clears it when it finds the slot empty.
	if (node->link)
		node_unlink(node);
}

// Moves what is due at the tick to `expiring`, so that a slot is walked once per round.
static void tick_take(struct wheel *wheel, uint64_t tick)
{
	uint32_t slot = (uint32_t)(tick % WHEEL_SLOTS);
	struct wheel_node *node = wheel->slots[slot];
	while (node) {
		struct wheel_node *next = node->next;
		if (node->due_tick <= tick) {
			node_unlink(node);
			node_push(&wheel->expiring, node);
		}
		node = next;
	}
	wheel->tick = tick;
}

struct wheel_node *wheel_take(struct wheel *wheel, uint64_t now_ns)
{
	uint64_t now_tick = now_ns >> WHEEL_TICK_SHIFT;
	// After a long sleep one round finds everything.
	if (now_tick > wheel->tick + WHEEL_SLOTS)
		wheel->tick = now_tick - WHEEL_SLOTS;
	while (!wheel->expiring && wheel->tick < now_tick)
		tick_take(wheel, wheel->tick + 1);
	struct wheel_node *node = wheel->expiring;
	if (node)
		node_unlink(node);
	return node;
}

uint64_t wheel_next_ns(struct wheel *wheel)
{
	if (wheel->expiring)
		return 0;
	for (uint32_t i = 1; i <= WHEEL_SLOTS;) {
		uint64_t tick = wheel->tick + i;
		uint32_t slot = (uint32_t)(tick % WHEEL_SLOTS);
		uint64_t bits = wheel->used[slot / 64] >> (slot % 64);
		if (bits == 0) {
			i += 64 - slot % 64;
			continue;
		}
		uint32_t skip = (uint32_t)__builtin_ctzll(bits);
		i += skip;
		slot += skip;
		if (i > WHEEL_SLOTS)
			break;
		if (wheel->slots[slot])
			return (wheel->tick + i) << WHEEL_TICK_SHIFT;
		wheel->used[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	}
	return UINT64_MAX;
}
