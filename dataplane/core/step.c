// SPDX-License-Identifier: BSD-3-Clause
#include "core/step.h"

#include "base/mem.h"
#include "core/actor.h"
#include "core/audit.h"
#include "core/control_call.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/ingress.h"
#include "core/lifecycle.h"
#include "core/offload.h"
#include "core/scheduler.h"
#include "core/timer.h"
#include "core/turn.h"

#define PRESSURE_GRAIN_NS UINT64_C(100000)

bool worker_attach_queue(struct dp_worker *w, struct fabric_queue *queue)
{
	if (w->queue_count == DP_QUEUES_MAX)
		return false;
	struct worker_queue *q = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*q));
	if (q == NULL)
		return false;
	q->queue = queue;
	q->ops = fabric_base(queue)->ops;
	q->payload_bytes_max = fabric_base(queue)->payload_bytes_max;
	q->held = w->held.bytes > 0 ? &w->held : NULL;
	w->queues[w->queue_count++] = q;
	return true;
}

// Parked before calls: a message that never left the parking says "not accepted" first.
static bool ticks(struct dp_worker *w)
{
	bool any = park_tick(w);
	any |= reassembly_tick(w);
	any |= control_call_tick(w);
	any |= call_tick(w);
	any |= offload_poll(w);
	any |= timer_tick(w);
	if (w->leaving != NULL)
		any |= actor_tick(w);
	if (w->closing != NULL)
		any |= lifecycle_tick(w);
	if (w->segment_out.first != NULL)
		any |= segment_out_tick(w);
	return any;
}

static void read_time(struct dp_worker *w)
{
	w->now_ns = clock_boot_ns(w->clock);
	w->now_ticks = w->last_ticks = clock_ticks(w->clock);
	w->turn_now_ns = w->now_ns;
	atomic_store_explicit(&w->heartbeat_boot_ns, w->now_ns, memory_order_relaxed);
}

// P4: between the two marks the signal keeps its state. Looking at every worker's figure takes lines
// that they write at each message, so it is done now and then.
static void judge_pressure(struct dp_worker *w)
{
	if (LIKELY(w->now_ns < w->pressure_next_ns))
		return;
	w->pressure_next_ns = w->now_ns + PRESSURE_GRAIN_NS;
	uint64_t charged = dp_process_bytes(w->dp);
	if (charged >= w->dp->mark_pause)
		w->pressure = true;
	else if (charged < w->dp->mark_resume)
		w->pressure = false;
}

bool worker_step(struct dp_worker *w)
{
	bool any = false;
	read_time(w);
	COUNT(w, loops);
	if (UNLIKELY(audit_on(w)))
		return audit_step(w);
	judge_pressure(w);
	item_arena_collect(w->arena);
	any |= command_poll(w);
	if (w->dp->config.workers > 1)
		any |= cross_poll(w);
	for (uint16_t i = 0; i < w->queue_count; i++)
		any |= ingress_poll(w, w->queues[i]);
	any |= ticks(w);
	any |= scheduler_run(w);
	if (w->timed_spot != NULL)
		turn_clock(w);
	__atomic_store_n(&w->counters.turn_ns_total, ticks_to_ns(w, w->turn_ticks), __ATOMIC_RELAXED);
	egress_flush(w);
	cross_flush(w);
	fact_flush(w);
	if (any)
		COUNT(w, loops_busy);
	return any || w->cross_dirty || w->ready_count > 0;
}

bool worker_may_sleep(struct dp_worker *w)
{
	if (ring_count(w->facts.commands) > 0)
		return false;
	for (uint16_t from = 0; from < w->dp->config.workers; from++)
		if (w->cross_in[from] != NULL && ring_count(w->cross_in[from]) > 0)
			return false;
	ledger_shard_trim(&w->shard);
	COUNT(w, idle_sleeps);
	return true;
}

void worker_detach_queues(struct dp_worker *w)
{
	egress_detach(w);
	while (w->queue_count > 0)
		mem_free(w->queues[--w->queue_count]);
}
