// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

struct conn_write_job {
	uv_write_t write;
	size_t bytes;
	char text[];
};

static void conn_timer_set(struct api_conn *conn);

// ---- closing ----

static void conn_handle_closed(uv_handle_t *handle)
{
	struct api_conn *conn = handle->data;
	struct api *api = conn->api;
	if (--conn->handles == 0) {
		mem_free(conn->in);
		mem_free(conn);
	}
	api_handle_closed(api);
}

void conn_close(struct api_conn *conn)
{
	struct api *api = conn->api;
	if (conn->state == CONN_CLOSED)
		return;
	conn->state = CONN_CLOSED;
	*conn->link = conn->next;
	if (conn->next != NULL)
		conn->next->link = conn->link;
	api->clients--;
	struct api_request *next;
	for (struct api_request *r = api->requests; r != NULL; r = next) {
		next = r->next;
		if (r->conn == conn)
			request_client_gone(r);
	}
	uv_close((uv_handle_t *)&conn->pipe, conn_handle_closed);
	uv_close((uv_handle_t *)&conn->timer, conn_handle_closed);
}

// ---- writing ----

static void write_done(uv_write_t *write, int status)
{
	struct conn_write_job *job = container_of(write, struct conn_write_job, write);
	struct api_conn *conn = write->data;
	conn->queued_bytes -= job->bytes;
	mem_free(job);
	if (conn->state == CONN_CLOSED)
		return;
	if (status != 0 || (conn->state == CONN_DRAINING && conn->queued_bytes == 0))
		conn_close(conn);
	else
		watch_flush(conn);
}

size_t conn_queued(const struct api_conn *conn)
{
	return conn->queued_bytes;
}

bool conn_write(struct api_conn *conn, json_t *line)
{
	const struct api_limits *limits = &conn->api->options.limits;
	if (conn->state != CONN_OPEN)
		return false;
	size_t size = json_dumpb(line, NULL, 0, JSON_COMPACT);
	if (size == 0 || conn->queued_bytes + size + 1 > limits->queue_bytes_max) {
		conn->api->meter.slow_clients += size != 0;
		conn_close(conn); // short of memory, or it does not read: never waited for
		return false;
	}
	struct conn_write_job *job = mem_zalloc(sizeof *job + size + 1);
	if (job == NULL) {
		conn_close(conn);
		return false;
	}
	json_dumpb(line, job->text, size, JSON_COMPACT);
	job->text[size] = '\n';
	job->bytes = size + 1;
	job->write.data = conn;
	uv_buf_t buffer = uv_buf_init(job->text, (unsigned)(size + 1));
	if (uv_write(&job->write, (uv_stream_t *)&conn->pipe, &buffer, 1, write_done) != 0) {
		mem_free(job);
		conn_close(conn);
		return false;
	}
	conn->queued_bytes += size + 1;
	return true;
}

// An error that belongs to no request; the connection ends after it where the catalogue says so.
void conn_fail(struct api_conn *conn, enum api_error code, const char *message)
{
	json_t *body = api_error_body(code, "no", NULL, message);
	meter_error(conn->api, (int)code);
	if (body == NULL) {
		conn_close(conn);
		return;
	}
	json_object_set_new(body, "id", json_null());
	json_object_set_new(body, "done", json_true());
	bool written = conn_write(conn, body);
	json_decref(body);
	if (written && api_error_find(code)->closes)
		conn_finish(conn);
}

// Closes after what is queued has been read, or the line's time has passed.
void conn_finish(struct api_conn *conn)
{
	if (conn->state != CONN_OPEN)
		return;
	if (conn->queued_bytes == 0) {
		conn_close(conn);
		return;
	}
	conn->state = CONN_DRAINING;
	uv_read_stop((uv_stream_t *)&conn->pipe);
	conn_timer_set(conn);
}

// ---- reading ----

static void on_timer(uv_timer_t *timer)
{
	struct api_conn *conn = timer->data;
	if (conn->state == CONN_DRAINING)
		conn_close(conn);
	else if (conn->in_bytes > 0)
		conn_fail(conn, API_ERROR_LINE_TIMEOUT, "the line was not finished in time");
	else
		conn_fail(conn, API_ERROR_IDLE_TIMEOUT, "no request for too long");
}

// The line's limit runs from its first byte and is not renewed by more of it.
static void conn_timer_set(struct api_conn *conn)
{
	const struct api_limits *limits = &conn->api->options.limits;
	if (conn->state == CONN_CLOSED)
		return;
	if (conn->in_bytes > 0 || conn->state == CONN_DRAINING)
		uv_timer_start(&conn->timer, on_timer, limits->line_timeout_ms, 0);
	else if (conn->requests == 0)
		uv_timer_start(&conn->timer, on_timer, limits->idle_timeout_ms, 0);
	else
		uv_timer_stop(&conn->timer);
}

void conn_request_ended(struct api_conn *conn)
{
	CHECK(conn->requests > 0);
	conn->requests--;
	if (conn->state == CONN_OPEN && conn->in_bytes == 0)
		conn_timer_set(conn);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	struct api_conn *conn = handle->data;
	(void)suggested;
	size_t room = conn->api->options.limits.line_bytes_max + 1 - conn->in_bytes;
	*out = uv_buf_init(conn->in + conn->in_bytes, (unsigned)room);
}

// Hands on every whole line; what is left moves to the front.
static void take_lines(struct api_conn *conn)
{
	size_t at = 0;
	char *end;
	while (conn->state == CONN_OPEN && at < conn->in_bytes &&
		(end = memchr(conn->in + at, '\n', conn->in_bytes - at)) != NULL) {
		size_t size = (size_t)(end - (conn->in + at));
		const char *line = conn->in + at;
		at += size + 1;
		if (size > 0 && line[size - 1] == '\r')
			size--;
		if (size > 0)
			request_line(conn, line, size);
	}
	if (conn->state != CONN_OPEN)
		return;
	memmove(conn->in, conn->in + at, conn->in_bytes - at);
	conn->in_bytes -= at;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	struct api_conn *conn = stream->data;
	(void)buffer;
	if (got < 0) {
		conn_close(conn);
		return;
	}
	if (conn->state != CONN_OPEN || got == 0)
		return;
	bool in_line = conn->in_bytes > 0;
	size_t before = conn->in_bytes;
	conn->in_bytes += (size_t)got;
	bool ended = memchr(conn->in + before, '\n', (size_t)got) != NULL;
	take_lines(conn);
	if (conn->state != CONN_OPEN)
		return;
	if (conn->in_bytes > conn->api->options.limits.line_bytes_max)
		conn_fail(conn, API_ERROR_LINE_TOO_LONG, "more than 65536 bytes in a line");
	else if (!in_line || ended)
		conn_timer_set(conn);
}

// ---- starting ----

static void say_hello(struct api_conn *conn)
{
	const struct api *api = conn->api;
	struct node_status status;
	char boot[API_INSTANCE_BYTES];
	node_status(api->options.node, &status);
	view_instance(&status, boot);
	json_t *hello = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s}", "hello", "spotlane", "v", 1,
		"version", api->options.host->version, "node", api->options.config->node.id, "instance",
		boot, "config_digest", api->digest, "role", api_role_name(conn->role));
	if (hello == NULL) {
		conn_close(conn);
		return;
	}
	conn_write(conn, hello);
	json_decref(hello);
}

static void enlist(struct api_conn *conn)
{
	struct api *api = conn->api;
	conn->next = api->conns;
	conn->link = &api->conns;
	if (api->conns != NULL)
		api->conns->link = &conn->next;
	api->conns = conn;
	api->clients++;
	api->meter.connections++;
	api->handles += 2;
	conn->handles = 2;
	conn->state = CONN_OPEN;
}

void conn_start(struct api *api, uv_pipe_t *from_listener, int fd)
{
	struct api_conn *conn = mem_zalloc(sizeof *conn);
	char *in = mem_zalloc(api->options.limits.line_bytes_max + 1);
	if (conn == NULL || in == NULL) {
		mem_free(conn);
		mem_free(in);
		if (fd >= 0)
			close(fd);
		return;
	}
	conn->api = api;
	conn->in = in;
	CHECK(uv_pipe_init(api->options.uv, &conn->pipe, 0) == 0);
	CHECK(uv_timer_init(api->options.uv, &conn->timer) == 0);
	conn->pipe.data = conn;
	conn->timer.data = conn;
	enlist(conn);
	int failed = from_listener != NULL
			     ? uv_accept((uv_stream_t *)from_listener, (uv_stream_t *)&conn->pipe)
			     : uv_pipe_open(&conn->pipe, fd);
	uv_os_fd_t peer;
	if (failed != 0 || uv_fileno((uv_handle_t *)&conn->pipe, &peer) != 0) {
		if (from_listener == NULL && failed != 0)
			close(fd);
		conn_close(conn);
		return;
	}
	conn->role = peer_role(api, peer, &conn->uid, &conn->gid);
	if (api->clients > api->options.limits.clients_max) {
		conn_fail(conn, API_ERROR_TOO_MANY_CLIENTS, "too many clients are connected");
		return;
	}
	say_hello(conn);
	if (conn->state != CONN_OPEN)
		return;
	if (uv_read_start((uv_stream_t *)&conn->pipe, on_alloc, on_read) != 0)
		conn_close(conn);
	else
		conn_timer_set(conn);
}
