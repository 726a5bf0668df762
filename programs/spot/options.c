// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define NODE_DEFAULT "127.0.0.1:7700"

struct verb_words {
	const char *name;
	enum spot_verb verb;
	uint32_t operands_min;
	uint32_t operands_max;
	const char *usage;
	const char *about;
};

static const struct verb_words verbs[] = {
	{"request", SPOT_VERB_REQUEST, 1, 2, "request ID [PAYLOAD]",
		"sends a message to a Spot and prints its answer"},
	{"send", SPOT_VERB_SEND, 1, 2, "send ID [PAYLOAD]", "sends a message that has no answer"},
	{"create", SPOT_VERB_CREATE, 1, 2, "create ID --type-name TYPE [ARGUMENT]",
		"makes a User Spot; with --existing-ok an existing one will do"},
	{"close", SPOT_VERB_CLOSE, 1, 1, "close ID", "closes a User Spot"},
	{"lookup", SPOT_VERB_LOOKUP, 1, 1, "lookup ID", "says whether a Spot exists; never makes one"},
	{"join", SPOT_VERB_JOIN, 1, 2, "join ACTOR [SPOT]",
		"puts an Actor into a User Spot, or into the node's Entry Spot; it comes to be so"},
	{"leave", SPOT_VERB_LEAVE, 1, 1, "leave ACTOR",
		"takes an Actor out of its Spot: of a User Spot to the Entry Spot, of that for good"},
	{"listen", SPOT_VERB_LISTEN, 1, 2, "listen ID [PAYLOAD]",
		"sends a message that asks for pushes, and prints each as a line"},
	{"replay", SPOT_VERB_REPLAY, 1, 1, "replay FILE --rate N|max",
		"sends recorded messages (JSON lines) and prints a table of the results"},
	{"gen", SPOT_VERB_GEN, 1, 1, "gen vehicles --count N --seconds S --seed X",
		"writes position reports of vehicles as JSON lines"},
	{"help", SPOT_VERB_HELP, 0, 1, "help [VERB]", "prints this, or more about one verb"},
	{"version", SPOT_VERB_VERSION, 0, 0, "version", "prints the version"},
};

#define VERB(name) (1u << SPOT_VERB_##name)

enum {
	TALKS = VERB(REQUEST) | VERB(SEND) | VERB(CREATE) | VERB(CLOSE) | VERB(LOOKUP) |
		VERB(REPLAY) | VERB(JOIN) | VERB(LEAVE) | VERB(LISTEN),
	MESSAGES = VERB(REQUEST) | VERB(SEND) | VERB(LISTEN),
	ANSWERED = VERB(REQUEST) | VERB(CREATE) | VERB(CLOSE) | VERB(LOOKUP) | VERB(JOIN) |
		VERB(LEAVE),
};

typedef bool option_take(struct spot_options *o, const char *value);

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	if (text[0] < '0' || text[0] > '9')
		return false;
	char *end = NULL;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno != 0 || *end != 0 || value < min || value > max)
		return false;
	*out = value;
	return true;
}

static bool read_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value = 0;
	if (!read_number(text, min, max, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool take_node(struct spot_options *o, const char *v)
{
	o->node = v;
	return v[0] != 0;
}

static bool take_intent(struct spot_options *o, const char *v)
{
	o->intent = v;
	return v[0] != 0;
}

static bool take_type_name(struct spot_options *o, const char *v)
{
	o->type_name = v;
	return v[0] != 0;
}

static bool take_type(struct spot_options *o, const char *v)
{
	uint64_t value = 0;
	if (!read_number(v, 0, UINT16_MAX, &value))
		return false;
	o->message_type = (uint16_t)value;
	return true;
}

static bool take_type_map(struct spot_options *o, const char *v)
{
	o->type_map = v;
	return strchr(v, '=') != NULL;
}

static bool take_output(struct spot_options *o, const char *v)
{
	o->output = v;
	return v[0] != 0;
}

static bool take_content(struct spot_options *o, const char *v)
{
	static const char *const names[] = {"bytes", "json", "text"};
	for (int i = 0; i < 3; i++) {
		if (strcmp(v, names[i]) == 0) {
			o->content = i;
			return true;
		}
	}
	return false;
}

static bool take_budget(struct spot_options *o, const char *v)
{
	uint64_t ms = 0;
	if (!read_number(v, 1, 3600 * 1000, &ms))
		return false;
	o->budget_us = ms * 1000;
	return true;
}

static bool take_json(struct spot_options *o, const char *v)
{
	(void)v;
	o->json = true;
	return true;
}

static bool take_actor(struct spot_options *o, const char *v)
{
	(void)v;
	o->actor = true;
	return true;
}

static bool take_explain(struct spot_options *o, const char *v)
{
	(void)v;
	o->explain = true;
	return true;
}

static bool take_existing_ok(struct spot_options *o, const char *v)
{
	(void)v;
	o->existing_ok = true;
	return true;
}

static bool take_rate(struct spot_options *o, const char *v)
{
	if (strcmp(v, "max") == 0) {
		o->rate = SPOT_RATE_MAX_SPEED;
		return true;
	}
	return read_number(v, 1, 100 * 1000 * 1000, &o->rate);
}

static bool take_window(struct spot_options *o, const char *v)
{
	return read_u32(v, 1, 1000 * 1000, &o->window);
}

static bool take_repeat(struct spot_options *o, const char *v)
{
	return read_u32(v, 1, 1000 * 1000, &o->repeat);
}

static bool take_ports(struct spot_options *o, const char *v)
{
	return read_u32(v, 1, 64, &o->ports);
}

static bool take_count(struct spot_options *o, const char *v)
{
	return read_u32(v, 1, 10 * 1000 * 1000, &o->count);
}

static bool take_seconds(struct spot_options *o, const char *v)
{
	return read_u32(v, 1, 7 * 24 * 3600, &o->seconds);
}

static bool take_seed(struct spot_options *o, const char *v)
{
	return read_number(v, 0, UINT64_MAX, &o->seed);
}

struct option_words {
	const char *name;
	uint32_t verbs;
	const char *value; // how its value is written; NULL = none
	const char *wants;
	option_take *take;
	const char *about;
};

static const struct option_words options[] = {
	{"--node", TALKS, "HOST:PORT", "an address", take_node,
		"the node (default: $SPOTLANE_NODE, then " NODE_DEFAULT ")"},
	{"--json", TALKS, NULL, NULL, take_json, "print one JSON document"},
	{"--budget", TALKS, "MS", "milliseconds from 1 to 3600000", take_budget,
		"time for the whole call (default 5000)"},
	{"--intent", MESSAGES | VERB(REPLAY), "TYPE", "the name of an Instance type", take_intent,
		"build the Instance Spot if it does not exist"},
	{"--type", MESSAGES, "N", "a number from 0 to 65535", take_type,
		"message type, as the module numbers it (default 1)"},
	{"--content", MESSAGES | VERB(CREATE), "json|text|bytes", "json, text or bytes", take_content,
		"what the payload is (default: judged by looking at it)"},
	{"--actor", MESSAGES, NULL, NULL, take_actor, "ID is an Actor's: it is found wherever it is"},
	{"--explain", ANSWERED, NULL, NULL, take_explain, "print what each stage of the node decided"},
	{"--output", VERB(REQUEST), "FILE", "a path", take_output, "write the answer's payload to FILE"},
	{"--type-name", VERB(CREATE), "TYPE", "the name of a User type", take_type_name,
		"the type of the Spot to make"},
	{"--existing-ok", VERB(CREATE), NULL, NULL, take_existing_ok,
		"succeed when a Spot of that type exists already"},
	{"--rate", VERB(REPLAY), "N|max", "messages a second, or max", take_rate,
		"messages a second by the clock, or as fast as answers come"},
	{"--window", VERB(REPLAY), "N", "a number from 1 to 1000000", take_window,
		"messages in flight at most (default 256)"},
	{"--repeat", VERB(REPLAY), "N", "a number from 1 to 1000000", take_repeat,
		"play the file N times (default 1)"},
	{"--ports", VERB(REPLAY), "N", "a number from 1 to 64", take_ports,
		"source ports, to spread over the node's receive queues (default 1)"},
	{"--type-map", VERB(REPLAY), "NAME=N[,…]", "pairs NAME=NUMBER", take_type_map,
		"numbers of named message types (default position=1)"},
	{"--count", VERB(GEN) | VERB(LISTEN), "N", "a number from 1 to 10000000", take_count,
		"gen: vehicles; listen: pushes to wait for (default 2000)"},
	{"--seconds", VERB(GEN) | VERB(LISTEN), "S", "a number from 1 to 604800", take_seconds,
		"gen: length of the recording; listen: how long (default 3600)"},
	{"--seed", VERB(GEN), "X", "a number", take_seed, "same seed, same output (default 1)"},
};

static const struct verb_words *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static const struct verb_words *verb_words_of(enum spot_verb verb)
{
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		if (verbs[i].verb == verb)
			return &verbs[i];
	return NULL;
}

static void help_overview(void)
{
	printf("usage: spot VERB … (talks to the Spots of a Spotlane node)\n\n");
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		printf("  spot %-44s %s\n", verbs[i].usage, verbs[i].about);
	printf("\nPAYLOAD and ARGUMENT are text, @FILE, or - for standard input.\n"
	       "'spot help VERB' lists the options of a verb.\n\n"
	       "exit codes: 0 done, 1 refused, 2 wrong usage, 3 node not reached, 4 time over (outcome\n"
	       "unknown), 5 not permitted, 6 conflict, 7 not found, 8 unavailable, 9 no capacity, 10 partly done\n");
}

void options_help(enum spot_verb verb)
{
	const struct verb_words *words = verb_words_of(verb);
	if (!words) {
		help_overview();
		return;
	}
	printf("usage: spot %s\n%s\n", words->usage, words->about);
	const char *heading = "\noptions:\n";
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		const struct option_words *option = &options[i];
		if (!(option->verbs & (1u << verb)))
			continue;
		char left[64];
		snprintf(left, sizeof(left), "%s%s%s", option->name, option->value ? " " : "",
			option->value ? option->value : "");
		printf("%s  %-26s %s\n", heading, left, option->about);
		heading = "";
	}
}

static enum spot_exit take_option(struct spot_options *o, const char *verb, const char *name,
	const char *value, bool *out_used)
{
	const struct option_words *option = NULL;
	for (size_t i = 0; i < ARRAY_COUNT(options) && !option; i++)
		if (strcmp(options[i].name, name) == 0)
			option = &options[i];
	if (!option || !(option->verbs & (1u << o->verb))) {
		fprintf(stderr,
			"spot: 'spot %s' has no option %s. 'spot help %s' lists its options.\n",
			verb, name, verb);
		return SPOT_EXIT_USAGE;
	}
	*out_used = option->value != NULL;
	if (option->value && !value) {
		fprintf(stderr, "spot: %s wants %s after it.\n", name, option->wants);
		return SPOT_EXIT_USAGE;
	}
	if (!option->take(o, value)) {
		fprintf(stderr, "spot: %s wants %s, not '%s'.\n", name, option->wants, value);
		return SPOT_EXIT_USAGE;
	}
	return SPOT_EXIT_OK;
}

// What one option alone cannot tell.
static enum spot_exit check_whole(const struct spot_options *o, const struct verb_words *words)
{
	if (o->operand_count < words->operands_min) {
		fprintf(stderr, "spot: too few words. usage: spot %s\n", words->usage);
		return SPOT_EXIT_USAGE;
	}
	if (o->verb == SPOT_VERB_CREATE && !o->type_name) {
		fprintf(stderr, "spot: create needs --type-name TYPE: each User Spot has one.\n");
		return SPOT_EXIT_USAGE;
	}
	if (o->verb == SPOT_VERB_REPLAY && o->rate == 0) {
		fprintf(stderr, "spot: replay needs --rate N (messages a second) or --rate max.\n");
		return SPOT_EXIT_USAGE;
	}
	if (o->verb == SPOT_VERB_GEN && strcmp(o->operands[0], "vehicles") != 0) {
		fprintf(stderr, "spot: gen knows only 'vehicles', not '%s'.\n", o->operands[0]);
		return SPOT_EXIT_USAGE;
	}
	return SPOT_EXIT_OK;
}

static void set_defaults(struct spot_options *o)
{
	const char *node = getenv("SPOTLANE_NODE");
	*o = (struct spot_options){
		.node = node && node[0] ? node : NODE_DEFAULT,
		.type_map = "position=1",
		.content = -1,
		.message_type = 1,
		.budget_us = 5 * 1000 * 1000,
		.window = 256,
		.repeat = 1,
		.ports = 1,
		.count = 2000,
		.seconds = 3600,
		.seed = 1,
	};
}

static enum spot_exit take_operand(
	struct spot_options *o, const struct verb_words *words, const char *operand)
{
	if (o->operand_count == words->operands_max) {
		fprintf(stderr, "spot: '%s' is one word too many. usage: spot %s\n", operand,
			words->usage);
		return SPOT_EXIT_USAGE;
	}
	o->operands[o->operand_count++] = operand;
	return SPOT_EXIT_OK;
}

static const struct verb_words *find_verb(const char *name)
{
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return verb_words_of(SPOT_VERB_HELP);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return verb_words_of(SPOT_VERB_VERSION);
	return verb_find(name);
}

// Options that stand before the verb are taken once the verb is known.
static int verb_position(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (find_verb(argv[i]))
			return i;
		if (strncmp(argv[i], "--", 2) != 0)
			return 0;
		for (size_t k = 0; k < ARRAY_COUNT(options); k++)
			if (strcmp(options[k].name, argv[i]) == 0 && options[k].value)
				i++;
	}
	return 0;
}

static enum spot_exit take_words(
	int argc, char **argv, int verb_at, struct spot_options *o, const struct verb_words *words)
{
	bool only_operands = false;
	for (int i = 1; i < argc; i++) {
		bool used = false;
		enum spot_exit bad = SPOT_EXIT_OK;
		if (i == verb_at)
			continue;
		if (!only_operands && strcmp(argv[i], "--") == 0) {
			only_operands = true;
		} else if (!only_operands && strncmp(argv[i], "--", 2) == 0) {
			if (strcmp(argv[i], "--help") == 0) {
				o->verb = SPOT_VERB_HELP;
				o->operands[0] = words->name;
				o->operand_count = 1;
				return SPOT_EXIT_OK;
			}
			bad = take_option(o, words->name, argv[i], argv[i + 1], &used);
		} else {
			bad = take_operand(o, words, argv[i]);
		}
		if (bad)
			return bad;
		i += used;
	}
	return check_whole(o, words);
}

enum spot_exit options_parse(int argc, char **argv, struct spot_options *out)
{
	set_defaults(out);
	int verb_at = verb_position(argc, argv);
	if (verb_at == 0) {
		if (argc < 2)
			fprintf(stderr, "spot: say what to do: 'spot help' lists the verbs.\n");
		else
			fprintf(stderr,
				"spot: there is no verb '%s': 'spot help' lists the verbs.\n",
				argv[1]);
		return SPOT_EXIT_USAGE;
	}
	const struct verb_words *words = find_verb(argv[verb_at]);
	out->verb = words->verb;
	return take_words(argc, argv, verb_at, out, words);
}
