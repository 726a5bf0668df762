// SPDX-License-Identifier: BSD-3-Clause
#include <jemalloc/jemalloc.h>

#include "ledger/ledger.h"

// jemalloc spaces its classes four to a doubling above 128 bytes. The index of a class is computed,
// its size is read from a table that was filled from nallocx itself; a jemalloc with other classes
// is noticed at start, before a single charge is wrong.

enum {
	CLASSES_PER_DOUBLING = 4,
	LARGE_LOG2_MIN = 12, // 4096: the first class above the small table belongs to this doubling
	LARGE_LOG2_MAX = 25, // 32 MiB is the last
	LARGE_CLASSES = (LARGE_LOG2_MAX - LARGE_LOG2_MIN) * CLASSES_PER_DOUBLING,
};

uint16_t ledger_small_class[LEDGER_SMALL_CLASSES];
static uint32_t large_class[LARGE_CLASSES];

static unsigned large_index(size_t bytes)
{
	// The doubling that holds bytes is (2^log2, 2^(log2+1)].
	unsigned log2 = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes - 1);
	unsigned step = (unsigned)((bytes - 1) >> (log2 - 2)) & (CLASSES_PER_DOUBLING - 1);

	return (log2 - LARGE_LOG2_MIN) * CLASSES_PER_DOUBLING + step;
}

uint32_t ledger_large_class(size_t bytes)
{
	if (LIKELY(bytes <= LEDGER_ITEM_BYTES_MAX))
		return large_class[large_index(bytes)];
	size_t block = nallocx(bytes, 0);
	CHECK(block != 0 && block <= UINT32_MAX);
	return (uint32_t)block;
}

// Before main, so that any thread may ask at any time without a check on the hot path.
__attribute__((constructor)) static void fill_tables(void)
{
	ledger_small_class[0] = (uint16_t)nallocx(1, 0);
	for (unsigned i = 1; i < LEDGER_SMALL_CLASSES; i++)
		ledger_small_class[i] = (uint16_t)nallocx(i * 8, 0);
	for (unsigned i = 0; i < LARGE_CLASSES; i++) {
		unsigned log2 = LARGE_LOG2_MIN + i / CLASSES_PER_DOUBLING;
		size_t step = (size_t)1 << (log2 - 2);
		size_t last = ((size_t)1 << log2) + (i % CLASSES_PER_DOUBLING + 1) * step;

		large_class[i] = (uint32_t)nallocx(last - step + 1, 0);
		CHECK(large_class[i] == last);
		CHECK(nallocx(last, 0) == last);
	}
}

const char *ledger_allocator_version(void)
{
	const char *text = "unknown";
	size_t size = sizeof(text);
	return mallctl("version", &text, &size, NULL, 0) == 0 ? text : "unknown";
}
