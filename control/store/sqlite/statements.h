// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The statements of the store and their meaning, on one connection. Blocking; the connection's thread.

#include <sqlite3.h>
#include <stdbool.h>

#include "base/clock.h"
#include "store/store.h"

// X(name, SQL). Every change of a Spot's row names key, owner boot and both generations itself (O7).
#define STORE_STATEMENTS(X)                                                                        \
	X(BEGIN_READ, "BEGIN DEFERRED")                                                            \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                          \
	X(COMMIT, "COMMIT")                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                    \
	X(SPOT_READ, "SELECT " SPOT_COLUMNS " FROM spots WHERE key = ?1")                          \
	X(SPOT_CLAIM, "INSERT INTO spots (" SPOT_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "  \
		      "?8, ?9, ?10, ?11, ?12) ON CONFLICT (key) DO NOTHING")                       \
	X(SPOT_COMMIT, "UPDATE spots SET state = 2, last_operation = ?6, version = ?7 "            \
		       "WHERE key = ?1 AND state = 1 AND owner_boot = ?2 AND "                     \
		       "object_generation = ?3 AND authority_generation = ?4 AND "                 \
		       "last_operation = ?5")                                                      \
	X(SPOT_ABORT, "DELETE FROM spots WHERE key = ?1 AND state = 1 AND owner_boot = ?2 AND "    \
		      "object_generation = ?3 AND authority_generation = ?4 AND "                  \
		      "last_operation = ?5")                                                       \
	X(SPOT_CLEAN, "DELETE FROM spots WHERE key = ?1 AND state = 1 AND owner_boot = ?2 AND "    \
		      "object_generation = ?3 AND authority_generation = ?4 AND "                  \
		      "last_operation = ?5 AND NOT EXISTS (SELECT 1 FROM nodes WHERE "             \
		      "node_id = ?6 AND boot = ?7 AND fenced = 0 AND beat <> ?8)")                 \
	X(SPOT_RELEASE, "DELETE FROM spots WHERE key = ?1 AND state = 2 AND owner_boot = ?2 AND "  \
			"object_generation = ?3 AND authority_generation = ?4")                    \
	X(SPOT_FORMER, "DELETE FROM spots WHERE key IN (SELECT key FROM (SELECT key FROM spots "   \
		       "WHERE owner_node = ?1 AND owner_boot < ?2 UNION ALL SELECT key FROM "      \
		       "spots WHERE owner_node = ?1 AND owner_boot > ?2) LIMIT ?3)")               \
	X(SPOT_LIST, "SELECT " SPOT_COLUMNS " FROM spots WHERE key > ?1 ORDER BY key LIMIT ?2")    \
	X(GENERATION_READ, "SELECT last_generation FROM generations WHERE one = 1")                \
	X(GENERATION_DRAW, "UPDATE generations SET last_generation = last_generation + ?1 "        \
			   "WHERE one = 1")                                                        \
	X(NODE_READ, "SELECT " NODE_COLUMNS " FROM nodes WHERE node_id = ?1")                      \
	X(NODE_LIST, "SELECT " NODE_COLUMNS " FROM nodes ORDER BY node_id LIMIT ?1")               \
	X(NODE_JOIN, "INSERT INTO nodes (" NODE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "   \
		     "?8) ON CONFLICT (node_id) DO UPDATE SET boot = excluded.boot, "              \
		     "lease_generation = excluded.lease_generation, beat = excluded.beat, "        \
		     "ttl_ms = excluded.ttl_ms, fenced = excluded.fenced, "                        \
		     "host_id = excluded.host_id, address = excluded.address")                     \
	X(NODE_RENEW, "UPDATE nodes SET beat = beat + 1 WHERE node_id = ?1 AND boot = ?2 AND "     \
		      "fenced = 0 AND beat < 9223372036854775807")                                 \
	X(NODE_LEAVE, "UPDATE nodes SET boot = zeroblob(16) WHERE node_id = ?1 AND boot = ?2")     \
	X(NODE_FENCE, "UPDATE nodes SET fenced = 1 WHERE node_id = ?1 AND boot = ?2 AND "          \
		      "(fenced = 1 OR beat = ?3)")                                                 \
	X(SPOTS_OF_NODE, "SELECT " SPOT_COLUMNS " FROM spots WHERE owner_node = ?1 LIMIT ?2")      \
	X(SPOT_TAKE, "UPDATE spots SET owner_node = ?5, owner_boot = ?6, owner_lease = ?7, "       \
		     "authority_generation = authority_generation + 1, last_operation = ?8, "      \
		     "version = ?9 WHERE key = ?1 AND owner_boot = ?2 AND "                        \
		     "object_generation = ?3 AND authority_generation = ?4")                       \
	X(SPOT_TAKEN, "DELETE FROM spots WHERE key = ?1 AND owner_boot = ?2 AND "                  \
		      "object_generation = ?3 AND authority_generation = ?4")

enum store_statement {
#define X(name, sql) STATEMENT_##name,
	STORE_STATEMENTS(X)
#undef X
		STATEMENT_COUNT,
};

struct connection {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_COUNT];
	struct clock *clock;
	int code; // extended SQLite code behind the last outcome that was not DONE or CONFLICT
};

// Opens an existing file, in WAL with synchronous = FULL, and prepares everything. SQLite's code.
MUST_USE int connection_open(struct connection *c, const char *path, uint32_t wait_ms);
void connection_close(struct connection *c); // also after a failed open

bool store_op_writes(enum store_op_kind kind);
// Runs one operation inside the caller's transaction and sets what it found; returns its outcome.
enum store_outcome connection_run(struct connection *c, struct store_op *op);
// BEGIN_*, COMMIT, ROLLBACK: SQLite's extended code.
MUST_USE int connection_do(struct connection *c, enum store_statement statement);
// After a COMMIT without a clear answer: looks whether this operation's change is there.
enum store_outcome connection_settle(struct connection *c, struct store_op *op);
// The outcome that an extended SQLite code stands for, when nothing was applied.
enum store_outcome outcome_of_code(sqlite3 *db, int code);
