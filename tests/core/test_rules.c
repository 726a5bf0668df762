// SPDX-License-Identifier: BSD-3-Clause
// Rules whose guards hide behind others in the larger tests: each alone here.
#include "rig.h"

#include "core/session.h"
#include "core/spot.h"

static struct rig_reply r;
static uint8_t payload[1024];

static void ten_kib(struct dp_config *c)
{
	c->message_bytes_max = 1024;
	c->process_mark_bytes = 10 * 1024;
}

// `id` waits for what `other` holds until this budget is spent: what comes meanwhile stays queued.
static void occupy(
	struct rig *rig, struct rig_client *c, const char *id, const char *other, uint32_t budget_us)
{
	struct rig_message hold = rig_request(id, DO_ASK_HOLD, other, strlen(other));
	hold.budget_us = budget_us;
	rig->manual = true; // nobody does the blocking work
	rig_send(rig, c, 0, &hold);
	rig_settle(rig);
}

// Raised at 80 %, the signal stays while the figure is between the marks, and ends below 60 %.
static void P4__pressure_keeps_its_state_between_the_marks(void **state)
{
	(void)state;
	struct rig_config config = {.workers = 1, .adjust = ten_kib};
	struct rig *rig = rig_start(&config);
	struct rig_client *c = rig_client(rig);
	static const char *const ids[] = {"a", "b", "e", "f"};
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		rig_spot(rig, ids[i], "plain", 0);
	occupy(rig, c, "a", "b", 9000000);
	occupy(rig, c, "e", "f", 1000000);
	struct rig_message m = rig_request("a", DO_LOG, payload, sizeof(payload));
	m.budget_us = 20000000;
	for (int i = 0; i < 7; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_int_equal(dp_process_bytes(rig->dp), 7 * 1024);
	assert_false(dp_pressure(rig->dp)); // between the marks from below: not yet
	m.id = "e";
	for (int i = 0; i < 2; i++)
		rig_send(rig, c, 0, &m);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_int_equal(dp_process_bytes(rig->dp), 9 * 1024);
	assert_true(dp_pressure(rig->dp));
	rig_pass(1500000000); // "e" goes on, "a" does not
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_int_equal(dp_process_bytes(rig->dp), 7 * 1024);
	assert_true(dp_pressure(rig->dp)); // the same figure from above: still
	rig_pass(9000000000u);
	rig_settle(rig);
	rig_pass(1000000);
	rig_settle(rig);
	assert_int_equal(dp_process_bytes(rig->dp), 0);
	assert_false(dp_pressure(rig->dp));
	rig_stop(rig);
}

// What was admitted before the owner's authority changed is ended, not run under the new one.
static void O8__what_an_older_authority_admitted_is_ended(void **state)
{
	(void)state;
	struct rig *rig = rig_start_plain(1);
	struct rig_client *c = rig_client(rig);
	struct dp_spot *spot = rig_spot(rig, "a", "plain", 0);
	rig_spot(rig, "b", "plain", 0);
	occupy(rig, c, "a", "b", 1000000);
	struct rig_message m = rig_request("a", DO_LOG, "12345678", 8);
	m.budget_us = 9000000;
	rig_send(rig, c, 0, &m);
	rig_settle(rig);
	spot->authority_generation++;
	rig_pass(1500000000);
	rig_settle(rig);
	assert_true(rig_receive(rig, c, &r)); // of the one that waited
	assert_true(rig_receive(rig, c, &r));
	rig_expect(&r, RESULT_STALE_ROUTE, REASON_NONE, ACCEPTED_NO);
	assert_int_equal(rig_log.count, 0);
	rig_ask(rig, c, 0, &m, &r); // admitted under the new one
	rig_expect(&r, RESULT_OK, REASON_NONE, ACCEPTED_YES);
	assert_int_equal(rig_log.count, 1);
	rig_stop(rig);
}

// A session is bound to its address and to its port, each for itself.
static void M9_I19__a_session_is_of_one_address_and_one_port(void **state)
{
	(void)state;
	static const uint8_t key[16] = {1, 2, 3};
	struct session_table t;
	struct session *s;
	struct peer p = {.port = 1000}, other_ip = {.port = 1000}, other_port = {.port = 1001};
	p.ip[15] = other_port.ip[15] = 1;
	other_ip.ip[15] = 2;
	assert_true(session_table_init(&t, 4, key));
	uint64_t cookie = session_cookie(&t, &p, 1);
	assert_int_equal(session_check(&t, &p, 9, 1, cookie, 1, &s), SESSION_FRESH);
	session_take(&t, s, 1, 1);
	cookie = session_cookie(&t, &other_ip, 1);
	assert_int_equal(session_check(&t, &other_ip, 9, 2, cookie, 1, &s), SESSION_FOREIGN);
	cookie = session_cookie(&t, &other_port, 1);
	assert_int_equal(session_check(&t, &other_port, 9, 2, cookie, 1, &s), SESSION_FOREIGN);
	session_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(P4__pressure_keeps_its_state_between_the_marks),
		cmocka_unit_test(O8__what_an_older_authority_admitted_is_ended),
		cmocka_unit_test(M9_I19__a_session_is_of_one_address_and_one_port),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core rules", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
