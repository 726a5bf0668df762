// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A YAML text as a tree of nodes that know their place. Built from libyaml's events; what a
// configuration has no use for is refused with its place: anchors, aliases and tags (so that no
// text can grow when expanded), several documents, keys that are not plain words, repeated keys,
// more than TREE_DEPTH_MAX levels or TREE_NODES_MAX nodes. Any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { TREE_DEPTH_MAX = 12, TREE_NODES_MAX = 20000, TREE_KEYS_MAX = 256 };

enum tree_kind { TREE_SCALAR = 1, TREE_LIST = 2, TREE_MAP = 3 };

struct tree_node {
	enum tree_kind kind;
	bool quoted;             // a scalar that is text for sure
	uint32_t line, column;   // from 1
	uint32_t key_line, key_column;
	char *key;   // of a map's child, owned by the tree; NULL elsewhere
	char *text;  // of a scalar, owned by the tree
	uint32_t child, last_child, next; // indexes, 0 = none
	uint32_t count;  // children
};

struct tree {
	struct tree_node *nodes; // [0] is never used
	uint32_t count, capacity;
	uint32_t root; // 0: the text is empty
};

struct tree_error {
	uint32_t line, column;
	char text[256];
};

// True: *out is whole, ended with tree_fini. False: *out_error says where and why.
MUST_USE bool tree_parse(
	const char *text, size_t size, struct tree *out, struct tree_error *out_error);
void tree_fini(struct tree *tree);

static inline const struct tree_node *tree_at(const struct tree *tree, uint32_t index)
{
	return index == 0 ? NULL : &tree->nodes[index];
}
// The child of a map by key; NULL when absent.
const struct tree_node *tree_child(
	const struct tree *tree, const struct tree_node *map, const char *key);
