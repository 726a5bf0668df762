// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Position reports of vehicles in a city, as a recording would have them: each vehicle reports
// every five to nine minutes, drives along streets that mostly keep their direction, waits, and
// stays in town. Whole numbers only, so that one seed gives the same bytes on every machine.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { VEHICLE_LINE_BYTES = 256 };

struct vehicle_report {
	uint32_t vehicle;
	uint32_t second;         // since the recording began
	int64_t lat_microdegrees;
	int64_t lon_microdegrees;
	uint32_t speed_kmh;
	uint32_t heading_degrees;
	uint32_t odometer_decametres;
};

struct vehicles;
// NULL when memory is short.
MUST_USE struct vehicles *vehicles_create(uint32_t count, uint32_t seconds, uint64_t seed);
void vehicles_destroy(struct vehicles *vehicles);
// The next report in order of time; false at the end.
MUST_USE bool vehicles_next(struct vehicles *vehicles, struct vehicle_report *out);
// One JSON line with its newline.
void vehicle_report_print(const struct vehicle_report *report, char out[VEHICLE_LINE_BYTES]);
