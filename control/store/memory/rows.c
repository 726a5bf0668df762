// SPDX-License-Identifier: BSD-3-Clause
#include "store/memory/rows.h"

#include "base/check.h"
#include "base/mem.h"

enum { FIRST_BUCKETS = 1024 };

bool spot_rows_init(struct spot_rows *rows)
{
	*rows = (struct spot_rows){.mask = FIRST_BUCKETS - 1};
	rows->buckets = mem_zalloc(FIRST_BUCKETS * sizeof(rows->buckets[0]));
	return rows->buckets != NULL;
}

static bool visit_remove(struct store_spot_row *row, void *arg)
{
	spot_rows_remove(arg, row->key);
	return true;
}

void spot_rows_fini(struct spot_rows *rows)
{
	spot_rows_each(rows, visit_remove, rows);
	mem_free(rows->buckets);
	*rows = (struct spot_rows){0};
}

// Keys are 128 bits of a keyed-out hash of the id already: a few of them serve.
static struct spot_rows_node **bucket_of(struct spot_rows *rows, struct spot_key key)
{
	return &rows->buckets[(key.lo ^ (key.hi >> 7)) & rows->mask];
}

static struct spot_rows_node **slot_of(struct spot_rows *rows, struct spot_key key)
{
	struct spot_rows_node **slot = bucket_of(rows, key);
	while (*slot != NULL && !spot_key_equal((*slot)->row.key, key))
		slot = &(*slot)->next;
	return slot;
}

// Without memory for a larger array the chains grow instead: slower, not wrong.
static void grow(struct spot_rows *rows)
{
	uint64_t old_buckets = rows->mask + 1;
	struct spot_rows_node **old = rows->buckets;
	struct spot_rows_node **larger = mem_zalloc(2 * old_buckets * sizeof(larger[0]));
	if (larger == NULL)
		return;
	rows->buckets = larger;
	rows->mask = 2 * old_buckets - 1;
	for (uint64_t b = 0; b < old_buckets; b++)
		for (struct spot_rows_node *n = old[b], *next; n != NULL; n = next) {
			struct spot_rows_node **bucket = bucket_of(rows, n->row.key);
			next = n->next;
			n->next = *bucket;
			*bucket = n;
		}
	mem_free(old);
}

struct store_spot_row *spot_rows_find(struct spot_rows *rows, struct spot_key key)
{
	struct spot_rows_node *node = *slot_of(rows, key);
	return node == NULL ? NULL : &node->row;
}

void spot_rows_insert(struct spot_rows *rows, const struct store_spot_row *row)
{
	struct spot_rows_node *node = mem_zalloc(sizeof(*node));
	CHECK(node != NULL);
	if (rows->count > rows->mask)
		grow(rows);
	struct spot_rows_node **slot = slot_of(rows, row->key);
	CHECK(*slot == NULL);
	node->row = *row;
	node->row.exists = true;
	*slot = node;
	rows->count++;
}

void spot_rows_remove(struct spot_rows *rows, struct spot_key key)
{
	struct spot_rows_node **slot = slot_of(rows, key);
	struct spot_rows_node *node = *slot;
	CHECK(node != NULL);
	*slot = node->next;
	mem_free(node);
	rows->count--;
}

void spot_rows_each(
	struct spot_rows *rows, bool (*visit)(struct store_spot_row *row, void *arg), void *arg)
{
	for (uint64_t b = 0; b <= rows->mask; b++)
		for (struct spot_rows_node *n = rows->buckets[b], *next; n != NULL; n = next) {
			next = n->next;
			if (!visit(&n->row, arg))
				return;
		}
}
