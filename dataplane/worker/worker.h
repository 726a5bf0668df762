// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Runs the workers of a data plane: queues attached, then either one loop turn at a time
// (simulation, tests: one thread steps all) or a thread per worker, started, pinned, idled and
// stopped here.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dp/port.h"

struct fabric_queue;

// Before the worker's first turn. False: more than eight queues, or memory is short.
MUST_USE bool dp_attach_queue(struct dp *dp, uint16_t worker, struct fabric_queue *queue);

// One loop turn; true when there was work. No thread may run that worker at the same time. Holds no
// route when it returns: a caller that is a publish/ reader may then say that it is quiescent.
bool dp_worker_turn(struct dp *dp, uint16_t worker);

struct dp_thread_hooks { // each may be NULL; called on the worker's thread
	void (*thread_begin)(void *arg, uint16_t worker);
	void (*thread_end)(void *arg, uint16_t worker);
	void *arg;
};

// The eventfd of dp_wake_fd; made by dp_threads_start when nobody asked before. False: no
// descriptor.
MUST_USE bool dp_wake_create(struct dp *dp);

// A thread per worker (cpus[i] < 0: not pinned; cpus NULL: none is) and the pool for blocking work.
// publish_start must have been called. False: nothing runs, *out_why says why.
MUST_USE bool dp_threads_start(
	struct dp *dp, const int *cpus, const struct dp_thread_hooks *hooks, const char **out_why);
// Ends and joins all; then dp_destroy may follow. Harmless when nothing runs.
void dp_threads_stop(struct dp *dp);
