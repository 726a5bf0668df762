// SPDX-License-Identifier: BSD-3-Clause
// What a client writes to the control socket, cut into pieces. Half trusted: a local program.
// Every line that comes back is one JSON object of bounded size; the server stays for the next client.
//
// First byte: the size of the pieces, 0 = in one.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_node.h"
#include "server.h"
#include "api/line.h"
#include "fuzz.h"

enum { QUIET_TURNS = 3, TURNS_MAX = 2000, REPLIES_BYTES = 1 << 20 };

static char replies[REPLIES_BYTES];
static uint32_t results, errors;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	server_start(NULL);
	atexit(server_stop);
	return 0;
}

static void check_line(const char *text, size_t size)
{
	json_error_t error;
	CHECK(size <= LINE_BYTES_MAX);
	json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	CHECK(json_is_object(line));
	json_t *body = json_object_get(line, "error");
	if (body != NULL) {
		CHECK(json_is_integer(json_object_get(body, "code")));
		errors++;
	} else {
		results++;
	}
	json_decref(line);
}

// Takes what came; returns false when the server hung up.
static bool take(int fd, size_t *used, bool *out_any)
{
	ssize_t n = read(fd, replies + *used, sizeof(replies) - *used);
	*out_any = n > 0;
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	*used += (size_t)n;
	char *at = replies, *end;
	while ((end = memchr(at, '\n', *used - (size_t)(at - replies))) != NULL) {
		check_line(at, (size_t)(end - at));
		at = end + 1;
	}
	*used -= (size_t)(at - replies);
	memmove(replies, at, *used);
	CHECK(*used <= LINE_BYTES_MAX);
	return true;
}

static bool turn_until_quiet(int fd, size_t *used)
{
	for (int quiet = 0, turns = 0; quiet < QUIET_TURNS && turns < TURNS_MAX; turns++) {
		bool any;
		uv_run(&server.uv, UV_RUN_NOWAIT);
		if (!take(fd, used, &any))
			return false;
		quiet = any ? 0 : quiet + 1;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 70000)
		return 0;
	size_t piece = data[0] != 0 ? data[0] : size, used = 0;
	int fd = client_pair();
	for (size_t at = 1; at < size; at += piece) {
		size_t count = size - at < piece ? size - at : piece;
		uint8_t *exact = fuzz_exact(data + at, count);
		client_write(fd, (const char *)exact, count);
		free(exact);
		if (!turn_until_quiet(fd, &used))
			break;
	}
	client_end(fd);
	while (server.uv.closing_handles != NULL)
		uv_run(&server.uv, UV_RUN_NOWAIT);
	return 0;
}

void fuzz_unreached(void (*missed)(const char *what))
{
	if (results == 0)
		missed("a request that is answered");
	if (errors == 0)
		missed("a line that is refused");
}
