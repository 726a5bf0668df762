// SPDX-License-Identifier: BSD-3-Clause
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_node.h"

struct server server;

static uint64_t boot_ns(struct clock *clock)
{
	(void)clock;
	return 2000;
}
static struct clock clock_still = {.boot_ns = boot_ns};

static void on_stop(void *arg, uint32_t deadline_ms)
{
	(void)arg, (void)deadline_ms;
	server.stops++;
}
static void on_versions(void *arg, api_emit_text emit, void *to)
{
	(void)arg;
	emit(to, "libuv", uv_version_string());
}
static void on_fabric(void *arg, uint32_t index, struct api_fabric *out)
{
	(void)arg, (void)index;
	*out = (struct api_fabric){"f0", "udp", "kernel", "127.0.0.1:7700", true, 0, false, 1472};
}
static void on_stats(void *arg, uint32_t index, uint16_t worker, api_emit_number emit, void *to)
{
	(void)arg, (void)index;
	emit(to, "rx_frames", 10u + worker);
	emit(to, "tx_full", fake.counters[0].loops);
}
static const char *file_text(void *arg)
{
	(void)arg;
	return "# as written\nnode: {id: n1}\n";
}

struct api_options server_options(void)
{
	return (struct api_options){.uv = &server.uv, .clock = &clock_still, .config = &server.config,
		.host = &server.host, .store_meter = &server.store_meter,
		.owner = server.owner};
}

static void prepare(void)
{
	struct config_endpoint listen = server.listen;
	const uid_t *owner = server.owner;
	memset(&server, 0, sizeof server);
	server.listen = listen;
	server.owner = owner;
	signal(SIGPIPE, SIG_IGN); // as spotd does
	strcpy(server.folder, "/tmp/spotlane-api-XXXXXX");
	assert_non_null(mkdtemp(server.folder));
	assert_int_equal(uv_loop_init(&server.uv), 0);
	config_defaults(&server.config);
	strcpy(server.config.node.id, "n1");
	snprintf(server.config.control.socket, sizeof server.config.control.socket, "%s/s", server.folder);
	server.host = (struct api_host){.version = "0.1.0", .git = "abc", .eal_line = "--no-huge",
		.workers = 2, .versions = on_versions, .fabrics = 1, .fabric = on_fabric,
		.fabric_stats = on_stats, .config_file_text = file_text, .config_path = "/etc/x.yaml",
		.stop = on_stop};
}

bool server_try(char *why, size_t why_bytes)
{
	struct api_options options = server_options();
	server.api = api_start(&options, why, why_bytes);
	return server.api != NULL;
}

void server_start(const struct api_limits *limits)
{
	char why[256];
	prepare();
	fake_reset(20);
	server.config.metrics.listen = server.listen;
	struct api_options options = server_options();
	if (limits != NULL)
		options.limits = *limits;
	server.api = api_start(&options, why, sizeof why);
	if (server.api == NULL)
		fail_msg("%s", why);
}

static void on_stopped(void *arg)
{
	*(bool *)arg = true;
}

void server_finish(void)
{
	char path[CONFIG_PATH_BYTES + 8];
	api_stop(server.api, on_stopped, &server.stopped);
	while (!server.stopped)
		uv_run(&server.uv, UV_RUN_ONCE);
	assert_int_equal(uv_loop_close(&server.uv), 0);
	assert_int_not_equal(access(server.config.control.socket, F_OK), 0);
	snprintf(path, sizeof path, "%s.lock", server.config.control.socket);
	unlink(path);
	rmdir(server.folder);
}

void server_stop(void)
{
	server_finish();
}

// ---- clients ----

static time_t now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

// Turns the loop until the client has something to do.
void client_wait(int fd, short events)
{
	time_t end = now_s() + 60;
	struct pollfd p = {.fd = fd, .events = events};
	for (;;) {
		uv_run(&server.uv, UV_RUN_NOWAIT);
		if (poll(&p, 1, 1) > 0)
			return;
		if (now_s() > end)
			fail_msg("a minute without an answer");
	}
}

int client_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, server.config.control.socket);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	server.bytes = 0;
	return fd;
}

int client_pair(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	api_adopt(server.api, fds[1]);
	server.bytes = 0;
	json_t *hello = client_line(fds[0]);
	assert_non_null(json_object_get(hello, "hello"));
	json_decref(hello);
	return fds[0];
}

void client_write(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			client_wait(fd, POLLOUT);
		} else {
			return; // the server hung up; the reader sees it
		}
	}
}

json_t *client_line(int fd)
{
	for (;;) {
		char *end = memchr(server.buffer, '\n', server.bytes);
		if (end != NULL) {
			json_error_t error;
			size_t size = (size_t)(end - server.buffer);
			assert_true(size <= 65536);
			json_t *line = json_loadb(server.buffer, size, 0, &error);
			assert_non_null(line);
			memmove(server.buffer, end + 1, server.bytes - size - 1);
			server.bytes -= size + 1;
			return line;
		}
		client_wait(fd, POLLIN);
		ssize_t n = read(fd, server.buffer + server.bytes, sizeof server.buffer - server.bytes);
		if (n <= 0)
			return NULL;
		server.bytes += (size_t)n;
	}
}

json_t *client_ask(int fd, const char *line)
{
	client_write(fd, line, strlen(line));
	client_write(fd, "\n", 1);
	return client_line(fd);
}

void client_end(int fd)
{
	close(fd);
	server.bytes = 0;
	for (int i = 0; i < 3; i++)
		uv_run(&server.uv, UV_RUN_NOWAIT);
}

int error_code(json_t *reply)
{
	int code = (int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));
	json_decref(reply);
	return code;
}

// ---- programs ----

static void drain(int fd, char *out, size_t *used)
{
	ssize_t n;
	while ((n = read(fd, out + *used, TOOL_OUTPUT_BYTES - 1 - *used)) > 0)
		*used += (size_t)n;
	out[*used] = '\0';
}

int tool_run(const char *const *argv, char *out, char *err)
{
	int pipes[2][2], status = 0;
	size_t used[2] = {0, 0};
	assert_int_equal(pipe2(pipes[0], O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipes[1], O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipes[0][1], 1);
		dup2(pipes[1][1], 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	char *const to[2] = {out, err};
	for (int i = 0; i < 2; i++) {
		close(pipes[i][1]);
		fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
	}
	time_t end = now_s() + 60;
	bool ended = false;
	while (!ended && now_s() < end) {
		struct pollfd p = {.fd = pipes[0][0], .events = POLLIN};
		uv_run(&server.uv, UV_RUN_NOWAIT);
		poll(&p, 1, 1);
		ended = waitpid(pid, &status, WNOHANG) == pid;
		drain(pipes[0][0], to[0], &used[0]);
		drain(pipes[1][0], to[1], &used[1]);
	}
	assert_true(ended);
	close(pipes[0][0]);
	close(pipes[1][0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
