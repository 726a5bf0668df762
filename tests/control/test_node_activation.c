// SPDX-License-Identifier: BSD-3-Clause
// Activation: who builds, who waits, who is refused, and what a failed attempt leaves behind.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "rig.h"
#include "wire/layout.h"

static int set_up(void **state)
{
	*state = rig_serving();
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	return 0;
}

static void settle(struct rig *r)
{
	rig_run(r, 50 * MS);
}

static void A1_I5_Z2__an_ordinary_message_builds_nothing(void **state)
{
	struct rig *r = *state;
	uint64_t writes = memory_store_writes(r->store), factories = fake_factories(r->dp);
	fake_resolve(r->dp, 1, "truck-1", NULL);
	settle(r);
	const struct fake_record *end = fake_last(r->dp, FAKE_FAIL);
	assert_result(end->result, NOT_FOUND, NONE);
	assert_int_equal(end->worker, 1);
	assert_int_equal(end->scope, DP_FAIL_ORDINARY);
	assert_int_equal(memory_store_writes(r->store), writes);
	assert_int_equal(fake_factories(r->dp), factories);
	fake_control(r->dp, 0, 7, WIRE_CONTROL_LOOKUP, "truck-1", NULL, 0, r->clock.boot_ns + SECOND);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_REPLY)->result, NOT_FOUND, NONE);
	assert_int_equal(memory_store_writes(r->store), writes);
}

static void A1_Z2__an_intent_builds_once_and_is_handled(void **state)
{
	struct rig *r = *state;
	fake_resolve(r->dp, 1, "truck-1", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_int_equal(fake_last(r->dp, FAKE_OPEN)->worker, 1); // where its first message waits
	assert_int_equal(fake_last(r->dp, FAKE_RELEASE)->worker, 1);
	struct store_spot_row row = rig_row(r, "truck-1");
	assert_true(row.exists);
	assert_int_equal(row.state, STORE_SPOT_READY);
	assert_string_equal(row.type_name, "tracker");
	assert_non_null(rig_spot(r, "truck-1"));
	assert_int_equal(rig_status(r).spots_live[SPOT_KIND_INSTANCE], 1);
}

// The store has Ready, then the route is there, then the lane is opened; nothing is released before.
static void A7__publication_order(void **state)
{
	struct rig *r = *state;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	bool opened = false;
	for (int i = 0; i < 50; i++) {
		rig_step(r, MS);
		bool ready = rig_row(r, "truck-1").exists &&
			     rig_row(r, "truck-1").state == STORE_SPOT_READY;
		bool routed = rig_spot(r, "truck-1") != NULL;
		opened = fake_count(r->dp, FAKE_OPEN) == 1;
		assert_true(!routed || ready);
		assert_true(!opened || routed);
		if (fake_count(r->dp, FAKE_RELEASE) > 0)
			assert_true(opened);
	}
	assert_true(opened);
	for (uint32_t i = 0, order = 0; i < fake_records(r->dp); i++) {
		assert_true(fake_record_at(r->dp, i)->command >= order);
		order = fake_record_at(r->dp, i)->command; // construct, open, release
	}
}

static void A5_I4_Z3__many_creators_one_factory(void **state)
{
	struct rig *r = *state;
	struct rig_answer create, second, get;
	fake_hold_factories(r->dp, true);
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_create_spot(r, "room-1", "room", false, &second);
	rig_create_spot(r, "room-1", "room", true, &get);
	settle(r);
	fake_control(r->dp, 0, 9, WIRE_CONTROL_GET_OR_CREATE, "room-1", "room", 0,
		r->clock.boot_ns + SECOND);
	settle(r);
	assert_int_equal(create.count + second.count + get.count, 0);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_memory_equal(fake_last(r->dp, FAKE_CONSTRUCT)->body, "arg", 3);
	assert_result(create.result, OK, NONE);
	assert_true(create.changed);
	assert_result(second.result, ALREADY_EXISTS, NONE);
	assert_result(get.result, OK, NONE);
	assert_false(get.changed);
	assert_true(get.generation.value == create.generation.value);
	const struct fake_record *reply = fake_last(r->dp, FAKE_REPLY);
	assert_result(reply->result, OK, NONE);
	assert_int_equal(reply->body_bytes, 9);
	assert_int_equal(reply->body[8], 0);
	assert_int_equal(create.count + second.count + get.count, 3);
}

static void A5__workers_that_ask_for_one_key_share_one_attempt(void **state)
{
	struct rig *r = *state;
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 1, "truck-1", "tracker");
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(memory_store_spot_count(r->store), 2); // with the Entry Spot
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 2);
	assert_int_equal(fake_last(r->dp, FAKE_OPEN)->worker, 1);
}

static void A5__a_waiters_deadline_does_not_fail_the_attempt(void **state)
{
	struct rig *r = *state;
	struct rig_answer create;
	fake_hold_factories(r->dp, true);
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_run(r, 11 * SECOND);
	assert_int_equal(create.count, 1);
	assert_result(create.result, DEADLINE_EXCEEDED, NONE);
	assert_int_equal(create.result.accepted, ACCEPTED_UNKNOWN);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_non_null(rig_spot(r, "room-1"));
	assert_int_equal(create.count, 1);
}

static void A2__an_ordinary_message_does_not_wait_for_an_attempt(void **state)
{
	struct rig *r = *state;
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	fake_resolve(r->dp, 1, "truck-1", NULL);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
}

static void put_row(struct rig *r, const char *id, const char *node, enum store_spot_state at, uint8_t boot)
{
	struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE, .type_name = "tracker", .state = at,
		.object_generation = {77}, .authority_generation = {1}, .owner_lease = {1}};
	row.id_bytes = (uint8_t)strlen(id);
	memcpy(row.id, id, row.id_bytes);
	row.key = spot_key_of(rig_id(id));
	strcpy(row.owner_node, node);
	row.owner_boot.bytes[0] = boot;
	memory_store_spot_put(r->store, &row);
}

static void A3_Z5__an_unusable_owner_is_not_missing(void **state)
{
	struct rig *r = *state;
	put_row(r, "truck-1", "other", STORE_SPOT_READY, 9);
	uint64_t writes = memory_store_writes(r->store), factories = fake_factories(r->dp);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, OWNER_UNUSABLE);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1); // only to the one who asked
	fake_resolve(r->dp, 1, "truck-1", NULL);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, OWNER_UNUSABLE);
	assert_int_equal(memory_store_writes(r->store), writes);
	assert_int_equal(fake_factories(r->dp), factories);
}

static void A2__another_nodes_attempt_is_awaited_by_intents_only(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "other", 9, 1);
	put_row(r, "truck-1", "other", STORE_SPOT_CREATING, 9);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	fake_resolve(r->dp, 1, "truck-1", NULL);
	rig_run(r, SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	put_row(r, "truck-1", "other", STORE_SPOT_READY, 9);
	rig_run(r, SECOND); // handed over to the winner: the message goes where the route leads now
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	assert_int_equal(fake_last(r->dp, FAKE_RELEASE)->worker, 0);
	assert_int_equal(route_tag(route_lookup(r->routes, spot_key_of(rig_id("truck-1")))), ROUTE_REMOTE);
}

static void A2__an_await_ends(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "other", 9, 1);
	put_row(r, "truck-1", "other", STORE_SPOT_CREATING, 9);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 31 * SECOND);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, OWNER_UNUSABLE);
	assert_int_equal(rig_status(r).resolves_running, 0);
}

static void A6_Z4__neither_missing_nor_failure_is_remembered(void **state)
{
	struct rig *r = *state;
	fake_resolve(r->dp, 0, "truck-1", NULL);
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	memory_store_plant(r->store, STORE_SPOT_READ, MEMORY_FAULT_BEFORE, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, STORE_UNREACHABLE);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	fake_forget(r->dp);
	fake_resolve(r->dp, 1, "truck-1", NULL); // right after Ready
	rig_step(r, MS);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
}

static void A8_FC34__a_failed_factory_ends_each_waiter_once_and_blocks_nothing(void **state)
{
	struct rig *r = *state;
	fake_factory_result(r->dp, result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED));
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	fake_resolve(r->dp, 1, "truck-1", "tracker");
	settle(r);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 2);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INTERNAL_FAILURE, FACTORY_FAILED);
	assert_false(rig_row(r, "truck-1").exists); // the claimant's own abort
	publish_barrier();
	assert_int_equal(fake_spots_alive(r->dp), 1);
	fake_factory_result(r->dp, result_ok());
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	assert_int_equal(rig_status(r).activation_failures, 1);
}

static void A8_K5__a_declined_user_spot_is_rejected(void **state)
{
	struct rig *r = *state;
	struct rig_answer create;
	fake_factory_result(r->dp, result_refused(RESULT_REJECTED, REASON_DECLINED));
	rig_create_spot(r, "room-1", "room", false, &create);
	settle(r);
	assert_result(create.result, REJECTED, DECLINED);
	assert_false(rig_row(r, "room-1").exists);
}

// Whatever store operation of an attempt fails, and however: one end each, no Creating left, and the
// next attempt works.
static void A8_O7_FC13__every_store_fault_of_an_attempt_is_survived(void **state)
{
	struct rig *r = *state;
	static const enum store_op_kind kinds[] = {
		STORE_SPOT_READ, STORE_SPOT_CLAIM, STORE_SPOT_COMMIT};
	static const enum memory_fault faults[] = {MEMORY_FAULT_BEFORE, MEMORY_FAULT_ANSWER,
		MEMORY_FAULT_LOST, MEMORY_FAULT_FULL};
	char id[32];
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
		for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
			if (kinds[k] == STORE_SPOT_READ && faults[i] == MEMORY_FAULT_FULL)
				continue;
			snprintf(id, sizeof(id), "truck-%zu-%zu", k, i);
			fake_forget(r->dp);
			memory_store_plant(r->store, kinds[k], faults[i], 1);
			fake_resolve(r->dp, 0, id, "tracker");
			rig_run(r, SECOND);
			uint32_t ends = fake_count(r->dp, FAKE_FAIL) + fake_count(r->dp, FAKE_RELEASE);
			assert_int_equal(ends, 1);
			bool applied = faults[i] == MEMORY_FAULT_ANSWER && kinds[k] != STORE_SPOT_READ;
			assert_int_equal(fake_count(r->dp, FAKE_RELEASE), applied ? 1 : 0);
			assert_int_equal(rig_row(r, id).exists, applied);
			if (!applied)
				assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE,
					STORE_UNREACHABLE);
			assert_true(fake_count(r->dp, FAKE_CONSTRUCT) <= 1);
			fake_resolve(r->dp, 0, id, "tracker");
			rig_run(r, SECOND);
			assert_int_equal(rig_row(r, id).state, STORE_SPOT_READY);
		}
	assert_int_equal(rig_status(r).activations_running, 0);
}

static void A8__an_abort_is_repeated_until_the_store_did_it(void **state)
{
	struct rig *r = *state;
	static const enum memory_fault faults[] = {
		MEMORY_FAULT_BEFORE, MEMORY_FAULT_ANSWER, MEMORY_FAULT_LOST};
	fake_factory_result(r->dp, result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED));
	for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
		memory_store_plant(r->store, STORE_SPOT_ABORT, faults[i], 3);
		fake_resolve(r->dp, 0, "truck-1", "tracker");
		rig_run(r, 2 * SECOND);
		memory_store_plant(r->store, STORE_SPOT_ABORT, faults[i], 0);
		assert_false(rig_row(r, "truck-1").exists);
		assert_int_equal(fake_count(r->dp, FAKE_FAIL), i + 1);
	}
}

static void A8_FC5__a_claim_left_by_a_crash_never_blocks_its_id(void **state)
{
	struct rig *r = *state;
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(rig_row(r, "truck-1").state, STORE_SPOT_CREATING);
	rig_crash(r);
	rig_restart(r);
	memory_store_plant(r->store, STORE_SPOT_FORMER, MEMORY_FAULT_BEFORE, 1); // no scan yet
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	assert_int_equal(rig_row(r, "truck-1").state, STORE_SPOT_READY);
}

static void O6_FC4__rows_of_a_former_run_are_released_at_first_touch(void **state)
{
	struct rig *r = *state;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	fake_resolve(r->dp, 0, "truck-2", "tracker");
	settle(r);
	uint64_t generation = rig_row(r, "truck-1").object_generation.value;
	rig_crash(r);
	rig_restart(r);
	memory_store_plant(r->store, STORE_SPOT_FORMER, MEMORY_FAULT_BEFORE, 3);
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-1", NULL); // an ordinary message: NotFound, and nothing built
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_FOUND, NONE);
	assert_false(rig_row(r, "truck-1").exists);
	fake_resolve(r->dp, 0, "truck-2", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_true(rig_row(r, "truck-2").object_generation.value > generation); // T3
}

static void O6__the_background_scan_releases_the_rest(void **state)
{
	struct rig *r = *state;
	char id[32];
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "truck-%d", i);
		fake_resolve(r->dp, 0, id, "tracker");
		rig_step(r, MS);
		fake_forget(r->dp);
	}
	rig_run(r, SECOND);
	assert_int_equal(memory_store_spot_count(r->store), 601);
	rig_crash(r);
	rig_restart(r);
	rig_start(r);
	rig_run(r, SECOND);
	assert_int_equal(memory_store_spot_count(r->store), 1); // the new Entry Spot
}

static void A10__activations_run_at_most_at_their_bound(void **state)
{
	struct rig *r = *state;
	char id[32];
	fake_hold_factories(r->dp, true);
	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "truck-%d", i);
		fake_resolve(r->dp, 0, id, "tracker");
	}
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 128);
	assert_int_equal(rig_status(r).activations_running, 128);
	assert_int_equal(rig_status(r).activations_waiting, 172);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 300);
	assert_int_equal(rig_status(r).activations_running, 0);
}

static void A10_M5__floods_meet_bounds_with_names(void **state)
{
	struct rig *r = *state;
	char id[32];
	rig_crash(r);
	rig_restart(r);
	r->config.resolves_max = 10;
	r->config.activations_max = 2;
	r->config.activations_waiting_max = 5;
	rig_start(r);
	memory_store_hold(r->store, true);
	for (int i = 0; i < 11; i++) {
		snprintf(id, sizeof(id), "ghost-%d", i);
		fake_resolve(r->dp, 0, id, NULL);
	}
	settle(r);
	const struct fake_record *end = fake_last(r->dp, FAKE_FAIL);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_result(end->result, CAPACITY_EXCEEDED, PENDING_RESOLVES);
	assert_int_equal(end->refusal.limit, 10);
	assert_int_equal(end->refusal.current, 10);
	memory_store_hold(r->store, false);
	settle(r);
	fake_forget(r->dp);
	fake_hold_factories(r->dp, true);
	for (int i = 0; i < 8; i++) {
		snprintf(id, sizeof(id), "truck-%d", i);
		fake_resolve(r->dp, 0, id, "tracker");
		settle(r);
	}
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, CAPACITY_EXCEEDED, PENDING_ACTIVATIONS);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->refusal.limit, 5);
	fake_hold_factories(r->dp, false);
	settle(r);
}

static void N1_N2_Z8__the_ceiling_refuses_here_with_its_figures(void **state)
{
	struct rig *r = *state;
	struct rig_answer create;
	rig_crash(r);
	rig_restart(r);
	r->config.spots_max = 3;
	rig_start(r);
	for (int i = 0; i < 2; i++) {
		fake_resolve(r->dp, 0, i == 0 ? "s-1" : "s-2", "small");
		settle(r);
	}
	fake_resolve(r->dp, 0, "s-3", "small"); // its type allows two
	settle(r);
	const struct fake_record *end = fake_last(r->dp, FAKE_FAIL);
	assert_result(end->result, CAPACITY_EXCEEDED, ACTIVATION_CEILING);
	assert_int_equal(end->refusal.limit, 2);
	assert_int_equal(end->refusal.current, 2);
	fake_hold_factories(r->dp, true);
	rig_create_spot(r, "room-1", "room", false, &create);
	settle(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker"); // the room counts while it is being made
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, CAPACITY_EXCEEDED, ACTIVATION_CEILING);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->refusal.limit, 3);
	assert_int_equal(fake_last(r->dp, FAKE_FAIL)->scope, DP_FAIL_INTENT); // A3: only who asked
	// An explicit create is told the same figures, by wire and at the socket (M5).
	struct rig_answer full;
	rig_create_spot(r, "room-2", "room", false, &full);
	settle(r);
	assert_result(full.result, CAPACITY_EXCEEDED, ACTIVATION_CEILING);
	assert_int_equal(full.refusal.limit, 3);
	assert_int_equal(full.refusal.current, 3);
	fake_control(r->dp, 0, 7, WIRE_CONTROL_CREATE, "room-3", "room", 0, r->clock.boot_ns + SECOND);
	settle(r);
	const struct fake_record *reply = fake_last(r->dp, FAKE_REPLY);
	assert_result(reply->result, CAPACITY_EXCEEDED, ACTIVATION_CEILING);
	assert_int_equal(reply->refusal.limit, 3);
	assert_int_equal(reply->refusal.current, 3);
	assert_int_equal(reply->body_bytes, 0);
	fake_factory_result(r->dp, result_refused(RESULT_REJECTED, REASON_DECLINED));
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_result(create.result, REJECTED, DECLINED);
	fake_factory_result(r->dp, result_ok());
	fake_resolve(r->dp, 0, "truck-1", "tracker"); // and no longer after it failed
	settle(r);
	assert_int_equal(fake_last(r->dp, FAKE_RELEASE)->worker, 0);
	assert_non_null(rig_spot(r, "truck-1"));
	struct rig_answer close;
	rig_close_spot(r, "truck-1", 0, &close);
	settle(r);
	fake_resolve(r->dp, 0, "truck-2", "tracker"); // a closed Spot gives its place back
	settle(r);
	assert_non_null(rig_spot(r, "truck-2"));
}

static void T7__entry_ids_are_refused_before_store_work(void **state)
{
	struct rig *r = *state;
	struct rig_answer create;
	const char *id = "n1-entry-123e4567-e89b-42d3-a456-426614174000";
	memory_store_hold(r->store, true);
	rig_create_spot(r, id, "room", false, &create);
	assert_result(create.result, INVALID_OPERATION, ENTRY_ID_SHAPE);
	fake_resolve(r->dp, 0, id, "tracker");
	rig_step(r, MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INVALID_OPERATION, ENTRY_ID_SHAPE);
	assert_int_equal(memory_store_pending(r->store), 0);
	memory_store_hold(r->store, false);
}

static void K2__what_a_kind_cannot_do_is_refused_before_any_effect(void **state)
{
	struct rig *r = *state;
	struct rig_answer answer;
	fake_resolve(r->dp, 0, "x", "room"); // intent on a User type
	rig_step(r, MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INVALID_OPERATION, NONE);
	fake_resolve(r->dp, 0, "x", "no-such-type");
	rig_step(r, MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, NOT_CONFIGURED, UNKNOWN_TYPE);
	rig_create_spot(r, "x", "tracker", false, &answer);
	assert_result(answer.result, INVALID_OPERATION, NONE);
	rig_create_spot(r, "x", "gate", false, &answer);
	assert_result(answer.result, INVALID_OPERATION, NONE);
	rig_create_spot(r, "x", "no-such-type", false, &answer);
	assert_result(answer.result, NOT_CONFIGURED, UNKNOWN_TYPE);
	rig_create_spot(r, "", "room", false, &answer);
	assert_result(answer.result, INVALID_OPERATION, ID_MISSING);
	assert_int_equal(memory_store_spot_count(r->store), 1);
}

static void A1__get_or_create_of_another_type_is_a_mismatch(void **state)
{
	struct rig *r = *state;
	struct rig_answer answer;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	rig_create_spot(r, "truck-1", "room", true, &answer);
	settle(r);
	assert_result(answer.result, TYPE_MISMATCH, NONE);
	rig_create_spot(r, "truck-1", "room", false, &answer);
	settle(r);
	assert_result(answer.result, ALREADY_EXISTS, NONE);
}

static void T2__a_key_that_meets_another_id_is_refused(void **state)
{
	struct rig *r = *state;
	struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE, .type_name = "tracker",
		.state = STORE_SPOT_READY, .object_generation = {5}, .authority_generation = {1}};
	row.id_bytes = 5;
	memcpy(row.id, "other", 5);
	row.key = spot_key_of(rig_id("truck-1"));
	strcpy(row.owner_node, "n2");
	memory_store_spot_put(r->store, &row);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INTERNAL_FAILURE, KEY_COLLISION);
	assert_true(rig_row(r, "truck-1").exists);
}

static void T3_T6__generations_are_fresh_and_end_in_exhaustion(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	uint64_t first = rig_row(r, "truck-1").object_generation.value;
	rig_close_spot(r, "truck-1", 0, &close);
	settle(r);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_true(rig_row(r, "truck-1").object_generation.value > first);
	rig_crash(r);
	rig_restart(r);
	memory_store_generation_set(r->store, GENERATION_MAX - 2); // for the Entry Spot and one more
	rig_start(r);
	fake_resolve(r->dp, 0, "truck-2", "tracker");
	settle(r);
	assert_true(rig_row(r, "truck-2").object_generation.value == GENERATION_MAX);
	uint64_t writes = memory_store_writes(r->store);
	fake_resolve(r->dp, 0, "truck-3", "tracker");
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INTERNAL_FAILURE, GENERATION_EXHAUSTED);
	assert_int_equal(memory_store_writes(r->store), writes);
}

static void x__no_memory_for_an_object_is_an_honest_failure(void **state)
{
	struct rig *r = *state;
	fake_fail_memory(r->dp, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, INTERNAL_FAILURE, OUT_OF_MEMORY);
	assert_false(rig_row(r, "truck-1").exists);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
}

static void x__commands_that_meet_a_full_ring_keep_their_order(void **state)
{
	struct rig *r = *state;
	char id[32];
	fake_busy(r->dp, 40);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "ghost-%d", i);
		fake_resolve(r->dp, 0, id, NULL);
	}
	settle(r);
	fake_resolve(r->dp, 1, "truck-1", "tracker");
	settle(r);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 20);
	assert_int_equal(fake_count(r->dp, FAKE_RELEASE), 1);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "ghost-%d", i);
		assert_true(spot_key_equal(
			fake_record_at(r->dp, (uint32_t)i)->key, spot_key_of(rig_id(id))));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	publish_start();
	const struct CMUnitTest tests[] = {
		TEST(A1_I5_Z2__an_ordinary_message_builds_nothing),
		TEST(A1_Z2__an_intent_builds_once_and_is_handled),
		TEST(A7__publication_order),
		TEST(A5_I4_Z3__many_creators_one_factory),
		TEST(A5__workers_that_ask_for_one_key_share_one_attempt),
		TEST(A5__a_waiters_deadline_does_not_fail_the_attempt),
		TEST(A2__an_ordinary_message_does_not_wait_for_an_attempt),
		TEST(A3_Z5__an_unusable_owner_is_not_missing),
		TEST(A2__another_nodes_attempt_is_awaited_by_intents_only),
		TEST(A2__an_await_ends),
		TEST(A6_Z4__neither_missing_nor_failure_is_remembered),
		TEST(A8_FC34__a_failed_factory_ends_each_waiter_once_and_blocks_nothing),
		TEST(A8_K5__a_declined_user_spot_is_rejected),
		TEST(A8_O7_FC13__every_store_fault_of_an_attempt_is_survived),
		TEST(A8__an_abort_is_repeated_until_the_store_did_it),
		TEST(A8_FC5__a_claim_left_by_a_crash_never_blocks_its_id),
		TEST(O6_FC4__rows_of_a_former_run_are_released_at_first_touch),
		TEST(O6__the_background_scan_releases_the_rest),
		TEST(A10__activations_run_at_most_at_their_bound),
		TEST(A10_M5__floods_meet_bounds_with_names),
		TEST(N1_N2_Z8__the_ceiling_refuses_here_with_its_figures),
		TEST(T7__entry_ids_are_refused_before_store_work),
		TEST(K2__what_a_kind_cannot_do_is_refused_before_any_effect),
		TEST(A1__get_or_create_of_another_type_is_a_mismatch),
		TEST(T2__a_key_that_meets_another_id_is_refused),
		TEST(T3_T6__generations_are_fresh_and_end_in_exhaustion),
		TEST(x__no_memory_for_an_object_is_an_honest_failure),
		TEST(x__commands_that_meet_a_full_ring_keep_their_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
