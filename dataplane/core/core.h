// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The data plane of one node and its workers, for the files of this folder and dataplane/worker.
// Threads: a struct dp_worker belongs to its worker; the groups marked otherwise say who reads them.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/wheel.h"
#include "core/call.h"
#include "core/command.h"
#include "core/egress.h"
#include "core/forward.h"
#include "core/held.h"
#include "core/item.h"
#include "core/park.h"
#include "core/reassembly.h"
#include "core/segment_out.h"
#include "core/session.h"
#include "core/spot.h"
#include "dp/port.h"
#include "lane/ring.h"
#include "ledger/ledger.h"

enum {
	DP_QUEUES_MAX = 8,    // fabric queues per worker
	CROSS_RING = 1024,    // items between one pair of workers
	DP_TYPES_MAX = 256,
	CONTROL_CALLS_MAX = 1024,
	TURN_REPLY_BYTES = 2048, // replies up to this are kept on the worker, not in an item
};

// A WIRE_CONTROL request on its way through control.
struct control_call {
	struct reply_to reply;
	struct spot_key key;
	uint64_t deadline_boot_ns;
	uint32_t generation;
	uint32_t next_free; // index + 1
	uint8_t used;
};

struct control_calls {
	struct control_call *slots;
	uint32_t free_chain;
	uint32_t slots_used;
	uint64_t next_expiry_ns;
};

// The turn on the stack of this worker (turn.h).
struct turn {
	uint64_t serial; // names the turn to the module; 0 = none
	struct dp_spot *spot;
	struct envelope *env;
	struct item *item;   // NULL: runs on the frame in place
	struct frame *frame; // in place only
	uint8_t answered; // the request has its one result (M2)
	uint8_t may_wait;
	uint8_t reply_pending;
	struct result reply_result;
	uint16_t reply_content;
	uint32_t reply_bytes;
	struct item *reply_item; // a reply larger than reply_room
	CACHE_ALIGNED uint8_t reply_room[TURN_REPLY_BYTES];
};

// Items for one other worker.
struct cross_out {
	struct lane_list list; // reserved, waiting for the ring
	uint32_t count;
	struct item_head *foreign_head, *foreign_tail; // ended items that are its memory
};

struct dp_worker {
	struct dp *dp;
	struct item_arena *arena;
	struct clock *clock;
	uint16_t index;
	uint16_t queue_count;
	uint64_t now_ns;    // boot time of this loop turn
	uint64_t now_ticks; // tick reading of this loop turn
	uint64_t tick_ns_q32; // nanoseconds a tick, 32 fraction bits
	uint64_t turn_serial;
	uint64_t turn_ticks; // of all turns; counters.turn_ns_total follows once a loop turn
	uint64_t last_ticks;  // last tick reading: start of the turn that runs
	uint64_t turn_now_ns; // boot time of that reading
	uint64_t pass_ticks;  // a scheduler pass ends after this
	struct dp_spot *timed_spot; // whose turn the next reading ends
	struct ledger_shard shard;
	uint64_t session_id; // of the frames this worker sends
	uint64_t session_counter;
	uint64_t forward_serial; // operations of forwarded messages
	struct dp_spot *ready_head, *ready_tail;
	uint32_t ready_count;
	uint64_t pressure_next_ns;
	bool pressure; // P4
	bool cross_dirty;
	bool sole; // the only worker: nobody else changes the application words of Spots
	uint32_t in_place; // turns on frames of this burst, not in the counters yet
	struct worker_queue *queues[DP_QUEUES_MAX];

	struct turn turn;
	struct session_table sessions;
	struct park_table park;
	struct reassembly_table reassembly;
	struct segment_out_list segment_out;
	struct held_replies held;
	struct forward_notice notices[FORWARD_NOTICES];
	struct call_table calls;
	struct control_calls control_calls;
	struct fact_port facts;
	struct wheel *timers;    // timers of the Spots at home here
	uint64_t timers_next_ns; // none is due before
	struct command *closing; // closes that wait for accepted work
	struct lane_list offload_back;   // done, its answer found no memory: again at the next loop turn
	struct command *leaving; // Actors' leaves that do (actor.h)
	struct lane_list offload_inline; // no pool: run at the next loop turn
	struct cross_out *cross;         // per other worker
	struct ring **cross_in;          // per other worker: it produces
	struct ring **cross_out_rings;   // per other worker: we produce

	CACHE_ALIGNED struct dp_counters counters; // we add; anyone reads relaxed

	// We write, anyone reads relaxed.
	CACHE_ALIGNED _Atomic uint64_t heartbeat_boot_ns;
	_Atomic uint64_t running_since_boot_ns; // 0 = no turn
	_Atomic uint64_t running_key_lo, running_key_hi;
	_Atomic uint32_t audit_step; // how far we are in an audit (audit.c)
	_Atomic uint32_t asleep;     // dataplane/worker: others who pass work on wake us
};

// Blocking work on its way (X5). The block is an item of the caller's arena.
struct offload_job {
	struct item_head head;
	uint8_t kind; // ITEM_BLOCK
	uint16_t worker;
	uint64_t call;
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity);
	size_t argument_bytes;
	size_t capacity;
	size_t out_bytes;
	uint8_t room[]; // argument, then output
};

// Given by dataplane/worker; NULL: work runs on the worker at its next loop turn (simulation).
struct offload_ops {
	bool (*submit)(void *arg, struct offload_job *job);                    // false: queue full
	uint32_t (*collect)(void *arg, uint16_t worker, struct offload_job **out, uint32_t n);
	void *arg;
};

struct dp {
	struct dp_config config; // constant after dp_create
	uint16_t number;         // in the registry that module calls come through
	uint32_t type_count;
	struct dp_type *types[DP_TYPES_MAX];
	struct dp_worker *workers[DP_WORKERS_MAX];
	struct offload_ops offload;
	uint64_t mark_pause, mark_resume; // P4
	uint64_t default_budget_ns;
	bool started; // no more types
	uint8_t route_key[REPLY_ROUTE_KEY_BYTES]; // seals reply routes of this run

	CACHE_ALIGNED struct dp_lease lease; // control writes, workers read
	struct ledger_process process;
	// Control writes, workers read.
	CACHE_ALIGNED _Atomic uint32_t admit_refusal; // 0 = admits, else enum result_kind
	_Atomic uint32_t audit_want;                  // step that workers are to reach; 0 = no audit
	_Atomic(struct peer_set *) peers;             // RCU; NULL = none
	// Workers read when they have a fact; control writes.
	CACHE_ALIGNED _Atomic uint32_t control_sleeps;
	int wake_fd;
	void (*wake)(void *arg);
	void *wake_arg;
	// dataplane/worker: ends a worker's sleep. NULL: nobody sleeps. Any thread.
	void (*wake_worker)(struct dp *dp, uint16_t worker);
	void *threads; // dataplane/worker's own
	uint16_t fact_turn; // control: next worker to take facts from
};

// Adds from the owner, read by others: no torn or invented values.
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}
#define COUNT(w, name) counter_add(&(w)->counters.name, 1)

// S1: this node's owner lease, which all its Spots live under. At admission, on the boot clock.
static inline bool lease_valid(const struct dp_worker *w, uint64_t now_boot_ns)
{
	return now_boot_ns <
		atomic_load_explicit(&w->dp->lease.deadline_boot_ns, memory_order_acquire);
}
// At a turn start, on the tick clock (S4, O8).
static inline bool lease_valid_ticks(const struct dp_worker *w, uint64_t now_ticks)
{
	return now_ticks < atomic_load_explicit(&w->dp->lease.deadline_ticks, memory_order_acquire);
}

enum { DP_NODES_MAX = 256 };
extern _Atomic(struct dp *) dp_registry[DP_NODES_MAX]; // dp.c
static inline struct dp *dp_by_number(uint16_t number)
{
	return number < DP_NODES_MAX
		? atomic_load_explicit(&dp_registry[number], memory_order_acquire)
		: NULL;
}

// After work was put where worker `to` will find it. A sleep that begins at the same moment is bounded.
static inline void worker_nudge(struct dp *dp, uint16_t to)
{
	if (dp->wake_worker != NULL &&
		atomic_load_explicit(&dp->workers[to]->asleep, memory_order_relaxed) != 0)
		dp->wake_worker(dp, to);
}

static inline uint64_t ticks_to_ns(const struct dp_worker *w, uint64_t ticks)
{
	return (uint64_t)(((__uint128_t)ticks * w->tick_ns_q32) >> 32);
}

// Frees an item wherever it belongs: here at once, else with the next batch to its owner.
void item_end(struct dp_worker *w, struct item_head *item);
// A new item with room for `bytes` behind the struct. NULL when memory is short.
MUST_USE struct item *item_new(struct dp_worker *w, enum item_kind kind, size_t bytes);
