// SPDX-License-Identifier: BSD-3-Clause
// The contract of the store port, run over every provider.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store_fixture.h"

static struct fixture *on(void **state)
{
	return *state;
}

static enum store_outcome run_row(
	struct fixture *f, enum store_op_kind kind, const struct store_spot_row *row, uint64_t id)
{
	struct store_op op = op_for_row(kind, row, id);
	return run_op(f->store, &op);
}

static struct store_spot_row read_back(struct fixture *f, const struct store_spot_row *row)
{
	struct store_op op = op_for_row(STORE_SPOT_READ, row, 0);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	return op.row;
}

// Claims and commits; returns the row as it is then.
static struct store_spot_row make_ready(struct fixture *f, uint64_t number, uint8_t boot)
{
	struct store_spot_row row = row_number(number, boot);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, number * 10), STORE_DONE);
	row = read_back(f, &row);
	assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &row, number * 10 + 1), STORE_DONE);
	return read_back(f, &row);
}

static void A5__claim_commit_release(void **state)
{
	struct fixture *f = on(state);
	struct store_spot_row row = row_number(5, 1);
	assert_false(read_back(f, &row).exists);
	struct store_op claim = op_for_row(STORE_SPOT_CLAIM, &row, 50);
	assert_int_equal(run_op(f->store, &claim), STORE_DONE);
	assert_true(claim.store_wall_ns > 0);
	struct store_spot_row creating = read_back(f, &row);
	assert_int_equal(creating.state, STORE_SPOT_CREATING);
	assert_memory_equal(creating.id, row.id, row.id_bytes);
	assert_string_equal(creating.type_name, "tracker");
	assert_string_equal(creating.owner_node, "n1");
	assert_int_equal(creating.kind, SPOT_KIND_INSTANCE);
	assert_true(store_op_equal(creating.last_operation, op_number(50)));
	assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &creating, 51), STORE_DONE);
	struct store_spot_row ready = read_back(f, &row);
	assert_int_equal(ready.state, STORE_SPOT_READY);
	assert_true(ready.version.value != creating.version.value);
	assert_int_equal(run_row(f, STORE_SPOT_RELEASE, &ready, 52), STORE_DONE);
	assert_false(read_back(f, &row).exists);
	struct store_op again = op_for_row(STORE_SPOT_RELEASE, &ready, 52);
	assert_int_equal(run_op(f->store, &again), STORE_CONFLICT);
	assert_false(again.row.exists);
}

static void A5__second_claim_meets_the_first_row(void **state)
{
	struct fixture *f = on(state);
	struct store_spot_row mine = row_number(5, 1), other = row_number(5, 2);
	other.object_generation.value = 6;
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &mine, 50), STORE_DONE);
	struct store_op op = op_for_row(STORE_SPOT_CLAIM, &other, 60);
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	assert_true(op.row.exists);
	assert_int_equal(op.row.object_generation.value, 5);
	assert_true(store_boot_equal(op.row.owner_boot, boot_number(1)));
}

static void T2__claim_never_merges_two_ids_under_one_key(void **state)
{
	struct fixture *f = on(state);
	struct store_spot_row mine = row_number(5, 1), other = row_number(6, 1);
	other.key = mine.key;
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &mine, 50), STORE_DONE);
	struct store_op op = op_for_row(STORE_SPOT_CLAIM, &other, 60);
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	assert_memory_equal(op.row.id, mine.id, mine.id_bytes);
}

static void O7_I1__every_fence_is_in_the_statement(void **state)
{
	struct fixture *f = on(state);
	static const enum store_op_kind kinds[] = {
		STORE_SPOT_COMMIT, STORE_SPOT_ABORT, STORE_SPOT_RELEASE};
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
		bool ready = kinds[k] == STORE_SPOT_RELEASE;
		struct store_spot_row row = row_number(100 + k, 1);
		if (ready) {
			row = make_ready(f, 100 + k, 1);
		} else {
			assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 50 + k), STORE_DONE);
			row = read_back(f, &row);
		}
		for (int broken = 0; broken < 4; broken++) {
			struct store_spot_row wrong = row;
			if (broken == 0)
				wrong.owner_boot = boot_number(9);
			else if (broken == 1)
				wrong.object_generation.value++;
			else if (broken == 2)
				wrong.authority_generation.value++;
			else if (ready)
				continue; // a release has no attempt
			else
				wrong.last_operation = op_number(999);
			struct store_op op = op_for_row(kinds[k], &wrong, 1000 + k);
			assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
			struct store_spot_row now = read_back(f, &row);
			assert_int_equal(now.state, row.state);
			assert_int_equal(now.version.value, row.version.value);
		}
		assert_int_equal(run_row(f, kinds[k], &row, 2000 + k), STORE_DONE);
	}
}

static void O7__an_operation_repeated_with_its_id_is_done_once(void **state)
{
	struct fixture *f = on(state);
	struct store_spot_row row = row_number(5, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 50), STORE_DONE);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 50), STORE_DONE);
	struct store_spot_row creating = read_back(f, &row);
	assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &creating, 51), STORE_DONE);
	assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &creating, 51), STORE_DONE);
	struct store_spot_row ready = read_back(f, &row);
	assert_true(store_op_equal(ready.last_operation, op_number(51)));
	// Another operation is not taken for it, and the attempt cannot be claimed anew.
	assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &creating, 52), STORE_CONFLICT);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 50), STORE_CONFLICT);
	assert_int_equal(read_back(f, &row).version.value, ready.version.value);
}

static void A8__abort_takes_its_own_attempt_only(void **state)
{
	struct fixture *f = on(state);
	struct store_spot_row ready = make_ready(f, 7, 1);
	assert_int_equal(run_row(f, STORE_SPOT_ABORT, &ready, 80), STORE_CONFLICT);
	assert_true(read_back(f, &ready).exists);
	struct store_spot_row row = row_number(8, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 81), STORE_DONE);
	row = read_back(f, &row);
	assert_int_equal(run_row(f, STORE_SPOT_RELEASE, &row, 82), STORE_CONFLICT);
	assert_int_equal(run_row(f, STORE_SPOT_ABORT, &row, 83), STORE_DONE);
	assert_false(read_back(f, &row).exists);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 84), STORE_DONE);
}

static void A8_O4__clean_takes_an_attempt_only_while_its_run_stands_still(void **state)
{
	struct fixture *f = on(state);
	struct store_op join = {.kind = STORE_NODE_JOIN, .node = {.node_id = "n2", .ttl_ms = 15000}};
	join.node.boot.bytes[0] = 9;
	assert_int_equal(run_op(f->store, &join), STORE_DONE);
	struct store_spot_row row = row_number(8, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 81), STORE_DONE);
	row = read_back(f, &row);
	struct store_op clean = {.kind = STORE_SPOT_CLEAN, .node = join.node, .row = row};
	clean.expect_beat = join.node.beat + 1; // another beat than the row's
	assert_int_equal(run_op(f->store, &clean), STORE_CONFLICT);
	assert_true(read_back(f, &row).exists);
	clean = (struct store_op){.kind = STORE_SPOT_CLEAN, .node = join.node, .row = row};
	clean.expect_beat = join.node.beat;
	assert_int_equal(run_op(f->store, &clean), STORE_DONE);
	assert_false(read_back(f, &row).exists);
}

static void T3__drawn_ranges_never_meet(void **state)
{
	struct fixture *f = on(state);
	uint64_t after = 0;
	for (int i = 0; i < 5; i++) {
		struct store_op op = {.kind = STORE_GENERATION_DRAW, .range_count = 100};
		assert_int_equal(run_op(f->store, &op), STORE_DONE);
		assert_int_equal(op.range_count, 100);
		assert_true(op.range_first > after);
		after = op.range_first + op.range_count - 1;
		if (i == 2)
			fixture_reopen(f);
	}
}

static void O1_O2__join_renew_leave(void **state)
{
	struct fixture *f = on(state);
	struct store_op op = op_for_node(STORE_NODE_READ, "n1", 0, 0);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_false(op.node.exists);
	op = op_for_node(STORE_NODE_JOIN, "n1", 1, 1);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_int_equal(op.node.lease_generation.value, 1);
	assert_int_equal(op.node.beat, 1);
	for (uint64_t beat = 2; beat < 5; beat++) {
		op = op_for_node(STORE_NODE_RENEW, "n1", 1, 2);
		assert_int_equal(run_op(f->store, &op), STORE_DONE);
		assert_int_equal(op.node.beat, beat);
		assert_string_equal(op.node.address, "127.0.0.1:7000");
	}
	op = op_for_node(STORE_NODE_RENEW, "n1", 2, 2);
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	op = op_for_node(STORE_NODE_LEAVE, "n1", 2, 3);
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	op = op_for_node(STORE_NODE_LEAVE, "n1", 1, 3);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	op = op_for_node(STORE_NODE_RENEW, "n1", 1, 4);
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	// A new start takes a larger lease generation (T4).
	op = op_for_node(STORE_NODE_JOIN, "n1", 2, 5);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_int_equal(op.node.lease_generation.value, 2);
}

static void O4__join_takes_over_only_what_was_watched(void **state)
{
	struct fixture *f = on(state);
	struct store_op op = op_for_node(STORE_NODE_JOIN, "n1", 1, 1);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	op = op_for_node(STORE_NODE_JOIN, "n1", 1, 1); // its own lost answer
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_int_equal(op.node.lease_generation.value, 1);
	op = op_for_node(STORE_NODE_JOIN, "n1", 2, 2); // expects nobody
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	assert_true(store_boot_equal(op.node.boot, boot_number(1)));
	op = op_for_node(STORE_NODE_RENEW, "n1", 1, 3);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	op = op_for_node(STORE_NODE_JOIN, "n1", 2, 4);
	op.expect_boot = boot_number(1);
	op.expect_beat = 1; // the beat has moved since
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
	op = op_for_node(STORE_NODE_JOIN, "n1", 2, 5);
	op.expect_boot = boot_number(1);
	op.expect_beat = 2;
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_int_equal(op.node.lease_generation.value, 2);
	op = op_for_node(STORE_NODE_RENEW, "n1", 1, 6); // the former run finds out
	assert_int_equal(run_op(f->store, &op), STORE_CONFLICT);
}

static void O6__former_boots_rows_go_in_batches_and_nobody_elses(void **state)
{
	struct fixture *f = on(state);
	for (uint64_t i = 1; i <= 10; i++)
		(void)make_ready(f, i, (uint8_t)(1 + i % 2)); // two former runs
	struct store_spot_row mine = make_ready(f, 20, 3);
	struct store_spot_row theirs = row_number(21, 1);
	strcpy(theirs.owner_node, "n2");
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &theirs, 900), STORE_DONE);
	uint32_t batches[4] = {0};
	for (int i = 0; i < 4; i++) {
		struct store_op op = op_for_row(STORE_SPOT_FORMER, &mine, 901);
		op.limit = 4;
		assert_int_equal(run_op(f->store, &op), STORE_DONE);
		batches[i] = op.count;
	}
	assert_int_equal(batches[0], 4);
	assert_int_equal(batches[1], 4);
	assert_int_equal(batches[2], 2);
	assert_int_equal(batches[3], 0);
	assert_true(read_back(f, &mine).exists);
	assert_true(read_back(f, &theirs).exists);
}

static void x__lists_page_through_everything_in_key_order(void **state)
{
	struct fixture *f = on(state);
	for (uint64_t i = 1; i <= 7; i++)
		(void)make_ready(f, i, 1);
	struct store_spot_row page[3];
	struct store_op op = {.kind = STORE_SPOT_LIST, .rows = page, .limit = 3};
	uint32_t seen = 0;
	uint8_t before[KEY_BYTES] = {0}, now[KEY_BYTES];
	do {
		assert_int_equal(run_op(f->store, &op), STORE_DONE);
		for (uint32_t i = 0; i < op.count; i++, seen++) {
			spot_key_bytes(page[i].key, now);
			assert_true(memcmp(before, now, KEY_BYTES) < 0);
			memcpy(before, now, KEY_BYTES);
		}
		if (op.count > 0)
			op.row.key = page[op.count - 1].key;
	} while (op.count > 0);
	assert_int_equal(seen, 7);

	struct store_node_row nodes[STORE_NODES_MAX];
	for (uint8_t i = 1; i <= 3; i++) {
		char id[4] = {'n', (char)('0' + i), 0};
		struct store_op join = op_for_node(STORE_NODE_JOIN, id, i, i);
		assert_int_equal(run_op(f->store, &join), STORE_DONE);
	}
	struct store_op list = {.kind = STORE_NODE_LIST, .nodes = nodes};
	assert_int_equal(run_op(f->store, &list), STORE_DONE);
	assert_int_equal(list.count, 3);
	assert_string_equal(nodes[2].node_id, "n3");
}

static void I18__what_was_done_is_there_after_reopening(void **state)
{
	struct fixture *f = on(state);
	enum { ROWS = 200 };
	static struct store_op ops[ROWS];
	for (uint64_t i = 0; i < ROWS; i++) {
		struct store_spot_row row = row_number(i + 1, 1);
		ops[i] = op_for_row(STORE_SPOT_CLAIM, &row, 10 + i);
		submit_op(f->store, &ops[i]); // all queued at once: one transaction or a few
	}
	for (uint64_t i = 0; i < ROWS; i++) {
		await_op(f->store, &ops[i]);
		assert_int_equal(ops[i].outcome, STORE_DONE);
	}
	fixture_reopen(f);
	for (uint64_t i = 0; i < ROWS; i++) {
		struct store_spot_row row = row_number(i + 1, 1);
		assert_true(store_op_equal(read_back(f, &row).last_operation, op_number(10 + i)));
	}
}

static void A2__ids_of_every_length_come_back_whole(void **state)
{
	struct fixture *f = on(state);
	static const size_t lengths[] = {1, 2, 63, 64, 127, 128, 254, 255};
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		struct store_spot_row row = row_number(i + 1, 1);
		row.id_bytes = (uint8_t)lengths[i];
		memset(row.id, 'a' + (int)i, lengths[i]);
		row.key = spot_key_of(span_of(row.id, row.id_bytes));
		assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, i + 1), STORE_DONE);
		struct store_spot_row back = read_back(f, &row);
		assert_int_equal(back.id_bytes, lengths[i]);
		assert_memory_equal(back.id, row.id, lengths[i]);
	}
}

static int set_up_memory(void **state)
{
	*state = fixture_create(&provider_memory);
	return 0;
}

static int set_up_sqlite(void **state)
{
	*state = fixture_create(&provider_sqlite);
	return 0;
}

static int tear_down(void **state)
{
	fixture_destroy(*state);
	return 0;
}

#define ON_BOTH(test)                                                                              \
	{#test "_on_memory", test, set_up_memory, tear_down, NULL},                                \
	{                                                                                          \
		#test "_on_sqlite", test, set_up_sqlite, tear_down, NULL                           \
	}

// ---- fencing ----
static void join_node(struct fixture *f, const char *id, uint8_t boot)
{
	struct store_op op = op_for_node(STORE_NODE_JOIN, id, boot, 7000 + boot);
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
}

static void O6__a_run_is_fenced_by_its_beat_as_watched(void **state)
{
	struct fixture *f = on(state);
	join_node(f, "n1", 1);
	struct store_op renew = op_for_node(STORE_NODE_RENEW, "n1", 1, 1);
	assert_int_equal(run_op(f->store, &renew), STORE_DONE);
	struct store_op fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 2);
	fence.expect_beat = 1; // it moved since
	assert_int_equal(run_op(f->store, &fence), STORE_CONFLICT);
	assert_int_equal(fence.node.beat, 2);
	fence = op_for_node(STORE_NODE_FENCE, "n1", 9, 2);
	fence.expect_beat = 2; // another run
	assert_int_equal(run_op(f->store, &fence), STORE_CONFLICT);
	renew = op_for_node(STORE_NODE_RENEW, "n1", 1, 3);
	assert_int_equal(run_op(f->store, &renew), STORE_DONE);
	fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 4);
	fence.expect_beat = 3;
	assert_int_equal(run_op(f->store, &fence), STORE_DONE);
	assert_true(fence.node.fenced);
	fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 4); // repeated
	assert_int_equal(run_op(f->store, &fence), STORE_DONE);
	renew = op_for_node(STORE_NODE_RENEW, "n1", 1, 5);
	assert_int_equal(run_op(f->store, &renew), STORE_CONFLICT); // O2
}

static struct store_op op_fence(uint8_t boot, uint32_t limit)
{
	struct store_op op = op_for_node(STORE_SPOT_FENCE, "n1", boot, 8000);
	strcpy(op.row.owner_node, "n2");
	op.row.owner_boot = boot_number(5);
	op.limit = limit;
	return op;
}

static void O6_I1__only_a_run_that_is_over_loses_its_rows(void **state)
{
	struct fixture *f = on(state);
	join_node(f, "n1", 1);
	struct store_spot_row first = make_ready(f, 31, 1), second = make_ready(f, 32, 1);
	struct store_spot_row others = row_number(33, 2);
	strcpy(others.owner_node, "n3");
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &others, 330), STORE_DONE);
	struct store_op take = op_fence(1, 10);
	assert_int_equal(run_op(f->store, &take), STORE_CONFLICT); // it is live
	assert_true(read_back(f, &first).exists);
	struct store_op fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 4);
	fence.expect_beat = 1;
	assert_int_equal(run_op(f->store, &fence), STORE_DONE);
	take = op_fence(9, 10);
	assert_int_equal(run_op(f->store, &take), STORE_CONFLICT); // not that run
	take = op_fence(1, 1);
	assert_int_equal(run_op(f->store, &take), STORE_DONE);
	assert_int_equal(take.count, 1);
	assert_int_equal(read_back(f, &first).exists + read_back(f, &second).exists, 1);
	take = op_fence(1, 10);
	assert_int_equal(run_op(f->store, &take), STORE_DONE);
	assert_int_equal(take.count, 1);
	assert_true(read_back(f, &others).exists);
	assert_int_equal(run_row(f, STORE_SPOT_RELEASE, &first, 40), STORE_CONFLICT); // O7
	take = op_fence(1, 10);
	assert_int_equal(run_op(f->store, &take), STORE_DONE);
	assert_int_equal(take.count, 0);
	struct store_op join = op_for_node(STORE_NODE_JOIN, "n1", 2, 50); // it starts again
	join.expect_boot = boot_number(1);
	join.expect_beat = 1;
	assert_int_equal(run_op(f->store, &join), STORE_DONE);
	struct store_spot_row fresh = make_ready(f, 34, 2);
	take = op_fence(1, 10);
	assert_int_equal(run_op(f->store, &take), STORE_CONFLICT);
	assert_true(read_back(f, &fresh).exists);
}

static void T6_O6__a_row_at_the_end_of_its_counter_stays(void **state)
{
	struct fixture *f = on(state);
	join_node(f, "n1", 1);
	struct store_spot_row row = row_number(35, 1);
	row.authority_generation.value = GENERATION_MAX;
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 350), STORE_DONE);
	struct store_op fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 4);
	fence.expect_beat = 1;
	assert_int_equal(run_op(f->store, &fence), STORE_DONE);
	struct store_op take = op_fence(1, 10);
	assert_int_equal(run_op(f->store, &take), STORE_EXHAUSTED);
	assert_true(read_back(f, &row).exists);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(A5__claim_commit_release),
		ON_BOTH(A5__second_claim_meets_the_first_row),
		ON_BOTH(T2__claim_never_merges_two_ids_under_one_key),
		ON_BOTH(O7_I1__every_fence_is_in_the_statement),
		ON_BOTH(O7__an_operation_repeated_with_its_id_is_done_once),
		ON_BOTH(A8__abort_takes_its_own_attempt_only),
		ON_BOTH(A8_O4__clean_takes_an_attempt_only_while_its_run_stands_still),
		ON_BOTH(T3__drawn_ranges_never_meet),
		ON_BOTH(O1_O2__join_renew_leave),
		ON_BOTH(O4__join_takes_over_only_what_was_watched),
		ON_BOTH(O6__former_boots_rows_go_in_batches_and_nobody_elses),
		ON_BOTH(x__lists_page_through_everything_in_key_order),
		ON_BOTH(I18__what_was_done_is_there_after_reopening),
		ON_BOTH(A2__ids_of_every_length_come_back_whole),
		ON_BOTH(O6__a_run_is_fenced_by_its_beat_as_watched),
		ON_BOTH(O6_I1__only_a_run_that_is_over_loses_its_rows),
		ON_BOTH(T6_O6__a_row_at_the_end_of_its_counter_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
