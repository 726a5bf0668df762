// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "node/health.h"

enum {
	NS_PER_MS = 1000000,
	TEXT_BYTES_MAX = 256 * 1024,
	STALE_LOOP_MS = 1000, // a worker that has not turned for so long is worth a word
};

// ---- status ----

static json_t *lease_of(const struct node_status *s)
{
	json_t *lease = json_object();
	view_set(lease, "generation", s->lease_generation);
	json_object_set_new(lease, "left_ns", json_integer(s->lease_left_ns));
	view_set(lease, "renewals", s->lease_renewals);
	view_set(lease, "failures", s->lease_failures);
	json_object_set_new(lease, "clock_skew_to_store_ns", json_integer(s->clock_skew_to_store_ns));
	return lease;
}

static json_t *spots_of(const struct node_status *s)
{
	json_t *spots = json_object();
	for (int kind = SPOT_KIND_ENTRY; kind <= SPOT_KIND_INSTANCE; kind++)
		view_set(spots, spot_kind_name((enum spot_kind)kind), s->spots_live[kind]);
	return spots;
}

static json_t *ceiling_of(uint64_t counted, uint64_t max)
{
	json_t *json = json_object();
	view_set(json, "counted", counted);
	view_set(json, "ceiling", max);
	if (max > 0)
		view_set(json, "headroom", max > counted ? max - counted : 0);
	return json;
}

// N1: 0 = no ceiling; then there is no headroom to name either.
static json_t *ceilings_of(const struct api *api)
{
	const struct dp *dp = api->options.dp;
	struct node_health health;
	json_t *types = json_array();
	node_health(api->options.node, &health);
	for (uint32_t i = 0; i < dp_type_count(dp); i++) {
		const struct dp_type *type = dp_type_at(dp, i);
		json_t *row = ceiling_of(
			node_type_spots(api->options.node, type), dp_type_spots_max(type));
		json_object_set_new(row, "type", json_string(dp_type_name(type)));
		json_array_append_new(types, row);
	}
	return json_pack("{s:o, s:o}", "spots", ceiling_of(health.spots_counted, health.spots_max),
		"types", types);
}

static json_t *activity_of(const struct node_status *s)
{
	json_t *json = json_object();
	view_set(json, "activations_running", s->activations_running);
	view_set(json, "activations_waiting", s->activations_waiting);
	view_set(json, "activations", s->activations_total);
	view_set(json, "activation_failures", s->activation_failures);
	view_set(json, "resolves_running", s->resolves_running);
	view_set(json, "closes_running", s->closes_running);
	view_set(json, "closes_stuck", s->closes_stuck);
	view_set(json, "closes", s->closes_total);
	return json;
}

static uint64_t worker_age_ns(const struct api *api, uint16_t worker, uint64_t now)
{
	uint64_t beat = dp_worker_heartbeat(api->options.dp, worker);
	return beat == 0 || beat > now ? 0 : now - beat;
}

static json_t *workers_of(const struct api *api, uint64_t now)
{
	json_t *workers = json_array();
	for (uint16_t w = 0; w < api->options.host->workers; w++) {
		struct spot_key key;
		uint64_t since;
		json_t *row = json_object();
		view_set(row, "worker", w);
		view_set(row, "last_loop_ns", worker_age_ns(api, w, now));
		if (dp_worker_running(api->options.dp, w, &key, &since)) {
			json_object_set_new(row, "running", view_key(key));
			view_set(row, "running_ns", since > now ? 0 : now - since);
		}
		json_array_append_new(workers, row);
	}
	return workers;
}

static json_t *fabrics_of(const struct api *api)
{
	const struct api_host *host = api->options.host;
	json_t *fabrics = json_array();
	for (uint32_t i = 0; i < host->fabrics && host->fabric != NULL; i++) {
		struct api_fabric f = {0};
		host->fabric(host->arg, i, &f);
		json_t *row = json_pack("{s:s*, s:s*, s:s*, s:s*, s:b}", "name", f.name, "kind", f.kind,
			"driver", f.driver, "address", f.address, "link_up", f.link_up);
		view_set(row, "link_mbps", f.link_mbps);
		view_set(row, "payload_max_bytes", f.payload_bytes_max);
		json_object_set_new(row, "hides_losses", json_boolean(f.hides_losses));
		json_array_append_new(fabrics, row);
	}
	return fabrics;
}

void op_status(struct api_request *request)
{
	const struct api *api = request->api;
	const struct config *config = api->options.config;
	struct node_status s;
	uint64_t now = view_now(api);
	node_status(api->options.node, &s);
	json_t *json = json_pack("{s:s, s:s, s:b, s:b, s:s}", "node", config->node.id, "state",
		node_state_name(s.state), "ready", s.ready, "insecure", config->insecure, "version",
		api->options.host->version);
	if (s.why[0] != '\0')
		json_object_set_new(json, "why", view_text(span_of(s.why, strnlen(s.why, sizeof s.why))));
	view_set(json, "up_ns", now > s.started_boot_ns ? now - s.started_boot_ns : 0);
	json_object_set_new(json, "lease", lease_of(&s));
	json_object_set_new(json, "spots", spots_of(&s));
	json_object_set_new(json, "ceilings", ceilings_of(api));
	json_object_set_new(json, "activity", activity_of(&s));
	view_set(json, "routes", s.routes);
	view_set(json, "route_bytes", s.route_bytes);
	view_set(json, "rcu_pending", s.rcu_pending);
	view_set(json, "process_bytes", dp_process_bytes(api->options.dp));
	view_set(json, "process_max_bytes", config->limits.process_inbound_bytes);
	json_object_set_new(json, "pressure", json_boolean(dp_pressure(api->options.dp)));
	view_set(json, "clients", api->clients);
	json_object_set_new(json, "workers", workers_of(api, now));
	json_object_set_new(json, "fabrics", fabrics_of(api));
	api_done(request, json);
}

// ---- version, schema ----

static void emit_text(void *to, const char *name, const char *value)
{
	json_object_set_new(to, name, json_string(value));
}

void op_version(struct api_request *request)
{
	const struct api_host *host = request->api->options.host;
	json_t *json = json_pack("{s:s, s:s, s:s, s:i}", "name", "spotd", "version", host->version, "git",
		host->git != NULL ? host->git : "", "control_protocol", 1);
	json_t *libraries = json_object();
	if (host->versions != NULL)
		host->versions(host->arg, emit_text, libraries);
	json_object_set_new(json, "built_with", libraries);
	api_done(request, json);
}

static const char *arg_type_name(enum api_arg_type type)
{
	switch (type) {
	case API_ARG_TEXT:
		return "text";
	case API_ARG_NUMBER:
		return "number";
	case API_ARG_YES:
		return "boolean";
	case API_ARG_CHOICE:
		return "choice";
	}
	return "none";
}

static json_t *schema_of(const struct api_command *command)
{
	json_t *args = json_array();
	for (const struct api_arg *a = command->args; a->name != NULL; a++) {
		json_t *arg = json_pack("{s:s, s:s, s:b, s:s}", "name", a->name, "type",
			arg_type_name(a->type), "required", a->required, "text", a->text);
		if (a->choices != NULL)
			json_object_set_new(arg, "choices", json_string(a->choices));
		else if (a->type != API_ARG_YES) {
			json_object_set_new(arg, "min", json_integer(a->min));
			json_object_set_new(arg, "max", json_integer(a->max));
		}
		json_array_append_new(args, arg);
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "op", command->op, "role",
		api_role_name(command->role), "class", api_class_name(command->class), "text",
		command->text, "args", args);
}

void op_schema(struct api_request *request)
{
	json_t *ops = json_array(), *errors = json_array();
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++)
		json_array_append_new(ops, schema_of(api_command_at(i)));
	for (uint32_t i = 0; i < API_ERROR_COUNT; i++)
		json_array_append_new(errors,
			json_pack("{s:i, s:s, s:i, s:s}", "code", (int)api_error_rows[i].code, "kind",
				api_error_rows[i].name, "exit", api_error_rows[i].exit_code, "text",
				api_error_rows[i].text));
	api_done(request, json_pack("{s:i, s:o, s:o}", "v", 1, "ops", ops, "errors", errors));
}

// ---- stop ----

// Answered when the node has stopped and the server goes (request_orphan).
void op_stop(struct api_request *request)
{
	const struct api_host *host = request->api->options.host;
	int64_t deadline = arg_number(request, "deadline_ms", request->api->options.config->drain_deadline_ms);
	if (host->stop == NULL)
		api_fail(request, API_ERROR_UNSUPPORTED, NULL, "this process cannot be stopped from here");
	else
		host->stop(host->arg, (uint32_t)deadline);
}

// ---- config ----

static void answer_text(struct api_request *request, const char *what, const char *text)
{
	const struct api_host *host = request->api->options.host;
	if (strlen(text) > TEXT_BYTES_MAX) {
		api_fail(request, API_ERROR_CAPACITY_EXCEEDED, NULL, "the text has more than %d bytes",
			TEXT_BYTES_MAX);
		return;
	}
	api_send_text(request, text);
	json_t *json = json_pack("{s:s, s:s}", "what", what, "digest", request->api->digest);
	if (host->config_path != NULL)
		json_object_set_new(json, "path", json_string(host->config_path));
	if (host->eal_line != NULL && host->eal_line[0] != '\0')
		json_object_set_new(json, "eal", json_string(host->eal_line));
	api_done(request, json);
}

static void answer_dump(struct api_request *request, const char *what, const struct config *config)
{
	char *text = config_dump(config);
	if (text == NULL)
		api_done(request, NULL);
	else
		answer_text(request, what, text);
	mem_free(text);
}

static void answer_defaults(struct api_request *request)
{
	struct config *defaults = mem_zalloc(sizeof *defaults);
	if (defaults == NULL) {
		api_done(request, NULL);
		return;
	}
	config_defaults(defaults);
	answer_dump(request, "default", defaults);
	config_fini(defaults);
	mem_free(defaults);
}

void op_config_show(struct api_request *request)
{
	const struct api_host *host = request->api->options.host;
	const char *what = arg_text(request, "what");
	if (what == NULL || strcmp(what, "running") == 0) {
		answer_dump(request, "running", request->api->options.config);
	} else if (strcmp(what, "default") == 0) {
		answer_defaults(request);
	} else {
		const char *text = host->config_file_text == NULL ? NULL : host->config_file_text(host->arg);
		if (text == NULL)
			api_fail(request, API_ERROR_NOT_FOUND, NULL, "the node was started without a file");
		else
			answer_text(request, "file", text);
	}
}

// ---- doctor ----

static void finding(json_t *findings, const char *level, const char *fact, const char *why, const char *fix)
{
	json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s}", "level", level, "fact", fact, "why",
						why, "fix", fix));
}

static void check_node(json_t *findings, const struct node_status *s)
{
	char fact[320];
	snprintf(fact, sizeof fact, "the node is %s%s%.200s", node_state_name(s->state),
		s->why[0] != '\0' ? ": " : "", s->why);
	finding(findings, s->state == NODE_SERVING ? "ok" : "error", fact,
		"only a serving node admits messages",
		s->state == NODE_SERVING ? "" : "read the log: journalctl -u spotd");
	snprintf(fact, sizeof fact, "lease: %lld ms left, %llu renewals, %llu failures",
		(long long)(s->lease_left_ns / NS_PER_MS), (unsigned long long)s->lease_renewals,
		(unsigned long long)s->lease_failures);
	finding(findings, s->lease_left_ns > 0 ? "ok" : "error", fact,
		"without a lease every Spot here answers StaleRoute",
		s->lease_left_ns > 0 ? "" : "check the disk under store.path and its load");
	int64_t skew = s->clock_skew_to_store_ns < 0 ? -s->clock_skew_to_store_ns : s->clock_skew_to_store_ns;
	snprintf(fact, sizeof fact, "clock skew to the store: %lld ms", (long long)(skew / NS_PER_MS));
	finding(findings, skew < 500LL * NS_PER_MS ? "ok" : "warning", fact,
		"no rule rests on it, but times in logs will not agree",
		skew < 500LL * NS_PER_MS ? "" : "timedatectl set-ntp true");
	if (s->closes_stuck > 0) {
		snprintf(fact, sizeof fact, "%llu closings are stuck", (unsigned long long)s->closes_stuck);
		finding(findings, "warning", fact, "their Spots are owned and answer Unavailable",
			"spotctl watch, then mend the module that does not finish its closing");
	}
}

static void check_workers(json_t *findings, const struct api *api)
{
	uint64_t now = view_now(api);
	char fact[128];
	for (uint16_t w = 0; w < api->options.host->workers; w++) {
		uint64_t age = worker_age_ns(api, w, now);
		bool good = age < (uint64_t)STALE_LOOP_MS * NS_PER_MS;
		snprintf(fact, sizeof fact, "worker %u turned over %llu ms ago", w,
			(unsigned long long)(age / NS_PER_MS));
		finding(findings, good ? "ok" : "error", fact, "a worker that stands still delivers nothing",
			good ? "" : "spotctl status names the Spot whose turn runs there");
	}
}

static void check_fabrics(json_t *findings, const struct api *api)
{
	const struct api_host *host = api->options.host;
	char fact[256];
	for (uint32_t i = 0; i < host->fabrics && host->fabric != NULL; i++) {
		struct api_fabric f = {0};
		host->fabric(host->arg, i, &f);
		const char *name = f.name != NULL ? f.name : "";
		snprintf(fact, sizeof fact, "fabric %.64s (%.40s): link %s", name,
			f.driver != NULL ? f.driver : "", f.link_up ? "up" : "down");
		finding(findings, f.link_up ? "ok" : "error", fact, "nothing arrives without a link",
			f.link_up ? "" : "ip link set dev IFACE up, or check the cable");
		snprintf(fact, sizeof fact, "fabric %.64s does not count what it loses", name);
		if (f.hides_losses)
			finding(findings, "warning", fact,
				"lost frames show only as gaps in the senders' session counters",
				"prefer a driver with statistics where losses must be seen");
	}
}

void op_doctor(struct api_request *request)
{
	const struct api *api = request->api;
	struct node_status s;
	json_t *findings = json_array();
	node_status(api->options.node, &s);
	check_node(findings, &s);
	check_workers(findings, api);
	check_fabrics(findings, api);
	if (api->options.config->insecure)
		finding(findings, "warning", "insecure: yes", "anyone who reaches the ports may send",
			"keep the node's networks closed to others");
	if (dp_pressure(api->options.dp))
		finding(findings, "warning", "the process inbound bound is under pressure",
			"peers are asked to slow down; at the mark messages are refused",
			"spotctl lane top --by bytes");
	api_done(request, json_pack("{s:o}", "findings", findings));
}
