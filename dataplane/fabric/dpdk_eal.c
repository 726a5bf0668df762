// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/dpdk_eal.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_version.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "base/check.h"
#include "dp/net.h"

enum { MEMORY_MIB_DEFAULT = 256, ARGUMENTS_MAX = 64, CORES_BYTES = 512 };

struct eal_arguments {
	char text[FABRIC_DPDK_LINE_BYTES]; // the arguments, NUL between them
	size_t used;
	char *argv[ARGUMENTS_MAX];
	int argc;
	bool overflow;
};

PRINTF_LIKE(2, 3) static void argument_add(struct eal_arguments *a, const char *format, ...)
{
	va_list list;
	size_t room = sizeof(a->text) - a->used;
	va_start(list, format);
	int n = vsnprintf(a->text + a->used, room, format, list);
	va_end(list);
	if (n < 0 || (size_t)n >= room || a->argc == ARGUMENTS_MAX - 1) {
		a->overflow = true;
		return;
	}
	a->argv[a->argc++] = a->text + a->used;
	a->used += (size_t)n + 1;
}

PRINTF_LIKE(2, 3) static bool fail(struct fabric_why *out_why, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(out_why->text, sizeof(out_why->text), format, list);
	va_end(list);
	return false;
}

static uint64_t meminfo_read(const char *field)
{
	char line[256];
	uint64_t value = 0;
	size_t length = strlen(field);
	FILE *file = fopen("/proc/meminfo", "re");
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, field, length) == 0)
			value = strtoull(line + length, NULL, 10);
	}
	fclose(file);
	return value;
}

// False, with the reason, when huge pages are demanded and not there.
static bool pages_choose(const struct fabric_dpdk_eal_config *config, uint32_t memory_mib,
	bool *out_huge, struct fabric_why *out_why)
{
	uint64_t page_kib = meminfo_read("Hugepagesize:");
	uint64_t free_mib = meminfo_read("HugePages_Free:") * page_kib / 1024;
	*out_huge = config->pages != FABRIC_DPDK_PAGES_NONE && free_mib >= memory_mib;
	if (config->pages != FABRIC_DPDK_PAGES_HUGE || *out_huge)
		return true;
	return fail(out_why,
		"hugepages: %u MiB wanted, %llu MiB free; raise /proc/sys/vm/nr_hugepages, ask for less "
		"memory, or run without hugepages",
		memory_mib, (unsigned long long)free_mib);
}

// "0@(0,1,4)": one EAL core that floats over all CPUs we may use, so that nothing of EAL is pinned.
static bool cores_text(char *out, size_t bytes)
{
	cpu_set_t allowed;
	size_t used = (size_t)snprintf(out, bytes, "0@(");
	const char *comma = "";
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		used += (size_t)snprintf(out + used, bytes - used, "%s%d", comma, cpu);
		if (used + 8 >= bytes)
			break; // a few hundred CPUs are plenty to float over
		comma = ",";
	}
	snprintf(out + used, bytes - used, ")");
	return true;
}

static bool prefix_is_good(const char *prefix)
{
	size_t length = strlen(prefix);
	if (length == 0 || length > 60)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)prefix[i]) && prefix[i] != '-' && prefix[i] != '_')
			return false;
	}
	return true;
}

// librte_net_memif answers an argument it does not know by resetting all of them to its defaults,
// silently: look before it does.
static bool memif_is_good(const char *vdev, struct fabric_why *out_why)
{
	static const char *const known[] = {"id", "role", "bsize", "rsize", "socket",
		"socket-abstract", "mac", "secret", "zero-copy"};
	if (strncmp(vdev, "net_memif", 9) != 0)
		return true;
	for (const char *at = strchr(vdev, ','); at != NULL; at = strchr(at, ',')) {
		size_t length = strcspn(++at, "=,");
		bool found = false;
		for (size_t i = 0; i < ARRAY_COUNT(known); i++)
			found = found ||
				(strlen(known[i]) == length && strncmp(known[i], at, length) == 0);
		if (!found)
			return fail(out_why, "%.100s: net_memif knows no argument \"%.*s\"", vdev,
				(int)(length < 40 ? length : 40), at);
	}
	return true;
}

static bool devices_check(const struct fabric_dpdk_eal_config *config, struct fabric_why *out_why)
{
	if (config->vdev_count > FABRIC_DPDK_DEVICES_MAX ||
		config->pci_count > FABRIC_DPDK_DEVICES_MAX)
		return fail(out_why, "more than %d devices", FABRIC_DPDK_DEVICES_MAX);
	if (config->file_prefix == NULL || !prefix_is_good(config->file_prefix))
		return fail(out_why, "EAL file prefix must be 1 to 60 letters, digits, '-' or '_'");
	for (uint16_t i = 0; i < config->vdev_count; i++) {
		if (strlen(config->vdevs[i]) >= FABRIC_DPDK_VDEV_BYTES)
			return fail(out_why, "device %u: over %d bytes", i,
				FABRIC_DPDK_VDEV_BYTES - 1);
		if (!memif_is_good(config->vdevs[i], out_why))
			return false;
	}
	return true;
}

static bool arguments_make(const struct fabric_dpdk_eal_config *config, struct eal_arguments *a,
	bool *out_huge, struct fabric_why *out_why)
{
	char cores[CORES_BYTES];
	uint32_t memory_mib = config->memory_mib != 0 ? config->memory_mib : MEMORY_MIB_DEFAULT;
	if (!devices_check(config, out_why) ||
		!pages_choose(config, memory_mib, out_huge, out_why))
		return false;
	if (!cores_text(cores, sizeof(cores)))
		return fail(out_why, "cannot read the CPUs this process may use");
	*a = (struct eal_arguments){0};
	argument_add(a, "spotlane");
	argument_add(a, "--lcores=%s", cores);
	argument_add(a, "-m");
	argument_add(a, "%u", memory_mib);
	// --in-memory needs no mount and leaves no files behind a kill; EAL refuses it without
	// hugepages, where --no-shconf shares nothing either.
	argument_add(a, "%s", *out_huge ? "--in-memory" : "--no-huge");
	if (!*out_huge)
		argument_add(a, "--no-shconf");
	argument_add(a, "--file-prefix=%s", config->file_prefix);
	argument_add(a, "--log-level=%s", config->verbose ? "*:notice" : "*:warning");
	argument_add(a, "--no-telemetry");
	if (config->pci_count == 0)
		argument_add(a, "--no-pci");
	for (uint16_t i = 0; i < config->pci_count; i++)
		argument_add(a, "--allow=%s", config->pci[i]);
	for (uint16_t i = 0; i < config->vdev_count; i++)
		argument_add(a, "--vdev=%s", config->vdevs[i]);
	for (uint32_t i = 0; i < config->extra_count; i++)
		argument_add(a, "%s", config->extra[i]);
	return a->overflow ? fail(out_why, "the device arguments are too long") : true;
}

static void line_make(const struct eal_arguments *a, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (int i = 1; i < a->argc && used < bytes; i++)
		used += (size_t)snprintf(
			out + used, bytes - used, "%s%s", i > 1 ? " " : "", a->argv[i]);
}

bool fabric_dpdk_plan(const struct fabric_dpdk_eal_config *config, struct fabric_dpdk_eal *out_eal,
	struct fabric_why *out_why)
{
	struct eal_arguments arguments;
	bool huge;
	if (!arguments_make(config, &arguments, &huge, out_why))
		return false;
	line_make(&arguments, out_eal->line, sizeof(out_eal->line));
	out_eal->hugepages = huge;
	return true;
}

// The port must exist: EAL returns success when a device failed.
static bool device_is_up(const char *device)
{
	char name[FABRIC_DPDK_VDEV_BYTES];
	uint16_t port;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	return rte_eth_dev_get_port_by_name(name, &port) == 0;
}

static const char *missing_hint(const char *device)
{
	if (strncmp(device, "net_af_packet", 13) == 0)
		return "does the interface exist, have we CAP_NET_RAW and CAP_NET_ADMIN? Two DPDK "
		       "processes in one network namespace can also collide on their PACKET_FANOUT "
		       "id: start again, or give each its own namespace";
	if (strncmp(device, "net_af_xdp", 10) == 0)
		return "needs root, an interface MTU of at most 3,506 and no more queues than the "
		       "interface has channels";
	if (strncmp(device, "net_memif", 9) == 0)
		return "is the directory of its socket writable?";
	if (strncmp(device, "net_", 4) == 0)
		return "see EAL's messages above";
	return "is it bound to vfio-pci?";
}

static bool ports_check(const struct fabric_dpdk_eal_config *config, struct fabric_why *out_why)
{
	for (uint16_t i = 0; i < config->vdev_count + config->pci_count; i++) {
		const char *device = i < config->vdev_count ? config->vdevs[i]
							    : config->pci[i - config->vdev_count];
		if (!device_is_up(device))
			return fail(out_why, "device %.*s did not come up (%u port(s) did): %s",
				(int)strcspn(device, ","), device, rte_eth_dev_count_avail(),
				missing_hint(device));
	}
	return true;
}

bool fabric_dpdk_start(const struct fabric_dpdk_eal_config *config, struct fabric_dpdk_eal *out_eal,
	struct fabric_why *out_why)
{
	static bool used; // EAL's own limit: one init per process
	static struct eal_arguments arguments; // EAL keeps pointers into it
	cpu_set_t before;
	if (used)
		return fail(
			out_why, "DPDK was already started in this process and cannot be again");
	if (!arguments_make(config, &arguments, &out_eal->hugepages, out_why))
		return false;
	line_make(&arguments, out_eal->line, sizeof(out_eal->line));
	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		return fail(out_why, "cannot read CPU affinity: %s", strerror(errno));
	used = true;
	int rc = rte_eal_init(arguments.argc, arguments.argv);
	int error = rte_errno;
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
	if (rc < 0)
		return fail(out_why, "EAL did not start (%s); its arguments were: %.200s",
			rte_strerror(error), out_eal->line);
	if (ports_check(config, out_why))
		return true;
	rte_eal_cleanup();
	return false;
}

static void on_interrupt_thread(void *arg)
{
	sem_post(arg);
}

// rte_eal_cleanup unmaps memory that DPDK's interrupt thread still looks at while it works off
// what the closing of ports left for it (a memif peer's hang-up). Alarms run on that thread, in
// order: two of them, one after the other, say that it is done and has read its sources anew.
static void settle_interrupt_thread(void)
{
	sem_t passed;
	struct timespec limit;
	sem_init(&passed, 0, 0);
	for (int round = 0; round < 2; round++) {
		if (rte_eal_alarm_set(1, on_interrupt_thread, &passed) != 0)
			break;
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += 2;
		if (sem_timedwait(&passed, &limit) != 0)
			rte_eal_alarm_cancel(on_interrupt_thread, &passed);
	}
	sem_destroy(&passed);
}

void fabric_dpdk_stop(void)
{
	settle_interrupt_thread();
	rte_eal_cleanup();
}

bool fabric_dpdk_thread_begin(struct fabric_why *out_why)
{
	if (rte_lcore_id() != LCORE_ID_ANY) // EAL's main thread, or begun before
		return true;
	if (rte_thread_register() == 0)
		return true;
	return fail(out_why, "DPDK takes no more threads (%s); at most %d", rte_strerror(rte_errno),
		RTE_MAX_LCORE);
}

void fabric_dpdk_thread_end(void)
{
	if (rte_eal_lcore_role(rte_lcore_id()) == ROLE_NON_EAL)
		rte_thread_unregister();
}

bool fabric_dpdk_vdev_af_packet(const char *name, const char *interface, uint16_t mtu,
	uint16_t queues, char *out, size_t out_bytes)
{
	if (mtu < DP_NET_MTU_MIN || mtu > DP_NET_MTU_MAX || queues == 0)
		return false;
	// framesz: a power of two times 1 KiB that holds packet, link header, tag and the kernel's
	// own header; blocksz: whole pages, a multiple of framesz. About 8 MiB of ring either way.
	uint32_t frame_bytes = mtu <= 1900 ? 2048 : mtu <= 3900 ? 4096 : mtu <= 8000 ? 8192 : 16384;
	uint32_t block_bytes = frame_bytes < 4096 ? 4096 : frame_bytes;
	uint32_t frames = frame_bytes == 2048 ? 4096 : (8u << 20) / frame_bytes;
	int n = snprintf(out, out_bytes,
		"%s,iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u,qdisc_bypass=0", name,
		interface, queues, frame_bytes, block_bytes, frames);
	return n > 0 && (size_t)n < out_bytes;
}

const char *fabric_dpdk_version(void)
{
	return rte_version();
}
