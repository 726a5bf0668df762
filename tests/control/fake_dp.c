// SPDX-License-Identifier: BSD-3-Clause
#include "fake_dp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dp/remote.h"
#include "route/route.h"

struct dp_type {
	const char *name;
	enum spot_kind kind;
	uint32_t spots_max;
};

static const struct dp_type types[] = {{"tracker", SPOT_KIND_INSTANCE, 0},
	{"small", SPOT_KIND_INSTANCE, 2}, {"room", SPOT_KIND_USER, 0}, {"gate", SPOT_KIND_ENTRY, 0}};

struct dp_spot {
	CACHE_ALIGNED struct dp *dp;
	uint8_t area[DP_SPOT_CONTROL_BYTES];
	struct spot_key key;
	uint8_t id[ID_BYTES_MAX];
	size_t id_bytes;
	const struct dp_type *type;
	struct object_generation object_generation;
	struct authority_generation authority_generation;
	uint16_t home;
	bool constructed, opened, closed;
	struct dp_actor *members;
	uint64_t finished_ns;
};

enum { FACTS_MAX = 20000 };

struct dp {
	struct route_table *routes;
	uint32_t peer_count;
	struct dp_peer *first_peer;
	struct dp_lease lease;
	uint16_t workers;
	struct dp_fact *facts;
	uint32_t fact_first, fact_end;
	struct fake_record records[FAKE_RECORDS_MAX];
	uint32_t record_count;
	bool hold_factories, hold_closings;
	struct dp_spot *held_factories[1024], *held_closings[1024];
	uint32_t held_factory_count, held_closing_count;
	struct result factory_result;
	uint32_t busy, memory_failures;
	bool refuse_actors, hold_actors;
	struct dp_actor *held_actor;
	enum dp_actor_step held_step;
	bool admits;
	uint64_t factories;
	_Atomic uint64_t spots_alive; // freed on the reclaimer's thread
	struct spot_key running_key[DP_WORKERS_MAX];
	uint64_t running_since[DP_WORKERS_MAX];
	bool stopped[DP_WORKERS_MAX];
	uint64_t heartbeats;
	struct dp_spot *idle[1024];
	uint32_t idle_count, sweeps;
	const uint64_t *boot_ns;
	bool keep;
};

struct dp *fake_dp_create(uint16_t workers)
{
	struct dp *dp = aligned_alloc(64, (sizeof(*dp) + 63) / 64 * 64);
	assert_non_null(dp);
	memset(dp, 0, sizeof(*dp));
	dp->facts = calloc(FACTS_MAX, sizeof(dp->facts[0]));
	assert_non_null(dp->facts);
	dp->workers = workers;
	dp->factory_result = result_ok();
	return dp;
}

void fake_routes(struct dp *dp, struct route_table *routes)
{
	dp->routes = routes;
}

void fake_dp_destroy(struct dp *dp)
{
	assert_int_equal(fake_spots_alive(dp), 0);
	free(dp->facts);
	free(dp);
}

static struct dp_fact *fact_add(struct dp *dp, enum dp_fact_kind kind, uint16_t worker)
{
	assert_true(dp->fact_end < FACTS_MAX);
	struct dp_fact *fact = &dp->facts[dp->fact_end++];
	memset(fact, 0, sizeof(*fact));
	fact->kind = kind;
	fact->worker = worker;
	return fact;
}

void fake_resolve_key(struct dp *dp, uint16_t worker, struct spot_key key, const char *id,
	const char *intent_type)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_RESOLVE, worker);
	fact->key = key;
	fact->as.resolve.intent = intent_type != NULL;
	if (intent_type == NULL)
		return;
	fact->as.resolve.spot_type = fake_type(intent_type);
	fact->as.resolve.id_bytes = (uint8_t)strlen(id);
	memcpy(fact->as.resolve.id, id, strlen(id));
}

void fake_resolve(struct dp *dp, uint16_t worker, const char *id, const char *intent_type)
{
	fake_resolve_key(dp, worker, spot_key_of(span_of(id, strlen(id))), id, intent_type);
}

void fake_control(struct dp *dp, uint16_t worker, uint64_t token, uint16_t operation, const char *id,
	const char *type, uint64_t generation, uint64_t deadline_ns)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_CONTROL, worker);
	fact->key = spot_key_of(span_of(id, strlen(id)));
	fact->as.control.token = token;
	fact->as.control.operation = operation;
	if (type != NULL)
		fact->as.control.spot_type = fake_type(type);
	fact->as.control.object_generation.value = generation;
	fact->as.control.deadline_boot_ns = deadline_ns;
	fact->as.control.id_bytes = (uint8_t)strlen(id);
	memcpy(fact->as.control.id, id, strlen(id));
}

void fake_close_self(struct dp *dp, struct dp_spot *spot)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_CLOSE_SELF, spot->home);
	fact->key = spot->key;
	fact->as.close_self.spot = spot;
}

static void constructed(struct dp *dp, struct dp_spot *spot)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_CONSTRUCTED, spot->home);
	fact->key = spot->key;
	fact->as.constructed.spot = spot;
	fact->as.constructed.result = dp->factory_result;
	spot->constructed = dp->factory_result.kind == RESULT_OK;
}

static void closed(struct dp *dp, struct dp_spot *spot)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_CLOSED, spot->home);
	fact->key = spot->key;
	fact->as.closed.spot = spot;
	spot->closed = true;
}

void fake_hold_factories(struct dp *dp, bool hold)
{
	dp->hold_factories = hold;
	for (uint32_t i = 0; !hold && i < dp->held_factory_count; i++)
		constructed(dp, dp->held_factories[i]);
	if (!hold)
		dp->held_factory_count = 0;
}

void fake_hold_closings(struct dp *dp, bool hold)
{
	dp->hold_closings = hold;
	for (uint32_t i = 0; !hold && i < dp->held_closing_count; i++)
		closed(dp, dp->held_closings[i]);
	if (!hold)
		dp->held_closing_count = 0;
}

void fake_factory_result(struct dp *dp, struct result result)
{
	dp->factory_result = result;
}

void fake_busy(struct dp *dp, uint32_t commands)
{
	dp->busy = commands;
}

void fake_fail_memory(struct dp *dp, uint32_t spots)
{
	dp->memory_failures = spots;
}

void fake_turn_running(struct dp *dp, uint16_t worker, struct spot_key key, uint64_t since)
{
	dp->running_key[worker] = key;
	dp->running_since[worker] = since;
}

void fake_stop_worker(struct dp *dp, uint16_t worker)
{
	dp->stopped[worker] = true;
}

uint32_t fake_count(const struct dp *dp, enum fake_command command)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dp->record_count; i++)
		count += dp->records[i].command == command;
	return count;
}

const struct fake_record *fake_last(const struct dp *dp, enum fake_command command)
{
	for (uint32_t i = dp->record_count; i-- > 0;)
		if (dp->records[i].command == command)
			return &dp->records[i];
	fail_msg("no command of kind %d was given", (int)command);
	return NULL;
}

const struct fake_record *fake_record_at(const struct dp *dp, uint32_t index)
{
	return &dp->records[index];
}

uint32_t fake_records(const struct dp *dp)
{
	return dp->record_count;
}

void fake_forget(struct dp *dp)
{
	dp->record_count = 0;
}

uint64_t fake_factories(const struct dp *dp)
{
	return dp->factories;
}

uint64_t fake_spots_alive(const struct dp *dp)
{
	return atomic_load(&dp->spots_alive);
}

bool fake_admits(const struct dp *dp)
{
	return dp->admits;
}

struct type_key fake_type(const char *name)
{
	return type_key_of(name);
}

// ---- dp/port.h ----
static bool busy(struct dp *dp)
{
	if (dp->busy == 0)
		return false;
	dp->busy--;
	return true;
}

static struct fake_record *record(
	struct dp *dp, enum fake_command command, uint16_t worker, struct spot_key key)
{
	assert_true(dp->record_count < FAKE_RECORDS_MAX);
	assert_true(worker < dp->workers);
	struct fake_record *r = &dp->records[dp->record_count++];
	memset(r, 0, sizeof(*r));
	r->command = command;
	r->worker = worker;
	r->key = key;
	return r;
}

const struct dp_type *dp_type_by_key(const struct dp *dp, struct type_key key)
{
	(void)dp;
	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		if (type_key_of(types[i].name).value == key.value)
			return &types[i];
	return NULL;
}

const struct dp_type *dp_type_by_name(const struct dp *dp, const char *name)
{
	return dp_type_by_key(dp, type_key_of(name));
}

const char *dp_type_name(const struct dp_type *type)
{
	return type->name;
}

enum spot_kind dp_type_kind(const struct dp_type *type)
{
	return type->kind;
}

struct type_key dp_type_key(const struct dp_type *type)
{
	return type_key_of(type->name);
}

uint32_t dp_type_spots_max(const struct dp_type *type)
{
	return type->spots_max;
}

uint32_t dp_type_count(const struct dp *dp)
{
	(void)dp;
	return ARRAY_COUNT(types);
}

const struct dp_type *dp_type_at(const struct dp *dp, uint32_t index)
{
	(void)dp;
	return &types[index];
}

struct dp_lease *dp_lease(struct dp *dp)
{
	return &dp->lease;
}

void dp_admit_set(struct dp *dp, bool admit, enum result_kind refuse_with)
{
	(void)refuse_with;
	dp->admits = admit;
}

struct dp_spot *dp_spot_create(struct dp *dp, const struct dp_spot_spec *spec)
{
	if (dp->memory_failures > 0) {
		dp->memory_failures--;
		return NULL;
	}
	struct dp_spot *spot = aligned_alloc(64, (sizeof(*spot) + 63) / 64 * 64);
	assert_non_null(spot);
	memset(spot, 0, sizeof(*spot));
	spot->dp = dp;
	spot->key = spec->key;
	memcpy(spot->id, spec->id.data, spec->id.size);
	spot->id_bytes = spec->id.size;
	spot->type = spec->type;
	spot->object_generation = spec->object_generation;
	spot->authority_generation = spec->authority_generation;
	spot->home = spec->home_worker;
	atomic_fetch_add(&dp->spots_alive, 1);
	return spot;
}

void dp_spot_discard(struct dp_spot *spot)
{
	dp_spot_destroy(spot);
}

void dp_spot_destroy(struct dp_spot *spot)
{
	if (spot == NULL)
		return;
	atomic_fetch_sub(&spot->dp->spots_alive, 1);
	free(spot);
}

// ---- Actors ----
bool dp_spot_takes_actors(const struct dp_spot *spot)
{
	return spot->type->kind != SPOT_KIND_INSTANCE;
}

struct dp_actor *dp_actor_of_route(route_word word)
{
	return route_tag(word) == ROUTE_ACTOR ? route_pointer(word) : NULL;
}

struct dp_actor {
	CACHE_ALIGNED struct dp *dp;
	struct dp_spot *host;
	uint8_t area[DP_SPOT_CONTROL_BYTES];
	struct spot_key key;
	uint8_t id[ID_BYTES_MAX];
	size_t id_bytes;
};

struct dp_actor *dp_actor_create(struct dp *dp, const struct dp_actor_spec *spec)
{
	struct dp_actor *actor = aligned_alloc(64, (sizeof(*actor) + 63) / 64 * 64);
	assert_non_null(actor);
	memset(actor, 0, sizeof(*actor));
	actor->dp = dp;
	actor->host = spec->host;
	actor->key = spec->key;
	actor->id_bytes = spec->id.size;
	memcpy(actor->id, spec->id.data, spec->id.size);
	atomic_fetch_add(&dp->spots_alive, 1);
	return actor;
}

void dp_actor_destroy(struct dp_actor *actor)
{
	if (actor == NULL)
		return;
	atomic_fetch_sub(&actor->dp->spots_alive, 1);
	free(actor);
}

void dp_actor_discard(struct dp_actor *actor)
{
	dp_actor_destroy(actor);
}

route_word dp_actor_route(struct dp_actor *actor)
{
	return route_make(actor, ROUTE_ACTOR);
}

void *dp_actor_control_area(struct dp_actor *actor)
{
	return actor->area;
}

void dp_actor_view(const struct dp_actor *actor, struct dp_actor_view *out)
{
	*out = (struct dp_actor_view){.key = actor->key,
		.id = span_of(actor->id, actor->id_bytes),
		.host = actor->host};
}

struct dp_actor *dp_closed_member(struct dp_spot *spot, struct dp_actor *before)
{
	struct dp_actor *next = spot->members;
	(void)before;
	spot->members = NULL; // tests have one member at most where a host closes
	return next;
}

static enum dp_status actor_command(
	struct dp *dp, struct dp_actor *actor, enum fake_command command, enum dp_actor_step step)
{
	if (busy(dp))
		return DP_BUSY;
	record(dp, command, actor->host->home, actor->key);
	if (command == FAKE_ADMIT && dp->refuse_actors)
		step = DP_ACTOR_REFUSED;
	if (dp->hold_actors) {
		dp->held_actor = actor;
		dp->held_step = step;
		return DP_DONE;
	}
	fake_actor_told(dp, actor, step);
	return DP_DONE;
}

void fake_actor_told(struct dp *dp, struct dp_actor *actor, enum dp_actor_step step)
{
	struct dp_fact *fact = fact_add(dp, DP_FACT_ACTOR, actor->host->home);
	fact->key = actor->key;
	fact->as.actor.actor = actor;
	fact->as.actor.step = step;
	fact->as.actor.result = step == DP_ACTOR_REFUSED
		? result_refused(RESULT_REJECTED, REASON_DECLINED)
		: result_ok();
	if (step == DP_ACTOR_ADMITTED)
		actor->host->members = actor;
	if (step == DP_ACTOR_LEFT)
		actor->host->members = NULL;
}

void fake_refuse_actors(struct dp *dp, bool refuse)
{
	dp->refuse_actors = refuse;
}

void fake_hold_actors(struct dp *dp, bool hold)
{
	dp->hold_actors = hold;
	if (!hold && dp->held_actor != NULL)
		fake_actor_told(dp, dp->held_actor, dp->held_step);
	dp->held_actor = NULL;
}

void fake_change(struct dp *dp, uint64_t token, uint16_t operation, const char *actor,
	const char *spot, uint64_t deadline_ns)
{
	fake_control(dp, 0, token, operation, actor, NULL, 0, deadline_ns);
	struct dp_fact *fact = &dp->facts[dp->fact_end - 1];
	fact->key = actor_key_of(span_of(actor, strlen(actor)));
	fact->as.control.argument_bytes = (uint16_t)strlen(spot);
	memcpy(fact->as.control.argument, spot, strlen(spot));
}

enum dp_status dp_actor_admit(struct dp *dp, struct dp_actor *actor)
{
	return actor_command(dp, actor, FAKE_ADMIT, DP_ACTOR_ADMITTED);
}

enum dp_status dp_actor_enter(struct dp *dp, struct dp_actor *actor)
{
	return actor_command(dp, actor, FAKE_ENTER, DP_ACTOR_ENTERED);
}

enum dp_status dp_actor_leave(struct dp *dp, struct dp_actor *actor)
{
	return actor_command(dp, actor, FAKE_LEAVE, DP_ACTOR_LEFT);
}

uint16_t dp_home_for(const struct dp *dp, struct spot_key key)
{
	return (uint16_t)(key.hi % dp->workers);
}

void *dp_spot_control_area(struct dp_spot *spot)
{
	return spot->area;
}

route_word dp_spot_route(struct dp_spot *spot)
{
	return route_make(spot, ROUTE_LOCAL);
}

struct dp_spot *dp_spot_of_route(route_word word)
{
	return route_tag(word) == ROUTE_LOCAL ? route_pointer(word) : NULL;
}

void dp_spot_view(const struct dp_spot *spot, struct dp_spot_view *out)
{
	*out = (struct dp_spot_view){.key = spot->key,
		.id = span_of(spot->id, spot->id_bytes),
		.type = spot->type,
		.kind = spot->type->kind,
		.home_worker = spot->home,
		.opening = !spot->opened,
		.object_generation = spot->object_generation,
		.authority_generation = spot->authority_generation,
		.last_finished_boot_ns = spot->finished_ns};
}

enum dp_status dp_construct(struct dp *dp, struct dp_spot *spot, struct span argument)
{
	if (busy(dp))
		return DP_BUSY;
	assert_false(spot->constructed);
	struct fake_record *r = record(dp, FAKE_CONSTRUCT, spot->home, spot->key);
	r->body_bytes = argument.size < sizeof(r->body) ? argument.size : sizeof(r->body);
	if (r->body_bytes > 0)
		memcpy(r->body, argument.data, r->body_bytes);
	dp->factories++;
	if (dp->hold_factories)
		dp->held_factories[dp->held_factory_count++] = spot;
	else
		constructed(dp, spot);
	return DP_DONE;
}

enum dp_status dp_open(struct dp *dp, struct dp_spot *spot, uint16_t origin)
{
	if (busy(dp))
		return DP_BUSY;
	assert_true(spot->constructed && !spot->opened);
	if (dp->routes != NULL)
		assert_true(route_lookup(dp->routes, spot->key) == dp_spot_route(spot));
	record(dp, FAKE_OPEN, origin, spot->key);
	spot->opened = true;
	struct dp_fact *fact = fact_add(dp, DP_FACT_OPENED, spot->home);
	fact->key = spot->key;
	fact->as.opened.spot = spot;
	return DP_DONE;
}

enum dp_status dp_release(struct dp *dp, uint16_t worker, struct spot_key key)
{
	if (busy(dp))
		return DP_BUSY;
	record(dp, FAKE_RELEASE, worker, key);
	return DP_DONE;
}

enum dp_status dp_fail(struct dp *dp, uint16_t worker, struct spot_key key, enum dp_fail_scope scope,
	struct result result, const struct refusal *refusal)
{
	if (busy(dp))
		return DP_BUSY;
	struct fake_record *r = record(dp, FAKE_FAIL, worker, key);
	r->scope = scope;
	r->result = result;
	if (refusal != NULL)
		r->refusal = *refusal;
	return DP_DONE;
}

enum dp_status dp_close(
	struct dp *dp, struct dp_spot *spot, uint8_t reason, uint64_t deadline_boot_ns)
{
	(void)deadline_boot_ns;
	if (busy(dp))
		return DP_BUSY;
	assert_true(spot->constructed && !spot->closed);
	for (uint32_t i = 0; i < dp->idle_count; i++)
		if (dp->idle[i] == spot)
			dp->idle[i] = NULL;
	record(dp, FAKE_CLOSE, spot->home, spot->key)->reason = reason;
	if (dp->hold_closings)
		dp->held_closings[dp->held_closing_count++] = spot;
	else
		closed(dp, spot);
	return DP_DONE;
}

void fake_idle(struct dp *dp, struct dp_spot *spot, uint64_t finished_ns)
{
	spot->finished_ns = finished_ns;
	assert_true(dp->idle_count < ARRAY_COUNT(dp->idle));
	dp->idle[dp->idle_count++] = spot;
}

void fake_clock(struct dp *dp, const uint64_t *boot_ns)
{
	dp->boot_ns = boot_ns;
}

void fake_keep(struct dp *dp, bool keep)
{
	dp->keep = keep;
}

uint32_t fake_sweeps(const struct dp *dp)
{
	return dp->sweeps;
}

uint32_t dp_sweep(struct dp *dp, uint64_t *cursor, uint64_t idle_ns, struct dp_spot *out[DP_SWEEP])
{
	uint32_t count = 0, seen = 0;
	dp->sweeps++;
	for (; *cursor < dp->idle_count && seen < DP_SWEEP; (*cursor)++, seen++) {
		struct dp_spot *spot = dp->idle[*cursor];
		if (spot != NULL && spot->opened && spot->finished_ns + idle_ns <= *dp->boot_ns)
			out[count++] = spot;
	}
	if (*cursor >= dp->idle_count)
		*cursor = 0;
	return count;
}

enum dp_status dp_close_idle(
	struct dp *dp, struct dp_spot *spot, uint64_t idle_ns, uint64_t deadline_boot_ns)
{
	(void)deadline_boot_ns;
	if (busy(dp))
		return DP_BUSY;
	assert_true(spot->opened && !spot->closed && idle_ns > 0);
	record(dp, FAKE_CLOSE_IDLE, spot->home, spot->key);
	if (dp->keep) {
		struct dp_fact *fact = fact_add(dp, DP_FACT_KEPT, spot->home);
		fact->key = spot->key;
		fact->as.kept.spot = spot;
		return DP_DONE;
	}
	for (uint32_t i = 0; i < dp->idle_count; i++)
		if (dp->idle[i] == spot)
			dp->idle[i] = NULL;
	if (dp->hold_closings)
		dp->held_closings[dp->held_closing_count++] = spot;
	else
		closed(dp, spot);
	return DP_DONE;
}

enum dp_status dp_control_reply(struct dp *dp, uint16_t worker, uint64_t token, struct result result,
	const struct refusal *refusal, struct span body)
{
	if (busy(dp))
		return DP_BUSY;
	struct fake_record *r = record(dp, FAKE_REPLY, worker, (struct spot_key){0, 0});
	r->token = token;
	r->result = result;
	if (refusal != NULL)
		r->refusal = *refusal;
	r->body_bytes = body.size < sizeof(r->body) ? body.size : sizeof(r->body);
	if (r->body_bytes > 0)
		memcpy(r->body, body.data, r->body_bytes);
	return DP_DONE;
}

uint32_t dp_facts(struct dp *dp, struct dp_fact *out, uint32_t n)
{
	uint32_t count = 0;
	while (count < n && dp->fact_first < dp->fact_end)
		out[count++] = dp->facts[dp->fact_first++];
	if (dp->fact_first == dp->fact_end)
		dp->fact_first = dp->fact_end = 0;
	return count;
}

uint64_t dp_worker_heartbeat(const struct dp *dp, uint16_t worker)
{
	return dp->stopped[worker] ? 1 : ++((struct dp *)dp)->heartbeats + 1;
}

bool dp_worker_running(
	const struct dp *dp, uint16_t worker, struct spot_key *out_key, uint64_t *out_since_boot_ns)
{
	*out_key = dp->running_key[worker];
	*out_since_boot_ns = dp->running_since[worker];
	return dp->running_since[worker] != 0;
}

enum dp_status dp_peers_set(struct dp *dp, struct dp_peer *const *peers, uint32_t count)
{
	dp->peer_count = count;
	dp->first_peer = count > 0 ? peers[0] : NULL;
	return DP_DONE;
}
