// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/loop.h"

#include "base/mem.h"
#include "fabric/buffers.h"

enum { PAYLOAD_BYTES_DEFAULT = 1472, FRAMES_DEFAULT = 1024 };

struct loop_entry {
	uint8_t *data;
	uint32_t bytes;
	uint32_t overtaken_by; // late entries only
	struct peer from;
};

struct loop_queue {
	struct fabric_queue_base base; // first
	struct fabric_loop *net;
	uint32_t index;
	uint8_t ip[16];
	uint16_t port;
	uint64_t wired; // bit per endpoint index
	struct fabric_buffers buffers;
	struct loop_entry *inbox; // circular; never fuller than the stock of buffers
	uint32_t inbox_first, inbox_count;
	struct loop_entry late[FABRIC_LOOP_LATE_MAX]; // oldest first
	uint32_t late_count;
};

struct fabric_loop {
	struct loop_queue *endpoints[FABRIC_LOOP_ENDPOINTS_MAX];
	uint32_t endpoint_count;
	fabric_loop_hook hook;
	void *hook_arg;
};

static struct loop_queue *loop_of(struct fabric_queue *q)
{
	return (struct loop_queue *)(void *)q;
}

static const struct loop_queue *loop_of_const(const struct fabric_queue *q)
{
	return (const struct loop_queue *)(const void *)q;
}

static struct fabric_queue *queue_of(struct loop_queue *q)
{
	return (struct fabric_queue *)(void *)q;
}

static void inbox_append(struct loop_queue *q, const struct loop_entry *entry)
{
	CHECK(q->inbox_count < q->buffers.count);
	q->inbox[(q->inbox_first + q->inbox_count) % q->buffers.count] = *entry;
	q->inbox_count++;
}

static void late_remove(struct loop_queue *q, uint32_t at)
{
	q->late_count--;
	memmove(&q->late[at], &q->late[at + 1], sizeof(q->late[0]) * (q->late_count - at));
}

// One frame was appended: late ones come one step nearer.
static void late_step(struct loop_queue *q)
{
	for (uint32_t i = 0; i < q->late_count;) {
		if (--q->late[i].overtaken_by > 0) {
			i++;
			continue;
		}
		inbox_append(q, &q->late[i]);
		late_remove(q, i);
	}
}

static bool entry_make(struct loop_queue *to, const struct peer *from, const void *data,
	uint32_t bytes, struct loop_entry *out)
{
	if (bytes > to->buffers.buffer_bytes) {
		to->base.stats.rx_malformed++;
		return false;
	}
	out->data = fabric_buffers_take(&to->buffers);
	if (out->data == NULL) {
		to->base.stats.rx_no_buffer++;
		return false;
	}
	memcpy(out->data, data, bytes);
	out->bytes = bytes;
	out->overtaken_by = 0;
	out->from = *from;
	out->from.fabric = to->base.fabric;
	return true;
}

static void put(struct loop_queue *to, const struct peer *from, const void *data, uint32_t bytes,
	uint32_t overtaken_by)
{
	struct loop_entry entry;
	if (!entry_make(to, from, data, bytes, &entry))
		return;
	if (overtaken_by > 0 && to->late_count < FABRIC_LOOP_LATE_MAX) {
		entry.overtaken_by = overtaken_by;
		to->late[to->late_count++] = entry;
		return;
	}
	inbox_append(to, &entry);
	late_step(to);
}

static struct fabric_loop_fault judge(
	struct loop_queue *from, struct loop_queue *to, const struct frame *frame)
{
	struct fabric_loop *net = from->net;
	if (net->hook == NULL)
		return (struct fabric_loop_fault){FABRIC_LOOP_DELIVER, 0};
	struct fabric_loop_pass pass = {queue_of(from), queue_of(to), frame->data, frame->bytes};
	return net->hook(net->hook_arg, &pass);
}

static void carry(struct loop_queue *from, struct loop_queue *to, const struct frame *frame)
{
	struct peer source = {.port = from->port};
	memcpy(source.ip, from->ip, sizeof(source.ip));
	struct fabric_loop_fault fault = judge(from, to, frame);
	switch (fault.verdict) {
	case FABRIC_LOOP_DROP:
		return;
	case FABRIC_LOOP_DUPLICATE:
		put(to, &source, frame->data, frame->bytes, 0);
		put(to, &source, frame->data, frame->bytes, 0);
		return;
	case FABRIC_LOOP_LATE:
		put(to, &source, frame->data, frame->bytes, fault.overtaken_by);
		return;
	case FABRIC_LOOP_DELIVER:
		put(to, &source, frame->data, frame->bytes, 0);
		return;
	}
	CHECK(!"a fabric_loop_verdict");
}

static bool hears(
	const struct loop_queue *from, const struct loop_queue *to, const struct peer *dst)
{
	return (from->wired & (UINT64_C(1) << to->index)) != 0 && to->port == dst->port &&
	       memcmp(to->ip, dst->ip, sizeof(to->ip)) == 0;
}

// The sender's port spreads over the workers that share the destination address.
static struct loop_queue *route(const struct loop_queue *from, const struct peer *dst)
{
	struct fabric_loop *net = from->net;
	struct loop_queue *found[FABRIC_LOOP_ENDPOINTS_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < net->endpoint_count; i++) {
		if (hears(from, net->endpoints[i], dst))
			found[count++] = net->endpoints[i];
	}
	return count == 0 ? NULL : found[from->port % count];
}

static uint32_t loop_rx(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct loop_queue *q = loop_of(queue);
	if (q->inbox_count == 0 && q->late_count > 0) {
		inbox_append(q, &q->late[0]);
		late_remove(q, 0);
	}
	uint32_t got = q->inbox_count < n ? q->inbox_count : n;
	for (uint32_t i = 0; i < got; i++) {
		struct loop_entry *entry = &q->inbox[q->inbox_first];
		out[i] = (struct frame){.data = entry->data,
			.bytes = entry->bytes,
			.room = q->buffers.buffer_bytes,
			.handle = entry->data,
			.peer = entry->from,
			.received = true};
		q->base.stats.rx_bytes += entry->bytes;
		q->inbox_first = (q->inbox_first + 1) % q->buffers.count;
	}
	q->inbox_count -= got;
	q->base.stats.rx_frames += got;
	return got;
}

static void loop_tx(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	struct loop_queue *q = loop_of(queue);
	for (uint32_t i = 0; i < n; i++) {
		struct frame *frame = &frames[i];
		struct loop_queue *to = NULL;
		if (frame->bytes > q->base.payload_bytes_max) {
			q->base.stats.tx_too_large++;
		} else if ((to = route(q, &frame->peer)) == NULL) {
			q->base.stats.tx_no_neighbour++;
		} else {
			q->base.stats.tx_frames++;
			q->base.stats.tx_bytes += frame->bytes;
			carry(q, to, frame);
		}
		fabric_buffers_give(&q->buffers, frame->handle);
	}
}

static uint32_t loop_alloc(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct loop_queue *q = loop_of(queue);
	uint32_t got = 0;
	for (; got < n; got++) {
		uint8_t *data = fabric_buffers_take(&q->buffers);
		if (data == NULL)
			break;
		out[got] = (struct frame){
			.data = data, .room = q->buffers.buffer_bytes, .handle = data};
	}
	return got;
}

static void loop_release(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fabric_buffers_give(&loop_of(queue)->buffers, frames[i].handle);
}

static int loop_wait_fd(const struct fabric_queue *queue)
{
	(void)queue;
	return -1;
}

static const struct fabric_ops loop_ops = {
	.name = "loop",
	.rx = loop_rx,
	.tx = loop_tx,
	.alloc = loop_alloc,
	.release = loop_release,
	.swap = NULL,
	.wait_fd = loop_wait_fd,
};

struct fabric_loop *fabric_loop_create(void)
{
	return mem_zalloc(sizeof(struct fabric_loop));
}

static void endpoint_free(struct loop_queue *q)
{
	if (q == NULL)
		return;
	fabric_buffers_fini(&q->buffers);
	mem_free(q->inbox);
	mem_free(q);
}

void fabric_loop_destroy(struct fabric_loop *net)
{
	if (net == NULL)
		return;
	for (uint32_t i = 0; i < net->endpoint_count; i++)
		endpoint_free(net->endpoints[i]);
	mem_free(net);
}

struct fabric_queue *fabric_loop_open(
	struct fabric_loop *net, const struct fabric_loop_endpoint *config)
{
	if (net->endpoint_count == FABRIC_LOOP_ENDPOINTS_MAX)
		return NULL;
	uint32_t frames = config->frames != 0 ? config->frames : FRAMES_DEFAULT;
	uint32_t payload_bytes_max = config->payload_bytes_max != 0 ? config->payload_bytes_max
								    : PAYLOAD_BYTES_DEFAULT;
	struct loop_queue *q = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->inbox = mem_zalloc(sizeof(q->inbox[0]) * frames);
	if (q->inbox == NULL || !fabric_buffers_init(&q->buffers, frames, payload_bytes_max)) {
		endpoint_free(q);
		return NULL;
	}
	q->base.ops = &loop_ops;
	q->base.payload_bytes_max = payload_bytes_max;
	q->base.worker = config->worker;
	q->base.fabric = config->fabric;
	q->net = net;
	q->port = config->port;
	memcpy(q->ip, config->ip, sizeof(q->ip));
	q->index = net->endpoint_count;
	net->endpoints[net->endpoint_count++] = q;
	return queue_of(q);
}

void fabric_loop_wire(struct fabric_queue *a, struct fabric_queue *b)
{
	loop_of(a)->wired |= UINT64_C(1) << loop_of(b)->index;
	loop_of(b)->wired |= UINT64_C(1) << loop_of(a)->index;
}

void fabric_loop_unwire(struct fabric_queue *a, struct fabric_queue *b)
{
	loop_of(a)->wired &= ~(UINT64_C(1) << loop_of(b)->index);
	loop_of(b)->wired &= ~(UINT64_C(1) << loop_of(a)->index);
}

void fabric_loop_hook_set(struct fabric_loop *net, fabric_loop_hook hook, void *arg)
{
	net->hook = hook;
	net->hook_arg = arg;
}

bool fabric_loop_inject(
	struct fabric_queue *to, const struct peer *from, const void *data, uint32_t bytes)
{
	struct loop_queue *q = loop_of(to);
	struct loop_entry entry;
	if (!entry_make(q, from, data, bytes, &entry))
		return false;
	inbox_append(q, &entry);
	late_step(q);
	return true;
}

uint32_t fabric_loop_waiting(const struct fabric_queue *q)
{
	return loop_of_const(q)->inbox_count + loop_of_const(q)->late_count;
}

uint32_t fabric_loop_free_buffers(const struct fabric_queue *q)
{
	return loop_of_const(q)->buffers.free_count;
}
