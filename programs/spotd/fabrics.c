// SPDX-License-Identifier: BSD-3-Clause
#include "fabrics.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fabric/dpdk.h"
#include "fabric/udp.h"
#include "log.h"
#include "net/net.h"
#include "worker/worker.h"

enum { MTU_DEFAULT = 1500, MIB = 1024 * 1024 };

// ---- DPDK ----

static const char *device_of(const struct fabrics_entry *entry)
{
	return entry->config->pci[0] != '\0' ? entry->config->pci : entry->vdev;
}

// The EAL device string of an entry that is no PCI NIC: as written, or af_packet on an interface.
static bool make_vdev(struct fabrics_entry *entry, uint32_t index, uint16_t workers, char *out_why)
{
	const struct config_fabric *c = entry->config;
	char name[32];
	if (c->pci[0] != '\0')
		return true;
	if (c->vdev[0] != '\0') {
		snprintf(entry->vdev, sizeof(entry->vdev), "%s", c->vdev);
		return true;
	}
	snprintf(name, sizeof(name), "net_af_packet%u", index);
	if (fabric_dpdk_vdev_af_packet(
		    name, c->iface, MTU_DEFAULT, workers, entry->vdev, sizeof(entry->vdev)))
		return true;
	snprintf(out_why, FABRICS_WHY_BYTES,
		"fabrics[%u]: interface %s does not fit a device string", index, c->iface);
	return false;
}

static bool start_eal(struct fabrics *f, const struct config *config, char *out_why)
{
	struct fabric_dpdk_eal_config eal = {
		.memory_mib = (uint32_t)(config->eal.memory_bytes / MIB),
		.file_prefix = config->eal.file_prefix,
		.verbose = config->log.level >= CONFIG_LOG_DEBUG,
	};
	struct fabric_dpdk_eal started;
	struct fabric_why why = {""};
	eal.pages = config->eal.hugepages == CONFIG_HUGEPAGES_YES  ? FABRIC_DPDK_PAGES_HUGE
		    : config->eal.hugepages == CONFIG_HUGEPAGES_NO ? FABRIC_DPDK_PAGES_NONE
								   : FABRIC_DPDK_PAGES_AUTO;
	for (uint32_t i = 0; i < f->count; i++) {
		struct fabrics_entry *entry = &f->entries[i];
		if (entry->config->kind != CONFIG_FABRIC_DPDK)
			continue;
		if (!make_vdev(entry, i, (uint16_t)config->workers.count, out_why))
			return false;
		if (entry->config->pci[0] != '\0')
			eal.pci[eal.pci_count++] = entry->config->pci;
		else
			eal.vdevs[eal.vdev_count++] = entry->vdev;
	}
	if (eal.vdev_count + eal.pci_count == 0)
		return true;
	for (uint32_t i = 0; i < config->eal.extra_count && i < FABRIC_DPDK_EXTRA_MAX; i++)
		eal.extra[eal.extra_count++] = config->eal.extra[i];
	if (!fabric_dpdk_start(&eal, &started, &why)) {
		snprintf(out_why, FABRICS_WHY_BYTES, "%s", why.text);
		return false;
	}
	f->eal_started = true;
	snprintf(f->eal_line, sizeof(f->eal_line), "%s", started.line);
	log_line(LOG_LEVEL_INFO, "EAL: %s", f->eal_line);
	return true;
}

static bool parse_gateway(int family, const char *text, uint8_t out[16])
{
	uint8_t v4[4];
	if (text[0] == '\0')
		return true;
	if (family == AF_INET6)
		return inet_pton(AF_INET6, text, out) == 1;
	if (inet_pton(AF_INET, text, v4) != 1)
		return false;
	peer_ip_from_v4(out, v4);
	return true;
}

static bool identity_of(const struct config_fabric *c, struct dp_net_identity *out)
{
	out->vlan = (uint16_t)c->vlan;
	for (uint32_t i = 0; i < c->address_count && i < DP_NET_ADDRESSES_MAX; i++) {
		struct dp_net_address *a = &out->addresses[out->address_count++];
		memcpy(a->ip, c->addresses[i].ip, sizeof(a->ip));
		a->prefix_bits =
			(uint8_t)(c->addresses[i].prefix_bits + (c->addresses[i].is_ipv6 ? 0 : 96));
	}
	return parse_gateway(AF_INET, c->gateway4, out->gateway_v4) &&
	       parse_gateway(AF_INET6, c->gateway6, out->gateway_v6);
}

static void name_dpdk(struct fabrics_entry *entry)
{
	const struct config_fabric *c = entry->config;
	struct fabric_dpdk_driver driver;
	fabric_dpdk_port_driver(entry->dpdk, &driver);
	snprintf(entry->driver, sizeof(entry->driver), "%s", driver.name);
	char text[52] = "";
	if (c->address_count > 0)
		snprintf(text, sizeof(text), "%s", c->addresses[0].text);
	text[strcspn(text, "/")] = '\0';
	bool v6 = c->address_count > 0 && c->addresses[0].is_ipv6;
	snprintf(entry->address, sizeof(entry->address), v6 ? "[%s]:%u" : "%s:%u", text, c->port);
}

static bool open_dpdk(struct fabrics *f, uint32_t index, uint16_t workers, char *out_why)
{
	struct fabrics_entry *entry = &f->entries[index];
	struct fabric_dpdk_port_config port = {
		.device = device_of(entry),
		.fabric = (uint8_t)index,
		.udp_port = (uint16_t)entry->config->port,
		.workers = workers,
	};
	struct fabric_why why = {""};
	struct dp_net_io io;
	if (!identity_of(entry->config, &port.identity)) {
		snprintf(out_why, FABRICS_WHY_BYTES, "fabrics[%u]: a gateway is not an address",
			index);
		return false;
	}
	if (!fabric_dpdk_port_open(&port, &entry->dpdk, &why)) {
		snprintf(out_why, FABRICS_WHY_BYTES, "fabrics[%u]: %s", index, why.text);
		return false;
	}
	if (why.text[0] != '\0')
		log_line(LOG_LEVEL_WARN, "fabrics[%u]: %s", index, why.text);
	for (uint16_t w = 0; w < workers; w++)
		entry->queues[w] = fabric_dpdk_port_queue(entry->dpdk, w);
	fabric_dpdk_port_net_io(entry->dpdk, &io);
	entry->net = net_port_create(fabric_dpdk_port_identity(entry->dpdk), &io);
	if (entry->net == NULL) {
		snprintf(out_why, FABRICS_WHY_BYTES, "fabrics[%u]: out of memory", index);
		return false;
	}
	name_dpdk(entry);
	return true;
}

// ---- kernel UDP ----

static bool open_udp(struct fabrics *f, uint32_t index, uint16_t workers, char *out_why)
{
	struct fabrics_entry *entry = &f->entries[index];
	const struct config_endpoint *listen = &entry->config->listen;
	char address[INET6_ADDRSTRLEN] = "";
	struct fabric_why why = {""};
	if (listen->is_ipv6)
		inet_ntop(AF_INET6, listen->ip, address, sizeof(address));
	else
		inet_ntop(AF_INET, listen->ip + 12, address, sizeof(address));
	struct fabric_udp_config udp = {.address = address,
		.port = listen->port,
		.fabric = (uint8_t)index,
		.inherit = true};
	if (!fabric_udp_open(&udp, entry->queues, workers, &why)) {
		snprintf(out_why, FABRICS_WHY_BYTES, "fabrics[%u]: %s", index, why.text);
		return false;
	}
	snprintf(entry->driver, sizeof(entry->driver), "kernel");
	snprintf(entry->address, sizeof(entry->address), listen->is_ipv6 ? "[%s]:%u" : "%s:%u",
		address, fabric_udp_port(entry->queues[0]));
	return true;
}

// ---- all ----

bool fabrics_open(struct fabrics *f, const struct config *config, struct clock *clock,
	char out_why[FABRICS_WHY_BYTES])
{
	uint16_t workers = (uint16_t)config->workers.count;
	f->clock = clock;
	f->count = config->fabric_count;
	for (uint32_t i = 0; i < f->count; i++)
		f->entries[i].config = &config->fabrics[i];
	bool open = start_eal(f, config, out_why);
	for (uint32_t i = 0; open && i < f->count; i++) {
		open = f->entries[i].config->kind == CONFIG_FABRIC_DPDK
			       ? open_dpdk(f, i, workers, out_why)
			       : open_udp(f, i, workers, out_why);
		if (open)
			log_line(LOG_LEVEL_INFO, "fabric %s (%s) on %s", config->fabrics[i].name,
				f->entries[i].driver, f->entries[i].address);
	}
	if (!open)
		fabrics_close(f);
	return open;
}

void fabrics_attach(struct fabrics *f, struct dp *dp, uint16_t workers)
{
	for (uint32_t i = 0; i < f->count; i++)
		for (uint16_t w = 0; w < workers; w++)
			if (f->entries[i].queues[w] != NULL)
				CHECK(dp_attach_queue(dp, w, f->entries[i].queues[w]));
}

static void close_entry(struct fabrics_entry *entry)
{
	net_port_destroy(entry->net);
	if (entry->dpdk != NULL)
		fabric_dpdk_port_close(entry->dpdk);
	else
		for (uint32_t w = 0; w < DP_WORKERS_MAX; w++)
			fabric_udp_close(entry->queues[w]);
	*entry = (struct fabrics_entry){0};
}

void fabrics_close(struct fabrics *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		close_entry(&f->entries[i]);
	f->count = 0;
	if (f->eal_started)
		fabric_dpdk_stop();
	f->eal_started = false;
}

void fabrics_thread_begin(void *arg, uint16_t worker)
{
	struct fabrics *f = arg;
	struct fabric_why why = {""};
	(void)worker;
	// EAL has room for more threads than there can be workers.
	CHECK(!f->eal_started || fabric_dpdk_thread_begin(&why));
}

void fabrics_thread_end(void *arg, uint16_t worker)
{
	struct fabrics *f = arg;
	(void)worker;
	if (f->eal_started)
		fabric_dpdk_thread_end();
}

uint64_t fabrics_step(void *arg)
{
	struct fabrics *f = arg;
	uint64_t now = clock_boot_ns(f->clock), next = LOOP_NEVER;
	for (uint32_t i = 0; i < f->count; i++) {
		if (f->entries[i].net == NULL)
			continue;
		uint64_t wanted = net_port_step(f->entries[i].net, now);
		next = wanted < next ? wanted : next;
	}
	return next;
}

void fabrics_add_wakes(struct fabrics *f, struct loop *loop)
{
	for (uint32_t i = 0; i < f->count; i++) {
		struct dp_net_io io;
		if (f->entries[i].dpdk == NULL)
			continue;
		fabric_dpdk_port_net_io(f->entries[i].dpdk, &io);
		if (io.wake_fd >= 0)
			loop_add_wake(loop, io.wake_fd);
	}
}

static const struct fabric_queue_base *first_queue(const struct fabrics_entry *entry)
{
	for (uint32_t w = 0; w < DP_WORKERS_MAX; w++)
		if (entry->queues[w] != NULL)
			return fabric_base(entry->queues[w]);
	return NULL;
}

void fabrics_describe(struct fabrics *f, uint32_t index, struct api_fabric *out)
{
	const struct fabrics_entry *entry = &f->entries[index];
	const struct fabric_queue_base *queue = first_queue(entry);
	*out = (struct api_fabric){
		.name = entry->config->name,
		.kind = entry->config->kind == CONFIG_FABRIC_DPDK ? "dpdk" : "udp",
		.driver = entry->driver,
		.address = entry->address,
		.link_up = true,
		.payload_bytes_max = queue != NULL ? queue->payload_bytes_max : 0,
	};
	if (entry->dpdk == NULL)
		return;
	struct fabric_dpdk_driver driver;
	fabric_dpdk_port_driver(entry->dpdk, &driver);
	out->link_up = driver.link_up;
	out->hides_losses = driver.hides_losses;
}

void fabrics_stats(
	struct fabrics *f, uint32_t index, uint16_t worker, api_emit_number emit, void *to)
{
	struct fabric_queue *queue = f->entries[index].queues[worker];
	if (queue == NULL)
		return;
	const struct fabric_queue_stats *s = &fabric_base(queue)->stats;
	// What the driver counts it counts per port: shown with the first worker.
	struct fabric_dpdk_driver driver = {0};
	if (f->entries[index].dpdk != NULL && worker == 0)
		fabric_dpdk_port_driver(f->entries[index].dpdk, &driver);
	emit(to, "rx_frames", s->rx_frames);
	emit(to, "rx_bytes", s->rx_bytes);
	emit(to, "tx_frames", s->tx_frames);
	emit(to, "tx_bytes", s->tx_bytes);
	emit(to, "rx_other", s->rx_other);
	emit(to, "rx_malformed", s->rx_malformed);
	emit(to, "rx_wrong_port", s->rx_wrong_port);
	emit(to, "rx_missed", s->rx_missed + driver.missed);
	emit(to, "rx_no_buffer", s->rx_no_buffer + driver.no_buffer);
	emit(to, "tx_full", s->tx_full);
	emit(to, "tx_no_neighbour", s->tx_no_neighbour);
	emit(to, "tx_too_large", s->tx_too_large);
	emit(to, "rx_fragments", s->rx_fragments);
	emit(to, "rx_checksum_bad", s->rx_checksum_bad);
	emit(to, "rx_checksum_unfinished", s->rx_checksum_unfinished);
	emit(to, "control_refused", s->control_refused);
}

const char *fabrics_dpdk_version(void)
{
	return fabric_dpdk_version();
}
