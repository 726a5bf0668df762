// SPDX-License-Identifier: BSD-3-Clause
#include "cli/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "config/nearest.h"
#include "config/units.h"

#define SOCKET_DEFAULT "/run/spotlane/control.sock"

struct local_verb {
	const char *noun, *verb;
	enum cli_local local;
};
static const struct local_verb local_verbs[] = {
	{"help", "", CLI_HELP},
	{"completion", "bash", CLI_COMPLETION},
	{"config", "check", CLI_CONFIG_CHECK},
	{"doctor", "", CLI_DOCTOR},
	{"version", "", CLI_VERSION},
};

PRINTF_LIKE(1, 2)
static int usage(const char *format, ...)
{
	va_list args;
	fprintf(stderr, "spotctl: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	return API_EXIT_USAGE;
}

// The tool's name of an argument: budget_ms is --budget and takes 10s, existing_ok is --existing-ok.
static bool is_time(const struct api_arg *arg)
{
	size_t size = strlen(arg->name);
	return size > 3 && strcmp(arg->name + size - 3, "_ms") == 0;
}

static bool flag_is(const struct api_arg *arg, const char *flag, size_t size)
{
	size_t own = strlen(arg->name) - (is_time(arg) ? 3 : 0);
	if (own != size)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (flag[i] != (arg->name[i] == '_' ? '-' : arg->name[i]))
			return false;
	}
	return true;
}

static bool choice_has(const struct api_arg *arg, const char *word, size_t size)
{
	for (const char *c = arg->choices; c != NULL && *c != '\0'; c += strcspn(c, "|"), c += *c == '|') {
		if (strcspn(c, "|") == size && memcmp(c, word, size) == 0)
			return true;
	}
	return false;
}

// ---- values ----

static int set_number(struct cli *cli, const struct api_arg *arg, const char *text)
{
	uint64_t value = 0;
	enum units_status status =
		is_time(arg) ? units_parse_time(text, 1000000, &value) : units_parse_number(text, &value);
	if (status != UNITS_OK)
		return usage("%s: \"%s\" is not a %s", arg->name, text,
			is_time(arg) ? "time such as 10s or 500ms" : "whole number");
	if (value > INT64_MAX || (int64_t)value < arg->min || (int64_t)value > arg->max)
		return usage("%s: %s is out of range: %" PRId64 " to %" PRId64, arg->name, text, arg->min,
			arg->max);
	json_object_set_new(cli->args, arg->name, json_integer((json_int_t)value));
	return API_EXIT_DONE;
}

static int set_value(struct cli *cli, const struct api_arg *arg, const char *text)
{
	size_t size = strlen(text);
	switch (arg->type) {
	case API_ARG_NUMBER:
		return set_number(cli, arg, text);
	case API_ARG_YES:
		json_object_set_new(cli->args, arg->name, json_true());
		return API_EXIT_DONE;
	case API_ARG_CHOICE:
		if (!choice_has(arg, text, size))
			return usage("%s: \"%s\" is none of %s", arg->name, text, arg->choices);
		break;
	case API_ARG_TEXT:
		if ((int64_t)size < arg->min || (int64_t)size > arg->max)
			return usage("%s: %" PRId64 " to %" PRId64 " bytes are allowed", arg->name, arg->min,
				arg->max);
		break;
	}
	json_t *value = json_string(text);
	if (value == NULL)
		return usage("%s: not UTF-8", arg->name);
	json_object_set_new(cli->args, arg->name, value);
	return API_EXIT_DONE;
}

// ---- flags ----

static int global_time(struct cli *cli, const char *text)
{
	uint64_t ms;
	if (units_parse_time(text, 1000000, &ms) != UNITS_OK || ms == 0 || ms > UINT32_MAX)
		return usage("--timeout: \"%s\" is not a time such as 10s", text);
	cli->timeout_ms = (uint32_t)ms;
	return API_EXIT_DONE;
}

// Flags that every verb takes. *taken: 0 = not one of them, else how many arguments it used.
static int global_flag(struct cli *cli, char **argv, int left, int *taken)
{
	const char *flag = argv[0];
	const char *value = strchr(flag, '=');
	size_t size = value != NULL ? (size_t)(value - flag) : strlen(flag);
	static const char *const valued[] = {"--socket", "--config", "--timeout", "--color"};
	*taken = 1;
	if (strcmp(flag, "--json") == 0 || strcmp(flag, "--jsonl") == 0) {
		cli->format = CLI_JSON;
		return API_EXIT_DONE;
	}
	if (strcmp(flag, "--strict") == 0) {
		cli->strict = true;
		return API_EXIT_DONE;
	}
	if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
		cli->local = CLI_HELP;
		return API_EXIT_DONE;
	}
	for (size_t i = 0; i < ARRAY_COUNT(valued); i++) {
		if (strlen(valued[i]) != size || strncmp(valued[i], flag, size) != 0)
			continue;
		if (value == NULL && left < 2)
			return usage("%s needs a value", valued[i]);
		value = value != NULL ? value + 1 : argv[1];
		*taken = value == argv[1] && flag[size] == '\0' ? 2 : 1;
		if (i == 0)
			cli->socket = value;
		else if (i == 1)
			cli->config_path = value;
		else if (i == 2)
			return global_time(cli, value);
		else if (strcmp(value, "never") == 0 || strcmp(value, "always") == 0)
			cli->color = value[0] == 'a';
		else if (strcmp(value, "auto") != 0)
			return usage("--color: \"%s\" is none of never, auto, always", value);
		return API_EXIT_DONE;
	}
	*taken = 0;
	return API_EXIT_DONE;
}

static int unknown_flag(const struct cli *cli, const char *flag)
{
	static const char *const globals[] = {"socket", "json", "color", "timeout", "help", "config"};
	struct nearest n;
	char bare[64];
	snprintf(bare, sizeof bare, "%.*s", (int)strcspn(flag + 2, "="), flag + 2);
	nearest_begin(&n, bare);
	const struct api_arg *a = cli->command == NULL ? NULL : cli->command->args;
	for (; a != NULL && a->name != NULL; a++)
		nearest_offer(&n, a->name);
	for (size_t i = 0; i < ARRAY_COUNT(globals); i++)
		nearest_offer(&n, globals[i]);
	if (n.best == NULL)
		return usage("unknown flag %s", flag);
	return usage("unknown flag %s; did you mean --%s?", flag, n.best);
}

static int command_flag(struct cli *cli, char **argv, int left, int *taken)
{
	const char *flag = argv[0] + 2;
	const char *equals = strchr(flag, '=');
	size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
	*taken = 1;
	for (const struct api_arg *a = cli->command->args; a->name != NULL; a++) {
		if (flag_is(a, flag, size)) {
			if (a->type == API_ARG_YES || equals != NULL)
				return set_value(cli, a, equals != NULL ? equals + 1 : "");
			if (left < 2)
				return usage("--%.*s needs a value", (int)size, flag);
			*taken = 2;
			return set_value(cli, a, argv[1]);
		}
		if (a->type == API_ARG_CHOICE && equals == NULL && choice_has(a, flag, size))
			return set_value(cli, a, flag);
	}
	return unknown_flag(cli, argv[0]);
}

// ---- words ----

static void offer_nouns(struct nearest *n)
{
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++)
		nearest_offer(n, api_command_at(i)->noun);
	for (size_t i = 0; i < ARRAY_COUNT(local_verbs); i++)
		nearest_offer(n, local_verbs[i].noun);
}

static bool noun_exists(const char *noun)
{
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (strcmp(api_command_at(i)->noun, noun) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(local_verbs); i++) {
		if (strcmp(local_verbs[i].noun, noun) == 0)
			return true;
	}
	return false;
}

static int unknown_noun(const char *noun)
{
	struct nearest n;
	nearest_begin(&n, noun);
	offer_nouns(&n);
	if (n.best == NULL)
		return usage("unknown command \"%s\"; see spotctl help", noun);
	return usage("unknown command \"%s\"; did you mean \"%s\"?", noun, n.best);
}

static int unknown_verb(const char *noun, const char *verb)
{
	struct nearest n;
	char verbs[160] = "";
	size_t used = 0;
	nearest_begin(&n, verb);
	for (uint32_t i = 0; i < API_COMMAND_COUNT + ARRAY_COUNT(local_verbs); i++) {
		bool remote = i < API_COMMAND_COUNT;
		const char *its_noun = remote ? api_command_at(i)->noun : local_verbs[i - API_COMMAND_COUNT].noun;
		const char *its_verb = remote ? api_command_at(i)->verb : local_verbs[i - API_COMMAND_COUNT].verb;
		if (strcmp(its_noun, noun) != 0 || its_verb[0] == '\0' || used >= sizeof verbs)
			continue;
		nearest_offer(&n, its_verb);
		used += (size_t)snprintf(
			verbs + used, sizeof verbs - used, "%s%s", used == 0 ? "" : ", ", its_verb);
	}
	if (verb[0] == '\0')
		return usage("%s needs a verb: %s", noun, verbs);
	if (n.best == NULL)
		return usage("unknown verb \"%s %s\"; %s has: %s", noun, verb, noun, verbs);
	return usage("unknown verb \"%s %s\"; did you mean \"%s %s\"?", noun, verb, noun, n.best);
}

// Finds the command of the first words; *used: how many of them it took.
static int command_find(struct cli *cli, const char *noun, const char *verb, uint32_t *used)
{
	if (!noun_exists(noun))
		return unknown_noun(noun);
	*used = 1;
	for (size_t i = 0; i < ARRAY_COUNT(local_verbs); i++) {
		if (strcmp(local_verbs[i].noun, noun) != 0)
			continue;
		if (local_verbs[i].verb[0] == '\0' || strcmp(local_verbs[i].verb, verb) == 0) {
			cli->local = local_verbs[i].local;
			*used = local_verbs[i].verb[0] == '\0' ? 1 : 2;
		}
	}
	cli->command = api_command_by_words(noun, "");
	if (cli->command != NULL || cli->local != CLI_REMOTE)
		return API_EXIT_DONE;
	*used = 2;
	cli->command = api_command_by_words(noun, verb);
	return cli->command != NULL ? API_EXIT_DONE : unknown_verb(noun, verb);
}

static int set_positional(struct cli *cli, const char *text)
{
	const struct api_arg *a = cli->command == NULL ? NULL : cli->command->args;
	for (; a != NULL && a->name != NULL; a++) {
		if (a->positional && json_object_get(cli->args, a->name) == NULL)
			return set_value(cli, a, text);
	}
	return usage("\"%s\": one word too many", text);
}

static int check_complete(struct cli *cli)
{
	const struct api_arg *a = cli->command == NULL ? NULL : cli->command->args;
	for (; a != NULL && a->name != NULL; a++) {
		if (!a->required || json_object_get(cli->args, a->name) != NULL)
			continue;
		if (strcmp(a->name, "nonce") != 0)
			return usage("%s%s%s needs %s: %s", cli->command->noun,
				cli->command->verb[0] != '\0' ? " " : "", cli->command->verb, a->name, a->text);
		uint8_t random[12];
		char nonce[2 * sizeof random + 1];
		rng_secret(random, sizeof random);
		for (size_t i = 0; i < sizeof random; i++)
			snprintf(nonce + 2 * i, 3, "%02x", random[i]);
		json_object_set_new(cli->args, "nonce", json_string(nonce));
	}
	return API_EXIT_DONE;
}

static void defaults_fill(struct cli *cli)
{
	const char *no_color = getenv("NO_COLOR");
	cli->socket = getenv("SPOTLANE_SOCKET");
	if (cli->socket == NULL || cli->socket[0] == '\0')
		cli->socket = SOCKET_DEFAULT;
	cli->format = CLI_TEXT;
	cli->color = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
	cli->args = json_object();
}

// Words of `help` and of local verbs are kept as they are; those of a command fill its arguments.
static int take_word(struct cli *cli, const char *word)
{
	if (cli->local == CLI_HELP || cli->local == CLI_CONFIG_CHECK) {
		if (cli->local == CLI_CONFIG_CHECK && cli->config_path == NULL)
			cli->config_path = word;
		else if (cli->word_count < ARRAY_COUNT(cli->words))
			cli->words[cli->word_count++] = word;
		return API_EXIT_DONE;
	}
	return set_positional(cli, word);
}

// The noun and, where it has verbs, the verb: the first words that are no flags.
static int take_command(struct cli *cli, int argc, char **argv, bool *is_word)
{
	const char *words[2] = {"", ""};
	int at[2] = {0, 0};
	uint32_t count = 0, used = 0;
	for (int i = 1; i < argc && count < 2; i++) {
		int taken = 0;
		if (argv[i][0] == '-') {
			int code = global_flag(cli, argv + i, argc - i, &taken);
			if (code != API_EXIT_DONE)
				return code;
			if (taken == 0)
				break; // a command's own flag: no word of the command comes after it
			i += taken - 1;
			continue;
		}
		words[count] = argv[i];
		at[count++] = i;
	}
	if (count == 0) {
		cli->local = CLI_HELP;
		return API_EXIT_DONE;
	}
	bool asked_help = cli->local == CLI_HELP;
	cli->local = CLI_REMOTE;
	int code = command_find(cli, words[0], words[1], &used);
	if (code != API_EXIT_DONE)
		return code;
	for (uint32_t i = 0; i < used && i < count; i++)
		is_word[at[i]] = true;
	for (int i = 1; i < argc && !asked_help; i++)
		asked_help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
	if (asked_help && cli->local != CLI_HELP) {
		cli->local = CLI_HELP;
		for (uint32_t i = 0; i < count && i < used; i++)
			cli->words[cli->word_count++] = words[i];
	}
	return API_EXIT_DONE;
}

int cli_parse(struct cli *cli, int argc, char **argv)
{
	enum { ARGUMENTS_MAX = 64 };
	bool is_word[ARGUMENTS_MAX] = {false};
	if (argc > ARGUMENTS_MAX)
		return usage("more than %d arguments", ARGUMENTS_MAX);
	defaults_fill(cli);
	int code = take_command(cli, argc, argv, is_word);
	bool literal = false; // behind --
	for (int i = 1; i < argc && code == API_EXIT_DONE; i++) {
		int taken = 1;
		if (is_word[i])
			continue;
		if (!literal && strcmp(argv[i], "--") == 0) {
			literal = true;
		} else if (literal || argv[i][0] != '-') {
			code = take_word(cli, argv[i]);
		} else {
			code = global_flag(cli, argv + i, argc - i, &taken);
			if (code != API_EXIT_DONE || taken > 0) {
				i += taken > 0 ? taken - 1 : 0;
				continue;
			}
			if (cli->command == NULL || strncmp(argv[i], "--", 2) != 0)
				return strncmp(argv[i], "--", 2) == 0 ? unknown_flag(cli, argv[i])
								      : usage("unknown flag %s", argv[i]);
			code = command_flag(cli, argv + i, argc - i, &taken);
			i += taken - 1;
		}
	}
	if (code != API_EXIT_DONE || cli->local == CLI_HELP)
		return code;
	return check_complete(cli);
}
