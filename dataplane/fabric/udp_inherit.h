// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sockets that somebody else bound and handed to this process, as systemd's socket activation does:
// descriptors from 3 on, their number in LISTEN_FDS, LISTEN_PID naming this process. So a node in a
// network namespace of its own can listen on an address outside it. Any thread; no blocking.

#include <netinet/in.h>
#include <stdint.h>

#include "base/compiler.h"

union udp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

// The index-th (from 0) inherited datagram socket bound to this address, or -1. Port 0 in `want`
// stands for every port. The descriptor is made close-on-exec and non-blocking.
MUST_USE int udp_inherited(const union udp_address *want, uint16_t index);
