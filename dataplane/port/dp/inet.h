// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Bytes of internet headers, for both planes: big-endian fields, the internet checksum, numbers.
// Sums add native-order words, so that only the last fold cares about size. Any thread.

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	INET_ETHERNET_BYTES = 14,
	INET_VLAN_BYTES = 4,
	INET_IPV4_BYTES = 20,
	INET_IPV6_BYTES = 40,
	INET_UDP_BYTES = 8,

	INET_TYPE_IPV4 = 0x0800,
	INET_TYPE_ARP = 0x0806,
	INET_TYPE_VLAN = 0x8100,
	INET_TYPE_IPV6 = 0x86dd,

	INET_PROTOCOL_ICMP = 1,
	INET_PROTOCOL_UDP = 17,
	INET_PROTOCOL_IPV6_FRAGMENT = 44,
	INET_PROTOCOL_ICMPV6 = 58,
};

static inline uint16_t inet_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void inet_put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline uint64_t inet_sum(const uint8_t *data, uint32_t bytes, uint64_t sum)
{
	uint32_t words = bytes / 4;
	for (uint32_t i = 0; i < words; i++) {
		uint32_t w;
		memcpy(&w, data + (size_t)i * 4, 4);
		sum += w;
	}
	data += (size_t)words * 4;
	if (bytes & 2) {
		uint16_t half;
		memcpy(&half, data, 2);
		sum += half;
		data += 2;
	}
	if (bytes & 1)
		sum += htons((uint16_t)(data[0] << 8));
	return sum;
}

static inline uint16_t inet_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

// Source, destination, protocol and length; `addresses` are both, one behind the other.
static inline uint64_t inet_pseudo_sum(
	const uint8_t *addresses, uint32_t address_bytes, uint8_t protocol, uint32_t length)
{
	return inet_sum(addresses, 2 * address_bytes, 0) + htons(protocol) +
	       (uint64_t)htonl(length);
}

// A sum taken over its own checksum field too.
static inline bool inet_sum_is_good(uint64_t sum)
{
	return inet_fold(sum) == 0xffff;
}

// To be stored as it is (native order).
static inline uint16_t inet_checksum(uint64_t sum)
{
	return (uint16_t)~inet_fold(sum);
}
