// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ethernet, VLAN, IPv4, IPv6 and UDP headers, read and written in plain bytes: knows no driver.
// Inline because it runs once per frame between the driver's burst and the router's.
//
// Reading trusts nothing: every length is compared against what remains, each field is read once,
// checksums are computed here whatever a driver says about them.

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "dp/inet.h"
#include "dp/net.h"
#include "fabric/fabric.h"

enum {
	PACKET_HEADERS_BYTES_MAX =
		INET_ETHERNET_BYTES + INET_VLAN_BYTES + INET_IPV6_BYTES + INET_UDP_BYTES,
};

enum packet_verdict {
	PACKET_OURS = 1,       // a datagram for our address and port
	PACKET_CONTROL = 2,    // ARP, or ICMP to us: control's neighbour code
	PACKET_OTHER = 3,      // not for us, or a protocol we do not speak
	PACKET_WRONG_PORT = 4, // UDP to us, another port
	PACKET_MALFORMED = 5,  // lengths or addresses that cannot be
	PACKET_FRAGMENT = 6,
	PACKET_CHECKSUM = 7,   // IP or UDP checksum is wrong
	// UDP checksum is the kernel's half-done one: offload left on at the sender
	PACKET_UNFINISHED = 8,
};

// An IP address as peer.ip, in two native words: compared and copied whole.
struct packet_ip {
	uint64_t word[2];
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packet_ip_of_v4 shifts by it");

// Who we are on one port, laid out for comparing.
struct packet_site {
	struct packet_ip ips[DP_NET_ADDRESSES_MAX]; // index = dp_net_identity's
	uint8_t mac[6];
	uint16_t vlan; // 0 = untagged
	uint16_t udp_port;
	uint8_t fabric;
	uint8_t address_count;
};

struct packet {
	uint32_t header_bytes; // link header to UDP header, whole
	uint32_t payload_bytes;
};

void packet_site_init(struct packet_site *site, const struct dp_net_identity *identity,
	uint16_t udp_port, uint8_t fabric);

// Bytes written a moment ago are read back in the same sizes or not at all, here and below: a wider
// read of narrow writes stalls longer than all the arithmetic takes.

static inline struct packet_ip packet_ip_of_v4(uint32_t v4)
{
	return (struct packet_ip){{0, (uint64_t)v4 << 32 | 0xffff0000u}};
}

static inline struct packet_ip packet_ip_load(const uint8_t ip[16])
{
	struct packet_ip out;
	memcpy(out.word, ip, 16);
	return out;
}

static inline void packet_ip_store(uint8_t out[16], struct packet_ip ip)
{
	memcpy(out, &ip.word[0], 8);
	memcpy(out + 8, &ip.word[1], 8);
}

static inline bool packet_ip_equal(struct packet_ip a, struct packet_ip b)
{
	return ((a.word[0] ^ b.word[0]) | (a.word[1] ^ b.word[1])) == 0;
}

static inline bool packet_ip_is_v4(struct packet_ip ip)
{
	return ip.word[0] == 0 && (uint32_t)ip.word[1] == 0xffff0000u;
}

static inline uint32_t packet_ip_v4(struct packet_ip ip)
{
	return (uint32_t)(ip.word[1] >> 32);
}

// ---- reading ----

// 1 + index of our address, 0 = none.
static inline uint8_t packet_our_address(const struct packet_site *site, struct packet_ip ip)
{
	for (uint8_t i = 0; i < site->address_count; i++) {
		if (packet_ip_equal(site->ips[i], ip))
			return (uint8_t)(i + 1);
	}
	return 0;
}

// A source that cannot be answered: unspecified, loopback, group, broadcast.
static inline bool packet_v4_is_absurd(uint32_t source)
{
	uint8_t first = (uint8_t)source;
	return first == 0 || first == 127 || first >= 224;
}

// Also a mapped address, which would be taken for an IPv4 host further on.
static inline bool packet_v6_is_absurd(struct packet_ip source)
{
	bool group = (uint8_t)source.word[0] == 0xff;
	bool near_zero = source.word[0] == 0 && (source.word[1] << 8) == 0;
	return group || near_zero || packet_ip_is_v4(source);
}

static inline enum packet_verdict packet_read_udp(const struct packet_site *site,
	const uint8_t *udp, uint32_t bytes, uint64_t pseudo_sum, bool may_lack_checksum,
	struct packet *out, struct peer *out_peer)
{
	if (bytes < INET_UDP_BYTES)
		return PACKET_MALFORMED;
	uint16_t source_port = inet_be16(udp), port = inet_be16(udp + 2);
	uint16_t checksum;
	memcpy(&checksum, udp + 6, 2);
	if (inet_be16(udp + 4) != bytes)
		return PACKET_MALFORMED;
	if (port != site->udp_port)
		return PACKET_WRONG_PORT;
	if (source_port == 0)
		return PACKET_MALFORMED;
	if (checksum == 0 && !may_lack_checksum)
		return PACKET_CHECKSUM;
	if (checksum != 0 && !inet_sum_is_good(inet_sum(udp, bytes, pseudo_sum)))
		return checksum == inet_fold(pseudo_sum) ? PACKET_UNFINISHED : PACKET_CHECKSUM;
	out_peer->port = source_port;
	out->header_bytes += INET_UDP_BYTES;
	out->payload_bytes = bytes - INET_UDP_BYTES;
	return PACKET_OURS;
}

static inline bool packet_ipv4_header_is_good(const uint8_t *ip, uint32_t header_bytes)
{
	if (LIKELY(header_bytes == INET_IPV4_BYTES))
		return inet_sum_is_good(inet_sum(ip, INET_IPV4_BYTES, 0));
	return inet_sum_is_good(inet_sum(ip, header_bytes, 0));
}

// ip: the packet, `bytes` of it at hand (the link may have padded it).
static inline enum packet_verdict packet_read_ipv4(const struct packet_site *site,
	const uint8_t *ip, uint32_t bytes, struct packet *out, struct peer *out_peer)
{
	if (bytes < INET_IPV4_BYTES || ip[0] >> 4 != 4)
		return PACKET_MALFORMED;
	uint32_t header_bytes = (uint32_t)(ip[0] & 0x0f) * 4;
	uint32_t total_bytes = inet_be16(ip + 2);
	if (header_bytes < INET_IPV4_BYTES || total_bytes < header_bytes || total_bytes > bytes)
		return PACKET_MALFORMED;
	if (!packet_ipv4_header_is_good(ip, header_bytes))
		return PACKET_CHECKSUM;
	uint32_t source, destination;
	uint8_t protocol = ip[9];
	memcpy(&source, ip + 12, 4);
	memcpy(&destination, ip + 16, 4);
	uint8_t ours = packet_our_address(site, packet_ip_of_v4(destination));
	if (ours == 0)
		return PACKET_OTHER;
	if (packet_v4_is_absurd(source) || source == destination)
		return PACKET_MALFORMED;
	if ((inet_be16(ip + 6) & 0x3fff) != 0) // more fragments, or an offset
		return PACKET_FRAGMENT;
	if (protocol == INET_PROTOCOL_ICMP)
		return PACKET_CONTROL;
	if (protocol != INET_PROTOCOL_UDP)
		return PACKET_OTHER;
	packet_ip_store(out_peer->ip, packet_ip_of_v4(source));
	out_peer->flags = ours;
	uint32_t udp_bytes = total_bytes - header_bytes;
	out->header_bytes += header_bytes;
	return packet_read_udp(site, ip + header_bytes, udp_bytes,
		inet_pseudo_sum(ip + 12, 4, INET_PROTOCOL_UDP, udp_bytes), true, out, out_peer);
}

static inline enum packet_verdict packet_read_ipv6(const struct packet_site *site,
	const uint8_t *ip, uint32_t bytes, struct packet *out, struct peer *out_peer)
{
	if (bytes < INET_IPV6_BYTES || ip[0] >> 4 != 6)
		return PACKET_MALFORMED;
	uint32_t rest_bytes = inet_be16(ip + 4);
	if (rest_bytes > bytes - INET_IPV6_BYTES)
		return PACKET_MALFORMED;
	uint8_t next = ip[6];
	struct packet_ip source = packet_ip_load(ip + 8), destination = packet_ip_load(ip + 24);
	if (packet_ip_is_v4(destination)) // or it would pass for our IPv4 address
		return PACKET_MALFORMED;
	uint8_t ours = packet_our_address(site, destination);
	if (ours == 0) {
		// Solicited-node and all-nodes groups are control's; other groups are nobody's.
		bool link_group = ip[24] == 0xff && ip[25] == 0x02;
		return link_group && next == INET_PROTOCOL_ICMPV6 ? PACKET_CONTROL : PACKET_OTHER;
	}
	if (next == INET_PROTOCOL_ICMPV6)
		return PACKET_CONTROL;
	if (packet_v6_is_absurd(source) || packet_ip_equal(source, destination))
		return PACKET_MALFORMED;
	if (next == INET_PROTOCOL_IPV6_FRAGMENT)
		return PACKET_FRAGMENT;
	if (next != INET_PROTOCOL_UDP)
		return PACKET_OTHER;
	packet_ip_store(out_peer->ip, source);
	out_peer->flags = ours;
	out->header_bytes += INET_IPV6_BYTES;
	return packet_read_udp(site, ip + INET_IPV6_BYTES, rest_bytes,
		inet_pseudo_sum(ip + 8, 16, INET_PROTOCOL_UDP, rest_bytes), false, out, out_peer);
}

static inline bool packet_mac_is_group(const uint8_t mac[6])
{
	return (mac[0] & 1) != 0;
}

static inline bool packet_mac_equal(const uint8_t a[6], const uint8_t b[6])
{
	uint32_t a4, b4;
	uint16_t a2, b2;
	memcpy(&a4, a, 4);
	memcpy(&b4, b, 4);
	memcpy(&a2, a + 4, 2);
	memcpy(&b2, b + 4, 2);
	return ((a4 ^ b4) | (uint32_t)(a2 ^ b2)) == 0;
}

// data: the frame from its destination address on. *out and *out_peer are whole only for
// PACKET_OURS; peer.flags = 1 + index of our address it was sent to.
static inline MUST_USE enum packet_verdict packet_read(const struct packet_site *site,
	const uint8_t *data, uint32_t bytes, struct packet *out, struct peer *out_peer)
{
	if (bytes < INET_ETHERNET_BYTES)
		return PACKET_MALFORMED;
	uint16_t type = inet_be16(data + 12), vlan = 0;
	uint32_t link_bytes = INET_ETHERNET_BYTES;
	if (type == INET_TYPE_VLAN) {
		if (bytes < INET_ETHERNET_BYTES + INET_VLAN_BYTES)
			return PACKET_MALFORMED;
		vlan = inet_be16(data + 14) & 0x0fff; // tag 0 is priority only
		type = inet_be16(data + 16);
		link_bytes += INET_VLAN_BYTES;
	}
	if (vlan != site->vlan)
		return PACKET_OTHER;
	if (packet_mac_is_group(data + 6))
		return PACKET_MALFORMED;
	bool to_group = packet_mac_is_group(data);
	if (!to_group && !packet_mac_equal(data, site->mac))
		return PACKET_OTHER;
	memcpy(out_peer->mac, data + 6, 6);
	memset(out_peer->reserved, 0, sizeof(out_peer->reserved));
	out_peer->vlan = vlan;
	out_peer->fabric = site->fabric;
	out->header_bytes = link_bytes;
	enum packet_verdict verdict;
	if (LIKELY(type == INET_TYPE_IPV4))
		verdict = packet_read_ipv4(
			site, data + link_bytes, bytes - link_bytes, out, out_peer);
	else if (type == INET_TYPE_IPV6)
		verdict = packet_read_ipv6(
			site, data + link_bytes, bytes - link_bytes, out, out_peer);
	else
		return type == INET_TYPE_ARP ? PACKET_CONTROL : PACKET_OTHER;
	// A datagram is for one host: our address behind a group address is somebody's mistake.
	return to_group && verdict == PACKET_OURS ? PACKET_OTHER : verdict;
}

// ---- writing: sums are taken from the values, not from what was just stored ----

static inline uint32_t packet_header_bytes(const struct packet_site *site, bool v4)
{
	uint32_t link_bytes = INET_ETHERNET_BYTES + (site->vlan != 0 ? INET_VLAN_BYTES : 0);
	uint32_t ip_bytes = v4 ? INET_IPV4_BYTES : INET_IPV6_BYTES;
	return link_bytes + ip_bytes + INET_UDP_BYTES;
}

static inline uint8_t *packet_write_link(
	const struct packet_site *site, uint8_t *p, const uint8_t mac[6], uint16_t type)
{
	memcpy(p, mac, 6);
	memcpy(p + 6, site->mac, 6);
	p += 12;
	if (site->vlan != 0) {
		inet_put_be16(p, INET_TYPE_VLAN);
		inet_put_be16(p + 2, site->vlan);
		p += INET_VLAN_BYTES;
	}
	inet_put_be16(p, type);
	return p + 2;
}

// Returns the sum of both addresses.
static inline uint64_t packet_write_ipv4(
	uint8_t *ip, uint32_t source, uint32_t destination, uint32_t total_bytes)
{
	uint64_t addresses = (uint64_t)source + destination;
	const uint16_t first = htons(0x4500), total = htons((uint16_t)total_bytes);
	const uint16_t whole = htons(0x4000); // do not fragment
	const uint16_t hops = htons(64 << 8 | INET_PROTOCOL_UDP);
	uint16_t checksum = inet_checksum(addresses + first + total + whole + hops);
	const uint16_t words[6] = {first, total, 0, whole, hops, checksum};
	memcpy(ip, words, sizeof(words));
	memcpy(ip + 12, &source, 4);
	memcpy(ip + 16, &destination, 4);
	return addresses;
}

static inline uint64_t packet_word_sum(uint64_t word)
{
	return (word & 0xffffffff) + (word >> 32);
}

static inline uint64_t packet_write_ipv6(uint8_t *ip, struct packet_ip source,
	struct packet_ip destination, uint32_t rest_bytes)
{
	const uint16_t words[4] = {htons(0x6000), 0, htons((uint16_t)rest_bytes),
		htons(INET_PROTOCOL_UDP << 8 | 64)};
	memcpy(ip, words, sizeof(words));
	packet_ip_store(ip + 8, source);
	packet_ip_store(ip + 24, destination);
	return packet_word_sum(source.word[0]) + packet_word_sum(source.word[1]) +
	       packet_word_sum(destination.word[0]) + packet_word_sum(destination.word[1]);
}

// The whole headers in front of `payload` (packet_header_bytes of room there), from our address
// `source` (an index) to peer behind `mac`. The payload must be final: its checksum is taken.
static inline void packet_write(const struct packet_site *site, uint8_t *payload,
	uint32_t payload_bytes, const struct peer *peer, uint32_t source, const uint8_t mac[6])
{
	struct packet_ip to = packet_ip_load(peer->ip), ours = site->ips[source];
	bool v4 = packet_ip_is_v4(to);
	uint32_t udp_bytes = payload_bytes + INET_UDP_BYTES;
	uint8_t *p = packet_write_link(site, payload - packet_header_bytes(site, v4), mac,
		v4 ? INET_TYPE_IPV4 : INET_TYPE_IPV6);
	uint64_t sum = v4 ? packet_write_ipv4(p, packet_ip_v4(ours), packet_ip_v4(to),
				    udp_bytes + INET_IPV4_BYTES)
			  : packet_write_ipv6(p, ours, to, udp_bytes);
	const uint16_t from_port = htons(site->udp_port), to_port = htons(peer->port);
	const uint16_t length = htons((uint16_t)udp_bytes);
	sum += (uint64_t)htons(INET_PROTOCOL_UDP) + length + from_port + to_port + length;
	uint16_t checksum = inet_checksum(inet_sum(payload, payload_bytes, sum));
	if (checksum == 0)
		checksum = 0xffff; // 0 means none
	const uint16_t words[4] = {from_port, to_port, length, checksum};
	memcpy(payload - INET_UDP_BYTES, words, sizeof(words));
}
