// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The memory store's Spot rows: a chained hash table that doubles when it is full, so that a
// look-up costs the same at a million rows as at ten. A row is kept short: its id takes the bytes it
// has, and the names of types and nodes, which many rows share, are kept once. Callers see and give
// whole rows; what is kept is copied. One thread (the store's caller).
#include "store/store.h"

struct spot_rows_node;
struct spot_rows_text;

struct spot_rows {
	struct spot_rows_node **buckets;
	uint64_t mask, count; // mask + 1 buckets, a power of two
	struct spot_rows_text *texts; // names, each once; as many as there ever were types and nodes
};

// False: out of memory.
bool spot_rows_init(struct spot_rows *rows);
void spot_rows_fini(struct spot_rows *rows);

// False: no such row, and out says only that.
bool spot_rows_read(const struct spot_rows *rows, struct spot_key key, struct store_spot_row *out);
// The key must be absent; the row then exists.
void spot_rows_insert(struct spot_rows *rows, const struct store_spot_row *row);
// The key must be present: state, last operation and version become those of `row`.
void spot_rows_advance(struct spot_rows *rows, const struct store_spot_row *row);
// The key must be present.
void spot_rows_remove(struct spot_rows *rows, struct spot_key key);

// In no particular order; `visit` may remove the row it is shown, no other, and ends the walk by
// returning false.
void spot_rows_each(
	struct spot_rows *rows, bool (*visit)(const struct store_spot_row *row, void *arg), void *arg);
