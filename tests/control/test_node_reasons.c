// SPDX-License-Identifier: BSD-3-Clause
// Refusals of the node that need something outside it to stand still.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "publish/publish.h"
#include "rig.h"

static void nothing(struct publish_deferred *node)
{
	(void)node;
}

// Readers that stand still keep deferred work waiting: nothing more is published, and the caller
// hears why. It goes on once they moved.
static void R3__stalled_readers_are_named_to_who_wants_a_spot(void **state)
{
	struct rig *r = rig_create();
	struct rig_answer create;
	struct publish_deferred waiting[2];
	(void)state;
	r->config.rcu_pending_max = 1;
	rig_start(r);
	publish_barrier();
	publish_reader_enter(); // and says nothing for a while
	for (uint32_t i = 0; i < 2; i++)
		publish_defer(&waiting[i], nothing);
	assert_true(publish_pending() > r->config.rcu_pending_max);
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_run(r, 50 * MS);
	assert_result(create.result, UNAVAILABLE, RCU_STALLED);
	assert_false(create.changed);
	assert_false(rig_row(r, "room-1").exists); // not even claimed
	publish_reader_leave();
	publish_barrier();
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_run(r, 50 * MS);
	assert_result(create.result, OK, NONE);
	rig_destroy(r);
}

// The same between claim and publication: the attempt is undone, and its row with it.
static void R3_A8__readers_that_stall_during_an_attempt_undo_it(void **state)
{
	struct rig *r = rig_create();
	struct rig_answer create;
	struct publish_deferred waiting[2];
	(void)state;
	r->config.rcu_pending_max = 1;
	rig_start(r);
	publish_barrier();
	fake_hold_factories(r->dp, true);
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_run(r, 50 * MS);
	assert_true(rig_row(r, "room-1").exists);
	publish_reader_enter();
	for (uint32_t i = 0; i < 2; i++)
		publish_defer(&waiting[i], nothing);
	fake_hold_factories(r->dp, false);
	rig_run(r, 100 * MS);
	assert_result(create.result, UNAVAILABLE, RCU_STALLED);
	assert_null(rig_spot(r, "room-1"));
	assert_false(rig_row(r, "room-1").exists);
	publish_reader_leave();
	publish_barrier();
	rig_create_spot(r, "room-1", "room", false, &create);
	rig_run(r, 50 * MS);
	assert_result(create.result, OK, NONE);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R3__stalled_readers_are_named_to_who_wants_a_spot),
		cmocka_unit_test(R3_A8__readers_that_stall_during_an_attempt_undo_it),
	};
	publish_start();
	int failed = cmocka_run_group_tests_name("node reasons", tests, NULL, NULL);
	publish_stop();
	return failed;
}
