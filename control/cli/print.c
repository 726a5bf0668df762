// SPDX-License-Identifier: BSD-3-Clause
#include "cli/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 16, CELL_BYTES = 300 };

// Ids are anyone's bytes: what a terminal would obey is shown, not sent.
void print_escaped(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
}

static size_t escape(const char *text, char *out, size_t capacity)
{
	size_t used = 0;
	for (; *text != '\0' && used + 5 < capacity; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == 0x7f)
			used += (size_t)snprintf(out + used, capacity - used, "\\x%02x", c);
		else
			out[used++] = (char)c;
	}
	out[used] = '\0';
	return used;
}

static bool ends_with(const char *key, const char *suffix)
{
	size_t a = strlen(key), b = strlen(suffix);
	return a >= b && strcmp(key + a - b, suffix) == 0;
}

static void scaled(double value, const char *const *units, double step, int last, char *out, size_t capacity)
{
	int i = 0;
	while (i < last && (value >= step || value <= -step)) {
		value /= step;
		i++;
	}
	snprintf(out, capacity, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
}

// A number in the unit that its key names.
static void number_cell(const char *key, json_int_t value, char *out, size_t capacity)
{
	static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	static const char *const times[] = {"ns", "us", "ms", "s"};
	if (ends_with(key, "bytes") || ends_with(key, "bytes_max"))
		scaled((double)value, bytes, 1024, 4, out, capacity);
	else if (ends_with(key, "_ns"))
		scaled((double)value, times, 1000, 3, out, capacity);
	else
		snprintf(out, capacity, "%" JSON_INTEGER_FORMAT, value);
}

static void cell(const char *key, json_t *value, char out[CELL_BYTES])
{
	out[0] = '\0';
	if (json_is_string(value))
		escape(json_string_value(value), out, CELL_BYTES);
	else if (json_is_integer(value))
		number_cell(key, json_integer_value(value), out, CELL_BYTES);
	else if (json_is_boolean(value))
		snprintf(out, CELL_BYTES, "%s", json_is_true(value) ? "yes" : "no");
}

// Characters, not bytes.
static int width_of(const char *text)
{
	int width = 0;
	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void label_of(const char *key, char *out, size_t capacity)
{
	static const char *const units[] = {"_ns", "_ms"};
	snprintf(out, capacity, "%s", key);
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (ends_with(out, units[i]))
			out[strlen(out) - strlen(units[i])] = '\0';
	}
	for (char *c = out; *c != '\0'; c++)
		*c = *c == '_' ? ' ' : *c;
}

// ---- tables ----

struct table {
	char keys[COLUMNS_MAX][64]; // dotted for one level of nesting
	int widths[COLUMNS_MAX];
	int count;
};

static json_t *row_value(json_t *row, const char *key)
{
	const char *dot = strchr(key, '.');
	json_t *value = json_object_get(row, key);
	if (value != NULL || dot == NULL)
		return value;
	char outer[64];
	snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
	return json_object_get(json_object_get(row, outer), dot + 1);
}

static void column_add(struct table *t, const char *prefix, const char *key)
{
	char name[64];
	snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
	for (int i = 0; i < t->count; i++) {
		if (strcmp(t->keys[i], name) == 0)
			return;
	}
	if (t->count < COLUMNS_MAX)
		memcpy(t->keys[t->count++], name, sizeof name);
}

static void columns_find(struct table *t, json_t *rows)
{
	size_t i;
	json_t *row, *value, *inner;
	const char *key, *inner_key;
	json_array_foreach(rows, i, row) {
		json_object_foreach(row, key, value) {
			if (strcmp(key, "key") == 0 || json_is_array(value))
				continue; // the id says it already
			if (!json_is_object(value))
				column_add(t, "", key);
			json_object_foreach(value, inner_key, inner) {
				if (!ends_with(inner_key, "_max"))
					column_add(t, key, inner_key);
			}
		}
	}
}

// What people look for in a list of Spots; the rest is in `spot show` and --json.
static bool spot_columns(struct table *t, json_t *rows)
{
	static const char *const listed[] = {"id", "kind", "type", "state", "home_worker",
		"application.items", "application.bytes", "turns", "refused", "idle_ns", NULL};
	static const char *const topped[] = {
		"id", "items", "items_max", "bytes", "bytes_max", "home_worker", NULL};
	json_t *first = json_array_get(rows, 0);
	const char *const *names = json_object_get(first, "application") != NULL ? listed
				   : json_object_get(first, "items_max") != NULL ? topped
										 : NULL;
	for (; names != NULL && *names != NULL; names++)
		column_add(t, "", *names);
	return t->count > 0;
}

static void table_print(json_t *rows, int indent)
{
	struct table t = {0};
	size_t i;
	json_t *row;
	char text[CELL_BYTES];
	if (!spot_columns(&t, rows))
		columns_find(&t, rows);
	for (int c = 0; c < t.count; c++) {
		label_of(t.keys[c], text, sizeof text);
		t.widths[c] = width_of(text);
		json_array_foreach(rows, i, row) {
			cell(t.keys[c], row_value(row, t.keys[c]), text);
			t.widths[c] = width_of(text) > t.widths[c] ? width_of(text) : t.widths[c];
		}
	}
	for (long r = -1; r < (long)json_array_size(rows); r++) {
		printf("%*s", indent, "");
		for (int c = 0; c < t.count; c++) {
			if (r < 0)
				label_of(t.keys[c], text, sizeof text);
			else
				cell(t.keys[c], row_value(json_array_get(rows, (size_t)r), t.keys[c]), text);
			int pad = c + 1 == t.count ? 0 : t.widths[c] - width_of(text) + 2;
			printf("%s%*s", text, pad, "");
		}
		printf("\n");
	}
}

// ---- objects ----

static void object_print(json_t *object, int indent);

static void array_print(const char *label, json_t *array, int indent)
{
	size_t i;
	json_t *item;
	char text[CELL_BYTES];
	if (json_is_object(json_array_get(array, 0))) {
		printf("%*s%s:\n", indent, "", label);
		table_print(array, indent + 2);
		return;
	}
	printf("%*s%s: ", indent, "", label);
	json_array_foreach(array, i, item) {
		cell("", item, text);
		printf("%s%s", i == 0 ? "" : ", ", text);
	}
	printf("%s\n", json_array_size(array) == 0 ? "none" : "");
}

// Depth is that of the server's replies.
static void object_print(json_t *object, int indent)
{
	const char *key;
	json_t *value;
	char label[64], text[CELL_BYTES];
	int width = 0;
	json_object_foreach(object, key, value) {
		label_of(key, label, sizeof label);
		if (!json_is_object(value) && !json_is_array(value) && width_of(label) > width)
			width = width_of(label);
	}
	json_object_foreach(object, key, value) {
		label_of(key, label, sizeof label);
		if (json_is_object(value)) {
			if (json_object_size(value) == 0)
				continue;
			printf("%*s%s:\n", indent, "", label);
			object_print(value, indent + 2);
		} else if (json_is_array(value)) {
			array_print(label, value, indent);
		} else {
			cell(key, value, text);
			printf("%*s%s%*s  %s\n", indent, "", label, width - width_of(label), "", text);
		}
	}
}

void print_text(const struct cli *cli, json_t *result)
{
	const char *text = json_string_value(json_object_get(result, "text"));
	const char *eal = json_string_value(json_object_get(result, "eal"));
	json_t *rows = json_object_get(result, "spots");
	if (rows == NULL || !json_is_array(rows))
		rows = json_object_get(result, "routes");
	if (!json_is_array(rows) && !json_is_object(json_object_get(result, "lease")))
		rows = json_object_get(result, "nodes");
	(void)cli;
	// One worker alone is the total; several are shown one below the other.
	json_t *workers = json_incref(json_object_get(result, "per_worker"));
	json_object_del(result, "per_worker");
	size_t i;
	json_t *worker;
	json_array_foreach(workers, i, worker) {
		if (json_array_size(workers) > 1)
			object_print(worker, 0);
	}
	json_decref(workers);
	if (text != NULL) { // a configuration, to be read as it is
		fputs(text, stdout);
		if (eal != NULL)
			printf("# EAL: %s\n", eal);
	} else if (json_is_array(rows)) {
		if (json_array_size(rows) == 0)
			printf("none\n");
		else
			table_print(rows, 0);
	} else {
		object_print(result, 0);
	}
}

void print_json(json_t *document)
{
	json_dumpf(document, stdout, JSON_COMPACT | JSON_SORT_KEYS);
	fputc('\n', stdout);
}

// ---- events and findings ----

static void change_print(json_t *change)
{
	printf("  %s %s: +%" JSON_INTEGER_FORMAT " (%" JSON_INTEGER_FORMAT ")\n",
		json_string_value(json_object_get(change, "group")),
		json_string_value(json_object_get(change, "reason")),
		json_integer_value(json_object_get(change, "more")),
		json_integer_value(json_object_get(change, "total")));
}

void print_event(const struct cli *cli, json_t *event)
{
	const char *key;
	json_t *value, *change;
	size_t i;
	char text[CELL_BYTES];
	(void)cli;
	cell("", json_object_get(event, "kind"), text);
	printf("%-18s", text);
	json_object_foreach(event, key, value) {
		if (strcmp(key, "kind") == 0 || json_is_array(value))
			continue;
		cell(key, value, text);
		printf(" %s=%s", key, text);
	}
	printf("\n");
	json_array_foreach(json_object_get(event, "changes"), i, change)
		change_print(change);
	fflush(stdout);
}

void print_findings(const struct cli *cli, json_t *findings)
{
	size_t i;
	json_t *finding;
	json_array_foreach(findings, i, finding) {
		const char *level = json_string_value(json_object_get(finding, "level"));
		bool good = strcmp(level, "ok") == 0;
		const char *color = good ? "\033[32m" : strcmp(level, "error") == 0 ? "\033[31m" : "\033[33m";
		printf("%s%-8s%s", cli->color ? color : "", level, cli->color ? "\033[0m" : "");
		print_escaped(stdout, json_string_value(json_object_get(finding, "fact")));
		printf("\n");
		if (good)
			continue;
		printf("        why: %s\n", json_string_value(json_object_get(finding, "why")));
		printf("        fix: %s\n", json_string_value(json_object_get(finding, "fix")));
	}
}
