// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <string.h>

#include "wire/wire.h"

void stats_add(struct dp_counters *sum, const struct dp_counters *c)
{
#define X(name, text) sum->name += c->name;
	DP_COUNTERS(X)
#undef X
	for (size_t i = 0; i < ARRAY_COUNT(sum->rejects); i++)
		sum->rejects[i] += c->rejects[i];
	for (size_t i = 0; i < ARRAY_COUNT(sum->results); i++)
		sum->results[i] += c->results[i];
	for (size_t i = 0; i < ARRAY_COUNT(sum->refusals); i++)
		sum->refusals[i] += c->refusals[i];
	for (size_t i = 0; i < ARRAY_COUNT(sum->drops); i++)
		sum->drops[i] += c->drops[i];
	sum->turn_ns_total += c->turn_ns_total;
}

static void set_if(json_t *object, const char *name, uint64_t value, bool zero)
{
	if (name != NULL && (zero || value != 0))
		view_set(object, name, value);
}

json_t *stats_worker(const struct api *api, const struct dp_counters *c, bool zero)
{
	json_t *counters = json_object(), *rejects = json_object(), *results = json_object(),
	       *refusals = json_object(), *drops = json_object();
	(void)api;
#define X(name, text) set_if(counters, #name, c->name, zero);
	DP_COUNTERS(X)
#undef X
	set_if(counters, "turn_total_ns", c->turn_ns_total, zero);
	for (size_t i = 1; i < ARRAY_COUNT(c->rejects); i++)
		set_if(rejects, wire_reject_name((enum wire_reject)i), c->rejects[i], zero);
	for (size_t i = 1; i < ARRAY_COUNT(c->results); i++)
		set_if(results, result_kind_name((uint8_t)i), c->results[i], zero);
	for (size_t i = 1; i < ARRAY_COUNT(c->refusals); i++)
		set_if(refusals, result_reason_name((uint8_t)i), c->refusals[i], zero);
	for (size_t i = 1; i < ARRAY_COUNT(c->drops); i++)
		set_if(drops, result_kind_name((uint8_t)i), c->drops[i], zero);
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "counters", counters, "rejects", rejects, "results",
		results, "refusals", refusals, "drops", drops);
}

static void emit_number(void *to, const char *name, uint64_t value)
{
	json_t *object = to;
	// The same name of several queues adds up.
	view_set(object, name, (uint64_t)json_integer_value(json_object_get(object, name)) + value);
}

static json_t *fabrics_of(const struct api *api, int64_t worker)
{
	const struct api_host *host = api->options.host;
	json_t *list = json_array();
	for (uint32_t i = 0; i < host->fabrics && host->fabric_stats != NULL; i++) {
		struct api_fabric fabric = {0};
		json_t *row = json_object();
		if (host->fabric != NULL)
			host->fabric(host->arg, i, &fabric);
		json_object_set_new(row, "name", json_string(fabric.name != NULL ? fabric.name : ""));
		for (uint16_t w = 0; w < host->workers; w++) {
			if (worker < 0 || worker == w)
				host->fabric_stats(host->arg, i, w, emit_number, row);
		}
		json_array_append_new(list, row);
	}
	return list;
}

static bool send_worker(struct api_request *request, uint16_t worker, bool zero, struct dp_counters *sum)
{
	struct dp_counters c;
	dp_counters_read(request->api->options.dp, worker, &c);
	stats_add(sum, &c);
	json_t *part = stats_worker(request->api, &c, zero);
	if (part != NULL)
		json_object_set_new(part, "worker", json_integer(worker));
	return api_part(request, "part", part);
}

void op_stats_show(struct api_request *request)
{
	struct api *api = request->api;
	const struct api_host *host = api->options.host;
	int64_t only = arg_number(request, "worker", -1);
	bool zero = arg_yes(request, "zero");
	struct dp_counters sum = {0};
	if (only >= host->workers) {
		api_fail(request, API_ERROR_NOT_FOUND, NULL, "there are %u workers, from 0", host->workers);
		return;
	}
	for (uint16_t w = 0; w < host->workers; w++) {
		if ((only < 0 || only == w) && !send_worker(request, w, zero, &sum))
			break;
	}
	json_t *result = json_object();
	json_t *total = stats_worker(api, &sum, zero);
	view_set(result, "workers", host->workers);
	view_set(result, "process_bytes", dp_process_bytes(api->options.dp));
	json_object_set_new(result, "pressure", json_boolean(dp_pressure(api->options.dp)));
	json_object_set_new(result, "total", total);
	json_object_set_new(result, "fabrics", fabrics_of(api, only));
	api_done(request, result);
}
