// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the files of control/cli only.

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "api/commands.h"
#include "api/errors.h"

enum cli_format { CLI_TEXT = 1, CLI_JSON = 2 };

// Verbs that need no daemon.
enum cli_local {
	CLI_REMOTE = 0,
	CLI_HELP = 1,
	CLI_COMPLETION = 2,
	CLI_CONFIG_CHECK = 3,
	CLI_DOCTOR = 4,
	CLI_VERSION = 5,
};

struct cli {
	const char *version, *git;
	const char *socket;
	const char *config_path; // doctor, config check
	enum cli_format format;
	bool color;
	bool strict;
	uint32_t timeout_ms; // 0 = by command
	enum cli_local local;
	const struct api_command *command; // NULL for purely local verbs
	json_t *args;
	const char *words[4]; // noun, verb and what follows, as given
	uint32_t word_count;
};

// ---- args.c ----
// API_EXIT_DONE, or the exit code after a line on stderr.
int cli_parse(struct cli *cli, int argc, char **argv);

// ---- help.c ----
int cli_help(const struct cli *cli);
int cli_completion(const struct cli *cli);

// ---- client.c ----
struct client;
// NULL: *out_exit, after one line on stderr (not with `quiet`).
struct client *client_open(const struct cli *cli, bool quiet, int *out_exit);
void client_close(struct client *client);
json_t *client_hello(const struct client *client); // borrowed
// Sends a request. API_EXIT_DONE or an exit code after one line on stderr.
int client_send(struct client *client, const char *op, json_t *args);
// The next reply line, owned by the caller; NULL after one line on stderr.
json_t *client_next(struct client *client, uint32_t timeout_ms, int *out_exit);
// Exit code of an error reply.
int client_error_exit(json_t *reply);

// ---- print.c ----
void print_text(const struct cli *cli, json_t *result);
void print_json(json_t *document);
void print_event(const struct cli *cli, json_t *event);
void print_findings(const struct cli *cli, json_t *findings);
void print_escaped(FILE *out, const char *text);

// ---- doctor.c ----
// Adds what can be found out without a daemon.
void doctor_host(const struct cli *cli, json_t *findings);
