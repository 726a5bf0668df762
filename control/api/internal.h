// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the files of control/api only. Control thread.

#include <jansson.h>
#include <sys/types.h>

#include "api/api.h"
#include "api/commands.h"
#include "api/errors.h"
#include "api/http.h"
#include "api/metrics.h"
#include "base/ids.h"

enum { API_NONCE_BYTES = 65, API_HASH_BYTES = 32, API_WALK_CHUNK = 4096 };

enum conn_state {
	CONN_OPEN = 1,
	CONN_DRAINING = 2, // a last error is on its way out, nothing is read any more
	CONN_CLOSED = 3,   // handles are being closed
};

struct api_conn {
	struct api *api;
	struct api_conn *next, **link;
	enum conn_state state;
	uint32_t handles; // open libuv handles of this connection
	uv_pipe_t pipe;
	uv_timer_t timer; // the line's, or the idle one
	uid_t uid;
	gid_t gid;
	enum api_role role;
	char *in; // line_bytes_max + 1 bytes
	size_t in_bytes;
	size_t queued_bytes;
	uint32_t requests;
};

struct api_receipt;
struct api_watch;

// One request from its line to its terminal reply. A handler keeps it until it calls api_done or
// api_fail, each of which ends it. conn is NULL once the client is gone, api once the server is.
struct api_request {
	struct api *api;
	struct api_conn *conn;
	struct api_request *next, **link;
	const struct api_command *command;
	json_t *id;   // as the client gave it; never NULL
	json_t *args; // checked against the table
	struct api_receipt *receipt; // of a change
	struct api_request *waits_next; // waits for the same receipt
	struct api_watch *watch;
	bool held; // a handler outside (node, job) will come back for it
};

struct api_job { // long work in pieces
	struct api_job *next;
	bool (*step)(struct api_job *job); // true: done, the job is gone
};

enum receipt_state { RECEIPT_EMPTY = 0, RECEIPT_RUNNING = 1, RECEIPT_DONE = 2 };
struct api_receipt {
	enum receipt_state state;
	uid_t uid;
	char nonce[API_NONCE_BYTES];
	uint8_t hash[API_HASH_BYTES];
	json_t *body; // of a finished one
	struct api_request *waiting;
};

enum api_state { API_RUNNING = 1, API_STOPPING = 2 };

struct api {
	struct api_options options;
	enum api_state state;
	uv_pipe_t listener;
	uv_timer_t job_timer;
	uint32_t handles; // open libuv handles, those of connections included
	int lock_fd;
	gid_t group;     // the socket's; (gid_t)-1 = left as it is
	gid_t operators; // whose members operate; (gid_t)-1 = none
	uid_t owner;
	char digest[CONFIG_DIGEST_BYTES];
	struct api_conn *conns;
	uint32_t clients;
	struct api_request *requests;
	struct api_job *jobs;
	struct api_watch *watches;
	struct api_receipt *receipts;
	uint32_t receipt_next;
	struct api_meter meter;
	struct http *http; // NULL = off
	void (*stopped)(void *arg);
	void *stopped_arg;
};

// ---- conn.c ----
void conn_start(struct api *api, uv_pipe_t *from_listener, int fd);
void conn_close(struct api_conn *conn);
void conn_finish(struct api_conn *conn);
// Writes one line; takes over nothing. False: the connection is gone or was dropped as too slow.
bool conn_write(struct api_conn *conn, json_t *line);
size_t conn_queued(const struct api_conn *conn);
void conn_request_ended(struct api_conn *conn);
void api_handle_closed(struct api *api);

// ---- api.c ----
void api_jobs_ended(struct api *api); // a stopping server waits for begun work

// ---- peer.c ----
enum api_role peer_role(const struct api *api, int fd, uid_t *out_uid, gid_t *out_gid);

// ---- request.c ----
void request_line(struct api_conn *conn, const char *text, size_t size);
// Ends with a result (reference taken over; NULL = memory was short).
void api_done(struct api_request *request, json_t *result);
PRINTF_LIKE(4, 5)
void api_fail(struct api_request *request, enum api_error code, json_t *detail, const char *format, ...);
// A failed result of the node: code, reason and accepted come from it.
void api_fail_result(struct api_request *request, struct result result, json_t *detail);
// The same in the node's own words.
void api_fail_said(
	struct api_request *request, struct result result, json_t *detail, const char *text);
// A line before the last; `name` is "part" or "event". Takes over the value.
bool api_part(struct api_request *request, const char *name, json_t *value);
// A text in parts that end at whole characters. False: the client is gone.
bool api_send_text(struct api_request *request, const char *text);
void meter_error(struct api *api, int code);
void request_client_gone(struct api_request *request);
void request_orphan(struct api_request *request);
json_t *api_error_body(enum api_error code, const char *accepted, json_t *detail, const char *message);
void conn_fail(struct api_conn *conn, enum api_error code, const char *message);

// ---- receipt.c ----
enum receipt_verdict { RECEIPT_NEW = 1, RECEIPT_REPLAYED, RECEIPT_WAITS, RECEIPT_CONFLICT, RECEIPT_FULL };
enum receipt_verdict receipt_open(struct api_request *request);
void receipt_fini(struct api *api);

// ---- job.c ----
void job_add(struct api *api, struct api_job *job);
void jobs_run(uv_timer_t *timer);
void op_lane_top(struct api_request *request);
void op_stats_audit(struct api_request *request);

// ---- view.c: JSON of things ----
json_t *view_number(uint64_t value); // clamped to what JSON integers hold here
void view_set(json_t *object, const char *key, uint64_t value);
json_t *view_key(struct spot_key key);
json_t *view_text(struct span text); // an id; never NULL but for memory
json_t *view_spot(const struct api *api, const struct dp_spot *spot);
json_t *view_lane(struct lane_level level, struct lane_bounds bounds);
json_t *view_event(const struct node_event *event);
uint64_t view_now(const struct api *api);
enum { API_INSTANCE_BYTES = 33 };
void view_instance(const struct node_status *status, char out[API_INSTANCE_BYTES]);

// ---- health.c: bodies of the socket's and the listener's answers; NULL when memory is short ----
json_t *health_live(const struct api *api);
json_t *health_ready(const struct api *api);

// ---- metrics.c, metrics_dp.c ----
void metrics_family(struct text *t, const char *name, const char *type, const char *help);
void metrics_workers(const struct api *api, struct text *t);
void metrics_fabrics(const struct api *api, struct text *t);

// ---- op_*.c ----
void op_status(struct api_request *request);
void op_version(struct api_request *request);
void op_config_show(struct api_request *request);
void op_health_live(struct api_request *request);
void op_health_ready(struct api_request *request);
void op_schema(struct api_request *request);
void op_metrics(struct api_request *request);
void op_node_list(struct api_request *request);
void op_node_show(struct api_request *request);
void op_node_fence(struct api_request *request);
void op_stop(struct api_request *request);
void op_doctor(struct api_request *request);
void op_spot_list(struct api_request *request);
void op_spot_show(struct api_request *request);
void op_spot_create(struct api_request *request);
void op_spot_close(struct api_request *request);
void op_spot_where(struct api_request *request);
void op_route_show(struct api_request *request);
void op_route_list(struct api_request *request);
void op_stats_show(struct api_request *request);
void op_watch(struct api_request *request);

// ---- watch.c ----
void watch_end(struct api_request *request);
void watch_flush(struct api_conn *conn);

// ---- stats.c ----
json_t *stats_worker(const struct api *api, const struct dp_counters *c, bool zero);
void stats_add(struct dp_counters *sum, const struct dp_counters *c);

// ---- arguments, checked already ----
struct span arg_span(const struct api_request *request, const char *name);
const char *arg_text(const struct api_request *request, const char *name); // NULL = not given
int64_t arg_number(const struct api_request *request, const char *name, int64_t fallback);
bool arg_yes(const struct api_request *request, const char *name);
