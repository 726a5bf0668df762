// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The memory store's Spot rows: a chained hash table that doubles when it is full, so that a
// look-up costs the same at a million rows as at ten. One thread (the store's caller).
#include "store/store.h"

struct spot_rows_node {
	struct spot_rows_node *next;
	struct store_spot_row row;
};

struct spot_rows {
	struct spot_rows_node **buckets;
	uint64_t mask, count; // mask + 1 buckets, a power of two
};

// False: out of memory.
bool spot_rows_init(struct spot_rows *rows);
void spot_rows_fini(struct spot_rows *rows);

// NULL: no such row. The pointer holds until that row is removed.
struct store_spot_row *spot_rows_find(struct spot_rows *rows, struct spot_key key);
// The key must be absent; the copy is marked as existing.
void spot_rows_insert(struct spot_rows *rows, const struct store_spot_row *row);
// The key must be present.
void spot_rows_remove(struct spot_rows *rows, struct spot_key key);

// In no particular order; `visit` may remove the row it is shown, no other, and ends the walk by
// returning false.
void spot_rows_each(struct spot_rows *rows, bool (*visit)(struct store_spot_row *row, void *arg), void *arg);
