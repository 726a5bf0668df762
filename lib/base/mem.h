// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The allocation funnel for everything but items and Spots (which go through ledger/): it can fail
// the Nth allocation on purpose. Any thread. A returned pointer is owned by the caller.

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// NULL when memory is short (or a planted failure is due). Zeroed.
MUST_USE void *mem_zalloc(size_t size);
MUST_USE void *mem_zalloc_aligned(size_t alignment, size_t size);
MUST_USE void *mem_resize(void *p, size_t size);
MUST_USE char *mem_strdup(const char *s);
// Accepts NULL.
void mem_free(void *p);

// Tests: the nth allocation from now (1 = the next) fails; with `sticky` all later ones too.
// 0 switches failures off.
void mem_fail_nth(uint64_t nth, int sticky);
