// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Metrics in the text form of Prometheus (G4). Labels come from closed sets only (worker, fabric, kind,
// reason, state, op, outcome), never from an id: the text's size depends on the number of workers and
// fabrics and on nothing else. Reading costs the data plane nothing but relaxed loads of its counters.
// Control thread only.

#include "api/errors.h"
#include "api/commands.h"
#include "api/text.h"

struct api;

// What the control channel itself did.
struct api_meter {
	uint64_t requests[API_COMMAND_COUNT][2]; // failed, ok
	uint64_t errors[API_ERROR_COUNT];        // by row of the catalogue
	uint64_t connections;    // accepted
	uint64_t slow_clients;   // dropped because they did not read
	uint64_t events_missed;  // by watchers that read too slowly
	uint64_t http_requests[4]; // enum http_page
};

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

// Writes all of it; out->failed when memory was short.
void metrics_write(const struct api *api, struct text *out);
