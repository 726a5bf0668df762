// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the files of control/config only.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/tree.h"

// One reading of one text.
struct config_reading {
	const char *file;
	const struct tree *tree;
	struct config_report *report;
};

// Records the first error with its place; always false.
PRINTF_LIKE(4, 5)
bool config_complain(
	struct config_reading *r, uint32_t line, uint32_t column, const char *format, ...);
PRINTF_LIKE(4, 5)
void config_warn(
	struct config_reading *r, uint32_t line, uint32_t column, const char *format, ...);

// Why a scalar is not acceptable; NULL when it was stored into the field.
const char *config_scalar_store(const struct config_key *key, const char *text, void *field,
	char *why, size_t why_bytes);
// Lists and maps that hold values; `shown` is the key's full path for messages.
MUST_USE bool config_list_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown);
MUST_USE bool config_types_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown);

// Relations between keys; fills what follows from others (workers.count, fabric names).
MUST_USE bool config_relations(struct config_reading *r, struct config *config);

// A field with the default of its row; fields without one are emptied.
void config_schema_defaults(const struct config_schema *schema, void *base);

static inline void *config_field(void *base, uint32_t offset)
{
	return (char *)base + offset;
}
static inline const void *config_field_const(const void *base, uint32_t offset)
{
	return (const char *)base + offset;
}
