// SPDX-License-Identifier: BSD-3-Clause
// The example of docs/MODULES.md on real workers: what the harness cannot show, turns that interleave.
#include "rig.h"

enum { ORDER_ADD = 1, ORDER_SHIP = 2, ORDER_STATUS = 3, ORDER_SEAL = 4 };

extern const struct spotlane_module spotlane_module_v1; // examples/order

static struct rig_reply r;

static struct rig *start(void)
{
	const char *why = NULL;
	struct rig *rig = rig_start_plain(2);
	assert_int_equal(dp_register_module(rig->dp, &spotlane_module_v1, NULL, &why), DP_DONE);
	rig_spot(rig, "prices", "plain", 1); // message type 1 there: answers the payload
	return rig;
}

static uint64_t send(struct rig *rig, struct rig_client *c, uint16_t type, const char *payload)
{
	struct rig_message m = rig_request("order-1", type, payload, strlen(payload));
	m.intent = "order";
	return rig_send(rig, c, 0, &m);
}

static void expect_text(struct rig *rig, struct rig_client *c, uint64_t operation, const char *text)
{
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(r.h.operation_id, operation);
	assert_int_equal(r.body_bytes, strlen(text));
	assert_memory_equal(r.body, text, strlen(text));
}

static void X2__the_example_waits_alone_and_yields_to_others(void **state)
{
	(void)state;
	struct rig *rig = start();
	struct rig_client *c = rig_client(rig);
	uint64_t first = send(rig, c, ORDER_ADD, "7"), second = send(rig, c, ORDER_STATUS, "");
	rig_settle(rig);
	expect_text(rig, c, first, "7"); // the status waited for the price
	expect_text(rig, c, second, "7");
	rig->manual = true; // nobody is found for "carrier" until the test says so
	uint64_t ship = send(rig, c, ORDER_SHIP, "");
	rig_settle(rig);
	uint64_t status = send(rig, c, ORDER_STATUS, "");
	rig_settle(rig);
	expect_text(rig, c, status, "7 shipping"); // ran while the shipment is under way
	assert_false(rig_receive(rig, c, &r));
	rig_spot(rig, "carrier", "plain", 1);
	assert_int_equal(dp_release(rig->dp, rig_find(rig, "order-1")->home_worker,
				 spot_key_of(rig_id("carrier"))),
		DP_DONE);
	rig_settle(rig);
	expect_text(rig, c, ship, "7\n"); // the carrier of this test repeats what it is told
	rig->manual = false;
	rig_stop(rig);
}

static void X5_X7__the_example_hands_off_and_expires(void **state)
{
	(void)state;
	struct rig *rig = start();
	struct rig_client *c = rig_client(rig);
	uint64_t add = send(rig, c, ORDER_ADD, "7");
	rig_settle(rig);
	expect_text(rig, c, add, "7");
	send(rig, c, ORDER_SEAL, "");
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(RIG_COUNT(rig, offloads), 1);
	rig_pass(UINT64_C(899) * 1000000000);
	rig_settle(rig);
	uint64_t status = send(rig, c, ORDER_STATUS, "");
	rig_settle(rig);
	expect_text(rig, c, status, "7");
	rig_pass(UINT64_C(2) * 1000000000);
	rig_settle(rig);
	status = send(rig, c, ORDER_STATUS, "");
	rig_settle(rig);
	expect_text(rig, c, status, "0 expired");
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2__the_example_waits_alone_and_yields_to_others),
		cmocka_unit_test(X5_X7__the_example_hands_off_and_expires),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core example", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
