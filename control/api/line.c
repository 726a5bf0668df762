// SPDX-License-Identifier: BSD-3-Clause
#include "api/line.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Depth of brackets outside strings, before the parser builds anything.
static int depth_of(const char *text, size_t size)
{
	int depth = 0, deepest = 0;
	bool in_string = false;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return deepest;
}

// Depth is bounded by LINE_DEPTH_MAX.
static bool has_real(json_t *value)
{
	const char *key;
	size_t index;
	json_t *child;
	if (json_is_real(value))
		return true;
	json_object_foreach(value, key, child) {
		if (has_real(child))
			return true;
	}
	json_array_foreach(value, index, child) {
		if (has_real(child))
			return true;
	}
	return false;
}

static json_t *refuse(struct line_error *out, enum api_error code, const char *text)
{
	out->code = code;
	snprintf(out->text, sizeof out->text, "%s", text);
	return NULL;
}

json_t *line_parse(const char *text, size_t size, struct line_error *out_error)
{
	json_error_t error;
	if (size > LINE_BYTES_MAX)
		return refuse(out_error, API_ERROR_LINE_TOO_LONG, "more than 65536 bytes in a line");
	if (depth_of(text, size) > LINE_DEPTH_MAX)
		return refuse(out_error, API_ERROR_TOO_DEEP, "more than 8 levels");
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (json == NULL) {
		out_error->code = json_error_code(&error) == json_error_out_of_memory
					  ? API_ERROR_NO_MEMORY
					  : API_ERROR_MALFORMED;
		snprintf(out_error->text, sizeof out_error->text, "column %d: %.120s", error.column,
			error.text);
		return NULL;
	}
	if (!json_is_object(json)) {
		json_decref(json);
		return refuse(out_error, API_ERROR_MALFORMED, "not an object");
	}
	if (has_real(json)) {
		json_decref(json);
		return refuse(out_error, API_ERROR_NOT_INTEGER, "numbers are integers here");
	}
	return json;
}
