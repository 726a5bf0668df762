// SPDX-License-Identifier: BSD-3-Clause
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/api.h"
#include "base/check.h"
#include "base/mem.h"
#include "dp/port.h"
#include "fabrics.h"
#include "host.h"
#include "log.h"
#include "loop/loop.h"
#include "modules/loader.h"
#include "node/health.h"
#include "node/node.h"
#include "notify.h"
#include "publish/publish.h"
#include "route/route.h"
#include "store/lock.h"
#include "store/memory/memory.h"
#include "store/meter.h"
#include "store/sqlite/sqlite.h"
#include "worker/worker.h"

enum { ROUTES_EXPECTED = 65536, WHY_BYTES = 512, NS_PER_MS = 1000000 };

struct process {
	const struct config *config;
	struct clock *clock;
	struct rng rng;
	struct store *store;
	struct store_meter store_meter;
	struct store_lock lock;
	char host_id[STORE_HOST_ID_BYTES];
	struct route_table *routes;
	struct dp *dp;
	struct fabrics fabrics;
	struct loop *loop;
	struct node *node;
	struct api *api;
	struct host host;
	bool threads_started;
	bool ready_told;
	uint32_t stop_signals;
	enum node_state state_seen;
	uint32_t failing_seen; // parts of readiness, once the node had been ready
	uint64_t watchdog_ns; // half the manager's period; 0 = none
	uint64_t watchdog_next_ns;
};

static enum spotd_exit refuse(enum spotd_exit code, const char *what, const char *why)
{
	log_line(LOG_LEVEL_ERROR, "%s: %s", what, why);
	return code;
}

// ---- start-up, in order ----

static enum spotd_exit open_store(struct process *p)
{
	const struct config *c = p->config;
	if (c->store.kind == CONFIG_STORE_MEMORY) {
		p->store = memory_store_create(p->clock, rng_u64(&p->rng));
		return p->store != NULL ? SPOTD_EXIT_CLEAN
					: refuse(SPOTD_EXIT_INTERNAL, "store", "out of memory");
	}
	switch (store_lock_take(&p->lock, c->store.path, c->node.id)) {
	case STORE_LOCK_TAKEN:
		break;
	case STORE_LOCK_HELD:
		log_line(LOG_LEVEL_ERROR,
			"store: node id %s runs already on this machine with %s; stop it, or give this "
			"one another node.id",
			c->node.id, c->store.path);
		return SPOTD_EXIT_STORE;
	case STORE_LOCK_FAILED:
		log_line(LOG_LEVEL_ERROR,
			"store: lock file beside %s: %s; check that the directory "
			"exists and may be written",
			c->store.path, strerror(errno));
		return SPOTD_EXIT_STORE;
	}
	char why[256] = "";
	struct sqlite_store_config config = {
		.path = c->store.path,
		.lease_wait_ms = c->lease.timeout_ms / 2,
		.spot_wait_ms = c->lease.timeout_ms / 2,
		.clock = p->clock,
	};
	switch (sqlite_store_create(&config, &p->store, why)) {
	case SQLITE_OPEN_DONE:
		return SPOTD_EXIT_CLEAN;
	case SQLITE_OPEN_VERSION:
		return refuse(SPOTD_EXIT_SCHEMA, "store", why);
	case SQLITE_OPEN_UNREACHABLE:
	case SQLITE_OPEN_DAMAGED:
		break;
	}
	return refuse(SPOTD_EXIT_STORE, "store", why);
}

static struct dp_config dp_config_of(const struct process *p)
{
	const struct config *c = p->config;
	struct dp_config d = {
		.workers = (uint16_t)c->workers.count,
		.idle = c->workers.idle == CONFIG_IDLE_SPIN ? DP_IDLE_SPIN : DP_IDLE_ADAPTIVE,
		.accounting = c->limits.accounting == CONFIG_ACCOUNTING_FIXED ? LEDGER_FIXED
									      : LEDGER_MEASURED,
		.application = {c->limits.application_lane.bytes, c->limits.application_lane.count},
		.lifecycle = {c->limits.lifecycle_lane.bytes, c->limits.lifecycle_lane.count},
		.process_mark_bytes = c->limits.process_inbound_bytes,
		.parked_messages_max = c->limits.parked,
		.resolves_in_flight_max = c->limits.pending_resolves,
		.message_bytes_max = (uint32_t)c->limits.message_bytes,
		.peer_reassembly_bytes_max = c->limits.peer_reassembly_bytes,
		.reassembly_expiry_ms = 500,
		.sessions_max = c->limits.sessions,
		.held_replies_bytes = c->limits.held_replies_bytes,
		.turn_budget_us = c->turn_budget_us,
		.default_budget_ms = c->default_budget_ms,
		.offload_threads = c->offload.threads,
		.offload_queue_max = c->offload.queue,
		.insecure = c->insecure,
		.node = node_key_of(span_of(c->node.id, strlen(c->node.id))),
		.clock = p->clock,
		.routes = p->routes,
	};
	rng_secret(d.cookie_key, sizeof(d.cookie_key));
	return d;
}

static const char *type_config(const struct config_module *module, const char *type)
{
	for (uint32_t i = 0; i < module->type_count; i++)
		if (strcmp(module->types[i].name, type) == 0)
			return module->types[i].json;
	return NULL;
}

// The configuration texts of a module's types, in the order dp_register_module wants: instance
// types, user types, entry types. False when the file configures a type that the module does not
// have.
static bool type_configs(const struct config_module *config, const struct spotlane_module *module,
	const char *out[MODULE_TYPES_MAX])
{
	uint32_t n = 0, matched = 0;
	for (int i = 0; module->instance_types != NULL && module->instance_types[i] != NULL; i++)
		out[n++] = type_config(config, module->instance_types[i]->name);
	for (int i = 0; module->user_types != NULL && module->user_types[i] != NULL; i++)
		out[n++] = type_config(config, module->user_types[i]->name);
	for (int i = 0; module->entry_types != NULL && module->entry_types[i] != NULL; i++)
		out[n++] = type_config(config, module->entry_types[i]->name);
	for (uint32_t i = 0; i < n; i++)
		matched += out[i] != NULL;
	return matched == config->type_count;
}

// Bounds that the file gives single types, over what module and node say (L1).
static bool limit_types(struct process *p, const struct config_module *module, const char **out_why)
{
	for (uint32_t i = 0; i < module->type_count; i++) {
		const struct config_type *t = &module->types[i];
		struct dp_type_limits limits = {
			.application = {t->application_lane.bytes, t->application_lane.count},
			.lifecycle = {t->lifecycle_lane.bytes, t->lifecycle_lane.count}};
		if (!dp_type_limit(p->dp, t->name, &limits, out_why))
			return false;
	}
	return true;
}

static enum spotd_exit load_modules(struct process *p)
{
	for (uint32_t i = 0; i < p->config->module_count; i++) {
		const struct config_module *m = &p->config->modules[i];
		const struct spotlane_module *module = NULL;
		const char *configs[MODULE_TYPES_MAX] = {NULL};
		char why[MODULE_WHY_BYTES] = "";
		const char *refused = NULL;
		if (module_load(m->path, &module, why) != MODULE_LOADED)
			return refuse(SPOTD_EXIT_CONFIG, "module", why);
		if (!type_configs(m, module, configs)) {
			log_line(LOG_LEVEL_ERROR,
				"module %s: the configuration names a type that it does "
				"not have; see modules[%u].types",
				m->path, i);
			return SPOTD_EXIT_CONFIG;
		}
		if (dp_register_module(p->dp, module, configs, &refused) != DP_DONE ||
			!limit_types(p, m, &refused)) {
			log_line(LOG_LEVEL_ERROR, "module %s: %s", m->path, refused);
			return SPOTD_EXIT_CONFIG;
		}
		log_line(LOG_LEVEL_INFO, "module %s %s from %s", module->name, module->version,
			m->path);
	}
	return SPOTD_EXIT_CLEAN;
}

static enum spotd_exit open_data_plane(struct process *p)
{
	uint8_t hash_key[16];
	char why[FABRICS_WHY_BYTES] = "";
	const char *refused = NULL;
	rng_secret(hash_key, sizeof(hash_key));
	p->routes = route_table_create(hash_key, ROUTES_EXPECTED);
	if (p->routes == NULL)
		return refuse(SPOTD_EXIT_INTERNAL, "route table", "out of memory");
	struct dp_config config = dp_config_of(p);
	p->dp = dp_create(&config, &refused);
	if (p->dp == NULL)
		return refuse(SPOTD_EXIT_CONFIG, "data plane", refused);
	enum spotd_exit code = load_modules(p);
	if (code != SPOTD_EXIT_CLEAN)
		return code;
	if (!fabrics_open(&p->fabrics, p->config, p->clock, why))
		return refuse(SPOTD_EXIT_ENVIRONMENT, "fabric", why);
	fabrics_attach(&p->fabrics, p->dp, (uint16_t)p->config->workers.count);
	return SPOTD_EXIT_CLEAN;
}

static enum spotd_exit set_idle_times(struct process *p)
{
	for (uint32_t m = 0; m < p->config->module_count; m++)
		for (uint32_t i = 0; i < p->config->modules[m].type_count; i++) {
			const struct config_type *t = &p->config->modules[m].types[i];
			if (t->idle_timeout_given && !node_idle_set(p->node, t->name, t->idle_timeout_ms))
				return refuse(SPOTD_EXIT_CONFIG, t->name,
					"idle_timeout: only Instance Spots end when they are idle");
		}
	return SPOTD_EXIT_CLEAN;
}

static enum spotd_exit make_node(struct process *p)
{
	const struct config *c = p->config;
	const char *refused = NULL;
	struct node_config config = {
		.node_id = c->node.id,
		.entry_prefix = c->node.entry_prefix,
		.entry_type = c->node.entry_type[0] != '\0' ? c->node.entry_type : NULL,
		.lease_ttl_ms = c->lease.ttl_ms,
		.lease_renew_ms = c->lease.renew_ms,
		.lease_timeout_ms = c->lease.timeout_ms,
		.lease_margin_ms = c->lease.margin_ms,
		.clock_rate_error_percent = 1,
		.activations_max = c->limits.activations,
		.activations_waiting_max = c->limits.activations_waiting,
		.resolves_max = c->limits.pending_resolves,
		.spots_max = c->limits.spots,
		.idle_ms = c->instance_idle_timeout_ms,
		.sweep_interval_ms = c->instance_idle_interval_ms,
		.fence_grace_ms = c->lease.fence_after_ms,
		.closing_limit_ms = c->closing_limit_ms,
		.drain_deadline_ms = c->drain_deadline_ms,
		.rcu_pending_max = 1u << 20,
		.workers = (uint16_t)c->workers.count,
		.host_id = p->host_id,
		.address = p->fabrics.count > 0 ? p->fabrics.entries[0].address : NULL,
		.node_lock_held = p->lock.fd >= 0,
	};
	store_host_id(p->host_id);
	store_measure(p->store, &p->store_meter, p->clock);
	p->node = node_create(
		&config, p->clock, &p->rng, p->store, p->dp, p->routes, &refused);
	if (p->node == NULL)
		return refuse(SPOTD_EXIT_CONFIG, "node", refused);
	return set_idle_times(p);
}

// ---- control's steps ----

static uint64_t step_node(void *arg)
{
	struct process *p = arg;
	return node_step(p->node);
}

static void on_api_stopped(void *arg)
{
	struct process *p = arg;
	p->api = NULL;
	loop_stop(p->loop);
}

static void tell_state(struct process *p, const struct node_status *status)
{
	char text[320];
	log_line(status->state == NODE_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
		"node %s is %s%s%s", p->config->node.id, node_state_name(status->state),
		status->why[0] != '\0' ? ": " : "", status->why);
	snprintf(text, sizeof(text), "STATUS=%s", node_state_name(status->state));
	notify_send(text);
	if (status->state == NODE_DRAINING)
		notify_send("STOPPING=1");
}

// Once it was ready, each change of what keeps it from being so is said: log and service manager.
static void tell_health(
	struct process *p, const struct node_health *health, const struct node_status *status)
{
	char parts[160] = "", text[320];
	size_t used = 0;
	p->failing_seen = health->failing;
	for (uint32_t i = NODE_READY_STATE; i < NODE_READY_PART_END; i++) {
		if (health->failing >> i & 1)
			used += (size_t)snprintf(parts + used, sizeof(parts) - used, "%s%s",
				used > 0 ? ", " : "", node_ready_name((enum node_ready_part)i));
	}
	if (used == 0)
		log_line(LOG_LEVEL_INFO, "ready again");
	else if (status->state == NODE_SERVING)
		log_line(LOG_LEVEL_WARN, "not ready: %s (spotctl health ready says more)", parts);
	snprintf(text, sizeof(text), "STATUS=%s%s%s", node_state_name(status->state),
		used > 0 ? ", not ready: " : "", parts);
	notify_send(text);
}

// Notices changes of the node's state, tells the service manager, and ends the loop with the node.
static uint64_t step_watch(void *arg)
{
	struct process *p = arg;
	struct node_status status;
	struct node_health health;
	node_status(p->node, &status);
	uint64_t now = clock_boot_ns(p->clock);
	if (status.state != p->state_seen) {
		p->state_seen = status.state;
		tell_state(p, &status);
	}
	if (!p->ready_told && status.ready) {
		p->ready_told = true;
		notify_send("READY=1");
		log_line(LOG_LEVEL_INFO, "ready");
	}
	node_health(p->node, &health);
	if (p->ready_told && health.failing != p->failing_seen)
		tell_health(p, &health, &status);
	// A store that does not answer is waited for; a core that stands still is not.
	if (p->watchdog_ns != 0 && now >= p->watchdog_next_ns && health.workers_stalled == 0) {
		notify_send("WATCHDOG=1");
		p->watchdog_next_ns = now + p->watchdog_ns;
	}
	if ((status.state == NODE_STOPPED || status.state == NODE_ERROR) && p->api != NULL &&
		!p->host.ending) {
		p->host.ending = true;
		api_stop(p->api, on_api_stopped, p);
	}
	return now + 200u * NS_PER_MS;
}

static void on_stop(void *arg, int signum)
{
	struct process *p = arg;
	(void)signum;
	if (p->stop_signals++ == 0)
		node_stop(p->node, p->config->drain_deadline_ms);
	else
		node_stop_now(p->node);
}

static void on_reopen(void *arg, int signum)
{
	(void)arg;
	(void)signum;
	log_reopen();
}

static void on_dump(void *arg, int signum)
{
	struct process *p = arg;
	struct node_status s;
	(void)signum;
	node_status(p->node, &s);
	log_line(LOG_LEVEL_INFO,
		"state %s, lease left %lld ms, spots %llu user %llu instance, activations %llu running "
		"%llu waiting, routes %llu",
		node_state_name(s.state), (long long)(s.lease_left_ns / NS_PER_MS),
		(unsigned long long)s.spots_live[SPOT_KIND_USER],
		(unsigned long long)s.spots_live[SPOT_KIND_INSTANCE],
		(unsigned long long)s.activations_running,
		(unsigned long long)s.activations_waiting, (unsigned long long)s.routes);
}

static void on_sleeping(void *arg, bool asleep)
{
	struct process *p = arg;
	dp_control_sleeps(p->dp, asleep);
}

static void log_event(const struct node_event *e)
{
	switch (e->kind) {
	case NODE_EVENT_ACTIVATION_FAILED:
	case NODE_EVENT_CLOSE_STUCK:
	case NODE_EVENT_LEASE_LOST:
	case NODE_EVENT_OVERRUN:
	case NODE_EVENT_SKEW:
	case NODE_EVENT_FENCED:
		log_line(LOG_LEVEL_WARN, "%s", e->text);
		return;
	case NODE_EVENT_LEASE_REGAINED:
	case NODE_EVENT_PEER:
		log_line(LOG_LEVEL_INFO, "%s", e->text);
		return;
	case NODE_EVENT_STATE:
	case NODE_EVENT_ACTIVATED:
	case NODE_EVENT_CLOSED:
		break;
	}
	log_line(LOG_LEVEL_DEBUG, "%s", e->text);
}

static void on_event(void *arg, const struct node_event *event)
{
	struct process *p = arg;
	log_event(event);
	if (p->api != NULL)
		api_event(p->api, event);
}

static void stop_by_operator(void *arg, uint32_t deadline_ms)
{
	struct process *p = arg;
	p->stop_signals++;
	node_stop(p->node, deadline_ms);
}

static enum spotd_exit open_control(struct process *p, const char *config_path)
{
	char why[WHY_BYTES] = "";
	p->loop = loop_create(p->clock);
	if (p->loop == NULL)
		return refuse(SPOTD_EXIT_INTERNAL, "event loop", "out of memory");
	enum spotd_exit code = make_node(p);
	if (code != SPOTD_EXIT_CLEAN)
		return code;
	host_init(&p->host, p->config, config_path, &p->fabrics, stop_by_operator, p);
	struct api_options options = {
		.uv = loop_uv(p->loop),
		.clock = p->clock,
		.node = p->node,
		.dp = p->dp,
		.routes = p->routes,
		.store_meter = &p->store_meter,
		.config = p->config,
		.host = &p->host.api,
	};
	p->api = api_start(&options, why, sizeof(why));
	if (p->api == NULL)
		return refuse(SPOTD_EXIT_ENVIRONMENT, "control socket", why);
	node_set_event_sink(p->node, on_event, p);
	loop_add_step(p->loop, step_node, p);
	loop_add_step(p->loop, fabrics_step, &p->fabrics);
	loop_add_step(p->loop, step_watch, p);
	if (dp_wake_fd(p->dp) >= 0)
		loop_add_wake(p->loop, dp_wake_fd(p->dp));
	if (store_wait_fd(p->store) >= 0)
		loop_add_wake(p->loop, store_wait_fd(p->store));
	fabrics_add_wakes(&p->fabrics, p->loop);
	loop_add_signal(p->loop, SIGTERM, on_stop, p);
	loop_add_signal(p->loop, SIGINT, on_stop, p);
	loop_add_signal(p->loop, SIGHUP, on_reopen, p);
	loop_add_signal(p->loop, SIGUSR1, on_reopen, p);
	loop_add_signal(p->loop, SIGUSR2, on_dump, p);
	loop_set_sleeping(p->loop, on_sleeping, p);
	return SPOTD_EXIT_CLEAN;
}

static bool start_threads(struct process *p)
{
	int cpus[DP_WORKERS_MAX];
	struct dp_thread_hooks hooks = {fabrics_thread_begin, fabrics_thread_end, &p->fabrics};
	const char *why = NULL;
	for (uint32_t i = 0; i < p->config->workers.count; i++)
		cpus[i] = i < p->config->workers.core_count ? p->config->workers.cores[i] : -1;
	p->threads_started = dp_threads_start(p->dp, cpus, &hooks, &why);
	if (!p->threads_started)
		log_line(LOG_LEVEL_ERROR, "worker threads: %s", why);
	return p->threads_started;
}

// Work that a forced stop cut off: Spots that hold items cannot be taken apart piece by piece.
static bool holds_work(const struct process *p)
{
	struct node_status s;
	if (p->node == NULL)
		return false;
	node_status(p->node, &s);
	return s.closes_running + s.closes_stuck + s.activations_running + s.resolves_running +
		       s.spots_live[SPOT_KIND_ENTRY] + s.spots_live[SPOT_KIND_USER] +
		       s.spots_live[SPOT_KIND_INSTANCE] >
	       0;
}

// The store is closed by now; the rest of this process is the kernel's to take back.
static void end_at_once(struct process *p, enum spotd_exit code)
{
	fabrics_close(&p->fabrics);
	store_lock_release(&p->lock);
	log_line(LOG_LEVEL_WARN, "work was cut off; its rows are released at this node's next start");
	log_line(code == SPOTD_EXIT_CLEAN ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "ended with exit code %d",
		(int)code);
	host_fini(&p->host);
	_exit((int)code);
}

static void close_all(struct process *p, enum spotd_exit code)
{
	if (p->node != NULL)
		node_halt(p->node);
	if (p->threads_started)
		dp_threads_stop(p->dp);
	store_destroy(p->store);
	if (holds_work(p))
		end_at_once(p, code);
	node_destroy(p->node);
	loop_destroy(p->loop);
	fabrics_close(&p->fabrics);
	publish_stop();
	dp_destroy(p->dp);
	route_table_destroy(p->routes);
	store_lock_release(&p->lock);
	host_fini(&p->host);
}

static enum spotd_exit serve(struct process *p)
{
	struct node_status status;
	if (!start_threads(p))
		return SPOTD_EXIT_ENVIRONMENT;
	p->watchdog_ns = notify_watchdog_us() * 1000u / 2;
	node_start(p->node);
	loop_run(p->loop);
	node_status(p->node, &status);
	return (enum spotd_exit)status.exit_code;
}

enum spotd_exit process_run(const struct config *config, const char *config_path)
{
	struct process *p = mem_zalloc(sizeof(*p));
	CHECK(p != NULL);
	p->config = config;
	p->clock = clock_system();
	p->lock.fd = -1;
	rng_seed_system(&p->rng);
	signal(SIGPIPE, SIG_IGN);
	publish_start(); // before any thread is pinned: the reclaimer inherits the mask
	enum spotd_exit code = open_store(p);
	if (code == SPOTD_EXIT_CLEAN)
		code = open_data_plane(p);
	if (code == SPOTD_EXIT_CLEAN)
		code = open_control(p, config_path);
	if (code == SPOTD_EXIT_CLEAN)
		code = serve(p);
	close_all(p, code);
	mem_free(p);
	log_line(code == SPOTD_EXIT_CLEAN ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
		"ended with exit code %d", (int)code);
	return code;
}
