// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/line.h"
#include "base/check.h"
#include "base/mem.h"
#include "config/nearest.h"

static void (*const handlers[API_COMMAND_COUNT])(struct api_request *) = {
	[API_COMMAND_STATUS] = op_status,
	[API_COMMAND_VERSION] = op_version,
	[API_COMMAND_SPOT_LIST] = op_spot_list,
	[API_COMMAND_SPOT_SHOW] = op_spot_show,
	[API_COMMAND_SPOT_CREATE] = op_spot_create,
	[API_COMMAND_SPOT_CLOSE] = op_spot_close,
	[API_COMMAND_SPOT_WHERE] = op_spot_where,
	[API_COMMAND_LANE_TOP] = op_lane_top,
	[API_COMMAND_ROUTE_SHOW] = op_route_show,
	[API_COMMAND_ROUTE_LIST] = op_route_list,
	[API_COMMAND_STATS_SHOW] = op_stats_show,
	[API_COMMAND_STATS_AUDIT] = op_stats_audit,
	[API_COMMAND_CONFIG_SHOW] = op_config_show,
	[API_COMMAND_DOCTOR] = op_doctor,
	[API_COMMAND_WATCH] = op_watch,
	[API_COMMAND_STOP] = op_stop,
	[API_COMMAND_HEALTH_LIVE] = op_health_live,
	[API_COMMAND_HEALTH_READY] = op_health_ready,
	[API_COMMAND_SCHEMA] = op_schema,
	[API_COMMAND_METRICS] = op_metrics,
	[API_COMMAND_NODE_LIST] = op_node_list,
	[API_COMMAND_NODE_SHOW] = op_node_show,
	[API_COMMAND_NODE_FENCE] = op_node_fence,
};

// ---- the end of a request ----

static void request_free(struct api_request *request)
{
	if (request->api != NULL) {
		*request->link = request->next;
		if (request->next != NULL)
			request->next->link = request->link;
	}
	if (request->conn != NULL)
		conn_request_ended(request->conn);
	json_decref(request->id);
	json_decref(request->args);
	mem_free(request);
}

void meter_error(struct api *api, int code)
{
	for (uint32_t i = 0; i < API_ERROR_COUNT; i++)
		api->meter.errors[i] += (int)api_error_rows[i].code == code;
}

static void meter_reply(const struct api_request *request, json_t *body)
{
	bool ok = json_is_true(json_object_get(body, "ok"));
	json_t *code = json_object_get(json_object_get(body, "error"), "code");
	if (request->api == NULL)
		return;
	if (request->command != NULL)
		request->api->meter.requests[request->command->id][ok]++;
	if (!ok)
		meter_error(request->api, (int)json_integer_value(code));
}

static void send_last(struct api_request *request, json_t *body, bool replayed)
{
	meter_reply(request, body);
	if (request->conn == NULL)
		return;
	json_t *line = json_copy(body);
	if (line == NULL || json_object_set(line, "id", request->id) != 0 ||
		json_object_set_new(line, "done", json_true()) != 0 ||
		(replayed && json_object_set_new(line, "replayed", json_true()) != 0))
		conn_close(request->conn);
	else
		conn_write(request->conn, line);
	json_decref(line);
}

// Ends the request and everyone who waited for the same nonce. Takes over the body.
static void finish(struct api_request *request, json_t *body)
{
	struct api_receipt *receipt = request->receipt;
	struct api_request *waiting = NULL;
	if (body == NULL)
		body = api_error_body(API_ERROR_NO_MEMORY, "unknown", NULL, "memory is short");
	if (body == NULL && request->conn != NULL)
		conn_close(request->conn);
	if (receipt != NULL && receipt->state == RECEIPT_RUNNING) {
		receipt->state = body == NULL ? RECEIPT_EMPTY : RECEIPT_DONE;
		receipt->body = json_incref(body);
		waiting = receipt->waiting;
		receipt->waiting = NULL;
	}
	if (body != NULL)
		send_last(request, body, false);
	request_free(request);
	while (waiting != NULL) {
		struct api_request *next = waiting->waits_next;
		if (body != NULL)
			send_last(waiting, body, true);
		request_free(waiting);
		waiting = next;
	}
	json_decref(body);
}

json_t *api_error_body(
	enum api_error code, const char *accepted, json_t *detail, const char *message)
{
	const struct api_error_row *row = api_error_find((int)code);
	CHECK(row != NULL);
	return json_pack("{s:b, s:{s:i, s:s, s:s, s:s, s:o}}", "ok", 0, "error", "code", (int)code,
		"kind", row->name, "message", message, "accepted", accepted, "detail",
		detail != NULL ? detail : json_object());
}

void api_done(struct api_request *request, json_t *result)
{
	finish(request, result == NULL ? NULL : json_pack("{s:b, s:o}", "ok", 1, "result", result));
}

void api_fail(struct api_request *request, enum api_error code, json_t *detail, const char *format, ...)
{
	char message[256];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	finish(request, api_error_body(code, "no", detail, message));
}

void api_fail_result(struct api_request *request, struct result result, json_t *detail)
{
	api_fail_said(request, result, detail, NULL);
}

void api_fail_said(
	struct api_request *request, struct result result, json_t *detail, const char *text)
{
	const char *kind = result_kind_name(result.kind);
	const char *reason =
		result.reason == REASON_NONE ? NULL : result_reason_name(result.reason);
	const char *accepted = result_accepted_name(result.accepted);
	char message[384];
	enum api_error code = (enum api_error)(API_ERROR_OF_RESULT + result.kind);
	if (api_error_find((int)code) == NULL)
		code = API_ERROR_INTERNAL_FAILURE;
	if (text != NULL)
		snprintf(message, sizeof message, "%s", text);
	else
		snprintf(message, sizeof message, "%s%s%s: %s", kind != NULL ? kind : "unknown result",
			reason != NULL ? "/" : "", reason != NULL ? reason : "",
			api_error_find((int)code)->text);
	if (detail == NULL)
		detail = json_object();
	if (reason != NULL)
		json_object_set_new(detail, "reason", json_string(reason));
	finish(request,
		api_error_body(code, accepted != NULL ? accepted : "unknown", detail, message));
}

bool api_part(struct api_request *request, const char *name, json_t *value)
{
	if (request->conn == NULL || value == NULL) {
		json_decref(value);
		return false;
	}
	json_t *line = json_pack("{s:O, s:b, s:b, s:o}", "id", request->id, "ok", 1, "done", 0, name, value);
	bool written = line != NULL && conn_write(request->conn, line);
	json_decref(line);
	return written;
}

enum { TEXT_PART_BYTES = 8 * 1024 };

bool api_send_text(struct api_request *request, const char *text)
{
	size_t left = strlen(text);
	while (left > 0) {
		size_t size = left < TEXT_PART_BYTES ? left : TEXT_PART_BYTES;
		while (size < left && size > TEXT_PART_BYTES - 4 && ((unsigned char)text[size] & 0xc0) == 0x80)
			size--;
		json_t *part = json_stringn(text, size);
		if (part == NULL || !api_part(request, "part", json_pack("{s:o}", "text", part)))
			return false;
		text += size;
		left -= size;
	}
	return true;
}

void request_client_gone(struct api_request *request)
{
	request->conn->requests--;
	request->conn = NULL;
	if (request->watch != NULL) {
		watch_end(request);
		request_free(request);
	}
}

// The server goes; whoever holds the request will end it later, and only frees it then.
void request_orphan(struct api_request *request)
{
	json_t *body =
		request->command->id == API_COMMAND_STOP
			? json_pack("{s:b, s:{s:b, s:b}}", "ok", 1, "result", "changed", 1, "stopped", 1)
			: api_error_body(API_ERROR_SHUTTING_DOWN, "unknown", NULL, "the node is stopping");
	if (request->watch != NULL)
		watch_end(request);
	if (body != NULL)
		send_last(request, body, false);
	json_decref(body);
	if (!request->held) {
		request_free(request);
		return;
	}
	*request->link = request->next;
	if (request->next != NULL)
		request->next->link = request->link;
	if (request->conn != NULL)
		conn_request_ended(request->conn);
	request->conn = NULL;
	request->receipt = NULL;
	request->api = NULL;
}

// ---- checking ----

static json_t *detail_of(const char *key, const char *value)
{
	return json_pack("{s:s}", key, value);
}

static bool arg_type_fits(const struct api_arg *arg, json_t *value, char *why, size_t why_bytes)
{
	switch (arg->type) {
	case API_ARG_TEXT:
		snprintf(why, why_bytes, "a text of %" PRId64 " to %" PRId64 " bytes is needed", arg->min,
			arg->max);
		return json_is_string(value) && (int64_t)json_string_length(value) >= arg->min &&
		       (int64_t)json_string_length(value) <= arg->max;
	case API_ARG_NUMBER:
		snprintf(why, why_bytes, "a number from %" PRId64 " to %" PRId64 " is needed", arg->min,
			arg->max);
		return json_is_integer(value) && json_integer_value(value) >= arg->min &&
		       json_integer_value(value) <= arg->max;
	case API_ARG_YES:
		snprintf(why, why_bytes, "true or false is needed");
		return json_is_boolean(value);
	case API_ARG_CHOICE:
		snprintf(why, why_bytes, "one of %s is needed", arg->choices);
		if (!json_is_string(value))
			return false;
		for (const char *c = arg->choices; *c != '\0'; c += strcspn(c, "|"), c += *c == '|') {
			size_t size = strcspn(c, "|");
			if (size == json_string_length(value) &&
				memcmp(c, json_string_value(value), size) == 0)
				return true;
		}
		return false;
	}
	return false;
}

static const struct api_arg *arg_find(const struct api_command *command, const char *name)
{
	for (const struct api_arg *a = command->args; a->name != NULL; a++) {
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

static bool unknown_argument(struct api_request *request, const char *name)
{
	struct nearest n;
	nearest_begin(&n, name);
	for (const struct api_arg *a = request->command->args; a->name != NULL; a++)
		nearest_offer(&n, a->name);
	api_fail(request, API_ERROR_UNKNOWN_ARGUMENT, detail_of("argument", name),
		n.best == NULL ? "%s has no argument \"%.64s\"%s"
			       : "%s has no argument \"%.64s\"; did you mean \"%s\"?",
		request->command->op, name, n.best == NULL ? "" : n.best);
	return false;
}

// False: the request is ended.
static bool check_args(struct api_request *request)
{
	const char *name;
	json_t *value;
	char why[128];
	json_object_foreach(request->args, name, value) {
		const struct api_arg *arg = arg_find(request->command, name);
		if (arg == NULL)
			return unknown_argument(request, name);
		if (!arg_type_fits(arg, value, why, sizeof why)) {
			api_fail(request, API_ERROR_BAD_ARGUMENT, detail_of("argument", arg->name), "%s: %s",
				arg->name, why);
			return false;
		}
	}
	for (const struct api_arg *a = request->command->args; a->name != NULL; a++) {
		if (a->required && json_object_get(request->args, a->name) == NULL) {
			api_fail(request, API_ERROR_MISSING_ARGUMENT, detail_of("argument", a->name),
				"%s needs \"%s\"", request->command->op, a->name);
			return false;
		}
	}
	return true;
}

// False: the request is ended, or waits for a receipt.
static bool check_receipt(struct api_request *request)
{
	if (request->command->class != API_CHANGE)
		return true;
	switch (receipt_open(request)) {
	case RECEIPT_NEW:
		return true;
	case RECEIPT_REPLAYED:
		send_last(request, request->receipt->body, true);
		request_free(request);
		return false;
	case RECEIPT_WAITS:
		request->waits_next = request->receipt->waiting;
		request->receipt->waiting = request;
		return false;
	case RECEIPT_CONFLICT:
		api_fail(request, API_ERROR_NONCE_CONFLICT, NULL, "the nonce was used for another request");
		return false;
	case RECEIPT_FULL:
		api_fail(request, API_ERROR_TOO_MANY_REQUESTS, NULL, "too many changes are running");
		return false;
	}
	return false;
}

static void dispatch(struct api_request *request)
{
	struct api_conn *conn = request->conn;
	if (conn->role < request->command->role) {
		api_fail(request, API_ERROR_NOT_PERMITTED,
			json_pack("{s:s, s:s}", "role", api_role_name(conn->role), "needed",
				api_role_name(request->command->role)),
			"%s needs the role %s, user %u has %s; control.roles in the node's configuration gives it",
			request->command->op, api_role_name(request->command->role), (unsigned)conn->uid,
			api_role_name(conn->role));
		return;
	}
	if (check_args(request) && check_receipt(request))
		handlers[request->command->id](request);
}

// ---- the envelope ----

static bool envelope_wrong(json_t *line, const char **out_why)
{
	const char *name;
	json_t *value;
	json_t *id = json_object_get(line, "id");
	*out_why = NULL;
	json_object_foreach(line, name, value) {
		if (strcmp(name, "id") != 0 && strcmp(name, "op") != 0 && strcmp(name, "args") != 0 &&
			strcmp(name, "v") != 0)
			*out_why = "members of a request are v, id, op, args";
	}
	value = json_object_get(line, "v");
	if (value != NULL && json_integer_value(value) != 1)
		*out_why = "v: this server speaks version 1";
	if (id != NULL && !json_is_integer(id) && !json_is_null(id) &&
		(!json_is_string(id) || json_string_length(id) > 64))
		*out_why = "id: a number or a text of at most 64 bytes";
	if (!json_is_string(json_object_get(line, "op")))
		*out_why = "op: a text is needed";
	value = json_object_get(line, "args");
	if (value != NULL && !json_is_object(value))
		*out_why = "args: an object is needed";
	return *out_why != NULL;
}

static struct api_request *request_new(struct api_conn *conn, json_t *line)
{
	struct api_request *request = mem_zalloc(sizeof *request);
	struct api *api = conn->api;
	json_t *id = json_object_get(line, "id"), *args = json_object_get(line, "args");
	if (request == NULL)
		return NULL;
	bool id_usable = json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= 64);
	request->id = id_usable ? json_incref(id) : json_null();
	request->args = json_is_object(args) ? json_incref(args) : json_object();
	request->api = api;
	request->conn = conn;
	request->next = api->requests;
	request->link = &api->requests;
	if (api->requests != NULL)
		api->requests->link = &request->next;
	api->requests = request;
	conn->requests++;
	return request;
}

static void unknown_op(struct api_request *request, const char *op)
{
	struct nearest n;
	nearest_begin(&n, op);
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++)
		nearest_offer(&n, api_command_at(i)->op);
	api_fail(request, API_ERROR_UNKNOWN_OP, detail_of("op", op),
		n.best == NULL ? "no op \"%.64s\"%s" : "no op \"%.64s\"; did you mean \"%s\"?", op,
		n.best == NULL ? "" : n.best);
}

void request_line(struct api_conn *conn, const char *text, size_t size)
{
	struct line_error error;
	const char *why;
	json_t *line = line_parse(text, size, &error);
	if (line == NULL) {
		conn_fail(conn, error.code, error.text);
		return;
	}
	struct api_request *request = request_new(conn, line);
	if (request == NULL) {
		conn_fail(conn, API_ERROR_NO_MEMORY, "memory is short");
		json_decref(line);
		return;
	}
	bool wrong = envelope_wrong(line, &why);
	const char *op = json_string_value(json_object_get(line, "op"));
	request->command = wrong ? NULL : api_command_by_op(op);
	if (wrong)
		api_fail(request, API_ERROR_BAD_REQUEST, NULL, "%s", why);
	else if (conn->requests > conn->api->options.limits.requests_max)
		api_fail(request, API_ERROR_TOO_MANY_REQUESTS, NULL, "too many requests are running");
	else if (request->command == NULL)
		unknown_op(request, op);
	else
		dispatch(request);
	json_decref(line);
}

// ---- arguments ----

const char *arg_text(const struct api_request *request, const char *name)
{
	return json_string_value(json_object_get(request->args, name));
}

struct span arg_span(const struct api_request *request, const char *name)
{
	json_t *value = json_object_get(request->args, name);
	return span_of(json_string_value(value), json_string_length(value));
}

int64_t arg_number(const struct api_request *request, const char *name, int64_t fallback)
{
	json_t *value = json_object_get(request->args, name);
	return value != NULL ? json_integer_value(value) : fallback;
}

bool arg_yes(const struct api_request *request, const char *name)
{
	return json_is_true(json_object_get(request->args, name));
}
