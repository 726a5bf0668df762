// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the store tests share: a fixture per provider, operations that are run to their end, rows.

#include "store/store.h"

struct provider {
	const char *name;
	struct store *(*open)(const char *directory);
};

struct fixture {
	const struct provider *provider;
	char directory[64];
	struct store *store;
};

extern const struct provider provider_memory, provider_sqlite;

struct fixture *fixture_create(const struct provider *provider);
void fixture_reopen(struct fixture *f); // sqlite: closes and opens the file again
void fixture_destroy(struct fixture *f);
const char *fixture_database(const struct fixture *f);
// A statement on the file through a connection of its own (sqlite).
void fixture_sql(const struct fixture *f, const char *sql);

// Submits and polls until the operation is complete; fails the test after 20 s.
enum store_outcome run_op(struct store *store, struct store_op *op);
void submit_op(struct store *store, struct store_op *op); // op->arg becomes non-NULL when complete
void await_op(struct store *store, struct store_op *op);
bool op_is_done(const struct store_op *op);

struct store_op_id op_number(uint64_t number);
struct store_boot_id boot_number(uint8_t number);
// A row for id "spot-<number>", owned by node "n1" in run boot_number(boot), generations number, 1.
struct store_spot_row row_number(uint64_t number, uint8_t boot);
struct store_op op_for_row(enum store_op_kind kind, const struct store_spot_row *row, uint64_t id);
struct store_op op_for_node(enum store_op_kind kind, const char *node_id, uint8_t boot, uint64_t id);
