// SPDX-License-Identifier: BSD-3-Clause
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

#include "cli/internal.h"
#include "config/config.h"

enum { ANSWER_MARGIN_MS = 10000, ANSWER_TIMEOUT_MS = 30000 };

static uint32_t timeout_of(const struct cli *cli)
{
	static const char *const names[] = {"budget_ms", "deadline_ms"};
	if (cli->timeout_ms != 0)
		return cli->timeout_ms;
	if (cli->command->class == API_STREAM)
		return 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		json_t *value = json_object_get(cli->args, names[i]);
		if (value != NULL)
			return (uint32_t)json_integer_value(value) + ANSWER_MARGIN_MS;
	}
	// The deadline of a stop is the node's own; it may be long.
	return cli->command->id == API_COMMAND_STOP ? 0 : ANSWER_TIMEOUT_MS;
}

// ---- one exchange ----

// Texts are joined, anything else is listed as `per_worker`.
static void part_add(json_t *document, json_t *part)
{
	json_t *text = json_object_get(part, "text");
	if (json_object_size(part) == 1 && text != NULL) {
		json_t *before = json_object_get(document, "text");
		json_object_set_new(document, "text", json_sprintf("%s%s",
			before != NULL ? json_string_value(before) : "", json_string_value(text)));
		return;
	}
	json_t *list = json_object_get(document, "per_worker");
	if (list == NULL) {
		list = json_array();
		json_object_set_new(document, "per_worker", list);
	}
	json_array_append(list, part);
}

static void event_show(const struct cli *cli, json_t *event)
{
	if (cli->format == CLI_JSON) {
		print_json(event);
		fflush(stdout);
	} else {
		print_event(cli, event);
	}
}

// Runs one request to its last line; its result and parts go into *document.
static int exchange(const struct cli *cli, struct client *client, json_t *document)
{
	int code = client_send(client, cli->command->op, cli->args);
	while (code == API_EXIT_DONE) {
		json_t *reply = client_next(client, timeout_of(cli), &code);
		if (reply == NULL)
			break;
		json_t *event = json_object_get(reply, "event"), *part = json_object_get(reply, "part");
		bool done = json_is_true(json_object_get(reply, "done"));
		if (event != NULL)
			event_show(cli, event);
		if (part != NULL)
			part_add(document, part);
		if (json_object_get(reply, "error") != NULL)
			code = client_error_exit(reply);
		else if (done)
			json_object_update(document, json_object_get(reply, "result"));
		if (json_is_true(json_object_get(reply, "replayed")))
			json_object_set_new(document, "replayed", json_true());
		json_decref(reply);
		if (done || (ferror(stdout) && event != NULL))
			break;
	}
	return code;
}

// Lists come in pages: the rows of the next ones are joined until the limit or the end.
static int exchange_pages(const struct cli *cli, struct client *client, json_t *document, const char *rows)
{
	json_int_t limit = json_integer_value(json_object_get(cli->args, "limit"));
	json_t *all = json_array();
	int code;
	limit = limit == 0 ? 100 : limit;
	do {
		json_t *page = json_object();
		json_object_set_new(
			cli->args, "limit", json_integer(limit - (json_int_t)json_array_size(all)));
		code = exchange(cli, client, page);
		json_array_extend(all, json_object_get(page, rows));
		json_t *next = json_object_get(page, "next");
		json_object_del(document, "next");
		if (next != NULL) {
			json_object_set(document, "next", next);
			json_object_set(cli->args, "cursor", next);
		}
		json_decref(page);
	} while (code == API_EXIT_DONE && json_object_get(document, "next") != NULL &&
		 (json_int_t)json_array_size(all) < limit);
	json_object_set_new(document, rows, all);
	return code;
}

// A question is answered by the exit code as well.
static int answer_exit(json_t *document)
{
	json_t *yes = json_object_get(document, "yes");
	json_t *equal = json_object_get(document, "equal");
	json_t *conserved = json_object_get(document, "conserved");
	return json_is_false(yes) || json_is_false(equal) || json_is_false(conserved) ? API_EXIT_FAILED : API_EXIT_DONE;
}

static int run_remote(const struct cli *cli)
{
	int code = API_EXIT_DONE;
	struct client *client = client_open(cli, false, &code);
	if (client == NULL)
		return code;
	json_t *document = json_object();
	if (cli->command->id == API_COMMAND_SPOT_LIST)
		code = exchange_pages(cli, client, document, "spots");
	else if (cli->command->id == API_COMMAND_ROUTE_LIST)
		code = exchange_pages(cli, client, document, "routes");
	else
		code = exchange(cli, client, document);
	client_close(client);
	if (code == API_EXIT_DONE && cli->command->class != API_STREAM) {
		if (cli->format == CLI_JSON)
			print_json(document);
		else
			print_text(cli, document);
		code = answer_exit(document);
	}
	json_decref(document);
	return code;
}

// ---- verbs that do without a daemon ----

static int run_doctor(const struct cli *cli)
{
	json_t *document = json_object(), *findings = json_array();
	int code = API_EXIT_DONE, exit_code = API_EXIT_DONE;
	struct client *client = client_open(cli, true, &code);
	doctor_host(cli, findings);
	if (client == NULL) {
		json_array_append_new(findings,
			json_pack("{s:s, s:o, s:s, s:s}", "level", "warning", "fact",
				json_sprintf("no daemon answers at %s", cli->socket), "why",
				"only the host could be checked", "fix", "systemctl start spotd"));
	} else if (exchange(cli, client, document) == API_EXIT_DONE) {
		json_array_extend(findings, json_object_get(document, "findings"));
	}
	client_close(client);
	size_t i;
	json_t *finding;
	json_array_foreach(findings, i, finding) {
		if (strcmp(json_string_value(json_object_get(finding, "level")), "error") == 0)
			exit_code = API_EXIT_FAILED;
	}
	json_object_set_new(document, "findings", findings);
	if (cli->format == CLI_JSON)
		print_json(document);
	else
		print_findings(cli, findings);
	json_decref(document);
	return exit_code;
}

static int run_version(const struct cli *cli)
{
	int code = API_EXIT_DONE;
	json_t *document = json_pack("{s:{s:s, s:s, s:s, s:i}}", "tool", "name", "spotctl", "version",
		cli->version, "git", cli->git, "control_protocol", 1);
	struct client *client = client_open(cli, false, &code);
	json_t *daemon = json_object();
	if (client != NULL && (code = exchange(cli, client, daemon)) == API_EXIT_DONE)
		json_object_set(document, "daemon", daemon);
	client_close(client);
	if (cli->format == CLI_JSON)
		print_json(document);
	else
		print_text(cli, document);
	json_decref(daemon);
	json_decref(document);
	return code;
}

static int run(struct cli *cli)
{
	switch (cli->local) {
	case CLI_REMOTE:
		return run_remote(cli);
	case CLI_HELP:
		return cli_help(cli);
	case CLI_COMPLETION:
		return cli_completion(cli);
	case CLI_CONFIG_CHECK:
		return config_check(
			cli->config_path != NULL ? cli->config_path : "/etc/spotlane/spotd.yaml", cli->strict);
	case CLI_DOCTOR:
		return run_doctor(cli);
	case CLI_VERSION:
		return run_version(cli);
	}
	return API_EXIT_INTERNAL;
}

int cli_main(int argc, char **argv, const char *version, const char *git)
{
	struct cli cli = {.version = version, .git = git};
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0)) {
		printf("spotctl %s%s%s\n", version, git[0] != '\0' ? " " : "", git);
		return fflush(stdout) == 0 ? API_EXIT_DONE : API_EXIT_FAILED;
	}
	int code = cli_parse(&cli, argc, argv);
	if (code == API_EXIT_DONE)
		code = run(&cli);
	json_decref(cli.args);
	// What could not be written was not done.
	if (fflush(stdout) != 0 || ferror(stdout))
		return code == API_EXIT_DONE ? API_EXIT_FAILED : code;
	return code;
}
