// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A node as a script: a UDP socket on loopback that a test tells what to answer. It remembers the
// source of the latest frame. All failures are test failures.

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "client/internal.h"

struct peer {
	int fd;
	uint16_t port;
	struct sockaddr_storage from;
	socklen_t from_size;
	uint64_t session;
	uint64_t counter;
	uint64_t cookie; // what the latest challenge gave
	spotlane_client *client;
	uint8_t in[CLIENT_FRAME_BYTES_MAX];
	struct wire_frame frame; // the latest frame; borrows from `in`
};

// A clock that only the test moves.
struct stepped_clock {
	struct clock clock;
	uint64_t now_ns;
};

void peer_open(struct peer *peer);
void peer_close(struct peer *peer);
// A client towards the peer, on a stepped clock.
spotlane_client *peer_client(
	struct peer *peer, struct stepped_clock *clock, const struct spotlane_client_options *options);
// Lets the client send, then takes its next frame. False: it sends nothing more by itself.
bool peer_take(struct peer *peer);
// The next frame must be of this family.
void peer_expect(struct peer *peer, enum wire_family family);
void peer_expect_silence(struct peer *peer);
// Answers the latest frame (any frame) with a challenge.
void peer_challenge(struct peer *peer, uint64_t cookie);
// HELLO and CHALLENGE.
void peer_greet(struct peer *peer, uint64_t cookie);

void peer_send(struct peer *peer, const void *bytes, size_t size);
// A reply's header for the call of `call`.
struct wire_header peer_reply_header(struct peer *peer, const struct wire_header *call, struct result result);
void peer_reply(struct peer *peer, const struct wire_header *call, struct result result,
	uint16_t content_type, const void *body, size_t size);
void peer_send_frame(struct peer *peer, struct wire_header *h, const void *body, size_t size);
void peer_ack(struct peer *peer, const struct wire_header *call, const struct seg_ack *ack);
void step_ms(struct peer *peer, struct stepped_clock *clock, uint64_t ms);
