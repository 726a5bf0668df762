// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The node's configuration: one YAML file, checked completely before anything starts.
//
// An unknown or repeated key, a bad unit, a value out of range or a broken relation (M8, O1) refuses
// the whole file with `file:line:column: key: what is wrong`; a misspelt key names the nearest valid
// one. What is not written has the default of the key table (schema.h); node.id and fabrics have
// none. The same functions serve start, `spotd --check` and tests: no root, no EAL, no side effect.
//
// Threads: any, no state is shared. Sizes are bytes, times carry their unit in the name.

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
	CONFIG_FILE_BYTES_MAX = 1024 * 1024,
	CONFIG_CORES_MAX = 64,
	CONFIG_FABRICS_MAX = 8,
	CONFIG_ADDRESSES_MAX = 8,
	CONFIG_EAL_EXTRA_MAX = 32,
	CONFIG_MODULES_MAX = 16,
	CONFIG_TYPES_MAX = 16,
	CONFIG_ROLES_MAX = 32,
	CONFIG_PATH_BYTES = 256,
	CONFIG_TEXT_BYTES = 160,
	CONFIG_NAME_BYTES = 65,
	CONFIG_DIGEST_BYTES = 65, // hex and its end
};

enum config_idle { CONFIG_IDLE_SPIN = 1, CONFIG_IDLE_ADAPTIVE = 2 };
enum config_fabric_kind { CONFIG_FABRIC_DPDK = 1, CONFIG_FABRIC_UDP = 2 };
enum config_hugepages { CONFIG_HUGEPAGES_AUTO = 1, CONFIG_HUGEPAGES_YES = 2, CONFIG_HUGEPAGES_NO = 3 };
enum config_accounting { CONFIG_ACCOUNTING_MEASURED = 1, CONFIG_ACCOUNTING_FIXED = 2 };
enum config_store_kind { CONFIG_STORE_SQLITE = 1, CONFIG_STORE_MEMORY = 2 };
enum config_role { CONFIG_ROLE_READ = 1, CONFIG_ROLE_OPERATE = 2, CONFIG_ROLE_ADMINISTER = 3 };
enum config_log_level { CONFIG_LOG_ERROR = 1, CONFIG_LOG_WARN = 2, CONFIG_LOG_INFO = 3, CONFIG_LOG_DEBUG = 4 };

struct config_address { // an interface address with its prefix; IPv4 is mapped (::ffff:a.b.c.d)
	uint8_t ip[16];
	uint8_t prefix_bits; // of the family: 0..32 or 0..128
	bool is_ipv6;
	char text[52]; // as written
};

struct config_endpoint { // `127.0.0.1:7700` or `[::1]:7700`; an empty text is "not given"
	uint8_t ip[16]; // IPv4 mapped
	uint16_t port;
	bool is_ipv6;
	char text[52];
};

struct config_fabric {
	uint32_t kind; // enum config_fabric_kind
	char name[CONFIG_NAME_BYTES];  // default: <kind><index>
	char vdev[CONFIG_TEXT_BYTES];  // dpdk, exactly one of vdev, pci, iface: an EAL vdev string
	char pci[32];                  // dpdk: a PCI address, 0000:03:00.0
	char iface[16];                // dpdk: a kernel interface, driven through af_packet
	struct config_address addresses[CONFIG_ADDRESSES_MAX]; // dpdk
	uint32_t address_count;
	uint32_t port;     // dpdk: UDP port, host order
	char gateway4[16]; // empty = none
	char gateway6[46];
	uint32_t vlan;     // 0 = none
	struct config_endpoint listen; // udp
};

struct config_lane {
	uint32_t count;
	uint64_t bytes;
};

struct config_type { // a Spot type of a module and its own settings
	char name[CONFIG_NAME_BYTES];
	char *json; // owned; the `config` map as JSON text, never NULL
	struct config_lane application_lane, lifecycle_lane; // 0: as the module and the node say
	bool idle_timeout_given;
	uint32_t idle_timeout_ms; // C1, in place of instance_idle_timeout
};

struct config_module {
	char path[CONFIG_PATH_BYTES];
	struct config_type types[CONFIG_TYPES_MAX];
	uint32_t type_count;
};

struct config_role_rule { // exactly one of uid, gid
	int64_t uid; // -1 = not given
	int64_t gid;
	uint32_t role; // enum config_role
};

struct config {
	struct {
		char id[CONFIG_NAME_BYTES];
		char entry_prefix[33];
		char entry_type[CONFIG_NAME_BYTES]; // empty = no Entry Spot
	} node;
	bool insecure; // suite 0 allowed
	struct {
		uint16_t cores[CONFIG_CORES_MAX]; // given: one worker each, pinned
		uint32_t core_count;              // 0 = not given
		uint32_t count;                   // workers in all, always filled
		uint32_t idle;                    // enum config_idle
	} workers;
	struct config_fabric fabrics[CONFIG_FABRICS_MAX];
	uint32_t fabric_count;
	struct {
		uint32_t hugepages; // enum config_hugepages
		uint64_t memory_bytes;
		char file_prefix[CONFIG_NAME_BYTES];
		char extra[CONFIG_EAL_EXTRA_MAX][CONFIG_TEXT_BYTES];
		uint32_t extra_count;
	} eal;
	struct {
		struct config_lane application_lane, lifecycle_lane; // L1
		uint64_t process_inbound_bytes;                       // P1
		uint32_t parked, pending_resolves, activations, activations_waiting; // A10
		uint64_t spots;                                       // N1, 0 = none
		uint64_t message_bytes, peer_reassembly_bytes;        // M8
		uint64_t held_replies_bytes;                          // per worker (M9)
		uint32_t sessions;                                    // per worker (M9)
		uint32_t accounting;                                  // enum config_accounting
	} limits;
	uint32_t turn_budget_us;    // X4
	uint32_t default_budget_ms; // of a request that names none
	struct {
		uint32_t threads, queue; // X5
	} offload;
	struct {
		uint32_t ttl_ms, renew_ms, timeout_ms, margin_ms; // O1
		uint32_t fence_after_ms;                          // O6; 0 = only by an operator
	} lease;
	uint32_t drain_deadline_ms; // H2, H3
	uint32_t closing_limit_ms;  // C4
	uint32_t instance_idle_timeout_ms, instance_idle_interval_ms; // C1 (0 = off), C3
	struct {
		uint32_t kind; // enum config_store_kind
		char path[CONFIG_PATH_BYTES];
	} store;
	struct {
		char socket[CONFIG_PATH_BYTES]; // at most 107 bytes
		uint32_t mode;                  // permission bits
		char group[CONFIG_NAME_BYTES];  // empty = none
		struct config_role_rule roles[CONFIG_ROLES_MAX];
		uint32_t role_count;
	} control;
	struct {
		struct config_endpoint listen; // empty = no HTTP listener
		bool beyond_loopback;
	} metrics;
	struct config_module modules[CONFIG_MODULES_MAX];
	uint32_t module_count;
	struct {
		uint32_t level; // enum config_log_level
		char file[CONFIG_PATH_BYTES]; // empty = stderr
	} log;
};

enum config_status { CONFIG_ACCEPTED = 1, CONFIG_REFUSED = 2 };

enum { CONFIG_WARNINGS_MAX = 8, CONFIG_MESSAGE_BYTES = 512 };
struct config_report {
	char error[CONFIG_MESSAGE_BYTES]; // filled when refused: the first thing wrong
	char warnings[CONFIG_WARNINGS_MAX][CONFIG_MESSAGE_BYTES];
	uint32_t warning_count;
	bool io_failed; // the file could not be read at all
};

// Reads and checks a file. On CONFIG_ACCEPTED *out is whole and is ended with config_fini; on
// CONFIG_REFUSED *out holds nothing to end. `report` is always filled.
MUST_USE enum config_status config_load(
	const char *path, struct config *out, struct config_report *report);
// The same on text in memory; `name` stands for the file in messages. Also the fuzz entry.
MUST_USE enum config_status config_parse_buffer(const char *name, const char *text, size_t size,
	struct config *out, struct config_report *report);
void config_fini(struct config *config);
// The defaults of every key that has one; the rest is empty. Ended with config_fini.
void config_defaults(struct config *out);

// The whole configuration as normalised YAML, every key written. Owned by the caller (mem_free);
// NULL when memory is short. Parsing it again gives an equal configuration and an equal dump.
MUST_USE char *config_dump(const struct config *config);
// Hex SHA-256 of the dump: equal digests are equal configurations, however they were written.
void config_digest(const struct config *config, char out[CONFIG_DIGEST_BYTES]);

// `spotd --check[=strict]`: loads, prints warnings and errors to stderr and, when all is well, one
// line with the digest to stdout. Returns the process's exit code: 0, or 2 (refused; with `strict`
// a warning refuses too).
int config_check(const char *path, bool strict);
