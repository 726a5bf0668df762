// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "config/internal.h"
#include "config/nearest.h"

enum { SHOWN_BYTES = 160 };

static bool walk_map(struct config_reading *r, const struct config_schema *schema, void *base,
	const struct tree_node *map, const char *section, const char *shown_before);

// Values are quoted as they were written: a message stays one line and moves no terminal.
static void keep_printable(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

bool config_complain(
	struct config_reading *r, uint32_t line, uint32_t column, const char *format, ...)
{
	if (r->report->error[0] != '\0')
		return false;
	int used = snprintf(r->report->error, sizeof r->report->error, "%s:%u:%u: ", r->file, line, column);
	if (used < 0 || (size_t)used >= sizeof r->report->error)
		return false;
	va_list args;
	va_start(args, format);
	vsnprintf(r->report->error + used, sizeof r->report->error - (size_t)used, format, args);
	va_end(args);
	keep_printable(r->report->error);
	return false;
}

void config_warn(struct config_reading *r, uint32_t line, uint32_t column, const char *format, ...)
{
	if (r->report->warning_count == CONFIG_WARNINGS_MAX)
		return;
	char *out = r->report->warnings[r->report->warning_count++];
	int used = snprintf(out, CONFIG_MESSAGE_BYTES, "%s:%u:%u: ", r->file, line, column);
	if (used < 0 || used >= CONFIG_MESSAGE_BYTES)
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(out + used, CONFIG_MESSAGE_BYTES - (size_t)used, format, args);
	va_end(args);
	keep_printable(out);
}

// ---- finding keys ----

static const struct config_key *key_find(const struct config_schema *schema, const char *path)
{
	for (uint32_t i = 0; i < schema->count; i++) {
		if (strcmp(schema->keys[i].path, path) == 0)
			return &schema->keys[i];
	}
	return NULL;
}

static bool is_section(const struct config_schema *schema, const char *path)
{
	size_t size = strlen(path);
	for (uint32_t i = 0; i < schema->count; i++) {
		if (strncmp(schema->keys[i].path, path, size) == 0 && schema->keys[i].path[size] == '.')
			return true;
	}
	return false;
}

// The first word of `path` behind the section; false when the row is elsewhere.
static bool word_in_section(const char *path, const char *section, char out[SHOWN_BYTES])
{
	size_t size = strlen(section);
	if (strncmp(path, section, size) != 0)
		return false;
	size_t word = strcspn(path + size, ".");
	memcpy(out, path + size, word);
	out[word] = '\0';
	return true;
}

static bool complain_unknown(struct config_reading *r, const struct config_schema *schema,
	const struct tree_node *node, const char *section, const char *shown)
{
	char word[SHOWN_BYTES], best[SHOWN_BYTES] = "", all[256] = "";
	size_t used = 0;
	struct nearest n, far;
	nearest_begin(&n, node->key);
	nearest_begin(&far, node->key);
	for (uint32_t i = 0; i < schema->count; i++) {
		const char *path = schema->keys[i].path;
		const char *last = strrchr(path, '.');
		nearest_offer(&far, last == NULL ? path : last + 1);
		if (far.best == (last == NULL ? path : last + 1))
			far.best = path; // the whole path is what helps
		if (!word_in_section(path, section, word))
			continue;
		uint32_t before = n.distance;
		nearest_offer(&n, word);
		if (n.distance < before)
			memcpy(best, word, sizeof best);
		if (strstr(all, word) == NULL && used < sizeof all)
			used += (size_t)snprintf(
				all + used, sizeof all - used, "%s%s", used == 0 ? "" : ", ", word);
	}
	if (best[0] != '\0')
		return config_complain(r, node->key_line, node->key_column,
			"%s: unknown key; did you mean \"%s\"?", shown, best);
	if (far.best != NULL)
		return config_complain(r, node->key_line, node->key_column,
			"%s: unknown key; did you mean \"%s\"?", shown, far.best);
	return config_complain(
		r, node->key_line, node->key_column, "%s: unknown key; valid here: %s", shown, all);
}

// ---- storing values ----

static bool is_empty(const struct tree_node *node)
{
	return node->kind == TREE_SCALAR && node->text[0] == '\0' && !node->quoted;
}

static bool records_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown)
{
	uint32_t *count = config_field(base, key->count_offset);
	char *records = config_field(base, key->offset);
	if (node->kind != TREE_LIST)
		return config_complain(r, node->line, node->column, "%s: a list of maps is needed", shown);
	for (uint32_t i = node->child; i != 0; i = r->tree->nodes[i].next) {
		const struct tree_node *element = &r->tree->nodes[i];
		char before[SHOWN_BYTES];
		if (*count == key->capacity)
			return config_complain(r, element->line, element->column,
				"%s: more than %u entries", shown, key->capacity);
		if (element->kind != TREE_MAP)
			return config_complain(
				r, element->line, element->column, "%s[%u]: a map is needed", shown, *count);
		snprintf(before, sizeof before, "%.120s[%u].", shown, *count);
		void *record = records + (size_t)*count * key->record->record_bytes;
		// Counted first: what a half-read record owns is freed with the rest.
		(*count)++;
		config_schema_defaults(key->record, record);
		if (!walk_map(r, key->record, record, element, "", before))
			return false;
	}
	return true;
}

static bool value_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown)
{
	char why[256];
	bool list = key->value >= CONFIG_CORES;
	if (is_empty(node))
		return list || config_complain(
				       r, node->key_line, node->key_column, "%s: needs a value", shown);
	if (key->value == CONFIG_RECORDS)
		return records_store(r, key, node, base, shown);
	if (key->value == CONFIG_TYPES)
		return config_types_store(r, key, node, base, shown);
	if (list)
		return config_list_store(r, key, node, base, shown);
	if (node->kind != TREE_SCALAR)
		return config_complain(
			r, node->line, node->column, "%s: a single value is needed", shown);
	const char *wrong = config_scalar_store(
		key, node->text, config_field(base, key->offset), why, sizeof why);
	return wrong == NULL ||
	       config_complain(r, node->line, node->column, "%s: %s", shown, wrong);
}

// Depth is bounded by TREE_DEPTH_MAX.
static bool walk_map(struct config_reading *r, const struct config_schema *schema, void *base,
	const struct tree_node *map, const char *section, const char *shown_before)
{
	for (uint32_t i = map->child; i != 0; i = r->tree->nodes[i].next) {
		const struct tree_node *node = &r->tree->nodes[i];
		char path[SHOWN_BYTES], shown[SHOWN_BYTES];
		snprintf(path, sizeof path, "%.90s%.64s", section, node->key);
		snprintf(shown, sizeof shown, "%.90s%.64s", shown_before, node->key);
		const struct config_key *key = strchr(node->key, '.') != NULL ? NULL : key_find(schema, path);
		if (key != NULL) {
			if (!value_store(r, key, node, base, shown))
				return false;
			continue;
		}
		if (strchr(node->key, '.') != NULL || !is_section(schema, path))
			return complain_unknown(r, schema, node, section, shown);
		if (is_empty(node))
			continue;
		if (node->kind != TREE_MAP)
			return config_complain(r, node->line, node->column, "%s: a map is needed", shown);
		strncat(path, ".", sizeof path - strlen(path) - 1);
		strncat(shown, ".", sizeof shown - strlen(shown) - 1);
		if (!walk_map(r, schema, base, node, path, shown))
			return false;
	}
	return true;
}

// ---- entry points ----

void config_schema_defaults(const struct config_schema *schema, void *base)
{
	char why[256];
	for (uint32_t i = 0; i < schema->count; i++) {
		const struct config_key *key = &schema->keys[i];
		void *field = config_field(base, key->offset);
		if (key->value == CONFIG_ID)
			*(int64_t *)field = -1;
		if (key->fallback != NULL)
			CHECK(config_scalar_store(key, key->fallback, field, why, sizeof why) == NULL);
	}
}

void config_defaults(struct config *out)
{
	*out = (struct config){0};
	config_schema_defaults(&config_schema, out);
}

void config_fini(struct config *config)
{
	for (uint32_t i = 0; i < CONFIG_MODULES_MAX; i++) {
		for (uint32_t j = 0; j < CONFIG_TYPES_MAX; j++) {
			mem_free(config->modules[i].types[j].json);
			config->modules[i].types[j].json = NULL;
		}
	}
}

static bool tree_store(struct config_reading *r, const struct tree_node *root, struct config *out)
{
	if (root != NULL && !is_empty(root)) {
		if (root->kind != TREE_MAP)
			return config_complain(r, root->line, root->column, "the file must be a map of keys");
		if (!walk_map(r, &config_schema, out, root, "", ""))
			return false;
	}
	return config_relations(r, out);
}

enum config_status config_parse_buffer(const char *name, const char *text, size_t size,
	struct config *out, struct config_report *report)
{
	struct tree tree;
	struct tree_error error;
	*report = (struct config_report){0};
	struct config_reading r = {.file = name, .tree = &tree, .report = report};
	config_defaults(out);
	if (size > CONFIG_FILE_BYTES_MAX) {
		config_complain(&r, 1, 1, "the file has more than %d bytes", CONFIG_FILE_BYTES_MAX);
		return CONFIG_REFUSED;
	}
	if (!tree_parse(text, size, &tree, &error)) {
		config_complain(&r, error.line, error.column, "%s", error.text);
		return CONFIG_REFUSED;
	}
	bool good = tree_store(&r, tree_at(&tree, tree.root), out);
	tree_fini(&tree);
	if (!good)
		config_fini(out);
	return good ? CONFIG_ACCEPTED : CONFIG_REFUSED;
}

// Reads at most one byte more than allowed, so that the parser refuses what is too long.
static char *file_read(const char *path, size_t *out_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	char *text = mem_zalloc(CONFIG_FILE_BYTES_MAX + 2);
	size_t size = 0;
	ssize_t got = 1;
	while (text != NULL && got > 0 && size <= CONFIG_FILE_BYTES_MAX) {
		got = read(fd, text + size, CONFIG_FILE_BYTES_MAX + 1 - size);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			size += (size_t)got;
	}
	int saved = errno;
	close(fd);
	errno = saved;
	if (got < 0) {
		mem_free(text);
		return NULL;
	}
	*out_size = size;
	return text;
}

enum config_status config_load(const char *path, struct config *out, struct config_report *report)
{
	size_t size = 0;
	char *text = file_read(path, &size);
	if (text == NULL) {
		*report = (struct config_report){.io_failed = true};
		snprintf(report->error, sizeof report->error, "%s: %s", path, strerror(errno));
		return CONFIG_REFUSED;
	}
	enum config_status status = config_parse_buffer(path, text, size, out, report);
	mem_free(text);
	return status;
}

int config_check(const char *path, bool strict)
{
	struct config *config = mem_zalloc(sizeof *config);
	struct config_report *report = mem_zalloc(sizeof *report);
	int code = 2;
	if (config == NULL || report == NULL) {
		fprintf(stderr, "%s: out of memory\n", path);
	} else if (config_load(path, config, report) != CONFIG_ACCEPTED) {
		fprintf(stderr, "error: %s\n", report->error);
	} else {
		char digest[CONFIG_DIGEST_BYTES];
		for (uint32_t i = 0; i < report->warning_count; i++)
			fprintf(stderr, "%s: %s\n", strict ? "error" : "warning", report->warnings[i]);
		config_digest(config, digest);
		if (!strict || report->warning_count == 0) {
			printf("%s: valid, digest %s\n", path, digest);
			code = 0;
		}
		config_fini(config);
	}
	mem_free(config);
	mem_free(report);
	return code;
}
