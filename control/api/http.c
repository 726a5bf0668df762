// SPDX-License-Identifier: BSD-3-Clause
#include "api/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/check.h"
#include "base/mem.h"

enum {
	HTTP_CONNECTIONS_MAX = 16,
	HTTP_TIMEOUT_S = 5,
	HTTP_MEMORY_BYTES = 16 * 1024, // of a request: headers and all
	HTTP_BACKLOG = 16,
};

struct http {
	struct api *api;
	struct MHD_Daemon *daemon;
	uv_poll_t poll;   // the daemon's epoll set
	uv_timer_t timer; // its time limits
	uint32_t handles;
	uint16_t port;
};

const char *http_page_name(enum http_page page)
{
	static const char *const names[HTTP_PAGES] = {"metrics", "live", "ready", "other"};
	return names[page];
}

// ---- pages ----

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
	const char *text, size_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	if (response == NULL)
		return MHD_NO;
	enum MHD_Result result = MHD_add_response_header(response, "Content-Type", type);
	if (result == MHD_YES)
		result = MHD_add_response_header(response, "Cache-Control", "no-store");
	if (result == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		result = MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (result == MHD_YES)
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_metrics(const struct api *api, struct MHD_Connection *connection)
{
	struct text text = {0};
	metrics_write(api, &text);
	enum MHD_Result result = text.failed
		? MHD_NO
		: answer(connection, MHD_HTTP_OK, METRICS_CONTENT_TYPE, text.data, text.size);
	text_fini(&text);
	return result;
}

// Takes over the body.
static enum MHD_Result answer_health(struct MHD_Connection *connection, json_t *body)
{
	bool yes = json_is_true(json_object_get(body, "yes"));
	char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
	enum MHD_Result result = text == NULL ? MHD_NO
		: answer(connection, yes ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			"application/json", text, strlen(text));
	free(text);
	json_decref(body);
	return result;
}

static enum http_page page_of(const char *url)
{
	for (uint32_t p = 0; p < HTTP_OTHER; p++) {
		if (url[0] == '/' && strcmp(url + 1, http_page_name((enum http_page)p)) == 0)
			return (enum http_page)p;
	}
	return HTTP_OTHER;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	struct http *http = arg;
	struct api *api = http->api;
	(void)version, (void)upload;
	if (*state == NULL) { // only the headers are here
		*state = http;
		return MHD_YES;
	}
	if (*upload_bytes > 0) { // nobody reads a body
		*upload_bytes = 0;
		return MHD_YES;
	}
	enum http_page page = page_of(url);
	api->meter.http_requests[page]++;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "GET or HEAD only\n", 17);
	switch (page) {
	case HTTP_METRICS:
		return answer_metrics(api, connection);
	case HTTP_LIVE:
		return answer_health(connection, health_live(api));
	case HTTP_READY:
		return answer_health(connection, health_ready(api));
	case HTTP_OTHER:
	case HTTP_PAGES:
		break;
	}
	return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain", "see /metrics, /live, /ready\n", 28);
}

// ---- the loop ----

static void run(struct http *http);

static void on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	run(poll->data);
}

// One turn: what is ready now. What stays to be done makes the daemon ask for a short time limit.
static void run(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES)
		uv_timer_start(&http->timer, on_timer, wait_ms, 0);
	else
		uv_timer_stop(&http->timer);
}

// ---- start and stop ----

static int listen_socket(const struct config_endpoint *at, uint16_t *out_port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(at->port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(at->port)};
	socklen_t size = at->is_ipv6 ? sizeof v6 : sizeof v4;
	struct sockaddr *address = at->is_ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	int yes = 1;
	memcpy(&v6.sin6_addr, at->ip, 16);
	memcpy(&v4.sin_addr, at->ip + 12, 4);
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); // only for a quick restart
	if (bind(fd, address, size) != 0 || listen(fd, HTTP_BACKLOG) != 0 ||
		getsockname(fd, address, &size) != 0) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	*out_port = ntohs(at->is_ipv6 ? v6.sin6_port : v4.sin_port);
	return fd;
}

static struct MHD_Daemon *daemon_start(struct http *http, int fd, bool is_ipv6)
{
	return MHD_start_daemon(MHD_USE_EPOLL | (is_ipv6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL, on_request, http,
		MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY_BYTES, MHD_OPTION_END);
}

static void watch_daemon(struct http *http)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	uv_loop_t *uv = http->api->options.uv;
	CHECK(info != NULL);
	CHECK(uv_poll_init(uv, &http->poll, info->epoll_fd) == 0);
	CHECK(uv_timer_init(uv, &http->timer) == 0);
	http->poll.data = http;
	http->timer.data = http;
	http->handles = 2;
	http->api->handles += 2;
	CHECK(uv_poll_start(&http->poll, UV_READABLE, on_readable) == 0);
}

struct http *http_start(struct api *api, char *out_why, size_t why_bytes)
{
	const struct config_endpoint *at = &api->options.config->metrics.listen;
	struct http *http = mem_zalloc(sizeof *http);
	if (http == NULL) {
		snprintf(out_why, why_bytes, "metrics.listen: out of memory");
		return NULL;
	}
	http->api = api;
	int fd = listen_socket(at, &http->port);
	http->daemon = fd < 0 ? NULL : daemon_start(http, fd, at->is_ipv6);
	if (http->daemon == NULL) {
		snprintf(out_why, why_bytes, "metrics.listen: cannot listen on %s: %s", at->text,
			fd < 0 ? strerror(errno) : "the HTTP server does not start");
		if (fd >= 0)
			close(fd);
		mem_free(http);
		return NULL;
	}
	watch_daemon(http);
	return http;
}

static void on_closed(uv_handle_t *handle)
{
	struct http *http = handle->data;
	struct api *api = http->api;
	if (--http->handles == 0)
		mem_free(http);
	api_handle_closed(api);
}

void http_stop(struct http *http)
{
	uv_poll_stop(&http->poll); // before its descriptor goes
	MHD_stop_daemon(http->daemon);
	uv_close((uv_handle_t *)&http->poll, on_closed);
	uv_close((uv_handle_t *)&http->timer, on_closed);
}

uint16_t http_port(const struct http *http)
{
	return http->port;
}
