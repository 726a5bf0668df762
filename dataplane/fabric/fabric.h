// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fabric port: bursts of datagrams in and out. Implementations: dpdk/ (any ethdev), udp/
// (kernel socket), loop/ (in memory). One contract suite runs over all (tests/fabric/contract.c).
//
// A frame is one UDP payload; link, network and transport headers are the fabric's own business (it
// answers for checksums, fragments, VLAN tags and neighbours). One worker owns one queue; a queue
// is never shared. No operation blocks, logs or allocates in the steady state; what is lost is
// counted.

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum { FABRIC_BURST_MAX = 32 };

// Where a datagram came from or goes to: 32 bytes, kept in items as the way back.
struct peer {
	uint8_t ip[16];   // IPv6, or IPv4 mapped (::ffff:a.b.c.d)
	uint16_t port;    // host order
	uint16_t vlan;    // tag it came with; 0 = none
	uint8_t mac[6];   // link-layer source it came from; zero where the fabric has none
	uint8_t fabric;   // index in the node's list of fabrics
	uint8_t flags;    // fabric's own
	uint8_t reserved[4];
};
_Static_assert(sizeof(struct peer) == 32, "half a cache line");

struct frame {
	uint8_t *data;  // UDP payload, writable up to `room` bytes
	uint32_t bytes; // payload size
	uint32_t room;
	void *handle; // the fabric's
	struct peer peer; // received: the source. To send: the destination
	// Came from rx of this queue: sending it turns its headers in place, back to where it came
	// from. Whoever sends a received frame to somebody else sets `peer` and clears this.
	bool received;
};

// Why opening a fabric failed: what, where, what to do; one line for an operator.
struct fabric_why {
	char text[320];
};

struct fabric_queue; // opaque, per implementation; see fabric_queue_base

struct fabric_queue_stats { // written by the owner worker, read relaxed by anyone
	uint64_t rx_frames, rx_bytes;
	uint64_t tx_frames, tx_bytes;
	uint64_t rx_other;       // not UDP for us: handed to control's neighbour code or ignored
	uint64_t rx_malformed;   // bad lengths, checksums, IP fragments
	uint64_t rx_wrong_port;  // UDP for another address or port
	uint64_t rx_missed;      // lost before us, where the driver says so
	uint64_t rx_no_buffer;
	uint64_t tx_full;        // driver refused: frame dropped
	uint64_t tx_no_neighbour;
	uint64_t tx_too_large;
	// Of rx_malformed, what an operator can do something about:
	uint64_t rx_fragments;           // never reassembled: lower the sender's datagram size
	uint64_t rx_checksum_bad;
	// sender's kernel left it to hardware: ethtool -K IF tx off there
	uint64_t rx_checksum_unfinished;
	uint64_t control_refused;        // of rx_other: for control, but its mailbox was full
};

// The address of an IPv4 host as peer.ip; `ipv4` in network order.
static inline void peer_ip_from_v4(uint8_t out_ip[16], const uint8_t ipv4[4])
{
	memset(out_ip, 0, 10);
	out_ip[10] = out_ip[11] = 0xff;
	memcpy(out_ip + 12, ipv4, 4);
}

static inline bool peer_ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

// Owner worker only, unless stated.
struct fabric_ops {
	const char *name; // "dpdk", "udp", "loop"
	// Up to n (<= FABRIC_BURST_MAX) frames. The caller owns them until tx or release.
	uint32_t (*rx)(struct fabric_queue *q, struct frame *out, uint32_t n);
	// Takes ownership of all n. Unsent ones are dropped and counted.
	void (*tx)(struct fabric_queue *q, struct frame *frames, uint32_t n);
	// Fresh frames with room for payload_bytes_max each; returns how many.
	uint32_t (*alloc)(struct fabric_queue *q, struct frame *out, uint32_t n);
	void (*release)(struct fabric_queue *q, struct frame *frames, uint32_t n);
	// Bench: receive, swap MACs, send back, n at most; returns how many. NULL where it makes no
	// sense.
	uint32_t (*swap)(struct fabric_queue *q, uint32_t n);
	// A descriptor to poll(2) while asleep, or -1 (then the worker sleeps by time).
	int (*wait_fd)(const struct fabric_queue *q);
};

// First member of every implementation's queue.
struct fabric_queue_base {
	const struct fabric_ops *ops;
	uint32_t payload_bytes_max; // largest UDP payload of one frame on this link
	uint16_t worker;            // owner
	uint8_t fabric;             // index, goes into peer.fabric
	struct fabric_queue_stats stats;
};

static inline struct fabric_queue_base *fabric_base(struct fabric_queue *q)
{
	return (struct fabric_queue_base *)(void *)q;
}
