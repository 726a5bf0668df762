// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The scenarios of spotbench. Each prints a table and, with `json`, one JSON object per line.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bench_options {
	uint32_t spots;
	uint32_t repetitions;
	uint32_t rounds;  // of each repetition (memory)
	uint32_t seconds; // of each measured stretch (memif)
	uint32_t window;  // requests in flight (memif)
	uint64_t seed;
	int router_cpu, generator_cpu;
	bool hugepages;
	bool testpmd;                            // also measure dpdk-testpmd in the same run
	bool open;                               // also measure latency at a fixed rate (memif)
	uint32_t plant_delay_ns, plant_stall_ms; // planted.h
	const char *counter_module;
	const char *
		sqlite_folder; // activation: a SQLite store in this folder; NULL = the memory store
	FILE *json;            // NULL = none
};

// Exit codes: 0 measured, 1 a reply was wrong or something is unaccounted for, 2 usage, 11
// environment.
enum { BENCH_OK = 0, BENCH_WRONG = 1, BENCH_USAGE = 2, BENCH_ENVIRONMENT = 11 };

int scenario_memory(const struct bench_options *options);
int scenario_activation(const struct bench_options *options);
int scenario_memif(const struct bench_options *options);
