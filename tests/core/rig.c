// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t now(struct clock *c)
{
	return __atomic_load_n(&((struct rig_clock *)(void *)c)->boot_ns, __ATOMIC_RELAXED);
}

struct rig_clock rig_clock = {{now, now, now, 1000000000u}, 1000000000000u};

void rig_pass(uint64_t ns)
{
	__atomic_fetch_add(&rig_clock.boot_ns, ns, __ATOMIC_RELAXED);
}

int rig_main_begin(void)
{
	publish_start();
	return 0;
}

void rig_main_end(void)
{
	publish_barrier();
	publish_stop();
}

struct span rig_id(const char *text)
{
	return span_of(text, strlen(text));
}

static struct dp_config default_config(struct rig *rig, uint16_t workers)
{
	struct dp_config c = {
		.workers = workers,
		.idle = DP_IDLE_ADAPTIVE,
		.accounting = LEDGER_MEASURED,
		.application = {64u << 20, 1024},
		.lifecycle = {4u << 20, 128},
		.process_mark_bytes = 256u << 20,
		.parked_messages_max = 65536,
		.resolves_in_flight_max = 4096,
		.message_bytes_max = 16u << 20,
		.peer_reassembly_bytes_max = 32u << 20,
		.reassembly_expiry_ms = 500,
		.sessions_max = 64,
		.held_replies_bytes = 256 << 10,
		.turn_budget_us = 10000,
		.default_budget_ms = 5000,
		.offload_threads = 1,
		.offload_queue_max = 16,
		.insecure = true,
		.node = {0x1234},
		.cookie_key = "0123456789abcde",
		.clock = &rig_clock.clock,
		.routes = rig->routes,
	};
	return c;
}

static void node_address(const struct rig *rig, uint8_t ip[16])
{
	const uint8_t v4[4] = {10, 0, 0, rig->second ? 101 : 1};
	peer_ip_from_v4(ip, v4);
}

static void open_queues(struct rig *rig, uint32_t payload_bytes_max)
{
	for (uint16_t i = 0; i < rig->workers; i++) {
		struct fabric_loop_endpoint e = {.port = NODE_PORT, .worker = i, .frames = rig->frames,
			.payload_bytes_max = payload_bytes_max};
		node_address(rig, e.ip);
		rig->queues[i] = fabric_loop_open(rig->net, &e);
		assert_non_null(rig->queues[i]);
		assert_true(dp_attach_queue(rig->dp, i, rig->queues[i]));
	}
}

static void beside(struct rig *a, struct rig *b)
{
	a->beside = b;
	b->beside = a;
	for (uint16_t i = 0; i < a->workers; i++)
		for (uint16_t k = 0; k < b->workers; k++)
			fabric_loop_wire(a->queues[i], b->queues[k]);
}

struct rig *rig_start(const struct rig_config *config)
{
	static const uint8_t key[16] = "routes";
	const char *why = NULL;
	struct rig *rig = calloc(1, sizeof(*rig));
	memset(&rig_log, 0, sizeof(rig_log));
	rig->workers = config->workers;
	rig->frames = config->frames != 0 ? config->frames : RIG_FRAMES;
	rig->routes = route_table_create(key, 1024);
	rig->second = config->beside != NULL;
	rig->net = rig->second ? config->beside->net : fabric_loop_create();
	struct dp_config c = default_config(rig, config->workers);
	if (rig->second) {
		c.node.value = 0x5678;
		memcpy(c.cookie_key, "another boot key", 16);
	}
	if (config->adjust != NULL)
		config->adjust(&c);
	rig->dp = dp_create(&c, &why);
	if (rig->dp == NULL)
		fail_msg("dp_create: %s", why);
	assert_int_equal(dp_register_module(rig->dp, &rig_module, NULL, &why), DP_DONE);
	dp_lease(rig->dp)->deadline_boot_ns = UINT64_MAX;
	dp_lease(rig->dp)->deadline_ticks = UINT64_MAX;
	dp_lease(rig->dp)->generation = 7;
	dp_admit_set(rig->dp, true, RESULT_OK);
	open_queues(rig, config->payload_bytes_max);
	if (rig->second)
		beside(config->beside, rig);
	return rig;
}

struct rig *rig_start_plain(uint16_t workers)
{
	struct rig_config config = {.workers = workers};
	return rig_start(&config);
}

bool rig_step(struct rig *rig, uint16_t worker)
{
	return dp_worker_turn(rig->dp, worker);
}

void rig_settle(struct rig *rig)
{
	for (int quiet = 0, turns = 0; quiet < 3; turns++) {
		bool any = false;
		for (uint16_t i = 0; i < rig->workers; i++)
			any |= rig_step(rig, i);
		any |= rig_control(rig);
		for (uint16_t i = 0; rig->beside != NULL && i < rig->beside->workers; i++)
			any |= rig_step(rig->beside, i);
		any |= rig->beside != NULL && rig_control(rig->beside);
		quiet = any ? 0 : quiet + 1;
		if (turns > 200000)
			fail_msg("never settles");
	}
}

// ---- control ----
static struct dp_spot *find_key(struct rig *rig, struct spot_key key)
{
	return dp_spot_of_route(route_lookup(rig->routes, key));
}

struct dp_spot *rig_find(struct rig *rig, const char *id)
{
	return find_key(rig, spot_key_of(rig_id(id)));
}

static int pending_of(struct rig *rig, struct spot_key key)
{
	for (int i = 0; i < (int)ARRAY_COUNT(rig->pending); i++)
		if (rig->pending[i].used && spot_key_equal(rig->pending[i].key, key))
			return i;
	return -1;
}

static struct dp_spot *make(struct rig *rig, struct spot_key key, struct span id,
	const struct dp_type *type, uint16_t home)
{
	struct dp_spot_spec spec = {.key = key, .id = id, .type = type, .home_worker = home,
		.object_generation = {++rig->generations}, .authority_generation = {1}};
	struct dp_spot *spot = dp_spot_create(rig->dp, &spec);
	assert_non_null(spot);
	rig->spots[rig->spot_count++] = spot;
	return spot;
}

static void forget(struct rig *rig, struct dp_spot *spot)
{
	for (uint32_t i = 0; i < rig->spot_count; i++)
		if (rig->spots[i] == spot)
			rig->spots[i] = rig->spots[--rig->spot_count];
	dp_spot_destroy(spot);
}

static void on_resolve(struct rig *rig, const struct dp_fact *f)
{
	int p = pending_of(rig, f->key);
	struct dp_spot *spot = find_key(rig, f->key);
	if (p >= 0) { // under activation, published or not
		rig->pending[p].waiters |= 1u << f->worker;
		return;
	}
	struct dp_remote *remote = dp_remote_of_route(route_lookup(rig->routes, f->key));
	if (spot != NULL || dp_actor_of_route(route_lookup(rig->routes, f->key)) != NULL ||
		(remote != NULL && dp_remote_usable(remote, rig_clock.boot_ns))) {
		assert_int_equal(dp_release(rig->dp, f->worker, f->key), DP_DONE);
		return;
	}
	const struct dp_type *type = dp_type_by_key(rig->dp, f->as.resolve.spot_type);
	if (!f->as.resolve.intent || type == NULL) {
		assert_int_equal(dp_fail(rig->dp, f->worker, f->key,
					 f->as.resolve.intent ? DP_FAIL_INTENT : DP_FAIL_ORDINARY,
					 result_refused(RESULT_NOT_FOUND, REASON_NONE), NULL),
			DP_DONE);
		return;
	}
	for (p = 0; rig->pending[p].used; p++)
		;
	rig->pending[p].used = true;
	rig->pending[p].key = f->key;
	rig->pending[p].origin = f->worker;
	rig->pending[p].waiters = 1u << f->worker;
	spot = make(rig, f->key, span_of(f->as.resolve.id, f->as.resolve.id_bytes), type,
		dp_home_for(rig->dp, f->key));
	assert_int_equal(dp_construct(rig->dp, spot, span_of(NULL, 0)), DP_DONE);
}

static void on_constructed(struct rig *rig, const struct dp_fact *f)
{
	struct dp_spot *spot = f->as.constructed.spot;
	int p = pending_of(rig, f->key);
	if (f->as.constructed.result.kind != RESULT_OK) {
		for (uint16_t w = 0; p >= 0 && w < rig->workers; w++)
			if (rig->pending[p].waiters >> w & 1)
				assert_int_equal(dp_fail(rig->dp, w, f->key, DP_FAIL_ALL,
							 f->as.constructed.result, NULL),
					DP_DONE);
		if (p >= 0)
			rig->pending[p].used = false;
		forget(rig, spot);
		return;
	}
	assert_int_equal(route_publish(rig->routes, f->key, dp_spot_route(spot)), ROUTE_WRITTEN);
	assert_int_equal(
		dp_open(rig->dp, spot, p >= 0 ? rig->pending[p].origin : spot->home_worker), DP_DONE);
}

static void on_opened(struct rig *rig, const struct dp_fact *f)
{
	int p = pending_of(rig, f->key);
	if (p < 0)
		return;
	for (uint16_t w = 0; w < rig->workers; w++)
		if (rig->pending[p].waiters >> w & 1)
			assert_int_equal(dp_release(rig->dp, w, f->key), DP_DONE);
	rig->pending[p].used = false;
}

static void on_fact(struct rig *rig, const struct dp_fact *f)
{
	switch (f->kind) {
	case DP_FACT_RESOLVE:
		on_resolve(rig, f);
		return;
	case DP_FACT_CONSTRUCTED:
		on_constructed(rig, f);
		return;
	case DP_FACT_OPENED:
		on_opened(rig, f);
		return;
	case DP_FACT_CLOSED:
		rig_forget_members(rig, f->as.closed.spot);
		route_retire(rig->routes, f->key);
		forget(rig, f->as.closed.spot);
		return;
	case DP_FACT_CLOSE_SELF:
		assert_int_equal(dp_close(rig->dp, f->as.close_self.spot, SPOTLANE_CLOSE_EXPLICIT,
					 rig_clock.boot_ns + 1000000000),
			DP_DONE);
		return;
	case DP_FACT_CONTROL:
		assert_int_equal(dp_control_reply(rig->dp, f->worker, f->as.control.token,
					 result_ok(), NULL, span_of("done", 4)),
			DP_DONE);
		return;
	case DP_FACT_ACTOR:
	case DP_FACT_OVERRUN:
	case DP_FACT_KEPT:
		return;
	}
}

bool rig_control(struct rig *rig)
{
	struct dp_fact facts[16];
	uint32_t n = dp_facts(rig->dp, facts, ARRAY_COUNT(facts));
	for (uint32_t i = 0; i < n; i++) {
		if (rig->fact_count < RIG_FACTS_MAX)
			rig->facts[rig->fact_count++] = facts[i];
		if (!rig->manual)
			on_fact(rig, &facts[i]);
	}
	return n > 0;
}

struct dp_spot *rig_spot(struct rig *rig, const char *id, const char *type, uint16_t home)
{
	const struct dp_type *t = dp_type_by_name(rig->dp, type);
	assert_non_null(t);
	bool manual = rig->manual;
	rig->manual = false;
	struct dp_spot *spot = make(rig, spot_key_of(rig_id(id)), rig_id(id), t, home);
	assert_int_equal(dp_construct(rig->dp, spot, span_of(NULL, 0)), DP_DONE);
	rig_settle(rig);
	rig->manual = manual;
	return spot;
}

void rig_close(struct rig *rig, struct dp_spot *spot, uint8_t reason)
{
	assert_int_equal(
		dp_close(rig->dp, spot, reason, rig_clock.boot_ns + 1000000000), DP_DONE);
	rig_settle(rig);
}

uint64_t rig_counter(struct rig *rig, size_t offset)
{
	uint64_t sum = 0;
	for (uint16_t i = 0; i < rig->workers; i++) {
		struct dp_counters c;
		uint64_t value;
		dp_counters_read(rig->dp, i, &c);
		memcpy(&value, (const uint8_t *)&c + offset, sizeof(value));
		sum += value;
	}
	return sum;
}

void rig_stop(struct rig *rig)
{
	struct dp_audit audit;
	rig->manual = false;
	rig_settle(rig);
	assert_int_equal(dp_audit_begin(rig->dp), DP_DONE);
	while (!dp_audit_poll(rig->dp, &audit))
		for (uint16_t i = 0; i < rig->workers; i++)
			rig_step(rig, i);
	assert_true(audit.equal);
	for (uint16_t i = 0; i < rig->workers; i++) // back from the audit
		rig_step(rig, i);
	while (rig->spot_count > 0) {
		uint32_t before = rig->spot_count;
		rig_close(rig, rig->spots[0], SPOTLANE_CLOSE_HOST_SHUTDOWN);
		if (rig->spot_count == before)
			fail_msg("a Spot does not close");
	}
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	dp_destroy(rig->dp);
	for (uint16_t i = 0; i < rig->workers; i++)
		assert_int_equal(fabric_loop_waiting(rig->queues[i]) +
					 fabric_loop_free_buffers(rig->queues[i]),
			rig->frames);
	if (rig->beside != NULL)
		rig->beside->beside = NULL;
	if (!rig->second)
		fabric_loop_destroy(rig->net);
	route_table_destroy(rig->routes);
	free(rig);
}
