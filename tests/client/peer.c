// SPDX-License-Identifier: BSD-3-Clause
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t stepped_ns(struct clock *self)
{
	return container_of(self, struct stepped_clock, clock)->now_ns;
}

void peer_open(struct peer *peer)
{
	memset(peer, 0, sizeof(*peer));
	peer->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(peer->fd >= 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(peer->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	socklen_t size = sizeof(at);
	assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&at, &size), 0);
	int bytes = 4 * 1024 * 1024;
	(void)setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	peer->port = ntohs(at.sin_port);
	peer->session = 0x5e55;
}

void peer_close(struct peer *peer)
{
	spotlane_client_close(peer->client);
	close(peer->fd);
}

spotlane_client *peer_client(
	struct peer *peer, struct stepped_clock *clock, const struct spotlane_client_options *options)
{
	char node[32], error[128] = "";
	snprintf(node, sizeof(node), "127.0.0.1:%u", peer->port);
	*clock = (struct stepped_clock){.clock.boot_ns = stepped_ns, .now_ns = 1000000000000u};
	int bad = client_open(node, options, &clock->clock, &peer->client, error, sizeof(error));
	assert_string_equal(error, "");
	assert_int_equal(bad, 0);
	return peer->client;
}

// Loopback delivers within the sending call, so what the client has sent is here already.
bool peer_take(struct peer *peer)
{
	(void)spotlane_client_poll(peer->client, 0);
	peer->from_size = sizeof(peer->from);
	ssize_t size = recvfrom(peer->fd, peer->in, sizeof(peer->in), MSG_DONTWAIT,
		(struct sockaddr *)&peer->from, &peer->from_size);
	if (size < 0) {
		assert_true(errno == EAGAIN || errno == EWOULDBLOCK);
		return false;
	}
	assert_int_equal(wire_decode(span_of(peer->in, (size_t)size), &peer->frame), WIRE_TAKEN);
	assert_int_equal(wire_check_id(&peer->frame), WIRE_TAKEN);
	return true;
}

void peer_expect(struct peer *peer, enum wire_family family)
{
	if (!peer_take(peer))
		fail_msg("no frame came; %s was expected", wire_family_name((uint8_t)family));
	assert_string_equal(
		wire_family_name(peer->frame.h.family), wire_family_name((uint8_t)family));
}

void peer_expect_silence(struct peer *peer)
{
	if (peer_take(peer))
		fail_msg("unexpected frame: %s", wire_family_name(peer->frame.h.family));
}

void peer_send(struct peer *peer, const void *bytes, size_t size)
{
	assert_int_equal(sendto(peer->fd, bytes, size, 0, (struct sockaddr *)&peer->from,
				 peer->from_size),
		(ssize_t)size);
}

void peer_send_frame(struct peer *peer, struct wire_header *h, const void *body, size_t size)
{
	uint8_t frame[CLIENT_FRAME_BYTES_MAX];
	size_t bytes = wire_encode(h, span_of(NULL, 0), span_of(body, size), frame, sizeof(frame));
	assert_true(bytes > 0);
	peer_send(peer, frame, bytes);
}

void peer_challenge(struct peer *peer, uint64_t cookie)
{
	peer->cookie = cookie;
	struct wire_header h = {
		.version = WIRE_VERSION,
		.family = WIRE_CHALLENGE,
		.session = peer->session,
		.counter = ++peer->counter,
		.cookie = cookie,
		.operation_scope = peer->frame.h.session,
		.operation_id = peer->frame.h.operation_id,
	};
	peer_send_frame(peer, &h, NULL, 0);
}

void peer_greet(struct peer *peer, uint64_t cookie)
{
	peer_expect(peer, WIRE_HELLO);
	assert_int_equal(peer->frame.h.cookie, 0);
	peer_challenge(peer, cookie);
}

struct wire_header peer_reply_header(struct peer *peer, const struct wire_header *call, struct result result)
{
	return (struct wire_header){
		.version = WIRE_VERSION,
		.family = WIRE_REPLY,
		.kind = result.kind,
		.reason = result.reason,
		.accepted = result.accepted,
		.session = peer->session,
		.counter = ++peer->counter,
		.spot_key_lo = call->spot_key_lo,
		.spot_key_hi = call->spot_key_hi,
		.operation_scope = call->operation_scope,
		.operation_id = call->operation_id,
		.ingress_worker = 3,
		.home_worker = 5,
	};
}

void peer_reply(struct peer *peer, const struct wire_header *call, struct result result,
	uint16_t content_type, const void *body, size_t size)
{
	struct wire_header h = peer_reply_header(peer, call, result);
	h.content_type = content_type;
	h.total_bytes = (uint32_t)size;
	peer_send_frame(peer, &h, body, size);
}

void peer_ack(struct peer *peer, const struct wire_header *call, const struct seg_ack *ack)
{
	uint8_t body[SEG_ACK_BYTES];
	seg_ack_encode(ack, body);
	struct wire_header h = {
		.version = WIRE_VERSION,
		.family = WIRE_ACK,
		.session = peer->session,
		.counter = ++peer->counter,
		.spot_key_lo = call->spot_key_lo,
		.spot_key_hi = call->spot_key_hi,
		.operation_scope = call->operation_scope,
		.operation_id = call->operation_id,
		.content_type = WIRE_CONTENT_ACK,
		.total_bytes = SEG_ACK_BYTES,
	};
	peer_send_frame(peer, &h, body, sizeof(body));
}

void step_ms(struct peer *peer, struct stepped_clock *clock, uint64_t ms)
{
	clock->now_ns += ms * 1000000;
	(void)spotlane_client_poll(peer->client, 0);
}
