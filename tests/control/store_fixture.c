// SPDX-License-Identifier: BSD-3-Clause
#include "store_fixture.h"

#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"

static char database_path[128];

static struct store *open_memory(const char *directory)
{
	(void)directory;
	return memory_store_create(clock_system(), 7);
}

static struct store *open_sqlite(const char *directory)
{
	snprintf(database_path, sizeof(database_path), "%s/store.db", directory);
	struct sqlite_store_config config = {.path = database_path,
		.lease_wait_ms = 200,
		.spot_wait_ms = 200,
		.clock = clock_system()};
	struct store *store = NULL;
	char why[256];
	if (sqlite_store_create(&config, &store, why) != SQLITE_OPEN_DONE)
		fail_msg("%s", why);
	return store;
}

const struct provider provider_memory = {"memory", open_memory};
const struct provider provider_sqlite = {"sqlite", open_sqlite};

struct fixture *fixture_create(const struct provider *provider)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->provider = provider;
	strcpy(f->directory, "/tmp/spotlane-store-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->store = provider->open(f->directory);
	assert_non_null(f->store);
	return f;
}

void fixture_reopen(struct fixture *f)
{
	if (f->provider != &provider_sqlite)
		return;
	store_destroy(f->store);
	f->store = f->provider->open(f->directory);
}

const char *fixture_database(const struct fixture *f)
{
	snprintf(database_path, sizeof(database_path), "%s/store.db", f->directory);
	return database_path;
}

void fixture_destroy(struct fixture *f)
{
	static const char *const left[] = {"store.db", "store.db-wal", "store.db-shm",
		"store.db.n%2f1.lock", "store.db.n1.lock"};
	store_destroy(f->store);
	for (size_t i = 0; i < ARRAY_COUNT(left); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", f->directory, left[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(f->directory), 0); // nothing else was left behind
	free(f);
}

void fixture_sql(const struct fixture *f, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(fixture_database(f), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void mark_done(struct store_op *op)
{
	assert_null(op->arg); // completed once
	op->arg = op;
}

bool op_is_done(const struct store_op *op)
{
	return op->arg != NULL;
}

void submit_op(struct store *store, struct store_op *op)
{
	op->done = mark_done;
	op->arg = NULL;
	store_submit(store, op);
	assert_false(op_is_done(op)); // completions come from poll only
}

void await_op(struct store *store, struct store_op *op)
{
	for (int turn = 0; !op_is_done(op); turn++) {
		assert_true(turn < 2000);
		struct pollfd wait = {store_wait_fd(store), POLLIN, 0};
		if (wait.fd >= 0)
			poll(&wait, 1, 10000);
		store_poll(store);
	}
}

enum store_outcome run_op(struct store *store, struct store_op *op)
{
	submit_op(store, op);
	await_op(store, op);
	return op->outcome;
}

struct store_op_id op_number(uint64_t number)
{
	struct store_op_id id = {{0}};
	memcpy(id.bytes, &number, sizeof(number));
	id.bytes[15] = 1;
	return id;
}

struct store_boot_id boot_number(uint8_t number)
{
	struct store_boot_id boot = {{0}};
	boot.bytes[0] = number;
	return boot;
}

struct store_spot_row row_number(uint64_t number, uint8_t boot)
{
	struct store_spot_row row = {.kind = SPOT_KIND_INSTANCE, .type_name = "tracker",
		.owner_node = "n1", .owner_lease = {1}, .authority_generation = {1}};
	int n = snprintf((char *)row.id, sizeof(row.id), "spot-%llu", (unsigned long long)number);
	row.id_bytes = (uint8_t)n;
	row.key = spot_key_of(span_of(row.id, row.id_bytes));
	row.owner_boot = boot_number(boot);
	row.object_generation.value = number;
	return row;
}

struct store_op op_for_row(enum store_op_kind kind, const struct store_spot_row *row, uint64_t id)
{
	return (struct store_op){.kind = kind, .id = op_number(id), .row = *row};
}

struct store_op op_for_node(enum store_op_kind kind, const char *node_id, uint8_t boot, uint64_t id)
{
	struct store_op op = {.kind = kind, .id = op_number(id)};
	snprintf(op.node.node_id, sizeof(op.node.node_id), "%s", node_id);
	op.node.boot = boot_number(boot);
	op.node.ttl_ms = 15000;
	strcpy(op.node.host_id, "here");
	strcpy(op.node.address, "127.0.0.1:7000");
	return op;
}
