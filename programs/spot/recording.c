// SPDX-License-Identifier: BSD-3-Clause
#include "recording.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "spot/name.h"

enum {
	TYPE_NAMES_MAX = 64,
	LINE_BYTES_MAX = 17 * 1024 * 1024,
	PAYLOAD_BYTES_MAX = 16 * 1024 * 1024,
};

struct type_name {
	char name[64];
	uint16_t number;
};

struct reader {
	const char *path;
	uint64_t line;
	struct type_name types[TYPE_NAMES_MAX];
	uint32_t type_count;
	struct recording recording;
	uint64_t capacity;
};

PRINTF_LIKE(2, 3) static enum spot_exit say(const struct reader *reader, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "spot: %s:%" PRIu64 ": ", reader->path, reader->line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return SPOT_EXIT_USAGE;
}

static enum spot_exit map_read(struct reader *reader, const char *map)
{
	const char *at = map;
	while (*at) {
		const char *equals = strchr(at, '=');
		char *end = NULL;
		unsigned long number = equals ? strtoul(equals + 1, &end, 10) : 0;
		size_t size = equals ? (size_t)(equals - at) : 0;
		if (size == 0 || size >= sizeof(reader->types[0].name) || end == equals + 1 ||
			(*end != ',' && *end != 0) || number > UINT16_MAX ||
			reader->type_count == TYPE_NAMES_MAX) {
			fprintf(stderr,
				"spot: --type-map wants pairs NAME=NUMBER, commas between, not '%s'.\n",
				map);
			return SPOT_EXIT_USAGE;
		}
		struct type_name *type = &reader->types[reader->type_count++];
		memcpy(type->name, at, size);
		type->name[size] = 0;
		type->number = (uint16_t)number;
		at = *end ? end + 1 : end;
	}
	return SPOT_EXIT_OK;
}

static enum spot_exit read_type(const struct reader *reader, json_t *type, uint16_t *out)
{
	if (json_is_integer(type)) {
		json_int_t number = json_integer_value(type);
		if (number < 0 || number > UINT16_MAX)
			return say(reader, "\"type\" is a number from 0 to 65535, or a name");
		*out = (uint16_t)number;
		return SPOT_EXIT_OK;
	}
	if (!json_is_string(type))
		return say(
			reader, "\"type\" is missing: a number, or a name that --type-map knows");
	for (uint32_t i = 0; i < reader->type_count; i++) {
		if (strcmp(reader->types[i].name, json_string_value(type)) == 0) {
			*out = reader->types[i].number;
			return SPOT_EXIT_OK;
		}
	}
	return say(reader, "no number is known for type \"%s\": give one with --type-map %s=N",
		json_string_value(type), json_string_value(type));
}

static struct record *record_add(struct recording *recording, uint64_t *capacity)
{
	if (recording->count == *capacity) {
		uint64_t more = *capacity ? *capacity * 2 : 1024;
		struct record *records = realloc(recording->records, more * sizeof(*records));
		if (!records)
			return NULL;
		recording->records = records;
		*capacity = more;
	}
	struct record *record = &recording->records[recording->count];
	memset(record, 0, sizeof(*record));
	return record;
}

// A payload that is a string goes as text, anything else as JSON in its shortest form.
static bool record_keep_payload(struct record *record, json_t *payload)
{
	char *text = NULL;
	if (json_is_string(payload)) {
		record->content_type = SPOTLANE_CONTENT_TEXT;
		record->payload_bytes = (uint32_t)json_string_length(payload);
		text = malloc(json_string_length(payload) + 1);
		if (text)
			memcpy(text, json_string_value(payload), json_string_length(payload));
	} else if (payload) {
		record->content_type = SPOTLANE_CONTENT_JSON;
		text = json_dumps(
			payload, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		record->payload_bytes = text ? (uint32_t)strlen(text) : 0;
	} else {
		return true;
	}
	record->payload = (uint8_t *)text;
	return text != NULL;
}

static enum spot_exit take_object(struct reader *reader, json_t *object)
{
	json_t *id = json_object_get(object, "id");
	struct span bytes = span_of(json_string_value(id), json_string_length(id));
	if (!json_is_string(id) || !id_is_valid(bytes))
		return say(reader, "\"id\" is missing, or not 1 to 255 bytes without NUL");
	uint16_t type = 0;
	enum spot_exit bad = read_type(reader, json_object_get(object, "type"), &type);
	if (bad)
		return bad;
	struct record *record = record_add(&reader->recording, &reader->capacity);
	char *kept = record ? malloc(bytes.size) : NULL;
	if (!kept)
		return say(reader, "no memory for the recording");
	memcpy(kept, bytes.data, bytes.size);
	record->id = kept;
	record->id_bytes = (uint32_t)bytes.size;
	record->message_type = type;
	reader->recording.count++;
	if (!record_keep_payload(record, json_object_get(object, "payload")))
		return say(reader, "no memory for the recording");
	if (record->payload_bytes > PAYLOAD_BYTES_MAX)
		return say(reader, "the payload is larger than 16 MiB");
	return SPOT_EXIT_OK;
}

static enum spot_exit take_line(struct reader *reader, const char *line, size_t size)
{
	reader->line++;
	if (size > LINE_BYTES_MAX)
		return say(reader, "the line is longer than a message can be");
	if (strspn(line, " \t\r\n") == size)
		return SPOT_EXIT_OK;
	json_error_t error;
	json_t *object = json_loadb(line, size, 0, &error);
	if (!object)
		return say(reader, "not JSON: %s (column %d)", error.text, error.column);
	enum spot_exit bad = json_is_object(object)
		? take_object(reader, object)
		: say(reader, "not an object {\"id\":…,\"type\":…,\"payload\":…}");
	json_decref(object);
	return bad;
}

static int key_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct spot_key));
}

static void count_spots(struct recording *recording)
{
	struct spot_key *keys = malloc((recording->count ? recording->count : 1) * sizeof(*keys));
	if (!keys)
		return;
	for (uint64_t i = 0; i < recording->count; i++)
		keys[i] = spot_key_of(
			span_of(recording->records[i].id, recording->records[i].id_bytes));
	qsort(keys, recording->count, sizeof(*keys), key_order);
	for (uint64_t i = 0; i < recording->count; i++)
		recording->spots += i == 0 || !spot_key_equal(keys[i], keys[i - 1]);
	free(keys);
}

static enum spot_exit read_lines(struct reader *reader, FILE *file)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size = 0;
	enum spot_exit bad = SPOT_EXIT_OK;
	while (!bad && (size = getline(&line, &capacity, file)) >= 0)
		bad = take_line(reader, line, (size_t)size);
	free(line);
	if (!bad && ferror(file))
		bad = say(reader, "cannot read on: %s", strerror(errno));
	if (!bad && reader->recording.count == 0)
		bad = say(reader, "no message in the file");
	return bad;
}

enum spot_exit recording_read(const char *path, const char *type_map, struct recording *out)
{
	struct reader reader = {.path = path};
	enum spot_exit bad = map_read(&reader, type_map);
	if (bad)
		return bad;
	bool from_input = strcmp(path, "-") == 0;
	FILE *file = from_input ? stdin : fopen(path, "rb");
	if (!file) {
		fprintf(stderr, "spot: cannot open %s: %s\n", path, strerror(errno));
		return SPOT_EXIT_USAGE;
	}
	bad = read_lines(&reader, file);
	if (!from_input)
		fclose(file);
	if (bad) {
		recording_free(&reader.recording);
		return bad;
	}
	count_spots(&reader.recording);
	*out = reader.recording;
	return SPOT_EXIT_OK;
}

void recording_free(struct recording *recording)
{
	for (uint64_t i = 0; i < recording->count; i++) {
		free((char *)(uintptr_t)recording->records[i].id);
		free((uint8_t *)(uintptr_t)recording->records[i].payload);
	}
	free(recording->records);
	*recording = (struct recording){0};
}
