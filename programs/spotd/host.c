// SPDX-License-Identifier: BSD-3-Clause
#include "host.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"
#include "ledger/ledger.h"
#include "spotd_build.h"
#include "store/sqlite/sqlite.h"

static void emit_versions(void *arg, api_emit_text emit, void *to)
{
	(void)arg;
	emit(to, "compiler", SPOTD_COMPILER);
	emit(to, "dpdk", fabrics_dpdk_version());
	emit(to, "dpdk_built", SPOTD_BUILT_DPDK);
	emit(to, "liburcu_built", SPOTD_BUILT_LIBURCU);
	emit(to, "jemalloc", ledger_allocator_version());
	emit(to, "libuv", uv_version_string());
	emit(to, "jansson", jansson_version_str());
	emit(to, "libsodium", sodium_version_string());
	emit(to, "sqlite", sqlite_store_library_version());
	emit(to, "wire", SPOTD_WIRE_VERSION);
	emit(to, "mutant", SPOTD_MUTANT);
}

static void host_fabric(void *arg, uint32_t index, struct api_fabric *out)
{
	struct host *host = arg;
	fabrics_describe(host->fabrics, index, out);
}

static void host_fabric_stats(
	void *arg, uint32_t index, uint16_t worker, api_emit_number emit, void *to)
{
	struct host *host = arg;
	fabrics_stats(host->fabrics, index, worker, emit, to);
}

static const char *host_config_text(void *arg)
{
	struct host *host = arg;
	return host->config_text;
}

static void host_stop(void *arg, uint32_t deadline_ms)
{
	struct host *host = arg;
	host->stop(host->stop_arg, deadline_ms);
}

// The file as it was read; NULL when it cannot be read any more, which only affects its display.
static char *read_text(const char *path)
{
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	if (file == NULL)
		return NULL;
	char *text = mem_zalloc(CONFIG_FILE_BYTES_MAX + 1);
	if (text != NULL)
		text[fread(text, 1, CONFIG_FILE_BYTES_MAX, file)] = '\0';
	fclose(file);
	return text;
}

void host_init(struct host *host, const struct config *config, const char *config_path,
	struct fabrics *fabrics, void (*stop)(void *arg, uint32_t deadline_ms), void *stop_arg)
{
	host->config = config;
	host->fabrics = fabrics;
	host->stop = stop;
	host->stop_arg = stop_arg;
	host->config_text = read_text(config_path);
	host->api = (struct api_host){
		.arg = host,
		.version = SPOTD_VERSION,
		.git = SPOTD_GIT,
		.eal_line = fabrics->eal_line,
		.workers = (uint16_t)config->workers.count,
		.versions = emit_versions,
		.fabrics = fabrics->count,
		.fabric = host_fabric,
		.fabric_stats = host_fabric_stats,
		.config_file_text = host_config_text,
		.config_path = config_path,
		.stop = host_stop,
	};
}

void host_fini(struct host *host)
{
	mem_free(host->config_text);
	host->config_text = NULL;
}

static void print_version(void *to, const char *name, const char *value)
{
	(void)to;
	printf("  %-14s %s\n", name, value);
}

void host_print_versions(bool all)
{
	printf("spotd %s%s%s\n", SPOTD_VERSION, SPOTD_GIT[0] != '\0' ? " " : "", SPOTD_GIT);
	if (all)
		emit_versions(NULL, print_version, NULL);
}
