// SPDX-License-Identifier: BSD-3-Clause
#include "store/sqlite/statements.h"

#include <errno.h>

#include "base/check.h"
#include "store/sqlite/rows.h"

static const char *const statement_sql[STATEMENT_COUNT] = {
#define X(name, sql) [STATEMENT_##name] = (sql),
	STORE_STATEMENTS(X)
#undef X
};

// ---- connections ----
static int set_up(struct connection *c, uint32_t wait_ms)
{
	int rc = sqlite3_extended_result_codes(c->db, 1);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(c->db, (int)wait_ms);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(c->db,
			"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA "
			"trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA "
			"wal_autocheckpoint = 1000;",
			NULL, NULL, NULL);
	for (int i = 0; rc == SQLITE_OK && i < STATEMENT_COUNT; i++)
		rc = sqlite3_prepare_v3(c->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
			&c->statements[i], NULL);
	return rc == SQLITE_OK ? SQLITE_OK : sqlite3_extended_errcode(c->db);
}

int connection_open(struct connection *c, const char *path, uint32_t wait_ms)
{
	int rc = sqlite3_open_v2(path, &c->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	return rc == SQLITE_OK ? set_up(c, wait_ms) : rc;
}

void connection_close(struct connection *c)
{
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(c->statements[i]);
	sqlite3_close(c->db);
	memset(c->statements, 0, sizeof(c->statements));
	c->db = NULL;
}

enum store_outcome outcome_of_code(sqlite3 *db, int code)
{
	switch (code) {
	case SQLITE_IOERR_FSYNC:
	case SQLITE_IOERR_DIR_FSYNC:
	case SQLITE_IOERR_DATA:
	case SQLITE_IOERR_CORRUPTFS:
	case SQLITE_READONLY_DBMOVED:
		return STORE_DAMAGED;
	default:
		break;
	}
	switch (code & 0xff) {
	case SQLITE_FULL:
		return STORE_FULL;
	case SQLITE_IOERR: {
		int cause = db == NULL ? 0 : sqlite3_system_errno(db);
		return cause == ENOSPC || cause == EDQUOT ? STORE_FULL : STORE_UNREACHABLE;
	}
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_CANTOPEN:
	case SQLITE_NOMEM:
	case SQLITE_INTERRUPT:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_PROTOCOL: // the WAL index could not be locked in many tries
		return STORE_UNREACHABLE;
	default: // CORRUPT, NOTADB, SCHEMA, a table that is gone …: fail closed
		return STORE_DAMAGED;
	}
}

// ---- running statements ----
static sqlite3_stmt *fresh(struct connection *c, enum store_statement which)
{
	sqlite3_stmt *s = c->statements[which];
	sqlite3_reset(s);
	return s;
}

static int step_once(sqlite3_stmt *s)
{
	int rc = sqlite3_step(s);
	int reset = sqlite3_reset(s);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset != SQLITE_OK ? reset : rc;
}

int connection_do(struct connection *c, enum store_statement which)
{
	return step_once(fresh(c, which));
}

static enum store_outcome failed(struct connection *c, int rc)
{
	c->code = rc;
	return outcome_of_code(c->db, rc);
}

static enum store_outcome damaged_row(struct connection *c)
{
	c->code = SQLITE_CORRUPT;
	return STORE_DAMAGED;
}

// DONE whether or not there is a row: row.exists tells.
static enum store_outcome read_spot(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOT_READ);
	struct store_spot_row row = {0};
	int rc = key_bind(s, 1, op->row.key);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	bool good = rc != SQLITE_ROW || spot_row_read(s, &row);
	sqlite3_reset(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return failed(c, rc);
	if (!good || (row.exists && !spot_key_equal(row.key, op->row.key)))
		return damaged_row(c);
	if (row.exists)
		op->row = row;
	op->row.exists = row.exists;
	return STORE_DONE;
}

// A change that met no row, or one of another: the row as it is decides whether it was ours before.
static enum store_outcome conflict_or_repeat(
	struct connection *c, struct store_op *op, enum store_spot_state state_if_ours)
{
	enum store_outcome outcome = read_spot(c, op);
	if (outcome != STORE_DONE)
		return outcome;
	bool ours = op->row.exists && op->row.state == state_if_ours &&
		    store_op_equal(op->row.last_operation, op->id);
	return ours ? STORE_DONE : STORE_CONFLICT;
}

static enum store_outcome claim_spot(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOT_CLAIM);
	op->row.state = STORE_SPOT_CREATING;
	op->row.last_operation = op->id;
	op->row.version = store_version_of(op->id);
	op->row.exists = true;
	int rc = spot_row_bind(s, &op->row);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	if (sqlite3_changes(c->db) == 1)
		return STORE_DONE;
	return conflict_or_repeat(c, op, STORE_SPOT_CREATING);
}

static int bind_fences(sqlite3_stmt *s, const struct store_spot_row *row)
{
	int rc = key_bind(s, 1, row->key);
	rc |= sqlite3_bind_blob(s, 2, row->owner_boot.bytes, 16, SQLITE_TRANSIENT);
	rc |= sqlite3_bind_int64(s, 3, (sqlite3_int64)row->object_generation.value);
	rc |= sqlite3_bind_int64(s, 4, (sqlite3_int64)row->authority_generation.value);
	return rc == SQLITE_OK ? SQLITE_OK : SQLITE_NOMEM;
}

static int bind_op(sqlite3_stmt *s, int at, struct store_op_id id)
{
	return sqlite3_bind_blob(s, at, id.bytes, sizeof(id.bytes), SQLITE_TRANSIENT);
}

static enum store_outcome commit_spot(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOT_COMMIT);
	int rc = bind_fences(s, &op->row);
	if (rc == SQLITE_OK)
		rc = bind_op(s, 5, op->row.last_operation);
	if (rc == SQLITE_OK)
		rc = bind_op(s, 6, op->id);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(s, 7, (sqlite3_int64)store_version_of(op->id).value);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	return rc == SQLITE_OK ? conflict_or_repeat(c, op, STORE_SPOT_READY) : failed(c, rc);
}

static int bind_watched_run(sqlite3_stmt *s, const struct store_op *op)
{
	int rc = sqlite3_bind_text(s, 6, op->node.node_id, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(s, 7, op->node.boot.bytes, 16, SQLITE_TRANSIENT);
	return rc == SQLITE_OK ? sqlite3_bind_int64(s, 8, (sqlite3_int64)op->expect_beat) : rc;
}

static enum store_outcome delete_spot(struct connection *c, struct store_op *op)
{
	bool clean = op->kind == STORE_SPOT_CLEAN, creating = clean || op->kind == STORE_SPOT_ABORT;
	sqlite3_stmt *s = fresh(c, clean      ? STATEMENT_SPOT_CLEAN
				   : creating ? STATEMENT_SPOT_ABORT
					      : STATEMENT_SPOT_RELEASE);
	int rc = bind_fences(s, &op->row);
	if (rc == SQLITE_OK && creating)
		rc = bind_op(s, 5, op->row.last_operation);
	if (rc == SQLITE_OK && clean)
		rc = bind_watched_run(s, op);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	if (sqlite3_changes(c->db) == 1) {
		op->row.exists = false;
		return STORE_DONE;
	}
	enum store_outcome outcome = read_spot(c, op);
	return outcome == STORE_DONE ? STORE_CONFLICT : outcome;
}

static enum store_outcome release_former(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOT_FORMER);
	int rc = sqlite3_bind_text(s, 1, op->row.owner_node, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(s, 2, op->row.owner_boot.bytes, 16, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(s, 3, op->limit);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	op->count = (uint32_t)sqlite3_changes(c->db);
	return STORE_DONE;
}

static enum store_outcome list_spots(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOT_LIST);
	uint8_t after[KEY_BYTES];
	spot_key_bytes(op->row.key, after);
	int from = spot_key_is_zero(op->row.key) ? 0 : KEY_BYTES; // a shorter blob sorts first
	int rc = sqlite3_bind_blob(s, 1, after, from, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(s, 2, op->limit);
	bool good = true;
	op->count = 0;
	while (rc == SQLITE_OK && good && op->count < op->limit) {
		int step = sqlite3_step(s);
		if (step == SQLITE_DONE)
			break;
		rc = step == SQLITE_ROW ? SQLITE_OK : step;
		good = rc != SQLITE_OK || spot_row_read(s, &op->rows[op->count]);
		op->count += rc == SQLITE_OK && good;
	}
	sqlite3_reset(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	return good ? STORE_DONE : damaged_row(c);
}

static enum store_outcome draw_generations(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_GENERATION_READ);
	int rc = sqlite3_step(s);
	sqlite3_int64 last = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
	sqlite3_reset(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return failed(c, rc);
	if (last < 0)
		return damaged_row(c);
	uint64_t left = GENERATION_MAX - (uint64_t)last;
	uint64_t count = op->range_count < left ? op->range_count : left;
	op->range_count = count;
	if (count == 0)
		return STORE_EXHAUSTED;
	s = fresh(c, STATEMENT_GENERATION_DRAW);
	rc = sqlite3_bind_int64(s, 1, (sqlite3_int64)count);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	op->range_first = (uint64_t)last + 1;
	return STORE_DONE;
}

static enum store_outcome read_node(
	struct connection *c, const char *id, struct store_node_row *out)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_NODE_READ);
	*out = (struct store_node_row){0};
	int rc = sqlite3_bind_text(s, 1, id, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	bool good = rc != SQLITE_ROW || node_row_read(s, out);
	sqlite3_reset(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return failed(c, rc);
	return good ? STORE_DONE : damaged_row(c);
}

static enum store_outcome reread_node(
	struct connection *c, struct store_op *op, enum store_outcome outcome)
{
	char id[sizeof(op->node.node_id)];
	memcpy(id, op->node.node_id, sizeof(id));
	enum store_outcome read = read_node(c, id, &op->node);
	memcpy(op->node.node_id, id, sizeof(id));
	return read == STORE_DONE ? outcome : read;
}

// Whether `row`, as it stands, may be taken over by this join (O4).
static bool may_join(const struct store_node_row *row, const struct store_op *op)
{
	if (!row->exists)
		return store_boot_is_zero(op->expect_boot);
	return store_boot_equal(row->boot, op->expect_boot) &&
	       (store_boot_is_zero(row->boot) || row->beat == op->expect_beat);
}

static enum store_outcome join_node(struct connection *c, struct store_op *op)
{
	struct store_node_row now;
	enum store_outcome outcome = read_node(c, op->node.node_id, &now);
	if (outcome != STORE_DONE)
		return outcome;
	bool repeated = now.exists && store_boot_equal(now.boot, op->node.boot);
	if (repeated || !may_join(&now, op))
		return reread_node(c, op, repeated ? STORE_DONE : STORE_CONFLICT);
	if (now.lease_generation.value == GENERATION_MAX)
		return STORE_EXHAUSTED;
	op->node.lease_generation.value = now.lease_generation.value + 1;
	op->node.beat = 1;
	op->node.fenced = false;
	op->node.exists = true;
	sqlite3_stmt *s = fresh(c, STATEMENT_NODE_JOIN);
	int rc = node_row_bind(s, &op->node);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	return rc == SQLITE_OK ? STORE_DONE : failed(c, rc);
}

static enum store_outcome change_node(struct connection *c, struct store_op *op)
{
	bool renew = op->kind == STORE_NODE_RENEW;
	sqlite3_stmt *s = fresh(c, renew ? STATEMENT_NODE_RENEW : STATEMENT_NODE_LEAVE);
	int rc = sqlite3_bind_text(s, 1, op->node.node_id, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(s, 2, op->node.boot.bytes, 16, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	bool changed = sqlite3_changes(c->db) == 1;
	return reread_node(c, op, changed ? STORE_DONE : STORE_CONFLICT);
}

static enum store_outcome list_nodes(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_NODE_LIST);
	int rc = sqlite3_bind_int64(s, 1, STORE_NODES_MAX);
	bool good = true;
	op->count = 0;
	while (rc == SQLITE_OK && good && op->count < STORE_NODES_MAX) {
		int step = sqlite3_step(s);
		if (step == SQLITE_DONE)
			break;
		rc = step == SQLITE_ROW ? SQLITE_OK : step;
		good = rc != SQLITE_OK || node_row_read(s, &op->nodes[op->count]);
		op->count += rc == SQLITE_OK && good;
	}
	sqlite3_reset(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	return good ? STORE_DONE : damaged_row(c);
}

// ---- fencing (O6) ----
static enum store_outcome fence_node(struct connection *c, struct store_op *op)
{
	sqlite3_stmt *s = fresh(c, STATEMENT_NODE_FENCE);
	int rc = sqlite3_bind_text(s, 1, op->node.node_id, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(s, 2, op->node.boot.bytes, 16, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(s, 3, (sqlite3_int64)op->expect_beat);
	if (rc == SQLITE_OK)
		rc = step_once(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	bool changed = sqlite3_changes(c->db) == 1;
	return reread_node(c, op, changed ? STORE_DONE : STORE_CONFLICT);
}

static enum store_outcome run_take(struct connection *c, const struct store_op *op,
	const struct store_spot_row *seen, enum store_statement which)
{
	sqlite3_stmt *s = fresh(c, which);
	int rc = bind_fences(s, seen);
	if (rc == SQLITE_OK && which == STATEMENT_SPOT_TAKE) {
		rc |= sqlite3_bind_text(s, 5, op->row.owner_node, -1, SQLITE_TRANSIENT);
		rc |= sqlite3_bind_blob(s, 6, op->row.owner_boot.bytes, 16, SQLITE_TRANSIENT);
		rc |= sqlite3_bind_int64(s, 7, (sqlite3_int64)op->row.owner_lease.value);
		rc |= bind_op(s, 8, op->id);
		rc |= sqlite3_bind_int64(s, 9, (sqlite3_int64)store_version_of(op->id).value);
	}
	if (rc == SQLITE_OK)
		rc = step_once(s);
	return rc == SQLITE_OK ? STORE_DONE : failed(c, rc);
}

// The row changes hands (nothing of its former owner fits it any more) and is released by the new
// owner, both in the caller's transaction.
static enum store_outcome take_and_release(
	struct connection *c, struct store_op *op, struct store_spot_row *seen)
{
	if (seen->authority_generation.value == GENERATION_MAX)
		return STORE_EXHAUSTED; // T6
	enum store_outcome outcome = run_take(c, op, seen, STATEMENT_SPOT_TAKE);
	if (outcome != STORE_DONE || sqlite3_changes(c->db) != 1)
		return outcome;
	seen->owner_boot = op->row.owner_boot;
	seen->authority_generation.value++;
	outcome = run_take(c, op, seen, STATEMENT_SPOT_TAKEN);
	op->count += outcome == STORE_DONE && sqlite3_changes(c->db) == 1;
	return outcome;
}

enum { FENCE_PAGE = 16 };

static enum store_outcome read_page(struct connection *c, const struct store_op *op,
	struct store_spot_row *rows, uint32_t *count)
{
	uint32_t wanted = op->limit - op->count < FENCE_PAGE ? op->limit - op->count : FENCE_PAGE;
	sqlite3_stmt *s = fresh(c, STATEMENT_SPOTS_OF_NODE);
	int rc = sqlite3_bind_text(s, 1, op->node.node_id, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(s, 2, wanted);
	bool good = true;
	*count = 0;
	while (rc == SQLITE_OK && good) {
		int step = sqlite3_step(s);
		if (step == SQLITE_DONE)
			break;
		rc = step == SQLITE_ROW ? SQLITE_OK : step;
		good = rc != SQLITE_OK || spot_row_read(s, &rows[*count]);
		*count += rc == SQLITE_OK && good;
	}
	sqlite3_reset(s);
	if (rc != SQLITE_OK)
		return failed(c, rc);
	return good ? STORE_DONE : damaged_row(c);
}

static enum store_outcome fence_spots(struct connection *c, struct store_op *op)
{
	struct store_spot_row rows[FENCE_PAGE];
	struct store_boot_id run = op->node.boot;
	uint32_t count = 1;
	op->count = 0;
	enum store_outcome outcome = reread_node(c, op, STORE_DONE);
	bool over = op->node.exists && store_boot_equal(op->node.boot, run) &&
		    (op->node.fenced || store_boot_is_zero(run));
	if (outcome == STORE_DONE && !over)
		return STORE_CONFLICT;
	while (outcome == STORE_DONE && op->count < op->limit && count > 0) {
		uint32_t before = op->count;
		outcome = read_page(c, op, rows, &count);
		for (uint32_t i = 0; outcome == STORE_DONE && i < count; i++)
			outcome = take_and_release(c, op, &rows[i]);
		if (op->count == before)
			break;
	}
	return outcome;
}

bool store_op_writes(enum store_op_kind kind)
{
	return kind != STORE_NODE_READ && kind != STORE_NODE_LIST && kind != STORE_SPOT_READ &&
	       kind != STORE_SPOT_LIST;
}

enum store_outcome connection_run(struct connection *c, struct store_op *op)
{
	op->store_wall_ns = c->clock->wall_ns(c->clock);
	switch (op->kind) {
	case STORE_NODE_READ:
		return reread_node(c, op, STORE_DONE);
	case STORE_NODE_JOIN:
		return join_node(c, op);
	case STORE_NODE_RENEW:
	case STORE_NODE_LEAVE:
		return change_node(c, op);
	case STORE_NODE_LIST:
		return list_nodes(c, op);
	case STORE_SPOT_READ:
		return read_spot(c, op);
	case STORE_SPOT_CLAIM:
		return claim_spot(c, op);
	case STORE_SPOT_COMMIT:
		return commit_spot(c, op);
	case STORE_SPOT_ABORT:
	case STORE_SPOT_CLEAN:
	case STORE_SPOT_RELEASE:
		return delete_spot(c, op);
	case STORE_SPOT_FORMER:
		return release_former(c, op);
	case STORE_GENERATION_DRAW:
		return draw_generations(c, op);
	case STORE_SPOT_LIST:
		return list_spots(c, op);
	case STORE_NODE_FENCE:
		return fence_node(c, op);
	case STORE_SPOT_FENCE:
		return fence_spots(c, op);
	}
	CHECK(!"operation kind");
	return STORE_DAMAGED;
}

enum store_outcome connection_settle(struct connection *c, struct store_op *op)
{
	struct store_op look = *op;
	bool there = false;
	switch (op->kind) {
	case STORE_SPOT_CLAIM:
	case STORE_SPOT_COMMIT:
		if (read_spot(c, &look) != STORE_DONE)
			return STORE_UNKNOWN;
		there = look.row.exists && store_op_equal(look.row.last_operation, op->id);
		break;
	case STORE_SPOT_ABORT:
	case STORE_SPOT_CLEAN:
	case STORE_SPOT_RELEASE:
		if (read_spot(c, &look) != STORE_DONE)
			return STORE_UNKNOWN;
		there = !look.row.exists;
		break;
	case STORE_NODE_JOIN:
		if (read_node(c, op->node.node_id, &look.node) != STORE_DONE)
			return STORE_UNKNOWN;
		there = store_boot_equal(look.node.boot, op->node.boot);
		break;
	case STORE_NODE_READ:
	case STORE_NODE_RENEW:
	case STORE_NODE_LEAVE:
	case STORE_NODE_LIST:
	case STORE_SPOT_READ:
	case STORE_SPOT_FORMER:
	case STORE_GENERATION_DRAW:
	case STORE_SPOT_LIST:
	case STORE_NODE_FENCE:
	case STORE_SPOT_FENCE:
		return STORE_UNKNOWN; // repeating these is harmless
	}
	return there ? STORE_DONE : STORE_UNREACHABLE;
}
