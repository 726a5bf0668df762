// SPDX-License-Identifier: BSD-3-Clause
#include "net/frames.h"

#include <string.h>

#include "base/check.h"
#include "dp/inet.h"

enum {
	ARP_BYTES = 28,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	ICMP_ECHO_REPLY = 0,
	ICMP_ECHO = 8,
	ICMP_HEADER_BYTES = 8,
	ICMPV6_ECHO = 128,
	ICMPV6_ECHO_REPLY = 129,
	ICMPV6_SOLICITATION = 135,
	ICMPV6_ADVERTISEMENT = 136,
	ND_BYTES = 24,
	ND_OPTION_SOURCE = 1,
	ND_OPTION_TARGET = 2,
	ND_OPTIONS_MAX = 16,
	ND_HOP_LIMIT = 255, // anything less came through a router
};

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};

// ---- reading ----

static void ip_from_v4(uint8_t out[16], const uint8_t v4[4])
{
	memset(out, 0, 10);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, v4, 4);
}

static bool ip_is_ours(const struct dp_net_identity *identity, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < identity->address_count; i++) {
		if (memcmp(identity->addresses[i].ip, ip, 16) == 0)
			return true;
	}
	return false;
}

static bool mac_is_unicast(const uint8_t mac[6])
{
	static const uint8_t none[6];
	return (mac[0] & 1) == 0 && memcmp(mac, none, 6) != 0;
}

static bool ip_is_unicast(const uint8_t ip[16])
{
	if (dp_net_ip_is_v4(ip))
		return ip[12] != 0 && ip[12] != 127 && ip[12] < 224;
	return ip[0] != 0xff && !dp_net_ip_is_zero(ip);
}

static enum net_frame_kind arp_read(const uint8_t *p, uint32_t bytes, struct net_frame *out)
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};
	if (bytes < ARP_BYTES)
		return NET_FRAME_MALFORMED;
	if (memcmp(p, ethernet_ipv4, sizeof(ethernet_ipv4)) != 0)
		return NET_FRAME_FOREIGN;
	uint16_t operation = inet_be16(p + 6);
	if (operation != ARP_REQUEST && operation != ARP_REPLY)
		return NET_FRAME_FOREIGN;
	out->as.arp.request = operation == ARP_REQUEST;
	memcpy(out->as.arp.sender_mac, p + 8, 6);
	ip_from_v4(out->as.arp.sender_ip, p + 14);
	ip_from_v4(out->as.arp.target_ip, p + 24);
	return mac_is_unicast(out->as.arp.sender_mac) ? NET_FRAME_ARP : NET_FRAME_MALFORMED;
}

static enum net_frame_kind ipv4_read(const struct dp_net_identity *identity, const uint8_t *ip,
	uint32_t bytes, struct net_frame *out)
{
	if (bytes < INET_IPV4_BYTES || ip[0] >> 4 != 4)
		return NET_FRAME_MALFORMED;
	uint32_t total = inet_be16(ip + 2);
	if (ip[0] != 0x45 || ip[9] != INET_PROTOCOL_ICMP || (inet_be16(ip + 6) & 0x3fff) != 0)
		return NET_FRAME_FOREIGN; // options and fragments are not worth an answer
	if (total > bytes || total < INET_IPV4_BYTES + ICMP_HEADER_BYTES ||
		!inet_sum_is_good(inet_sum(ip, INET_IPV4_BYTES, 0)))
		return NET_FRAME_MALFORMED;
	ip_from_v4(out->as.echo.source_ip, ip + 12);
	ip_from_v4(out->as.echo.our_ip, ip + 16);
	out->as.echo.icmp = ip + INET_IPV4_BYTES;
	out->as.echo.icmp_bytes = total - INET_IPV4_BYTES;
	if (!ip_is_ours(identity, out->as.echo.our_ip))
		return NET_FRAME_FOREIGN;
	if (!ip_is_unicast(out->as.echo.source_ip) ||
		!inet_sum_is_good(inet_sum(out->as.echo.icmp, out->as.echo.icmp_bytes, 0)))
		return NET_FRAME_MALFORMED;
	return out->as.echo.icmp[0] == ICMP_ECHO && out->as.echo.icmp[1] == 0 ? NET_FRAME_ECHO
									       : NET_FRAME_FOREIGN;
}

// Walks the options for the one with a link-layer address. False: malformed.
static bool nd_options_read(
	const uint8_t *p, uint32_t bytes, uint8_t wanted, struct net_frame *out)
{
	for (uint32_t i = 0; bytes > 0; i++) {
		if (bytes < 8 || i == ND_OPTIONS_MAX)
			return false;
		uint32_t size = (uint32_t)p[1] * 8;
		if (size == 0 || size > bytes)
			return false;
		if (p[0] == wanted && size == 8) {
			memcpy(out->as.nd.mac, p + 2, 6);
			out->as.nd.has_mac = true;
			if (!mac_is_unicast(out->as.nd.mac))
				return false;
		}
		p += size;
		bytes -= size;
	}
	return true;
}

static enum net_frame_kind nd_read(const struct dp_net_identity *identity, const uint8_t *ip,
	const uint8_t *icmp, uint32_t bytes, struct net_frame *out)
{
	bool solicitation = icmp[0] == ICMPV6_SOLICITATION;
	bool to_group = ip[24] == 0xff;
	if (bytes < ND_BYTES || ip[7] != ND_HOP_LIMIT || icmp[1] != 0)
		return NET_FRAME_MALFORMED;
	memcpy(out->as.nd.source_ip, ip + 8, 16);
	memcpy(out->as.nd.target_ip, icmp + 8, 16);
	out->as.nd.has_mac = false;
	out->as.nd.solicited = (icmp[4] & 0x40) != 0;
	out->as.nd.override = (icmp[4] & 0x20) != 0;
	if (!ip_is_unicast(out->as.nd.target_ip) || dp_net_ip_is_v4(out->as.nd.target_ip) ||
		!nd_options_read(icmp + ND_BYTES, bytes - ND_BYTES,
			solicitation ? ND_OPTION_SOURCE : ND_OPTION_TARGET, out))
		return NET_FRAME_MALFORMED;
	bool from_nobody = dp_net_ip_is_zero(out->as.nd.source_ip);
	if (!from_nobody && !ip_is_unicast(out->as.nd.source_ip))
		return NET_FRAME_MALFORMED;
	if (!solicitation)
		return from_nobody || (to_group && out->as.nd.solicited) ? NET_FRAME_MALFORMED
									 : NET_FRAME_ADVERTISEMENT;
	if (from_nobody && (out->as.nd.has_mac || !to_group))
		return NET_FRAME_MALFORMED;
	return ip_is_ours(identity, out->as.nd.target_ip) ? NET_FRAME_SOLICITATION
							  : NET_FRAME_FOREIGN;
}

static enum net_frame_kind ipv6_read(const struct dp_net_identity *identity, const uint8_t *ip,
	uint32_t bytes, struct net_frame *out)
{
	if (bytes < INET_IPV6_BYTES || ip[0] >> 4 != 6)
		return NET_FRAME_MALFORMED;
	uint32_t icmp_bytes = inet_be16(ip + 4);
	const uint8_t *icmp = ip + INET_IPV6_BYTES;
	if (ip[6] != INET_PROTOCOL_ICMPV6)
		return NET_FRAME_FOREIGN;
	if (dp_net_ip_is_v4(ip + 8) || dp_net_ip_is_v4(ip + 24)) // mapped: no host speaks IPv6 so
		return NET_FRAME_MALFORMED;
	if (icmp_bytes > bytes - INET_IPV6_BYTES || icmp_bytes < ICMP_HEADER_BYTES)
		return NET_FRAME_MALFORMED;
	uint64_t sum = inet_pseudo_sum(ip + 8, 16, INET_PROTOCOL_ICMPV6, icmp_bytes);
	if (!inet_sum_is_good(inet_sum(icmp, icmp_bytes, sum)))
		return NET_FRAME_MALFORMED;
	if (icmp[0] == ICMPV6_SOLICITATION || icmp[0] == ICMPV6_ADVERTISEMENT)
		return nd_read(identity, ip, icmp, icmp_bytes, out);
	memcpy(out->as.echo.source_ip, ip + 8, 16);
	memcpy(out->as.echo.our_ip, ip + 24, 16);
	out->as.echo.icmp = icmp;
	out->as.echo.icmp_bytes = icmp_bytes;
	if (icmp[0] != ICMPV6_ECHO || icmp[1] != 0 || !ip_is_ours(identity, out->as.echo.our_ip))
		return NET_FRAME_FOREIGN;
	return ip_is_unicast(out->as.echo.source_ip) ? NET_FRAME_ECHO : NET_FRAME_MALFORMED;
}

enum net_frame_kind net_frame_read(const struct dp_net_identity *identity, const uint8_t *data,
	uint32_t bytes, struct net_frame *out)
{
	if (bytes < INET_ETHERNET_BYTES)
		return out->kind = NET_FRAME_MALFORMED;
	uint16_t type = inet_be16(data + 12), vlan = 0;
	uint32_t link_bytes = INET_ETHERNET_BYTES;
	if (type == INET_TYPE_VLAN) {
		link_bytes += INET_VLAN_BYTES;
		if (bytes < link_bytes)
			return out->kind = NET_FRAME_MALFORMED;
		vlan = inet_be16(data + 14) & 0x0fff;
		type = inet_be16(data + 16);
	}
	memcpy(out->link_source, data + 6, 6);
	if (vlan != identity->vlan)
		return out->kind = NET_FRAME_FOREIGN;
	if (!mac_is_unicast(out->link_source))
		return out->kind = NET_FRAME_MALFORMED;
	data += link_bytes;
	bytes -= link_bytes;
	if (type == INET_TYPE_ARP)
		out->kind = arp_read(data, bytes, out);
	else if (type == INET_TYPE_IPV4)
		out->kind = ipv4_read(identity, data, bytes, out);
	else if (type == INET_TYPE_IPV6)
		out->kind = ipv6_read(identity, data, bytes, out);
	else
		out->kind = NET_FRAME_FOREIGN;
	return out->kind;
}

// ---- writing ----

static uint32_t link_write(
	const struct dp_net_identity *identity, uint8_t *out, const uint8_t mac[6], uint16_t type)
{
	uint32_t at = 12;
	memcpy(out, mac, 6);
	memcpy(out + 6, identity->mac, 6);
	if (identity->vlan != 0) {
		inet_put_be16(out + at, INET_TYPE_VLAN);
		inet_put_be16(out + at + 2, identity->vlan);
		at += INET_VLAN_BYTES;
	}
	inet_put_be16(out + at, type);
	return at + 2;
}

static uint32_t arp_write(const struct dp_net_identity *identity, uint8_t *out, uint16_t operation,
	const uint8_t our_ip[16], const uint8_t target_ip[16], const uint8_t link_mac[6],
	const uint8_t target_mac[6])
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};
	uint32_t at = link_write(identity, out, link_mac, INET_TYPE_ARP);
	uint8_t *p = out + at;
	memcpy(p, ethernet_ipv4, sizeof(ethernet_ipv4));
	inet_put_be16(p + 6, operation);
	memcpy(p + 8, identity->mac, 6);
	memcpy(p + 14, our_ip + 12, 4);
	memcpy(p + 18, target_mac, 6);
	memcpy(p + 24, target_ip + 12, 4);
	return at + ARP_BYTES;
}

uint32_t net_arp_request_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t target_ip[16], const uint8_t *mac)
{
	static const uint8_t unknown[6];
	return arp_write(identity, out, ARP_REQUEST, our_ip, target_ip,
		mac != NULL ? mac : everybody, unknown);
}

uint32_t net_arp_reply_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t to_ip[16], const uint8_t to_mac[6])
{
	return arp_write(identity, out, ARP_REPLY, our_ip, to_ip, to_mac, to_mac);
}

static void group_mac(uint8_t out[6], const uint8_t group_ip[16])
{
	out[0] = out[1] = 0x33;
	memcpy(out + 2, group_ip + 12, 4);
}

static uint8_t *ipv6_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t source[16], const uint8_t destination[16], const uint8_t *mac,
	uint32_t icmp_bytes, uint8_t hop_limit)
{
	uint8_t group[6];
	group_mac(group, destination);
	uint8_t *p = out + link_write(identity, out, mac != NULL ? mac : group, INET_TYPE_IPV6);
	const uint8_t start[8] = {0x60, 0, 0, 0, (uint8_t)(icmp_bytes >> 8), (uint8_t)icmp_bytes,
		INET_PROTOCOL_ICMPV6, hop_limit};
	memcpy(p, start, sizeof(start));
	memcpy(p + 8, source, 16);
	memcpy(p + 24, destination, 16);
	return p + INET_IPV6_BYTES;
}

// Checksum over the finished message behind a finished IPv6 header; returns the frame's size.
static uint32_t icmpv6_finish(uint8_t *out, uint8_t *icmp, uint32_t icmp_bytes)
{
	const uint8_t *ip = icmp - INET_IPV6_BYTES;
	memset(icmp + 2, 0, 2);
	uint64_t sum = inet_pseudo_sum(ip + 8, 16, INET_PROTOCOL_ICMPV6, icmp_bytes);
	uint16_t checksum = inet_checksum(inet_sum(icmp, icmp_bytes, sum));
	memcpy(icmp + 2, &checksum, 2);
	return (uint32_t)(icmp - out) + icmp_bytes;
}

static void nd_write(const struct dp_net_identity *identity, uint8_t *icmp, uint8_t type,
	uint8_t flags, const uint8_t target[16], uint8_t option)
{
	const uint8_t start[8] = {type, 0, 0, 0, flags, 0, 0, 0};
	memcpy(icmp, start, sizeof(start));
	memcpy(icmp + 8, target, 16);
	icmp[ND_BYTES] = option;
	icmp[ND_BYTES + 1] = 1;
	memcpy(icmp + ND_BYTES + 2, identity->mac, 6);
}

uint32_t net_solicitation_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t target_ip[16], const uint8_t *mac)
{
	uint8_t group[16] = {0xff, 2, [11] = 1, [12] = 0xff};
	memcpy(group + 13, target_ip + 13, 3);
	uint8_t *icmp = ipv6_write(identity, out, our_ip, mac != NULL ? target_ip : group, mac,
		ND_BYTES + 8, ND_HOP_LIMIT);
	nd_write(identity, icmp, ICMPV6_SOLICITATION, 0, target_ip, ND_OPTION_SOURCE);
	return icmpv6_finish(out, icmp, ND_BYTES + 8);
}

uint32_t net_advertisement_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t *to_ip, const uint8_t *mac)
{
	uint8_t flags = to_ip != NULL ? 0x60 : 0x20; // solicited, override
	uint8_t *icmp = ipv6_write(identity, out, our_ip, to_ip != NULL ? to_ip : all_nodes, mac,
		ND_BYTES + 8, ND_HOP_LIMIT);
	nd_write(identity, icmp, ICMPV6_ADVERTISEMENT, flags, our_ip, ND_OPTION_TARGET);
	return icmpv6_finish(out, icmp, ND_BYTES + 8);
}

static uint32_t echo_v4_write(
	const struct dp_net_identity *identity, uint8_t *out, const struct net_frame *echo)
{
	uint32_t icmp_bytes = echo->as.echo.icmp_bytes;
	uint8_t *ip = out + link_write(identity, out, echo->link_source, INET_TYPE_IPV4);
	static const uint8_t start[12] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, INET_PROTOCOL_ICMP};
	memcpy(ip, start, sizeof(start));
	inet_put_be16(ip + 2, (uint16_t)(icmp_bytes + INET_IPV4_BYTES));
	memcpy(ip + 12, echo->as.echo.our_ip + 12, 4);
	memcpy(ip + 16, echo->as.echo.source_ip + 12, 4);
	uint16_t checksum = inet_checksum(inet_sum(ip, INET_IPV4_BYTES, 0));
	memcpy(ip + 10, &checksum, 2);
	uint8_t *icmp = ip + INET_IPV4_BYTES;
	memcpy(icmp, echo->as.echo.icmp, icmp_bytes);
	icmp[0] = ICMP_ECHO_REPLY;
	memset(icmp + 2, 0, 2);
	checksum = inet_checksum(inet_sum(icmp, icmp_bytes, 0));
	memcpy(icmp + 2, &checksum, 2);
	return (uint32_t)(icmp - out) + icmp_bytes;
}

uint32_t net_echo_reply_write(
	const struct dp_net_identity *identity, uint8_t *out, const struct net_frame *echo)
{
	CHECK(echo->kind == NET_FRAME_ECHO);
	if (dp_net_ip_is_v4(echo->as.echo.source_ip))
		return echo_v4_write(identity, out, echo);
	uint32_t icmp_bytes = echo->as.echo.icmp_bytes;
	uint8_t *icmp = ipv6_write(identity, out, echo->as.echo.our_ip, echo->as.echo.source_ip,
		echo->link_source, icmp_bytes, 64);
	memcpy(icmp, echo->as.echo.icmp, icmp_bytes);
	icmp[0] = ICMPV6_ECHO_REPLY;
	return icmpv6_finish(out, icmp, icmp_bytes);
}
