// SPDX-License-Identifier: BSD-3-Clause
// Pushes (M10): each given once, and the keepalive that keeps the node's Spots able to push.
#include "client/internal.h"

#include <string.h>

enum { PUSH_WINDOW = 64 };

// A node's frames to one port come from one of its sessions; another one is another run of the
// node.
static bool is_repeat(struct client_port *port, const struct wire_header *h)
{
	if (port->push_session != h->session) {
		port->push_session = h->session;
		port->push_highest = h->counter;
		port->push_seen = 1;
		return false;
	}
	if (h->counter > port->push_highest) {
		uint64_t step = h->counter - port->push_highest;
		port->push_seen = step < PUSH_WINDOW ? port->push_seen << step | 1 : 1;
		port->push_highest = h->counter;
		return false;
	}
	uint64_t behind = port->push_highest - h->counter;
	if (behind >= PUSH_WINDOW || (port->push_seen >> behind & 1))
		return true; // too old to tell counts as seen
	port->push_seen |= UINT64_C(1) << behind;
	return false;
}

void push_take(struct client_port *port, const struct wire_frame *frame)
{
	spotlane_client *client = port->client;
	if (client->pushed == NULL || (frame->h.flags & WIRE_FLAG_SEGMENTED)) {
		client->stats.frames_unexpected++;
		return;
	}
	if (is_repeat(port, &frame->h)) {
		client->stats.late++;
		return;
	}
	struct spotlane_push push = {.message_type = frame->h.message_type,
		.content_type = frame->h.content_type,
		.port = port->index,
		.payload = frame->segment.data,
		.payload_bytes = frame->segment.size};
	memcpy(push.spot_key, &frame->h.spot_key_lo, 8);
	memcpy(push.spot_key + 8, &frame->h.spot_key_hi, 8);
	client->stats.pushes++;
	client->pushed(client->pushed_arg, &push);
}

void push_keepalive(struct client_port *port)
{
	spotlane_client *client = port->client;
	if (client->pushed == NULL)
		return;
	if (port->cookie_state == COOKIE_ABSENT)
		port_ask_cookie(port);
	port->hello_due = true;
	wheel_set(&client->wheel, &port->keepalive.node,
		client->now_ns + (uint64_t)CLIENT_KEEPALIVE_S * 1000000000u);
}

void spotlane_client_listen(spotlane_client *client, spotlane_client_pushed *pushed, void *arg)
{
	client->pushed = pushed;
	client->pushed_arg = arg;
	client->now_ns = clock_boot_ns(client->clock);
	for (uint32_t i = 0; i < client->port_count; i++) {
		struct client_port *port = &client->ports[i];
		wheel_cancel(&port->keepalive.node);
		if (pushed != NULL)
			wheel_set(&client->wheel, &port->keepalive.node,
				client->now_ns + (uint64_t)CLIENT_KEEPALIVE_S * 1000000000u);
	}
}
