// SPDX-License-Identifier: BSD-3-Clause
// Writes the parts of documents that come from tables, between the lines that contain `gen:NAME` and
// `gen:end`. `gen_docs check FILE…` fails where a file differs from what it would write; `write`
// rewrites it.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/commands.h"
#include "api/errors.h"
#include "base/compiler.h"
#include "config/schema.h"

static bool is_time(const struct api_arg *arg)
{
	size_t size = strlen(arg->name);
	return size > 3 && strcmp(arg->name + size - 3, "_ms") == 0;
}

static void flag_name(const struct api_arg *arg, char *to, size_t capacity)
{
	snprintf(to, capacity, "%.*s", (int)(strlen(arg->name) - (is_time(arg) ? 3 : 0)), arg->name);
	for (char *c = to; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
}

// ---- CONTROL_API.md ----

static void md_ops(FILE *f)
{
	fprintf(f, "| op | role | class | arguments | what it does |\n|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		fprintf(f, "| `%s` | %s | %s | ", c->op, api_role_name(c->role), api_class_name(c->class));
		for (const struct api_arg *a = c->args; a->name != NULL; a++)
			fprintf(f, "%s`%s`%s", a == c->args ? "" : ", ", a->name, a->required ? "" : "?");
		fprintf(f, "%s| %s |\n", c->args->name == NULL ? "" : " ", c->text);
	}
}

static void md_errors(FILE *f)
{
	fprintf(f, "| code | kind | tool exits | closes | meaning |\n|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < API_ERROR_COUNT; i++)
		fprintf(f, "| %d | `%s` | %d | %s | %s |\n", (int)api_error_rows[i].code,
			api_error_rows[i].name, api_error_rows[i].exit_code,
			api_error_rows[i].closes ? "yes" : "no", api_error_rows[i].text);
}

// ---- spotctl(8) ----

static void man_text(FILE *f, const char *text)
{
	size_t column = 0;
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text != '\0'; text++, column++) {
		if (*text == ' ' && column + strcspn(text + 1, " ") > 70) {
			fputc('\n', f);
			column = 0;
			continue;
		}
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else if (*text == '`')
			fputs("\\(oq", f);
		else
			fputc(*text, f);
		if (*text == '.' && text[1] == ' ') { // a sentence starts a line
			fputc('\n', f);
			text++;
			column = 0;
		}
	}
	fputc('\n', f);
}

static void man_arg(FILE *f, const struct api_arg *a)
{
	char flag[40];
	flag_name(a, flag, sizeof flag);
	fprintf(f, ".It Fl \\-%s", flag);
	if (a->type != API_ARG_YES)
		fprintf(f, " Ar %s", a->type == API_ARG_CHOICE	 ? a->choices
				     : is_time(a)		 ? "time"
				     : a->type == API_ARG_NUMBER ? "n"
								 : "text");
	fputc('\n', f);
	man_text(f, a->text);
}

static void man_commands(FILE *f)
{
	fprintf(f, ".Bl -tag -width Ds\n");
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		bool flags = false;
		fprintf(f, ".It Cm %s%s%s", c->noun, c->verb[0] != '\0' ? " " : "", c->verb);
		for (const struct api_arg *a = c->args; a->name != NULL; a++) {
			if (a->positional)
				fprintf(f, " Ar %s", a->name);
			flags = flags || !a->positional;
		}
		fputc('\n', f);
		man_text(f, c->text);
		fprintf(f, "(role %s)\n", api_role_name(c->role));
		if (!flags)
			continue;
		fprintf(f, ".Bl -tag -width Ds -compact\n");
		for (const struct api_arg *a = c->args; a->name != NULL; a++) {
			if (!a->positional)
				man_arg(f, a);
		}
		fprintf(f, ".El\n");
	}
	fprintf(f, ".El\n");
}

// ---- spotd.conf(5) ----

static void man_key(FILE *f, const struct config_key *key, const char *before)
{
	fprintf(f, ".It Ic %s%s : Ar %s\n", before, key->path, config_value_name(key->value));
	man_text(f, key->text);
	if (key->value == CONFIG_CHOICE) {
		fprintf(f, "One of");
		for (uint32_t i = 0; key->choices[i] != NULL; i++)
			fprintf(f, "%s %s", i == 0 ? "" : ",", key->choices[i]);
		fprintf(f, ".\n");
	}
	if (key->fallback != NULL && key->fallback[0] != '\0')
		fprintf(f, "Default: %s.\n", key->fallback);
}

static void man_keys(FILE *f)
{
	fprintf(f, ".Bl -tag -width Ds\n");
	for (uint32_t i = 0; i < config_schema.count; i++) {
		const struct config_key *key = &config_schema.keys[i];
		char before[64];
		man_key(f, key, "");
		snprintf(before, sizeof before, "%s[].", key->path);
		for (uint32_t j = 0; key->record != NULL && j < key->record->count; j++)
			man_key(f, &key->record->keys[j], before);
	}
	fprintf(f, ".El\n");
}

static const struct {
	const char *name;
	void (*write)(FILE *f);
} parts[] = {
	{"gen:ops", md_ops},
	{"gen:errors", md_errors},
	{"gen:commands", man_commands},
	{"gen:keys", man_keys},
};

// The file as it should be; NULL when it cannot be read.
static char *regenerate(const char *path, char **out_before)
{
	char line[4096];
	size_t size = 0, before_size = 0;
	char *text = NULL;
	FILE *in = fopen(path, "re");
	if (in == NULL)
		return NULL;
	FILE *to = open_memstream(&text, &size), *same = open_memstream(out_before, &before_size);
	bool skipping = false;
	while (fgets(line, sizeof line, in) != NULL) {
		fputs(line, same);
		if (strstr(line, "gen:end") != NULL)
			skipping = false;
		if (!skipping)
			fputs(line, to);
		for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
			if (strstr(line, parts[i].name) != NULL) {
				parts[i].write(to);
				skipping = true;
			}
		}
	}
	fclose(in);
	fclose(to);
	fclose(same);
	return text;
}

int main(int argc, char **argv)
{
	int failed = 0;
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++) {
		char *before = NULL, *after = regenerate(argv[i], &before);
		bool same = after != NULL && strcmp(before, after) == 0;
		if (after != NULL && !same && strcmp(argv[1], "write") == 0) {
			FILE *f = fopen(argv[i], "we");
			same = f != NULL && fputs(after, f) >= 0;
			if (f != NULL)
				fclose(f);
		}
		failed += !same;
		printf("%s x__tables_are_in %s\n", same ? "ok" : "not ok", strrchr(argv[i], '/') + 1);
		free(before);
		free(after);
	}
	printf("%d passed, %d failed\n", argc - 2 - failed, failed);
	return failed != 0;
}
