// SPDX-License-Identifier: BSD-3-Clause
#include "store/memory/rows.h"

#include <stddef.h>

#include "base/check.h"
#include "base/mem.h"

enum { FIRST_BUCKETS = 1024 };

struct spot_rows_text {
	struct spot_rows_text *next;
	char text[sizeof(((struct store_spot_row *)NULL)->type_name)];
};
_Static_assert(sizeof(((struct store_spot_row *)NULL)->owner_node) ==
	sizeof(((struct spot_rows_text *)NULL)->text), "names of types and nodes are of one size");

struct spot_rows_node {
	struct spot_rows_node *next;
	struct spot_key key;
	struct store_boot_id owner_boot;
	struct store_op_id last_operation;
	struct lease_generation owner_lease;
	struct object_generation object_generation;
	struct authority_generation authority_generation;
	struct store_version version;
	const struct spot_rows_text *type_name;
	const struct spot_rows_text *owner_node;
	uint8_t state; // enum store_spot_state
	uint8_t kind;  // enum spot_kind
	uint8_t id_bytes;
	uint8_t id[];
};
_Static_assert(offsetof(struct spot_rows_node, id) <= 112, "16 bytes of id within 128");

bool spot_rows_init(struct spot_rows *rows)
{
	*rows = (struct spot_rows){.mask = FIRST_BUCKETS - 1};
	rows->buckets = mem_zalloc(FIRST_BUCKETS * sizeof(rows->buckets[0]));
	return rows->buckets != NULL;
}

void spot_rows_fini(struct spot_rows *rows)
{
	for (uint64_t b = 0; b <= rows->mask; b++)
		for (struct spot_rows_node *n = rows->buckets[b], *next; n != NULL; n = next) {
			next = n->next;
			mem_free(n);
		}
	for (struct spot_rows_text *t = rows->texts, *next; t != NULL; t = next) {
		next = t->next;
		mem_free(t);
	}
	mem_free(rows->buckets);
	*rows = (struct spot_rows){0};
}

static const struct spot_rows_text *text_of(struct spot_rows *rows, const char *text)
{
	struct spot_rows_text *t = rows->texts;
	while (t != NULL && strcmp(t->text, text) != 0)
		t = t->next;
	if (t != NULL)
		return t;
	t = mem_zalloc(sizeof(*t));
	CHECK(t != NULL);
	memcpy(t->text, text, strnlen(text, sizeof(t->text) - 1));
	t->next = rows->texts;
	rows->texts = t;
	return t;
}

// Keys are 128 bits of a keyed-out hash of the id already: a few of them serve.
static struct spot_rows_node **bucket_of(const struct spot_rows *rows, struct spot_key key)
{
	return &rows->buckets[(key.lo ^ (key.hi >> 7)) & rows->mask];
}

static struct spot_rows_node **slot_of(const struct spot_rows *rows, struct spot_key key)
{
	struct spot_rows_node **slot = bucket_of(rows, key);
	while (*slot != NULL && !spot_key_equal((*slot)->key, key))
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
			struct spot_rows_node **bucket = bucket_of(rows, n->key);
			next = n->next;
			n->next = *bucket;
			*bucket = n;
		}
	mem_free(old);
}

static void unpack(const struct spot_rows_node *node, struct store_spot_row *out)
{
	*out = (struct store_spot_row){
		.exists = true,
		.key = node->key,
		.id_bytes = node->id_bytes,
		.state = (enum store_spot_state)node->state,
		.kind = (enum spot_kind)node->kind,
		.owner_boot = node->owner_boot,
		.owner_lease = node->owner_lease,
		.object_generation = node->object_generation,
		.authority_generation = node->authority_generation,
		.last_operation = node->last_operation,
		.version = node->version,
	};
	memcpy(out->id, node->id, node->id_bytes);
	memcpy(out->type_name, node->type_name->text, sizeof(out->type_name));
	memcpy(out->owner_node, node->owner_node->text, sizeof(out->owner_node));
}

bool spot_rows_read(const struct spot_rows *rows, struct spot_key key, struct store_spot_row *out)
{
	const struct spot_rows_node *node = *slot_of(rows, key);
	if (node == NULL) {
		out->exists = false;
		return false;
	}
	unpack(node, out);
	return true;
}

void spot_rows_insert(struct spot_rows *rows, const struct store_spot_row *row)
{
	struct spot_rows_node *node =
		mem_zalloc(offsetof(struct spot_rows_node, id) + row->id_bytes);
	CHECK(node != NULL);
	if (rows->count > rows->mask)
		grow(rows);
	struct spot_rows_node **slot = slot_of(rows, row->key);
	CHECK(*slot == NULL);
	node->key = row->key;
	node->owner_boot = row->owner_boot;
	node->last_operation = row->last_operation;
	node->owner_lease = row->owner_lease;
	node->object_generation = row->object_generation;
	node->authority_generation = row->authority_generation;
	node->version = row->version;
	node->type_name = text_of(rows, row->type_name);
	node->owner_node = text_of(rows, row->owner_node);
	node->state = (uint8_t)row->state;
	node->kind = (uint8_t)row->kind;
	node->id_bytes = row->id_bytes;
	memcpy(node->id, row->id, row->id_bytes);
	*slot = node;
	rows->count++;
}

void spot_rows_advance(struct spot_rows *rows, const struct store_spot_row *row)
{
	struct spot_rows_node *node = *slot_of(rows, row->key);
	CHECK(node != NULL);
	node->state = (uint8_t)row->state;
	node->last_operation = row->last_operation;
	node->version = row->version;
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
	struct spot_rows *rows, bool (*visit)(const struct store_spot_row *row, void *arg), void *arg)
{
	struct store_spot_row row;
	for (uint64_t b = 0; b <= rows->mask; b++)
		for (struct spot_rows_node *n = rows->buckets[b], *next; n != NULL; n = next) {
			next = n->next;
			unpack(n, &row);
			if (!visit(&row, arg))
				return;
		}
}
