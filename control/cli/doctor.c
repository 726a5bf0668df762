// SPDX-License-Identifier: BSD-3-Clause
#include "cli/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "config/config.h"

PRINTF_LIKE(5, 6)
static void add(json_t *findings, const char *level, const char *why, const char *fix, const char *format, ...)
{
	char fact[320];
	va_list args;
	va_start(args, format);
	vsnprintf(fact, sizeof fact, format, args);
	va_end(args);
	json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s}", "level", level, "fact", fact, "why",
						why, "fix", fix));
}

// The first line of a small file; false when it cannot be read.
static bool read_line(const char *path, char *out, size_t capacity)
{
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool got = fgets(out, (int)capacity, file) != NULL;
	fclose(file);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

static long read_number(const char *path)
{
	char text[32];
	return read_line(path, text, sizeof text) ? strtol(text, NULL, 10) : -1;
}

// ---- memory ----

static void check_hugepages(json_t *findings, const struct config *config)
{
	enum { NODES_MAX = 8 };
	char path[128];
	long all = 0, free_pages = 0;
	for (int node = 0; node < NODES_MAX; node++) {
		static const char base[] = "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/%s";
		snprintf(path, sizeof path, base, node, "nr_hugepages");
		long pages = read_number(path);
		if (pages < 0)
			break;
		snprintf(path, sizeof path, base, node, "free_hugepages");
		long unused = read_number(path);
		add(findings, "ok", "", "", "NUMA node %d: %ld hugepages of 2 MiB, %ld free", node, pages, unused);
		all += pages;
		free_pages += unused;
	}
	bool wanted = config == NULL || config->eal.hugepages != CONFIG_HUGEPAGES_NO;
	if (all == 0 && wanted)
		add(findings,
			config != NULL && config->eal.hugepages == CONFIG_HUGEPAGES_YES ? "error"
											: "warning",
			"without them DPDK runs on ordinary pages, slower and without a physical NIC",
			"sysctl -w vm.nr_hugepages=128", "no hugepages are reserved");
	else if (wanted && config != NULL && free_pages * 2 < (long)(config->eal.memory_bytes >> 20))
		add(findings, "warning", "eal.memory does not fit into what is free",
			"sysctl -w vm.nr_hugepages=N with a larger N",
			"%ld MiB of hugepages free, eal.memory is %" PRIu64 " MiB", free_pages * 2,
			config->eal.memory_bytes >> 20);
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
		limit.rlim_cur < (64u << 20))
		add(findings, "warning", "a physical NIC needs its memory locked",
			"LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited", "memory-lock limit: %lu KiB",
			(unsigned long)limit.rlim_cur / 1024);
}

// A running primary process holds a lock on its `config` file.
static bool prefix_in_use(const char *prefix)
{
	char path[320];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	snprintf(path, sizeof path, "/var/run/dpdk/%.200s/config", prefix);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT; // not ours to judge
	bool used = fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
	close(fd);
	return used;
}

static void check_prefixes(json_t *findings)
{
	DIR *dir = opendir("/var/run/dpdk");
	struct dirent *entry;
	int stale = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL && stale < 1000)
		stale += entry->d_name[0] != '.' && !prefix_in_use(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	if (stale > 0)
		add(findings, "warning", "left by DPDK processes that are gone",
			"rm -r the folders in /var/run/dpdk whose `config` nobody has open (fuser)",
			"%d stale DPDK prefixes in /var/run/dpdk", stale);
}

// Files of a process that is gone hold their pages until they are removed.
static void check_leftovers(json_t *findings)
{
	DIR *dir = opendir("/dev/hugepages");
	struct dirent *entry;
	int maps = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL && maps < 100000)
		maps += strstr(entry->d_name, "map_") != NULL;
	if (dir != NULL)
		closedir(dir);
	if (maps > 0)
		add(findings, "warning", "where no process maps them they hold memory for nothing",
			"fuser /dev/hugepages/*map_*, then rm those that nobody holds",
			"%d hugepage files in /dev/hugepages", maps);
	check_prefixes(findings);
}

// ---- cores ----

static void check_cores(json_t *findings, const struct config *config)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return;
	int allowed = CPU_COUNT(&set);
	add(findings, "ok", "", "", "%d of %ld cores are allowed to this process", allowed,
		sysconf(_SC_NPROCESSORS_ONLN));
	for (uint32_t i = 0; config != NULL && i < config->workers.core_count; i++) {
		uint16_t core = config->workers.cores[i];
		if (core >= CPU_SETSIZE || !CPU_ISSET(core, &set))
			add(findings, "error", "the worker could not be pinned there and the node would not start",
				"change workers.cores, or the cpuset and CPUAffinity of the service",
				"workers.cores names core %u, which is not allowed here", core);
	}
	if (config != NULL && config->workers.idle == CONFIG_IDLE_SPIN &&
		(int)config->workers.count >= allowed)
		add(findings, "warning", "control and store find no core and leases may be lost",
			"fewer workers, or workers.idle: adaptive", "%u spinning workers on %d cores",
			config->workers.count, allowed);
}

// ---- ports ----

static bool worker_on_node(const struct config *config, long node)
{
	char path[128];
	for (uint32_t i = 0; i < config->workers.core_count; i++) {
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/node%ld", config->workers.cores[i], node);
		if (access(path, F_OK) == 0)
			return true;
	}
	return config->workers.core_count == 0;
}

static void check_pci(json_t *findings, const struct config *config, const struct config_fabric *f)
{
	char path[160], target[256];
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", f->pci);
	if (access(path, F_OK) != 0) {
		add(findings, "error", "the fabric cannot start", "lspci -D shows the addresses",
			"fabric %s: no PCI device %s", f->name, f->pci);
		return;
	}
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver", f->pci);
	ssize_t size = readlink(path, target, sizeof target - 1);
	target[size > 0 ? size : 0] = '\0';
	const char *driver = strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : "none";
	bool bound = strcmp(driver, "vfio-pci") == 0 || strstr(driver, "mlx") == driver;
	add(findings, bound ? "ok" : "error", "DPDK drives the NIC through vfio-pci",
		bound ? "" : "scripts/nic-bind --yes PCI_ADDRESS", "fabric %s: driver of %s is %s", f->name,
		f->pci, driver);
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", f->pci);
	long node = read_number(path);
	if (node < 0)
		add(findings, "warning", "the kernel does not know where the NIC sits; distant cores cost speed",
			"look into the machine's manual for the slot's socket", "fabric %s: NUMA node of %s is -1",
			f->name, f->pci);
	else if (!worker_on_node(config, node))
		add(findings, "warning", "every frame would cross the sockets",
			"name cores of that node in workers.cores", "fabric %s: %s is on NUMA node %ld, no worker is",
			f->name, f->pci, node);
}

static void check_vfio(json_t *findings)
{
	char mode[8] = "";
	if (access("/dev/vfio/vfio", F_OK) != 0)
		add(findings, "error", "vfio-pci needs it", "modprobe vfio-pci", "/dev/vfio/vfio does not exist");
	else if (access("/dev/vfio/vfio", R_OK | W_OK) != 0)
		add(findings, "error", "the NIC cannot be opened",
			"a udev rule that gives /dev/vfio to the service's group",
			"no permission on /dev/vfio/vfio");
	if (read_line("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", mode, sizeof mode) &&
		mode[0] == 'Y')
		add(findings, "warning", "the NIC may write anywhere in memory",
			"switch the IOMMU on in the firmware",
			"VFIO runs without an IOMMU");
}

static void check_fabrics(json_t *findings, const struct config *config)
{
	bool vfio = false;
	for (uint32_t i = 0; i < config->fabric_count; i++) {
		const struct config_fabric *f = &config->fabrics[i];
		char path[64], state[16];
		if (f->pci[0] != '\0') {
			check_pci(findings, config, f);
			vfio = true;
		}
		if (f->iface[0] == '\0')
			continue;
		snprintf(path, sizeof path, "/sys/class/net/%s/operstate", f->iface);
		if (!read_line(path, state, sizeof state))
			add(findings, "error", "the fabric cannot start", "ip link shows the names",
				"fabric %s: no interface %s", f->name, f->iface);
		else
			add(findings, strcmp(state, "down") == 0 ? "error" : "ok", "nothing arrives without a link",
				strcmp(state, "down") == 0 ? "ip link set dev IFACE up" : "",
				"fabric %s: interface %s is %s", f->name, f->iface, state);
	}
	if (vfio)
		check_vfio(findings);
}

// ---- files ----

static void check_socket(json_t *findings, const char *path)
{
	char lock[CONFIG_PATH_BYTES + 8];
	struct stat st;
	if (lstat(path, &st) != 0)
		return;
	snprintf(lock, sizeof lock, "%s.lock", path);
	int fd = open(lock, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		add(findings, "warning", "left by a daemon that ended without cleaning up",
			"nothing: the next start removes it under its lock", "%s is stale: nobody serves it", path);
	close(fd);
}

static void check_store(json_t *findings, const struct config *config)
{
	char folder[CONFIG_PATH_BYTES];
	if (config->store.kind != CONFIG_STORE_SQLITE)
		return;
	snprintf(folder, sizeof folder, "%s", config->store.path);
	char *slash = strrchr(folder, '/');
	slash[slash == folder ? 1 : 0] = '\0';
	if (access(config->store.path, R_OK | W_OK) == 0)
		add(findings, "ok", "", "", "store %s can be opened", config->store.path);
	else if (errno == ENOENT && access(folder, W_OK | X_OK) == 0)
		add(findings, "ok", "", "", "store %s does not exist yet and can be made", config->store.path);
	else
		add(findings, "error", "the node cannot start without its store",
			"run as the service's user, or give it the folder of store.path", "store %s: %s",
			config->store.path, strerror(errno));
}

static void check_clock(json_t *findings)
{
	char source[32];
	if (!read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source))
		return;
	bool good = strcmp(source, "tsc") == 0 || strcmp(source, "kvm-clock") == 0 ||
		    strcmp(source, "arch_sys_counter") == 0;
	add(findings, good ? "ok" : "warning", "reading it costs a system call or a slow device access",
		good ? "" : "see dmesg for why the TSC was given up", "clock source: %s", source);
}

static void check_config(json_t *findings, const struct cli *cli, struct config *config, bool *out_good)
{
	static struct config_report report;
	*out_good = false;
	if (cli->config_path == NULL)
		return;
	*out_good = config_load(cli->config_path, config, &report) == CONFIG_ACCEPTED;
	if (!*out_good)
		add(findings, "error", "the node would not start", "mend the file at the place named", "%s",
			report.error);
	for (uint32_t i = 0; *out_good && i < report.warning_count; i++)
		add(findings, "warning", "it is allowed, and seldom meant", "see spotd.conf(5)", "%s",
			report.warnings[i]);
}

void doctor_host(const struct cli *cli, json_t *findings)
{
	struct config *config = mem_zalloc(sizeof *config);
	bool good = false;
	if (config == NULL)
		return;
	check_config(findings, cli, config, &good);
	const struct config *known = good ? config : NULL;
	check_hugepages(findings, known);
	check_leftovers(findings);
	check_cores(findings, known);
	check_socket(findings, cli->socket);
	check_clock(findings);
	if (good) {
		check_fabrics(findings, known);
		check_store(findings, known);
		config_fini(config);
	}
	mem_free(config);
}
