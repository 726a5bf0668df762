// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// DPDK's environment layer: started once per process, from a config struct. Worker threads are
// ours, not EAL's: each announces itself with fabric_dpdk_thread_begin.
//
// All functions: main thread, unless stated. They may block and print (EAL prints to stderr).

#include "fabric/fabric.h"

enum fabric_dpdk_pages {
	FABRIC_DPDK_PAGES_AUTO = 1, // hugepages when enough are free, else none
	FABRIC_DPDK_PAGES_HUGE = 2, // refuse to start without
	FABRIC_DPDK_PAGES_NONE = 3,
};

enum { FABRIC_DPDK_EXTRA_MAX = 32 };
enum { FABRIC_DPDK_DEVICES_MAX = 16, FABRIC_DPDK_LINE_BYTES = 2048, FABRIC_DPDK_VDEV_BYTES = 256 };

struct fabric_dpdk_eal_config {
	enum fabric_dpdk_pages pages;
	uint32_t memory_mib;     // 0 = 256
	const char *file_prefix; // own one per process; letters, digits, '-' and '_'
	const char *vdevs[FABRIC_DPDK_DEVICES_MAX]; // "net_af_packet0,iface=d0,…"
	uint16_t vdev_count;
	// allowed addresses "0000:01:00.0"; none = no PCI scan
	const char *pci[FABRIC_DPDK_DEVICES_MAX];
	uint16_t pci_count;
	// further EAL arguments, as they are (escape hatch)
	const char *extra[FABRIC_DPDK_EXTRA_MAX];
	uint16_t extra_count;
	bool verbose; // EAL's notices too; else warnings and errors only
};

struct fabric_dpdk_eal {
	char line[FABRIC_DPDK_LINE_BYTES]; // the effective EAL arguments, for display
	bool hugepages;
};

// What fabric_dpdk_start would pass to EAL, without starting it: pages AUTO is decided by what is
// free now. False when the configuration cannot work; *out_why says why.
MUST_USE bool fabric_dpdk_plan(const struct fabric_dpdk_eal_config *config,
	struct fabric_dpdk_eal *out_eal, struct fabric_why *out_why);
// Once per process: DPDK cannot be started again after a failure or a stop. The caller's CPU
// affinity is as before on return. Checks that every named device came up as a port, since EAL
// reports success without them.
MUST_USE bool fabric_dpdk_start(const struct fabric_dpdk_eal_config *config,
	struct fabric_dpdk_eal *out_eal, struct fabric_why *out_why);
// After all ports are closed and all threads ended.
void fabric_dpdk_stop(void);

// A worker thread, before its first and after its last use of a port. Needed for the mbuf caches.
MUST_USE bool fabric_dpdk_thread_begin(struct fabric_why *out_why);
void fabric_dpdk_thread_end(void);

// The vdev string for an af_packet port on a kernel interface, with ring and frame sizes that hold
// `mtu`-sized packets and a burst of thousands. queues: 1 per worker, the kernel spreads flows.
// False when it does not fit or a value is out of range. Any thread.
MUST_USE bool fabric_dpdk_vdev_af_packet(const char *name, const char *interface, uint16_t mtu,
	uint16_t queues, char *out, size_t out_bytes);
// The DPDK release that runs, "DPDK 22.11.11". Any thread.
const char *fabric_dpdk_version(void);
