// SPDX-License-Identifier: BSD-3-Clause
#include "api/commands.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"

#define NUMBER(name, low, high, fallback, text)                                                    \
	{name, API_ARG_NUMBER, false, false, low, high, NULL, fallback, text}
#define CHOICE(name, choices, fallback, text)                                                      \
	{name, API_ARG_CHOICE, false, false, 0, 0, choices, fallback, text}
#define YES(name, text)                                                                            \
	{name, API_ARG_YES, false, false, 0, 0, NULL, "no", text}
#define TEXT(name, low, high, text)                                                                \
	{name, API_ARG_TEXT, false, false, low, high, NULL, NULL, text}
#define PLACE(name, text)                                                                          \
	{name, API_ARG_TEXT, true, true, 1, 255, NULL, NULL, text}
#define NONCE                                                                                      \
	{"nonce", API_ARG_TEXT, true, false, 8, 64, NULL, "drawn by the tool",                     \
		"Name of this change: the same nonce again returns the first receipt"}
#define BUDGET NUMBER("budget_ms", 1, 3600000, "10s", "Time the node may take")
#define CURSOR TEXT("cursor", 1, 20, "Where the page before ended (its `next`)")
#define LIMIT NUMBER("limit", 1, 100000, "100", "At most so many")

// The arguments of each command, in the order of help.
#define ARGS(name) static const struct api_arg args_##name[]

ARGS(none) = {{0}};
ARGS(id) = {PLACE("id", "The Spot's id"), {0}};
#define NODE {"node", API_ARG_TEXT, true, true, 1, 64, NULL, NULL, "The node's id"}
ARGS(node) = {NODE, {0}};
ARGS(node_fence) = {
	NODE,
	NUMBER("budget_ms", 1, 3600000, "10s", "Time to wait; the release goes on after it"),
	NONCE,
	{0},
};
ARGS(spot_list) = {
	CHOICE("kind", "entry|user|instance", "all", "Only this kind"),
	TEXT("match", 1, 255, "Only ids that begin so"),
	LIMIT,
	CURSOR,
	{0},
};
ARGS(spot_create) = {
	PLACE("id", "The Spot's id"),
	{"type", API_ARG_TEXT, true, true, 1, 64, NULL, NULL, "Its Spot type"},
	TEXT("argument", 0, 1024, "Handed to the type's create callback"),
	YES("existing_ok", "An existing Spot of the type is a success"),
	BUDGET,
	NONCE,
	{0},
};
ARGS(spot_close) = {
	PLACE("id", "The Spot's id"),
	NUMBER("generation", 1, INT64_MAX, "any", "Only this object generation"),
	BUDGET,
	NONCE,
	{0},
};
ARGS(lane_top) = {
	CHOICE("by", "items|bytes", "items", "What to rank by"),
	NUMBER("limit", 1, 100, "10", "At most so many"),
	{0},
};
ARGS(route_list) = {LIMIT, CURSOR, {0}};
ARGS(stats_show) = {
	NUMBER("worker", 0, 63, "all", "Only this worker"),
	YES("zero", "Also counters that are zero"),
	{0},
};
ARGS(config_show) = {
	CHOICE("what", "running|file|default", "running", "Which configuration"),
	{0},
};
ARGS(watch) = {
	YES("drops", "Refusals and drops by reason, as they change"),
	NUMBER("interval_ms", 100, 60000, "1s", "How often counters are compared"),
	{0},
};
ARGS(stop) = {
	NUMBER("deadline_ms", 0, 86400000, "of the configuration", "Time for work already accepted"),
	NONCE,
	{0},
};

static const struct api_command commands[API_COMMAND_COUNT] = {
#define X(name, op, noun, verb, role, class, args, text)                                           \
	{API_COMMAND_##name, op, noun, verb, API_ROLE_##role, API_##class, text, args_##args},
	API_COMMANDS(X)
#undef X
};

const struct api_command *api_command_at(uint32_t index)
{
	CHECK(index < API_COMMAND_COUNT);
	return &commands[index];
}

const struct api_command *api_command_by_op(const char *op)
{
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (strcmp(commands[i].op, op) == 0)
			return &commands[i];
	}
	return NULL;
}

const struct api_command *api_command_by_words(const char *noun, const char *verb)
{
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (strcmp(commands[i].noun, noun) == 0 && strcmp(commands[i].verb, verb) == 0)
			return &commands[i];
	}
	return NULL;
}

const char *api_role_name(enum api_role role)
{
	switch (role) {
	case API_ROLE_READ:
		return "read";
	case API_ROLE_OPERATE:
		return "operate";
	case API_ROLE_ADMINISTER:
		return "administer";
	}
	return "none";
}

const char *api_class_name(enum api_class class)
{
	switch (class) {
	case API_QUERY:
		return "query";
	case API_CHANGE:
		return "change";
	case API_STREAM:
		return "stream";
	}
	return "none";
}
