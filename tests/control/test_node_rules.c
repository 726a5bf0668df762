// SPDX-License-Identifier: BSD-3-Clause
// Rules that hold because something is not done: what the node does not write, order or resume.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rig.h"

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

static struct store_node_row node_row(struct rig *r)
{
	struct store_node_row row = {0};
	assert_true(memory_store_node(r->store, "n1", &row));
	return row;
}

static void T4__each_start_has_a_greater_lease_generation(void **state)
{
	struct rig *r = *state;
	uint64_t last = node_row(r).lease_generation.value;
	assert_true(last > 0);
	for (int start = 0; start < 3; start++) {
		rig_crash(r);
		rig_restart(r);
		rig_start(r);
		assert_int_equal(node_row(r).lease_generation.value, last + 1);
		assert_int_equal(atomic_load(&dp_lease(r->dp)->generation), last + 1);
		last++;
	}
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(rig_row(r, "truck-1").owner_lease.value, last); // whose start built it
}

// A version says "changed since I looked" and nothing about before and after.
static void T5__versions_tell_changes_apart_and_have_no_order(void **state)
{
	uint32_t up = 0, down = 0;
	uint64_t random = 11;
	struct store_version before = {0};
	(void)state;
	for (uint32_t i = 1; i <= 1000; i++) {
		struct store_op_id id;
		for (size_t k = 0; k < sizeof(id.bytes); k++)
			id.bytes[k] = (uint8_t)(random = random * 6364136223846793005u + 1, random >> 56);
		struct store_version version = store_version_of(id);
		assert_true(version.value == store_version_of(id).value);
		assert_true(version.value != before.value);
		up += version.value > before.value;
		down += version.value < before.value;
		before = version;
	}
	assert_true(up > 100 && down > 100);
}

static void T5__each_change_of_a_row_has_a_version_of_its_own(void **state)
{
	struct rig *r = *state;
	fake_hold_factories(r->dp, true);
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	struct store_spot_row claimed = rig_row(r, "truck-1");
	assert_true(claimed.exists);
	fake_hold_factories(r->dp, false);
	settle(r);
	assert_true(rig_row(r, "truck-1").version.value != claimed.version.value);
}

// Cleanup writes one thing: the release. What a module wants to keep it writes in its callback.
static void C6__a_cleanup_writes_nothing_but_the_release(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	uint64_t writes = memory_store_writes(r->store), rows = memory_store_spot_count(r->store);
	fake_hold_closings(r->dp, true);
	rig_close_spot(r, "truck-1", 0, &close);
	settle(r);
	assert_int_equal(memory_store_writes(r->store), writes); // not before or during the callback
	fake_hold_closings(r->dp, false);
	settle(r);
	assert_result(close.result, OK, NONE);
	assert_int_equal(memory_store_writes(r->store), writes + 1);
	assert_int_equal(memory_store_spot_count(r->store), rows - 1);
	assert_false(rig_row(r, "truck-1").exists);
}

static void S3__a_lifecycle_change_of_another_incarnation_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct rig_answer close;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	struct store_spot_row row = rig_row(r, "truck-1");
	uint64_t writes = memory_store_writes(r->store);
	uint64_t wrong[] = {row.object_generation.value - 1, row.object_generation.value + 1,
		UINT64_MAX};
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		rig_close_spot(r, "truck-1", wrong[i], &close);
		settle(r);
		assert_result(close.result, INVALID_OPERATION, GENERATION_MISMATCH);
		assert_false(close.changed);
	}
	assert_int_equal(fake_count(r->dp, FAKE_CLOSE), 0);
	assert_int_equal(memory_store_writes(r->store), writes);
	assert_non_null(rig_spot(r, "truck-1"));
	assert_int_equal(
		rig_row(r, "truck-1").object_generation.value, row.object_generation.value);
}

// A Ready owner that failed is not taken for an unfinished activation: nobody builds it again by
// himself, and what is left of it goes by a formal release.
static void A9__what_was_ready_is_released_and_not_resumed(void **state)
{
	struct rig *r = *state;
	fake_resolve(r->dp, 0, "truck-1", "tracker");
	settle(r);
	assert_int_equal(rig_row(r, "truck-1").state, STORE_SPOT_READY);
	rig_crash(r);
	rig_restart(r);
	rig_start(r);
	rig_run(r, 2 * SECOND);
	assert_int_equal(fake_count(r->dp, FAKE_CONSTRUCT), 0);
	assert_null(rig_spot(r, "truck-1"));
	assert_false(rig_row(r, "truck-1").exists);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(T4__each_start_has_a_greater_lease_generation),
		cmocka_unit_test(T5__versions_tell_changes_apart_and_have_no_order),
		TEST(T5__each_change_of_a_row_has_a_version_of_its_own),
		TEST(C6__a_cleanup_writes_nothing_but_the_release),
		TEST(S3__a_lifecycle_change_of_another_incarnation_changes_nothing),
		TEST(A9__what_was_ready_is_released_and_not_resumed),
	};
	return cmocka_run_group_tests_name("node rules", tests, NULL, NULL);
}
