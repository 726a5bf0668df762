// SPDX-License-Identifier: BSD-3-Clause
#include "config/internal.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/nearest.h"
#include "config/units.h"

enum { NS_PER_MS = 1000000, NS_PER_US = 1000 };

static const char *unit_complaint(enum units_status status, const char *shape, const char *step,
	const char *text, char *why, size_t why_bytes)
{
	switch (status) {
	case UNITS_OK:
		return NULL;
	case UNITS_NO_NUMBER:
		snprintf(why, why_bytes, "\"%.40s\" is not a %s", text, shape);
		break;
	case UNITS_BAD_UNIT:
		snprintf(why, why_bytes, "\"%.40s\" has no known unit: write a %s", text, shape);
		break;
	case UNITS_TOO_LARGE:
		snprintf(why, why_bytes, "\"%.40s\" is too large", text);
		break;
	case UNITS_INEXACT:
		snprintf(why, why_bytes, "\"%.40s\" is finer than %s", text, step);
		break;
	}
	return why;
}

static void print_bound(const struct config_key *key, uint64_t value, char *out, size_t capacity)
{
	if (key->value == CONFIG_SIZE)
		units_print_size(value, out, capacity);
	else if (key->value == CONFIG_TIME_MS)
		units_print_time(value, NS_PER_MS, out, capacity);
	else if (key->value == CONFIG_TIME_US)
		units_print_time(value, NS_PER_US, out, capacity);
	else if (key->value == CONFIG_MODE)
		snprintf(out, capacity, "0%" PRIo64, value);
	else
		snprintf(out, capacity, "%" PRIu64, value);
}

static const char *range_complaint(
	const struct config_key *key, uint64_t value, const char *text, char *why, size_t why_bytes)
{
	char low[32], high[32];
	if (value >= key->min && value <= key->max)
		return NULL;
	print_bound(key, key->min, low, sizeof low);
	print_bound(key, key->max, high, sizeof high);
	snprintf(why, why_bytes, "\"%.40s\" is out of range: %s to %s", text, low, high);
	return why;
}

static const char *number_store(
	const struct config_key *key, const char *text, void *field, char *why, size_t why_bytes)
{
	uint64_t value = 0;
	enum units_status status;
	const char *shape = "whole number";
	const char *step = "one";
	if (key->value == CONFIG_SIZE) {
		shape = "size such as 64MiB (B, KiB, MiB, GiB, TiB)";
		status = units_parse_size(text, &value);
	} else if (key->value == CONFIG_TIME_MS || key->value == CONFIG_TIME_US) {
		shape = "time such as 15s (us, ms, s, min, h)";
		step = key->value == CONFIG_TIME_MS ? "1ms" : "1us";
		status = units_parse_time(
			text, key->value == CONFIG_TIME_MS ? NS_PER_MS : NS_PER_US, &value);
	} else if (key->value == CONFIG_MODE) {
		shape = "file mode such as 0660 (octal)";
		status = units_parse_octal(text, &value);
	} else {
		status = units_parse_number(text, &value);
	}
	const char *wrong = unit_complaint(status, shape, step, text, why, why_bytes);
	if (wrong == NULL)
		wrong = range_complaint(key, value, text, why, why_bytes);
	if (wrong != NULL)
		return wrong;
	if (key->value == CONFIG_SIZE || key->value == CONFIG_COUNT64)
		*(uint64_t *)field = value;
	else if (key->value == CONFIG_ID)
		*(int64_t *)field = (int64_t)value;
	else
		*(uint32_t *)field = (uint32_t)value;
	return NULL;
}

static const char *bool_store(const char *text, void *field, char *why, size_t why_bytes)
{
	bool yes = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;
	if (!yes && strcmp(text, "no") != 0 && strcmp(text, "false") != 0) {
		snprintf(why, why_bytes, "\"%.40s\" is neither yes nor no", text);
		return why;
	}
	*(bool *)field = yes;
	return NULL;
}

static const char *choice_store(
	const struct config_key *key, const char *text, void *field, char *why, size_t why_bytes)
{
	size_t used = 0;
	for (uint32_t i = 0; key->choices[i] != NULL; i++) {
		if (strcmp(text, key->choices[i]) == 0) {
			*(uint32_t *)field = i + 1;
			return NULL;
		}
	}
	used = (size_t)snprintf(why, why_bytes, "\"%.40s\" is none of", text);
	for (uint32_t i = 0; key->choices[i] != NULL && used < why_bytes; i++)
		used += (size_t)snprintf(
			why + used, why_bytes - used, "%s %s", i == 0 ? "" : ",", key->choices[i]);
	return why;
}

static const char *text_store(
	const struct config_key *key, const char *text, void *field, char *why, size_t why_bytes)
{
	size_t size = strlen(text);
	size_t max = key->max != 0 ? key->max : key->capacity - 1;
	if (size < key->min || size > max) {
		snprintf(why, why_bytes, "a text of %zu bytes: %" PRIu64 " to %zu are allowed", size,
			key->min, max);
		return why;
	}
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
			snprintf(why, why_bytes, "a control character in the text");
			return why;
		}
	}
	memcpy(field, text, size + 1);
	return NULL;
}

// IPv4 is kept mapped.
static bool ip_parse(const char *text, uint8_t out[16], bool *out_is_ipv6)
{
	if (inet_pton(AF_INET6, text, out) == 1) {
		*out_is_ipv6 = true;
		return true;
	}
	memset(out, 0, 10);
	out[10] = out[11] = 0xff;
	*out_is_ipv6 = false;
	return inet_pton(AF_INET, text, out + 12) == 1;
}

static const char *ip_store(
	const struct config_key *key, const char *text, void *field, char *why, size_t why_bytes)
{
	uint8_t ip[16];
	bool is_ipv6, wanted = key->value == CONFIG_IP6;
	if (!ip_parse(text, ip, &is_ipv6) || is_ipv6 != wanted) {
		snprintf(why, why_bytes, "\"%.50s\" is not an %s", text, config_value_name(key->value));
		return why;
	}
	inet_ntop(wanted ? AF_INET6 : AF_INET, wanted ? ip : ip + 12, field, key->capacity);
	return NULL;
}

static const char *endpoint_store(const char *text, struct config_endpoint *out, char *why, size_t why_bytes)
{
	struct config_endpoint e = {0};
	char host[52];
	uint64_t port = 0;
	const char *colon = strrchr(text, ':');
	size_t size = colon == NULL ? 0 : (size_t)(colon - text);
	bool bracket = size >= 2 && text[0] == '[' && text[size - 1] == ']';
	if (strlen(text) < sizeof e.text && size > 0) {
		memcpy(host, text + bracket, size - (bracket ? 2 : 0));
		host[size - (bracket ? 2 : 0)] = '\0';
		if (ip_parse(host, e.ip, &e.is_ipv6) && e.is_ipv6 == bracket &&
			units_parse_number(colon + 1, &port) == UNITS_OK && port <= UINT16_MAX) {
			e.port = (uint16_t)port;
			memcpy(e.text, text, strlen(text) + 1);
			*out = e;
			return NULL;
		}
	}
	snprintf(why, why_bytes, "\"%.50s\" is not an address and port such as 127.0.0.1:7700 or [::1]:7700",
		text);
	return why;
}

const char *config_scalar_store(
	const struct config_key *key, const char *text, void *field, char *why, size_t why_bytes)
{
	switch (key->value) {
	case CONFIG_BOOL:
		return bool_store(text, field, why, why_bytes);
	case CONFIG_COUNT:
	case CONFIG_COUNT64:
	case CONFIG_ID:
	case CONFIG_SIZE:
	case CONFIG_TIME_MS:
	case CONFIG_TIME_US:
	case CONFIG_MODE:
		return number_store(key, text, field, why, why_bytes);
	case CONFIG_TEXT:
		return text_store(key, text, field, why, why_bytes);
	case CONFIG_CHOICE:
		return choice_store(key, text, field, why, why_bytes);
	case CONFIG_IP4:
	case CONFIG_IP6:
		return ip_store(key, text, field, why, why_bytes);
	case CONFIG_ENDPOINT:
		return endpoint_store(text, field, why, why_bytes);
	case CONFIG_CORES:
	case CONFIG_TEXTS:
	case CONFIG_ADDRESSES:
	case CONFIG_RECORDS:
	case CONFIG_TYPES:
		break;
	}
	return "not a single value";
}

// ---- lists of values ----

static const char *core_store(const struct config_key *key, const char *text, uint16_t *cores,
	uint32_t index, char *why, size_t why_bytes)
{
	uint64_t core;
	if (units_parse_number(text, &core) != UNITS_OK || core > key->max) {
		snprintf(why, why_bytes, "\"%.40s\" is not a core number of 0 to %" PRIu64, text, key->max);
		return why;
	}
	for (uint32_t i = 0; i < index; i++) {
		if (cores[i] == core) {
			snprintf(why, why_bytes, "core %" PRIu64 " is named twice", core);
			return why;
		}
	}
	cores[index] = (uint16_t)core;
	return NULL;
}

static const char *address_store(
	const char *text, struct config_address *out, char *why, size_t why_bytes)
{
	struct config_address a = {0};
	char host[52];
	uint64_t bits;
	const char *slash = strchr(text, '/');
	if (slash != NULL && strlen(text) < sizeof a.text) {
		memcpy(host, text, (size_t)(slash - text));
		host[slash - text] = '\0';
		if (ip_parse(host, a.ip, &a.is_ipv6) && units_parse_number(slash + 1, &bits) == UNITS_OK &&
			bits <= (a.is_ipv6 ? 128 : 32)) {
			a.prefix_bits = (uint8_t)bits;
			memcpy(a.text, text, strlen(text) + 1);
			*out = a;
			return NULL;
		}
	}
	snprintf(why, why_bytes, "\"%.50s\" is not an address and prefix such as 10.99.0.1/24 or fd00::1/64",
		text);
	return why;
}

static const char *element_store(const struct config_key *key, const char *text, void *list,
	uint32_t index, char *why, size_t why_bytes)
{
	if (key->value == CONFIG_CORES)
		return core_store(key, text, list, index, why, why_bytes);
	if (key->value == CONFIG_ADDRESSES)
		return address_store(text, (struct config_address *)list + index, why, why_bytes);
	struct config_key element = {.value = CONFIG_TEXT, .min = 1, .capacity = CONFIG_TEXT_BYTES};
	return text_store(&element, text, (char *)list + index * CONFIG_TEXT_BYTES, why, why_bytes);
}

bool config_list_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown)
{
	char why[256];
	uint32_t index = 0;
	if (node->kind != TREE_LIST)
		return config_complain(r, node->line, node->column, "%s: a list is needed", shown);
	for (uint32_t i = node->child; i != 0; i = r->tree->nodes[i].next, index++) {
		const struct tree_node *element = &r->tree->nodes[i];
		if (index == key->capacity)
			return config_complain(r, element->line, element->column,
				"%s: more than %u entries", shown, key->capacity);
		if (element->kind != TREE_SCALAR)
			return config_complain(r, element->line, element->column,
				"%s[%u]: a single value is needed", shown, index);
		const char *wrong = element_store(key, element->text,
			config_field(base, key->offset), index, why, sizeof why);
		if (wrong != NULL)
			return config_complain(
				r, element->line, element->column, "%s[%u]: %s", shown, index, wrong);
	}
	*(uint32_t *)config_field(base, key->count_offset) = index;
	return true;
}

// ---- module types: a map of any shape, handed on as JSON ----

static json_t *json_of_scalar(const struct tree_node *node)
{
	const char *text = node->text;
	char *end = NULL;
	if (node->quoted)
		return json_string(text);
	if (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
		return json_null();
	if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0)
		return json_true();
	if (strcmp(text, "false") == 0 || strcmp(text, "no") == 0)
		return json_false();
	uint64_t number;
	bool negative = text[0] == '-';
	if (units_parse_number(text + negative, &number) == UNITS_OK && number <= INT64_MAX)
		return json_integer(negative ? -(json_int_t)number : (json_int_t)number);
	if (strspn(text, "0123456789+-.eE") == strlen(text)) {
		double real = strtod(text, &end);
		json_t *value = *end == '\0' ? json_real(real) : NULL; // NULL when not finite
		if (value != NULL)
			return value;
	}
	return json_string(text); // NULL when it is not UTF-8
}

// Depth is bounded by TREE_DEPTH_MAX.
static json_t *json_of_node(const struct tree *tree, const struct tree_node *node)
{
	if (node->kind == TREE_SCALAR)
		return json_of_scalar(node);
	json_t *json = node->kind == TREE_MAP ? json_object() : json_array();
	for (uint32_t i = node->child; i != 0 && json != NULL; i = tree->nodes[i].next) {
		const struct tree_node *child = &tree->nodes[i];
		json_t *value = json_of_node(tree, child);
		int failed = node->kind == TREE_MAP ? json_object_set_new(json, child->key, value)
						    : json_array_append_new(json, value);
		if (failed != 0) {
			json_decref(json);
			json = NULL;
		}
	}
	return json;
}

static char *json_text_of(const struct tree *tree, const struct tree_node *node)
{
	if (node == NULL || (node->kind == TREE_SCALAR && node->text[0] == '\0'))
		return mem_strdup("{}");
	json_t *json = json_of_node(tree, node);
	char *dumped = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	char *copy = dumped == NULL ? NULL : mem_strdup(dumped);
	json_decref(json);
	free(dumped);
	return copy;
}

static const struct config_key type_lane_keys[] = {
	{.path = "count", .value = CONFIG_COUNT, .offset = offsetof(struct config_lane, count), .min = 1,
		.max = 4194303},
	{.path = "bytes", .value = CONFIG_SIZE, .offset = offsetof(struct config_lane, bytes),
		.min = UINT64_C(4) << 10, .max = (UINT64_C(1) << 40) - 1},
};

// Bounds of one lane of a type's Spots: {count: …, bytes: …}, either or both.
static bool type_lane_store(struct config_reading *r, const struct tree_node *node,
	struct config_lane *out, const char *shown)
{
	char why[128];
	if (node->kind != TREE_MAP)
		return config_complain(
			r, node->line, node->column, "%s.%s: a map is needed", shown, node->key);
	for (uint32_t i = node->child; i != 0; i = r->tree->nodes[i].next) {
		const struct tree_node *child = &r->tree->nodes[i];
		const struct config_key *key = NULL;
		for (size_t k = 0; k < ARRAY_COUNT(type_lane_keys); k++)
			if (strcmp(child->key, type_lane_keys[k].path) == 0)
				key = &type_lane_keys[k];
		if (key == NULL)
			return config_complain(r, child->key_line, child->key_column,
				"%s.%s.%s: unknown key; valid here: count, bytes", shown, node->key,
				child->key);
		const char *wrong = child->kind != TREE_SCALAR
			? "a number is needed"
			: number_store(key, child->text, config_field(out, key->offset), why, sizeof why);
		if (wrong != NULL)
			return config_complain(r, child->line, child->column, "%s.%s.%s: %s", shown,
				node->key, child->key, wrong);
	}
	return true;
}

static const struct config_key type_idle_key = {.path = "idle_timeout",
	.value = CONFIG_TIME_MS,
	.offset = offsetof(struct config_type, idle_timeout_ms),
	.max = 4000000000};

static bool type_idle_store(struct config_reading *r, const struct tree_node *child,
	struct config_type *out, const char *shown)
{
	char why[128];
	const char *wrong = child->kind != TREE_SCALAR
		? "a time is needed"
		: number_store(&type_idle_key, child->text, &out->idle_timeout_ms, why, sizeof why);
	out->idle_timeout_given = wrong == NULL;
	return wrong == NULL || config_complain(r, child->line, child->column, "%s.%s: %s", shown,
					child->key, wrong);
}

// One key of a type's map.
static bool type_key_store(struct config_reading *r, const struct tree_node *child,
	struct config_type *out, const char *shown)
{
	static const char *const keys[] = {
		"config", "application_lane", "lifecycle_lane", "idle_timeout"};
	struct nearest n;
	if (strcmp(child->key, "config") == 0)
		return true;
	if (strcmp(child->key, "application_lane") == 0)
		return type_lane_store(r, child, &out->application_lane, shown);
	if (strcmp(child->key, "lifecycle_lane") == 0)
		return type_lane_store(r, child, &out->lifecycle_lane, shown);
	if (strcmp(child->key, "idle_timeout") == 0)
		return type_idle_store(r, child, out, shown);
	nearest_begin(&n, child->key);
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		nearest_offer(&n, keys[i]);
	return config_complain(r, child->key_line, child->key_column,
		"%s.%s: unknown key; did you mean \"%s\"?", shown, child->key,
		n.best != NULL ? n.best : keys[0]);
}

static bool type_store(struct config_reading *r, const struct tree_node *node,
	struct config_type *out, const char *shown)
{
	char place[CONFIG_TEXT_BYTES];
	if (strlen(node->key) >= sizeof out->name)
		return config_complain(r, node->key_line, node->key_column,
			"%s: a type name has at most 64 bytes", shown);
	bool empty = node->kind == TREE_SCALAR && node->text[0] == '\0' && !node->quoted;
	if (node->kind != TREE_MAP && !empty)
		return config_complain(
			r, node->line, node->column, "%s.%s: a map is needed", shown, node->key);
	for (uint32_t i = node->child; i != 0; i = r->tree->nodes[i].next) {
		snprintf(place, sizeof place, "%s.%s", shown, node->key);
		if (!type_key_store(r, &r->tree->nodes[i], out, place))
			return false;
	}
	const struct tree_node *config = tree_child(r->tree, node, "config");
	if (config != NULL && config->kind == TREE_LIST)
		return config_complain(
			r, config->line, config->column, "%s.%s.config: a map is needed", shown, node->key);
	out->json = json_text_of(r->tree, config);
	if (out->json == NULL)
		return config_complain(r, node->line, node->column,
			"%s.%s.config: cannot be written as JSON", shown, node->key);
	memcpy(out->name, node->key, strlen(node->key) + 1);
	return true;
}

bool config_types_store(struct config_reading *r, const struct config_key *key,
	const struct tree_node *node, void *base, const char *shown)
{
	struct config_type *types = config_field(base, key->offset);
	uint32_t *count = config_field(base, key->count_offset);
	if (node->kind != TREE_MAP)
		return config_complain(r, node->line, node->column,
			"%s: a map from type name to {config: …} is needed", shown);
	for (uint32_t i = node->child; i != 0; i = r->tree->nodes[i].next) {
		const struct tree_node *child = &r->tree->nodes[i];
		if (*count == key->capacity)
			return config_complain(r, child->key_line, child->key_column,
				"%s: more than %u types", shown, key->capacity);
		if (!type_store(r, child, &types[*count], shown))
			return false;
		(*count)++;
	}
	return true;
}
