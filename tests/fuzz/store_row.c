// SPDX-License-Identifier: BSD-3-Clause
// One row of the store with values of any type and size in its columns. Trusted only as far as a disk is.
// What is read as a row is bound and read again as the same row.
//
// First byte: 0 a Spot's row, 1 a node's. Then for each column a kind (integer, real, text, blob, NULL)
// and its value.
#include "fuzz.h"
#include "store/sqlite/rows.h"

enum { SPOT_COLUMN_COUNT = 12, NODE_COLUMN_COUNT = 8 };

static sqlite3 *db;
static sqlite3_stmt *spot_statement, *node_statement;
static uint32_t spots_read, spots_refused, nodes_read, nodes_refused;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	CHECK(sqlite3_prepare_v2(db, "SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12", -1,
		      &spot_statement, NULL) == SQLITE_OK);
	CHECK(sqlite3_prepare_v2(db, "SELECT ?1,?2,?3,?4,?5,?6,?7,?8", -1, &node_statement, NULL) ==
		SQLITE_OK);
	return 0;
}

static int64_t read_integer(struct fuzz_reader *r)
{
	size_t size;
	uint64_t value = 0;
	const uint8_t *bytes = fuzz_bytes(r, fuzz_u8(r) % 9, &size);
	memcpy(&value, bytes, size);
	return (int64_t)value;
}

static void bind_column(sqlite3_stmt *s, int at, struct fuzz_reader *r)
{
	size_t size;
	uint8_t kind = fuzz_u8(r) % 5;
	if (kind == 0) {
		sqlite3_bind_int64(s, at, read_integer(r));
	} else if (kind == 1) {
		sqlite3_bind_double(s, at, (double)read_integer(r) / 3);
	} else if (kind == 4) {
		sqlite3_bind_null(s, at);
	} else {
		size_t want = fuzz_u8(r);
		const uint8_t *bytes = fuzz_bytes(r, want, &size);
		uint8_t *exact = fuzz_exact(bytes, size);
		if (kind == 2)
			sqlite3_bind_text(s, at, (const char *)exact, (int)size, SQLITE_TRANSIENT);
		else
			sqlite3_bind_blob(s, at, exact, (int)size, SQLITE_TRANSIENT);
		free(exact);
	}
}

static void bind_all(sqlite3_stmt *s, int columns, struct fuzz_reader *r)
{
	for (int i = 1; i <= columns; i++)
		bind_column(s, i, r);
	CHECK(sqlite3_step(s) == SQLITE_ROW);
}

static void check_spot_again(const struct store_spot_row *row)
{
	struct store_spot_row again = {0};
	CHECK(row->exists && row->id_bytes > 0 && strlen(row->type_name) <= 64);
	CHECK(row->state == STORE_SPOT_CREATING || row->state == STORE_SPOT_READY);
	CHECK(row->kind >= SPOT_KIND_ENTRY && row->kind <= SPOT_KIND_INSTANCE);
	CHECK(spot_row_bind(spot_statement, row) == SQLITE_OK);
	CHECK(sqlite3_step(spot_statement) == SQLITE_ROW);
	CHECK(spot_row_read(spot_statement, &again));
	CHECK(spot_key_equal(again.key, row->key) && again.id_bytes == row->id_bytes &&
		memcmp(again.id, row->id, row->id_bytes) == 0);
	CHECK(again.state == row->state && again.kind == row->kind);
	CHECK(strcmp(again.type_name, row->type_name) == 0 &&
		strcmp(again.owner_node, row->owner_node) == 0);
	CHECK(again.object_generation.value == row->object_generation.value &&
		again.authority_generation.value == row->authority_generation.value &&
		again.owner_lease.value == row->owner_lease.value);
}

static void check_node_again(const struct store_node_row *row)
{
	struct store_node_row again = {0};
	CHECK(row->exists && strlen(row->node_id) <= 64 && strlen(row->address) <= 127);
	CHECK(node_row_bind(node_statement, row) == SQLITE_OK);
	CHECK(sqlite3_step(node_statement) == SQLITE_ROW);
	CHECK(node_row_read(node_statement, &again));
	CHECK(strcmp(again.node_id, row->node_id) == 0 && strcmp(again.address, row->address) == 0);
	CHECK(again.beat == row->beat && again.fenced == row->fenced && again.ttl_ms == row->ttl_ms);
}

static void run_spot(struct fuzz_reader *r)
{
	struct store_spot_row row = {0};
	bind_all(spot_statement, SPOT_COLUMN_COUNT, r);
	bool good = spot_row_read(spot_statement, &row);
	sqlite3_reset(spot_statement);
	spots_read += good;
	spots_refused += !good;
	if (good)
		check_spot_again(&row);
	sqlite3_reset(spot_statement);
	sqlite3_clear_bindings(spot_statement);
}

static void run_node(struct fuzz_reader *r)
{
	struct store_node_row row = {0};
	bind_all(node_statement, NODE_COLUMN_COUNT, r);
	bool good = node_row_read(node_statement, &row);
	sqlite3_reset(node_statement);
	nodes_read += good;
	nodes_refused += !good;
	if (good)
		check_node_again(&row);
	sqlite3_reset(node_statement);
	sqlite3_clear_bindings(node_statement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_reader r = {data, size};
	if (fuzz_u8(&r) & 1)
		run_node(&r);
	else
		run_spot(&r);
	return 0;
}

void fuzz_unreached(void (*missed)(const char *what))
{
	if (spots_read == 0 || spots_refused == 0)
		missed("a Spot's row that is read, and one that is not");
	if (nodes_read == 0 || nodes_refused == 0)
		missed("a node's row that is read, and one that is not");
}
