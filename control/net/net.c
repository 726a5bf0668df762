// SPDX-License-Identifier: BSD-3-Clause
#include "net/net.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/frames.h"

#define SECOND_NS UINT64_C(1000000000)
#define CONFLICT_DEFENCE_NS (10 * SECOND_NS)

struct net_port {
	struct dp_net_identity identity;
	struct dp_net_io io;
	struct net_counters counters;
	struct neighbour_table neighbours;
	uint32_t announcements;
	uint64_t announce_ns; // next one
	uint64_t defended_ns; // last answer to an address conflict
	uint64_t echo_filled_ns;
	uint64_t echo_tokens_ns; // nanoseconds' worth of answers saved up
	bool started;
	uint8_t out[DP_NET_FRAME_BYTES_MAX];
};

static void send_out(struct net_port *port, uint32_t bytes)
{
	if (!port->io.send(port->io.self, port->out, bytes))
		port->counters.send_full++;
}

// ---- asking and telling ----

static void ask(struct net_port *port, const uint8_t ip[16], const uint8_t *mac)
{
	int source = dp_net_source_for(&port->identity, ip);
	if (source < 0)
		return; // no address of that family: nothing to ask with
	const uint8_t *ours = port->identity.addresses[source].ip;
	uint32_t bytes =
		dp_net_ip_is_v4(ip)
			? net_arp_request_write(&port->identity, port->out, ours, ip, mac)
			: net_solicitation_write(&port->identity, port->out, ours, ip, mac);
	send_out(port, bytes);
}

static void withdraw(struct net_port *port, const uint8_t ip[16])
{
	port->io.neighbour_clear(port->io.self, ip);
	port->counters.lost++;
}

static void event_give(struct net_port *port, struct neighbour *n, enum neighbour_event event,
	uint64_t now_ns)
{
	struct neighbour before = *n;
	enum neighbour_effect effect = neighbour_event(&port->neighbours, n, event, now_ns);
	switch (effect) {
	case NEIGHBOUR_NOTHING:
		return;
	case NEIGHBOUR_ASK:
		port->counters.asked++;
		ask(port, before.ip, NULL);
		return;
	case NEIGHBOUR_PROBE:
		port->counters.probed++;
		ask(port, before.ip, before.mac);
		return;
	case NEIGHBOUR_PUBLISH:
		port->io.neighbour_set(port->io.self, before.ip, before.mac);
		return;
	case NEIGHBOUR_WITHDRAW:
		withdraw(port, before.ip);
		return;
	case NEIGHBOUR_FORGET:
		if (before.state != NEIGHBOUR_FAILED)
			withdraw(port, before.ip);
		return;
	case NEIGHBOUR_IMPOSSIBLE:
		break;
	}
	CHECK(!"a possible effect");
}

static struct neighbour *add(
	struct net_port *port, const uint8_t ip[16], enum neighbour_state state, uint64_t now_ns)
{
	struct neighbour_forgotten forgotten;
	struct neighbour *n = neighbour_add(&port->neighbours, ip, state, now_ns, &forgotten);
	if (forgotten.used)
		withdraw(port, forgotten.ip);
	if (n == NULL)
		port->counters.refused++;
	return n;
}

static void want(struct net_port *port, const uint8_t ip[16], uint64_t now_ns)
{
	struct neighbour *n = neighbour_find(&port->neighbours, ip);
	if (n != NULL) {
		event_give(port, n, NEIGHBOUR_WANTED, now_ns);
		return;
	}
	if (add(port, ip, NEIGHBOUR_INCOMPLETE, now_ns) == NULL)
		return;
	port->counters.asked++;
	ask(port, ip, NULL);
}

static bool is_on_link(const struct net_port *port, const uint8_t ip[16])
{
	uint8_t hop[16];
	return dp_net_next_hop(&port->identity, ip, hop) && memcmp(hop, ip, 16) == 0;
}

static bool is_ours(const struct net_port *port, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < port->identity.address_count; i++) {
		if (memcmp(port->identity.addresses[i].ip, ip, 16) == 0)
			return true;
	}
	return false;
}

// A host told its MAC. `spoke_to_us`: reason enough to remember one that nobody asked for.
static void hear(struct net_port *port, const uint8_t ip[16], const uint8_t mac[6],
	bool spoke_to_us, uint64_t now_ns)
{
	struct neighbour *n = neighbour_find(&port->neighbours, ip);
	if (n == NULL && (!spoke_to_us || !is_on_link(port, ip)))
		return;
	if (n == NULL)
		n = add(port, ip, NEIGHBOUR_LEARNED, now_ns);
	if (n == NULL)
		return;
	if (memcmp(n->mac, mac, 6) != 0)
		port->counters.learned++;
	memcpy(n->mac, mac, 6);
	event_give(port, n, NEIGHBOUR_ANSWERED, now_ns);
}

// ---- announcing ----

static void announce(struct net_port *port)
{
	for (uint32_t i = 0; i < port->identity.address_count; i++) {
		const uint8_t *ip = port->identity.addresses[i].ip;
		uint32_t bytes =
			dp_net_ip_is_v4(ip)
				? net_arp_request_write(&port->identity, port->out, ip, ip, NULL)
				: net_advertisement_write(
					  &port->identity, port->out, ip, NULL, NULL);
		send_out(port, bytes);
		port->counters.announced++;
	}
}

// Somebody else speaks for our address: say once more that it is ours, then keep quiet for a while,
// or two stubborn hosts would shout at each other for ever.
static void conflict(struct net_port *port, uint64_t now_ns)
{
	port->counters.conflicts++;
	if (port->defended_ns != 0 && now_ns - port->defended_ns < CONFLICT_DEFENCE_NS)
		return;
	port->defended_ns = now_ns;
	announce(port);
}

// ---- answering ----

static void arp_take(struct net_port *port, const struct net_frame *frame, uint64_t now_ns)
{
	const uint8_t *sender = frame->as.arp.sender_ip, *target = frame->as.arp.target_ip;
	const uint8_t *mac = frame->as.arp.sender_mac;
	bool for_us = is_ours(port, target);
	bool probe = sender[12] == 0 && sender[13] == 0 && sender[14] == 0 && sender[15] == 0;
	if (is_ours(port, sender)) {
		if (memcmp(mac, port->identity.mac, 6) != 0)
			conflict(port, now_ns);
		return;
	}
	if (!probe)
		hear(port, sender, mac, for_us && frame->as.arp.request, now_ns);
	if (!for_us || !frame->as.arp.request)
		return;
	port->counters.arp_answered++;
	send_out(port, net_arp_reply_write(&port->identity, port->out, target, sender, mac));
}

static void solicitation_take(struct net_port *port, const struct net_frame *frame, uint64_t now_ns)
{
	const uint8_t *source = frame->as.nd.source_ip, *target = frame->as.nd.target_ip;
	if (memcmp(frame->link_source, port->identity.mac, 6) == 0)
		return; // our own, come back
	port->counters.nd_answered++;
	if (dp_net_ip_is_zero(source)) {
		// Somebody is about to take our address: all nodes are told whose it is.
		conflict(port, now_ns);
		send_out(port, net_advertisement_write(
				       &port->identity, port->out, target, NULL, NULL));
		return;
	}
	if (frame->as.nd.has_mac)
		hear(port, source, frame->as.nd.mac, true, now_ns);
	const uint8_t *mac = frame->as.nd.has_mac ? frame->as.nd.mac : frame->link_source;
	send_out(port,
		net_advertisement_write(&port->identity, port->out, target, source, mac));
}

static void advertisement_take(
	struct net_port *port, const struct net_frame *frame, uint64_t now_ns)
{
	const uint8_t *target = frame->as.nd.target_ip;
	if (is_ours(port, target)) {
		if (memcmp(frame->link_source, port->identity.mac, 6) != 0)
			conflict(port, now_ns);
		return;
	}
	struct neighbour *n = neighbour_find(&port->neighbours, target);
	if (n == NULL)
		return;
	bool known = n->state != NEIGHBOUR_INCOMPLETE && n->state != NEIGHBOUR_FAILED;
	const uint8_t *mac = frame->as.nd.mac;
	if (!frame->as.nd.has_mac) {
		if (!known)
			return;
		mac = n->mac; // "still here", without saying where: where it was
	}
	// Without the override flag a known address keeps its MAC.
	if (known && !frame->as.nd.override && memcmp(n->mac, mac, 6) != 0)
		return;
	hear(port, target, mac, false, now_ns);
}

// A bucket of NET_ECHO_BURST answers that fills at NET_ECHO_PER_SECOND.
static bool echo_is_allowed(struct net_port *port, uint64_t now_ns)
{
	const uint64_t price_ns = SECOND_NS / NET_ECHO_PER_SECOND;
	const uint64_t most_ns = price_ns * NET_ECHO_BURST;
	uint64_t passed_ns = now_ns - port->echo_filled_ns;
	port->echo_filled_ns = now_ns;
	if (passed_ns > most_ns)
		passed_ns = most_ns;
	port->echo_tokens_ns += passed_ns;
	if (port->echo_tokens_ns > most_ns)
		port->echo_tokens_ns = most_ns;
	if (port->echo_tokens_ns < price_ns)
		return false;
	port->echo_tokens_ns -= price_ns;
	return true;
}

static void echo_take(struct net_port *port, const struct net_frame *frame, uint64_t now_ns)
{
	if (!echo_is_allowed(port, now_ns)) {
		port->counters.echo_limited++;
		return;
	}
	port->counters.echo_answered++;
	send_out(port, net_echo_reply_write(&port->identity, port->out, frame));
}

static void frame_take(struct net_port *port, const struct dp_net_frame *raw, uint64_t now_ns)
{
	struct net_frame frame;
	port->counters.frames_in++;
	switch (net_frame_read(&port->identity, raw->data, raw->bytes, &frame)) {
	case NET_FRAME_ARP:
		arp_take(port, &frame, now_ns);
		return;
	case NET_FRAME_SOLICITATION:
		solicitation_take(port, &frame, now_ns);
		return;
	case NET_FRAME_ADVERTISEMENT:
		advertisement_take(port, &frame, now_ns);
		return;
	case NET_FRAME_ECHO:
		echo_take(port, &frame, now_ns);
		return;
	case NET_FRAME_FOREIGN:
		port->counters.frames_foreign++;
		return;
	case NET_FRAME_MALFORMED:
		port->counters.frames_malformed++;
		return;
	}
	CHECK(!"a net_frame_kind");
}

// ---- the port ----

static void gateway_add(struct net_port *port, const uint8_t ip[16], uint64_t now_ns)
{
	if (dp_net_ip_is_zero(ip))
		return;
	struct neighbour *n = add(port, ip, NEIGHBOUR_INCOMPLETE, now_ns);
	if (n == NULL)
		return;
	port->neighbours.pending--; // a gateway does not count against the others
	n->gateway = true;
	port->counters.asked++;
	ask(port, ip, NULL);
}

static void start(struct net_port *port, uint64_t now_ns)
{
	port->started = true;
	port->announce_ns = now_ns;
	port->echo_filled_ns = now_ns;
	port->echo_tokens_ns = SECOND_NS / NET_ECHO_PER_SECOND * NET_ECHO_BURST;
	gateway_add(port, port->identity.gateway_v4, now_ns);
	gateway_add(port, port->identity.gateway_v6, now_ns);
}

struct net_port *net_port_create(const struct dp_net_identity *identity, const struct dp_net_io *io)
{
	CHECK(identity->address_count <= DP_NET_ADDRESSES_MAX);
	struct net_port *port = mem_zalloc(sizeof(*port));
	if (port == NULL)
		return NULL;
	port->identity = *identity;
	port->io = *io;
	return port;
}

void net_port_destroy(struct net_port *port)
{
	if (port == NULL)
		return;
	neighbour_table_fini(&port->neighbours);
	mem_free(port);
}

static void due_do(struct net_port *port, uint64_t now_ns)
{
	enum neighbour_event event;
	struct neighbour *n;
	// Each entry is due once at a given moment, so the table's size is the ceiling.
	for (uint32_t i = 0; i < NEIGHBOURS_MAX; i++) {
		n = neighbour_due(&port->neighbours, now_ns, &event);
		if (n == NULL)
			break;
		event_give(port, n, event, now_ns);
	}
	if (port->announcements < NET_ANNOUNCEMENTS && now_ns >= port->announce_ns) {
		port->announce_ns = now_ns + (SECOND_NS << port->announcements);
		port->announcements++;
		announce(port);
	}
}

uint64_t net_port_step(struct net_port *port, uint64_t now_ns)
{
	struct dp_net_frame raw;
	uint8_t ip[16];
	uint32_t frames = 0;
	if (!port->started)
		start(port, now_ns);
	port->io.begin(port->io.self);
	for (; frames < NET_FRAMES_PER_STEP && port->io.receive(port->io.self, &raw); frames++)
		frame_take(port, &raw, now_ns);
	for (uint32_t i = 0; i < NET_FRAMES_PER_STEP && port->io.wanted(port->io.self, ip); i++)
		want(port, ip, now_ns);
	due_do(port, now_ns);
	if (frames == NET_FRAMES_PER_STEP)
		return now_ns; // there may be more
	uint64_t next = now_ns + SECOND_NS;
	if (port->announcements < NET_ANNOUNCEMENTS && port->announce_ns < next)
		next = port->announce_ns;
	if (port->neighbours.count > 0 && port->neighbours.due_ns < next)
		next = port->neighbours.due_ns;
	return next < now_ns ? now_ns : next;
}

const struct net_counters *net_port_counters(const struct net_port *port)
{
	return &port->counters;
}

const struct neighbour *net_port_neighbour_at(const struct net_port *port, uint32_t index)
{
	return index < port->neighbours.count ? port->neighbours.entries[index] : NULL;
}
