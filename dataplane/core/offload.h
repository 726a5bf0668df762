// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Blocking work of handlers (X5): to the pool and back as an answer. Owner worker only.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ids.h"

struct dp_worker;

MUST_USE bool offload_begin(struct dp_worker *w, uint64_t call,
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity),
	struct span argument, size_t capacity);
// Takes back what is done. True when there was something.
bool offload_poll(struct dp_worker *w);
