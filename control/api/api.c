// SPDX-License-Identifier: BSD-3-Clause
#include "api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/internal.h"
#include "api/line.h"
#include "base/check.h"
#include "base/mem.h"

enum { BACKLOG = 64 };

// ---- the socket file ----

static int fail_errno(char *out_why, size_t why_bytes, const char *path, const char *what)
{
	snprintf(out_why, why_bytes, "%s: %s: %s", path, what, strerror(errno));
	return -1;
}

// The lock outlives no process: the kernel drops it, whatever the file says. The file itself stays.
static int lock_take(const char *socket_path, char *out_why, size_t why_bytes)
{
	char path[CONFIG_PATH_BYTES + 8];
	snprintf(path, sizeof path, "%s.lock", socket_path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail_errno(out_why, why_bytes, path, "cannot open the lock file");
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		snprintf(out_why, why_bytes, "%s: another spotd serves this socket (%s is locked)",
			socket_path, path);
	else
		fail_errno(out_why, why_bytes, path, "cannot lock");
	close(fd);
	return -1;
}

// Under the lock only: what is there now belongs to nobody alive.
static bool stale_remove(const char *path, char *out_why, size_t why_bytes)
{
	struct stat st;
	if (lstat(path, &st) != 0)
		return errno == ENOENT || fail_errno(out_why, why_bytes, path, "cannot look at it") == 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(out_why, why_bytes, "%s: exists and is no socket; not touched", path);
		return false;
	}
	return unlink(path) == 0 ||
	       fail_errno(out_why, why_bytes, path, "cannot remove the stale socket") == 0;
}

static bool give_to_group(struct api *api, const char *path, char *out_why, size_t why_bytes)
{
	const struct config *config = api->options.config;
	if (api->group != (gid_t)-1 && chown(path, (uid_t)-1, api->group) != 0)
		return fail_errno(out_why, why_bytes, path, "cannot give it to control.group") == 0;
	return chmod(path, (mode_t)config->control.mode) == 0 ||
	       fail_errno(out_why, why_bytes, path, "cannot set control.mode") == 0;
}

static int socket_open(struct api *api, char *out_why, size_t why_bytes)
{
	const char *path = api->options.config->control.socket;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CHECK(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(out_why, why_bytes, path, "socket");
	// Nobody gets in between bind and chmod.
	mode_t before = umask(0177);
	int failed = bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(before);
	if (failed != 0)
		fail_errno(out_why, why_bytes, path, "cannot bind");
	if (failed != 0 || !give_to_group(api, path, out_why, why_bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

// ---- start ----

static void on_connection(uv_stream_t *listener, int status)
{
	struct api *api = listener->data;
	if (status == 0 && api->state == API_RUNNING)
		conn_start(api, &api->listener, -1);
}

static void limits_fill(struct api_limits *limits)
{
	const struct api_limits defaults = {64, LINE_BYTES_MAX, 5000, 300000, 1024 * 1024, 16, 1024};
	if (limits->clients_max == 0)
		limits->clients_max = defaults.clients_max;
	if (limits->line_bytes_max == 0 || limits->line_bytes_max > LINE_BYTES_MAX)
		limits->line_bytes_max = defaults.line_bytes_max;
	if (limits->line_timeout_ms == 0)
		limits->line_timeout_ms = defaults.line_timeout_ms;
	if (limits->idle_timeout_ms == 0)
		limits->idle_timeout_ms = defaults.idle_timeout_ms;
	if (limits->queue_bytes_max == 0)
		limits->queue_bytes_max = defaults.queue_bytes_max;
	if (limits->requests_max == 0)
		limits->requests_max = defaults.requests_max;
	if (limits->receipts_max == 0)
		limits->receipts_max = defaults.receipts_max;
}

static bool group_find(struct api *api, char *out_why, size_t why_bytes)
{
	const char *name = api->options.config->control.group;
	api->group = (gid_t)-1;
	api->operators = (gid_t)-1;
	// Without a group of the configuration it is the one of our name, where the machine has it; the
	// socket then keeps the group that the process gives it.
	struct group *group = getgrnam(name[0] != '\0' ? name : "spotlane");
	if (group != NULL)
		api->operators = group->gr_gid;
	if (name[0] == '\0')
		return true;
	if (group == NULL) {
		snprintf(out_why, why_bytes, "control.group: no group \"%s\" on this machine", name);
		return false;
	}
	api->group = group->gr_gid;
	return true;
}

static bool listen_on(struct api *api, int fd, char *out_why, size_t why_bytes)
{
	CHECK(uv_pipe_init(api->options.uv, &api->listener, 0) == 0);
	CHECK(uv_timer_init(api->options.uv, &api->job_timer) == 0);
	api->listener.data = api;
	api->job_timer.data = api;
	api->handles = 2;
	int failed = uv_pipe_open(&api->listener, fd);
	if (failed == 0)
		failed = uv_listen((uv_stream_t *)&api->listener, BACKLOG, on_connection);
	if (failed != 0)
		snprintf(out_why, why_bytes, "%s: cannot listen: %s", api->options.config->control.socket,
			uv_strerror(failed));
	return failed == 0;
}

// What was made before anything was handed to the loop.
static struct api *start_undo(struct api *api)
{
	if (api->lock_fd >= 0)
		close(api->lock_fd);
	mem_free(api->receipts);
	mem_free(api);
	return NULL;
}

struct api *api_start(const struct api_options *options, char *out_why, size_t why_bytes)
{
	struct api *api = mem_zalloc(sizeof *api);
	snprintf(out_why, why_bytes, "out of memory");
	if (api == NULL)
		return NULL;
	api->options = *options;
	api->state = API_RUNNING;
	api->lock_fd = -1;
	api->owner = options->owner != NULL ? *options->owner : geteuid();
	limits_fill(&api->options.limits);
	config_digest(options->config, api->digest);
	api->receipts = mem_zalloc(api->options.limits.receipts_max * sizeof *api->receipts);
	if (api->receipts == NULL || !group_find(api, out_why, why_bytes))
		return start_undo(api);
	api->lock_fd = lock_take(options->config->control.socket, out_why, why_bytes);
	if (api->lock_fd < 0 || !stale_remove(options->config->control.socket, out_why, why_bytes))
		return start_undo(api);
	int fd = socket_open(api, out_why, why_bytes);
	if (fd < 0)
		return start_undo(api);
	bool open = listen_on(api, fd, out_why, why_bytes);
	if (open && options->config->metrics.listen.text[0] != '\0') {
		api->http = http_start(api, out_why, why_bytes);
		open = api->http != NULL;
	}
	if (open)
		return api;
	api_stop(api, NULL, NULL);
	return NULL;
}

// ---- stop ----

void api_handle_closed(struct api *api)
{
	if (--api->handles > 0 || api->state != API_STOPPING)
		return;
	void (*stopped)(void *arg) = api->stopped;
	void *arg = api->stopped_arg;
	receipt_fini(api);
	close(api->lock_fd);
	mem_free(api);
	if (stopped != NULL)
		stopped(arg);
}

static void on_closed(uv_handle_t *handle)
{
	api_handle_closed(handle->data);
}

void api_jobs_ended(struct api *api)
{
	if (api->state == API_STOPPING && !uv_is_closing((uv_handle_t *)&api->job_timer))
		uv_close((uv_handle_t *)&api->job_timer, on_closed);
}

void api_stop(struct api *api, void (*stopped)(void *arg), void *arg)
{
	CHECK(api->state == API_RUNNING);
	api->state = API_STOPPING;
	api->stopped = stopped;
	api->stopped_arg = arg;
	unlink(api->options.config->control.socket);
	uv_close((uv_handle_t *)&api->listener, on_closed);
	if (api->http != NULL)
		http_stop(api->http);
	api->http = NULL;
	while (api->requests != NULL)
		request_orphan(api->requests);
	struct api_conn *next;
	for (struct api_conn *conn = api->conns; conn != NULL; conn = next) {
		next = conn->next;
		conn_finish(conn);
	}
	jobs_run(&api->job_timer);
}

uint16_t api_http_port(const struct api *api)
{
	return api->http != NULL ? http_port(api->http) : 0;
}

void api_adopt(struct api *api, int fd)
{
	conn_start(api, NULL, fd);
}
