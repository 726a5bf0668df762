// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fabric over a kernel UDP socket, IPv4 or IPv6: needs neither a NIC nor privileges. One socket
// a worker; the kernel spreads senders over them (SO_REUSEPORT) by their address and port.
//
// Bursts go through recvmmsg and sendmmsg, one system call each; that is this fabric's price.
// open/close: one thread, before the workers start and after they ended.

#include "fabric/fabric.h"

struct fabric_udp_config {
	const char *address; // numeric, "127.0.0.1" or "::1"
	uint16_t port;       // 0 = any free one: see fabric_udp_port
	uint8_t fabric;
	uint32_t payload_bytes_max;   // 0 = 1,472 (IPv4) or 1,452 (IPv6); at most 65,507
	uint32_t frames;              // buffers of each queue; 0 = 1,024
	uint32_t socket_buffer_bytes; // each way; 0 = 4 MiB; the kernel may give less
	// take sockets handed over by LISTEN_FDS that are bound to this address and port
	bool inherit;
};

// Opens n queues (queue i belongs to worker i) on one address. On failure nothing stays open and
// *out_why says what to do. An address that anybody else holds is refused, even where the kernel
// would let us share it.
MUST_USE bool fabric_udp_open(const struct fabric_udp_config *config,
	struct fabric_queue **out_queues, uint16_t n, struct fabric_why *out_why);
void fabric_udp_close(struct fabric_queue *q); // one queue; accepts NULL
uint16_t fabric_udp_port(const struct fabric_queue *q);
// What the kernel gave of socket_buffer_bytes, for display.
uint32_t fabric_udp_receive_buffer_bytes(const struct fabric_queue *q);
