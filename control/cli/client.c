// SPDX-License-Identifier: BSD-3-Clause
#include "cli/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINE_MAX_BYTES = 128 * 1024, HELLO_TIMEOUT_MS = 5000 };

struct client {
	int fd;
	json_t *hello;
	size_t bytes;
	char in[LINE_MAX_BYTES];
};

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// 1 ready, 0 time is up.
static int wait_for(int fd, short events, uint64_t deadline_ms)
{
	for (;;) {
		uint64_t now = now_ms();
		uint64_t left = deadline_ms == 0 ? 1000 : deadline_ms > now ? deadline_ms - now : 0;
		struct pollfd p = {.fd = fd, .events = events};
		int got = poll(&p, 1, (int)(left > 60000 ? 60000 : left));
		if (got > 0)
			return 1;
		if ((got < 0 && errno != EINTR) || (deadline_ms != 0 && now_ms() >= deadline_ms))
			return 0;
	}
}

static json_t *line_take(struct client *client)
{
	char *end = memchr(client->in, '\n', client->bytes);
	if (end == NULL)
		return NULL;
	json_error_t error;
	json_t *line = json_loadb(client->in, (size_t)(end - client->in), 0, &error);
	size_t used = (size_t)(end - client->in) + 1;
	memmove(client->in, client->in + used, client->bytes - used);
	client->bytes -= used;
	return line != NULL ? line : json_object();
}

json_t *client_next(struct client *client, uint32_t timeout_ms, int *out_exit)
{
	uint64_t deadline = timeout_ms == 0 ? 0 : now_ms() + timeout_ms;
	for (;;) {
		json_t *line = line_take(client);
		if (line != NULL)
			return line;
		if (client->bytes == sizeof client->in) {
			fprintf(stderr, "spotctl: the daemon sent a line that is too long\n");
			*out_exit = API_EXIT_INTERNAL;
			return NULL;
		}
		if (!wait_for(client->fd, POLLIN, deadline)) {
			fprintf(stderr, "spotctl: no answer in time; the outcome is unknown\n");
			*out_exit = API_EXIT_TIMEOUT;
			return NULL;
		}
		ssize_t got = read(client->fd, client->in + client->bytes, sizeof client->in - client->bytes);
		if (got > 0)
			client->bytes += (size_t)got;
		else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
			fprintf(stderr, "spotctl: the daemon closed the connection; the outcome is unknown\n");
			*out_exit = API_EXIT_TIMEOUT;
			return NULL;
		}
	}
}

int client_send(struct client *client, const char *op, json_t *args)
{
	char *text = NULL;
	json_t *line = json_pack("{s:i, s:i, s:s, s:O}", "v", 1, "id", 1, "op", op, "args", args);
	if (line != NULL)
		text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	if (text == NULL)
		return API_EXIT_INTERNAL;
	size_t size = strlen(text), sent = 0;
	text[size++] = '\n'; // in the place of the end
	uint64_t deadline = now_ms() + HELLO_TIMEOUT_MS;
	int code = API_EXIT_DONE;
	while (sent < size && code == API_EXIT_DONE) {
		ssize_t n = wait_for(client->fd, POLLOUT, deadline)
				    ? send(client->fd, text + sent, size - sent, MSG_NOSIGNAL)
				    : -1;
		if (n > 0)
			sent += (size_t)n;
		else if (n == 0 || (errno != EINTR && errno != EAGAIN))
			code = API_EXIT_NO_DAEMON;
	}
	free(text);
	if (code != API_EXIT_DONE)
		fprintf(stderr, "spotctl: the daemon does not take requests\n");
	return code;
}

static const char *what_next(int error)
{
	switch (error) {
	case EACCES:
		return "; join the socket's group (ls -l shows it) or ask root";
	case ENOENT:
	case ECONNREFUSED:
		return "; does it run? systemctl status spotd, or name another --socket";
	default:
		return "";
	}
}

static struct client *give_up(struct client *client, bool quiet, int *out_exit, const char *path, const char *why)
{
	int error = errno;
	if (!quiet)
		fprintf(stderr, "spotctl: cannot reach spotd at %s: %s%s\n", path, why, what_next(error));
	*out_exit = error == EACCES ? API_EXIT_NOT_PERMITTED : API_EXIT_NO_DAEMON;
	client_close(client);
	return NULL;
}

struct client *client_open(const struct cli *cli, bool quiet, int *out_exit)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct client *client = mem_zalloc(sizeof *client);
	if (client == NULL) {
		*out_exit = API_EXIT_INTERNAL;
		return NULL;
	}
	client->fd = -1;
	if (strlen(cli->socket) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return give_up(client, quiet, out_exit, cli->socket, "the path is too long");
	}
	memcpy(address.sun_path, cli->socket, strlen(cli->socket) + 1);
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval limit = {.tv_sec = HELLO_TIMEOUT_MS / 1000}; // a stopped daemon accepts nobody
	if (client->fd >= 0)
		(void)setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof address) != 0)
		return give_up(client, quiet, out_exit, cli->socket, strerror(errno));
	client->hello = client_next(client, HELLO_TIMEOUT_MS, out_exit);
	if (client->hello == NULL) {
		client_close(client);
		return NULL;
	}
	json_t *error = json_object_get(client->hello, "error");
	const char *kind = json_string_value(json_object_get(client->hello, "hello"));
	if (error != NULL) {
		*out_exit = client_error_exit(client->hello);
		client_close(client);
		return NULL;
	}
	if (kind == NULL || strcmp(kind, "spotlane") != 0 ||
		json_integer_value(json_object_get(client->hello, "v")) != 1) {
		errno = EPROTO;
		return give_up(client, quiet, out_exit, cli->socket, "it does not speak our protocol, version 1");
	}
	return client;
}

json_t *client_hello(const struct client *client)
{
	return client->hello;
}

void client_close(struct client *client)
{
	if (client == NULL)
		return;
	if (client->fd >= 0)
		close(client->fd);
	json_decref(client->hello);
	mem_free(client);
}

int client_error_exit(json_t *reply)
{
	json_t *error = json_object_get(reply, "error");
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *kind = json_string_value(json_object_get(error, "kind"));
	const struct api_error_row *row =
		api_error_find((int)json_integer_value(json_object_get(error, "code")));
	fprintf(stderr, "spotctl: %s: ", kind != NULL ? kind : "error");
	print_escaped(stderr, message != NULL ? message : "no message");
	fprintf(stderr, "\n");
	return row != NULL ? row->exit_code : API_EXIT_FAILED;
}
