// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "fabric/buffers.h"
#include "fabric/udp_inherit.h"

enum {
	PAYLOAD_BYTES_V4 = 1472,
	PAYLOAD_BYTES_V6 = 1452,
	PAYLOAD_BYTES_LIMIT = 65507,
	FRAMES_DEFAULT = 1024,
	SOCKET_BUFFER_DEFAULT = 4 << 20,
};

struct udp_queue {
	struct fabric_queue_base base; // first
	int fd;
	sa_family_t family;
	uint16_t port;
	uint32_t receive_buffer_bytes;
	uint32_t overflow_seen; // the kernel's counter of datagrams it dropped, at the last look
	struct fabric_buffers buffers;
	// The next burst's buffers, already taken: rx refills only what it handed out.
	uint8_t *ready[FABRIC_BURST_MAX];
	struct mmsghdr messages[FABRIC_BURST_MAX];
	struct iovec vectors[FABRIC_BURST_MAX];
	union udp_address names[FABRIC_BURST_MAX];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint32_t))];
	} control;
};

static struct udp_queue *udp_of(struct fabric_queue *q)
{
	return (struct udp_queue *)(void *)q;
}

static const struct udp_queue *udp_of_const(const struct fabric_queue *q)
{
	return (const struct udp_queue *)(const void *)q;
}

static socklen_t address_bytes(sa_family_t family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void peer_from_address(struct peer *out, const union udp_address *address, uint8_t fabric)
{
	*out = (struct peer){.fabric = fabric};
	if (address->any.sa_family == AF_INET) {
		peer_ip_from_v4(out->ip, (const uint8_t *)&address->v4.sin_addr);
		out->port = ntohs(address->v4.sin_port);
		return;
	}
	memcpy(out->ip, &address->v6.sin6_addr, sizeof(out->ip));
	out->port = ntohs(address->v6.sin6_port);
	// A link-local way back needs the interface; peer.reserved is the fabric's own.
	uint32_t scope = address->v6.sin6_scope_id;
	memcpy(out->reserved, &scope, sizeof(scope));
}

// False when the peer is of the other family than the socket.
static bool address_from_peer(union udp_address *out, const struct peer *peer, sa_family_t family)
{
	memset(out, 0, sizeof(*out));
	if (peer_ip_is_v4(peer->ip) != (family == AF_INET))
		return false;
	if (family == AF_INET) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(peer->port);
		memcpy(&out->v4.sin_addr, peer->ip + 12, 4);
		return true;
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(peer->port);
	memcpy(&out->v6.sin6_addr, peer->ip, sizeof(peer->ip));
	memcpy(&out->v6.sin6_scope_id, peer->reserved, sizeof(out->v6.sin6_scope_id));
	return true;
}

static uint32_t ready_fill(struct udp_queue *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (q->ready[i] == NULL)
			q->ready[i] = fabric_buffers_take(&q->buffers);
		if (q->ready[i] == NULL)
			return i;
		q->vectors[i] = (struct iovec){q->ready[i], q->buffers.buffer_bytes};
		q->messages[i].msg_hdr = (struct msghdr){.msg_name = &q->names[i],
			.msg_namelen = sizeof(q->names[i]),
			.msg_iov = &q->vectors[i],
			.msg_iovlen = 1};
	}
	return n;
}

// The kernel reports its drop counter beside a datagram; one look a burst is enough.
static void overflow_read(struct udp_queue *q)
{
	struct msghdr *header = &q->messages[0].msg_hdr;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
			continue;
		uint32_t now;
		memcpy(&now, CMSG_DATA(c), sizeof(now));
		q->base.stats.rx_missed += (uint32_t)(now - q->overflow_seen);
		q->overflow_seen = now;
	}
}

static uint32_t udp_rx(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct udp_queue *q = udp_of(queue);
	uint32_t want = ready_fill(q, n);
	if (want == 0) {
		q->base.stats.rx_no_buffer++;
		return 0;
	}
	q->messages[0].msg_hdr.msg_control = &q->control;
	q->messages[0].msg_hdr.msg_controllen = sizeof(q->control);
	int got = recvmmsg(q->fd, q->messages, want, MSG_DONTWAIT, NULL);
	if (got <= 0)
		return 0;
	overflow_read(q);
	uint32_t kept = 0;
	for (int i = 0; i < got; i++) {
		if (q->messages[i].msg_hdr.msg_flags & MSG_TRUNC) {
			q->base.stats.rx_malformed++;
			continue; // its buffer stays ready
		}
		struct frame *frame = &out[kept++];
		*frame = (struct frame){.data = q->ready[i],
			.bytes = q->messages[i].msg_len,
			.room = q->buffers.buffer_bytes,
			.handle = q->ready[i],
			.received = true};
		peer_from_address(&frame->peer, &q->names[i], q->base.fabric);
		q->base.stats.rx_bytes += frame->bytes;
		q->ready[i] = NULL;
	}
	q->base.stats.rx_frames += kept;
	return kept;
}

static void send_failure_count(struct udp_queue *q, int error)
{
	switch (error) {
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		q->base.stats.tx_full++;
		return;
	case EMSGSIZE:
		q->base.stats.tx_too_large++;
		return;
	default: // no route, no permission, a refused destination
		q->base.stats.tx_no_neighbour++;
	}
}

// Sends n prepared messages. A failure belongs to one datagram: count it and go on behind it.
static void send_all(struct udp_queue *q, uint32_t n)
{
	uint32_t at = 0;
	while (at < n) {
		int sent = sendmmsg(q->fd, &q->messages[at], n - at, MSG_DONTWAIT);
		if (sent <= 0) {
			if (sent < 0 && errno == EINTR)
				continue;
			send_failure_count(q, errno);
			at++;
			continue;
		}
		for (int i = 0; i < sent; i++)
			q->base.stats.tx_bytes += q->messages[at + (uint32_t)i].msg_len;
		q->base.stats.tx_frames += (uint32_t)sent;
		at += (uint32_t)sent;
	}
}

static void udp_tx(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	struct udp_queue *q = udp_of(queue);
	uint32_t ready = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct frame *frame = &frames[i];
		if (frame->bytes > q->base.payload_bytes_max) {
			q->base.stats.tx_too_large++;
			continue;
		}
		if (!address_from_peer(&q->names[ready], &frame->peer, q->family)) {
			q->base.stats.tx_no_neighbour++;
			continue;
		}
		q->vectors[ready] = (struct iovec){frame->data, frame->bytes};
		q->messages[ready].msg_hdr = (struct msghdr){.msg_name = &q->names[ready],
			.msg_namelen = address_bytes(q->family),
			.msg_iov = &q->vectors[ready],
			.msg_iovlen = 1};
		ready++;
	}
	send_all(q, ready);
	for (uint32_t i = 0; i < n; i++)
		fabric_buffers_give(&q->buffers, frames[i].handle);
}

static uint32_t udp_alloc(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct udp_queue *q = udp_of(queue);
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

static void udp_release(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fabric_buffers_give(&udp_of(queue)->buffers, frames[i].handle);
}

static int udp_wait_fd(const struct fabric_queue *queue)
{
	return udp_of_const(queue)->fd;
}

static const struct fabric_ops udp_ops = {
	.name = "udp",
	.rx = udp_rx,
	.tx = udp_tx,
	.alloc = udp_alloc,
	.release = udp_release,
	.swap = NULL,
	.wait_fd = udp_wait_fd,
};

static bool fail(struct fabric_why *out_why, const struct fabric_udp_config *config,
	uint16_t port, const char *what)
{
	snprintf(out_why->text, sizeof(out_why->text), "udp fabric on %s port %u: %s",
		config->address, port, what);
	return false;
}

static bool address_parse(const struct fabric_udp_config *config, union udp_address *out)
{
	memset(out, 0, sizeof(*out));
	if (config->address == NULL)
		return false;
	if (inet_pton(AF_INET, config->address, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(config->port);
		return true;
	}
	if (inet_pton(AF_INET6, config->address, &out->v6.sin6_addr) == 1) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons(config->port);
		return true;
	}
	return false;
}

static bool option_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

static const char *bind_failure(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "the port is in use by another socket; stop it or choose another port";
	case EADDRNOTAVAIL:
		return "this machine has no such address";
	case EACCES:
		return "no permission; ports below 1024 need CAP_NET_BIND_SERVICE";
	default:
		return strerror(error);
	}
}

static const char *socket_finish(struct udp_queue *q, union udp_address *address)
{
	socklen_t size = sizeof(*address);

	if (!option_set(q->fd, SOL_SOCKET, SO_RXQ_OVFL, 1))
		return strerror(errno);
	if (getsockname(q->fd, &address->any, &size) != 0)
		return strerror(errno);
	q->port = ntohs(q->family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
	return NULL;
}

// The first socket binds without SO_REUSEPORT: it must find the address free of everybody. Only
// then it starts to share, with the sockets that follow.
static const char *socket_open(
	struct udp_queue *q, union udp_address *address, bool first, bool shared)
{
	q->fd = socket(q->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->fd < 0)
		return strerror(errno);
	if (q->family == AF_INET6 && !option_set(q->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))
		return strerror(errno);
	if (!first && !option_set(q->fd, SOL_SOCKET, SO_REUSEPORT, 1))
		return strerror(errno);
	if (bind(q->fd, &address->any, address_bytes(q->family)) != 0)
		return bind_failure(errno);
	if (first && shared && !option_set(q->fd, SOL_SOCKET, SO_REUSEPORT, 1))
		return strerror(errno);
	return socket_finish(q, address);
}

// Handed over or ours, never a mix: a socket of ours might lie in another network namespace.
static const char *socket_get(struct udp_queue *q, union udp_address *address, uint16_t index,
	uint16_t n, bool inherit)
{
	if (!inherit || udp_inherited(address, 0) < 0)
		return socket_open(q, address, index == 0, n > 1);
	q->fd = udp_inherited(address, index);
	if (q->fd < 0)
		return "fewer sockets were handed over than there are workers";
	return socket_finish(q, address);
}

// The forced variants pass the system's limit where we have CAP_NET_ADMIN; else the limit holds.
static void socket_buffers_set(struct udp_queue *q, uint32_t bytes)
{
	int want = (int)(bytes != 0 ? bytes : SOCKET_BUFFER_DEFAULT);
	if (!option_set(q->fd, SOL_SOCKET, SO_RCVBUFFORCE, want))
		(void)option_set(q->fd, SOL_SOCKET, SO_RCVBUF, want);
	if (!option_set(q->fd, SOL_SOCKET, SO_SNDBUFFORCE, want))
		(void)option_set(q->fd, SOL_SOCKET, SO_SNDBUF, want);
	int got = 0;
	socklen_t size = sizeof(got);
	if (getsockopt(q->fd, SOL_SOCKET, SO_RCVBUF, &got, &size) == 0)
		q->receive_buffer_bytes = (uint32_t)got;
}

static struct udp_queue *queue_create(
	const struct fabric_udp_config *config, sa_family_t family, uint16_t worker)
{
	struct udp_queue *q = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->fd = -1;
	q->family = family;
	q->base.ops = &udp_ops;
	q->base.payload_bytes_max = config->payload_bytes_max;
	if (config->payload_bytes_max == 0)
		q->base.payload_bytes_max = family == AF_INET ? PAYLOAD_BYTES_V4 : PAYLOAD_BYTES_V6;
	q->base.worker = worker;
	q->base.fabric = config->fabric;
	uint32_t frames = config->frames != 0 ? config->frames : FRAMES_DEFAULT;
	if (!fabric_buffers_init(&q->buffers, frames, q->base.payload_bytes_max)) {
		mem_free(q);
		return NULL;
	}
	return q;
}

static const char *queues_open(const struct fabric_udp_config *config, union udp_address *address,
	struct fabric_queue **queues, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct udp_queue *q = queue_create(config, address->any.sa_family, i);
		if (q == NULL)
			return "out of memory for its buffers";
		queues[i] = (struct fabric_queue *)(void *)q;
		const char *what = socket_get(q, address, i, n, config->inherit);
		if (what != NULL)
			return what;
		socket_buffers_set(q, config->socket_buffer_bytes);
	}
	return NULL;
}

bool fabric_udp_open(const struct fabric_udp_config *config, struct fabric_queue **out_queues,
	uint16_t n, struct fabric_why *out_why)
{
	union udp_address address;
	CHECK(n > 0);
	memset(out_queues, 0, sizeof(*out_queues) * n);
	if (!address_parse(config, &address))
		return fail(out_why, config, config->port,
			"not a numeric IPv4 or IPv6 address, such as 127.0.0.1 or ::1");
	if (config->payload_bytes_max > PAYLOAD_BYTES_LIMIT)
		return fail(out_why, config, config->port,
			"a datagram carries at most 65,507 bytes; lower payload_bytes_max");
	const char *what = queues_open(config, &address, out_queues, n);
	if (what == NULL)
		return true;
	for (uint16_t i = 0; i < n; i++) {
		fabric_udp_close(out_queues[i]);
		out_queues[i] = NULL;
	}
	return fail(out_why, config, config->port, what);
}

void fabric_udp_close(struct fabric_queue *queue)
{
	if (queue == NULL)
		return;
	struct udp_queue *q = udp_of(queue);
	if (q->fd >= 0)
		close(q->fd);
	fabric_buffers_fini(&q->buffers);
	mem_free(q);
}

uint16_t fabric_udp_port(const struct fabric_queue *q)
{
	return udp_of_const(q)->port;
}

uint32_t fabric_udp_receive_buffer_bytes(const struct fabric_queue *q)
{
	return udp_of_const(q)->receive_buffer_bytes;
}
