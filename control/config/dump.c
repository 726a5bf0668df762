// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/internal.h"
#include "config/units.h"

struct text {
	char *data;
	size_t size, capacity;
	bool failed;
};

PRINTF_LIKE(2, 3)
static void add(struct text *t, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int need = vsnprintf(NULL, 0, format, args);
	if (need >= 0 && !t->failed && t->size + (size_t)need + 1 > t->capacity) {
		size_t capacity = (t->size + (size_t)need + 1) * 2;
		char *data = mem_resize(t->data, capacity);
		if (data == NULL)
			t->failed = true;
		else {
			t->data = data;
			t->capacity = capacity;
		}
	}
	if (need >= 0 && !t->failed) {
		vsnprintf(t->data + t->size, t->capacity - t->size, format, again);
		t->size += (size_t)need;
	}
	va_end(again);
	va_end(args);
}

// Every text is written quoted, so that none is taken for something else.
static void add_quoted(struct text *t, const char *text)
{
	add(t, "\"");
	for (; *text != '\0'; text++)
		add(t, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	add(t, "\"");
}

static void add_scalar(struct text *t, const struct config_key *key, const void *field)
{
	char number[40];
	switch (key->value) {
	case CONFIG_BOOL:
		add(t, "%s", *(const bool *)field ? "yes" : "no");
		return;
	case CONFIG_COUNT:
		add(t, "%" PRIu32, *(const uint32_t *)field);
		return;
	case CONFIG_COUNT64:
		add(t, "%" PRIu64, *(const uint64_t *)field);
		return;
	case CONFIG_ID:
		add(t, "%" PRId64, *(const int64_t *)field);
		return;
	case CONFIG_SIZE:
		units_print_size(*(const uint64_t *)field, number, sizeof number);
		add(t, "%s", number);
		return;
	case CONFIG_TIME_MS:
		units_print_time(*(const uint32_t *)field, 1000000, number, sizeof number);
		add(t, "%s", number);
		return;
	case CONFIG_TIME_US:
		units_print_time(*(const uint32_t *)field, 1000, number, sizeof number);
		add(t, "%s", number);
		return;
	case CONFIG_MODE:
		add(t, "0%03" PRIo32, *(const uint32_t *)field);
		return;
	case CONFIG_CHOICE:
		add(t, "%s", key->choices[*(const uint32_t *)field - 1]);
		return;
	case CONFIG_TEXT:
	case CONFIG_IP4:
	case CONFIG_IP6:
		add_quoted(t, field);
		return;
	case CONFIG_ENDPOINT:
		add_quoted(t, ((const struct config_endpoint *)field)->text);
		return;
	case CONFIG_CORES:
	case CONFIG_TEXTS:
	case CONFIG_ADDRESSES:
	case CONFIG_RECORDS:
	case CONFIG_TYPES:
		return;
	}
}

static void add_list(struct text *t, const struct config_key *key, const void *base)
{
	const char *list = config_field_const(base, key->offset);
	uint32_t count = *(const uint32_t *)config_field_const(base, key->count_offset);
	add(t, "[");
	for (uint32_t i = 0; i < count; i++) {
		add(t, "%s", i == 0 ? "" : ", ");
		if (key->value == CONFIG_CORES)
			add(t, "%u", ((const uint16_t *)(const void *)list)[i]);
		else if (key->value == CONFIG_ADDRESSES)
			add_quoted(t, ((const struct config_address *)(const void *)list)[i].text);
		else
			add_quoted(t, list + (size_t)i * CONFIG_TEXT_BYTES);
	}
	add(t, "]\n");
}

// Only what was given: the rest is as the module and the node say.
static void add_type_lane(struct text *t, const char *name, const struct config_lane *lane, int indent)
{
	char bytes[40];
	if (lane->count == 0 && lane->bytes == 0)
		return;
	add(t, "%*s%s: {", indent, "", name);
	if (lane->count > 0)
		add(t, "count: %u%s", lane->count, lane->bytes > 0 ? ", " : "");
	units_print_size(lane->bytes, bytes, sizeof bytes);
	if (lane->bytes > 0)
		add(t, "bytes: %s", bytes);
	add(t, "}\n");
}

// JSON is YAML: the settings are written on one line.
static void add_types(struct text *t, const struct config_key *key, const void *base, int indent)
{
	const struct config_type *types = config_field_const(base, key->offset);
	uint32_t count = *(const uint32_t *)config_field_const(base, key->count_offset);
	add(t, "%s\n", count == 0 ? " {}" : "");
	for (uint32_t i = 0; i < count; i++) {
		add(t, "%*s", indent + 2, "");
		add_quoted(t, types[i].name);
		add(t, ":\n%*sconfig: %s\n", indent + 4, "", types[i].json);
		add_type_lane(t, "application_lane", &types[i].application_lane, indent + 4);
		add_type_lane(t, "lifecycle_lane", &types[i].lifecycle_lane, indent + 4);
		char idle[40];
		units_print_time(types[i].idle_timeout_ms, 1000000, idle, sizeof idle);
		if (types[i].idle_timeout_given)
			add(t, "%*sidle_timeout: %s\n", indent + 4, "", idle);
	}
}

// A field that was not given and has no default is left out.
static bool is_absent(const struct config_key *key, const void *field)
{
	if (key->fallback != NULL)
		return false;
	switch (key->value) {
	case CONFIG_ID:
		return *(const int64_t *)field < 0;
	case CONFIG_CHOICE:
		return *(const uint32_t *)field == 0;
	case CONFIG_TEXT:
	case CONFIG_IP4:
	case CONFIG_IP6:
		return *(const char *)field == '\0';
	case CONFIG_ENDPOINT:
		return ((const struct config_endpoint *)field)->text[0] == '\0';
	case CONFIG_BOOL:
	case CONFIG_COUNT:
	case CONFIG_COUNT64:
	case CONFIG_SIZE:
	case CONFIG_TIME_MS:
	case CONFIG_TIME_US:
	case CONFIG_MODE:
	case CONFIG_CORES:
	case CONFIG_TEXTS:
	case CONFIG_ADDRESSES:
	case CONFIG_RECORDS:
	case CONFIG_TYPES:
		return false;
	}
	return false;
}

// A key that the other kind of fabric may not carry is left out although it has a default.
static bool is_foreign(
	const struct config_schema *schema, const struct config_key *key, const void *base)
{
	const struct config_fabric *fabric = base;
	if (schema->record_bytes != sizeof *fabric || fabric->kind != CONFIG_FABRIC_UDP)
		return false;
	return strcmp(key->path, "kind") != 0 && strcmp(key->path, "name") != 0 &&
	       strcmp(key->path, "listen") != 0;
}

// Cores say how many workers there are; an empty list says nothing.
static bool is_implied(const struct config_key *key, const void *base)
{
	const struct config *config = base;
	if (key->count_offset == offsetof(struct config, workers.core_count))
		return config->workers.core_count == 0;
	return key->value == CONFIG_COUNT && key->offset == offsetof(struct config, workers.count) &&
	       config->workers.core_count != 0;
}

static void add_schema(
	struct text *t, const struct config_schema *schema, const void *base, int indent);

static void add_records(struct text *t, const struct config_key *key, const void *base, int indent)
{
	const char *records = config_field_const(base, key->offset);
	uint32_t count = *(const uint32_t *)config_field_const(base, key->count_offset);
	add(t, "%s\n", count == 0 ? " []" : "");
	for (uint32_t i = 0; i < count; i++) {
		add(t, "%*s-\n", indent + 2, "");
		add_schema(t, key->record, records + (size_t)i * key->record->record_bytes, indent + 4);
	}
}

static void add_value(struct text *t, const struct config_key *key, const void *base, int indent)
{
	if (key->value == CONFIG_RECORDS) {
		add_records(t, key, base, indent);
	} else if (key->value == CONFIG_TYPES) {
		add_types(t, key, base, indent);
	} else if (key->value >= CONFIG_CORES) {
		add(t, " ");
		add_list(t, key, base);
	} else {
		add(t, " ");
		add_scalar(t, key, config_field_const(base, key->offset));
		add(t, "\n");
	}
}

// Opens the sections of `path` that differ from those of the row before; returns the last word.
static const char *add_sections(struct text *t, const char *path, const char *before, int *indent)
{
	const char *dot;
	bool same = before != NULL;
	while ((dot = strchr(path, '.')) != NULL) {
		size_t size = (size_t)(dot - path) + 1;
		same = same && strncmp(path, before, size) == 0;
		if (!same)
			add(t, "%*s%.*s:\n", *indent, "", (int)size - 1, path);
		else
			before += size;
		path += size;
		*indent += 2;
	}
	return path;
}

static void add_schema(
	struct text *t, const struct config_schema *schema, const void *base, int indent)
{
	const char *before = NULL;
	for (uint32_t i = 0; i < schema->count; i++) {
		const struct config_key *key = &schema->keys[i];
		int deep = indent;
		if (is_absent(key, config_field_const(base, key->offset)) ||
			is_foreign(schema, key, base) ||
			(schema == &config_schema && is_implied(key, base)))
			continue;
		const char *word = add_sections(t, key->path, before, &deep);
		add(t, "%*s%s:", deep, "", word);
		add_value(t, key, base, deep);
		before = key->path;
	}
}

char *config_dump(const struct config *config)
{
	struct text t = {0};
	add_schema(&t, &config_schema, config, 0);
	if (!t.failed)
		return t.data;
	mem_free(t.data);
	return NULL;
}

void config_digest(const struct config *config, char out[CONFIG_DIGEST_BYTES])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char *text = config_dump(config);
	out[0] = '\0';
	if (text == NULL)
		return;
	crypto_hash_sha256(hash, (const unsigned char *)text, strlen(text));
	sodium_bin2hex(out, CONFIG_DIGEST_BYTES, hash, sizeof hash);
	mem_free(text);
}
