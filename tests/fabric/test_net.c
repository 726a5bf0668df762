// SPDX-License-Identifier: BSD-3-Clause

// Control's neighbour code over a fake link and a fake clock.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "dp/inet.h"
#include "net/frames.h"
#include "net/net.h"

#define SECOND UINT64_C(1000000000)

enum { QUEUE_MAX = 600, PUBLISHED_MAX = 1024 };

struct raw {
	uint32_t bytes;
	uint8_t data[DP_NET_FRAME_BYTES_MAX];
};

struct fake {
	struct raw in[QUEUE_MAX], out[QUEUE_MAX];
	uint32_t in_first, in_count, out_count;
	uint8_t wanted[QUEUE_MAX][16];
	uint32_t wanted_first, wanted_count;
	struct {
		uint8_t ip[16], mac[6];
	} published[PUBLISHED_MAX];
	uint32_t published_count;
	bool send_full;
	struct net_port *port;
	uint64_t now;
};

static void fake_begin(void *self)
{
	(void)self;
}

static bool fake_receive(void *self, struct dp_net_frame *out)
{
	struct fake *f = self;
	if (f->in_first == f->in_count)
		return false;
	struct raw *raw = &f->in[f->in_first++];
	*out = (struct dp_net_frame){raw->data, raw->bytes};
	return true;
}

static bool fake_send(void *self, const uint8_t *data, uint32_t bytes)
{
	struct fake *f = self;
	if (f->send_full || f->out_count == QUEUE_MAX)
		return false;
	memcpy(f->out[f->out_count].data, data, bytes);
	f->out[f->out_count++].bytes = bytes;
	return true;
}

static bool fake_wanted(void *self, uint8_t out_ip[16])
{
	struct fake *f = self;
	if (f->wanted_first == f->wanted_count)
		return false;
	memcpy(out_ip, f->wanted[f->wanted_first++], 16);
	return true;
}

static uint32_t published_at(const struct fake *f, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < f->published_count; i++) {
		if (memcmp(f->published[i].ip, ip, 16) == 0)
			return i;
	}
	return PUBLISHED_MAX;
}

static void fake_set(void *self, const uint8_t ip[16], const uint8_t mac[6])
{
	struct fake *f = self;
	uint32_t at = published_at(f, ip);
	if (at == PUBLISHED_MAX)
		at = f->published_count++;
	assert_true(at < PUBLISHED_MAX);
	memcpy(f->published[at].ip, ip, 16);
	memcpy(f->published[at].mac, mac, 6);
}

static void fake_clear(void *self, const uint8_t ip[16])
{
	struct fake *f = self;
	uint32_t at = published_at(f, ip);
	if (at != PUBLISHED_MAX)
		f->published[at] = f->published[--f->published_count];
}

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, host_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 8};
static const uint8_t our_v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t host_v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
static const uint8_t far_v4[16] = {[10] = 0xff, 0xff, 10, 7, 0, 9};
static const uint8_t our_v6[16] = {0xfd, 0x99, [15] = 1}, host_v6[16] = {0xfd, 0x99, [15] = 9};
static const uint8_t our_local[16] = {0xfe, 0x80, [15] = 1};
static const uint8_t host_local[16] = {0xfe, 0x80, [15] = 9};

static struct dp_net_identity identity_of(
	const uint8_t mac[6], const uint8_t v4[16], const uint8_t v6[16], const uint8_t local[16])
{
	struct dp_net_identity id = {.address_count = 3, .mtu = 1500};
	memcpy(id.mac, mac, 6);
	memcpy(id.addresses[0].ip, v4, 16);
	memcpy(id.addresses[1].ip, v6, 16);
	memcpy(id.addresses[2].ip, local, 16);
	id.addresses[0].prefix_bits = 120;
	id.addresses[1].prefix_bits = 64;
	id.addresses[2].prefix_bits = 64;
	return id;
}

static struct dp_net_identity ours, host;

static void fake_open(struct fake *f, const struct dp_net_identity *identity)
{
	struct dp_net_io io = {f, -1, fake_begin, fake_receive, fake_send, fake_wanted, fake_set,
		fake_clear};
	f->port = net_port_create(identity, &io);
	f->now = 100 * SECOND;
	assert_non_null(f->port);
	net_port_step(f->port, f->now);
}

static int setup(void **state)
{
	struct fake *f = mem_zalloc(sizeof(*f));
	ours = identity_of(our_mac, our_v4, our_v6, our_local);
	host = identity_of(host_mac, host_v4, host_v6, host_local);
	fake_open(f, &ours);
	f->out_count = 0; // the first announcement
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fake *f = *state;
	net_port_destroy(f->port);
	mem_free(f);
	return 0;
}

static uint8_t *push(struct fake *f)
{
	assert_true(f->in_count < QUEUE_MAX);
	return f->in[f->in_count].data;
}

static void pushed(struct fake *f, uint32_t bytes)
{
	f->in[f->in_count++].bytes = bytes;
}

static void step(struct fake *f)
{
	f->out_count = 0;
	net_port_step(f->port, f->now);
}

// Steps until `until`, as often as the port asks for; counts sent frames of a kind.
static uint32_t run_until(struct fake *f, uint64_t until, enum net_frame_kind kind)
{
	uint32_t count = 0;
	while (f->now <= until) {
		f->out_count = 0;
		uint64_t next = net_port_step(f->port, f->now);
		for (uint32_t i = 0; i < f->out_count; i++) {
			struct net_frame frame;
			// What we send is read as the host would.
			count += net_frame_read(&host, f->out[i].data, f->out[i].bytes, &frame) ==
				 kind;
		}
		f->now = next > f->now ? next : f->now + 1;
	}
	f->now = until;
	return count;
}

static void want(struct fake *f, const uint8_t ip[16])
{
	assert_true(f->wanted_count < QUEUE_MAX);
	memcpy(f->wanted[f->wanted_count++], ip, 16);
}

static enum net_frame_kind reply(const struct fake *f, uint32_t at, struct net_frame *out)
{
	assert_true(at < f->out_count);
	return net_frame_read(&host, f->out[at].data, f->out[at].bytes, out);
}

// ---- answering ----

static void x__arp_for_us_is_answered(void **state)
{
	struct fake *f = *state;
	struct net_frame frame;
	pushed(f, net_arp_request_write(&host, push(f), host_v4, our_v4, NULL));
	step(f);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(reply(f, 0, &frame), NET_FRAME_ARP);
	assert_false(frame.as.arp.request);
	assert_memory_equal(frame.as.arp.sender_ip, our_v4, 16);
	assert_memory_equal(frame.as.arp.sender_mac, our_mac, 6);
	assert_memory_equal(frame.as.arp.target_ip, host_v4, 16);
	assert_memory_equal(f->out[0].data, host_mac, 6); // to the asker alone
	assert_int_not_equal(published_at(f, host_v4), PUBLISHED_MAX); // it told its own
	pushed(f, net_arp_request_write(&host, push(f), host_v4, far_v4, NULL));
	step(f);
	assert_int_equal(f->out_count, 0);
}

static void x__an_arp_probe_is_answered_and_teaches_nothing(void **state)
{
	struct fake *f = *state;
	static const uint8_t unspecified[16] = {[10] = 0xff, 0xff};
	pushed(f, net_arp_request_write(&host, push(f), unspecified, our_v4, NULL));
	step(f);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->published_count, 0);
}

static void x__solicitations_are_answered(void **state)
{
	struct fake *f = *state;
	static const struct {
		const uint8_t *from, *target;
	} cases[] = {{host_v6, our_v6}, {host_local, our_local}, {host_local, our_v6}};
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct net_frame frame;
		pushed(f, net_solicitation_write(
				  &host, push(f), cases[i].from, cases[i].target, NULL));
		step(f);
		assert_int_equal(f->out_count, 1);
		assert_int_equal(reply(f, 0, &frame), NET_FRAME_ADVERTISEMENT);
		assert_memory_equal(frame.as.nd.target_ip, cases[i].target, 16);
		assert_memory_equal(frame.as.nd.mac, our_mac, 6);
		assert_true(frame.as.nd.solicited);
		assert_int_not_equal(published_at(f, cases[i].from), PUBLISHED_MAX);
	}
}

static void icmpv6_mend(uint8_t *frame)
{
	uint8_t *ip = frame + 14, *icmp = ip + 40;
	uint32_t bytes = inet_be16(ip + 4);
	memset(icmp + 2, 0, 2);
	uint16_t checksum = inet_checksum(inet_sum(icmp, bytes,
		inet_pseudo_sum(ip + 8, 16, INET_PROTOCOL_ICMPV6, bytes)));
	memcpy(icmp + 2, &checksum, 2);
}

static void x__a_duplicate_address_check_is_told_to_all(void **state)
{
	struct fake *f = *state;
	struct net_frame frame;
	static const uint8_t unspecified[16], all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	uint8_t *data = push(f);
	uint32_t bytes = net_solicitation_write(&host, data, unspecified, our_v6, NULL);
	inet_put_be16(data + 14 + 4, 24); // such a question carries no address option
	icmpv6_mend(data);
	pushed(f, bytes - 8);
	step(f);
	assert_true(f->out_count >= 1);
	assert_int_equal(reply(f, f->out_count - 1, &frame), NET_FRAME_ADVERTISEMENT);
	assert_false(frame.as.nd.solicited);
	assert_memory_equal(f->out[f->out_count - 1].data, all_nodes_mac, 6);
	assert_int_equal(net_port_counters(f->port)->conflicts, 1);
}

static uint32_t echo_v4_make(uint8_t *out, uint32_t data_bytes)
{
	// An ARP frame gives the link header; the rest is written over it.
	net_arp_request_write(&host, out, host_v4, our_v4, our_mac);
	inet_put_be16(out + 12, INET_TYPE_IPV4);
	uint8_t *ip = out + 14, *icmp = ip + 20;
	const uint8_t start[12] = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, INET_PROTOCOL_ICMP};
	memcpy(ip, start, 12);
	inet_put_be16(ip + 2, (uint16_t)(28 + data_bytes));
	memcpy(ip + 12, host_v4 + 12, 4);
	memcpy(ip + 16, our_v4 + 12, 4);
	uint16_t checksum = inet_checksum(inet_sum(ip, 20, 0));
	memcpy(ip + 10, &checksum, 2);
	const uint8_t header[8] = {8, 0, 0, 0, 0x12, 0x34, 0, 1};
	memcpy(icmp, header, 8);
	for (uint32_t i = 0; i < data_bytes; i++)
		icmp[8 + i] = (uint8_t)i;
	checksum = inet_checksum(inet_sum(icmp, 8 + data_bytes, 0));
	memcpy(icmp + 2, &checksum, 2);
	return 14 + 28 + data_bytes;
}

static uint32_t echo_v6_make(uint8_t *out, uint32_t data_bytes)
{
	net_solicitation_write(&host, out, host_v6, our_v6, our_mac);
	inet_put_be16(out + 14 + 4, (uint16_t)(8 + data_bytes));
	out[14 + 7] = 64;
	uint8_t *icmp = out + 54;
	const uint8_t header[8] = {128, 0, 0, 0, 0x12, 0x34, 0, 1};
	memcpy(icmp, header, 8);
	for (uint32_t i = 0; i < data_bytes; i++)
		icmp[8 + i] = (uint8_t)i;
	icmpv6_mend(out);
	return 54 + 8 + data_bytes;
}

static void x__echo_is_answered(void **state)
{
	struct fake *f = *state;
	for (uint32_t data_bytes = 0; data_bytes <= 1400; data_bytes += 175) {
		pushed(f, echo_v4_make(push(f), data_bytes));
		pushed(f, echo_v6_make(push(f), data_bytes));
		step(f);
		assert_int_equal(f->out_count, 2);
		const uint8_t *v4 = f->out[0].data + 34, *v6 = f->out[1].data + 54;
		assert_int_equal(f->out[0].bytes, 42 + data_bytes);
		assert_int_equal(f->out[1].bytes, 62 + data_bytes);
		assert_int_equal(v4[0], 0);
		assert_int_equal(v6[0], 129);
		assert_true(inet_sum_is_good(inet_sum(v4, 8 + data_bytes, 0)));
		assert_memory_equal(f->out[0].data + 14 + 16, host_v4 + 12, 4);
		assert_memory_equal(f->out[1].data + 14 + 24, host_v6, 16);
		for (uint32_t i = 0; i < data_bytes; i++)
			assert_true(v4[8 + i] == (uint8_t)i && v6[8 + i] == (uint8_t)i);
	}
}

static void I20__echo_is_limited(void **state)
{
	struct fake *f = *state;
	for (uint32_t i = 0; i < 250; i++)
		pushed(f, echo_v4_make(push(f), 8));
	step(f);
	assert_int_equal(f->out_count, NET_ECHO_BURST);
	assert_int_equal(net_port_counters(f->port)->echo_limited, 250 - NET_ECHO_BURST);
	f->now += SECOND / 100; // ten more answers
	for (uint32_t i = 0; i < 50; i++)
		pushed(f, echo_v4_make(push(f), 8));
	step(f);
	assert_int_equal(f->out_count, 10);
}

// ---- resolving ----

static void x__a_wanted_neighbour_is_asked_for_and_published(void **state)
{
	struct fake *f = *state;
	struct net_frame frame;
	want(f, host_v4);
	want(f, host_v4);
	want(f, host_v6);
	step(f);
	assert_int_equal(f->out_count, 2); // once each
	assert_int_equal(reply(f, 0, &frame), NET_FRAME_ARP);
	assert_true(frame.as.arp.request);
	assert_memory_equal(frame.as.arp.target_ip, host_v4, 16);
	assert_int_equal(reply(f, 1, &frame), NET_FRAME_SOLICITATION);
	assert_memory_equal(frame.as.nd.target_ip, host_v6, 16);
	assert_memory_equal(frame.as.nd.source_ip, our_v6, 16);
	assert_int_equal(f->published_count, 0);
	pushed(f, net_arp_reply_write(&host, push(f), host_v4, our_v4, our_mac));
	pushed(f, net_advertisement_write(&host, push(f), host_v6, our_v6, our_mac));
	step(f);
	assert_int_equal(f->published_count, 2);
	assert_memory_equal(f->published[published_at(f, host_v4)].mac, host_mac, 6);
	assert_memory_equal(f->published[published_at(f, host_v6)].mac, host_mac, 6);
}

static void x__asking_backs_off_and_ends(void **state)
{
	struct fake *f = *state;
	run_until(f, f->now + 20 * SECOND, NET_FRAME_ARP); // announcements are over
	want(f, host_v4);
	uint64_t start = f->now;
	assert_int_equal(run_until(f, start + SECOND - 1, NET_FRAME_ARP), 1);
	assert_int_equal(run_until(f, start + 3 * SECOND - 1, NET_FRAME_ARP), 1);
	assert_int_equal(run_until(f, start + 7 * SECOND - 1, NET_FRAME_ARP), 1);
	want(f, host_v4); // failed, remembered: not asked again for a while
	assert_int_equal(run_until(f, start + 8 * SECOND, NET_FRAME_ARP), 0);
	run_until(f, start + 13 * SECOND, NET_FRAME_ARP);
	want(f, host_v4);
	assert_int_equal(run_until(f, f->now, NET_FRAME_ARP), 1);
}

static void x__a_silent_neighbour_is_probed_then_withdrawn(void **state)
{
	struct fake *f = *state;
	want(f, host_v4);
	step(f);
	pushed(f, net_arp_reply_write(&host, push(f), host_v4, our_v4, our_mac));
	step(f);
	assert_int_equal(f->published_count, 1);
	uint64_t start = f->now;
	run_until(f, start + 29 * SECOND, NET_FRAME_ARP);
	assert_int_equal(net_port_counters(f->port)->probed, 0);
	f->now = start + 30 * SECOND;
	step(f);
	assert_int_equal(f->out_count, 1);
	assert_memory_equal(f->out[0].data, host_mac, 6); // asked alone
	assert_int_equal(f->published_count, 1); // still in use meanwhile
	run_until(f, start + 40 * SECOND, NET_FRAME_ARP);
	assert_int_equal(net_port_counters(f->port)->probed, NEIGHBOUR_TRIES_MAX);
	assert_int_equal(f->published_count, 0);
}

static void x__an_answered_probe_keeps_a_neighbour(void **state)
{
	struct fake *f = *state;
	want(f, host_v6);
	step(f);
	for (uint32_t round = 0; round < 10; round++) {
		pushed(f, net_advertisement_write(&host, push(f), host_v6, our_v6, our_mac));
		run_until(f, f->now + 31 * SECOND, NET_FRAME_SOLICITATION);
		assert_int_equal(f->published_count, 1);
	}
}

static void x__a_neighbour_that_moved_is_published_anew(void **state)
{
	struct fake *f = *state;
	struct dp_net_identity moved = host;
	memcpy(moved.mac, other_mac, 6);
	want(f, host_v4);
	want(f, host_v6);
	step(f);
	pushed(f, net_arp_reply_write(&host, push(f), host_v4, our_v4, our_mac));
	pushed(f, net_advertisement_write(&host, push(f), host_v6, our_v6, our_mac));
	step(f);
	pushed(f, net_arp_request_write(&moved, push(f), host_v4, host_v4, NULL)); // gratuitous
	pushed(f, net_advertisement_write(&moved, push(f), host_v6, NULL, NULL));  // unsolicited
	step(f);
	assert_memory_equal(f->published[published_at(f, host_v4)].mac, other_mac, 6);
	assert_memory_equal(f->published[published_at(f, host_v6)].mac, other_mac, 6);
	// Without the override flag a known address keeps its MAC.
	uint8_t *data = push(f);
	uint32_t bytes = net_advertisement_write(&host, data, host_v6, NULL, NULL);
	data[54 + 4] = 0;
	icmpv6_mend(data);
	pushed(f, bytes);
	step(f);
	assert_memory_equal(f->published[published_at(f, host_v6)].mac, other_mac, 6);
}

static void x__a_published_neighbour_is_published_again_when_asked(void **state)
{
	struct fake *f = *state;
	want(f, host_v4);
	step(f);
	pushed(f, net_arp_reply_write(&host, push(f), host_v4, our_v4, our_mac));
	step(f);
	f->published_count = 0; // overwritten in a full bucket
	want(f, host_v4);
	step(f);
	assert_int_equal(f->published_count, 1);
}

static void x__learned_neighbours_are_forgotten(void **state)
{
	struct fake *f = *state;
	pushed(f, net_arp_request_write(&host, push(f), host_v4, our_v4, NULL));
	step(f);
	assert_int_equal(f->published_count, 1);
	run_until(f, f->now + 61 * SECOND, NET_FRAME_ARP);
	assert_int_equal(f->published_count, 0);
	assert_null(net_port_neighbour_at(f->port, 0));
}

static void I20__strangers_cannot_fill_the_table(void **state)
{
	struct fake *f = *state;
	want(f, host_v4);
	step(f);
	pushed(f, net_arp_reply_write(&host, push(f), host_v4, our_v4, our_mac));
	step(f);
	for (uint32_t i = 0; i < 2000; i++) {
		uint8_t ip[16];
		memcpy(ip, host_v6, 16);
		memcpy(ip + 8, &i, 4);
		f->in_first = f->in_count = 0;
		pushed(f, net_solicitation_write(&host, push(f), ip, our_v6, NULL));
		step(f);
	}
	uint32_t count = 0;
	while (net_port_neighbour_at(f->port, count) != NULL)
		count++;
	assert_int_equal(count, NEIGHBOURS_MAX);
	assert_int_equal(f->published_count, NEIGHBOURS_MAX);
	assert_int_not_equal(published_at(f, host_v4), PUBLISHED_MAX); // wanted ones stay
}

static void I20__unanswered_questions_are_bounded(void **state)
{
	struct fake *f = *state;
	for (uint32_t i = 0; i < 200; i++) {
		uint8_t ip[16];
		memcpy(ip, host_v6, 16);
		memcpy(ip + 8, &i, 4);
		want(f, ip);
	}
	step(f);
	assert_int_equal(f->out_count, NEIGHBOURS_PENDING_MAX);
	assert_int_equal(net_port_counters(f->port)->refused, 200 - NEIGHBOURS_PENDING_MAX);
	run_until(f, f->now + 30 * SECOND, NET_FRAME_SOLICITATION);
	want(f, host_v6); // they ended; there is room again
	f->now += SECOND;
	step(f);
	assert_int_equal(net_port_counters(f->port)->refused, 200 - NEIGHBOURS_PENDING_MAX);
}

static void x__off_link_hosts_are_not_learned(void **state)
{
	struct fake *f = *state;
	pushed(f, net_arp_request_write(&host, push(f), far_v4, our_v4, NULL));
	step(f);
	assert_int_equal(f->out_count, 1); // an answer, as any host gives
	assert_int_equal(f->published_count, 0);
}

// ---- gateways and announcements ----

static void x__gateways_are_asked_for_from_the_start_and_never_given_up(void **state)
{
	struct fake *g = mem_zalloc(sizeof(*g));
	struct dp_net_identity with = ours;
	(void)state;
	memcpy(with.gateway_v4, host_v4, 16);
	memcpy(with.gateway_v6, host_local, 16);
	fake_open(g, &with);
	assert_int_equal(net_port_counters(g->port)->asked, 2);
	run_until(g, g->now + 300 * SECOND, NET_FRAME_ARP);
	assert_true(net_port_counters(g->port)->asked > 20);
	pushed(g, net_arp_reply_write(&host, push(g), host_v4, our_v4, our_mac));
	pushed(g, net_advertisement_write(&host, push(g), host_local, our_local, our_mac));
	step(g);
	assert_int_equal(g->published_count, 2);
	run_until(g, g->now + 100 * SECOND, NET_FRAME_ARP); // silent: withdrawn, still asked for
	assert_int_equal(g->published_count, 0);
	assert_non_null(net_port_neighbour_at(g->port, 1));
	net_port_destroy(g->port);
	mem_free(g);
}

static void x__all_addresses_are_announced_three_times(void **state)
{
	struct fake *f = *state;
	struct net_frame frame;
	assert_int_equal(net_port_counters(f->port)->announced, 3);
	f->now += SECOND;
	step(f);
	assert_int_equal(f->out_count, 3);
	assert_int_equal(reply(f, 0, &frame), NET_FRAME_ARP);
	assert_memory_equal(frame.as.arp.sender_ip, our_v4, 16);
	assert_memory_equal(frame.as.arp.target_ip, our_v4, 16);
	assert_int_equal(reply(f, 1, &frame), NET_FRAME_ADVERTISEMENT);
	assert_true(frame.as.nd.override);
	assert_memory_equal(frame.as.nd.target_ip, our_v6, 16);
	assert_int_equal(reply(f, 2, &frame), NET_FRAME_ADVERTISEMENT);
	run_until(f, f->now + 60 * SECOND, NET_FRAME_ARP);
	assert_int_equal(net_port_counters(f->port)->announced, 9);
}

static void x__an_address_conflict_is_answered_once_in_a_while(void **state)
{
	struct fake *f = *state;
	struct dp_net_identity thief = identity_of(other_mac, our_v4, our_v6, our_local);
	for (uint32_t i = 0; i < 5; i++)
		pushed(f, net_arp_request_write(&thief, push(f), our_v4, our_v4, NULL));
	step(f);
	assert_int_equal(net_port_counters(f->port)->conflicts, 5);
	assert_int_equal(f->out_count, 3);
	assert_int_equal(f->published_count, 0);
}

static void P3__what_cannot_be_sent_is_counted(void **state)
{
	struct fake *f = *state;
	f->send_full = true;
	pushed(f, net_arp_request_write(&host, push(f), host_v4, our_v4, NULL));
	step(f);
	assert_int_equal(net_port_counters(f->port)->send_full, 1);
}

// ---- hostile frames ----

static enum net_frame_kind read_exact(const uint8_t *data, uint32_t bytes)
{
	struct net_frame frame;
	uint8_t *exact = malloc(bytes != 0 ? bytes : 1);
	assert_non_null(exact);
	memcpy(exact, data, bytes);
	enum net_frame_kind kind =
		net_frame_read(&ours, bytes != 0 ? exact : exact + 1, bytes, &frame);
	free(exact);
	return kind;
}

static void I20__truncated_frames_are_malformed(void **state)
{
	uint8_t data[DP_NET_FRAME_BYTES_MAX];
	(void)state;
	for (uint32_t kind = 0; kind < 5; kind++) {
		uint32_t bytes =
			kind == 0   ? net_arp_request_write(&host, data, host_v4, our_v4, NULL)
			: kind == 1 ? net_solicitation_write(&host, data, host_v6, our_v6, NULL)
			: kind == 2 ? net_advertisement_write(&host, data, host_v6, our_v6, our_mac)
			: kind == 3 ? echo_v4_make(data, 20)
				    : echo_v6_make(data, 20);
		assert_true(read_exact(data, bytes) < NET_FRAME_FOREIGN);
		for (uint32_t cut = 0; cut < bytes; cut++)
			assert_int_equal(read_exact(data, cut), NET_FRAME_MALFORMED);
	}
}

static void I20__crafted_frames_are_not_taken(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		enum { ARP, SOLICIT, ADVERT, ECHO4, ECHO6 } base;
		uint32_t at;
		uint8_t value;
		bool mend; // the ICMPv6 checksum
		enum net_frame_kind expected;
	} cases[] = {
		{"hardware type", ARP, 15, 6, false, NET_FRAME_FOREIGN},
		{"address length", ARP, 18, 8, false, NET_FRAME_FOREIGN},
		{"operation", ARP, 21, 9, false, NET_FRAME_FOREIGN},
		{"sender a group", ARP, 22, 1, false, NET_FRAME_MALFORMED},
		{"link source a group", ARP, 6, 1, false, NET_FRAME_MALFORMED},
		{"through a router", SOLICIT, 14 + 7, 254, false, NET_FRAME_MALFORMED},
		{"checksum", SOLICIT, 54 + 20, 77, false, NET_FRAME_MALFORMED},
		{"code", SOLICIT, 54 + 1, 1, true, NET_FRAME_MALFORMED},
		{"target a group", SOLICIT, 54 + 8, 0xff, true, NET_FRAME_MALFORMED},
		{"target another", SOLICIT, 54 + 23, 99, true, NET_FRAME_FOREIGN},
		{"option of no size", SOLICIT, 54 + 25, 0, true, NET_FRAME_MALFORMED},
		{"option too long", SOLICIT, 54 + 25, 2, true, NET_FRAME_MALFORMED},
		{"option's MAC a group", SOLICIT, 54 + 26, 1, true, NET_FRAME_MALFORMED},
		{"source a group", SOLICIT, 14 + 8, 0xff, true, NET_FRAME_MALFORMED},
		{"checksum", ADVERT, 54 + 20, 77, false, NET_FRAME_MALFORMED},
		{"through a router", ADVERT, 14 + 7, 64, false, NET_FRAME_MALFORMED},
		{"header checksum", ECHO4, 14 + 8, 1, false, NET_FRAME_MALFORMED},
		{"echo checksum", ECHO4, 34 + 9, 77, false, NET_FRAME_MALFORMED},
		{"echo checksum", ECHO6, 54 + 9, 77, false, NET_FRAME_MALFORMED},
		{"echo to another", ECHO6, 14 + 39, 77, true, NET_FRAME_FOREIGN},
		{"another ICMPv6 type", ECHO6, 54, 130, true, NET_FRAME_FOREIGN},
	};
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint8_t data[DP_NET_FRAME_BYTES_MAX];
		uint32_t bytes = 0;
		switch (cases[i].base) {
		case ARP:
			bytes = net_arp_request_write(&host, data, host_v4, our_v4, NULL);
			break;
		case SOLICIT:
			bytes = net_solicitation_write(&host, data, host_v6, our_v6, NULL);
			break;
		case ADVERT:
			bytes = net_advertisement_write(&host, data, host_v6, our_v6, our_mac);
			break;
		case ECHO4:
			bytes = echo_v4_make(data, 20);
			break;
		case ECHO6:
			bytes = echo_v6_make(data, 20);
			break;
		}
		data[cases[i].at] = cases[i].value;
		if (cases[i].mend)
			icmpv6_mend(data);
		enum net_frame_kind kind = read_exact(data, bytes);
		if (kind != cases[i].expected)
			fail_msg("%s: %d instead of %d", cases[i].what, kind, cases[i].expected);
	}
}

static void I20__random_frames_do_no_harm(void **state)
{
	struct fake *f = *state;
	struct rng rng;
	rng_seed(&rng, 3);
	for (uint32_t round = 0; round < 50000; round++) {
		f->in_first = f->in_count = 0;
		uint8_t *data = push(f);
		uint32_t bytes = round % 2 != 0
					 ? net_solicitation_write(&host, data, host_v6, our_v6, NULL)
					 : echo_v4_make(data, 30);
		for (uint32_t i = 0; i < 3; i++)
			data[rng_below(&rng, bytes)] = (uint8_t)rng_u64(&rng);
		if (round % 2 != 0 && round % 4 == 1)
			icmpv6_mend(data);
		pushed(f, (uint32_t)rng_below(&rng, bytes + 1));
		f->now += 1000;
		step(f);
	}
	assert_int_equal(net_port_counters(f->port)->frames_in, 50000);
}

// ---- the state table ----

static void x__every_state_and_event_is_decided(void **state)
{
	(void)state;
	for (uint32_t s = 0; s < NEIGHBOUR_STATES; s++) {
		for (uint32_t e = 0; e < NEIGHBOUR_EVENTS; e++) {
			struct neighbour_step step_ = neighbour_steps[s][e];
			assert_in_range(step_.effect, NEIGHBOUR_NOTHING, NEIGHBOUR_IMPOSSIBLE);
			assert_int_equal(step_.next == 0, step_.effect == NEIGHBOUR_FORGET);
			assert_true(step_.next <= NEIGHBOUR_STATES);
			// Whatever tells a MAC ends published.
			if (e + 1 == NEIGHBOUR_ANSWERED)
				assert_int_equal(step_.effect, NEIGHBOUR_PUBLISH);
			// What leaves the published states is withdrawn.
			bool was = s + 1 >= NEIGHBOUR_REACHABLE && s + 1 <= NEIGHBOUR_LEARNED;
			bool is = step_.next >= NEIGHBOUR_REACHABLE &&
				  step_.next <= NEIGHBOUR_LEARNED;
			if (was && !is)
				assert_true(step_.effect == NEIGHBOUR_WITHDRAW ||
					    step_.effect == NEIGHBOUR_FORGET);
			if (!was && is)
				assert_int_equal(step_.effect, NEIGHBOUR_PUBLISH);
		}
	}
}

static void x__short_memory_is_a_verdict(void **state)
{
	struct fake *f = *state;
	struct dp_net_io io = {0};
	mem_fail_nth(1, 0);
	assert_null(net_port_create(&ours, &io));
	mem_fail_nth(1, 0);
	want(f, host_v4);
	step(f);
	mem_fail_nth(0, 0);
	assert_int_equal(net_port_counters(f->port)->refused, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(x__arp_for_us_is_answered),
		TEST(x__an_arp_probe_is_answered_and_teaches_nothing),
		TEST(x__solicitations_are_answered),
		TEST(x__a_duplicate_address_check_is_told_to_all),
		TEST(x__echo_is_answered),
		TEST(I20__echo_is_limited),
		TEST(x__a_wanted_neighbour_is_asked_for_and_published),
		TEST(x__asking_backs_off_and_ends),
		TEST(x__a_silent_neighbour_is_probed_then_withdrawn),
		TEST(x__an_answered_probe_keeps_a_neighbour),
		TEST(x__a_neighbour_that_moved_is_published_anew),
		TEST(x__a_published_neighbour_is_published_again_when_asked),
		TEST(x__learned_neighbours_are_forgotten),
		TEST(I20__strangers_cannot_fill_the_table),
		TEST(I20__unanswered_questions_are_bounded),
		TEST(x__off_link_hosts_are_not_learned),
		TEST(x__gateways_are_asked_for_from_the_start_and_never_given_up),
		TEST(x__all_addresses_are_announced_three_times),
		TEST(x__an_address_conflict_is_answered_once_in_a_while),
		TEST(P3__what_cannot_be_sent_is_counted),
		TEST(I20__truncated_frames_are_malformed),
		TEST(I20__crafted_frames_are_not_taken),
		TEST(I20__random_frames_do_no_harm),
		TEST(x__every_state_and_event_is_decided),
		TEST(x__short_memory_is_a_verdict),
	};
#undef TEST
	return cmocka_run_group_tests_name("control net", tests, NULL, NULL);
}
