// SPDX-License-Identifier: BSD-3-Clause
#include "node/node.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "node/health.h"
#include "node/internal.h"
#include "spotlane/module.h"

const char *node_state_name(enum node_state state)
{
	switch (state) {
	case NODE_PREPARING:
		return "Preparing";
	case NODE_SERVING:
		return "Serving";
	case NODE_DRAINING:
		return "Draining";
	case NODE_STOPPED:
		return "Stopped";
	case NODE_ERROR:
		return "Error";
	}
	return "invalid";
}

// ---- making and freeing ----
static const char *check_config(const struct node_config *c, const struct dp *dp)
{
	if (c->node_id == NULL || c->node_id[0] == 0 || strlen(c->node_id) > 64)
		return "node id: 1 to 64 bytes";
	if (c->lease_ttl_ms == 0 || c->lease_renew_ms == 0 || c->lease_timeout_ms == 0)
		return "lease: ttl, renew and timeout must not be 0";
	if (!lease_relation_holds(c))
		return "lease: max(renew, timeout) + timeout must be less than ttl - margin";
	if (c->clock_rate_error_percent >= 50)
		return "clock rate error: less than 50 percent";
	if (c->activations_max == 0 || c->activations_waiting_max == 0 || c->resolves_max == 0)
		return "activations, activations waiting and resolves must be bounded above 0";
	if (c->workers == 0 || c->workers > DP_WORKERS_MAX)
		return "workers: 1 to 64";
	if (c->idle_ms != 0 && c->sweep_interval_ms == 0)
		return "idle cleanup: the time between two looks must not be 0";
	if (c->entry_type == NULL)
		return NULL;
	const struct dp_type *type = dp_type_by_name(dp, c->entry_type);
	if (type == NULL || dp_type_kind(type) != SPOT_KIND_ENTRY)
		return "entry type: not a registered type of kind entry";
	if (c->entry_prefix == NULL || c->entry_prefix[0] == 0 || strlen(c->entry_prefix) > 64)
		return "entry prefix: 1 to 64 bytes";
	return NULL;
}

static void copy_text(char *to, size_t capacity, const char *from)
{
	size_t size = from == NULL ? 0 : strnlen(from, capacity - 1);
	memcpy(to, from == NULL ? "" : from, size);
	to[size] = 0;
}

static bool copy_config(struct node *n, const struct node_config *config)
{
	n->config = *config;
	copy_text(n->node_id, sizeof(n->node_id), config->node_id);
	copy_text(n->entry_prefix, sizeof(n->entry_prefix), config->entry_prefix);
	copy_text(n->host_id, sizeof(n->host_id), config->host_id);
	copy_text(n->address, sizeof(n->address), config->address);
	n->config.node_id = n->node_id;
	n->config.entry_prefix = n->entry_prefix;
	n->config.host_id = n->host_id;
	n->config.address = n->address;
	n->type_count = dp_type_count(n->dp);
	n->types = mem_zalloc((n->type_count + 1) * sizeof(n->types[0]));
	for (uint32_t i = 0; n->types != NULL && i < n->type_count; i++)
		n->types[i].type = dp_type_at(n->dp, i);
	return n->types != NULL;
}

struct node *node_create(const struct node_config *config, struct clock *clock, struct rng *rng,
	struct store *store, struct dp *dp, struct route_table *routes, const char **out_why)
{
	const char *why = check_config(config, dp);
	struct node *n = why != NULL ? NULL : mem_zalloc(sizeof(*n));
	if (n == NULL) {
		*out_why = why != NULL ? why : "out of memory";
		return NULL;
	}
	n->clock = clock;
	n->rng = rng;
	n->store = store;
	n->dp = dp;
	n->routes = routes;
	n->state = NODE_PREPARING;
	n->hash_seed = rng_u64(rng);
	n->operation_next_ns = UINT64_MAX;
	n->retry_next_ns = UINT64_MAX;
	n->now_ns = clock_boot_ns(clock);
	n->started_ns = n->now_ns;
	struct store_op_id boot = node_draw_id(n);
	memcpy(n->boot.bytes, boot.bytes, sizeof(n->boot.bytes));
	dpq_init(n);
	if (!copy_config(n, config)) {
		*out_why = "out of memory";
		mem_free(n);
		return NULL;
	}
	return n;
}

void node_halt(struct node *n)
{
	n->halted = true;
	lease_drop(n);
}

struct local {
	struct spot_key key;
	struct dp_actor *actor;
	struct dp_spot *spot;
};

static void find_actor(struct spot_key key, route_word word, void *arg)
{
	struct local *found = arg;
	found->key = key;
	found->actor = dp_actor_of_route(word);
}

static void find_spot(struct spot_key key, route_word word, void *arg)
{
	struct local *found = arg;
	found->key = key;
	found->spot = dp_spot_of_route(word);
}

static void free_all(struct node *n, void (*find)(struct spot_key key, route_word word, void *arg))
{
	uint64_t cursor = 0;
	do { // ends: each turn of the cursor that finds none is the last
		struct local found = {.spot = NULL};
		(void)route_walk(n->routes, &cursor, 1, find, &found);
		if (found.actor == NULL && found.spot == NULL)
			continue;
		(void)route_retire(n->routes, found.key);
		dp_actor_discard(found.actor);
		dp_spot_discard(found.spot);
	} while (cursor != 0);
}

// Members before the Spots that they are in.
static void free_local_spots(struct node *n)
{
	free_all(n, find_actor);
	free_all(n, find_spot);
}

void node_destroy(struct node *n)
{
	if (n == NULL)
		return;
	CHECK(n->halted);
	// Waiters in a worker's command queue belong to no entry any more.
	for (uint16_t i = 0; i < n->config.workers; i++)
		for (struct command *c = n->commands[i].first, *next; c != NULL; c = next) {
			next = c->next;
			if (c->kind >= COMMAND_ACTOR_ADMIT)
				actor_free_queued(c);
			else if (c->kind > COMMAND_CLOSE_IDLE)
				waiter_free(container_of(c, struct waiter, command));
		}
	entry_free_all(n);
	remote_end(n);
	actor_free_changes(n);
	free_local_spots(n);
	mem_free(n->types);
	mem_free(n);
}

// ---- small helpers of all parts ----
struct store_op_id node_draw_id(struct node *n)
{
	struct store_op_id id;
	uint64_t words[2] = {rng_u64(n->rng), rng_u64(n->rng)};
	memcpy(id.bytes, words, sizeof(id.bytes));
	return id;
}

void node_submit(struct node *n, struct store_op *op)
{
	store_submit(n->store, op);
}

struct node_key node_own_key(const struct node *n)
{
	return node_key_of(span_of(n->node_id, strlen(n->node_id)));
}

struct type_count *node_type_count(struct node *n, const struct dp_type *type)
{
	for (uint32_t i = 0; i < n->type_count; i++)
		if (n->types[i].type == type)
			return &n->types[i];
	CHECK(!"a registered type");
	return NULL;
}

void node_say(struct node *n, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(n->why, sizeof(n->why), format, args);
	va_end(args);
}

void node_set_event_sink(
	struct node *n, void (*sink)(void *arg, const struct node_event *e), void *arg)
{
	n->sink = sink;
	n->sink_arg = arg;
}

void node_enter(struct node *n, enum node_state state)
{
	n->state = state;
	node_emit(n, NODE_EVENT_STATE, (struct spot_key){0, 0}, span_of(NULL, 0), result_ok(), state);
}

void node_end_now(struct node *n, enum node_state state, enum node_exit exit_code)
{
	n->exit_code = exit_code;
	lease_drop(n);
	fence_end(n);
	dp_admit_set(n->dp, false, RESULT_SHUTTING_DOWN);
	waiter_end_operators(n);
	node_enter(n, state);
}

void node_fail(struct node *n, enum node_exit exit_code, const char *why)
{
	if (n->abandon || n->state == NODE_ERROR || n->state == NODE_STOPPED)
		return;
	n->abandon = true;
	n->exit_code = exit_code;
	node_say(n, "%s", why);
	lease_drop(n);
	node_emit(n, NODE_EVENT_LEASE_LOST, (struct spot_key){0, 0}, span_of(NULL, 0),
		result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST), n->lease_generation.value);
	drain_begin(n, SPOTLANE_CLOSE_LEASE_LOST, n->config.closing_limit_ms);
	node_say(n, "%s", why);
}

void node_damaged(struct node *n)
{
	node_fail(n, NODE_EXIT_STORE, "the store is damaged or failed to sync");
}

// ---- the Entry Spot (K3): made before the node is visible ----
static void uuid4_text(struct node *n, char out[37])
{
	struct store_op_id r = node_draw_id(n);
	r.bytes[6] = (uint8_t)((r.bytes[6] & 0x0f) | 0x40);
	r.bytes[8] = (uint8_t)((r.bytes[8] & 0x3f) | 0x80);
	char *at = out;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		at += sprintf(at, "%02x", r.bytes[i]);
	}
}

static void begin_entry_spot(struct node *n)
{
	char id[ID_BYTES_MAX + 1], uuid[37];
	uuid4_text(n, uuid);
	int size = snprintf(id, sizeof(id), "%s-entry-%s", n->entry_prefix, uuid);
	struct span span = span_of(id, (size_t)size);
	struct entry *e = entry_create(n, spot_key_of(span));
	if (e == NULL)
		return; // the next step tries again
	n->entry_spot_begun = true;
	n->entry_spot_key = e->key;
	e->type = dp_type_by_name(n->dp, n->config.entry_type);
	e->kind = SPOT_KIND_ENTRY;
	e->id_bytes = (uint8_t)size;
	memcpy(e->id, id, (size_t)size);
	e->origin = dp_home_for(n->dp, e->key);
	e->close_reason = SPOTLANE_CLOSE_HOST_SHUTDOWN;
	e->reserved = true; // outside the Spot count of N1, within its type's
	e->reserved_ns = n->now_ns;
	node_type_count(n, e->type)->spots++;
	entry_event(n, e, ACTIVATION_EV_FRESH);
}

static void serve(struct node *n)
{
	node_say(n, "serving");
	dp_admit_set(n->dp, true, RESULT_OK);
	node_enter(n, NODE_SERVING);
}

void node_entry_spot_ready(struct node *n)
{
	if (n->state == NODE_PREPARING)
		serve(n);
}

void node_entry_spot_failed(struct node *n, struct spot_key key, struct result result)
{
	if (!n->entry_spot_begun || !spot_key_equal(key, n->entry_spot_key))
		return; // a former try that is still being cleaned up
	bool store = result.reason == REASON_STORE_UNREACHABLE || result.reason == REASON_LEASE_LOST;
	n->entry_spot_begun = false;
	n->entry_spot_next_ns = n->now_ns + 1000 * NS_PER_MS;
	node_say(n, "Entry Spot not made: %s/%s", result_kind_name(result.kind),
		result.reason == REASON_NONE ? "-" : result_reason_name(result.reason));
	if (!store && n->state == NODE_PREPARING)
		node_end_now(n, NODE_ERROR, NODE_EXIT_INTERNAL);
}

static void prepare(struct node *n)
{
	if (n->state != NODE_PREPARING || n->phase != LEASE_HELD || !lease_is_live(n))
		return;
	if (n->config.entry_type == NULL)
		serve(n);
	else if (!n->entry_spot_begun && n->now_ns >= n->entry_spot_next_ns)
		begin_entry_spot(n);
}

// ---- life ----
void node_start(struct node *n)
{
	node_say(n, "joining the store");
	lease_start(n);
}

void node_stop(struct node *n, uint32_t deadline_ms)
{
	if (n->drain.active || n->state == NODE_STOPPED || n->state == NODE_ERROR)
		return;
	node_say(n, "draining");
	drain_begin(n, SPOTLANE_CLOSE_HOST_SHUTDOWN, deadline_ms);
}

void node_stop_now(struct node *n)
{
	if (n->state == NODE_STOPPED || n->state == NODE_ERROR)
		return;
	if (!n->drain.active)
		drain_begin(n, SPOTLANE_CLOSE_HOST_SHUTDOWN, 0);
	n->drain.forced = true;
	n->drain.deadline_ns = 0; // also for the last word to the store
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_step(const struct node *n)
{
	bool over = n->state == NODE_STOPPED || n->state == NODE_ERROR;
	if (over)
		return n->now_ns + 1000 * NS_PER_MS;
	uint64_t next = n->now_ns + TICK_MS * NS_PER_MS;
	if (n->commands_queued > 0 || n->drain.active)
		next = n->now_ns + NS_PER_MS;
	next = earliest(next, lease_next(n));
	next = earliest(next, earliest(peers_next(n), fence_next(n)));
	next = earliest(next, sweep_next(n));
	next = earliest(next, earliest(n->operation_next_ns, remote_next(n)));
	if (n->lease_deadline_ns != 0 && !n->lease_lapsed)
		next = earliest(next, n->lease_deadline_ns);
	next = earliest(next, n->retry_next_ns);
	if (n->closings.first != NULL)
		next = earliest(next, n->closings.first->due_ns);
	return next > n->now_ns ? next : n->now_ns;
}

uint64_t node_step(struct node *n)
{
	n->now_ns = clock_boot_ns(n->clock);
	store_poll(n->store);
	bool over = n->state == NODE_STOPPED || n->state == NODE_ERROR;
	if (over)
		return next_step(n);
	dpq_flush(n);
	facts_take(n);
	lease_step(n);
	prepare(n);
	entry_timers(n);
	waiter_expire(n);
	entry_start_queued(n);
	peers_step(n);
	remote_step(n);
	fence_step(n);
	sweep_step(n);
	lease_step(n); // an activation that starts may want generations
	drain_step(n);
	watch_step(n);
	return next_step(n);
}

// ---- looking ----
struct dp_spot *node_find(struct node *n, struct spot_key key)
{
	return dp_spot_of_route(route_lookup(n->routes, key));
}

struct walk {
	void (*visit)(struct dp_spot *spot, void *arg);
	void *arg;
	uint32_t visited;
};

static void walk_one(struct spot_key key, route_word word, void *arg)
{
	struct walk *walk = arg;
	struct dp_spot *spot = dp_spot_of_route(word);
	(void)key;
	if (spot == NULL)
		return;
	walk->visit(spot, walk->arg);
	walk->visited++;
}

uint32_t node_walk(struct node *n, uint64_t *cursor, uint32_t max,
	void (*visit)(struct dp_spot *spot, void *arg), void *arg)
{
	struct walk walk = {visit, arg, 0};
	(void)route_walk(n->routes, cursor, max, walk_one, &walk);
	return walk.visited;
}

static uint64_t in_states(const struct node *n, enum activation_state from, enum activation_state to)
{
	uint64_t sum = 0;
	for (int s = (int)from; s <= (int)to; s++)
		sum += n->in_state[s];
	return sum;
}

void node_status(const struct node *n, struct node_status *out)
{
	struct node_health health;
	node_health(n, &health);
	*out = (struct node_status){.state = n->state,
		.exit_code = n->exit_code,
		.started_boot_ns = n->started_ns,
		.lease_generation = n->lease_generation.value,
		.lease_left_ns = n->lease_deadline_ns == 0
					 ? 0
					 : (int64_t)(n->lease_deadline_ns - clock_boot_ns(n->clock)),
		.lease_renewals = n->lease_renewals,
		.lease_failures = n->lease_failures,
		.clock_skew_to_store_ns = n->skew_ns,
		.activations_running = n->running,
		.activations_waiting = n->in_state[ACTIVATION_QUEUED],
		.resolves_running = in_states(n, ACTIVATION_READING, ACTIVATION_CLEANING),
		.closes_running =
			n->in_state[ACTIVATION_CLOSING] + n->in_state[ACTIVATION_RELEASING],
		.closes_stuck = n->in_state[ACTIVATION_STUCK],
		.activations_total = n->activations_total,
		.activation_failures = n->activation_failures,
		.closes_total = n->closes_total,
		.routes = route_count(n->routes),
		.route_bytes = route_bytes(n->routes),
		.rcu_pending = publish_pending(),
		.ready = health.failing == 0};
	memcpy(out->boot_id, n->boot.bytes, sizeof(out->boot_id));
	memcpy(out->spots_live, n->spots_live, sizeof(out->spots_live));
	memcpy(out->why, n->why, sizeof(out->why));
}
