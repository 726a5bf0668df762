// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What each stage said about one request, for a client that asked (WIRE_FLAG_EXPLAIN). Filled as the
// request passes; printed once, in front of the reply's body. Pure; one owner.

#include <stddef.h>
#include <stdint.h>

#include "lane/lane.h"

enum { EXPLAIN_JSON_MAX = 900 };

struct explain {
	uint64_t process_bytes, process_mark;
	struct lane_level lane; // before admission
	struct lane_bounds bounds;
	uint64_t parked_ticks;
	uint64_t queue_ticks; // from admission to the turn's start
	uint64_t turn_ticks;
	uint32_t charge_bytes;
	uint16_t ingress_worker;
	uint16_t home_worker;
	// Static texts, NULL where the request did not get that far.
	const char *session;
	const char *route;
	const char *filter;
	const char *process;
	const char *lane_verdict;
	const char *turn;
};

// Returns the size of the JSON text.
size_t explain_print(
	const struct explain *e, uint64_t tick_ns_q32, const char *kind, const char *reason, char *out,
	size_t capacity);
