// SPDX-License-Identifier: BSD-3-Clause
#include "router.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "bench_node.h"
#include "fabric/dpdk.h"
#include "link.h"
#include "net/net.h"
#include "planted.h"
#include "publish/publish.h"
#include "worker/worker.h"

struct router {
	const struct bench_options *options;
	struct bench_node node;
	struct fabric_dpdk_port *port;
	struct net_port *net;
	struct fabric_queue *queue;
	_Atomic int wanted, in_force;
	struct planted planted;
};

static void pin_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *work(void *arg)
{
	struct router *r = arg;
	struct fabric_why why;
	int mode, before = ROUTER_STILL;
	const bool planting = r->options->plant_delay_ns > 0 || r->options->plant_stall_ms > 0;
	pin_to(r->options->router_cpu);
	if (!fabric_dpdk_thread_begin(&why))
		return NULL;
	publish_reader_enter();
	while ((mode = atomic_load_explicit(&r->wanted, memory_order_acquire)) != ROUTER_QUIT) {
		atomic_store_explicit(&r->in_force, mode, memory_order_release);
		if (planting && mode == ROUTER_ROUTE && before != ROUTER_ROUTE)
			planted_begin(&r->planted);
		before = mode;
		if (mode == ROUTER_ROUTE) {
			dp_worker_turn(r->node.dp, 0);
			publish_quiescent();
			if (UNLIKELY(planting))
				planted_after_turn(&r->planted, r->node.dp);
		} else if (mode == ROUTER_SWAP) {
			fabric_base(r->queue)->ops->swap(r->queue, FABRIC_BURST_MAX);
			publish_quiescent();
		} else {
			publish_reader_offline();
			usleep(1000);
			publish_reader_online();
		}
	}
	publish_reader_leave();
	fabric_dpdk_thread_end();
	return NULL;
}

static bool open_port(struct router *r, const char *socket_path)
{
	char vdev[256];
	struct fabric_dpdk_eal eal;
	struct fabric_why why = {""};
	static const uint8_t ip[4] = {10, 99, 0, 1};
	snprintf(vdev, sizeof(vdev), "net_memif0,role=server,socket-abstract=no,rsize=11,socket=%s",
		socket_path);
	struct fabric_dpdk_eal_config config = {
		.pages = r->options->hugepages ? FABRIC_DPDK_PAGES_HUGE : FABRIC_DPDK_PAGES_NONE,
		.memory_mib = 256,
		.file_prefix = "spotbench-router",
		.vdevs = {vdev},
		.vdev_count = 1,
	};
	struct fabric_dpdk_port_config port = {
		.device = "net_memif0", .udp_port = LINK_ROUTER_PORT, .workers = 1};
	port.identity.address_count = 1;
	port.identity.addresses[0].prefix_bits = 96 + 24;
	peer_ip_from_v4(port.identity.addresses[0].ip, ip);
	port.identity.mac[0] = 2;
	port.identity.mac[5] = 1;
	port.rx_ring = port.tx_ring = 2048;
	if (!fabric_dpdk_start(&config, &eal, &why) ||
		!fabric_dpdk_port_open(&port, &r->port, &why)) {
		fprintf(stderr, "spotbench: router: %s\n", why.text);
		return false;
	}
	struct dp_net_io io;
	fabric_dpdk_port_net_io(r->port, &io);
	r->net = net_port_create(fabric_dpdk_port_identity(r->port), &io);
	r->queue = fabric_dpdk_port_queue(r->port, 0);
	return r->net != NULL && r->queue != NULL;
}

// Control: serves the node until told to quit; forwards modes and confirms them.
static void serve(struct router *r, int fd)
{
	const struct timespec pause = {0, 200000};
	char mode = ROUTER_STILL, ready = 'r';
	bool told = false;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (mode != ROUTER_QUIT) {
		bench_node_step(&r->node);
		net_port_step(r->net, clock_boot_ns(r->node.clock));
		if (!told && bench_node_serving(&r->node))
			told = write(fd, &ready, 1) == 1;
		ssize_t got = read(fd, &mode, 1);
		if (got == 0)
			mode = ROUTER_QUIT; // the generator is gone
		if (got == 1 || mode == ROUTER_QUIT) {
			atomic_store_explicit(&r->wanted, mode, memory_order_release);
			while (mode != ROUTER_QUIT && atomic_load(&r->in_force) != mode)
				nanosleep(&pause, NULL);
			if (got == 1 && write(fd, &mode, 1) != 1)
				mode = ROUTER_QUIT;
		}
		nanosleep(&pause, NULL);
	}
	atomic_store(&r->wanted, ROUTER_QUIT);
}

int router_run(const struct bench_options *options, const char *socket_path, int fd)
{
	static struct router r;
	pthread_t thread;
	r.options = options;
	atomic_store(&r.wanted, ROUTER_ROUTE);
	publish_start();
	if (!open_port(&r, socket_path) ||
		!bench_node_open(&r.node, NULL, options->spots, options->counter_module, r.queue))
		return BENCH_ENVIRONMENT;
	r.planted = (struct planted){.clock = r.node.clock,
		.delay_ns = options->plant_delay_ns,
		.stall_ms = options->plant_stall_ms};
	if (pthread_create(&thread, NULL, work, &r) != 0)
		return BENCH_ENVIRONMENT;
	pin_to(options->generator_cpu);
	serve(&r, fd);
	pthread_join(thread, NULL);
	bench_node_close(&r.node);
	net_port_destroy(r.net);
	fabric_dpdk_port_close(r.port);
	fabric_dpdk_stop();
	return BENCH_OK;
}
