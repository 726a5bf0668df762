// SPDX-License-Identifier: BSD-3-Clause
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t fail_countdown; // 0 = off
static _Atomic bool fail_sticky;

void mem_fail_nth(uint64_t nth, int sticky)
{
	atomic_store(&fail_sticky, sticky != 0);
	atomic_store(&fail_countdown, nth);
}

static bool must_fail(void)
{
	uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
	if (LIKELY(left == 0))
		return false;
	if (left == 1) {
		if (!atomic_load(&fail_sticky))
			atomic_store(&fail_countdown, 0);
		return true;
	}
	atomic_fetch_sub(&fail_countdown, 1);
	return false;
}

void *mem_zalloc(size_t size)
{
	return must_fail() ? NULL : calloc(1, size);
}

void *mem_zalloc_aligned(size_t alignment, size_t size)
{
	if (must_fail())
		return NULL;
	void *p = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
	if (p != NULL)
		memset(p, 0, size);
	return p;
}

void *mem_resize(void *p, size_t size)
{
	return must_fail() ? NULL : realloc(p, size);
}

char *mem_strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = mem_zalloc(size);
	if (copy != NULL)
		memcpy(copy, s, size);
	return copy;
}

void mem_free(void *p)
{
	free(p);
}
