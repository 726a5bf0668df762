// SPDX-License-Identifier: BSD-3-Clause
// Routes to Spots of other nodes, control's half: what publishes one, what drops it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dp/remote.h"
#include "rig.h"
#include "wire/layout.h"

static int set_up(void **state)
{
	struct rig *r = rig_serving();
	rig_peer(r, "other", 9, 1);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	return 0;
}

static void put_ready(struct rig *r, const char *id, uint64_t object_generation)
{
	struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE,
		.type_name = "tracker",
		.state = STORE_SPOT_READY,
		.object_generation = {object_generation},
		.authority_generation = {3},
		.owner_lease = {1}};
	row.id_bytes = (uint8_t)strlen(id);
	memcpy(row.id, id, row.id_bytes);
	row.key = spot_key_of(rig_id(id));
	strcpy(row.owner_node, "other");
	row.owner_boot.bytes[0] = 9;
	memory_store_spot_put(r->store, &row);
}

static struct dp_remote *remote_of(struct rig *r, const char *id)
{
	return dp_remote_of_route(route_lookup(r->routes, spot_key_of(rig_id(id))));
}

// An ordinary message asks; returns how many were let go by now.
static uint32_t ask(struct rig *r, const char *id)
{
	fake_resolve(r->dp, 0, id, NULL);
	rig_run(r, 6 * SECOND); // past a view of the nodes
	return fake_count(r->dp, FAKE_RELEASE);
}

static void R1__a_ready_row_of_a_live_node_becomes_a_route(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	assert_int_equal(ask(r, "truck-1"), 1);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	struct dp_remote *remote = remote_of(r, "truck-1");
	assert_non_null(remote);
	assert_int_equal(remote->owner->node.value, node_key_of(rig_id("other")).value);
	assert_int_equal(remote->owner->lease.value, 1);
	assert_int_equal(remote->owner->port, 7000);
	assert_int_equal(remote->owner->ip[12], 10);
	assert_int_equal(remote->owner->ip[15], 2);
	assert_int_equal(remote->object_generation.value, 77);
	assert_int_equal(remote->authority_generation.value, 3);
	assert_true(dp_remote_usable(remote, r->clock.boot_ns));
}

static void A2_A1__a_message_that_comes_before_the_view_waits_for_it(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	fake_resolve(r->dp, 0, "truck-1", NULL);
	rig_run(r, 20 * MS);
	fake_resolve(r->dp, 1, "truck-1", NULL); // joins who waits: not NotFound, the Spot is there
	rig_run(r, 6 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 2);
}

static void R1__a_route_ends_with_its_age(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	assert_non_null(remote_of(r, "truck-1"));
	rig_run(r, 16 * SECOND);
	assert_null(remote_of(r, "truck-1"));
}

// R1: its beat moved within its term, or the route is not usable; O4: that is no evidence yet.
static void R1_O4__a_beat_that_stands_still_ends_the_use_of_a_route(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	rig_peer_stops(r);
	rig_run(r, 9 * SECOND);
	put_ready(r, "truck-2", 78);
	ask(r, "truck-2");
	struct dp_remote *remote = remote_of(r, "truck-2");
	assert_non_null(remote);
	uint32_t let_go = fake_count(r->dp, FAKE_RELEASE);
	while (dp_remote_usable(remote, r->clock.boot_ns))
		rig_step(r, 10 * MS);
	// Live as far as anybody knows: who asks waits, and hears Unavailable with the evidence.
	fake_resolve(r->dp, 0, "truck-2", NULL);
	rig_run(r, 50 * MS);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), let_go);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	rig_run(r, 8 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), let_go);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->result.kind, RESULT_UNAVAILABLE);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->result.reason, REASON_OWNER_UNUSABLE);
}

static void R2__the_end_of_the_owners_run_drops_its_routes(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	assert_non_null(remote_of(r, "truck-1"));
	r->peer.fenced = true;
	rig_peer_write(r);
	rig_run(r, 6 * SECOND);
	assert_null(remote_of(r, "truck-1"));
}

static void R2_T5__what_is_read_anew_replaces_the_route(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	atomic_store(&remote_of(r, "truck-1")->stale, 1); // its owner said StaleRoute
	put_ready(r, "truck-1", 99);
	assert_int_equal(ask(r, "truck-1"), 2);
	assert_int_equal(remote_of(r, "truck-1")->object_generation.value, 99);
	assert_int_equal(atomic_load(&remote_of(r, "truck-1")->stale), 0);
}

static void R2_O5__a_store_that_comes_back_drops_every_route(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	assert_non_null(remote_of(r, "truck-1"));
	memory_store_plant(r->store, STORE_NODE_LIST, MEMORY_FAULT_BEFORE, 1);
	rig_run(r, 7 * SECOND);
	assert_null(remote_of(r, "truck-1"));
}

// A failed read begins the watch anew, since it is evidence against an owner; it is none for him.
static void R1_O6__a_failed_read_lengthens_the_use_of_no_route(void **state)
{
	struct rig *r = *state;
	put_ready(r, "truck-1", 77);
	ask(r, "truck-1");
	rig_peer_stops(r);
	rig_run(r, 6 * SECOND);
	const struct dp_peer *owner = remote_of(r, "truck-1")->owner;
	uint64_t until = atomic_load(&owner->usable_until_boot_ns);
	memory_store_plant(r->store, STORE_NODE_LIST, MEMORY_FAULT_BEFORE, 1);
	rig_run(r, 7 * SECOND);
	assert_null(remote_of(r, "truck-1")); // it was dropped with the store's return (R2)
	put_ready(r, "truck-2", 78);
	fake_resolve(r->dp, 0, "truck-2", NULL);
	rig_run(r, 50 * MS);
	struct dp_remote *remote = remote_of(r, "truck-2");
	if (remote != NULL)
		assert_int_equal(atomic_load(&remote->owner->usable_until_boot_ns), until);
	else
		assert_true(r->clock.boot_ns >= until);
}

static void A3__an_owner_without_an_address_is_unusable(void **state)
{
	static const char *const nowhere[] = {"", "0.0.0.0:7000", "10.0.0.2", "10.0.0.2:0", "host:7000",
		"[::1:7000", "[::]:7000", "10.0.0.2:70000"};
	struct rig *r = *state;
	for (size_t i = 0; i < ARRAY_COUNT(nowhere); i++) {
		char id[16];
		snprintf(id, sizeof(id), "truck-%zu", i);
		rig_peer(r, "other", 9, 1);
		r->peer.boot.bytes[0] = (uint8_t)(20 + i);
		r->peer.lease_generation.value = 2 + i;
		strcpy(r->peer.address, nowhere[i]);
		rig_peer_write(r);
		struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE, .type_name = "tracker",
			.state = STORE_SPOT_READY, .object_generation = {77},
			.authority_generation = {1}, .owner_lease = {2 + i}};
		row.id_bytes = (uint8_t)strlen(id);
		memcpy(row.id, id, row.id_bytes);
		row.key = spot_key_of(rig_id(id));
		strcpy(row.owner_node, "other");
		row.owner_boot.bytes[0] = (uint8_t)(20 + i);
		memory_store_spot_put(r->store, &row);
		assert_int_equal(ask(r, id), 0);
		assert_int_equal(fake_count(r->dp, FAKE_FAIL), i + 1);
		assert_int_equal(fake_last(r->dp, FAKE_FAIL)->result.reason, REASON_OWNER_UNUSABLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(R1__a_ready_row_of_a_live_node_becomes_a_route),
		T(A2_A1__a_message_that_comes_before_the_view_waits_for_it),
		T(R1__a_route_ends_with_its_age),
		T(R1_O4__a_beat_that_stands_still_ends_the_use_of_a_route),
		T(R2__the_end_of_the_owners_run_drops_its_routes),
		T(R2_T5__what_is_read_anew_replaces_the_route),
		T(R2_O5__a_store_that_comes_back_drops_every_route),
		T(R1_O6__a_failed_read_lengthens_the_use_of_no_route),
		T(A3__an_owner_without_an_address_is_unusable),
#undef T
	};
	return cmocka_run_group_tests_name("node remote", tests, NULL, NULL);
}
