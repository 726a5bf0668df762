// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Reads and writes the raw frames that control's neighbour code speaks: ARP, neighbour solicitation
// and advertisement, ICMP and ICMPv6 echo. Pure: bytes in, facts out. Whatever is not exactly one
// of them, whole, with a good checksum and for us, is not taken.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dp/net.h"

enum net_frame_kind {
	NET_FRAME_ARP = 1,
	NET_FRAME_SOLICITATION = 2,
	NET_FRAME_ADVERTISEMENT = 3,
	NET_FRAME_ECHO = 4,
	NET_FRAME_FOREIGN = 5,   // something else, or for somebody else
	NET_FRAME_MALFORMED = 6,
};

struct net_frame {
	enum net_frame_kind kind;
	uint8_t link_source[6];
	union {
		struct {
			bool request;
			uint8_t sender_mac[6];
			// mapped; a sender of 0.0.0.0 is a probe
			uint8_t sender_ip[16], target_ip[16];
		} arp;
		struct {
			uint8_t source_ip[16]; // zero: its sender checks for duplicates
			uint8_t target_ip[16];
			bool has_mac;
			uint8_t mac[6]; // of the link-layer address option
			bool solicited, override; // advertisement only
		} nd;
		struct { // borrowed from the frame
			uint8_t source_ip[16], our_ip[16];
			const uint8_t *icmp;
			uint32_t icmp_bytes;
		} echo;
	} as;
};

MUST_USE enum net_frame_kind net_frame_read(const struct dp_net_identity *identity,
	const uint8_t *data, uint32_t bytes, struct net_frame *out);

// Each writes a whole frame into `out` (DP_NET_FRAME_BYTES_MAX) and returns its size. Addresses
// named ours are ours; `mac` NULL = everybody (ARP) or the group that fits (ND).
uint32_t net_arp_request_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t target_ip[16], const uint8_t *mac);
uint32_t net_arp_reply_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t to_ip[16], const uint8_t to_mac[6]);
uint32_t net_solicitation_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t target_ip[16], const uint8_t *mac);
// to_ip NULL = all nodes (an announcement).
uint32_t net_advertisement_write(const struct dp_net_identity *identity, uint8_t *out,
	const uint8_t our_ip[16], const uint8_t *to_ip, const uint8_t *mac);
uint32_t net_echo_reply_write(
	const struct dp_net_identity *identity, uint8_t *out, const struct net_frame *echo);
