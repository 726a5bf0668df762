// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A control server on a loop of the test, and clients of it. Every wait turns the loop and ends with
// what it waits for; a minute without it fails the test.

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "api/api.h"

struct server {
	uv_loop_t uv;
	struct config config;
	struct api_host host;
	struct store_meter store_meter;
	const uid_t *owner; // of the next server; kept over servers
	struct config_endpoint listen; // of the next server's HTTP listener; kept over servers
	struct api *api;
	bool stopped;
	uint32_t stops;
	char folder[64];
	char buffer[256 * 1024]; // of the client that reads now
	size_t bytes;
};
extern struct server server;

void server_start(const struct api_limits *limits); // NULL = defaults
void server_stop(void);
bool server_try(char *why, size_t why_bytes); // api_start only
void server_finish(void);                     // what server_stop does after api_stop
struct api_options server_options(void);

int client_pair(void);    // over a socketpair, hello taken
int client_connect(void); // over the socket file, hello not taken
void client_write(int fd, const char *text, size_t size);
json_t *client_line(int fd); // NULL: the connection ended
// Sends and returns the reply.
json_t *client_ask(int fd, const char *line);
void client_wait(int fd, short events); // turns the loop until poll(2) has one of them
void client_end(int fd);
int error_code(json_t *reply); // 0 = none; takes the reply
// Runs a program while the loop turns; its outputs go to out and err (each of 64 KiB).
int tool_run(const char *const *argv, char *out, char *err);
enum { TOOL_OUTPUT_BYTES = 64 * 1024 };
