// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One loop turn of one worker, without threads, system calls or RCU: the worker folder wraps it.

#include <stdbool.h>
#include <stdint.h>

struct dp;
struct dp_worker;
struct fabric_queue;

// Before the worker runs. False: too many queues, or memory is short.
bool worker_attach_queue(struct dp_worker *w, struct fabric_queue *queue);
// True when there was work.
bool worker_step(struct dp_worker *w);
// Before a sleep: whether control or another worker has left work since, and idle budget given back.
bool worker_may_sleep(struct dp_worker *w);
// After the last turn: fetched frames go back, the queues may then be closed.
void worker_detach_queues(struct dp_worker *w);
