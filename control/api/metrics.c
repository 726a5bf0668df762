// SPDX-License-Identifier: BSD-3-Clause
#include "api/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "api/internal.h"
#include "node/health.h"
#include "store/meter.h"
#include "wire/wire.h"

#define NS_PER_S UINT64_C(1000000000)

// ---- lines ----

void metrics_family(struct text *t, const char *name, const char *type, const char *help)
{
	text_add(t, "# HELP spotlane_%s %s\n# TYPE spotlane_%s %s\n", name, help, name, type);
}

static void value(struct text *t, const char *name, uint64_t number)
{
	text_add(t, "spotlane_%s %" PRIu64 "\n", name, number);
}

static void labelled(
	struct text *t, const char *name, const char *label, const char *of, uint64_t number)
{
	text_add(t, "spotlane_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, of, number);
}

static void seconds(struct text *t, const char *name, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	text_add(t, "spotlane_%s %s%" PRIu64 ".%09" PRIu64 "\n", name, ns < 0 ? "-" : "",
		size / NS_PER_S, size % NS_PER_S);
}

static void gauge(struct text *t, const char *name, const char *help, uint64_t number)
{
	metrics_family(t, name, "gauge", help);
	value(t, name, number);
}

static void counter(struct text *t, const char *name, const char *help, uint64_t number)
{
	metrics_family(t, name, "counter", help);
	value(t, name, number);
}

static void gauge_seconds(struct text *t, const char *name, const char *help, int64_t ns)
{
	metrics_family(t, name, "gauge", help);
	seconds(t, name, ns);
}

// One histogram of a family; `label` as `operation="spot.claim",` or empty.
static void histogram(struct text *t, const char *name, const char *label, const struct latency *l)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < LATENCY_EDGES; i++) {
		sum += l->buckets[i];
		text_add(t, "spotlane_%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, label,
			(double)latency_edges_ns[i] / 1e9, sum);
	}
	text_add(t, "spotlane_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label, l->count);
	int bare = (int)strlen(label) - (label[0] != '\0'); // without the comma
	const char *open = bare > 0 ? "{" : "", *close = bare > 0 ? "}" : "";
	text_add(t, "spotlane_%s_sum%s%.*s%s %" PRIu64 ".%09" PRIu64 "\n", name, open, bare, label, close,
		l->sum_ns / NS_PER_S, l->sum_ns % NS_PER_S);
	text_add(t, "spotlane_%s_count%s%.*s%s %" PRIu64 "\n", name, open, bare, label, close, l->count);
}

// ---- node ----

static void write_node(const struct api *api, struct text *t, const struct node_status *s,
	const struct node_health *h)
{
	static const enum node_state states[] = {
		NODE_PREPARING, NODE_SERVING, NODE_DRAINING, NODE_STOPPED, NODE_ERROR};
	uint64_t now = view_now(api);
	metrics_family(t, "build_info", "gauge", "Always 1; the labels say which program this is.");
	text_add(t, "spotlane_build_info{version=\"%s\",git=\"%s\"} 1\n", api->options.host->version,
		api->options.host->git != NULL ? api->options.host->git : "");
	metrics_family(t, "node_state", "gauge", "1 for the state that the node is in.");
	for (size_t i = 0; i < ARRAY_COUNT(states); i++)
		labelled(t, "node_state", "state", node_state_name(states[i]), s->state == states[i]);
	gauge(t, "node_ready", "1 when no part of readiness fails.", h->failing == 0);
	metrics_family(t, "node_ready_part", "gauge", "1 where this part of readiness holds.");
	for (uint32_t p = NODE_READY_STATE; p < NODE_READY_PART_END; p++)
		labelled(t, "node_ready_part", "part", node_ready_name((enum node_ready_part)p),
			(h->failing >> p & 1) == 0);
	gauge_seconds(t, "uptime_seconds", "Since the node started, suspended time included.",
		now > s->started_boot_ns ? (int64_t)(now - s->started_boot_ns) : 0);
}

static void write_lease(struct text *t, const struct node_status *s, const struct node_health *h)
{
	gauge(t, "lease_held", "1 while the owner lease is held by our own clock.",
		(h->failing >> NODE_READY_LEASE & 1) == 0);
	gauge_seconds(t, "lease_remaining_seconds", "Until the owner lease ends; negative once lapsed.",
		s->lease_left_ns);
	gauge_seconds(t, "lease_ttl_seconds", "Time to live of the owner lease, as configured.",
		(int64_t)h->lease_ttl_ms * 1000000);
	counter(t, "lease_renewals_total", "Renewals of the owner lease that succeeded.", s->lease_renewals);
	counter(t, "lease_failures_total", "Renewals of the owner lease that failed.", s->lease_failures);
	gauge_seconds(t, "clock_skew_to_store_seconds",
		"Store's wall clock minus ours at the last renewal. No rule rests on it.",
		s->clock_skew_to_store_ns);
}

static void write_types(const struct api *api, struct text *t)
{
	const struct dp *dp = api->options.dp;
	metrics_family(t, "type_spots", "gauge", "Spots of a type, active and reserved.");
	for (uint32_t i = 0; i < dp_type_count(dp); i++)
		labelled(t, "type_spots", "type", dp_type_name(dp_type_at(dp, i)),
			node_type_spots(api->options.node, dp_type_at(dp, i)));
	metrics_family(t, "type_spots_ceiling", "gauge", "Most that type_spots may be; 0 without a limit.");
	for (uint32_t i = 0; i < dp_type_count(dp); i++)
		labelled(t, "type_spots_ceiling", "type", dp_type_name(dp_type_at(dp, i)),
			dp_type_spots_max(dp_type_at(dp, i)));
}

static void write_spots(const struct api *api, struct text *t, const struct node_status *s, const struct node_health *h)
{
	metrics_family(t, "spots", "gauge", "Spots that live here.");
	for (int kind = SPOT_KIND_ENTRY; kind <= SPOT_KIND_INSTANCE; kind++)
		labelled(t, "spots", "kind", spot_kind_name((enum spot_kind)kind), s->spots_live[kind]);
	gauge(t, "spots_counted", "User and Instance Spots, active and reserved.", h->spots_counted);
	gauge(t, "spots_ceiling", "Most that spots_counted may be; 0 without a limit.", h->spots_max);
	write_types(api, t);
	gauge(t, "activations_running", "Spots being built.", s->activations_running);
	gauge(t, "activations_waiting", "Spots waiting to be built.", s->activations_waiting);
	counter(t, "activations_total", "Spots built and published.", s->activations_total);
	counter(t, "activation_failures_total", "Spots that could not be built.", s->activation_failures);
	metrics_family(t, "activation_seconds", "histogram", "From a Spot's reservation to its published route.");
	histogram(t, "activation_seconds", "", &h->activation_time);
	gauge(t, "resolves_running", "Keys being looked up in the store.", s->resolves_running);
	counter(t, "closes_total", "Spots closed.", s->closes_total);
	gauge(t, "close_backlog", "Closings under way, stuck ones included.", h->close_backlog);
	gauge(t, "closes_stuck", "Closings past their limit: owned and unroutable.", s->closes_stuck);
	gauge(t, "routes", "Routes in the table.", s->routes);
	gauge(t, "route_bytes", "Memory of the route table.", s->route_bytes);
	gauge(t, "rcu_pending", "Retired things that wait for a grace period.", s->rcu_pending);
}

static void write_ledger(const struct api *api, struct text *t)
{
	gauge(t, "process_inbound_bytes", "Bytes received and not yet started by a handler.",
		dp_process_bytes(api->options.dp));
	gauge(t, "process_inbound_max_bytes", "Bound of process_inbound_bytes.",
		api->options.config->limits.process_inbound_bytes);
	gauge(t, "pressure", "1 while peers are asked to slow down.", dp_pressure(api->options.dp));
}

// ---- store ----

static void write_store(const struct api *api, struct text *t)
{
	const struct store_meter *m = api->options.store_meter;
	char label[64];
	if (m == NULL)
		return;
	gauge(t, "store_pending", "Store operations without an answer yet.", m->pending);
	metrics_family(t, "store_operations_total", "counter", "Store operations by how they ended.");
	for (uint32_t k = 1; k < STORE_OP_KINDS; k++) {
		for (uint32_t o = STORE_DONE; o < STORE_OUTCOMES; o++)
			text_add(t, "spotlane_store_operations_total{operation=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
				store_op_kind_name((enum store_op_kind)k),
				store_outcome_name((enum store_outcome)o), m->outcomes[k][o]);
	}
	metrics_family(t, "store_operation_seconds", "histogram", "From submission to the answer.");
	for (uint32_t k = 1; k < STORE_OP_KINDS; k++) {
		snprintf(label, sizeof label, "operation=\"%s\",", store_op_kind_name((enum store_op_kind)k));
		histogram(t, "store_operation_seconds", label, &m->latency[k]);
	}
}

// ---- the control channel ----

static void write_control(const struct api *api, struct text *t)
{
	static const char *const results[] = {"failed", "ok"};
	const struct api_meter *m = &api->meter;
	gauge(t, "control_clients", "Clients connected to the control socket.", api->clients);
	counter(t, "control_connections_total", "Clients accepted on the control socket.", m->connections);
	counter(t, "control_slow_clients_total", "Clients dropped because they did not read.", m->slow_clients);
	counter(t, "watch_events_missed_total", "Events that watchers who read slowly did not get.",
		m->events_missed);
	metrics_family(t, "control_requests_total", "counter", "Requests on the control socket.");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		for (uint32_t r = 0; r < ARRAY_COUNT(results); r++)
			text_add(t, "spotlane_control_requests_total{op=\"%s\",result=\"%s\"} %" PRIu64 "\n",
				api_command_at(i)->op, results[r], m->requests[i][r]);
	}
	metrics_family(t, "control_errors_total", "counter", "Errors told on the control socket.");
	for (uint32_t i = 0; i < API_ERROR_COUNT; i++)
		labelled(t, "control_errors_total", "kind", api_error_rows[i].name, m->errors[i]);
	metrics_family(t, "http_requests_total", "counter", "Requests on the HTTP listener.");
	for (uint32_t i = 0; i < HTTP_PAGES; i++)
		labelled(t, "http_requests_total", "page", http_page_name((enum http_page)i),
			m->http_requests[i]);
}

void metrics_write(const struct api *api, struct text *out)
{
	struct node_status status;
	struct node_health health;
	node_status(api->options.node, &status);
	node_health(api->options.node, &health);
	write_node(api, out, &status, &health);
	write_lease(out, &status, &health);
	write_spots(api, out, &status, &health);
	write_ledger(api, out);
	metrics_workers(api, out);
	metrics_fabrics(api, out);
	write_store(api, out);
	write_control(api, out);
}

// ---- metrics on the socket ----

void op_metrics(struct api_request *request)
{
	struct text text = {0};
	metrics_write(request->api, &text);
	if (text.failed) {
		text_fini(&text);
		api_done(request, NULL);
		return;
	}
	api_send_text(request, text.data);
	text_fini(&text);
	api_done(request, json_pack("{s:s}", "content_type", METRICS_CONTENT_TYPE));
}
