// SPDX-License-Identifier: BSD-3-Clause
#include "client/internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"

enum {
	IN_FLIGHT_DEFAULT = 65536,
	IN_FLIGHT_MAX = 4 * 1024 * 1024,
	FRAME_BYTES_DEFAULT = 1452,
	// The smallest frame that holds a full id and a segment of the smallest size.
	FRAME_BYTES_MIN = WIRE_HEADER_BYTES + ID_BYTES_MAX + WIRE_SEGMENT_BYTES_MIN + 1,
	FRAME_BYTES_MAX = 9000,
	SOCKET_BYTES_DEFAULT = 4 * 1024 * 1024,
	REPLY_BYTES_DEFAULT = 64 * 1024 * 1024,
	// What a full-sized datagram takes of a socket buffer in the kernel, with its bookkeeping.
	KERNEL_BYTES_PER_FRAME = 2560,
	HOST_BYTES_MAX = 256,
};

static uint64_t boot_clock_ns(struct clock *self)
{
	(void)self;
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct clock boot_clock = {.boot_ns = boot_clock_ns};

// ---- the address ----

struct host_port {
	char host[HOST_BYTES_MAX];
	char port[8];
};

// "HOST:PORT" or "[V6]:PORT".
static bool split_address(const char *node, struct host_port *out)
{
	const char *colon = strrchr(node, ':');
	if (!colon || colon == node || !colon[1])
		return false;
	size_t host = (size_t)(colon - node);
	if (node[0] == '[') {
		if (colon[-1] != ']' || host < 3)
			return false;
		node++;
		host -= 2;
	} else if (memchr(node, ':', host)) {
		return false; // a bare IPv6 address: where the port begins is anybody's guess
	}
	size_t port = strlen(colon + 1);
	if (host >= sizeof(out->host) || port >= sizeof(out->port) ||
		strspn(colon + 1, "0123456789") != port)
		return false;
	memcpy(out->host, node, host);
	out->host[host] = 0;
	memcpy(out->port, colon + 1, port + 1);
	return true;
}

static int resolve(const char *node, struct addrinfo **out, char *error, size_t error_size)
{
	struct host_port at;
	if (!split_address(node, &at)) {
		snprintf(error, error_size,
			"'%s' is not an address: write HOST:PORT, or [V6-ADDRESS]:PORT", node);
		return -EINVAL;
	}
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM,
		.ai_flags = AI_NUMERICSERV};
	int bad = getaddrinfo(at.host, at.port, &hints, out);
	if (bad == 0)
		return 0;
	snprintf(error, error_size, "host '%s' is not known: %s", at.host, gai_strerror(bad));
	return -EHOSTUNREACH;
}

// ---- ports ----

static void socket_size(int fd, uint32_t bytes)
{
	// With the privilege the machine's bound does not apply; without it the kernel gives what
	// it may.
	int want = (int)bytes;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
}

static uint16_t receive_window(int fd)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0 || bytes <= 0)
		return 16;
	// A quarter of the buffer, since several replies may come in at once.
	uint32_t frames = (uint32_t)bytes / KERNEL_BYTES_PER_FRAME / 4;
	return (uint16_t)(frames < 16 ? 16 : frames > SEG_WINDOW_MAX ? SEG_WINDOW_MAX : frames);
}

static int socket_open(const struct addrinfo *addresses, uint32_t bytes)
{
	int error = EADDRNOTAVAIL;
	for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
		int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			error = errno;
			continue;
		}
		socket_size(fd, bytes);
		if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		error = errno;
		close(fd);
	}
	return -error;
}

static uint64_t session_draw(void)
{
	uint64_t session = 0;
	while (session == 0)
		rng_secret(&session, sizeof(session));
	return session;
}

static int port_open(spotlane_client *client, struct client_port *port,
	const struct addrinfo *addresses, uint32_t socket_bytes)
{
	int fd = socket_open(addresses, socket_bytes);
	if (fd < 0)
		return fd;
	port->fd = fd;
	port->session = session_draw();
	port->out_bytes = mem_zalloc((size_t)CLIENT_BATCH_FRAMES * client->frame_bytes_max);
	if (!port->out_bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < CLIENT_BATCH_FRAMES; i++) {
		port->out_msgs[i].msg_hdr.msg_iov = &port->out_iov[i];
		port->out_msgs[i].msg_hdr.msg_iovlen = 1;
	}
	client->receive_window = receive_window(fd);
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = port->index};
	return epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void port_init(spotlane_client *client, uint32_t index)
{
	struct client_port *port = &client->ports[index];
	port->client = client;
	port->index = index;
	port->fd = -1;
	port->cookie_state = COOKIE_ABSENT;
	port->hello.kind = TIMER_HELLO;
	port->keepalive.kind = TIMER_KEEPALIVE;
	TAILQ_INIT(&port->queue);
	TAILQ_INIT(&port->acks);
	TAILQ_INIT(&port->leaving);
}

// ---- the client ----

static int options_read(spotlane_client *client, const struct spotlane_client_options *given,
	struct spotlane_client_options *out)
{
	struct spotlane_client_options o = {.size = sizeof(o)};
	if (given)
		o = *given;
	if (o.size != sizeof(o))
		return -EINVAL;
	o.ports = o.ports ? o.ports : 1;
	o.in_flight_max = o.in_flight_max ? o.in_flight_max : IN_FLIGHT_DEFAULT;
	o.frame_bytes_max = o.frame_bytes_max ? o.frame_bytes_max : FRAME_BYTES_DEFAULT;
	o.socket_bytes = o.socket_bytes ? o.socket_bytes : SOCKET_BYTES_DEFAULT;
	o.reply_bytes_max = o.reply_bytes_max ? o.reply_bytes_max : REPLY_BYTES_DEFAULT;
	if (o.ports > CLIENT_PORTS_MAX || o.in_flight_max > IN_FLIGHT_MAX ||
		o.frame_bytes_max < FRAME_BYTES_MIN || o.frame_bytes_max > FRAME_BYTES_MAX ||
		o.socket_bytes > INT32_MAX / 2 || o.repeat_after_ms > 60 * 1000)
		return -EINVAL;
	client->port_count = o.ports;
	client->op_max = o.in_flight_max;
	client->frame_bytes_max = o.frame_bytes_max;
	client->reply_bytes_max = o.reply_bytes_max;
	client->repeat_after_ms = o.repeat_after_ms;
	*out = o;
	return 0;
}

static int client_allocate(spotlane_client *client)
{
	client->ports = mem_zalloc(client->port_count * sizeof(*client->ports));
	client->ops = mem_zalloc(client->op_max * sizeof(struct client_op *));
	client->in_bytes = mem_zalloc((size_t)CLIENT_BATCH_FRAMES * CLIENT_FRAME_BYTES_MAX);
	if (!client->ports || !client->ops || !client->in_bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < client->port_count; i++)
		port_init(client, i);
	for (uint32_t i = 0; i < CLIENT_BATCH_FRAMES; i++) {
		client->in_iov[i] = (struct iovec){
			.iov_base = client->in_bytes + (size_t)i * CLIENT_FRAME_BYTES_MAX,
			.iov_len = CLIENT_FRAME_BYTES_MAX};
		client->in_msgs[i].msg_hdr.msg_iov = &client->in_iov[i];
		client->in_msgs[i].msg_hdr.msg_iovlen = 1;
	}
	client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return client->epoll_fd >= 0 ? 0 : -errno;
}

static int client_fill(spotlane_client *client, const char *node,
	const struct spotlane_client_options *options, char *error, size_t error_size)
{
	struct spotlane_client_options o;
	int bad = options_read(client, options, &o);
	if (bad) {
		snprintf(error, error_size, "an option of the client is out of range");
		return bad;
	}
	bad = client_allocate(client);
	if (bad) {
		snprintf(error, error_size, "cannot set the client up: %s", strerror(-bad));
		return bad;
	}
	struct addrinfo *addresses = NULL;
	bad = resolve(node, &addresses, error, error_size);
	if (bad)
		return bad;
	for (uint32_t i = 0; i < client->port_count && !bad; i++)
		bad = port_open(client, &client->ports[i], addresses, o.socket_bytes);
	freeaddrinfo(addresses);
	if (bad)
		snprintf(error, error_size, "cannot open a UDP socket towards %s: %s", node,
			strerror(-bad));
	return bad;
}

static void client_free(spotlane_client *client)
{
	for (uint32_t i = 0; client->ports && i < client->port_count; i++) {
		if (client->ports[i].fd >= 0)
			close(client->ports[i].fd);
		mem_free(client->ports[i].out_bytes);
	}
	for (uint32_t i = 0; client->ops && i < client->op_count; i++) {
		mem_free(client->ops[i]->bytes);
		mem_free(client->ops[i]);
	}
	if (client->epoll_fd >= 0)
		close(client->epoll_fd);
	mem_free(client->ports);
	mem_free(client->ops);
	mem_free(client->in_bytes);
	mem_free(client);
}

int client_open(const char *node, const struct spotlane_client_options *options,
	struct clock *clock, spotlane_client **out, char *error, size_t error_size)
{
	char unread[8];
	if (!error || error_size == 0) {
		error = unread;
		error_size = sizeof(unread);
	}
	spotlane_client *client = mem_zalloc(sizeof(*client));
	if (!client) {
		snprintf(error, error_size, "no memory for a client");
		return -ENOMEM;
	}
	client->clock = clock ? clock : &boot_clock;
	client->epoll_fd = -1;
	client->now_ns = clock_boot_ns(client->clock);
	wheel_init(&client->wheel, client->now_ns);
	int bad = client_fill(client, node, options, error, error_size);
	if (bad) {
		client_free(client);
		return bad;
	}
	*out = client;
	return 0;
}

int spotlane_client_open(const char *node, const struct spotlane_client_options *options,
	spotlane_client **out, char *error, size_t error_size)
{
	return client_open(node, options, NULL, out, error, error_size);
}

void spotlane_client_close(spotlane_client *client)
{
	if (!client)
		return;
	client->in_poll = true;
	client->closing = true;
	for (uint32_t i = 0; i < client->op_count; i++)
		if (client->ops[i]->state != OP_FREE)
			op_end_here(client, client->ops[i], SPOTLANE_END_CANCELLED,
				SPOTLANE_KIND_CANCELLED, REASON_NONE);
	client_free(client);
}

int spotlane_client_fd(const spotlane_client *client)
{
	return client->epoll_fd;
}

uint32_t spotlane_client_in_flight(const spotlane_client *client)
{
	return (uint32_t)client->stats.in_flight;
}

void spotlane_client_stats_read(const spotlane_client *client, struct spotlane_client_stats *out)
{
	*out = client->stats;
}
