// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

static struct rig_reply r;

static void M1_M2__a_request_is_answered_in_place(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "quick", 0);
	struct rig_message m = rig_request("a", DO_ECHO, "hello", 5);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(r.body_bytes, 5);
	assert_memory_equal(r.body, "hello", 5);
	assert_int_equal(RIG_COUNT(rig, messages_in_place), 1);
	assert_int_equal(RIG_COUNT(rig, messages_delivered), 1);
	rig_stop(rig);
}

static void M1_M2__a_request_is_answered_through_the_lane(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	rig_spot(rig, "a", "plain", 0);
	struct rig_message m = rig_request("a", DO_ECHO, "hello", 5);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_memory_equal(r.body, "hello", 5);
	assert_int_equal(RIG_COUNT(rig, messages_in_place), 0);
	rig_stop(rig);
}

static void A1_Z2__only_intent_builds(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct rig_message m = rig_request("a", DO_ECHO, "hello", 5);
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_NOT_FOUND, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(strlen(rig_log.order), 0);
	m.intent = "plain";
	rig_ask(rig, c, 0, &m, &r);
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_string_equal(rig_log.order, "cfi");
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M1_M2__a_request_is_answered_in_place),
		cmocka_unit_test(M1_M2__a_request_is_answered_through_the_lane),
		cmocka_unit_test(A1_Z2__only_intent_builds),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core slice", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
