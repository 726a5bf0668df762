// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a run of many seeds did: faults by kind, visits of each cell of the activation table, work.

#include <stdint.h>
#include <stdio.h>

#include "spot/activation.h"

#define SIM_FAULTS(X)                                                                              \
	X(NET_LOSS, "frame lost")                                                                  \
	X(NET_REPEAT, "frame repeated")                                                            \
	X(NET_LATE, "frame delayed past others")                                                   \
	X(NET_CUT, "frame lost to a partition")                                                    \
	X(NET_FULL, "frame met a full port")                                                       \
	X(NET_DOWN, "frame met a node that is down")                                               \
	X(STORE_BEFORE, "store operation failed, nothing applied")                                 \
	X(STORE_ANSWER, "store operation applied, answer lost")                                    \
	X(STORE_REQUEST, "store operation lost, answer lost")                                      \
	X(STORE_FULL, "store full")                                                                \
	X(STORE_HELD, "store stalled for one node")                                                \
	X(STORE_RESTART, "store restarted")                                                        \
	X(STORE_CLOCK, "store's clock jumped")                                                     \
	X(CRASH, "node crashed")                                                                   \
	X(CRASH_IN_STORE, "node crashed with a store operation under way")                         \
	X(RESTART, "node restarted at once")                                                       \
	X(RESTART_WATCHED, "node restarted and watched its former beat")                           \
	X(PAUSE, "node suspended")                                                                 \
	X(PAUSE_PAST_LEASE, "node suspended past its lease")                                       \
	X(PAUSE_IN_STORE, "the store answered a suspended node")                                   \
	X(STOP, "node stopped")                                                                    \
	X(STOP_FORCED, "node stopped by force")                                                    \
	X(LAPSE, "lease lapsed")                                                                   \
	X(FACTORY_FAILED, "factory failed")                                                        \
	X(CREATE_DECLINED, "create declined")                                                      \
	X(CLOSING_FAILED, "closing callback failed")                                               \
	X(READERS_STALL, "readers stalled")

enum sim_fault {
#define X(name, text) SIM_FAULT_##name,
	SIM_FAULTS(X)
#undef X
		SIM_FAULT_COUNT,
};

struct sim_totals {
	uint64_t faults[SIM_FAULT_COUNT];
	uint64_t cells[ACTIVATION_STATE_END][ACTIVATION_EVENT_END];
	uint64_t executions, built, operations, results, steps;
	uint64_t kinds[24]; // results by kind
};
extern struct sim_totals sim_totals; // of this process

static inline void sim_fault(enum sim_fault fault)
{
	sim_totals.faults[fault]++;
}

// Adds this process's totals to `into` and clears them.
void sim_totals_move(struct sim_totals *into);
// Prints both tables; returns how many cells are zero.
uint32_t sim_totals_print(const struct sim_totals *t, FILE *out);
