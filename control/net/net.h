// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Control's side of one network port: speaks for our addresses (ARP, neighbour discovery, echo),
// announces them at start, finds the MACs that workers need and tells them when those end.
//
// A state machine without a clock or a socket of its own: frames come and go through dp_net_io,
// time comes as an argument. Control's thread. Never blocks. Off-link traffic goes to the family's
// gateway, which is resolved from the start.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dp/net.h"
#include "net/neighbour.h"

struct net_counters {
	uint64_t frames_in, frames_foreign, frames_malformed;
	uint64_t arp_answered, nd_answered, echo_answered;
	uint64_t echo_limited;     // over NET_ECHO_PER_SECOND
	uint64_t asked, probed;    // requests sent
	uint64_t learned, lost;    // neighbours published for the first time; withdrawn
	uint64_t refused;          // neighbours not taken: table full or too many unanswered
	uint64_t announced;
	uint64_t conflicts;        // somebody else speaks for an address of ours
	uint64_t send_full;        // no room to send: the frame was dropped
};

enum {
	NET_ECHO_PER_SECOND = 1000,
	NET_ECHO_BURST = 100,
	NET_FRAMES_PER_STEP = 256,
	NET_ANNOUNCEMENTS = 3, // at 0, 1 and 3 s
};

struct net_port;

// identity and io are copied; what io points to must outlive the port. NULL when memory is short.
MUST_USE struct net_port *net_port_create(
	const struct dp_net_identity *identity, const struct dp_net_io *io);
void net_port_destroy(struct net_port *port); // accepts NULL

// One turn: takes waiting frames (NET_FRAMES_PER_STEP at most), answers them, does what is due.
// Returns when it wants the next turn at the latest; a readable io.wake_fd asks for one earlier.
uint64_t net_port_step(struct net_port *port, uint64_t now_ns);

const struct net_counters *net_port_counters(const struct net_port *port);
// The index-th neighbour for display; NULL past the end. Valid until the next step.
const struct neighbour *net_port_neighbour_at(const struct net_port *port, uint32_t index);
