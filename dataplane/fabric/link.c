// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"

struct link_worker {
	struct mailbox frames;
	struct mailbox wanted;
};

struct link {
	struct dp_net_identity identity;
	uint16_t workers;
	int wake_fd;
	uint16_t turn; // control: the worker whose mailbox it looks into first
	struct mailbox *holding; // control: the mailbox whose oldest frame is lent out
	CACHE_ALIGNED _Atomic bool rung; // workers set, control clears
	struct mailbox from_control;
	struct neighbours neighbours;
	struct link_worker per_worker[];
};

static bool mailboxes_init(struct link *link)
{
	if (!mailbox_init(&link->from_control, LINK_FRAMES, DP_NET_FRAME_BYTES_MAX))
		return false;
	for (uint16_t w = 0; w < link->workers; w++) {
		struct link_worker *worker = &link->per_worker[w];
		if (!mailbox_init(&worker->frames, LINK_FRAMES, DP_NET_FRAME_BYTES_MAX) ||
			!mailbox_init(&worker->wanted, LINK_WANTED, 16))
			return false;
	}
	return true;
}

struct link *link_create(const struct dp_net_identity *identity, uint16_t workers)
{
	CHECK(workers > 0 && workers <= LINK_WORKERS_MAX);
	size_t size = sizeof(struct link) + sizeof(struct link_worker) * workers;
	struct link *link = mem_zalloc_aligned(CACHE_LINE_BYTES, size);
	if (link == NULL)
		return NULL;
	uint64_t key;
	rng_secret(&key, sizeof(key));
	neighbours_init(&link->neighbours, key);
	link->identity = *identity;
	link->workers = workers;
	link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (link->wake_fd < 0 || !mailboxes_init(link)) {
		link_destroy(link);
		return NULL;
	}
	return link;
}

void link_destroy(struct link *link)
{
	if (link == NULL)
		return;
	for (uint16_t w = 0; w < link->workers; w++) {
		mailbox_fini(&link->per_worker[w].frames);
		mailbox_fini(&link->per_worker[w].wanted);
	}
	mailbox_fini(&link->from_control);
	if (link->wake_fd >= 0)
		close(link->wake_fd);
	mem_free(link);
}

const struct dp_net_identity *link_identity(const struct link *link)
{
	return &link->identity;
}

const struct neighbours *link_neighbours(const struct link *link)
{
	return &link->neighbours;
}

static void io_begin(void *self)
{
	struct link *link = self;
	uint64_t count;
	// Partner: the exchange in link_wake. Cleared before we look, so that what comes after our
	// look rings again.
	atomic_exchange_explicit(&link->rung, false, memory_order_acq_rel);
	// Nothing to read is normal: we may be here by time.
	(void)!read(link->wake_fd, &count, sizeof(count));
}

static bool io_receive(void *self, struct dp_net_frame *out)
{
	struct link *link = self;
	if (link->holding != NULL)
		mailbox_drop(link->holding);
	link->holding = NULL;
	for (uint16_t i = 0; i < link->workers; i++) {
		uint16_t w = (uint16_t)((link->turn + i) % link->workers);
		out->data = mailbox_peek(&link->per_worker[w].frames, &out->bytes);
		if (out->data == NULL)
			continue;
		link->holding = &link->per_worker[w].frames;
		link->turn = (uint16_t)(w + 1);
		return true;
	}
	return false;
}

static bool io_send(void *self, const uint8_t *data, uint32_t bytes)
{
	struct link *link = self;
	return mailbox_put(&link->from_control, data, bytes);
}

static bool io_wanted(void *self, uint8_t out_ip[16])
{
	struct link *link = self;
	for (uint16_t w = 0; w < link->workers; w++) {
		uint32_t bytes;
		const uint8_t *ip = mailbox_peek(&link->per_worker[w].wanted, &bytes);
		if (ip == NULL)
			continue;
		memcpy(out_ip, ip, 16);
		mailbox_drop(&link->per_worker[w].wanted);
		return true;
	}
	return false;
}

static void io_neighbour_set(void *self, const uint8_t ip[16], const uint8_t mac[6])
{
	neighbours_set(&((struct link *)self)->neighbours, ip, mac);
}

static void io_neighbour_clear(void *self, const uint8_t ip[16])
{
	neighbours_clear(&((struct link *)self)->neighbours, ip);
}

void link_io(struct link *link, struct dp_net_io *out_io)
{
	*out_io = (struct dp_net_io){.self = link,
		.wake_fd = link->wake_fd,
		.begin = io_begin,
		.receive = io_receive,
		.send = io_send,
		.wanted = io_wanted,
		.neighbour_set = io_neighbour_set,
		.neighbour_clear = io_neighbour_clear};
}

bool link_to_control(struct link *link, uint16_t worker, const uint8_t *data, uint32_t bytes)
{
	return mailbox_put(&link->per_worker[worker].frames, data, bytes);
}

void link_want(struct link *link, uint16_t worker, const uint8_t ip[16])
{
	// Full: the next frame to the same address asks again.
	(void)mailbox_put(&link->per_worker[worker].wanted, ip, 16);
}

void link_wake(struct link *link)
{
	static const uint64_t one = 1;
	if (atomic_exchange_explicit(&link->rung, true, memory_order_acq_rel))
		return;
	// Cannot fail short of 2^64 - 1 wakes unread.
	(void)!write(link->wake_fd, &one, sizeof(one));
}

struct mailbox *link_from_control(struct link *link)
{
	return &link->from_control;
}

uint64_t link_refused(const struct link *link)
{
	uint64_t sum = link->from_control.refused;
	for (uint16_t w = 0; w < link->workers; w++)
		sum += link->per_worker[w].frames.refused;
	return sum;
}
