// SPDX-License-Identifier: BSD-3-Clause
#include "link.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_MAX = 24, RING = 2048, BUFFERS = 32767, CACHE = 512, SOURCE_PORT = 40000 };

static struct rte_mempool *pool;
static uint8_t template[LINK_HEADERS_BYTES];

static void make_template(void)
{
	struct rte_ether_hdr ether = {
		.dst_addr = {{2, 0, 0, 0, 0, 1}},
		.src_addr = {{2, 0, 0, 0, 0, 2}},
		.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4),
	};
	struct rte_ipv4_hdr ip = {
		.version_ihl = 0x45,
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 99, 0, 2)),
		.dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 99, 0, 1)),
	};
	struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16(SOURCE_PORT),
		.dst_port = rte_cpu_to_be_16(LINK_ROUTER_PORT),
	};
	memcpy(template, &ether, sizeof(ether));
	memcpy(template + sizeof(ether), &ip, sizeof(ip));
	memcpy(template + sizeof(ether) + sizeof(ip), &udp, sizeof(udp));
}

bool link_start(const char *const *vdevs, uint32_t count, int cpu, bool hugepages)
{
	static char lcores[32], devices[4][256];
	const char *argv[ARGUMENTS_MAX] = {"spotbench"};
	int argc = 1;
	snprintf(lcores, sizeof(lcores), "0@%d", cpu);
	argv[argc++] = "--lcores";
	argv[argc++] = lcores;
	argv[argc++] = "-m";
	argv[argc++] = "256";
	argv[argc++] = "--no-pci";
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "--log-level=*:error";
	argv[argc++] = "--file-prefix=spotbench-generator";
	argv[argc++] = hugepages ? "--in-memory" : "--no-huge";
	if (!hugepages)
		argv[argc++] = "--no-shconf";
	for (uint32_t i = 0; i < count; i++) {
		snprintf(devices[i], sizeof(devices[i]), "--vdev=%s", vdevs[i]);
		argv[argc++] = devices[i];
	}
	if (rte_eal_init(argc, (char **)(uintptr_t)argv) < 0) {
		fprintf(stderr, "spotbench: EAL did not start: %s\n", rte_strerror(rte_errno));
		return false;
	}
	pool = rte_pktmbuf_pool_create("generator", BUFFERS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	make_template();
	return pool != NULL;
}

int link_open(const char *vdev)
{
	char name[64];
	uint16_t port;
	struct rte_eth_conf conf = {0};
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(vdev, ","), vdev);
	if (rte_eth_dev_get_port_by_name(name, &port) != 0 ||
		rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(port, 0, RING, 0, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, RING, 0, NULL) != 0 || rte_eth_dev_start(port) != 0) {
		fprintf(stderr, "spotbench: port %s does not start: is its server there?\n", name);
		return -1;
	}
	return port;
}

bool link_is_up(int port)
{
	struct rte_eth_link link;
	return rte_eth_link_get_nowait((uint16_t)port, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static void to_frame(struct rte_mbuf *m, struct link_frame *out)
{
	out->payload = rte_pktmbuf_mtod_offset(m, uint8_t *, LINK_HEADERS_BYTES);
	out->bytes = rte_pktmbuf_data_len(m) > LINK_HEADERS_BYTES
			     ? rte_pktmbuf_data_len(m) - LINK_HEADERS_BYTES
			     : 0;
	out->handle = m;
}

uint32_t link_alloc(struct link_frame *out, uint32_t n)
{
	struct rte_mbuf *mbufs[LINK_BURST];
	if (rte_pktmbuf_alloc_bulk(pool, mbufs, n) != 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		to_frame(mbufs[i], &out[i]);
	return n;
}

static void finish(struct link_frame *f)
{
	struct rte_mbuf *m = f->handle;
	uint32_t ip_bytes = f->bytes + 28;
	memcpy(rte_pktmbuf_mtod(m, void *), template, sizeof(template));
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	ip->total_length = rte_cpu_to_be_16((uint16_t)ip_bytes);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(f->bytes + 8));
	m->data_len = (uint16_t)(f->bytes + LINK_HEADERS_BYTES);
	m->pkt_len = m->data_len;
}

uint32_t link_send(int port, struct link_frame *frames, uint32_t n)
{
	struct rte_mbuf *mbufs[LINK_BURST];
	for (uint32_t i = 0; i < n; i++) {
		finish(&frames[i]);
		mbufs[i] = frames[i].handle;
	}
	uint32_t sent = 0;
	// A full ring empties as the other side reads: patience instead of a loss that is our own.
	for (uint32_t tries = 0; sent < n && tries < 1000000; tries++)
		sent += rte_eth_tx_burst((uint16_t)port, 0, mbufs + sent, (uint16_t)(n - sent));
	if (sent < n)
		rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
	return sent;
}

uint32_t link_receive(int port, struct link_frame *out, uint32_t n)
{
	struct rte_mbuf *mbufs[LINK_BURST];
	uint32_t got = rte_eth_rx_burst((uint16_t)port, 0, mbufs, (uint16_t)n);
	for (uint32_t i = 0; i < got; i++)
		rte_prefetch0(rte_pktmbuf_mtod_offset(mbufs[i], void *, LINK_HEADERS_BYTES));
	for (uint32_t i = 0; i < got; i++)
		to_frame(mbufs[i], &out[i]);
	return got;
}

void link_free(struct link_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rte_pktmbuf_free(frames[i].handle);
}
