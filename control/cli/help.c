// SPDX-License-Identifier: BSD-3-Clause
#include "cli/internal.h"

#include <string.h>

static bool is_time(const struct api_arg *arg)
{
	size_t size = strlen(arg->name);
	return size > 3 && strcmp(arg->name + size - 3, "_ms") == 0;
}

static void flag_name(const struct api_arg *arg, char *out, size_t capacity)
{
	snprintf(out, capacity, "%.*s", (int)(strlen(arg->name) - (is_time(arg) ? 3 : 0)), arg->name);
	for (char *c = out; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
}

static void help_all(void)
{
	printf("spotctl: control of a Spotlane node\n\n"
	       "usage: spotctl [--socket PATH] [--json] [--color=never] [--timeout TIME] NOUN [VERB] …\n\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		char words[40];
		snprintf(words, sizeof words, "%s%s%s", c->noun, c->verb[0] != '\0' ? " " : "", c->verb);
		printf("  %-14s %s\n", words, c->text);
	}
	printf("  %-14s %s\n", "config check", "Check a configuration file; needs no daemon");
	printf("  %-14s %s\n", "completion", "completion bash: a script for the shell");
	printf("  %-14s %s\n", "help", "This page; help NOUN, help NOUN VERB for more");
	printf("\nThe socket is --socket, else $SPOTLANE_SOCKET, else /run/spotlane/control.sock.\n"
	       "Exit: 0 done or yes, 1 failed or no, 2 usage, 3 no daemon, 4 time limit, 5 not permitted,\n"
	       "      6 conflict, 7 not found, 8 unavailable, 9 capacity, 10 partly done, 70 internal\n");
}

static void help_command(const struct api_command *c)
{
	printf("usage: spotctl %s%s%s", c->noun, c->verb[0] != '\0' ? " " : "", c->verb);
	for (const struct api_arg *a = c->args; a->name != NULL; a++) {
		if (a->positional)
			printf(" %s", strcmp(a->name, "id") == 0 ? "ID" : "TYPE");
	}
	printf(" [flags]\n\n%s.\nNeeds the role %s.\n", c->text, api_role_name(c->role));
	for (const struct api_arg *a = c->args; a->name != NULL; a++) {
		char flag[40], shape[96];
		flag_name(a, flag, sizeof flag);
		const char *value = a->type == API_ARG_YES	? ""
				    : a->type == API_ARG_CHOICE ? a->choices
				    : is_time(a)		? "TIME"
				    : a->type == API_ARG_NUMBER ? "N"
								: "TEXT";
		snprintf(shape, sizeof shape, "--%s%s%s", flag, value[0] != '\0' ? " " : "", value);
		printf("%s  %-32s %s", a == c->args ? "\n" : "", shape, a->text);
		if (a->fallback != NULL && a->type != API_ARG_YES)
			printf(" (%s)", a->fallback);
		printf("\n");
	}
}

static bool help_noun(const char *noun)
{
	bool any = false;
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		if (strcmp(c->noun, noun) != 0 || c->verb[0] == '\0')
			continue;
		printf("  %s %-10s %s\n", c->noun, c->verb, c->text);
		any = true;
	}
	if (strcmp(noun, "config") == 0)
		printf("  config check      Check a configuration file; needs no daemon\n");
	return any;
}

int cli_help(const struct cli *cli)
{
	const char *noun = cli->words[0], *verb = cli->words[1];
	if (noun == NULL) {
		help_all();
		return API_EXIT_DONE;
	}
	const struct api_command *command = api_command_by_words(noun, verb != NULL ? verb : "");
	if (command != NULL)
		help_command(command);
	else if (strcmp(noun, "completion") == 0)
		printf("usage: spotctl completion bash\n");
	else if (strcmp(noun, "config") == 0 && verb != NULL && strcmp(verb, "check") == 0)
		printf("usage: spotctl config check [FILE] [--strict]\n");
	else if (!help_noun(noun)) {
		fprintf(stderr, "spotctl: no help for \"%s\"; see spotctl help\n", noun);
		return API_EXIT_USAGE;
	}
	return API_EXIT_DONE;
}

// ---- completion ----

static void print_verbs(const char *noun)
{
	printf("\t%s) words='", noun);
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		if (strcmp(c->noun, noun) == 0 && c->verb[0] != '\0')
			printf("%s ", c->verb);
	}
	printf("%s';;\n", strcmp(noun, "config") == 0 ? "check " : "");
}

static void print_flags(const struct api_command *c)
{
	char flag[40];
	if (c->args->name == NULL)
		return;
	printf("\t'%s%s%s') flags='", c->noun, c->verb[0] != '\0' ? " " : "", c->verb);
	for (const struct api_arg *a = c->args; a->name != NULL; a++) {
		flag_name(a, flag, sizeof flag);
		if (!a->positional)
			printf("--%s ", flag);
	}
	printf("';;\n");
}

static bool noun_seen(uint32_t index)
{
	for (uint32_t i = 0; i < index; i++) {
		if (strcmp(api_command_at(i)->noun, api_command_at(index)->noun) == 0)
			return true;
	}
	return false;
}

int cli_completion(const struct cli *cli)
{
	(void)cli;
	printf("_spotctl() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words='' flags=''\n"
	       "\tlocal noun=${COMP_WORDS[1]} verb=${COMP_WORDS[2]}\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then words='completion help ");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (!noun_seen(i))
			printf("%s ", api_command_at(i)->noun);
	}
	printf("'; fi\n\tif [ \"$COMP_CWORD\" -eq 2 ]; then case $noun in\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (!noun_seen(i) && api_command_at(i)->verb[0] != '\0')
			print_verbs(api_command_at(i)->noun);
	}
	printf("\tcompletion) words=bash;;\n\tesac; fi\n\tcase \"$noun $verb\" in\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (api_command_at(i)->verb[0] != '\0')
			print_flags(api_command_at(i));
	}
	printf("\tesac\n\tcase $noun in\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (api_command_at(i)->verb[0] == '\0')
			print_flags(api_command_at(i));
	}
	printf("\tesac\n\tCOMPREPLY=($(compgen -W \"$words $flags --socket --json --timeout --help\" "
	       "-- \"$cur\"))\n}\ncomplete -F _spotctl spotctl\n");
	return API_EXIT_DONE;
}
