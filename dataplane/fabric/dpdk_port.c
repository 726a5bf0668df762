// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/dpdk_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_ether.h>

#include "base/check.h"
#include "base/mem.h"

enum {
	RING_DEFAULT = 1024,
	FRAMES_DEFAULT = 4096,
	CACHE_MBUFS = 256,
	MTU_DEFAULT = 1500,
	// Room of an mbuf behind its headroom. af_packet wants its whole frame size to fit.
	ROOM_DEFAULT = 2048,
};

PRINTF_LIKE(3, 4)
static bool fail(struct fabric_why *out_why, const char *device, const char *format, ...)
{
	va_list list;
	int n = snprintf(out_why->text, sizeof(out_why->text), "port %.60s: ", device);
	va_start(list, format);
	vsnprintf(out_why->text + n, sizeof(out_why->text) - (size_t)n, format, list);
	va_end(list);
	return false;
}

static bool driver_is(const struct fabric_dpdk_port *port, const char *name)
{
	return strcmp(port->driver, name) == 0;
}

static bool port_find(const char *device, uint16_t *out_id, struct fabric_why *out_why)
{
	char name[RTE_ETH_NAME_MAX_LEN], have[160] = "";
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	if (rte_eth_dev_get_port_by_name(name, out_id) == 0)
		return true;
	size_t used = 0;
	uint16_t id;
	RTE_ETH_FOREACH_DEV(id) {
		char other[RTE_ETH_NAME_MAX_LEN];
		if (rte_eth_dev_get_name_by_port(id, other) == 0 && used < sizeof(have))
			used += (size_t)snprintf(have + used, sizeof(have) - used, " %s", other);
	}
	return fail(out_why, name, "DPDK has no such port; it has:%s",
		have[0] != '\0' ? have : " none");
}

static bool identity_check(const struct dp_net_identity *identity, const char *device,
	struct fabric_why *out_why)
{
	if (identity->address_count == 0 || identity->address_count > DP_NET_ADDRESSES_MAX)
		return fail(out_why, device, "needs 1 to %d addresses", DP_NET_ADDRESSES_MAX);
	if (identity->vlan > 4094)
		return fail(out_why, device, "VLAN %u is not in 0..4094", identity->vlan);
	if (identity->mtu != 0 &&
		(identity->mtu < DP_NET_MTU_MIN || identity->mtu > DP_NET_MTU_MAX))
		return fail(out_why, device, "MTU %u is not in %d..%d", identity->mtu,
			DP_NET_MTU_MIN, DP_NET_MTU_MAX);
	for (uint32_t i = 0; i < identity->address_count; i++) {
		if (identity->addresses[i].prefix_bits > 128)
			return fail(out_why, device, "address %u: prefix over 128 bits", i);
	}
	return true;
}

static bool mac_settle(
	struct fabric_dpdk_port *port, const char *device, struct fabric_why *out_why)
{
	static const uint8_t none[6];
	struct rte_ether_addr own;
	if (rte_eth_macaddr_get(port->port_id, &own) != 0)
		return fail(out_why, device, "does not tell its MAC address");
	if (memcmp(port->identity.mac, none, 6) == 0) {
		memcpy(port->identity.mac, own.addr_bytes, 6);
		return true;
	}
	struct rte_ether_addr wanted;
	memcpy(wanted.addr_bytes, port->identity.mac, 6);
	if (!rte_is_unicast_ether_addr(&wanted))
		return fail(out_why, device, "its MAC address must be a unicast one");
	if (rte_is_same_ether_addr(&wanted, &own))
		return true;
	int rc = rte_eth_dev_default_mac_addr_set(port->port_id, &wanted);
	// Software drivers that cannot set one do not filter by it either.
	if (rc == -ENOTSUP && strncmp(port->driver, "net_", 4) == 0)
		return true;
	return rc == 0 || fail(out_why, device, "driver %s cannot change its MAC address (%s)",
				  port->driver, rte_strerror(-rc));
}

// IPv6 needs a link-local address beside the others: the one of the MAC where none is configured.
static void link_local_settle(struct dp_net_identity *identity)
{
	bool has_v6 = false, has_local = false;
	for (uint32_t i = 0; i < identity->address_count; i++) {
		has_v6 = has_v6 || !dp_net_ip_is_v4(identity->addresses[i].ip);
		has_local = has_local || dp_net_ip_is_link_local(identity->addresses[i].ip);
	}
	if (has_v6 && !has_local && identity->address_count < DP_NET_ADDRESSES_MAX)
		dp_net_link_local_of(
			identity->mac, &identity->addresses[identity->address_count++]);
}

static uint16_t queues_settle(struct fabric_dpdk_port *port, const struct rte_eth_dev_info *info,
	const struct fabric_dpdk_port_config *config, struct fabric_why *out_why)
{
	uint16_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	uint16_t queues = RTE_MIN(most, config->workers);
	if (queues < config->workers)
		fail(out_why, config->device,
			"driver %s gives %u queue(s) for %u workers; workers %u and up have none here%s",
			port->driver, queues, config->workers, queues,
			driver_is(port, "net_af_packet") ? " (qpairs= in its arguments)" : "");
	return queues;
}

// Spreads flows over the queues by addresses and ports, as far as the driver can.
static void rss_settle(
	struct rte_eth_conf *conf, const struct rte_eth_dev_info *info, uint16_t queues)
{
	uint64_t wanted = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	uint64_t can = wanted & info->flow_type_rss_offloads;
	if (queues < 2 || can == 0)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = can;
}

static bool configure(struct fabric_dpdk_port *port, const struct rte_eth_dev_info *info,
	const char *device, struct fabric_why *out_why)
{
	struct rte_eth_conf conf = {0};
	uint16_t mtu = port->identity.mtu;
	// af_packet refuses an MTU of its own beyond 1,500 but carries what its frame size holds.
	if (!driver_is(port, "net_af_packet")) {
		if (mtu > info->max_mtu)
			return fail(out_why, device, "MTU %u: driver %s carries at most %u", mtu,
				port->driver, info->max_mtu);
		conf.rxmode.mtu = mtu;
	}
	rss_settle(&conf, info, port->queue_count);
	int rc = rte_eth_dev_configure(port->port_id, port->queue_count, port->queue_count, &conf);
	return rc == 0 || fail(out_why, device, "driver %s refuses %u queue(s) with MTU %u (%s)",
				  port->driver, port->queue_count, mtu, rte_strerror(-rc));
}

static uint16_t room_bytes(uint16_t mtu)
{
	if (mtu <= 1900)
		return RTE_PKTMBUF_HEADROOM + ROOM_DEFAULT;
	// The frame sizes of fabric_dpdk_vdev_af_packet.
	uint32_t room = mtu <= 3900 ? 4096 : mtu <= 8000 ? 8192 : 16384;
	return (uint16_t)(RTE_PKTMBUF_HEADROOM + room);
}

static uint32_t payload_max(const struct dp_net_identity *identity)
{
	uint32_t overhead = INET_IPV4_BYTES + INET_UDP_BYTES;
	for (uint32_t i = 0; i < identity->address_count; i++) {
		if (!dp_net_ip_is_v4(identity->addresses[i].ip))
			overhead = INET_IPV6_BYTES + INET_UDP_BYTES;
	}
	return identity->mtu - overhead;
}

static struct rte_mempool *pool_make(const struct fabric_dpdk_port *port, uint16_t queue,
	uint32_t mbufs, const char *device, struct fabric_why *out_why)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	snprintf(name, sizeof(name), "spotlane_p%u_q%u", port->port_id, queue);
	int socket = rte_eth_dev_socket_id(port->port_id);
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, mbufs, CACHE_MBUFS, 0,
		room_bytes(port->identity.mtu), socket < 0 ? SOCKET_ID_ANY : socket);
	if (pool == NULL)
		fail(out_why, device,
			"no memory for %u buffers of %u bytes (%s): raise EAL's memory or lower frames",
			mbufs, room_bytes(port->identity.mtu), rte_strerror(rte_errno));
	return pool;
}

static struct dpdk_queue *queue_make(
	struct fabric_dpdk_port *port, const struct fabric_dpdk_port_config *config, uint16_t id)
{
	struct dpdk_queue *q = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->base.ops = &dpdk_ops;
	q->base.payload_bytes_max = payload_max(&port->identity);
	q->base.worker = id;
	q->base.fabric = config->fabric;
	q->port_id = port->port_id;
	q->queue_id = id;
	q->link = port->link;
	q->from_control = id == 0 ? link_from_control(port->link) : NULL;
	q->identity = link_identity(port->link);
	q->neighbours = link_neighbours(port->link);
	packet_site_init(&q->site, &port->identity, config->udp_port, config->fabric);
	return q;
}

static bool queue_open(struct fabric_dpdk_port *port, const struct fabric_dpdk_port_config *config,
	uint16_t id, struct fabric_why *out_why)
{
	uint16_t rx_ring = config->rx_ring != 0 ? config->rx_ring : RING_DEFAULT;
	uint16_t tx_ring = config->tx_ring != 0 ? config->tx_ring : RING_DEFAULT;
	uint32_t frames = config->frames != 0 ? config->frames : FRAMES_DEFAULT;
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->port_id, &rx_ring, &tx_ring);
	if (rc != 0)
		return fail(out_why, config->device, "ring sizes: %s", rte_strerror(-rc));
	struct dpdk_queue *q = port->queues[id] = queue_make(port, config, id);
	if (q == NULL)
		return fail(out_why, config->device, "out of memory");
	q->pool = pool_make(port, id, frames + rx_ring + tx_ring, config->device, out_why);
	if (q->pool == NULL)
		return false;
	unsigned int socket = (unsigned int)rte_eth_dev_socket_id(port->port_id);
	rc = rte_eth_rx_queue_setup(port->port_id, id, rx_ring, socket, NULL, q->pool);
	if (rc != 0)
		return fail(out_why, config->device,
			"receive queue %u: %s; the device's frame size must fit %u bytes (MTU %u)",
			id, rte_strerror(-rc),
			room_bytes(port->identity.mtu) - RTE_PKTMBUF_HEADROOM, port->identity.mtu);
	rc = rte_eth_tx_queue_setup(port->port_id, id, tx_ring, socket, NULL);
	return rc == 0 || fail(out_why, config->device, "transmit queue %u: %s", id,
				  rte_strerror(-rc));
}

// Neighbour discovery asks through groups: let them in, by promiscuous mode where there is no other
// way. Software drivers without either pass everything anyhow.
static void groups_admit(const struct fabric_dpdk_port *port)
{
	if (rte_eth_allmulticast_enable(port->port_id) != 0)
		(void)rte_eth_promiscuous_enable(port->port_id);
}

static const char *start_hint(const struct fabric_dpdk_port *port)
{
	if (driver_is(port, "net_memif"))
		return "; a memif client needs its server's socket: start the server first";
	if (driver_is(port, "net_af_packet"))
		return "; af_packet needs CAP_NET_RAW and CAP_NET_ADMIN";
	return "";
}

static bool bring_up(struct fabric_dpdk_port *port, const struct fabric_dpdk_port_config *config,
	struct fabric_why *out_why)
{
	struct rte_eth_dev_info info;
	if (!port_find(config->device, &port->port_id, out_why))
		return false;
	int rc = rte_eth_dev_info_get(port->port_id, &info);
	if (rc != 0)
		return fail(out_why, config->device, "%s", rte_strerror(-rc));
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	port->tx_capabilities = info.tx_offload_capa;
	port->queue_count = queues_settle(port, &info, config, out_why);
	if (port->queue_count == 0)
		return false;
	struct fabric_why warning = *out_why;
	if (!mac_settle(port, config->device, out_why) ||
		!configure(port, &info, config->device, out_why))
		return false;
	link_local_settle(&port->identity);
	port->link = link_create(&port->identity, config->workers);
	if (port->link == NULL)
		return fail(out_why, config->device, "out of memory or descriptors");
	for (uint16_t id = 0; id < port->queue_count; id++) {
		if (!queue_open(port, config, id, out_why))
			return false;
	}
	rc = rte_eth_dev_start(port->port_id);
	if (rc != 0)
		return fail(out_why, config->device, "driver %s does not start (%s)%s",
			port->driver, rte_strerror(-rc), start_hint(port));
	port->started = true;
	groups_admit(port);
	*out_why = warning;
	return true;
}

bool fabric_dpdk_port_open(const struct fabric_dpdk_port_config *config,
	struct fabric_dpdk_port **out_port, struct fabric_why *out_why)
{
	CHECK(config->workers > 0 && config->workers <= LINK_WORKERS_MAX);
	out_why->text[0] = '\0';
	if (!identity_check(&config->identity, config->device, out_why))
		return false;
	struct fabric_dpdk_port *port = mem_zalloc(sizeof(*port));
	if (port == NULL)
		return fail(out_why, config->device, "out of memory");
	port->identity = config->identity;
	if (port->identity.mtu == 0)
		port->identity.mtu = MTU_DEFAULT;
	if (!bring_up(port, config, out_why)) {
		fabric_dpdk_port_close(port);
		return false;
	}
	*out_port = port;
	return true;
}

void fabric_dpdk_port_close(struct fabric_dpdk_port *port)
{
	if (port == NULL)
		return;
	// Stopped, not closed: a closed ethdev is gone for good, a stopped one can be opened again.
	if (port->started)
		(void)rte_eth_dev_stop(port->port_id);
	for (uint16_t id = 0; id < port->queue_count; id++) {
		if (port->queues[id] == NULL)
			continue;
		rte_mempool_free(port->queues[id]->pool);
		mem_free(port->queues[id]);
	}
	link_destroy(port->link);
	mem_free(port);
}

struct fabric_queue *fabric_dpdk_port_queue(struct fabric_dpdk_port *port, uint16_t worker)
{
	if (worker >= port->queue_count)
		return NULL;
	return (struct fabric_queue *)(void *)port->queues[worker];
}

uint16_t fabric_dpdk_port_queue_count(const struct fabric_dpdk_port *port)
{
	return port->queue_count;
}

void fabric_dpdk_port_net_io(struct fabric_dpdk_port *port, struct dp_net_io *out_io)
{
	link_io(port->link, out_io);
}

const struct dp_net_identity *fabric_dpdk_port_identity(const struct fabric_dpdk_port *port)
{
	return &port->identity;
}

void fabric_dpdk_port_driver(struct fabric_dpdk_port *port, struct fabric_dpdk_driver *out)
{
	struct rte_eth_stats stats = {0};
	struct rte_eth_link link = {0};
	(void)rte_eth_stats_get(port->port_id, &stats); // zeros where the driver has none
	(void)rte_eth_link_get_nowait(port->port_id, &link);
	*out = (struct fabric_dpdk_driver){.name = port->driver,
		.missed = stats.imissed,
		.no_buffer = stats.rx_nombuf,
		.errors_in = stats.ierrors,
		.errors_out = stats.oerrors,
		.hides_losses = strncmp(port->driver, "net_", 4) == 0 &&
				(driver_is(port, "net_af_packet") || driver_is(port, "net_tap") ||
					driver_is(port, "net_memif")),
		.link_up = link.link_status != 0,
		.multi_segment_send =
			(port->tx_capabilities & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0};
}

uint32_t fabric_dpdk_free_buffers(const struct fabric_queue *q)
{
	return rte_mempool_avail_count(((const struct dpdk_queue *)(const void *)q)->pool);
}
