// SPDX-License-Identifier: BSD-3-Clause

// The DPDK fabric in one process, without privileges or hugepages: the contract over a pair of rings
// and over a memif pair, then what is DPDK's own. EAL starts once a process, so this is one program.

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/mem.h"
#include "contract.h"
#include "fabric/dpdk.h"
#include "fabric/packet.h"
#include "net/frames.h"
#include "net/net.h"

#include <rte_alarm.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>

enum { UDP_PORT = 7000 };

// What librte_net_ring makes of "a" and "b".
#define RING_A "net_ring_a"
#define RING_B "net_ring_b"

static struct fabric_dpdk_eal eal;
static cpu_set_t affinity_before;

static void identity_make(struct dp_net_identity *out, uint8_t host, bool v6)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, host}, v4[4] = {10, 1, 0, host};
	*out = (struct dp_net_identity){.address_count = 1};
	memcpy(out->mac, mac, 6);
	peer_ip_from_v4(out->addresses[0].ip, v4);
	out->addresses[0].prefix_bits = 96 + 24;
	if (!v6)
		return;
	const uint8_t ip[16] = {0xfd, 0, 0, 0x99, [15] = host};
	out->address_count = 2;
	memcpy(out->addresses[1].ip, ip, 16);
	out->addresses[1].prefix_bits = 64;
}

static struct fabric_dpdk_port *port_open(const char *device, uint8_t host, uint16_t vlan)
{
	struct fabric_dpdk_port_config config = {.device = device,
		.fabric = host,
		.udp_port = UDP_PORT,
		.workers = 1,
		.frames = 1024};
	struct fabric_dpdk_port *port;
	struct fabric_why why;
	identity_make(&config.identity, host, true);
	config.identity.vlan = vlan;
	if (!fabric_dpdk_port_open(&config, &port, &why)) {
		print_error("%s\n", why.text);
		return NULL;
	}
	return port;
}

// address: 0 = IPv4, 1 = IPv6.
static struct peer peer_at(struct fabric_dpdk_port *port, uint32_t address)
{
	const struct dp_net_identity *identity = fabric_dpdk_port_identity(port);
	struct peer p = {.port = UDP_PORT};
	memcpy(p.ip, identity->addresses[address].ip, 16);
	memcpy(p.mac, identity->mac, 6);
	return p;
}

static struct contract_pair pair_make(
	struct fabric_dpdk_port *a, struct fabric_dpdk_port *b, uint32_t address)
{
	return (struct contract_pair){.a = fabric_dpdk_port_queue(a, 0),
		.b = fabric_dpdk_port_queue(b, 0),
		.at_a = peer_at(a, address),
		.at_b = peer_at(b, address)};
}

// ---- rings ----

static struct rte_ring *ring_names[2];

static void rings_make(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		char name[16];
		snprintf(name, sizeof(name), "cross%u", i);
		ring_names[i] = rte_ring_create(
			name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		CHECK(ring_names[i] != NULL);
	}
	struct rte_ring *to_a[1] = {ring_names[0]}, *to_b[1] = {ring_names[1]};
	CHECK(rte_eth_from_rings("a", to_a, 1, to_b, 1, 0) >= 0);
	CHECK(rte_eth_from_rings("b", to_b, 1, to_a, 1, 0) >= 0);
}

static int contract_over(const char *group, const char *device_a, const char *device_b,
	uint32_t address, uint16_t vlan)
{
	struct fabric_dpdk_port *a = port_open(device_a, 1, vlan), *b = port_open(device_b, 2, vlan);
	if (a == NULL || b == NULL)
		return 1;
	struct contract_pair pair = pair_make(a, b, address);
	int failed = contract_run(group, &pair);
	fabric_dpdk_port_close(a);
	fabric_dpdk_port_close(b);
	return failed;
}

// ---- memif: the server's port is started first, then the client connects to it ----

static bool link_wait(struct fabric_dpdk_port *port)
{
	time_t deadline = time(NULL) + 20;
	while (time(NULL) < deadline) {
		struct fabric_dpdk_driver driver;
		fabric_dpdk_port_driver(port, &driver);
		if (driver.link_up)
			return true;
		sched_yield();
	}
	return false;
}

// The driver says "up" a moment before it carries frames: send until one arrives.
static bool carries(struct fabric_queue *from, struct fabric_queue *to, const struct peer *at_to)
{
	time_t deadline = time(NULL) + 20;
	uint32_t got = 0, more;
	struct frame frames[FABRIC_BURST_MAX];
	do {
		if (fabric_base(from)->ops->alloc(from, frames, 1) == 1) {
			frames[0].bytes = 1;
			frames[0].peer = *at_to;
			fabric_base(from)->ops->tx(from, frames, 1);
		}
		sched_yield();
		while ((more = fabric_base(to)->ops->rx(to, frames, FABRIC_BURST_MAX)) > 0) {
			fabric_base(to)->ops->release(to, frames, more);
			got += more;
		}
	} while (got == 0 && time(NULL) < deadline);
	return got > 0;
}

static void note_alarm(void *arg)
{
	atomic_store((atomic_bool *)arg, true);
}

// The driver takes a connection apart in EAL's interrupt thread when its other end went, and would do
// it twice at once if the port were stopped meanwhile. An alarm runs in that thread: after it, what
// came before is over.
static bool peer_is_gone(struct fabric_dpdk_port *port)
{
	time_t deadline = time(NULL) + 20;
	struct fabric_dpdk_driver driver;
	atomic_bool rang = false;
	do {
		sched_yield();
		fabric_dpdk_port_driver(port, &driver);
	} while (driver.link_up && time(NULL) < deadline);
	if (driver.link_up || rte_eal_alarm_set(1, note_alarm, &rang) != 0)
		return false;
	while (!atomic_load(&rang)) // must come: it points to our stack
		sched_yield();
	return true;
}

static int contract_over_memif(void)
{
	struct fabric_dpdk_port *server = port_open("net_memif0", 1, 0);
	struct fabric_dpdk_port *client = port_open("net_memif1", 2, 0);
	if (server == NULL || client == NULL || !link_wait(server) || !link_wait(client)) {
		print_error("the memif pair does not come up\n");
		return 1;
	}
	struct contract_pair pair = pair_make(server, client, 0);
	if (!carries(pair.a, pair.b, &pair.at_b) || !carries(pair.b, pair.a, &pair.at_a)) {
		print_error("the memif pair carries nothing\n");
		return 1;
	}
	int failed = contract_run("fabric contract: dpdk memif", &pair);
	fabric_dpdk_port_close(client);
	if (!peer_is_gone(server)) {
		print_error("the memif server does not notice that its client went\n");
		failed++;
	}
	fabric_dpdk_port_close(server);
	return failed;
}

// ---- DPDK's own ----

struct crossed {
	struct fabric_dpdk_port *a, *b;
	struct fabric_queue *qa, *qb;
};

static int crossed_open(void **state)
{
	struct crossed *c = mem_zalloc(sizeof(*c));
	c->a = port_open(RING_A, 1, 0);
	c->b = port_open(RING_B, 2, 0);
	c->qa = fabric_dpdk_port_queue(c->a, 0);
	c->qb = fabric_dpdk_port_queue(c->b, 0);
	*state = c;
	return 0;
}

static int crossed_close(void **state)
{
	struct crossed *c = *state;
	fabric_dpdk_port_close(c->a);
	fabric_dpdk_port_close(c->b);
	mem_free(c);
	return 0;
}

static struct frame fresh(struct fabric_queue *q, const struct peer *to, uint32_t bytes)
{
	struct frame f;
	assert_int_equal(fabric_base(q)->ops->alloc(q, &f, 1), 1);
	memset(f.data, 0x5a, bytes);
	f.bytes = bytes;
	f.peer = *to;
	return f;
}

static void x__affinity_is_as_before_start(void **state)
{
	(void)state;
	cpu_set_t now;
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &affinity_before));
	assert_non_null(strstr(eal.line, "--no-huge"));
	assert_non_null(strstr(eal.line, "--no-shconf"));
}

static void x__a_second_start_is_refused(void **state)
{
	(void)state;
	struct fabric_dpdk_eal_config config = {
		.pages = FABRIC_DPDK_PAGES_NONE, .file_prefix = "again"};
	struct fabric_dpdk_eal again;
	struct fabric_why why;
	assert_false(fabric_dpdk_start(&config, &again, &why));
	assert_non_null(strstr(why.text, "already started"));
}

static void FC127__a_missing_port_is_named_with_those_that_exist(void **state)
{
	(void)state;
	struct fabric_dpdk_port_config config = {.device = "net_nothing0,iface=x", .workers = 1};
	struct fabric_dpdk_port *port;
	struct fabric_why why;
	identity_make(&config.identity, 1, false);
	assert_false(fabric_dpdk_port_open(&config, &port, &why));
	assert_non_null(strstr(why.text, "net_nothing0"));
	assert_non_null(strstr(why.text, "net_memif0"));
	assert_null(strstr(why.text, "iface"));
}

static void FC127__bad_port_configurations_are_explained(void **state)
{
	(void)state;
	static const struct {
		uint16_t vlan, mtu;
		uint8_t addresses;
		uint8_t mac0;
		uint32_t frames;
		const char *says;
	} cases[] = {
		{4095, 0, 1, 2, 0, "VLAN"},
		{0, 100, 1, 2, 0, "MTU"},
		{0, 9001, 1, 2, 0, "MTU"},
		{0, 0, 0, 2, 0, "addresses"},
		{0, 0, 1, 3, 0, "unicast"},
		{0, 0, 1, 2, 1 << 20, "memory"},
	};
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct fabric_dpdk_port_config config = {
			.device = RING_A, .workers = 1, .frames = cases[i].frames};
		struct fabric_dpdk_port *port;
		struct fabric_why why;
		identity_make(&config.identity, 1, false);
		config.identity.vlan = cases[i].vlan;
		config.identity.mtu = cases[i].mtu;
		config.identity.address_count = cases[i].addresses;
		config.identity.mac[0] = cases[i].mac0;
		assert_false(fabric_dpdk_port_open(&config, &port, &why));
		assert_non_null(strstr(why.text, cases[i].says));
		assert_non_null(strstr(why.text, RING_A));
	}
}

static void x__fewer_queues_than_workers_is_said(void **state)
{
	(void)state;
	struct fabric_dpdk_port_config config = {.device = RING_A, .workers = 3, .frames = 64};
	struct fabric_dpdk_port *port;
	struct fabric_why why;
	identity_make(&config.identity, 1, false);
	assert_true(fabric_dpdk_port_open(&config, &port, &why));
	assert_non_null(strstr(why.text, "1 queue(s) for 3 workers"));
	assert_int_equal(fabric_dpdk_port_queue_count(port), 1);
	assert_non_null(fabric_dpdk_port_queue(port, 0));
	assert_null(fabric_dpdk_port_queue(port, 1));
	assert_null(fabric_dpdk_port_queue(port, 2));
	fabric_dpdk_port_close(port);
}

static void x__an_ipv6_port_has_a_link_local_address(void **state)
{
	struct crossed *c = *state;
	const struct dp_net_identity *identity = fabric_dpdk_port_identity(c->a);
	const uint8_t expected[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = 1};
	assert_int_equal(identity->address_count, 3);
	assert_memory_equal(identity->addresses[2].ip, expected, 16);
	assert_int_equal(fabric_base(c->qa)->payload_bytes_max, 1500 - 48);
}

// Both sides' control run here as well: unknown, asked, answered, sent.
static void x__a_missing_neighbour_is_counted_and_resolved(void **state)
{
	struct crossed *c = *state;
	struct dp_net_io io_a, io_b;
	fabric_dpdk_port_net_io(c->a, &io_a);
	fabric_dpdk_port_net_io(c->b, &io_b);
	struct net_port *net_a = net_port_create(fabric_dpdk_port_identity(c->a), &io_a);
	struct net_port *net_b = net_port_create(fabric_dpdk_port_identity(c->b), &io_b);
	for (uint32_t address = 0; address < 2; address++) {
		struct frame got;
		struct peer to = peer_at(c->b, address);
		memset(to.mac, 0, sizeof(to.mac));
		struct frame f = fresh(c->qa, &to, 10);
		fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
		assert_int_equal(fabric_base(c->qa)->stats.tx_no_neighbour, address + 1);
		// request out, over, answer out, back, published
		for (uint32_t i = 0; i < 8; i++) {
			net_port_step(net_a, 1);
			net_port_step(net_b, 1);
			assert_int_equal(fabric_base(c->qa)->ops->rx(c->qa, &got, 1), 0);
			assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 0);
		}
		f = fresh(c->qa, &to, 10);
		fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
		assert_int_equal(fabric_base(c->qa)->stats.tx_no_neighbour, address + 1);
		assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 1);
		fabric_base(c->qb)->ops->release(c->qb, &got, 1);
	}
	net_port_destroy(net_a);
	net_port_destroy(net_b);
}

static void x__swap_returns_frames_with_macs_exchanged(void **state)
{
	struct crossed *c = *state;
	struct peer to = peer_at(c->b, 0);
	struct frame f = fresh(c->qa, &to, 64);
	fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
	assert_int_equal(fabric_base(c->qb)->ops->swap(c->qb, 32), 1);
	assert_int_equal(fabric_base(c->qb)->ops->swap(c->qb, 32), 0);
	struct rte_mbuf *m = NULL;
	assert_int_equal(rte_ring_dequeue(ring_names[0], (void **)&m), 0);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t expected[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	assert_memory_equal(data, expected, 12);
	rte_pktmbuf_free(m);
}

static void P3__a_full_driver_is_counted(void **state)
{
	struct crossed *c = *state;
	struct peer to = peer_at(c->b, 0);
	uint32_t sent = 0;
	struct frame frames[FABRIC_BURST_MAX];
	for (uint32_t round = 0; round < 40; round++) { // 1,280 into a ring of 1,023
		for (uint32_t i = 0; i < FABRIC_BURST_MAX; i++)
			frames[i] = fresh(c->qa, &to, 8);
		fabric_base(c->qa)->ops->tx(c->qa, frames, FABRIC_BURST_MAX);
		sent += FABRIC_BURST_MAX;
	}
	const struct fabric_queue_stats *stats = &fabric_base(c->qa)->stats;
	assert_int_equal(stats->tx_frames, 1023);
	assert_int_equal(stats->tx_full, sent - 1023);
	uint32_t got = 0, n;
	while ((n = fabric_base(c->qb)->ops->rx(c->qb, frames, FABRIC_BURST_MAX)) > 0) {
		fabric_base(c->qb)->ops->release(c->qb, frames, n);
		got += n;
	}
	assert_int_equal(got, 1023);
}

// Control that does not listen: what its mailbox cannot hold is counted at the queue.
static void P3__frames_for_a_control_that_does_not_listen_are_counted(void **state)
{
	struct crossed *c = *state;
	const struct dp_net_identity *a = fabric_dpdk_port_identity(c->a);
	const struct dp_net_identity *b = fabric_dpdk_port_identity(c->b);
	const struct fabric_queue_stats *stats = &fabric_base(c->qb)->stats;
	uint8_t question[DP_NET_FRAME_BYTES_MAX];
	struct dp_net_io io;
	struct frame got;
	fabric_dpdk_port_net_io(c->a, &io);
	uint32_t bytes = net_arp_request_write(
		a, question, a->addresses[0].ip, b->addresses[0].ip, NULL);
	uint64_t refused_at = 0;
	for (uint32_t sent = 1; sent <= 500 && stats->control_refused < 3; sent++) {
		assert_true(io.send(io.self, question, bytes));
		assert_int_equal(fabric_base(c->qa)->ops->rx(c->qa, &got, 1), 0);
		assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 0);
		assert_int_equal(stats->rx_other, sent);
		if (stats->control_refused == 1)
			refused_at = sent;
	}
	assert_int_equal(stats->control_refused, 3);
	assert_int_equal(stats->rx_other, refused_at + 2);
}

// Chains, lies about lengths and stripped tags, as drivers have handed them over.
static void I20__odd_mbufs_are_mended_or_refused(void **state)
{
	struct crossed *c = *state;
	struct peer to = peer_at(c->b, 0);
	struct frame f = fresh(c->qa, &to, 100), got;
	struct rte_mbuf *m = NULL;
	fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
	assert_int_equal(rte_ring_dequeue(ring_names[1], (void **)&m), 0);
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
	struct rte_mbuf *tail = rte_pktmbuf_copy(m, m->pool, 60, UINT32_MAX);
	assert_int_equal(rte_pktmbuf_trim(copy, (uint16_t)(copy->data_len - 60)), 0);
	assert_int_equal(rte_pktmbuf_chain(copy, tail), 0);
	assert_int_equal(rte_ring_enqueue(ring_names[1], copy), 0);
	assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 1);
	assert_int_equal(got.bytes, 100);
	fabric_base(c->qb)->ops->release(c->qb, &got, 1);
	m->pkt_len = m->data_len + 5u; // says more than it holds
	assert_int_equal(rte_ring_enqueue(ring_names[1], m), 0);
	assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 0);
	assert_int_equal(fabric_base(c->qb)->stats.rx_malformed, 1);
	f = fresh(c->qa, &to, 100);
	fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
	assert_int_equal(rte_ring_dequeue(ring_names[1], (void **)&m), 0);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 7; // put back, then refused: this port is untagged
	assert_int_equal(rte_ring_enqueue(ring_names[1], m), 0);
	assert_int_equal(fabric_base(c->qb)->ops->rx(c->qb, &got, 1), 0);
	assert_int_equal(fabric_base(c->qb)->stats.rx_other, 1);
}

// Random damage to good frames: nothing is read beyond the frame, every buffer comes back.
static void I20__damaged_frames_are_counted_and_freed(void **state)
{
	struct crossed *c = *state;
	struct peer to = peer_at(c->b, 0);
	uint32_t free_before = fabric_dpdk_free_buffers(c->qa);
	uint64_t random = 88172645463325252u;
	uint32_t passed = 0;
	for (uint32_t i = 0; i < 20000; i++) {
		struct frame f = fresh(c->qa, &to, 64), got;
		struct rte_mbuf *m = NULL;
		fabric_base(c->qa)->ops->tx(c->qa, &f, 1);
		assert_int_equal(rte_ring_dequeue(ring_names[1], (void **)&m), 0);
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
		data[random % 42] ^= (uint8_t)(1u << (random >> 61));
		if ((random & 0x300) == 0)
			m->pkt_len = m->data_len = (uint16_t)((random >> 32) % 106);
		assert_int_equal(rte_ring_enqueue(ring_names[1], m), 0);
		uint32_t n = fabric_base(c->qb)->ops->rx(c->qb, &got, 1);
		fabric_base(c->qb)->ops->release(c->qb, &got, n);
		passed += n;
	}
	const struct fabric_queue_stats *s = &fabric_base(c->qb)->stats;
	assert_int_equal(s->rx_frames, passed);
	assert_int_equal(s->rx_frames + s->rx_other + s->rx_malformed + s->rx_wrong_port, 20000);
	assert_true(s->rx_malformed > 1000);
	assert_int_equal(fabric_dpdk_free_buffers(c->qa), free_before);
}

static void *worker_main(void *arg)
{
	struct crossed *c = arg;
	struct fabric_why why;
	struct frame frames[FABRIC_BURST_MAX];
	intptr_t got = 0;
	if (!fabric_dpdk_thread_begin(&why))
		return (void *)(intptr_t)-1;
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t n = fabric_base(c->qa)->ops->alloc(c->qa, frames, FABRIC_BURST_MAX);
		fabric_base(c->qa)->ops->release(c->qa, frames, n);
		got += n;
	}
	fabric_dpdk_thread_end();
	return (void *)got;
}

static void x__our_own_threads_may_use_a_port(void **state)
{
	struct crossed *c = *state;
	for (uint32_t i = 0; i < 3; i++) {
		pthread_t thread;
		void *got;
		assert_int_equal(pthread_create(&thread, NULL, worker_main, c), 0);
		assert_int_equal(pthread_join(thread, &got), 0);
		assert_int_equal((intptr_t)got, 100 * FABRIC_BURST_MAX);
	}
	assert_int_equal(fabric_dpdk_free_buffers(c->qa), 1024 + 2048);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__affinity_is_as_before_start),
		cmocka_unit_test(x__a_second_start_is_refused),
		cmocka_unit_test(FC127__a_missing_port_is_named_with_those_that_exist),
		cmocka_unit_test(FC127__bad_port_configurations_are_explained),
		cmocka_unit_test(x__fewer_queues_than_workers_is_said),
#define CROSSED(test) cmocka_unit_test_setup_teardown(test, crossed_open, crossed_close)
		CROSSED(x__an_ipv6_port_has_a_link_local_address),
		CROSSED(x__a_missing_neighbour_is_counted_and_resolved),
		CROSSED(x__swap_returns_frames_with_macs_exchanged),
		CROSSED(P3__a_full_driver_is_counted),
		CROSSED(P3__frames_for_a_control_that_does_not_listen_are_counted),
		CROSSED(I20__odd_mbufs_are_mended_or_refused),
		CROSSED(I20__damaged_frames_are_counted_and_freed),
		CROSSED(x__our_own_threads_may_use_a_port),
#undef CROSSED
	};
	char prefix[40], server[128], client[128];
	struct fabric_why why;
	snprintf(prefix, sizeof(prefix), "spotlane-test-%d", getpid());
	snprintf(server, sizeof(server), "net_memif0,role=server,socket=%s", prefix);
	snprintf(client, sizeof(client), "net_memif1,role=client,socket=%s", prefix);
	struct fabric_dpdk_eal_config config = {.pages = FABRIC_DPDK_PAGES_NONE,
		.memory_mib = 128,
		.file_prefix = prefix,
		.vdevs = {server, client},
		.vdev_count = 2};
	CHECK(sched_getaffinity(0, sizeof(affinity_before), &affinity_before) == 0);
	if (!fabric_dpdk_start(&config, &eal, &why)) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	rings_make();
	int failed = contract_over("fabric contract: dpdk rings, IPv4", RING_A, RING_B, 0, 0);
	failed += contract_over("fabric contract: dpdk rings, IPv6", RING_A, RING_B, 1, 0);
	failed += contract_over("fabric contract: dpdk rings, VLAN", RING_A, RING_B, 0, 42);
	failed += contract_over_memif();
	failed += cmocka_run_group_tests_name("fabric dpdk", tests, NULL, NULL);
	fabric_dpdk_stop();
	return failed != 0;
}
