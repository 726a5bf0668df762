// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One line of JSON for one run: the scenario, its parameters, and every raw sample. A NULL file
// makes each call do nothing.
//
//	{"scenario":"memif","parameters":{"spots":1000},
//	 "metrics":{"router":{"unit":"messages/s","samples":[1,2]}}}      (one line in the file)

#include <stdint.h>
#include <stdio.h>

#include "stats.h"

struct bench_json {
	FILE *file;
	unsigned parameters, metrics;
};

struct bench_json bench_json_begin(FILE *file, const char *scenario);
// All parameters come before the first metric.
void bench_json_parameter(struct bench_json *j, const char *name, uint64_t value);
void bench_json_samples(
	struct bench_json *j, const char *name, const char *unit, const struct stats *samples);
void bench_json_value(struct bench_json *j, const char *name, const char *unit, double value);
void bench_json_end(struct bench_json *j);
