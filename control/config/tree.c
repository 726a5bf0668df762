// SPDX-License-Identifier: BSD-3-Clause
#include "config/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"

struct builder {
	struct tree *tree;
	struct tree_error *error;
	uint32_t stack[TREE_DEPTH_MAX];
	uint32_t depth;
	// The key read and waiting for its value, per level of a map.
	char *key;
	uint32_t key_line, key_column;
};

PRINTF_LIKE(3, 4)
static bool refuse(struct builder *b, yaml_mark_t mark, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(b->error->text, sizeof b->error->text, format, args);
	va_end(args);
	b->error->line = (uint32_t)mark.line + 1;
	b->error->column = (uint32_t)mark.column + 1;
	return false;
}

static char *copy_text(const yaml_char_t *text, size_t length)
{
	char *copy = mem_zalloc(length + 1);
	if (copy != NULL)
		memcpy(copy, text, length);
	return copy;
}

// Room for one more node; 0 when refused.
static uint32_t node_new(struct builder *b, const yaml_event_t *event, enum tree_kind kind)
{
	struct tree *t = b->tree;
	if (t->count >= TREE_NODES_MAX) {
		refuse(b, event->start_mark, "more than %d values in one file", TREE_NODES_MAX);
		return 0;
	}
	if (t->count == t->capacity) {
		uint32_t capacity = t->capacity == 0 ? 64 : t->capacity * 2;
		struct tree_node *nodes = mem_resize(t->nodes, capacity * sizeof *nodes);
		if (nodes == NULL) {
			refuse(b, event->start_mark, "out of memory");
			return 0;
		}
		t->nodes = nodes;
		t->capacity = capacity;
		if (t->count == 0)
			t->count = 1;
	}
	uint32_t index = t->count++;
	t->nodes[index] = (struct tree_node){
		.kind = kind,
		.line = (uint32_t)event->start_mark.line + 1,
		.column = (uint32_t)event->start_mark.column + 1,
	};
	return index;
}

static void attach(struct builder *b, uint32_t index)
{
	struct tree_node *node = &b->tree->nodes[index];
	node->key = b->key;
	node->key_line = b->key_line;
	node->key_column = b->key_column;
	b->key = NULL;
	if (b->depth == 0) {
		b->tree->root = index;
		return;
	}
	struct tree_node *parent = &b->tree->nodes[b->stack[b->depth - 1]];
	if (parent->child == 0)
		parent->child = index;
	else
		b->tree->nodes[parent->last_child].next = index;
	parent->last_child = index;
	parent->count++;
}

static bool expects_key(const struct builder *b)
{
	return b->depth > 0 && b->key == NULL &&
	       b->tree->nodes[b->stack[b->depth - 1]].kind == TREE_MAP;
}

static bool take_key(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	if (length == 0 || length > 64 || memchr(text, '\0', length) != NULL)
		return refuse(b, event->start_mark, "a key has 1 to 64 bytes");
	const struct tree_node *map = &b->tree->nodes[b->stack[b->depth - 1]];
	if (map->count == TREE_KEYS_MAX)
		return refuse(b, event->start_mark, "more than %d keys in one map", TREE_KEYS_MAX);
	const struct tree_node *former = tree_child(b->tree, map, text);
	if (former != NULL)
		return refuse(b, event->start_mark, "%s: repeated key, first given in line %u", text,
			former->key_line);
	b->key = copy_text(event->data.scalar.value, length);
	b->key_line = (uint32_t)event->start_mark.line + 1;
	b->key_column = (uint32_t)event->start_mark.column + 1;
	return b->key != NULL || refuse(b, event->start_mark, "out of memory");
}

static bool take_scalar(struct builder *b, const yaml_event_t *event)
{
	if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL)
		return refuse(b, event->start_mark, "anchors and tags are not used here");
	if (expects_key(b))
		return take_key(b, event);
	const yaml_char_t *value = event->data.scalar.value;
	size_t length = event->data.scalar.length;
	if (memchr(value, '\0', length) != NULL)
		return refuse(b, event->start_mark, "a NUL byte in a value");
	uint32_t index = node_new(b, event, TREE_SCALAR);
	if (index == 0)
		return false;
	b->tree->nodes[index].text = copy_text(value, length);
	b->tree->nodes[index].quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	attach(b, index);
	return b->tree->nodes[index].text != NULL || refuse(b, event->start_mark, "out of memory");
}

static bool take_start(struct builder *b, const yaml_event_t *event, enum tree_kind kind,
	bool decorated)
{
	if (decorated)
		return refuse(b, event->start_mark, "anchors and tags are not used here");
	if (expects_key(b))
		return refuse(b, event->start_mark, "a key must be a word");
	if (b->depth == TREE_DEPTH_MAX)
		return refuse(b, event->start_mark, "nested deeper than %d levels", TREE_DEPTH_MAX);
	uint32_t index = node_new(b, event, kind);
	if (index == 0)
		return false;
	attach(b, index);
	b->stack[b->depth++] = index;
	return true;
}

// *done: the stream ended.
static bool take_event(struct builder *b, const yaml_event_t *event, uint32_t *documents, bool *done)
{
	switch (event->type) {
	case YAML_STREAM_END_EVENT:
		*done = true;
		return true;
	case YAML_DOCUMENT_START_EVENT:
		if (++*documents > 1)
			return refuse(b, event->start_mark, "a second document in the file");
		return true;
	case YAML_ALIAS_EVENT:
		return refuse(b, event->start_mark, "aliases are not used here");
	case YAML_SCALAR_EVENT:
		return take_scalar(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return take_start(b, event, TREE_LIST,
			event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL);
	case YAML_MAPPING_START_EVENT:
		return take_start(b, event, TREE_MAP,
			event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return true;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return true;
	}
	return true;
}

bool tree_parse(const char *text, size_t size, struct tree *out, struct tree_error *out_error)
{
	yaml_parser_t parser;
	struct builder b = {.tree = out, .error = out_error};
	uint32_t documents = 0;
	bool done = false, good = true;
	*out = (struct tree){0};
	*out_error = (struct tree_error){1, 1, "out of memory"};
	if (!yaml_parser_initialize(&parser))
		return false;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	while (good && !done) {
		yaml_event_t event;
		if (!yaml_parser_parse(&parser, &event)) {
			// A decoding error has no mark of its own.
			yaml_mark_t mark = parser.error == YAML_READER_ERROR ? parser.mark
									     : parser.problem_mark;
			good = refuse(&b, mark, "not well-formed YAML: %s",
				parser.problem != NULL ? parser.problem : "out of memory");
			break;
		}
		good = take_event(&b, &event, &documents, &done);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	mem_free(b.key);
	if (!good)
		tree_fini(out);
	return good;
}

void tree_fini(struct tree *tree)
{
	for (uint32_t i = 1; i < tree->count; i++) {
		mem_free(tree->nodes[i].key);
		mem_free(tree->nodes[i].text);
	}
	mem_free(tree->nodes);
	*tree = (struct tree){0};
}

const struct tree_node *tree_child(
	const struct tree *tree, const struct tree_node *map, const char *key)
{
	if (map == NULL || map->kind != TREE_MAP)
		return NULL;
	for (uint32_t i = map->child; i != 0; i = tree->nodes[i].next) {
		if (strcmp(tree->nodes[i].key, key) == 0)
			return &tree->nodes[i];
	}
	return NULL;
}
