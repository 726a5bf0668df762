// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Push to clients (M10). A handle says where a client's session is: worker, address, session. The
// lease is the session itself, in the bounded table of the worker that received its frames: it
// holds while that worker has taken a frame of the session within PUSH_LEASE_NS (a client that
// listens sends a keepalive). So a handle costs no table of its own, and other messages nothing.
// A push leaves through the session's worker, in one frame; expired or without room it is dropped
// and counted. Any worker.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"
#include "spotlane/module.h"

struct dp_worker;
struct wire_header;

#define PUSH_LEASE_NS UINT64_C(60000000000)

// host table
int host_client(spotlane_turn turn, struct spotlane_client_handle *out);
int host_push(spotlane_turn turn, const struct spotlane_client_handle *to, uint16_t type,
	uint16_t content, struct spotlane_bytes payload);
// A push that another worker passed on (ITEM_PUSH). Consumes the item.
void push_arrived(struct dp_worker *w, struct item *item);
// A HELLO with a cookie that holds keeps its session alive.
void push_keepalive(struct dp_worker *w, const struct peer *peer, const struct wire_header *h);
