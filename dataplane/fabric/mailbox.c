// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/mailbox.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

bool mailbox_init(struct mailbox *box, uint32_t slots, uint32_t slot_bytes)
{
	CHECK(slots > 0 && (slots & (slots - 1)) == 0);
	memset(box, 0, sizeof(*box));
	box->slots = slots;
	box->slot_bytes = slot_bytes;
	box->sizes = mem_zalloc(sizeof(*box->sizes) * slots);
	box->memory = mem_zalloc((size_t)slots * slot_bytes);
	if (box->sizes != NULL && box->memory != NULL)
		return true;
	mailbox_fini(box);
	return false;
}

void mailbox_fini(struct mailbox *box)
{
	mem_free(box->sizes);
	mem_free(box->memory);
	box->sizes = NULL;
	box->memory = NULL;
}

bool mailbox_put(struct mailbox *box, const void *data, uint32_t bytes)
{
	uint32_t head = atomic_load_explicit(&box->head, memory_order_relaxed);
	// Partner: the release in mailbox_drop; the slot's old bytes are read by then.
	uint32_t tail = atomic_load_explicit(&box->tail, memory_order_acquire);
	if (head - tail == box->slots || bytes > box->slot_bytes) {
		atomic_store_explicit(&box->refused,
			atomic_load_explicit(&box->refused, memory_order_relaxed) + 1,
			memory_order_relaxed);
		return false;
	}
	uint32_t slot = head & (box->slots - 1);
	memcpy(box->memory + (size_t)slot * box->slot_bytes, data, bytes);
	box->sizes[slot] = bytes;
	// Partner: the acquire in mailbox_peek.
	atomic_store_explicit(&box->head, head + 1, memory_order_release);
	return true;
}

const uint8_t *mailbox_peek(struct mailbox *box, uint32_t *out_bytes)
{
	if (mailbox_empty(box))
		return NULL;
	uint32_t slot = atomic_load_explicit(&box->tail, memory_order_relaxed) & (box->slots - 1);
	*out_bytes = box->sizes[slot];
	return box->memory + (size_t)slot * box->slot_bytes;
}

void mailbox_drop(struct mailbox *box)
{
	uint32_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
	atomic_store_explicit(&box->tail, tail + 1, memory_order_release);
}
