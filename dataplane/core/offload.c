// SPDX-License-Identifier: BSD-3-Clause
#include "core/offload.h"

#include <string.h>

#include "core/core.h"

static struct offload_job *job_of(struct item_head *head)
{
	return (struct offload_job *)(void *)head;
}

static uint8_t *out_of(struct offload_job *job)
{
	return job->room + job->argument_bytes;
}

bool offload_begin(struct dp_worker *w, uint64_t call,
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity),
	struct span argument, size_t capacity)
{
	if (capacity > LEDGER_ITEM_BYTES_MAX / 4 || argument.size > LEDGER_ITEM_BYTES_MAX / 4)
		return false;
	struct item_head *head =
		item_alloc(w->arena, sizeof(struct offload_job) + argument.size + capacity);
	if (head == NULL)
		return false;
	struct offload_job *job = job_of(head);
	job->kind = ITEM_BLOCK;
	job->worker = w->index;
	job->call = call;
	job->work = work;
	job->argument_bytes = argument.size;
	job->capacity = capacity;
	job->out_bytes = 0;
	if (argument.size > 0)
		memcpy(job->room, argument.data, argument.size);
	if (w->dp->offload.submit == NULL) {
		lane_list_push(&w->offload_inline, head);
		return true;
	}
	if (w->dp->offload.submit(w->dp->offload.arg, job))
		return true;
	item_free(w->arena, head);
	return false;
}

// A call for blocking work has no deadline: its end must not be lost for want of memory.
static bool come_back(struct dp_worker *w, struct offload_job *job)
{
	struct envelope env;
	memset(&env, 0, sizeof(env));
	env.reply.ingress_worker = (uint8_t)w->index;
	env.reply.operation_id = job->call;
	size_t size = job->out_bytes < job->capacity ? job->out_bytes : job->capacity;
	if (!call_send_answer(w, &env, result_ok(), SPOTLANE_BYTES, span_of(out_of(job), size))) {
		lane_list_push(&w->offload_back, &job->head);
		return false;
	}
	item_free(w->arena, &job->head);
	return true;
}

static bool run_inline(struct dp_worker *w)
{
	bool any = false;
	struct item_head *head;
	while ((head = lane_list_pop(&w->offload_inline)) != NULL) {
		struct offload_job *job = job_of(head);
		job->out_bytes =
			job->work(job->room, job->argument_bytes, out_of(job), job->capacity);
		any |= come_back(w, job);
	}
	return any;
}

bool offload_poll(struct dp_worker *w)
{
	bool any = false;
	struct lane_list again = w->offload_back;
	struct item_head *head;
	w->offload_back.head = w->offload_back.tail = NULL;
	while ((head = lane_list_pop(&again)) != NULL)
		any |= come_back(w, job_of(head));
	any |= run_inline(w);
	if (w->dp->offload.collect == NULL)
		return any;
	struct offload_job *done[FABRIC_BURST_MAX];
	uint32_t n = w->dp->offload.collect(
		w->dp->offload.arg, w->index, done, FABRIC_BURST_MAX);
	for (uint32_t i = 0; i < n; i++)
		any |= come_back(w, done[i]);
	return any;
}
