// SPDX-License-Identifier: BSD-3-Clause

// Echoes datagrams on one DPDK port until SIGTERM or SIGINT, speaking ARP, neighbour discovery and
// echo beside it: the smallest whole user of the fabric, for system tests and for trying a set-up.
//
//   echo_main --iface d0 --address 10.99.0.1/24 --address fd99::1/64 --port 7000
//
// Prints "ready …" when it can be reached, and its counters as one JSON line at the end and at
// each SIGUSR1.

#include <arpa/inet.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/dpdk.h"
#include "net/net.h"

struct options {
	struct fabric_dpdk_eal_config eal;
	struct fabric_dpdk_port_config port;
	char vdev[FABRIC_DPDK_VDEV_BYTES];
	const char *iface;
	bool swap;
	uint32_t reply_bytes; // 0 = as received
};

static volatile sig_atomic_t stopping, showing;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		showing = 1;
	else
		stopping = 1;
}

static bool ip_parse(const char *text, uint8_t out[16])
{
	uint8_t v4[4];
	if (inet_pton(AF_INET, text, v4) == 1) {
		peer_ip_from_v4(out, v4);
		return true;
	}
	return inet_pton(AF_INET6, text, out) == 1;
}

static bool address_add(struct dp_net_identity *identity, const char *text)
{
	char host[64];
	const char *slash = strchr(text, '/');
	if (slash == NULL || identity->address_count == DP_NET_ADDRESSES_MAX)
		return false;
	struct dp_net_address *a = &identity->addresses[identity->address_count++];
	snprintf(host, sizeof(host), "%.*s", (int)(slash - text), text);
	if (!ip_parse(host, a->ip))
		return false;
	a->prefix_bits = (uint8_t)(atoi(slash + 1) + (dp_net_ip_is_v4(a->ip) ? 96 : 0));
	return true;
}

static bool gateway_set(struct dp_net_identity *identity, const char *text)
{
	uint8_t ip[16];
	if (!ip_parse(text, ip))
		return false;
	memcpy(dp_net_ip_is_v4(ip) ? identity->gateway_v4 : identity->gateway_v6, ip, 16);
	return true;
}

static bool option_take(struct options *o, int option)
{
	struct dp_net_identity *identity = &o->port.identity;
	switch (option) {
	case 'v':
		o->eal.vdevs[o->eal.vdev_count++] = optarg;
		return o->eal.vdev_count == 1;
	case 'i':
		o->iface = optarg;
		return true;
	case 'a':
		return address_add(identity, optarg);
	case 'g':
		return gateway_set(identity, optarg);
	case 'p':
		o->port.udp_port = (uint16_t)atoi(optarg);
		return true;
	case 'l':
		identity->vlan = (uint16_t)atoi(optarg);
		return true;
	case 'm':
		identity->mtu = (uint16_t)atoi(optarg);
		return true;
	case 'f':
		o->eal.file_prefix = optarg;
		return true;
	case 'H':
		o->eal.pages = FABRIC_DPDK_PAGES_AUTO;
		return true;
	case 'w':
		o->port.workers = (uint16_t)atoi(optarg);
		return o->port.workers > 0 && o->port.workers <= 16;
	case 's':
		o->swap = true;
		return true;
	case 'r':
		o->reply_bytes = (uint32_t)atoi(optarg);
		return true;
	default:
		return false;
	}
}

static bool options_parse(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"vdev", 1, NULL, 'v'}, {"iface", 1, NULL, 'i'},
		{"address", 1, NULL, 'a'}, {"gateway", 1, NULL, 'g'}, {"port", 1, NULL, 'p'},
		{"vlan", 1, NULL, 'l'}, {"mtu", 1, NULL, 'm'}, {"file-prefix", 1, NULL, 'f'},
		{"hugepages", 0, NULL, 'H'}, {"swap", 0, NULL, 's'}, {"reply-bytes", 1, NULL, 'r'},
		{"workers", 1, NULL, 'w'}, {0}};
	int option;
	*o = (struct options){.eal = {.pages = FABRIC_DPDK_PAGES_NONE,
				      .memory_mib = 128,
				      .file_prefix = "spotlane-echo"},
		.port = {.udp_port = 7000, .workers = 1}};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (!option_take(o, option))
			return false;
	}
	if (o->iface != NULL) {
		uint16_t mtu = o->port.identity.mtu != 0 ? o->port.identity.mtu : 1500;
		if (!fabric_dpdk_vdev_af_packet(
			    "net_af_packet0", o->iface, mtu, o->port.workers, o->vdev,
			    sizeof(o->vdev)))
			return false;
		o->eal.vdevs[o->eal.vdev_count++] = o->vdev;
	}
	o->port.device = o->eal.vdevs[0];
	return o->eal.vdev_count == 1 && o->port.identity.address_count > 0;
}

// Plain sums: the struct holds nothing but counters.
static struct fabric_queue_stats stats_of_all(struct fabric_dpdk_port *port)
{
	struct fabric_queue_stats sum = {0};
	for (uint16_t w = 0; w < fabric_dpdk_port_queue_count(port); w++) {
		const struct fabric_queue_stats *one =
			&fabric_base(fabric_dpdk_port_queue(port, w))->stats;
		for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); i++)
			((uint64_t *)&sum)[i] += ((const uint64_t *)one)[i];
	}
	return sum;
}

static void show(struct fabric_dpdk_port *port, const struct net_port *net)
{
	const struct fabric_queue_stats sum = stats_of_all(port), *s = &sum;
	const struct net_counters *c = net_port_counters(net);
#define SHOW(from, name) printf("\"" #name "\":%llu,", (unsigned long long)(from)->name)
	printf("{");
	SHOW(s, rx_frames);
	SHOW(s, tx_frames);
	SHOW(s, rx_other);
	SHOW(s, rx_malformed);
	SHOW(s, rx_wrong_port);
	SHOW(s, rx_fragments);
	SHOW(s, rx_checksum_bad);
	SHOW(s, rx_checksum_unfinished);
	SHOW(s, tx_full);
	SHOW(s, tx_no_neighbour);
	SHOW(c, arp_answered);
	SHOW(c, nd_answered);
	SHOW(c, echo_answered);
	SHOW(c, echo_limited);
	SHOW(c, announced);
	SHOW(c, asked);
#undef SHOW
	printf("\"queues\":[");
	for (uint16_t w = 0; w < fabric_dpdk_port_queue_count(port); w++)
		printf("%s%llu", w > 0 ? "," : "",
			(unsigned long long)fabric_base(fabric_dpdk_port_queue(port, w))
				->stats.rx_frames);
	printf("],");
	printf("\"learned\":%llu}\n", (unsigned long long)c->learned);
	fflush(stdout);
}

static uint32_t turn(const struct options *o, struct fabric_queue *q)
{
	const struct fabric_ops *ops = fabric_base(q)->ops;
	struct frame frames[FABRIC_BURST_MAX];
	if (o->swap)
		return ops->swap(q, FABRIC_BURST_MAX);
	uint32_t n = ops->rx(q, frames, FABRIC_BURST_MAX);
	for (uint32_t i = 0; i < n && o->reply_bytes != 0; i++)
		frames[i].bytes = o->reply_bytes;
	if (n > 0)
		ops->tx(q, frames, n);
	return n;
}

static void run(const struct options *o, struct fabric_dpdk_port *port, struct net_port *net)
{
	static const struct timespec nap = {0, 50000};
	struct clock *clock = clock_system();
	uint64_t next_ns = 0;
	uint32_t idle = 0;
	while (!stopping) {
		uint32_t n = 0;
		// One thread plays all workers in turn.
		for (uint16_t w = 0; w < fabric_dpdk_port_queue_count(port); w++)
			n += turn(o, fabric_dpdk_port_queue(port, w));
		idle = n > 0 ? 0 : idle + 1;
		if (showing) {
			showing = 0;
			show(port, net);
		}
		if (idle % 32 != 0)
			continue;
		uint64_t now_ns = clock_boot_ns(clock);
		if (idle > 0 || now_ns >= next_ns)
			next_ns = net_port_step(net, now_ns);
		if (idle > 256)
			nanosleep(&nap, NULL);
		else if (idle > 0)
			sched_yield();
	}
}

int main(int argc, char **argv)
{
	struct options o;
	struct fabric_dpdk_eal eal;
	struct fabric_dpdk_port *port;
	struct fabric_why why;
	struct dp_net_io io;
	if (!options_parse(&o, argc, argv)) {
		fprintf(stderr, "usage: echo_main (--iface IF | --vdev STRING) --address IP/BITS… "
				"[--port N] [--gateway IP] [--vlan N] [--mtu N] [--file-prefix P] "
				"[--hugepages] [--swap] [--reply-bytes N] [--workers N]\n");
		return 2;
	}
	if (!fabric_dpdk_start(&o.eal, &eal, &why) ||
		!fabric_dpdk_port_open(&o.port, &port, &why)) {
		fprintf(stderr, "echo_main: %s\n", why.text);
		return 1;
	}
	fabric_dpdk_port_net_io(port, &io);
	struct net_port *net = net_port_create(fabric_dpdk_port_identity(port), &io);
	if (net == NULL)
		return 1;
	const struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	printf("ready port %u payload %u eal %s\n", o.port.udp_port,
		fabric_base(fabric_dpdk_port_queue(port, 0))->payload_bytes_max, eal.line);
	fflush(stdout);
	run(&o, port, net);
	show(port, net);
	net_port_destroy(net);
	fabric_dpdk_port_close(port);
	fabric_dpdk_stop();
	return 0;
}
