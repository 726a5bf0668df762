// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The audit of L3 from the worker's side: at a loop boundary it gives foreign items back (step 1),
// then, when all did, frees what came back and flushes its cache (step 2), and stands still until
// control has compared. A standing worker's loop turn returns at once.

#include <stdbool.h>

struct dp_worker;

bool audit_on(const struct dp_worker *w);
bool audit_step(struct dp_worker *w);
