// SPDX-License-Identifier: BSD-3-Clause

// Frames as hostile hosts send them. Every frame lies in a heap buffer of exactly its size, so that a
// read beyond it is an error under AddressSanitizer.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "fabric/packet.h"

enum { UDP_PORT = 7000, FRAME_BYTES_MAX = 2048 };

static struct packet_site site;
static struct dp_net_identity identity;

static int site_make(void **state)
{
	(void)state;
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	const uint8_t v4[4] = {10, 0, 0, 1}, v6[16] = {0xfd, 0x99, [15] = 1};
	identity = (struct dp_net_identity){.address_count = 2, .mtu = 1500};
	memcpy(identity.mac, mac, 6);
	peer_ip_from_v4(identity.addresses[0].ip, v4);
	identity.addresses[0].prefix_bits = 120;
	memcpy(identity.addresses[1].ip, v6, 16);
	identity.addresses[1].prefix_bits = 64;
	packet_site_init(&site, &identity, UDP_PORT, 3);
	return 0;
}

enum family { V4 = 0, V6 = 1 };

struct sample {
	uint8_t data[FRAME_BYTES_MAX];
	uint32_t bytes;
	uint32_t ip_at, udp_at;
};

// A good frame from a host to us, as that host would write it.
static void sample_make(struct sample *s, enum family family, uint16_t vlan, uint32_t payload_bytes)
{
	struct dp_net_identity sender = {.address_count = 2, .vlan = vlan};
	struct packet_site from;
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	const uint8_t v4[4] = {10, 0, 0, 9}, v6[16] = {0xfd, 0x99, [15] = 9};
	struct peer to = {.port = UDP_PORT};
	memcpy(sender.mac, mac, 6);
	peer_ip_from_v4(sender.addresses[0].ip, v4);
	memcpy(sender.addresses[1].ip, v6, 16);
	packet_site_init(&from, &sender, 5555, 0);
	memcpy(to.ip, identity.addresses[family].ip, 16);
	uint32_t header_bytes = packet_header_bytes(&from, family == V4);
	s->bytes = header_bytes + payload_bytes;
	s->udp_at = header_bytes - INET_UDP_BYTES;
	s->ip_at = s->udp_at - (family == V4 ? INET_IPV4_BYTES : INET_IPV6_BYTES);
	for (uint32_t i = 0; i < payload_bytes; i++)
		s->data[header_bytes + i] = (uint8_t)(i * 3 + 1);
	packet_write(&from, s->data + header_bytes, payload_bytes, &to, family, identity.mac);
}

struct taken {
	uint32_t header_bytes, payload_bytes;
	struct peer peer;
};

// Reads from a buffer of exactly this size.
static enum packet_verdict read_exact(const uint8_t *data, uint32_t bytes, struct taken *out)
{
	uint8_t *exact = malloc(bytes != 0 ? bytes : 1);
	assert_non_null(exact);
	memcpy(exact, data, bytes);
	struct packet packet = {0, 0};
	enum packet_verdict verdict =
		packet_read(&site, bytes != 0 ? exact : exact + 1, bytes, &packet, &out->peer);
	free(exact);
	out->header_bytes = packet.header_bytes;
	out->payload_bytes = packet.payload_bytes;
	return verdict;
}

static void ipv4_checksum_mend(struct sample *s)
{
	uint8_t *ip = s->data + s->ip_at;
	uint32_t header_bytes = (uint32_t)(ip[0] & 15) * 4;
	memset(ip + 10, 0, 2);
	uint16_t checksum = inet_checksum(inet_sum(ip, header_bytes, 0));
	memcpy(ip + 10, &checksum, 2);
}

static void x__a_good_frame_is_taken_apart(void **state)
{
	(void)state;
	for (uint32_t family = V4; family <= V6; family++) {
		for (uint32_t payload = 0; payload <= 1400; payload += payload < 70 ? 1 : 133) {
			struct sample s;
			struct taken p;
			sample_make(&s, family, 0, payload);
			assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_OURS);
			assert_int_equal(p.header_bytes, s.bytes - payload);
			assert_int_equal(p.payload_bytes, payload);
			assert_int_equal(p.peer.port, 5555);
			assert_int_equal(p.peer.flags, 1 + family);
			assert_int_equal(p.peer.fabric, 3);
			assert_int_equal(p.peer.mac[5], 9);
			assert_int_equal(p.peer.ip[15], 9);
		}
	}
}

static void I20__every_truncation_is_refused(void **state)
{
	(void)state;
	for (uint32_t family = V4; family <= V6; family++) {
		struct sample s;
		struct taken p;
		sample_make(&s, family, 0, 20);
		for (uint32_t bytes = 0; bytes < s.bytes; bytes++)
			assert_int_equal(read_exact(s.data, bytes, &p), PACKET_MALFORMED);
	}
}

struct damage {
	const char *what;
	enum family family;
	enum { IN_LINK, IN_IP, IN_UDP } where;
	uint32_t at;
	uint8_t value;
	bool mend; // the IPv4 header checksum after the damage
	enum packet_verdict expected;
};

static const struct damage damages[] = {
	{"another host's MAC", V4, IN_LINK, 5, 77, false, PACKET_OTHER},
	{"broadcast bit in our MAC", V4, IN_LINK, 0, 3, false, PACKET_OTHER},
	{"group as sender", V4, IN_LINK, 6, 1, false, PACKET_MALFORMED},
	{"ARP", V4, IN_LINK, 13, 0x06, false, PACKET_CONTROL},
	{"unknown type", V4, IN_LINK, 12, 0x88, false, PACKET_OTHER},
	{"IPv6 type before IPv4", V4, IN_LINK, 12, 0x86, false, PACKET_OTHER},
	{"version 5", V4, IN_IP, 0, 0x55, true, PACKET_MALFORMED},
	{"header of 16 bytes", V4, IN_IP, 0, 0x44, true, PACKET_MALFORMED},
	{"header of 0 bytes", V4, IN_IP, 0, 0x40, false, PACKET_MALFORMED},
	{"header longer than the packet", V4, IN_IP, 0, 0x4f, false, PACKET_MALFORMED},
	{"total length over the frame", V4, IN_IP, 2, 0x7f, true, PACKET_MALFORMED},
	{"total length under the header", V4, IN_IP, 3, 19, true, PACKET_MALFORMED},
	{"total length cuts UDP's header", V4, IN_IP, 3, 27, true, PACKET_MALFORMED},
	{"total length cuts the payload", V4, IN_IP, 3, 40, true, PACKET_MALFORMED},
	{"more fragments", V4, IN_IP, 6, 0x20, true, PACKET_FRAGMENT},
	{"fragment offset", V4, IN_IP, 7, 1, true, PACKET_FRAGMENT},
	{"TCP", V4, IN_IP, 9, 6, true, PACKET_OTHER},
	{"ICMP", V4, IN_IP, 9, 1, true, PACKET_CONTROL},
	{"header checksum", V4, IN_IP, 8, 63, false, PACKET_CHECKSUM},
	{"source 0.x", V4, IN_IP, 12, 0, true, PACKET_MALFORMED},
	{"source 127.x", V4, IN_IP, 12, 127, true, PACKET_MALFORMED},
	{"source a group", V4, IN_IP, 12, 224, true, PACKET_MALFORMED},
	{"source broadcast", V4, IN_IP, 12, 255, true, PACKET_MALFORMED},
	{"source is us", V4, IN_IP, 15, 1, true, PACKET_MALFORMED},
	{"destination is another", V4, IN_IP, 19, 2, true, PACKET_OTHER},
	{"source port 0", V4, IN_UDP, 0, 0, false, PACKET_CHECKSUM},
	{"another port", V4, IN_UDP, 3, 1, false, PACKET_WRONG_PORT},
	{"UDP length too long", V4, IN_UDP, 5, 29, false, PACKET_MALFORMED},
	{"UDP length too short", V4, IN_UDP, 5, 27, false, PACKET_MALFORMED},
	{"UDP length 0", V4, IN_UDP, 5, 0, false, PACKET_MALFORMED},
	{"payload bit", V4, IN_UDP, 9, 0xee, false, PACKET_CHECKSUM},
	{"version 4 inside IPv6 type", V6, IN_IP, 0, 0x40, false, PACKET_MALFORMED},
	{"payload length over the frame", V6, IN_IP, 4, 1, false, PACKET_MALFORMED},
	{"payload length too short", V6, IN_IP, 5, 5, false, PACKET_MALFORMED},
	{"hop-by-hop options", V6, IN_IP, 6, 0, false, PACKET_OTHER},
	{"fragment header", V6, IN_IP, 6, 44, false, PACKET_FRAGMENT},
	{"ICMPv6", V6, IN_IP, 6, 58, false, PACKET_CONTROL},
	{"TCP", V6, IN_IP, 6, 6, false, PACKET_OTHER},
	{"source a group", V6, IN_IP, 8, 0xff, false, PACKET_MALFORMED},
	{"source is us", V6, IN_IP, 23, 1, false, PACKET_MALFORMED},
	{"destination is another", V6, IN_IP, 39, 2, false, PACKET_OTHER},
	{"destination a group", V6, IN_IP, 24, 0xff, false, PACKET_OTHER},
	{"payload bit", V6, IN_UDP, 9, 0xee, false, PACKET_CHECKSUM},
	{"another port", V6, IN_UDP, 3, 1, false, PACKET_WRONG_PORT},
	{"UDP length", V6, IN_UDP, 5, 29, false, PACKET_MALFORMED},
};

static void I20__damaged_headers_are_refused_by_kind(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ARRAY_COUNT(damages); i++) {
		const struct damage *d = &damages[i];
		struct sample s;
		struct taken p;
		sample_make(&s, d->family, 0, 20);
		uint32_t base = d->where == IN_LINK ? 0 : d->where == IN_IP ? s.ip_at : s.udp_at;
		s.data[base + d->at] = d->value;
		if (d->mend)
			ipv4_checksum_mend(&s);
		enum packet_verdict verdict = read_exact(s.data, s.bytes, &p);
		if (verdict != d->expected)
			fail_msg("%s: %d instead of %d", d->what, verdict, d->expected);
	}
}

static void x__link_padding_is_not_payload(void **state)
{
	(void)state;
	for (uint32_t family = V4; family <= V6; family++) {
		struct sample s;
		struct taken p;
		sample_make(&s, family, 0, 3);
		memset(s.data + s.bytes, 0xaa, 40);
		assert_int_equal(read_exact(s.data, s.bytes + 40, &p), PACKET_OURS);
		assert_int_equal(p.payload_bytes, 3);
	}
}

static void x__ipv4_options_are_stepped_over(void **state)
{
	(void)state;
	struct sample s;
	struct taken p;
	sample_make(&s, V4, 0, 20);
	memmove(s.data + s.udp_at + 8, s.data + s.udp_at, s.bytes - s.udp_at);
	memset(s.data + s.udp_at, 1, 8); // no-operation
	s.bytes += 8;
	s.data[s.ip_at] = 0x47;
	inet_put_be16(s.data + s.ip_at + 2, (uint16_t)(s.bytes - s.ip_at));
	ipv4_checksum_mend(&s);
	assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_OURS);
	assert_int_equal(p.header_bytes, s.udp_at + 8 + 8);
	assert_int_equal(p.payload_bytes, 20);
	for (uint32_t bytes = 0; bytes < s.bytes; bytes++)
		assert_int_equal(read_exact(s.data, bytes, &p), PACKET_MALFORMED);
}

static void x__missing_checksums(void **state)
{
	(void)state;
	struct sample s;
	struct taken p;
	sample_make(&s, V4, 0, 20);
	memset(s.data + s.udp_at + 6, 0, 2);
	assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_OURS);
	sample_make(&s, V6, 0, 20);
	memset(s.data + s.udp_at + 6, 0, 2);
	assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_CHECKSUM);
}

// What a kernel leaves when it counts on hardware: the folded sum of the pseudo header.
static void P3__unfinished_checksums_are_told_apart(void **state)
{
	(void)state;
	for (uint32_t family = V4; family <= V6; family++) {
		struct sample s;
		struct taken p;
		sample_make(&s, family, 0, 20);
		uint32_t ip_bytes = family == V4 ? 4 : 16, at = family == V4 ? 12 : 8;
		uint16_t half = inet_fold(inet_pseudo_sum(
			s.data + s.ip_at + at, ip_bytes, INET_PROTOCOL_UDP, 28));
		memcpy(s.data + s.udp_at + 6, &half, 2);
		assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_UNFINISHED);
	}
}

static void x__only_our_vlan_is_heard(void **state)
{
	(void)state;
	static const struct {
		uint16_t ours, theirs;
		enum packet_verdict expected;
	} cases[] = {
		{0, 0, PACKET_OURS},
		{0, 5, PACKET_OTHER},
		{5, 5, PACKET_OURS},
		{5, 6, PACKET_OTHER},
		{5, 0, PACKET_OTHER},
		{4094, 4094, PACKET_OURS},
	};
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct sample s;
		struct taken p;
		site.vlan = cases[i].ours;
		sample_make(&s, V4, cases[i].theirs, 20);
		assert_int_equal(read_exact(s.data, s.bytes, &p), cases[i].expected);
		if (cases[i].expected == PACKET_OURS)
			assert_int_equal(p.peer.vlan, cases[i].ours);
		if (cases[i].theirs == 0)
			continue;
		s.data[14] |= 0xe0; // priority is not part of the tag
		assert_int_equal(read_exact(s.data, s.bytes, &p), cases[i].expected);
		for (uint32_t bytes = 0; bytes < 18; bytes++)
			assert_int_equal(read_exact(s.data, bytes, &p), PACKET_MALFORMED);
	}
	site.vlan = 0;
}

// An IPv6 source of the mapped kind would be answered over IPv4.
static void I20__a_mapped_source_in_ipv6_is_refused(void **state)
{
	(void)state;
	struct sample s;
	struct taken p;
	sample_make(&s, V6, 0, 20);
	peer_ip_from_v4(s.data + s.ip_at + 8, (const uint8_t[4]){10, 0, 0, 9});
	assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_MALFORMED);
}

static void x__a_reply_goes_back_the_way_it_came(void **state)
{
	(void)state;
	for (uint32_t family = V4; family <= V6; family++) {
		struct sample s;
		struct taken p;
		sample_make(&s, family, 0, 31);
		assert_int_equal(read_exact(s.data, s.bytes, &p), PACKET_OURS);
		packet_write(&site, s.data + p.header_bytes, 40, &p.peer, p.peer.flags - 1u,
			p.peer.mac);
		s.bytes = p.header_bytes + 40;
		const uint8_t *ip = s.data + s.ip_at, *udp = s.data + s.udp_at;
		uint32_t at = family == V4 ? 12 : 8, size = family == V4 ? 4 : 16;
		assert_int_equal(s.data[5], 9);
		assert_int_equal(s.data[11], 1);
		assert_int_equal(ip[at + size - 1], 1);
		assert_int_equal(ip[at + 2 * size - 1], 9);
		assert_int_equal(inet_be16(udp), UDP_PORT);
		assert_int_equal(inet_be16(udp + 2), 5555);
		assert_int_equal(inet_be16(udp + 4), 48);
		uint64_t sum = inet_pseudo_sum(ip + at, size, INET_PROTOCOL_UDP, 48);
		assert_true(inet_sum_is_good(inet_sum(udp, 48, sum)));
		if (family == V4)
			assert_true(inet_sum_is_good(inet_sum(ip, 20, 0)));
	}
}

// A plain reading of RFC 1071, to compare with.
static uint16_t slow_sum(const uint8_t *data, uint32_t bytes)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < bytes; i += 2) {
		sum += (uint32_t)data[i] << 8 | (i + 1 < bytes ? data[i + 1] : 0);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void x__sums_agree_with_a_plain_one(void **state)
{
	(void)state;
	struct rng rng;
	uint8_t data[1600];
	rng_seed(&rng, 7);
	for (uint32_t round = 0; round < 2000; round++) {
		uint32_t bytes = (uint32_t)rng_below(&rng, sizeof(data));
		for (uint32_t i = 0; i < bytes; i++)
			data[i] = round % 4 == 0 ? 0xff : (uint8_t)rng_u64(&rng);
		uint16_t fast = inet_fold(inet_sum(data, bytes, 0));
		assert_int_equal(ntohs(fast) % 0xffff, slow_sum(data, bytes) % 0xffff);
	}
}

static void I20__random_bytes_never_pass(void **state)
{
	(void)state;
	struct rng rng;
	uint8_t data[300];
	rng_seed(&rng, 11);
	for (uint32_t round = 0; round < 200000; round++) {
		struct sample s;
		struct taken p;
		uint32_t bytes = (uint32_t)rng_below(&rng, sizeof(data));
		sample_make(&s, round % 2, 0, 20);
		for (uint32_t i = 0; i < bytes; i++)
			data[i] = (uint8_t)rng_u64(&rng);
		// Headers good up to a random point, so that each depth is reached.
		uint32_t good = (uint32_t)rng_below(&rng, s.udp_at);
		memcpy(data, s.data, good < bytes ? good : bytes);
		enum packet_verdict verdict = read_exact(data, bytes, &p);
		if (verdict == PACKET_OURS)
			assert_true(p.header_bytes + p.payload_bytes <= bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__a_good_frame_is_taken_apart),
		cmocka_unit_test(I20__every_truncation_is_refused),
		cmocka_unit_test(I20__damaged_headers_are_refused_by_kind),
		cmocka_unit_test(x__link_padding_is_not_payload),
		cmocka_unit_test(x__ipv4_options_are_stepped_over),
		cmocka_unit_test(x__missing_checksums),
		cmocka_unit_test(P3__unfinished_checksums_are_told_apart),
		cmocka_unit_test(x__only_our_vlan_is_heard),
		cmocka_unit_test(I20__a_mapped_source_in_ipv6_is_refused),
		cmocka_unit_test(x__a_reply_goes_back_the_way_it_came),
		cmocka_unit_test(x__sums_agree_with_a_plain_one),
		cmocka_unit_test(I20__random_bytes_never_pass),
	};
	return cmocka_run_group_tests_name("fabric packet", tests, site_make, NULL);
}
