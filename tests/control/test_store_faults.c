// SPDX-License-Identifier: BSD-3-Clause
// What the providers answer when the world under them fails.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault_vfs.h"
#include "store/lock.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "store_fixture.h"

static const enum store_op_kind row_kinds[] = {STORE_SPOT_READ, STORE_SPOT_CLAIM, STORE_SPOT_COMMIT,
	STORE_SPOT_ABORT, STORE_SPOT_RELEASE};

static enum store_outcome run_row(
	struct fixture *f, enum store_op_kind kind, const struct store_spot_row *row, uint64_t id)
{
	struct store_op op = op_for_row(kind, row, id);
	return run_op(f->store, &op);
}

// ---- sqlite ----
struct holder {
	sqlite3 *db;
};

static struct holder hold_lock(const struct fixture *f)
{
	struct holder h;
	assert_int_equal(sqlite3_open(fixture_database(f), &h.db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h.db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	return h;
}

static void let_go(struct holder h)
{
	assert_int_equal(sqlite3_exec(h.db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h.db);
}

static void O5__a_locked_store_is_unreachable_and_comes_back(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = row_number(1, 1);
	struct holder h = hold_lock(f);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_UNREACHABLE);
	struct store_op join = op_for_node(STORE_NODE_JOIN, "n1", 1, 2);
	assert_int_equal(run_op(f->store, &join), STORE_UNREACHABLE);
	assert_int_equal(run_row(f, STORE_SPOT_READ, &row, 3), STORE_DONE); // readers go on in WAL
	let_go(h);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DONE);
	join = op_for_node(STORE_NODE_JOIN, "n1", 1, 2);
	assert_int_equal(run_op(f->store, &join), STORE_DONE);
}

static void O5__a_full_store_refuses_writes_and_lives(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = row_number(1, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DONE);
	fault_vfs_fail(SQLITE_FULL, 0);
	struct store_spot_row second = row_number(2, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &second, 2), STORE_FULL);
	assert_int_equal(run_row(f, STORE_SPOT_READ, &second, 3), STORE_DONE);
	fault_vfs_fail(0, 0);
	struct store_op read = op_for_row(STORE_SPOT_READ, &second, 4);
	assert_int_equal(run_op(f->store, &read), STORE_DONE);
	assert_false(read.row.exists);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &second, 2), STORE_DONE);
}

static void O5_I8__a_failed_write_is_settled_not_guessed(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = row_number(1, 1);
	fault_vfs_fail(SQLITE_IOERR_WRITE, 0);
	struct store_op claim = op_for_row(STORE_SPOT_CLAIM, &row, 1);
	enum store_outcome outcome = run_op(f->store, &claim);
	fault_vfs_fail(0, 0);
	assert_true(outcome == STORE_UNREACHABLE || outcome == STORE_UNKNOWN);
	struct store_op read = op_for_row(STORE_SPOT_READ, &row, 2);
	assert_int_equal(run_op(f->store, &read), STORE_DONE);
	if (outcome == STORE_UNREACHABLE)
		assert_false(read.row.exists);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DONE);
}

static void O5_I21__a_failed_sync_poisons_the_store(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = row_number(1, 1);
	fault_vfs_fail(0, SQLITE_IOERR_FSYNC);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DAMAGED);
	fault_vfs_fail(0, 0);
	assert_int_equal(run_row(f, STORE_SPOT_READ, &row, 2), STORE_DAMAGED);
	struct store_op renew = op_for_node(STORE_NODE_RENEW, "n1", 1, 3);
	assert_int_equal(run_op(f->store, &renew), STORE_DAMAGED);
}

static void O5__rows_that_do_not_fit_are_damage(void **state)
{
	struct fixture *f = *state;
	static const char *const breakages[] = {"UPDATE spots SET state = 9",
		"UPDATE spots SET kind = 0", "UPDATE spots SET id = x''",
		"UPDATE spots SET owner_boot = x'00'", "UPDATE spots SET object_generation = -1",
		"UPDATE spots SET id = x'ff'", "UPDATE spots SET type_name = printf('%0100d', 1)"};
	struct store_spot_row row = row_number(1, 1);
	for (size_t i = 0; i < ARRAY_COUNT(breakages); i++) {
		fixture_sql(f, "DELETE FROM spots");
		assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DONE);
		fixture_sql(f, breakages[i]);
		assert_int_equal(run_row(f, STORE_SPOT_READ, &row, 2), STORE_DAMAGED);
		fixture_sql(f, "DELETE FROM spots");
		fixture_reopen(f); // poisoned until the process starts anew
	}
}

// O6: the row changes hands on its own, with the next authority generation, before it is released.
static void O6_T4__a_fenced_row_is_taken_before_it_is_released(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = row_number(1, 1);
	struct store_op join = op_for_node(STORE_NODE_JOIN, "n1", 1, 1);
	assert_int_equal(run_op(f->store, &join), STORE_DONE);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, 1), STORE_DONE);
	fixture_sql(f, "CREATE TABLE seen (was INTEGER, now INTEGER, owner TEXT);"
		       "CREATE TRIGGER taken AFTER UPDATE ON spots BEGIN INSERT INTO seen VALUES "
		       "(old.authority_generation, new.authority_generation, new.owner_node); END;"
		       "CREATE TRIGGER released AFTER DELETE ON spots WHEN old.owner_node <> 'n2' BEGIN "
		       "SELECT RAISE(ABORT, 'not taken'); END;");
	struct store_op fence = op_for_node(STORE_NODE_FENCE, "n1", 1, 2);
	fence.expect_beat = 1;
	assert_int_equal(run_op(f->store, &fence), STORE_DONE);
	struct store_op take = op_for_node(STORE_SPOT_FENCE, "n1", 1, 3);
	strcpy(take.row.owner_node, "n2");
	take.row.owner_boot = boot_number(7);
	take.limit = 10;
	assert_int_equal(run_op(f->store, &take), STORE_DONE);
	assert_int_equal(take.count, 1);
	sqlite3 *db;
	sqlite3_stmt *s;
	assert_int_equal(sqlite3_open(fixture_database(f), &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT was, now FROM seen", -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(s, 0) + 1, sqlite3_column_int(s, 1));
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static enum sqlite_open try_open(const struct fixture *f, char why[256])
{
	struct sqlite_store_config config = {
		.path = fixture_database(f), .lease_wait_ms = 50, .spot_wait_ms = 50,
		.clock = clock_system()};
	struct store *store = NULL;
	enum sqlite_open verdict = sqlite_store_create(&config, &store, why);
	store_destroy(store);
	return verdict;
}

static void O5__a_file_that_is_no_store_is_refused_with_its_reason(void **state)
{
	struct fixture *f = *state;
	char why[256];
	fixture_sql(f, "PRAGMA user_version = 99");
	assert_int_equal(try_open(f, why), SQLITE_OPEN_VERSION);
	assert_non_null(strstr(why, "schema version 99"));
	fixture_sql(f, "PRAGMA user_version = 1; PRAGMA application_id = 5");
	assert_int_equal(try_open(f, why), SQLITE_OPEN_VERSION);
	fixture_sql(f, "PRAGMA application_id = 1397772116");
	assert_int_equal(try_open(f, why), SQLITE_OPEN_DONE);
}

static void O5__garbage_in_the_file_is_damage(void **state)
{
	struct fixture *f = *state;
	char path[128], why[256];
	snprintf(path, sizeof(path), "%s/garbage", f->directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	static char bytes[8192];
	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
	struct sqlite_store_config config = {.path = path, .clock = clock_system()};
	struct store *store = NULL;
	assert_int_equal(sqlite_store_create(&config, &store, why), SQLITE_OPEN_DAMAGED);
	assert_null(store);
	unlink(path);
	config.path = "/nonexistent/place/store.db";
	assert_int_equal(sqlite_store_create(&config, &store, why), SQLITE_OPEN_UNREACHABLE);
	assert_true(strlen(why) > 0);
}

static void T6__generations_stop_at_the_end(void **state)
{
	struct fixture *f = *state;
	fixture_sql(f, "UPDATE generations SET last_generation = 9223372036854775797");
	struct store_op op = {.kind = STORE_GENERATION_DRAW, .range_count = 100};
	assert_int_equal(run_op(f->store, &op), STORE_DONE);
	assert_int_equal(op.range_count, 10);
	assert_true(op.range_first + op.range_count - 1 == GENERATION_MAX);
	op = (struct store_op){.kind = STORE_GENERATION_DRAW, .range_count = 100};
	assert_int_equal(run_op(f->store, &op), STORE_EXHAUSTED);
}

static void O5__group_commit_shares_syncs(void **state)
{
	struct fixture *f = *state;
	enum { ROWS = 500 };
	static struct store_op ops[ROWS];
	uint64_t before = fault_vfs_syncs();
	for (uint64_t i = 0; i < ROWS; i++) {
		struct store_spot_row row = row_number(i + 1, 1);
		ops[i] = op_for_row(STORE_SPOT_CLAIM, &row, 10 + i);
		submit_op(f->store, &ops[i]);
	}
	for (uint64_t i = 0; i < ROWS; i++) {
		await_op(f->store, &ops[i]);
		assert_int_equal(ops[i].outcome, STORE_DONE);
	}
	assert_true(fault_vfs_syncs() - before < ROWS / 2);
}

// Renewals are answered while thousands of Spot operations still wait: they overtake.
static void O5__renewal_never_waits_behind_the_spot_queue(void **state)
{
	struct fixture *f = *state;
	enum { ROWS = 20000, RENEWALS = 5 };
	struct store_op *ops = calloc(ROWS, sizeof(*ops));
	struct store_op join = op_for_node(STORE_NODE_JOIN, "n1", 1, 1);
	assert_int_equal(run_op(f->store, &join), STORE_DONE);
	for (uint64_t i = 0; i < ROWS; i++) {
		struct store_spot_row row = row_number(i + 1, 1);
		ops[i] = op_for_row(STORE_SPOT_CLAIM, &row, 10 + i);
		submit_op(f->store, &ops[i]);
	}
	for (int i = 0; i < RENEWALS; i++) {
		struct store_op renew = op_for_node(STORE_NODE_RENEW, "n1", 1, 2);
		assert_int_equal(run_op(f->store, &renew), STORE_DONE);
		if (i == 0)
			assert_false(op_is_done(&ops[ROWS - 1]));
	}
	for (uint64_t i = 0; i < ROWS; i++)
		await_op(f->store, &ops[i]);
	free(ops);
}

static void O4__one_process_per_node_id_on_a_host(void **state)
{
	struct fixture *f = *state;
	struct store_lock lock, second;
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		bool taken = store_lock_take(&lock, fixture_database(f), "n/1") == STORE_LOCK_TAKEN;
		char mark = taken ? 'y' : 'n';
		_exit(write(ready[1], &mark, 1) == 1 && pause() == 0 ? 0 : 1);
	}
	char mark = 0;
	assert_int_equal(read(ready[0], &mark, 1), 1);
	assert_int_equal(mark, 'y');
	assert_int_equal(store_lock_take(&second, fixture_database(f), "n/1"), STORE_LOCK_HELD);
	kill(child, SIGKILL); // however it ends, the lock is free after it
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(store_lock_take(&second, fixture_database(f), "n/1"), STORE_LOCK_TAKEN);
	assert_int_equal(store_lock_take(&lock, fixture_database(f), "n1"), STORE_LOCK_TAKEN);
	store_lock_release(&second);
	store_lock_release(&lock);
	close(ready[0]);
	close(ready[1]);
	char host[STORE_HOST_ID_BYTES];
	store_host_id(host);
	assert_true(strlen(host) > 0);
}

// ---- memory ----
static struct store_spot_row prepared_row(struct fixture *f, enum store_op_kind kind, uint64_t number)
{
	struct store_spot_row row = row_number(number, 1);
	if (kind == STORE_SPOT_READ || kind == STORE_SPOT_CLAIM)
		return row;
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &row, number * 10), STORE_DONE);
	assert_true(memory_store_spot(f->store, row.key, &row));
	if (kind == STORE_SPOT_RELEASE)
		assert_int_equal(run_row(f, STORE_SPOT_COMMIT, &row, number * 10 + 1), STORE_DONE);
	assert_true(memory_store_spot(f->store, row.key, &row));
	return row;
}

static void O7__a_fault_before_changes_nothing_for_every_operation(void **state)
{
	struct fixture *f = *state;
	static const enum memory_fault faults[] = {MEMORY_FAULT_BEFORE, MEMORY_FAULT_LOST};
	uint64_t number = 1;
	for (size_t k = 0; k < ARRAY_COUNT(row_kinds); k++)
		for (size_t i = 0; i < ARRAY_COUNT(faults); i++, number++) {
			struct store_spot_row row = prepared_row(f, row_kinds[k], number);
			uint64_t writes = memory_store_writes(f->store);
			memory_store_plant(f->store, row_kinds[k], faults[i], 1);
			enum store_outcome outcome = run_row(f, row_kinds[k], &row, number * 10 + 5);
			assert_int_equal(outcome, faults[i] == MEMORY_FAULT_BEFORE ? STORE_UNREACHABLE
										  : STORE_UNKNOWN);
			assert_int_equal(memory_store_writes(f->store), writes);
			assert_int_equal(run_row(f, row_kinds[k], &row, number * 10 + 5), STORE_DONE);
		}
}

static void O7__a_lost_answer_is_found_by_reading_back(void **state)
{
	struct fixture *f = *state;
	for (size_t k = 1; k < ARRAY_COUNT(row_kinds); k++) {
		struct store_spot_row row = prepared_row(f, row_kinds[k], k);
		uint64_t writes = memory_store_writes(f->store);
		memory_store_plant(f->store, row_kinds[k], MEMORY_FAULT_ANSWER, 1);
		assert_int_equal(run_row(f, row_kinds[k], &row, 1000 + k), STORE_UNKNOWN);
		assert_int_equal(memory_store_writes(f->store), writes + 1);
		struct store_op read = op_for_row(STORE_SPOT_READ, &row, 0);
		assert_int_equal(run_op(f->store, &read), STORE_DONE);
		bool deletes = row_kinds[k] == STORE_SPOT_ABORT || row_kinds[k] == STORE_SPOT_RELEASE;
		assert_int_equal(read.row.exists, !deletes);
		if (!deletes)
			assert_true(store_op_equal(read.row.last_operation, op_number(1000 + k)));
	}
}

static void O5__full_refuses_growth_and_damage_is_for_ever(void **state)
{
	struct fixture *f = *state;
	struct store_spot_row row = prepared_row(f, STORE_SPOT_RELEASE, 1);
	memory_store_plant(f->store, 0, MEMORY_FAULT_FULL, 2);
	struct store_spot_row second = row_number(2, 1);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &second, 2), STORE_FULL);
	assert_int_equal(run_row(f, STORE_SPOT_RELEASE, &row, 3), STORE_DONE);
	memory_store_plant(f->store, STORE_SPOT_READ, MEMORY_FAULT_DAMAGE, 1);
	assert_int_equal(run_row(f, STORE_SPOT_READ, &row, 4), STORE_DAMAGED);
	assert_int_equal(run_row(f, STORE_SPOT_CLAIM, &second, 2), STORE_DAMAGED);
}

static void I23__the_same_seed_gives_the_same_answers(void **state)
{
	(void)state;
	uint64_t traces[2] = {0};
	for (int run = 0; run < 2; run++) {
		struct store *store = memory_store_create(clock_system(), 42);
		struct memory_faults faults = {100, 100, 100, 50, 6};
		memory_store_faults(store, &faults);
		for (uint64_t i = 1; i <= 200; i++) {
			struct store_spot_row row = row_number(i % 20 + 1, 1);
			struct store_op op = op_for_row(STORE_SPOT_CLAIM, &row, i);
			traces[run] = traces[run] * 31 + (uint64_t)run_op(store, &op);
		}
		store_destroy(store);
	}
	assert_true(traces[0] == traces[1]);
}

static int set_up_memory(void **state)
{
	*state = fixture_create(&provider_memory);
	return 0;
}

static int set_up_sqlite(void **state)
{
	fault_vfs_fail(0, 0);
	*state = fixture_create(&provider_sqlite);
	return 0;
}

static int tear_down(void **state)
{
	fault_vfs_fail(0, 0);
	fixture_destroy(*state);
	return 0;
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, set_up_sqlite, tear_down)
#define ON_MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up_memory, tear_down)

int main(void)
{
	fault_vfs_install();
	const struct CMUnitTest tests[] = {
		ON_SQLITE(O5__a_locked_store_is_unreachable_and_comes_back),
		ON_SQLITE(O5__a_full_store_refuses_writes_and_lives),
		ON_SQLITE(O5_I8__a_failed_write_is_settled_not_guessed),
		ON_SQLITE(O5_I21__a_failed_sync_poisons_the_store),
		ON_SQLITE(O5__rows_that_do_not_fit_are_damage),
		ON_SQLITE(O6_T4__a_fenced_row_is_taken_before_it_is_released),
		ON_SQLITE(O5__a_file_that_is_no_store_is_refused_with_its_reason),
		ON_SQLITE(O5__garbage_in_the_file_is_damage),
		ON_SQLITE(T6__generations_stop_at_the_end),
		ON_SQLITE(O5__group_commit_shares_syncs),
		ON_SQLITE(O5__renewal_never_waits_behind_the_spot_queue),
		ON_SQLITE(O4__one_process_per_node_id_on_a_host),
		ON_MEMORY(O7__a_fault_before_changes_nothing_for_every_operation),
		ON_MEMORY(O7__a_lost_answer_is_found_by_reading_back),
		ON_MEMORY(O5__full_refuses_growth_and_damage_is_for_ever),
		cmocka_unit_test(I23__the_same_seed_gives_the_same_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
