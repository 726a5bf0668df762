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
	PACKET_UNFINISHED = 8, // UDP checksum is the kernel's half-done one: offload left on at the sender
};

// Who we are on one port, laid out for comparing.
struct packet_site {
	uint8_t mac[6];
	uint16_t vlan; // 0 = untagged
	uint16_t udp_port;
	uint8_t fabric;
	uint8_t address_count;
	uint8_t ips[DP_NET_ADDRESSES_MAX][16]; // index = dp_net_identity's
};

struct packet {
	uint32_t header_bytes;  // link header to UDP header, whole
	uint32_t payload_bytes;
	struct peer peer; // flags = 1 + index of our address it was sent to
};

void packet_site_init(struct packet_site *site, const struct dp_net_identity *identity,
	uint16_t udp_port, uint8_t fabric);

// ---- reading ----

// 1 + index of our address, 0 = none.
static inline uint8_t packet_our_address(const struct packet_site *site, const uint8_t ip[16])
{
	for (uint8_t i = 0; i < site->address_count; i++) {
		if (memcmp(site->ips[i], ip, 16) == 0)
			return (uint8_t)(i + 1);
	}
	return 0;
}

// Solicited-node and all-nodes groups are control's; other groups are nobody's.
static inline bool packet_ipv6_group_is_ours(const uint8_t ip[16])
{
	return ip[0] == 0xff && ip[1] == 0x02;
}

// A source that cannot be answered: unspecified, loopback, group, broadcast.
static inline bool packet_source_is_absurd(const uint8_t ip[16])
{
	if (peer_ip_is_v4(ip))
		return ip[12] == 0 || ip[12] == 127 || ip[12] >= 224;
	static const uint8_t zeros[15];
	return ip[0] == 0xff || (memcmp(ip, zeros, 15) == 0 && ip[15] <= 1);
}

static inline enum packet_verdict packet_read_udp(const struct packet_site *site,
	const uint8_t *udp, uint32_t bytes, uint64_t pseudo_sum, bool may_lack_checksum,
	struct packet *out)
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
	out->peer.port = source_port;
	out->header_bytes += INET_UDP_BYTES;
	out->payload_bytes = bytes - INET_UDP_BYTES;
	return PACKET_OURS;
}

// ip: the packet, `bytes` of it at hand (the link may have padded it).
static inline enum packet_verdict packet_read_ipv4(
	const struct packet_site *site, const uint8_t *ip, uint32_t bytes, struct packet *out)
{
	if (bytes < INET_IPV4_BYTES || ip[0] >> 4 != 4)
		return PACKET_MALFORMED;
	uint32_t header_bytes = (uint32_t)(ip[0] & 0x0f) * 4;
	uint32_t total_bytes = inet_be16(ip + 2);
	if (header_bytes < INET_IPV4_BYTES || total_bytes < header_bytes || total_bytes > bytes)
		return PACKET_MALFORMED;
	if (!inet_sum_is_good(inet_sum(ip, header_bytes, 0)))
		return PACKET_CHECKSUM;
	uint8_t destination[16], protocol = ip[9];
	peer_ip_from_v4(out->peer.ip, ip + 12);
	peer_ip_from_v4(destination, ip + 16);
	out->peer.flags = packet_our_address(site, destination);
	if (out->peer.flags == 0)
		return PACKET_OTHER;
	if (packet_source_is_absurd(out->peer.ip) || memcmp(out->peer.ip, destination, 16) == 0)
		return PACKET_MALFORMED;
	if ((inet_be16(ip + 6) & 0x3fff) != 0) // more fragments, or an offset
		return PACKET_FRAGMENT;
	if (protocol == INET_PROTOCOL_ICMP)
		return PACKET_CONTROL;
	if (protocol != INET_PROTOCOL_UDP)
		return PACKET_OTHER;
	uint32_t udp_bytes = total_bytes - header_bytes;
	out->header_bytes += header_bytes;
	return packet_read_udp(site, ip + header_bytes, udp_bytes,
		inet_pseudo_sum(ip + 12, 4, INET_PROTOCOL_UDP, udp_bytes), true, out);
}

static inline enum packet_verdict packet_read_ipv6(
	const struct packet_site *site, const uint8_t *ip, uint32_t bytes, struct packet *out)
{
	if (bytes < INET_IPV6_BYTES || ip[0] >> 4 != 6)
		return PACKET_MALFORMED;
	uint32_t rest_bytes = inet_be16(ip + 4);
	if (rest_bytes > bytes - INET_IPV6_BYTES)
		return PACKET_MALFORMED;
	uint8_t next = ip[6];
	memcpy(out->peer.ip, ip + 8, 16);
	out->peer.flags = packet_our_address(site, ip + 24);
	if (out->peer.flags == 0) {
		bool group = packet_ipv6_group_is_ours(ip + 24);
		return group && next == INET_PROTOCOL_ICMPV6 ? PACKET_CONTROL : PACKET_OTHER;
	}
	if (next == INET_PROTOCOL_ICMPV6)
		return PACKET_CONTROL;
	// A mapped address inside IPv6 would be taken for an IPv4 host further on.
	if (packet_source_is_absurd(out->peer.ip) || peer_ip_is_v4(out->peer.ip) ||
		memcmp(out->peer.ip, ip + 24, 16) == 0)
		return PACKET_MALFORMED;
	if (next == INET_PROTOCOL_IPV6_FRAGMENT)
		return PACKET_FRAGMENT;
	if (next != INET_PROTOCOL_UDP)
		return PACKET_OTHER;
	out->header_bytes += INET_IPV6_BYTES;
	return packet_read_udp(site, ip + INET_IPV6_BYTES, rest_bytes,
		inet_pseudo_sum(ip + 8, 16, INET_PROTOCOL_UDP, rest_bytes), false, out);
}

static inline bool packet_mac_is_group(const uint8_t mac[6])
{
	return (mac[0] & 1) != 0;
}

// data: the frame from its destination address on. *out is whole only for PACKET_OURS.
static inline MUST_USE enum packet_verdict packet_read(
	const struct packet_site *site, const uint8_t *data, uint32_t bytes, struct packet *out)
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
	if (!to_group && memcmp(data, site->mac, 6) != 0)
		return PACKET_OTHER;
	memset(&out->peer, 0, sizeof(out->peer));
	memcpy(out->peer.mac, data + 6, 6);
	out->peer.vlan = vlan;
	out->peer.fabric = site->fabric;
	out->header_bytes = link_bytes;
	enum packet_verdict verdict;
	if (type == INET_TYPE_IPV4)
		verdict = packet_read_ipv4(site, data + link_bytes, bytes - link_bytes, out);
	else if (type == INET_TYPE_IPV6)
		verdict = packet_read_ipv6(site, data + link_bytes, bytes - link_bytes, out);
	else
		return type == INET_TYPE_ARP ? PACKET_CONTROL : PACKET_OTHER;
	// A datagram is for one host: our address behind a group address is somebody's mistake.
	return to_group && verdict == PACKET_OURS ? PACKET_OTHER : verdict;
}

// ---- writing ----

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

static inline void packet_write_ipv4(
	uint8_t *ip, const uint8_t source[4], const uint8_t destination[4], uint32_t total_bytes)
{
	static const uint8_t start[12] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, INET_PROTOCOL_UDP};
	memcpy(ip, start, sizeof(start));
	inet_put_be16(ip + 2, (uint16_t)total_bytes);
	memcpy(ip + 12, source, 4);
	memcpy(ip + 16, destination, 4);
	uint16_t checksum = inet_checksum(inet_sum(ip, INET_IPV4_BYTES, 0));
	memcpy(ip + 10, &checksum, 2);
}

static inline void packet_write_ipv6(
	uint8_t *ip, const uint8_t source[16], const uint8_t destination[16], uint32_t rest_bytes)
{
	static const uint8_t start[8] = {0x60, 0, 0, 0, 0, 0, INET_PROTOCOL_UDP, 64};
	memcpy(ip, start, sizeof(start));
	inet_put_be16(ip + 4, (uint16_t)rest_bytes);
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, destination, 16);
}

// The whole headers in front of `payload` (packet_header_bytes of room there), from our address
// `source` (an index) to peer behind `mac`. The payload must be final: its checksum is taken.
static inline void packet_write(const struct packet_site *site, uint8_t *payload,
	uint32_t payload_bytes, const struct peer *peer, uint32_t source, const uint8_t mac[6])
{
	bool v4 = peer_ip_is_v4(peer->ip);
	uint32_t udp_bytes = payload_bytes + INET_UDP_BYTES;
	uint8_t *udp = payload - INET_UDP_BYTES;
	const uint8_t *ours = site->ips[source];
	uint8_t *p = packet_write_link(site, payload - packet_header_bytes(site, v4), mac,
		v4 ? INET_TYPE_IPV4 : INET_TYPE_IPV6);
	uint64_t sum;
	if (v4) {
		packet_write_ipv4(p, ours + 12, peer->ip + 12, udp_bytes + INET_IPV4_BYTES);
		sum = inet_pseudo_sum(p + 12, 4, INET_PROTOCOL_UDP, udp_bytes);
	} else {
		packet_write_ipv6(p, ours, peer->ip, udp_bytes);
		sum = inet_pseudo_sum(p + 8, 16, INET_PROTOCOL_UDP, udp_bytes);
	}
	inet_put_be16(udp, site->udp_port);
	inet_put_be16(udp + 2, peer->port);
	inet_put_be16(udp + 4, (uint16_t)udp_bytes);
	memset(udp + 6, 0, 2);
	uint16_t checksum = inet_checksum(inet_sum(udp, udp_bytes, sum));
	if (checksum == 0)
		checksum = 0xffff; // 0 means none
	memcpy(udp + 6, &checksum, 2);
}
