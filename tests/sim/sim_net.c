// SPDX-License-Identifier: BSD-3-Clause
// The network: every frame is in the air for a time of its own, and may be lost, repeated, delayed
// past others, or meet a partition, a full port or a node that is down.
#include <stdlib.h>

#include "base/check.h"
#include "sim.h"

enum { INBOX_MAX = 48, USUAL_US = 300, LATE_MS = 15 };

// ---- buffers: kept over all seeds of the process ----
static struct sim_buf *spare;

static struct sim_buf *buf_take(void)
{
	struct sim_buf *b = spare;
	if (b != NULL) {
		spare = b->next;
		return b;
	}
	b = malloc(sizeof(*b));
	CHECK(b != NULL);
	return b;
}

static void buf_drop(struct sim_buf *b)
{
	b->next = spare;
	spare = b;
}

// ---- who is where ----
// 10.0.0.(node + 1):9000 are nodes, 10.0.1.(client + 1):5000 clients.
static struct sim_node *node_at(struct sim *s, const struct peer *to)
{
	bool node = to->ip[14] == 0 && to->ip[15] >= 1 && to->ip[15] <= s->node_count;
	return node ? &s->nodes[to->ip[15] - 1] : NULL;
}

static bool is_cut(struct sim *s, const struct peer *from, const struct peer *to)
{
	struct sim_node *a = node_at(s, from), *b = node_at(s, to);
	if (a != NULL && a->cut[b != NULL ? b->index : SIM_NODES_MAX])
		return true;
	return b != NULL && b->cut[a != NULL ? a->index : SIM_NODES_MAX];
}

// ---- the air ----
static void launch(struct sim *s, const struct peer *from, const struct peer *to, const void *data,
	uint32_t bytes)
{
	if (s->air_count == SIM_AIR_MAX)
		return;
	uint64_t takes_ns = 1000 + rng_below(&s->fault_rng, USUAL_US * 1000);
	if (rng_below(&s->fault_rng, 1000) < s->late_permille) {
		sim_fault(SIM_FAULT_NET_LATE);
		takes_ns += rng_below(&s->fault_rng, LATE_MS * SIM_MS);
	}
	struct sim_buf *b = buf_take();
	b->from = *from;
	b->bytes = bytes;
	memcpy(b->data, data, bytes);
	s->air[s->air_count++] = (struct sim_air){s->now_ns + takes_ns, *to, b};
}

void sim_net_send(struct sim *s, const struct peer *from, const struct peer *to, const void *data,
	uint32_t bytes)
{
	CHECK(bytes <= SIM_FRAME_BYTES);
	if (rng_below(&s->fault_rng, 1000) < s->drop_permille) {
		sim_fault(SIM_FAULT_NET_LOSS);
		return;
	}
	launch(s, from, to, data, bytes);
	if (rng_below(&s->fault_rng, 1000) < s->repeat_permille) {
		sim_fault(SIM_FAULT_NET_REPEAT);
		launch(s, from, to, data, bytes);
	}
}

static void into_port(struct sim *s, struct sim_node *n, struct sim_buf *b)
{
	// A source address and port always reach the same worker, as receive-side scaling has it.
	struct sim_queue *q = &n->queues[(b->from.ip[15] + b->from.port) % SIM_WORKERS];
	if (q->waiting >= INBOX_MAX) {
		sim_fault(SIM_FAULT_NET_FULL);
		buf_drop(b);
		return;
	}
	(void)s;
	b->next = NULL;
	*q->end = b;
	q->end = &b->next;
	q->waiting++;
}

static void arrive(struct sim *s, struct sim_air *a)
{
	struct sim_node *n = node_at(s, &a->to);
	if (is_cut(s, &a->buf->from, &a->to)) {
		sim_fault(SIM_FAULT_NET_CUT);
		buf_drop(a->buf);
	} else if (n == NULL) {
		sim_client_receive(s, a->to.ip[15] - 1u, &a->buf->from,
			span_of(a->buf->data, a->buf->bytes));
		buf_drop(a->buf);
	} else if (n->state == SIM_DOWN) {
		sim_fault(SIM_FAULT_NET_DOWN);
		buf_drop(a->buf);
	} else {
		into_port(s, n, a->buf);
	}
}

void sim_net_turn(struct sim *s)
{
	for (uint32_t i = 0; i < s->air_count;) {
		struct sim_air a = s->air[i];
		if (a.due_ns > s->now_ns) {
			i++;
			continue;
		}
		s->air[i] = s->air[--s->air_count];
		arrive(s, &a);
	}
}

void sim_net_clear(struct sim *s)
{
	while (s->air_count > 0)
		buf_drop(s->air[--s->air_count].buf);
}

// ---- a worker's port ----
static struct sim_queue *queue_of(struct fabric_queue *q)
{
	return (struct sim_queue *)(void *)q;
}

static struct frame frame_of(struct sim_buf *b, bool received)
{
	return (struct frame){.data = b->data,
		.bytes = received ? b->bytes : 0,
		.room = SIM_FRAME_BYTES,
		.handle = b,
		.peer = b->from,
		.received = received};
}

static uint32_t port_rx(struct fabric_queue *fq, struct frame *out, uint32_t n)
{
	struct sim_queue *q = queue_of(fq);
	uint32_t taken = 0;
	while (taken < n && q->first != NULL) {
		struct sim_buf *b = q->first;
		q->first = b->next;
		if (q->first == NULL)
			q->end = &q->first;
		q->waiting--;
		out[taken++] = frame_of(b, true);
	}
	return taken;
}

static void port_tx(struct fabric_queue *fq, struct frame *frames, uint32_t n)
{
	struct sim_queue *q = queue_of(fq);
	struct peer from = q->sim->nodes[q->node].address;
	for (uint32_t i = 0; i < n; i++) {
		sim_net_send(q->sim, &from, &frames[i].peer, frames[i].data, frames[i].bytes);
		buf_drop(frames[i].handle);
	}
}

static uint32_t port_alloc(struct fabric_queue *fq, struct frame *out, uint32_t n)
{
	(void)fq;
	for (uint32_t i = 0; i < n; i++) {
		struct sim_buf *b = buf_take();
		memset(&b->from, 0, sizeof(b->from));
		out[i] = frame_of(b, false);
	}
	return n;
}

static void port_release(struct fabric_queue *fq, struct frame *frames, uint32_t n)
{
	(void)fq;
	for (uint32_t i = 0; i < n; i++)
		buf_drop(frames[i].handle);
}

static int port_wait_fd(const struct fabric_queue *fq)
{
	(void)fq;
	return -1;
}

static const struct fabric_ops port_ops = {.name = "sim",
	.rx = port_rx,
	.tx = port_tx,
	.alloc = port_alloc,
	.release = port_release,
	.wait_fd = port_wait_fd};

void sim_net_open(struct sim_node *n)
{
	uint8_t v4[4] = {10, 0, 0, (uint8_t)(n->index + 1)};
	memset(&n->address, 0, sizeof(n->address));
	peer_ip_from_v4(n->address.ip, v4);
	n->address.port = 9000;
	for (uint8_t w = 0; w < SIM_WORKERS; w++) {
		struct sim_queue *q = &n->queues[w];
		*q = (struct sim_queue){.base = {.ops = &port_ops,
						.payload_bytes_max = SIM_FRAME_BYTES,
						.worker = w},
			.sim = n->sim,
			.node = n->index,
			.worker = w};
		q->end = &q->first;
	}
}

void sim_net_close(struct sim_node *n)
{
	for (uint8_t w = 0; w < SIM_WORKERS; w++)
		for (struct sim_buf *b = n->queues[w].first, *next; b != NULL; b = next) {
			next = b->next;
			buf_drop(b);
		}
}
