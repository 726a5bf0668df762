// SPDX-License-Identifier: BSD-3-Clause
#include "config/schema.h"

#include "base/compiler.h"
#include "config/config.h"

static const char *const idle_choices[] = {"spin", "adaptive", NULL};
static const char *const fabric_choices[] = {"dpdk", "udp", NULL};
static const char *const hugepages_choices[] = {"auto", "yes", "no", NULL};
static const char *const accounting_choices[] = {"measured", "fixed", NULL};
static const char *const store_choices[] = {"sqlite", "memory", NULL};
static const char *const role_choices[] = {"read", "operate", "administer", NULL};
static const char *const level_choices[] = {"error", "warn", "info", "debug", NULL};

#define KiB UINT64_C(1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)
#define AT(type, member) (uint32_t)offsetof(type, member)
#define SCALAR(type, value, path, member, low, high, fallback, text)                               \
	{path, value, CONFIG_RELOAD_NEVER, AT(type, member), 0, sizeof(((type *)0)->member), low, high, \
		NULL, NULL, fallback, text}
#define CHOICE(type, path, member, choices, fallback, text)                                        \
	{path, CONFIG_CHOICE, CONFIG_RELOAD_NEVER, AT(type, member), 0, 0, 0, 0, choices, NULL,    \
		fallback, text}
#define LIST(type, value, path, member, count, capacity, low, high, record, text)                  \
	{path, value, CONFIG_RELOAD_NEVER, AT(type, member), AT(type, count), capacity, low, high, \
		NULL, record, NULL, text}

static const struct config_key fabric_keys[] = {
	CHOICE(struct config_fabric, "kind", kind, fabric_choices, NULL,
		"dpdk: a polled DPDK port. udp: a kernel socket, for loopback and machines without a port."),
	SCALAR(struct config_fabric, CONFIG_TEXT, "name", name, 1, 64, NULL,
		"Name in statistics; the kind and the place in the list when not given."),
	SCALAR(struct config_fabric, CONFIG_TEXT, "vdev", vdev, 1, 0, NULL,
		"dpdk: an EAL virtual device, for example net_memif0,role=server."),
	SCALAR(struct config_fabric, CONFIG_TEXT, "pci", pci, 12, 12, NULL,
		"dpdk: PCI address of a NIC, in full: 0000:03:00.0."),
	SCALAR(struct config_fabric, CONFIG_TEXT, "iface", iface, 1, 0, NULL,
		"dpdk: a kernel interface, polled through af_packet."),
	LIST(struct config_fabric, CONFIG_ADDRESSES, "addresses", addresses, address_count,
		CONFIG_ADDRESSES_MAX, 0, 0, NULL,
		"dpdk: the node's addresses on this port, each with its prefix: 10.99.0.1/24, fd00::1/64."),
	SCALAR(struct config_fabric, CONFIG_COUNT, "port", port, 1, 65535, "7700",
		"dpdk: UDP port on which messages arrive."),
	SCALAR(struct config_fabric, CONFIG_IP4, "gateway4", gateway4, 0, 0, NULL,
		"dpdk: IPv4 gateway for destinations outside the prefixes."),
	SCALAR(struct config_fabric, CONFIG_IP6, "gateway6", gateway6, 0, 0, NULL,
		"dpdk: IPv6 gateway for destinations outside the prefixes."),
	SCALAR(struct config_fabric, CONFIG_COUNT, "vlan", vlan, 0, 4094, "0",
		"dpdk: VLAN tag of the port's frames; 0 for untagged."),
	SCALAR(struct config_fabric, CONFIG_ENDPOINT, "listen", listen, 0, 0, NULL,
		"udp: address and port to bind: 127.0.0.1:7700 or [::1]:7700; port 0 lets the kernel choose."),
};
static const struct config_schema fabric_schema = {
	fabric_keys, ARRAY_COUNT(fabric_keys), sizeof(struct config_fabric)};

static const struct config_key module_keys[] = {
	SCALAR(struct config_module, CONFIG_TEXT, "path", path, 1, 0, NULL,
		"The module's shared object, an absolute path."),
	LIST(struct config_module, CONFIG_TYPES, "types", types, type_count, CONFIG_TYPES_MAX, 0, 0, NULL,
		"Settings by Spot type: a map from type name to {config: map, application_lane: {count, "
		"bytes}, lifecycle_lane: {count, bytes}, idle_timeout: time}; config is handed to the type as "
		"JSON, the lanes bound its Spots in place of limits and of what the module says, "
		"idle_timeout counts in place of instance_idle_timeout."),
};
static const struct config_schema module_schema = {
	module_keys, ARRAY_COUNT(module_keys), sizeof(struct config_module)};

static const struct config_key role_keys[] = {
	SCALAR(struct config_role_rule, CONFIG_ID, "uid", uid, 0, UINT32_MAX - 1, NULL,
		"Numeric user id the rule is for."),
	SCALAR(struct config_role_rule, CONFIG_ID, "gid", gid, 0, UINT32_MAX - 1, NULL,
		"Numeric group id the rule is for."),
	CHOICE(struct config_role_rule, "role", role, role_choices, NULL, "What it may do."),
};
static const struct config_schema role_schema = {
	role_keys, ARRAY_COUNT(role_keys), sizeof(struct config_role_rule)};

#define TOP(value, path, member, low, high, fallback, text)                                        \
	SCALAR(struct config, value, path, member, low, high, fallback, text)

static const struct config_key keys[] = {
	TOP(CONFIG_TEXT, "node.id", node.id, 1, 64, NULL,
		"Name of this node in the store; held by one process at a time. Required."),
	TOP(CONFIG_TEXT, "node.entry_prefix", node.entry_prefix, 1, 32, "node",
		"First part of the Entry Spot's id."),
	TOP(CONFIG_TEXT, "node.entry_type", node.entry_type, 0, 64, "",
		"Spot type of the Entry Spot; empty for none."),
	TOP(CONFIG_BOOL, "insecure", insecure, 0, 0, "no",
		"Accept frames without authentication. This version knows no other kind."),
	LIST(struct config, CONFIG_CORES, "workers.cores", workers.cores, workers.core_count,
		CONFIG_CORES_MAX, 0, 1023, NULL, "Cores to run workers on, one each."),
	TOP(CONFIG_COUNT, "workers.count", workers.count, 1, 64, "1",
		"Number of workers, where cores are not named."),
	CHOICE(struct config, "workers.idle", workers.idle, idle_choices, "adaptive",
		"spin: poll without rest, for cores of their own. adaptive: sleep after an idle spell."),
	LIST(struct config, CONFIG_RECORDS, "fabrics", fabrics, fabric_count, CONFIG_FABRICS_MAX, 0, 0,
		&fabric_schema, "The node's ways in and out. At least one is required."),
	CHOICE(struct config, "eal.hugepages", eal.hugepages, hugepages_choices, "auto",
		"Whether DPDK uses hugepages; auto takes them where the kernel has some free."),
	TOP(CONFIG_SIZE, "eal.memory", eal.memory_bytes, 16 * MiB, 1024 * GiB, "128MiB",
		"Memory for DPDK's pools."),
	TOP(CONFIG_TEXT, "eal.file_prefix", eal.file_prefix, 0, 64, "",
		"DPDK file prefix; empty derives one from the node id."),
	LIST(struct config, CONFIG_TEXTS, "eal.extra", eal.extra, eal.extra_count, CONFIG_EAL_EXTRA_MAX, 0,
		0, NULL, "Further EAL arguments, handed over as they are."),
	TOP(CONFIG_COUNT, "limits.application_lane.count", limits.application_lane.count, 1, 4194303,
		"1024", "Items in a Spot's application lane."),
	TOP(CONFIG_SIZE, "limits.application_lane.bytes", limits.application_lane.bytes, 4 * KiB,
		1024 * GiB - 1, "64MiB", "Bytes in a Spot's application lane."),
	TOP(CONFIG_COUNT, "limits.lifecycle_lane.count", limits.lifecycle_lane.count, 1, 4194303, "128",
		"Items in a Spot's lifecycle lane."),
	TOP(CONFIG_SIZE, "limits.lifecycle_lane.bytes", limits.lifecycle_lane.bytes, 4 * KiB,
		1024 * GiB - 1, "4MiB", "Bytes in a Spot's lifecycle lane."),
	TOP(CONFIG_SIZE, "limits.process_inbound", limits.process_inbound_bytes, 1 * MiB, 1024 * GiB,
		"256MiB", "Bytes received and not yet started by a handler, in the whole process."),
	TOP(CONFIG_COUNT, "limits.parked", limits.parked, 1, 16777216, "65536",
		"Messages that wait for a route."),
	TOP(CONFIG_COUNT, "limits.pending_resolves", limits.pending_resolves, 1, 1048576, "4096",
		"Keys being looked up in the store at once."),
	TOP(CONFIG_COUNT, "limits.activations", limits.activations, 1, 65536, "128",
		"Spots being built at once."),
	TOP(CONFIG_COUNT, "limits.activations_waiting", limits.activations_waiting, 1, 1048576, "16384",
		"Spots waiting to be built."),
	TOP(CONFIG_COUNT64, "limits.spots", limits.spots, 0, UINT64_C(1) << 40, "0",
		"Live Spots on this node; 0 for no limit."),
	TOP(CONFIG_SIZE, "limits.message", limits.message_bytes, 1 * KiB, 31 * MiB, "16MiB",
		"Largest payload of one message."),
	TOP(CONFIG_SIZE, "limits.peer_reassembly", limits.peer_reassembly_bytes, 1 * MiB, 1024 * GiB,
		"32MiB", "Bytes one peer may have in half-received messages."),
	TOP(CONFIG_COUNT, "limits.sessions", limits.sessions, 16, 16777216, "16384",
		"Sender sessions each worker remembers."),
	TOP(CONFIG_SIZE, "limits.held_replies", limits.held_replies_bytes, 0, 1 * GiB, "4MiB",
		"Results each worker holds, to send them again when a client repeats a request; 0B = none."),
	CHOICE(struct config, "limits.accounting", limits.accounting, accounting_choices, "measured",
		"measured: an item is charged what the allocator takes. fixed: payload and 256 bytes."),
	TOP(CONFIG_TIME_US, "turn_budget", turn_budget_us, 100, 1000000, "10ms",
		"Time a handler turn should stay within."),
	TOP(CONFIG_TIME_MS, "default_budget", default_budget_ms, 1, 3600000, "5s",
		"Budget of a request that names none."),
	TOP(CONFIG_COUNT, "offload.threads", offload.threads, 1, 256, "2",
		"Threads for blocking work of modules."),
	TOP(CONFIG_COUNT, "offload.queue", offload.queue, 1, 1048576, "1024",
		"Pieces of blocking work that may wait."),
	TOP(CONFIG_TIME_MS, "lease.ttl", lease.ttl_ms, 1000, 3600000, "15s",
		"How long the node may act as owner after a renewal."),
	TOP(CONFIG_TIME_MS, "lease.renew", lease.renew_ms, 100, 3600000, "5s", "Time between renewals."),
	TOP(CONFIG_TIME_MS, "lease.timeout", lease.timeout_ms, 100, 3600000, "3s",
		"Time after which a renewal counts as failed."),
	TOP(CONFIG_TIME_MS, "lease.margin", lease.margin_ms, 0, 3600000, "5s",
		"Time before the end of the TTL at which the node stops acting."),
	TOP(CONFIG_TIME_MS, "lease.fence_after", lease.fence_after_ms, 0, 86400000, "0s",
		"Release a dead node's Spots so long after its lease; 0 leaves that to spotctl node fence."),
	TOP(CONFIG_TIME_MS, "drain_deadline", drain_deadline_ms, 0, 86400000, "30s",
		"Time a stop may take for work already accepted."),
	TOP(CONFIG_TIME_MS, "closing_limit", closing_limit_ms, 100, 86400000, "30s",
		"Time a closing Spot may take before it is reported as stuck."),
	TOP(CONFIG_TIME_MS, "instance_idle_timeout", instance_idle_timeout_ms, 0, 4000000000, "0s",
		"Close an Instance Spot so long after its last work; 0 keeps it."),
	TOP(CONFIG_TIME_MS, "instance_idle_interval", instance_idle_interval_ms, 1, 60000, "10ms",
		"Time between two looks for idle Spots, at 64 Spots each."),
	CHOICE(struct config, "store.kind", store.kind, store_choices, "sqlite",
		"sqlite: a file on this machine. memory: nothing survives a restart."),
	TOP(CONFIG_TEXT, "store.path", store.path, 1, 0, "/var/lib/spotlane/store.db",
		"sqlite: the database file."),
	TOP(CONFIG_TEXT, "control.socket", control.socket, 1, 107, "/run/spotlane/control.sock",
		"Unix socket for spotctl."),
	TOP(CONFIG_MODE, "control.mode", control.mode, 0, 0777, "0660",
		"Permission bits of the socket, in octal."),
	TOP(CONFIG_TEXT, "control.group", control.group, 0, 64, "",
		"Group that owns the socket and may operate; empty: members of spotlane may, if there is such."),
	LIST(struct config, CONFIG_RECORDS, "control.roles", control.roles, control.role_count,
		CONFIG_ROLES_MAX, 0, 0, &role_schema, "Roles by user or group id; the first match counts."),
	TOP(CONFIG_ENDPOINT, "metrics.listen", metrics.listen, 0, 0, NULL,
		"HTTP address for /metrics, /live and /ready: 127.0.0.1:9464; none when not given."),
	TOP(CONFIG_BOOL, "metrics.beyond_loopback", metrics.beyond_loopback, 0, 0, "no",
		"Let metrics.listen be an address that other machines reach. Nothing there asks who reads."),
	LIST(struct config, CONFIG_RECORDS, "modules", modules, module_count, CONFIG_MODULES_MAX, 0, 0,
		&module_schema, "Modules to load."),
	CHOICE(struct config, "log.level", log.level, level_choices, "info", "Least severe line to write."),
	TOP(CONFIG_TEXT, "log.file", log.file, 0, 0, "", "Log file; empty for standard error."),
};

const struct config_schema config_schema = {keys, ARRAY_COUNT(keys), 0};

const char *config_value_name(enum config_value value)
{
	switch (value) {
	case CONFIG_BOOL:
		return "yes|no";
	case CONFIG_COUNT:
	case CONFIG_COUNT64:
	case CONFIG_ID:
		return "number";
	case CONFIG_SIZE:
		return "size";
	case CONFIG_TIME_MS:
	case CONFIG_TIME_US:
		return "time";
	case CONFIG_TEXT:
		return "text";
	case CONFIG_MODE:
		return "octal";
	case CONFIG_CHOICE:
		return "choice";
	case CONFIG_IP4:
		return "IPv4 address";
	case CONFIG_IP6:
		return "IPv6 address";
	case CONFIG_ENDPOINT:
		return "address:port";
	case CONFIG_CORES:
		return "list of numbers";
	case CONFIG_TEXTS:
		return "list of texts";
	case CONFIG_ADDRESSES:
		return "list of address/prefix";
	case CONFIG_RECORDS:
		return "list of maps";
	case CONFIG_TYPES:
		return "map of maps";
	}
	return "unknown";
}
