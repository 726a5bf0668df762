// SPDX-License-Identifier: BSD-3-Clause
// The data plane's part of the metrics: workers' counters, reasons, fabrics.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "api/metrics.h"
#include "base/mem.h"
#include "node/health.h"
#include "wire/wire.h"

enum { FABRIC_NAMES_MAX = 32, FABRIC_NAME_BYTES = 48, FABRICS_SHOWN_MAX = CONFIG_FABRICS_MAX };

// ---- workers ----

struct worker_counter {
	const char *name, *text;
	size_t offset;
};
static const struct worker_counter worker_counters[] = {
#define X(name, text) {#name, text, offsetof(struct dp_counters, name)},
	DP_COUNTERS(X)
#undef X
};

static uint64_t at_offset(const struct dp_counters *c, size_t offset)
{
	uint64_t number;
	memcpy(&number, (const char *)c + offset, sizeof number);
	return number;
}

static void write_counters(const struct api *api, struct text *t, const struct dp_counters *workers)
{
	char name[64], help[160];
	for (size_t i = 0; i < ARRAY_COUNT(worker_counters); i++) {
		const struct worker_counter *c = &worker_counters[i];
		snprintf(name, sizeof name, "%s_total", c->name);
		snprintf(help, sizeof help, "%c%s.", c->text[0] - ('a' <= c->text[0] && c->text[0] <= 'z' ? 32 : 0),
			c->text + 1);
		metrics_family(t, name, "counter", help);
		for (uint16_t w = 0; w < api->options.host->workers; w++)
			text_add(t, "spotlane_%s{worker=\"%u\"} %" PRIu64 "\n", name, w,
				at_offset(&workers[w], c->offset));
	}
}

static void write_worker_times(const struct api *api, struct text *t, const struct dp_counters *workers)
{
	enum { NS_PER_S = 1000000000 };
	uint64_t now = view_now(api);
	struct node_health health;
	node_health(api->options.node, &health);
	metrics_family(t, "turn_seconds_total", "counter", "Time spent in handler turns.");
	for (uint16_t w = 0; w < api->options.host->workers; w++)
		text_add(t, "spotlane_turn_seconds_total{worker=\"%u\"} %" PRIu64 ".%09" PRIu64 "\n", w,
			workers[w].turn_ns_total / NS_PER_S, workers[w].turn_ns_total % NS_PER_S);
	metrics_family(t, "worker_last_loop_seconds", "gauge", "Since the worker last turned over.");
	for (uint16_t w = 0; w < api->options.host->workers; w++) {
		uint64_t beat = dp_worker_heartbeat(api->options.dp, w);
		uint64_t age = beat == 0 || beat > now ? 0 : now - beat;
		text_add(t, "spotlane_worker_last_loop_seconds{worker=\"%u\"} %" PRIu64 ".%09" PRIu64 "\n", w,
			age / NS_PER_S, age % NS_PER_S);
	}
	metrics_family(t, "worker_stalled", "gauge", "1 for a worker that stands still: the node is not ready.");
	for (uint16_t w = 0; w < api->options.host->workers; w++)
		text_add(t, "spotlane_worker_stalled{worker=\"%u\"} %u\n", w,
			(unsigned)(health.workers_stalled >> w & 1));
}

// ---- reasons ----

static void write_reason(struct text *t, const char *name, const char *label, const char *reason, uint64_t number)
{
	if (reason != NULL)
		text_add(t, "spotlane_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, reason, number);
}

static void write_reasons(struct text *t, const struct dp_counters *sum)
{
	metrics_family(t, "rejects_total", "counter", "Frames that were not taken, by why.");
	for (size_t i = 1; i < ARRAY_COUNT(sum->rejects); i++)
		write_reason(t, "rejects_total", "reason", wire_reject_name((enum wire_reject)i), sum->rejects[i]);
	metrics_family(t, "refusals_total", "counter", "Messages refused before admission, by why.");
	for (size_t i = 0; i < ARRAY_COUNT(sum->refusals); i++)
		write_reason(t, "refusals_total", "reason", result_reason_name((uint8_t)i), sum->refusals[i]);
	metrics_family(t, "drops_total", "counter", "Admitted messages ended without a turn, by their result.");
	for (size_t i = 1; i < ARRAY_COUNT(sum->drops); i++)
		write_reason(t, "drops_total", "result", result_kind_name((uint8_t)i), sum->drops[i]);
	metrics_family(t, "results_total", "counter", "Terminal results sent to clients.");
	for (size_t i = 1; i < ARRAY_COUNT(sum->results); i++)
		write_reason(t, "results_total", "result", result_kind_name((uint8_t)i), sum->results[i]);
}

void metrics_workers(const struct api *api, struct text *t)
{
	struct dp_counters *workers = mem_zalloc(api->options.host->workers * sizeof *workers);
	struct dp_counters sum = {0};
	if (workers == NULL) {
		t->failed = true;
		return;
	}
	for (uint16_t w = 0; w < api->options.host->workers; w++) {
		dp_counters_read(api->options.dp, w, &workers[w]);
		stats_add(&sum, &workers[w]);
	}
	write_counters(api, t, workers);
	write_worker_times(api, t, workers);
	write_reasons(t, &sum);
	mem_free(workers);
}

// ---- fabrics ----

// What fabrics tell, by name; the same names of several queues add up.
struct fabric_table {
	uint32_t fabric, count;
	char names[FABRIC_NAMES_MAX][FABRIC_NAME_BYTES];
	uint64_t numbers[FABRIC_NAMES_MAX][FABRICS_SHOWN_MAX];
};

static void table_emit(void *to, const char *name, uint64_t number)
{
	struct fabric_table *table = to;
	uint32_t i = 0;
	while (i < table->count && strcmp(table->names[i], name) != 0)
		i++;
	if (i == FABRIC_NAMES_MAX)
		return;
	if (i == table->count)
		snprintf(table->names[table->count++], FABRIC_NAME_BYTES, "%s", name);
	table->numbers[i][table->fabric] += number;
}

// A label's value: what the text form asks to be escaped is.
static void escape(const char *from, char *out, size_t capacity)
{
	size_t used = 0;
	for (; *from != '\0' && used + 3 < capacity; from++) {
		if (*from == '"' || *from == '\\' || *from == '\n')
			out[used++] = '\\';
		out[used++] = *from == '\n' ? 'n' : *from;
	}
	out[used] = '\0';
}

void metrics_fabrics(const struct api *api, struct text *t)
{
	const struct api_host *host = api->options.host;
	uint32_t fabrics = host->fabrics < FABRICS_SHOWN_MAX ? host->fabrics : FABRICS_SHOWN_MAX;
	char names[FABRICS_SHOWN_MAX][2 * CONFIG_NAME_BYTES];
	struct fabric_table table = {0};
	if (host->fabric == NULL || host->fabric_stats == NULL || fabrics == 0)
		return;
	metrics_family(t, "fabric_link_up", "gauge", "1 while the fabric's link is up.");
	for (uint32_t f = 0; f < fabrics; f++) {
		struct api_fabric fabric = {0};
		host->fabric(host->arg, f, &fabric);
		escape(fabric.name != NULL ? fabric.name : "", names[f], sizeof names[f]);
		text_add(t, "spotlane_fabric_link_up{fabric=\"%s\"} %d\n", names[f], fabric.link_up);
		table.fabric = f;
		for (uint16_t w = 0; w < host->workers; w++)
			host->fabric_stats(host->arg, f, w, table_emit, &table);
	}
	for (uint32_t n = 0; n < table.count; n++) {
		char name[FABRIC_NAME_BYTES + 16];
		snprintf(name, sizeof name, "fabric_%s_total", table.names[n]);
		metrics_family(t, name, "counter", "Of a fabric's queues and its driver; see OPERATIONS.md.");
		for (uint32_t f = 0; f < fabrics; f++)
			text_add(t, "spotlane_%s{fabric=\"%s\"} %" PRIu64 "\n", name, names[f],
				table.numbers[n][f]);
	}
}
