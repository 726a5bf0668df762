// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <string.h>

#include "base/mem.h"

// Long work goes in pieces, one per millisecond at most, so that facts and renewals are never late.

void job_add(struct api *api, struct api_job *job)
{
	job->next = api->jobs;
	api->jobs = job;
	uv_timer_start(&api->job_timer, jobs_run, 0, 1);
}

void jobs_run(uv_timer_t *timer)
{
	struct api *api = timer->data;
	struct api_job **at = &api->jobs;
	while (*at != NULL) {
		struct api_job *job = *at, *next = job->next;
		if (job->step(job))
			*at = next;
		else
			at = &job->next;
	}
	if (api->jobs != NULL)
		return;
	uv_timer_stop(timer);
	api_jobs_ended(api);
}

static bool abandoned(const struct api_request *request)
{
	return request->api == NULL || request->conn == NULL;
}

// ---- lane.top ----

enum { TOP_MAX = 100 };
struct top_entry {
	uint8_t id[ID_BYTES_MAX];
	uint8_t id_bytes;
	struct spot_key key;
	uint16_t home_worker;
	struct lane_level level;
	struct lane_bounds bounds;
};
struct top_job {
	struct api_job job;
	struct api_request *request;
	uint64_t cursor, seen;
	bool by_bytes, any;
	uint32_t limit, count;
	struct top_entry entries[TOP_MAX]; // fullest first
};

static uint64_t rank_of(const struct top_job *top, const struct top_entry *e)
{
	return top->by_bytes ? e->level.bytes : e->level.count;
}

static void top_visit(struct dp_spot *spot, void *arg)
{
	struct top_job *top = arg;
	struct dp_spot_view v;
	struct top_entry e = {0};
	dp_spot_view(spot, &v);
	top->seen++;
	e.level = v.application;
	if (rank_of(top, &e) == 0 || (top->count == top->limit &&
		rank_of(top, &e) <= rank_of(top, &top->entries[top->count - 1])))
		return;
	e.bounds = v.application_bounds;
	e.key = v.key;
	e.home_worker = v.home_worker;
	e.id_bytes = (uint8_t)(v.id.size < ID_BYTES_MAX ? v.id.size : ID_BYTES_MAX);
	memcpy(e.id, v.id.data, e.id_bytes);
	uint32_t at = top->count < top->limit ? top->count++ : top->count - 1;
	for (; at > 0 && rank_of(top, &e) > rank_of(top, &top->entries[at - 1]); at--)
		top->entries[at] = top->entries[at - 1];
	top->entries[at] = e;
}

static void top_answer(struct top_job *top)
{
	json_t *spots = json_array();
	for (uint32_t i = 0; i < top->count; i++) {
		const struct top_entry *e = &top->entries[i];
		json_t *row = view_lane(e->level, e->bounds);
		json_object_set_new(row, "id", view_text(span_of(e->id, e->id_bytes)));
		json_object_set_new(row, "key", view_key(e->key));
		json_object_set_new(row, "home_worker", json_integer(e->home_worker));
		json_array_append_new(spots, row);
	}
	api_done(top->request, json_pack("{s:s, s:I, s:o}", "by", top->by_bytes ? "bytes" : "items",
				       "spots_seen", (json_int_t)top->seen, "spots", spots));
}

static bool top_step(struct api_job *job)
{
	struct top_job *top = container_of(job, struct top_job, job);
	if (abandoned(top->request)) {
		api_done(top->request, NULL);
		mem_free(top);
		return true;
	}
	node_walk(top->request->api->options.node, &top->cursor, API_WALK_CHUNK, top_visit, top);
	if (top->cursor != 0)
		return false;
	top_answer(top);
	mem_free(top);
	return true;
}

void op_lane_top(struct api_request *request)
{
	struct top_job *top = mem_zalloc(sizeof *top);
	const char *by = arg_text(request, "by");
	if (top == NULL) {
		api_done(request, NULL);
		return;
	}
	top->job.step = top_step;
	top->request = request;
	top->by_bytes = by != NULL && strcmp(by, "bytes") == 0;
	top->limit = (uint32_t)arg_number(request, "limit", 10);
	request->held = true;
	job_add(request->api, &top->job);
}

// ---- stats.audit ----

enum audit_stage { AUDIT_BEGINS = 1, AUDIT_RUNS = 2, AUDIT_WALKS = 3 };
struct audit_job {
	struct api_job job;
	struct api_request *request;
	struct api *api;
	enum audit_stage stage;
	uint64_t cursor, spots, lane_bytes, lane_items;
	struct dp_audit audit;
};

static void audit_visit(struct dp_spot *spot, void *arg)
{
	struct audit_job *a = arg;
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	a->spots++;
	a->lane_bytes += v.application.bytes + v.lifecycle.bytes;
	a->lane_items += v.application.count + v.lifecycle.count;
}

// accepted = delivered + dropped, each with its reason, + in flight. What was refused was never
// accepted and stands beside.
static bool audit_conserved(const struct dp_audit *d)
{
	uint64_t with_reason = 0;
	for (size_t i = 1; i < ARRAY_COUNT(d->dropped_by); i++)
		with_reason += d->dropped_by[i];
	return with_reason == d->dropped &&
	       d->accepted == d->delivered + d->dropped + d->in_flight;
}

static json_t *audit_drops(const struct dp_audit *d)
{
	json_t *drops = json_object();
	for (size_t i = 1; i < ARRAY_COUNT(d->dropped_by); i++) {
		const char *name = result_kind_name((uint8_t)i);
		if (name != NULL && d->dropped_by[i] > 0)
			view_set(drops, name, d->dropped_by[i]);
	}
	return drops;
}

static void audit_answer(struct audit_job *a)
{
	const struct dp_audit *d = &a->audit;
	json_t *json = json_pack("{s:b, s:b, s:b}", "equal", d->equal, "ledger_equal",
		d->ledger_bytes == d->measured_bytes, "conserved", audit_conserved(d));
	view_set(json, "ledger_bytes", d->ledger_bytes);
	view_set(json, "measured_bytes", d->measured_bytes);
	view_set(json, "items", d->items);
	view_set(json, "lane_bytes", a->lane_bytes);
	view_set(json, "lane_items", a->lane_items);
	view_set(json, "spots", a->spots);
	view_set(json, "process_charged_bytes", d->process_charged_bytes);
	view_set(json, "process_taken_bytes", d->process_taken_bytes);
	view_set(json, "accepted", d->accepted);
	view_set(json, "delivered", d->delivered);
	view_set(json, "refused", d->refused);
	view_set(json, "dropped", d->dropped);
	json_object_set_new(json, "dropped_by", audit_drops(d));
	view_set(json, "in_flight", d->in_flight);
	api_done(a->request, json);
}

// A begun audit is polled to its end even when nobody asks any more: the workers are parked for it.
static bool audit_step(struct api_job *job)
{
	struct audit_job *a = container_of(job, struct audit_job, job);
	struct dp *dp = a->api->options.dp;
	bool gone = abandoned(a->request);
	if (a->stage == AUDIT_BEGINS && !gone && dp_audit_begin(dp) == DP_DONE)
		a->stage = AUDIT_RUNS;
	if (a->stage == AUDIT_RUNS && dp_audit_poll(dp, &a->audit))
		a->stage = AUDIT_WALKS;
	if (gone && a->stage != AUDIT_RUNS) {
		api_done(a->request, NULL);
		mem_free(a);
		return true;
	}
	if (a->stage != AUDIT_WALKS)
		return false;
	node_walk(a->api->options.node, &a->cursor, API_WALK_CHUNK, audit_visit, a);
	if (a->cursor != 0)
		return false;
	audit_answer(a);
	mem_free(a);
	return true;
}

void op_stats_audit(struct api_request *request)
{
	struct audit_job *a = mem_zalloc(sizeof *a);
	if (a == NULL) {
		api_done(request, NULL);
		return;
	}
	a->job.step = audit_step;
	a->request = request;
	a->api = request->api;
	a->stage = AUDIT_BEGINS;
	request->held = true;
	job_add(request->api, &a->job);
}
