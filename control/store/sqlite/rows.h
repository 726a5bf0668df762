// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Stored rows to structs and back. What is in the file was written by some process at some time: every
// column is checked, and a row that does not fit is damage, never guessed at.

#include <sqlite3.h>
#include <stdbool.h>

#include "store/store.h"

#define SPOT_COLUMNS                                                                               \
	"key, id, state, kind, type_name, owner_node, owner_boot, owner_lease, "                   \
	"object_generation, authority_generation, last_operation, version"
#define NODE_COLUMNS "node_id, boot, lease_generation, beat, ttl_ms, fenced, host_id, address"

// The statement stands on a row of SPOT_COLUMNS (NODE_COLUMNS). False: damaged; out is unspecified.
MUST_USE bool spot_row_read(sqlite3_stmt *statement, struct store_spot_row *out);
MUST_USE bool node_row_read(sqlite3_stmt *statement, struct store_node_row *out);
// Binds SPOT_COLUMNS as parameters 1..12 (NODE_COLUMNS as 1..8).
MUST_USE int spot_row_bind(sqlite3_stmt *statement, const struct store_spot_row *row);
MUST_USE int node_row_bind(sqlite3_stmt *statement, const struct store_node_row *row);
MUST_USE int key_bind(sqlite3_stmt *statement, int at, struct spot_key key);
