// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the files of this folder share: the threads of one data plane.

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "worker/pool.h"
#include "worker/worker.h"

struct worker_thread { // written before the thread starts; then its own, but for wake_fd
	struct threads *threads;
	pthread_t thread;
	uint16_t index;
	int cpu;     // -1: not pinned
	int wake_fd; // eventfd: anyone writes, the thread polls
	bool runs;
};

struct threads {
	struct dp *dp;
	struct dp_thread_hooks hooks;
	_Atomic bool stop;
	struct pool *pool;
	struct worker_thread workers[DP_WORKERS_MAX];
};

// Waits for work when there is none (idle.c). Called after each loop turn.
struct idle {
	uint32_t empty_turns;
	uint64_t idle_since_ns;
	uint32_t fd_count; // of the descriptors below; the first is the thread's wake_fd
	bool all_wait;     // every queue can say that something came
	int fds[DP_QUEUES_MAX + 1];
};
void idle_begin(struct idle *idle, struct worker_thread *t);
void idle_turn(struct idle *idle, struct worker_thread *t, bool had_work);
