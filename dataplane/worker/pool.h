// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The pool for blocking work (X5): a few threads of its own; jobs come and go through rings, so
// that workers take no lock. The number of jobs under way is bounded.

#include "base/compiler.h"

struct dp;
struct pool;

// Starts the threads of dp's configuration and becomes its offload port. NULL: memory or threads
// short.
MUST_USE struct pool *pool_create(struct dp *dp);
// After the workers ended. Work that runs is waited for; what did not start is dropped. Accepts
// NULL.
void pool_destroy(struct pool *pool);
