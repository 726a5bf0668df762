// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What control and a port of the data plane share about the network the port is on: our addresses,
// raw frames that are not datagrams for us (ARP, neighbour discovery, echo), and the neighbour table.
//
// Workers put such frames into bounded mailboxes; control answers through a mailbox that worker 0
// empties, and publishes neighbours that workers read. Nothing here blocks; what does not fit is
// dropped and counted by the side that drops.

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum {
	DP_NET_ADDRESSES_MAX = 8,
	DP_NET_FRAME_BYTES_MAX = 2048, // a raw frame; larger ones are not for control
	DP_NET_MTU_MIN = 576,
	DP_NET_MTU_MAX = 9000,
};

// An address of ours with its on-link prefix. IPv4 is mapped (::ffff:a.b.c.d), its prefix counts from
// the first of the 128 bits: 10.0.0.1/24 has prefix_bits 96 + 24.
struct dp_net_address {
	uint8_t ip[16];
	uint8_t prefix_bits;
};

// Fixed for a port's life.
struct dp_net_identity {
	uint8_t mac[6];
	uint16_t vlan; // 1..4094; 0 = untagged
	uint16_t mtu;  // largest IP packet
	uint8_t address_count;
	struct dp_net_address addresses[DP_NET_ADDRESSES_MAX];
	uint8_t gateway_v4[16]; // mapped; all zero = none
	uint8_t gateway_v6[16]; // all zero = none
};

struct dp_net_frame {
	const uint8_t *data; // from the Ethernet destination on; borrowed until the next receive
	uint32_t bytes;
};

// Control's thread only.
struct dp_net_io {
	void *self;
	// Becomes readable when a worker left something; poll it or not. -1 = none.
	int wake_fd;
	// Called before a round of receive: from here on a worker wakes us again.
	void (*begin)(void *self);
	bool (*receive)(void *self, struct dp_net_frame *out);
	// False: no room now, the frame is dropped and counted. Copies.
	bool (*send)(void *self, const uint8_t *data, uint32_t bytes);
	// An address (already the next hop) that a worker wanted to send to and could not.
	bool (*wanted)(void *self, uint8_t out_ip[16]);
	void (*neighbour_set)(void *self, const uint8_t ip[16], const uint8_t mac[6]);
	void (*neighbour_clear)(void *self, const uint8_t ip[16]);
};

static inline bool dp_net_ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

static inline bool dp_net_ip_is_zero(const uint8_t ip[16])
{
	static const uint8_t zero[16];
	return memcmp(ip, zero, sizeof(zero)) == 0;
}

static inline bool dp_net_ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

static inline bool dp_net_prefix_holds(const struct dp_net_address *address, const uint8_t ip[16])
{
	uint32_t whole = address->prefix_bits / 8, rest = address->prefix_bits % 8;
	if (memcmp(address->ip, ip, whole) != 0)
		return false;
	return rest == 0 || ((address->ip[whole] ^ ip[whole]) >> (8 - rest)) == 0;
}

// Where a frame to `ip` goes first: itself when it is on link, else its family's gateway. False when
// there is no way. Any thread.
static inline bool dp_net_next_hop(
	const struct dp_net_identity *identity, const uint8_t ip[16], uint8_t out_hop[16])
{
	bool v4 = dp_net_ip_is_v4(ip), on_link = dp_net_ip_is_link_local(ip);
	for (uint32_t i = 0; i < identity->address_count && !on_link; i++) {
		const struct dp_net_address *a = &identity->addresses[i];
		on_link = dp_net_ip_is_v4(a->ip) == v4 && dp_net_prefix_holds(a, ip);
	}
	const uint8_t *hop = on_link ? ip : v4 ? identity->gateway_v4 : identity->gateway_v6;
	if (dp_net_ip_is_zero(hop))
		return false;
	memcpy(out_hop, hop, 16);
	return true;
}

// The address of ours to speak from to `ip`: one of the same family, preferring the same prefix, and
// of the same scope for IPv6. -1 = none. Any thread.
static inline int dp_net_source_for(const struct dp_net_identity *identity, const uint8_t ip[16])
{
	bool v4 = dp_net_ip_is_v4(ip), local = dp_net_ip_is_link_local(ip);
	int found = -1;
	for (int i = 0; i < identity->address_count; i++) {
		const struct dp_net_address *a = &identity->addresses[i];
		if (dp_net_ip_is_v4(a->ip) != v4 || dp_net_ip_is_link_local(a->ip) != local)
			continue;
		if (dp_net_prefix_holds(a, ip))
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

// fe80::/64 with the interface part made of the MAC address.
static inline void dp_net_link_local_of(const uint8_t mac[6], struct dp_net_address *out)
{
	const uint8_t ip[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe,
		mac[3], mac[4], mac[5]};
	memcpy(out->ip, ip, sizeof(out->ip));
	out->prefix_bits = 64;
}
