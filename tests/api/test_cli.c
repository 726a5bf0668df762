// SPDX-License-Identifier: BSD-3-Clause
// spotctl as a process, against a server with a node made of tables; and the life of the socket file.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/commands.h"
#include "api/errors.h"
#include "base/compiler.h"
#include "fake_node.h"
#include "server.h"

static const char *tool;
static char out[TOOL_OUTPUT_BYTES], err[TOOL_OUTPUT_BYTES];

static int run_words(const char *words)
{
	static char copy[512];
	const char *argv[32] = {tool};
	int count = 1;
	snprintf(copy, sizeof copy, "%s", words);
	for (char *word = strtok(copy, " "); word != NULL && count < 31; word = strtok(NULL, " "))
		argv[count++] = word;
	return tool_run(argv, out, err);
}

static int lines_of(const char *text)
{
	int lines = 0;
	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

// Words that call a command well.
static void good_words(const struct api_command *c, char *words, size_t capacity)
{
	snprintf(words, capacity, "%s %s", c->noun, c->verb);
	for (const struct api_arg *a = c->args; a->name != NULL; a++) {
		if (a->positional)
			strncat(words, strcmp(a->name, "id") == 0 ? " spot-1"
				: strcmp(a->name, "node") == 0 ? " n1" : " counter",
				capacity - strlen(words) - 1);
	}
}

static void FC112__every_verb_without_a_daemon_says_so_in_one_line(void **state)
{
	char words[256];
	(void)state;
	assert_int_equal(uv_loop_init(&server.uv), 0); // tool_run turns it even without a server
	setenv("SPOTLANE_SOCKET", "/tmp/spotlane-nobody-serves-this", 1);
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		if (i == API_COMMAND_DOCTOR)
			continue; // works without one
		good_words(api_command_at(i), words, sizeof words);
		assert_int_equal(run_words(words), API_EXIT_NO_DAEMON);
		assert_int_equal(lines_of(err), 1);
	}
	assert_true(run_words("doctor") <= 1);
	assert_string_equal(err, "");
	assert_int_equal(uv_loop_close(&server.uv), 0);
}

static const struct {
	const char *words;
	int exit_code;
} table[] = {
	{"", 0},
	{"help", 0},
	{"help spot", 0},
	{"help spot create", 0},
	{"spot show --help", 0},
	{"--version", 0},
	{"version", 0},
	{"completion bash", 0},
	{"completion", 2},
	{"completion zsh", 2},
	{"nonsense", 2},
	{"help nonsense", 2},
	{"spot", 2},
	{"spot lst", 2},
	{"spot show", 2},
	{"spot show a b", 2},
	{"spot list --knd user", 2},
	{"spot list --kind human", 2},
	{"spot list --limit x", 2},
	{"spot list --limit 0", 2},
	{"spot list --limit", 2},
	{"stop --deadline 30", 2},
	{"--timeout 5 status", 2},
	{"--color=green status", 2},
	{"-x status", 2},
	{"status", 0},
	{"status --json", 0},
	{"--json status", 0},
	{"spot list --limit 5 --kind instance", 0},
	{"spot list --instance", 0},
	{"spot show spot-3", 0},
	{"spot show nobody", 7},
	{"spot where spot-3", 0},
	{"route show spot-3", 0},
	{"route show nobody", 7},
	{"route list", 0},
	{"lane top --bytes", 0},
	{"stats show", 0},
	{"stats show --worker 9", 7},
	{"stats audit", 0},
	{"metrics", 0},
	{"node list", 0},
	{"node show n2", 0},
	{"node show nobody", 7},
	{"node fence n2", 0},
	{"node fence", 2},
	{"node", 2},
	{"config show", 0},
	{"config show --default", 0},
	{"config show --file", 0},
	{"config check /nonexistent", 2},
	{"schema", 0},
	{"health live", 0},
	{"health ready", 0},
	{"spot create new counter --budget 2s --argument x", 0},
	{"spot create new conter", 1},
	{"spot close spot-3 --generation 4", 0},
};

static void FC109_G3__every_verb_good_and_bad_has_its_exit_code(void **state)
{
	(void)state;
	server_start(NULL);
	setenv("SPOTLANE_SOCKET", server.config.control.socket, 1);
	for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
		int code = run_words(table[i].words);
		if (code != table[i].exit_code)
			print_error("%s: exit %d: %s\n", table[i].words, code, err);
		assert_int_equal(code, table[i].exit_code);
		assert_int_equal(lines_of(err), code == 0 ? 0 : 1);
	}
	server_stop();
}

static void FC109__each_kind_of_failure_has_its_exit_code(void **state)
{
	(void)state;
	server_start(NULL);
	setenv("SPOTLANE_SOCKET", server.config.control.socket, 1);
	for (int kind = RESULT_NOT_FOUND; kind <= RESULT_UNSUPPORTED; kind++) {
		fake.result = (struct result){(uint8_t)kind, 0, ACCEPTED_NO};
		assert_int_equal(run_words("spot create a counter"),
			api_error_find(API_ERROR_OF_RESULT + kind)->exit_code);
	}
	fake.status.state = NODE_STOPPED;
	assert_int_equal(run_words("health live"), 1);
	fake.audit.equal = false;
	assert_int_equal(run_words("stats audit"), 1);
	fake.audit.equal = true;
	fake.list_outcome = STORE_UNREACHABLE;
	assert_int_equal(run_words("node list"), 8);
	assert_int_equal(run_words("node show n1"), 8);
	server_stop();
}

static void G3__every_query_exists_as_text_and_as_json(void **state)
{
	char words[256];
	json_error_t error;
	(void)state;
	server_start(NULL);
	setenv("SPOTLANE_SOCKET", server.config.control.socket, 1);
	fake.items[2] = 1;
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		if (c->class == API_STREAM || c->id == API_COMMAND_STOP)
			continue;
		good_words(c, words, sizeof words);
		assert_true(run_words(words) <= 1);
		assert_true(strlen(out) > 0);
		assert_null(strchr(out, '\033'));
		strncat(words, " --json", sizeof words - strlen(words) - 1);
		assert_true(run_words(words) <= 1);
		assert_int_equal(lines_of(out), 1);
		json_t *document = json_loads(out, 0, &error);
		assert_non_null(document);
		json_decref(document);
	}
	assert_int_equal(run_words("config show --json"), 0);
	json_t *shown = json_loads(out, 0, &error);
	char *dump = config_dump(&server.config);
	assert_string_equal(json_string_value(json_object_get(shown, "text")), dump);
	free(dump);
	json_decref(shown);
	server_stop();
}

// ---- the socket file ----

static void FC115__a_second_instance_is_refused_and_the_first_goes_on(void **state)
{
	char why[256];
	(void)state;
	server_start(NULL);
	struct api_options options = server_options();
	for (int i = 0; i < 20; i++) {
		assert_null(api_start(&options, why, sizeof why));
		assert_non_null(strstr(why, "another spotd serves this socket"));
	}
	int fd = client_connect();
	json_decref(client_line(fd));
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"status\"}")), 0);
	client_end(fd);
	server_stop();
}

static void stale_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unlink(path);
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

// Each child tries to start, says how it went and waits to be killed.
static pid_t contender(int report)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	char why[256];
	uv_loop_t uv;
	uv_loop_init(&uv);
	struct api_options options = server_options();
	options.uv = &uv;
	char verdict = api_start(&options, why, sizeof why) != NULL ? 'y' : 'n';
	if (write(report, &verdict, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void FC115__over_a_stale_file_exactly_one_of_two_lives(void **state)
{
	char why[256], lock[160];
	(void)state;
	server_start(NULL);
	char path[108];
	strcpy(path, server.config.control.socket);
	server_finish(); // only its names are used from here
	assert_int_equal(mkdir(server.folder, 0700), 0);
	for (int i = 0; i < 100; i++) {
		int pipes[2];
		char verdicts[2];
		stale_socket(path);
		assert_int_equal(pipe(pipes), 0);
		pid_t pids[2] = {contender(pipes[1]), contender(pipes[1])};
		assert_int_equal(read(pipes[0], &verdicts[0], 1), 1);
		assert_int_equal(read(pipes[0], &verdicts[1], 1), 1);
		assert_int_equal((verdicts[0] == 'y') + (verdicts[1] == 'y'), 1);
		int fd = client_connect(); // the winner listens
		close(fd);
		for (int p = 0; p < 2; p++) { // and dies without cleaning up
			kill(pids[p], SIGKILL);
			waitpid(pids[p], NULL, 0);
		}
		close(pipes[0]);
		close(pipes[1]);
	}
	assert_int_equal(uv_loop_init(&server.uv), 0);
	server.stopped = false;
	// What is no socket is never removed.
	unlink(path);
	FILE *file = fopen(path, "w");
	fclose(file);
	assert_false(server_try(why, sizeof why));
	assert_non_null(strstr(why, "is no socket; not touched"));
	unlink(path);
	assert_true(server_try(why, sizeof why));
	server_finish();
	snprintf(lock, sizeof lock, "%s.lock", path);
	unlink(lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(FC112__every_verb_without_a_daemon_says_so_in_one_line),
		cmocka_unit_test(FC109_G3__every_verb_good_and_bad_has_its_exit_code),
		cmocka_unit_test(FC109__each_kind_of_failure_has_its_exit_code),
		cmocka_unit_test(G3__every_query_exists_as_text_and_as_json),
		cmocka_unit_test(FC115__a_second_instance_is_refused_and_the_first_goes_on),
		cmocka_unit_test(FC115__over_a_stale_file_exactly_one_of_two_lives),
	};
	tool = argc > 1 ? argv[1] : "spotctl";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
