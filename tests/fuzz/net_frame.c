// SPDX-License-Identifier: BSD-3-Clause
// One Ethernet frame, read by the worker's parser and by control's. Untrusted: any host on the link.
// The first byte chooses the site (bit 0: tagged) and whether checksums are made good (bit 1).
#include "fabric/packet.h"
#include "fuzz.h"
#include "net/frames.h"

enum { UDP_PORT = 7000, VLAN = 20 };

static struct dp_net_identity identities[2];
static struct packet_site sites[2];
static uint32_t verdicts[PACKET_UNFINISHED + 1], kinds[NET_FRAME_MALFORMED + 1];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	const uint8_t v4[4] = {10, 0, 0, 1}, v6[16] = {0xfd, 0x99, [15] = 1};
	(void)argc;
	(void)argv;
	for (uint32_t i = 0; i < 2; i++) {
		struct dp_net_identity *identity = &identities[i];
		*identity = (struct dp_net_identity){.address_count = 2, .mtu = 1500, .vlan = i ? VLAN : 0};
		memcpy(identity->mac, mac, 6);
		peer_ip_from_v4(identity->addresses[0].ip, v4);
		identity->addresses[0].prefix_bits = 120;
		memcpy(identity->addresses[1].ip, v6, 16);
		identity->addresses[1].prefix_bits = 64;
		packet_site_init(&sites[i], identity, UDP_PORT, 3);
	}
	return 0;
}

// ---- making checksums good, so that what lies behind them is reached ----
static void mend_ipv4(uint8_t *ip, size_t bytes)
{
	size_t header_bytes = bytes >= INET_IPV4_BYTES ? (size_t)(ip[0] & 15) * 4 : 0;
	if (header_bytes < INET_IPV4_BYTES || header_bytes > bytes)
		return;
	memset(ip + 10, 0, 2);
	uint16_t sum = inet_checksum(inet_sum(ip, (uint32_t)header_bytes, 0));
	memcpy(ip + 10, &sum, 2);
	size_t total = inet_be16(ip + 2);
	if (total > bytes || total < header_bytes + INET_UDP_BYTES)
		return;
	uint32_t rest = (uint32_t)(total - header_bytes);
	uint8_t *body = ip + header_bytes;
	size_t at = ip[9] == INET_PROTOCOL_UDP ? 6 : 2;
	uint64_t pseudo = ip[9] == INET_PROTOCOL_UDP
				  ? inet_pseudo_sum(ip + 12, 4, INET_PROTOCOL_UDP, rest)
				  : 0;
	memset(body + at, 0, 2);
	sum = inet_checksum(inet_sum(body, rest, pseudo));
	memcpy(body + at, &sum, 2);
}

static void mend_ipv6(uint8_t *ip, size_t bytes)
{
	size_t rest = bytes >= INET_IPV6_BYTES ? inet_be16(ip + 4) : 0;
	if (rest < INET_UDP_BYTES || rest > bytes - INET_IPV6_BYTES)
		return;
	uint8_t *body = ip + INET_IPV6_BYTES;
	size_t at = ip[6] == INET_PROTOCOL_UDP ? 6 : 2;
	memset(body + at, 0, 2);
	uint16_t sum = inet_checksum(
		inet_sum(body, (uint32_t)rest, inet_pseudo_sum(ip + 8, 16, ip[6], (uint32_t)rest)));
	memcpy(body + at, &sum, 2);
}

static void mend(uint8_t *data, size_t size)
{
	size_t link = INET_ETHERNET_BYTES;
	if (size >= link && inet_be16(data + 12) == INET_TYPE_VLAN)
		link += INET_VLAN_BYTES;
	if (size < link)
		return;
	uint16_t type = inet_be16(data + link - 2);
	if (type == INET_TYPE_IPV4)
		mend_ipv4(data + link, size - link);
	else if (type == INET_TYPE_IPV6)
		mend_ipv6(data + link, size - link);
}

// ---- what must hold ----
static void check_ours(const struct packet *p, const struct peer *peer, size_t size)
{
	CHECK(p->header_bytes >= INET_ETHERNET_BYTES + INET_IPV4_BYTES + INET_UDP_BYTES);
	CHECK((size_t)p->header_bytes + p->payload_bytes <= size);
	CHECK(peer->port != 0 && peer->fabric == 3 && (peer->flags == 1 || peer->flags == 2));
	CHECK(peer_ip_is_v4(peer->ip) == (peer->flags == 1));
}

static void check_answer(const struct dp_net_identity *identity, const struct net_frame *f, size_t size)
{
	uint8_t *out = malloc(DP_NET_FRAME_BYTES_MAX);
	uint32_t bytes = 0;
	CHECK(out != NULL);
	if (f->kind == NET_FRAME_ECHO) {
		CHECK(dp_net_ip_is_v4(f->as.echo.our_ip) == dp_net_ip_is_v4(f->as.echo.source_ip));
		CHECK(f->as.echo.icmp_bytes >= 8 && f->as.echo.icmp_bytes < size);
		bytes = net_echo_reply_write(identity, out, f);
		CHECK(bytes >= f->as.echo.icmp_bytes);
	} else if (f->kind == NET_FRAME_SOLICITATION) {
		CHECK(!dp_net_ip_is_v4(f->as.nd.target_ip));
		bool probe = dp_net_ip_is_zero(f->as.nd.source_ip);
		bytes = net_advertisement_write(identity, out, f->as.nd.target_ip,
			probe ? NULL : f->as.nd.source_ip, f->as.nd.has_mac ? f->as.nd.mac : NULL);
	} else if (f->kind == NET_FRAME_ARP) {
		bytes = net_arp_reply_write(identity, out, identity->addresses[0].ip,
			f->as.arp.sender_ip, f->as.arp.sender_mac);
	}
	CHECK(bytes <= DP_NET_FRAME_BYTES_MAX);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1 + DP_NET_FRAME_BYTES_MAX)
		return 0;
	uint32_t site = data[0] & 1;
	struct packet packet = {0, 0};
	struct peer peer;
	struct net_frame frame;
	size_t bytes = size - 1;
	uint8_t *exact = fuzz_exact(data + 1, bytes);
	if (data[0] & 2)
		mend(exact, bytes);
	enum packet_verdict verdict = packet_read(&sites[site], exact, (uint32_t)bytes, &packet, &peer);
	CHECK(verdict >= PACKET_OURS && verdict <= PACKET_UNFINISHED);
	verdicts[verdict]++;
	if (verdict == PACKET_OURS)
		check_ours(&packet, &peer, bytes);
	enum net_frame_kind kind =
		net_frame_read(&identities[site], exact, (uint32_t)bytes, &frame);
	CHECK(kind == frame.kind && kind >= NET_FRAME_ARP && kind <= NET_FRAME_MALFORMED);
	kinds[kind]++;
	CHECK(verdict != PACKET_OURS || kind == NET_FRAME_FOREIGN || kind == NET_FRAME_MALFORMED);
	check_answer(&identities[site], &frame, bytes);
	free(exact);
	return 0;
}

void fuzz_unreached(void (*missed)(const char *what))
{
	static const char *const verdict_names[] = {[PACKET_OURS] = "ours", [PACKET_CONTROL] = "control",
		[PACKET_OTHER] = "other", [PACKET_WRONG_PORT] = "wrong port",
		[PACKET_MALFORMED] = "malformed", [PACKET_FRAGMENT] = "fragment",
		[PACKET_CHECKSUM] = "checksum", [PACKET_UNFINISHED] = "unfinished checksum"};
	static const char *const kind_names[] = {[NET_FRAME_ARP] = "ARP",
		[NET_FRAME_SOLICITATION] = "solicitation", [NET_FRAME_ADVERTISEMENT] = "advertisement",
		[NET_FRAME_ECHO] = "echo", [NET_FRAME_FOREIGN] = "foreign to control",
		[NET_FRAME_MALFORMED] = "malformed to control"};
	for (uint32_t i = PACKET_OURS; i <= PACKET_UNFINISHED; i++)
		if (verdicts[i] == 0)
			missed(verdict_names[i]);
	for (uint32_t i = NET_FRAME_ARP; i <= NET_FRAME_MALFORMED; i++)
		if (kinds[i] == 0)
			missed(kind_names[i]);
}
