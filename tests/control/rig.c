// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"

static uint64_t clock_boot(struct clock *self)
{
	return container_of(self, struct rig_clock, base)->boot_ns;
}

static uint64_t clock_wall(struct clock *self)
{
	struct rig_clock *c = container_of(self, struct rig_clock, base);
	return c->boot_ns + c->wall_offset_ns;
}

static const struct node_config config_default = {.node_id = "n1",
	.entry_prefix = "n1",
	.entry_type = "gate",
	.lease_ttl_ms = 15000,
	.lease_renew_ms = 5000,
	.lease_timeout_ms = 3000,
	.lease_margin_ms = 5000,
	.clock_rate_error_percent = 1,
	.activations_max = 128,
	.activations_waiting_max = 16384,
	.resolves_max = 4096,
	.closing_limit_ms = 5000,
	.drain_deadline_ms = 30000,
	.sweep_interval_ms = 10,
	.rcu_pending_max = 100000,
	.workers = 2,
	.host_id = "host-a",
	.address = "10.0.0.1:7000",
	.node_lock_held = true};

static void new_process(struct rig *r)
{
	static const uint8_t hash_key[16] = {1, 2, 3};
	r->dp = fake_dp_create(2);
	fake_clock(r->dp, &r->clock.boot_ns);
	r->routes = route_table_create(hash_key, 1024);
	assert_non_null(r->routes);
	fake_routes(r->dp, r->routes);
}

struct rig *rig_create(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->clock = (struct rig_clock){{clock_boot, clock_boot, clock_wall, 1000000000u}, 1000 * SECOND,
		5000 * SECOND};
	rng_seed(&r->rng, 11);
	r->store = memory_store_create(&r->clock.base, 3);
	r->config = config_default;
	new_process(r);
	return r;
}

static void on_event(void *arg, const struct node_event *e)
{
	struct rig *r = arg;
	r->events[e->kind]++;
	r->last_event = *e;
	r->last_event_of[e->kind] = e->value;
	memcpy(r->last_text_of[e->kind], e->text, sizeof(e->text));
	assert_true(e->text[0] != 0); // every event says what happened
}

void rig_begin(struct rig *r)
{
	const char *why = NULL;
	r->node = node_create(&r->config, &r->clock.base, &r->rng, r->store, r->dp, r->routes, &why);
	if (r->node == NULL)
		fail_msg("%s", why);
	node_set_event_sink(r->node, on_event, r);
	node_start(r->node);
}

void rig_start(struct rig *r)
{
	rig_begin(r);
	rig_until(r, NODE_SERVING);
	fake_forget(r->dp);
}

struct rig *rig_serving(void)
{
	struct rig *r = rig_create();
	rig_start(r);
	return r;
}

void rig_crash(struct rig *r)
{
	memory_store_crash(r->store);
	node_halt(r->node);
	node_destroy(r->node);
	r->node = NULL;
	publish_barrier();
	route_table_destroy(r->routes);
	fake_dp_destroy(r->dp);
}

void rig_restart(struct rig *r)
{
	new_process(r);
}

void rig_destroy(struct rig *r)
{
	if (r->node != NULL)
		rig_crash(r);
	store_destroy(r->store);
	free(r);
}

void rig_peer_write(struct rig *r)
{
	memory_store_node_put(r->store, &r->peer);
}

void rig_peer(struct rig *r, const char *node_id, uint8_t boot, uint64_t lease_generation)
{
	r->peer = (struct store_node_row){.exists = true, .ttl_ms = 15000, .beat = 1};
	strcpy(r->peer.node_id, node_id);
	strcpy(r->peer.host_id, "host-b");
	strcpy(r->peer.address, "10.0.0.2:7000");
	r->peer.boot.bytes[0] = boot;
	r->peer.lease_generation.value = lease_generation;
	r->peer_beats = true;
	r->peer_next_ns = r->clock.boot_ns + SECOND;
	rig_peer_write(r);
}

void rig_peer_stops(struct rig *r)
{
	r->peer_beats = false;
}

void rig_step(struct rig *r, uint64_t ns)
{
	r->clock.boot_ns += ns;
	if (r->peer_beats && r->clock.boot_ns >= r->peer_next_ns) {
		r->peer.beat++;
		r->peer_next_ns += SECOND;
		rig_peer_write(r);
	}
	(void)node_step(r->node);
}

void rig_run(struct rig *r, uint64_t ns)
{
	for (uint64_t done = 0; done < ns; done += MS)
		rig_step(r, MS);
}

struct node_status rig_status(struct rig *r)
{
	struct node_status status;
	node_status(r->node, &status);
	return status;
}

void rig_until(struct rig *r, enum node_state state)
{
	for (int i = 0; i < 120000; i++) {
		if (rig_status(r).state == state)
			return;
		rig_step(r, MS);
	}
	fail_msg("never %s: %s (%s)", node_state_name(state), rig_status(r).why,
		node_state_name(rig_status(r).state));
}

struct span rig_id(const char *id)
{
	return span_of(id, strlen(id));
}

struct store_spot_row rig_row(struct rig *r, const char *id)
{
	struct store_spot_row row = {0};
	if (!memory_store_spot(r->store, spot_key_of(rig_id(id)), &row))
		row.exists = false;
	return row;
}

struct dp_spot *rig_spot(struct rig *r, const char *id)
{
	return node_find(r->node, spot_key_of(rig_id(id)));
}

static void answered(void *arg, struct result result, const struct refusal *refusal,
	struct object_generation generation, bool changed, struct spot_key key)
{
	struct rig_answer *answer = arg;
	(void)key;
	answer->count++;
	answer->result = result;
	if (refusal != NULL)
		answer->refusal = *refusal;
	answer->generation = generation;
	answer->changed = changed;
}

void rig_create_spot(
	struct rig *r, const char *id, const char *type, bool existing_ok, struct rig_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	node_create_spot(r->node, rig_id(id), fake_type(type), span_of("arg", 3), existing_ok,
		r->clock.boot_ns + 10 * SECOND, answered, answer);
}

void rig_close_spot(struct rig *r, const char *id, uint64_t generation, struct rig_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	node_close_spot(r->node, rig_id(id), (struct object_generation){generation},
		r->clock.boot_ns + 10 * SECOND, answered, answer);
}
