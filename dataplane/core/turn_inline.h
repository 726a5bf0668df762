// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The parts of a turn that every message passes, shared by turn.c and in_place.c. Owner worker only,
// but for the lookup of a turn's number.

#include <string.h>

#include "core/core.h"
#include "core/turn.h"

// node number (8 bits), worker (8), serial (48): names the turn on the stack of one worker of one
// node; a number kept beyond its callback names nothing any more.
enum { TURN_SERIAL_BITS = 48 };
#define TURN_SERIAL_MASK ((UINT64_C(1) << TURN_SERIAL_BITS) - 1)

static inline uint64_t turn_handle(const struct dp_worker *w)
{
	return (uint64_t)w->dp->number << 56 | (uint64_t)w->index << TURN_SERIAL_BITS |
		w->turn.serial;
}

// The worker whose turn has this number; NULL: not the turn on the stack.
static inline struct dp_worker *turn_worker(uint64_t handle)
{
	struct dp *dp = dp_by_number((uint16_t)(handle >> 56));
	uint16_t index = (uint16_t)(handle >> TURN_SERIAL_BITS & 0xff);
	if (dp == NULL || index >= dp->config.workers)
		return NULL;
	struct dp_worker *w = dp->workers[index];
	return w->turn.serial != 0 && w->turn.serial == (handle & TURN_SERIAL_MASK) ? w : NULL;
}

// Marks what runs now, for the watch over stuck turns (X4); also around lifecycle callbacks.
static inline void turn_mark(struct dp_worker *w, const struct dp_spot *spot)
{
	atomic_store_explicit(&w->running_key_lo, spot->key.lo, memory_order_relaxed);
	atomic_store_explicit(&w->running_key_hi, spot->key.hi, memory_order_relaxed);
	// Release: who sees the time sees the key (dp_worker_running).
	atomic_store_explicit(&w->running_since_boot_ns, w->turn_now_ns, memory_order_release);
}

static inline void turn_unmark(struct dp_worker *w)
{
	atomic_store_explicit(&w->running_since_boot_ns, 0, memory_order_release);
}

static inline void turn_begin(struct dp_worker *w, struct dp_spot *spot, struct envelope *env,
	struct item *item, struct frame *frame)
{
	struct turn *t = &w->turn;
	t->serial = ++w->turn_serial & TURN_SERIAL_MASK;
	t->spot = spot;
	t->env = env;
	t->item = item;
	t->frame = frame;
	t->answered = item != NULL ? item->answered : 0;
	// By type, not by place: a handler that never waits may not do so when its message was queued.
	t->may_wait = !(spot->type->flags & SPOTLANE_TYPE_NOWAIT);
	t->reply_pending = 0;
	t->reply_item = NULL;
	w->timed_spot = spot;
	spot->gate = GATE_RUNNING;
	COUNT(w, turns);
	turn_mark(w, spot);
}

static inline void turn_message(const struct envelope *env, struct spotlane_message *out)
{
	out->type = env->message_type;
	out->content = env->content;
	out->wants_reply = reply_is_wanted(env->reply.kind);
	memset(out->reserved, 0, sizeof(out->reserved));
	out->payload.data = env->payload;
	out->payload.size = env->payload_bytes;
}
