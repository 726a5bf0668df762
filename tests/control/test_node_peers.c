// SPDX-License-Identifier: BSD-3-Clause
// Other nodes on the same store: what their beats say, who may be fenced, and what that releases.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/peers.h"
#include "publish/publish.h"
#include "rig.h"
#include "wire/layout.h"

struct fence_answer {
	uint32_t count;
	struct result result;
	bool changed;
	uint64_t released;
	char text[256];
};

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

static void put_row(
	struct rig *r, const char *id, enum store_spot_state at, uint8_t boot, uint64_t lease)
{
	struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE, .type_name = "tracker",
		.state = at,
		.object_generation = {77}, .authority_generation = {1}, .owner_lease = {lease}};
	row.id_bytes = (uint8_t)strlen(id);
	memcpy(row.id, id, row.id_bytes);
	row.key = spot_key_of(rig_id(id));
	strcpy(row.owner_node, "n2");
	row.owner_boot.bytes[0] = boot;
	memory_store_spot_put(r->store, &row);
}

static void fenced(void *arg, const struct node_fence_report *report)
{
	struct fence_answer *a = arg;
	a->count++;
	a->result = report->result;
	a->changed = report->changed;
	a->released = report->rows_released;
	snprintf(a->text, sizeof(a->text), "%s", report->text);
}

static void fence(struct rig *r, const char *node_id, struct fence_answer *a)
{
	memset(a, 0, sizeof(*a));
	node_fence(r->node, rig_id(node_id), r->clock.boot_ns + 10 * SECOND, fenced, a);
}

static enum peer_standing standing(struct rig *r, const char *node_id)
{
	struct node_peer peers[STORE_NODES_MAX];
	uint64_t age;
	uint32_t count = node_peers(r->node, peers, &age);
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(peers[i].row.node_id, node_id) == 0)
			return peers[i].standing;
	return PEER_GONE;
}

static void O4__the_judgment_is_a_table(void **state)
{
	(void)state;
	struct store_node_row row = {.exists = true, .ttl_ms = 15000, .lease_generation = {5}};
	struct store_boot_id boot = {{7}}, other = {{8}};
	row.boot = boot;
	const uint64_t term = 15150 * MS; // TTL and 1 %
#define JUDGE(b, lease, still) peer_judge(&row, b, (struct lease_generation){lease}, still, 1)
	assert_int_equal(JUDGE(boot, 5, 0), PEER_LIVE);
	assert_int_equal(JUDGE(boot, 5, term), PEER_LIVE);
	assert_int_equal(JUDGE(boot, 5, term + 1), PEER_STILL);
	assert_int_equal(JUDGE(boot, 6, term + 1), PEER_UNKNOWN); // the row is older than that run
	assert_int_equal(JUDGE(other, 4, 0), PEER_FOLLOWED);
	assert_int_equal(JUDGE(other, 5, 0), PEER_LEFT);
	row.fenced = true;
	assert_int_equal(JUDGE(boot, 5, 0), PEER_FENCED);
	row.exists = false;
	assert_int_equal(JUDGE(boot, 5, 0), PEER_GONE);
	assert_int_equal(peer_judge(NULL, boot, (struct lease_generation){5}, 0, 1), PEER_GONE);
	assert_false(peer_is_over(PEER_LIVE));
	assert_false(peer_is_over(PEER_UNKNOWN));
}

static void O4__a_beat_that_moves_is_live_and_one_that_stops_is_not_for_long(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	rig_run(r, 60 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_LIVE);
	rig_peer_stops(r);
	rig_run(r, 15 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_LIVE); // TTL * 1.01, counted from an answer here
	rig_run(r, 11 * SECOND); // and at most two renewal intervals
	assert_int_equal(standing(r, "n2"), PEER_STILL);
	assert_int_equal(r->last_event_of[NODE_EVENT_PEER], PEER_STILL);
	assert_non_null(strstr(r->last_text_of[NODE_EVENT_PEER], "n2"));
	rig_peer(r, "n2", 9, 1);
	r->peer.beat = 1000; // it was only slow
	rig_run(r, 6 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_LIVE);
}

static void O6__a_failed_read_restarts_the_watch(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	rig_peer_stops(r);
	rig_run(r, 14 * SECOND);
	memory_store_plant(r->store, STORE_NODE_LIST, MEMORY_FAULT_BEFORE, 1);
	rig_run(r, 13 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_LIVE);
	rig_run(r, 13 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_STILL);
}

static void O5__the_last_view_serves_thirty_seconds(void **state)
{
	struct rig *r = *state;
	struct node_peer peers[STORE_NODES_MAX];
	uint64_t age;
	rig_peer(r, "n2", 9, 1);
	rig_run(r, 6 * SECOND);
	memory_store_hold(r->store, true);
	rig_run(r, 23 * SECOND);
	assert_int_equal(node_peers(r->node, peers, &age), 2);
	assert_int_equal(peers[0].self + peers[1].self, 1);
	rig_run(r, 10 * SECOND);
	assert_int_equal(node_peers(r->node, peers, &age), 0);
	assert_true(age == UINT64_MAX);
	assert_true(rig_status(r).lease_left_ns < 0); // and extended nothing
}

static void A3_O4_Z5__a_dead_owner_is_unavailable_whatever_is_sent(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	uint64_t writes = memory_store_writes(r->store), factories = fake_factories(r->dp);
	for (int i = 0; i < 5; i++) {
		fake_forget(r->dp);
		fake_resolve(r->dp, 0, "truck-1", i % 2 == 0 ? "tracker" : NULL);
		rig_run(r, 100 * MS);
		assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, OWNER_UNUSABLE);
		assert_int_equal(fake_count(r->dp, FAKE_FAIL), 1);
	}
	assert_int_equal(memory_store_writes(r->store), writes);
	assert_int_equal(fake_factories(r->dp), factories);
}

static void A8__a_dead_claimants_row_is_cleaned_by_who_reads_it(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_CREATING, 9, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 0); // A5: it waits for that attempt
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
	rig_peer_stops(r);
	rig_run(r, 28 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	assert_true(store_boot_equal(rig_row(r, "truck-1").owner_boot,
		(struct store_boot_id){{0}}) == false);
	assert_string_equal(rig_row(r, "truck-1").owner_node, "n1");
}

// The view is up to one renewal interval old: a run that beats and claims meanwhile keeps its
// claim.
static void A8_O4__a_claim_made_after_the_beat_moved_again_is_not_deleted(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	rig_peer_stops(r);
	while (standing(r, "n2") != PEER_STILL)
		rig_run(r, 100 * MS);
	r->peer.beat += 1; // it was only slow, and goes on
	memory_store_node_put(r->store, &r->peer);
	put_row(r, "truck-1", STORE_SPOT_CREATING, 9, 1);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, SECOND);
	assert_string_equal(rig_row(r, "truck-1").owner_node, "n2");
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 0);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0); // it waits for that attempt
	assert_int_equal(standing(r, "n2"), PEER_LIVE);
}

static void A8__a_followed_claimant_is_dead_at_once(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 10, 2); // started again
	put_row(r, "truck-1", STORE_SPOT_CREATING, 9, 1);
	rig_run(r, 6 * SECOND);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
}

static void A8_O4__a_run_newer_than_the_view_is_not_taken_for_dead(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	rig_run(r, 5500 * MS);
	r->peer.boot.bytes[0] = 10; // a new run, after our view
	r->peer.lease_generation.value = 2;
	rig_peer_write(r);
	put_row(r, "truck-1", STORE_SPOT_CREATING, 10, 2);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, SECOND);
	assert_string_equal(rig_row(r, "truck-1").owner_node, "n2");
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 0);
	assert_int_equal(fake_count(r->dp, FAKE_FAIL), 0);
}

static void A5__who_lost_to_another_node_looks_again_ever_more_slowly(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	rig_run(r, 6 * SECOND);
	put_row(r, "truck-1", STORE_SPOT_CREATING, 9, 1);
	struct rig_answer create, get;
	rig_create_spot(r, "truck-1", "room", false, &create);
	rig_create_spot(r, "truck-1", "room", true, &get);
	rig_run(r, 5 * SECOND);
	assert_int_equal(create.count + get.count, 0);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_run(r, SECOND);
	assert_result(create.result, ALREADY_EXISTS, NONE);
	assert_result(get.result, TYPE_MISMATCH, NONE);
}

// ---- fencing ----
static void O6__a_live_node_is_not_fenced(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_run(r, 30 * SECOND);
	fence(r, "n2", &a);
	assert_result(a.result, REJECTED, NONE);
	assert_non_null(strstr(a.text, "counts as live"));
	rig_peer_stops(r);
	rig_run(r, 12 * SECOND);
	fence(r, "n2", &a);
	assert_result(a.result, REJECTED, NONE);
	assert_true(rig_row(r, "truck-1").exists);
	fence(r, "n9", &a);
	assert_result(a.result, NOT_FOUND, NONE);
	fence(r, "n1", &a);
	assert_result(a.result, INVALID_OPERATION, NONE);
	assert_int_equal(a.count, 1);
}

static void O6_A3__fencing_makes_missing_again(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	char id[32];
	rig_peer(r, "n2", 9, 1);
	for (int i = 0; i < 700; i++) {
		snprintf(id, sizeof(id), "truck-%d", i);
		put_row(r, id, i % 3 == 0 ? STORE_SPOT_CREATING : STORE_SPOT_READY, 9, 1);
	}
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	assert_result(fake_last(r->dp, FAKE_FAIL)->result, UNAVAILABLE, OWNER_UNUSABLE);
	fence(r, "n2", &a);
	rig_run(r, SECOND);
	assert_int_equal(a.count, 1);
	assert_result(a.result, OK, NONE);
	assert_true(a.changed);
	assert_int_equal(a.released, 700);
	assert_int_equal(r->events[NODE_EVENT_FENCED], 1);
	assert_int_equal(memory_store_spot_count(r->store), 1); // our Entry Spot
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	rig_run(r, 100 * MS);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 1);
	fence(r, "n2", &a);
	rig_run(r, SECOND);
	assert_result(a.result, OK, NONE); // G5: repeated, nothing changed
	assert_false(a.changed);
	struct store_node_row row;
	assert_true(memory_store_node(r->store, "n2", &row));
	assert_true(row.fenced);
}

static void O6__a_run_that_came_back_keeps_its_own(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	rig_peer(r, "n2", 9, 1);
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	r->peer.boot.bytes[0] = 10;
	r->peer.lease_generation.value = 2;
	rig_peer_write(r);
	put_row(r, "truck-1", STORE_SPOT_READY, 10, 2);
	fence(r, "n2", &a);
	rig_run(r, SECOND);
	assert_result(a.result, REJECTED, NONE);
	assert_false(a.changed);
	assert_true(rig_row(r, "truck-1").exists);
}

static void O6_O7__lost_answers_release_nothing_twice(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	memory_store_plant(r->store, STORE_NODE_FENCE, MEMORY_FAULT_ANSWER, 1);
	memory_store_plant(r->store, STORE_SPOT_FENCE, MEMORY_FAULT_ANSWER, 1);
	fence(r, "n2", &a);
	rig_run(r, 5 * SECOND);
	assert_result(a.result, OK, NONE);
	assert_false(rig_row(r, "truck-1").exists);
}

static void O6__the_asker_hears_at_the_deadline_and_the_release_goes_on(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	memory_store_plant(r->store, STORE_SPOT_FENCE, MEMORY_FAULT_BEFORE, 12);
	fence(r, "n2", &a);
	rig_run(r, 11 * SECOND);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.result.kind, RESULT_DEADLINE_EXCEEDED);
	rig_run(r, 5 * SECOND);
	assert_false(rig_row(r, "truck-1").exists);
	assert_int_equal(a.count, 1);
}

static void O6__the_policy_is_off_by_default(void **state)
{
	struct rig *r = *state;
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_peer_stops(r);
	rig_run(r, 120 * SECOND);
	assert_true(rig_row(r, "truck-1").exists);
}

static void O6__the_policy_waits_for_the_grace(void **state)
{
	struct rig *r = *state;
	rig_destroy(r);
	*state = r = rig_create();
	r->config.fence_grace_ms = 20000;
	rig_start(r);
	rig_peer(r, "n2", 9, 1);
	put_row(r, "truck-1", STORE_SPOT_READY, 9, 1);
	rig_peer_stops(r);
	rig_run(r, 33 * SECOND);
	assert_int_equal(standing(r, "n2"), PEER_STILL);
	assert_true(rig_row(r, "truck-1").exists);
	rig_run(r, 15 * SECOND);
	assert_false(rig_row(r, "truck-1").exists);
	assert_int_equal(r->events[NODE_EVENT_FENCED], 1);
	rig_run(r, 30 * SECOND);
	assert_int_equal(r->events[NODE_EVENT_FENCED], 1);
}

static void O2__a_fenced_node_stops_and_says_why(void **state)
{
	struct rig *r = *state;
	struct store_node_row row;
	assert_true(memory_store_node(r->store, "n1", &row));
	row.fenced = true;
	memory_store_node_put(r->store, &row);
	rig_until(r, NODE_ERROR);
	assert_int_equal(rig_status(r).exit_code, NODE_EXIT_LEASE_LOST);
	assert_non_null(strstr(rig_status(r).why, "fenced"));
}

static void x__a_stop_answers_who_waits_for_a_fence(void **state)
{
	struct rig *r = *state;
	struct fence_answer a;
	rig_peer(r, "n2", 9, 1);
	rig_peer_stops(r);
	rig_run(r, 40 * SECOND);
	memory_store_plant(r->store, STORE_NODE_FENCE, MEMORY_FAULT_BEFORE, 100);
	fence(r, "n2", &a);
	node_stop(r->node, 5000);
	rig_until(r, NODE_STOPPED);
	assert_int_equal(a.count, 1);
	assert_result(a.result, SHUTTING_DOWN, NONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(O4__the_judgment_is_a_table),
		TEST(O4__a_beat_that_moves_is_live_and_one_that_stops_is_not_for_long),
		TEST(O6__a_failed_read_restarts_the_watch),
		TEST(O5__the_last_view_serves_thirty_seconds),
		TEST(A3_O4_Z5__a_dead_owner_is_unavailable_whatever_is_sent),
		TEST(A8__a_dead_claimants_row_is_cleaned_by_who_reads_it),
		TEST(A8_O4__a_claim_made_after_the_beat_moved_again_is_not_deleted),
		TEST(A8__a_followed_claimant_is_dead_at_once),
		TEST(A8_O4__a_run_newer_than_the_view_is_not_taken_for_dead),
		TEST(A5__who_lost_to_another_node_looks_again_ever_more_slowly),
		TEST(O6__a_live_node_is_not_fenced),
		TEST(O6_A3__fencing_makes_missing_again),
		TEST(O6__a_run_that_came_back_keeps_its_own),
		TEST(O6_O7__lost_answers_release_nothing_twice),
		TEST(O6__the_asker_hears_at_the_deadline_and_the_release_goes_on),
		TEST(O6__the_policy_is_off_by_default),
		TEST(O6__the_policy_waits_for_the_grace),
		TEST(O2__a_fenced_node_stops_and_says_why),
		TEST(x__a_stop_answers_who_waits_for_a_fence),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	publish_barrier();
	return failed;
}
