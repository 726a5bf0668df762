// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A histogram of unsigned values (nanoseconds, mostly) over the whole 64-bit range with a relative
// error below 1 %: values below 128 are exact, above that each power of two is cut into 64 cells.
// Recording is a few instructions and never allocates. One owner thread per struct.

#include <stdint.h>

enum {
	HISTOGRAM_EXACT = 128, // values below are counted one by one
	HISTOGRAM_CELLS = HISTOGRAM_EXACT + 57 * 64,
};

struct histogram {
	uint64_t count;
	uint64_t sum; // saturates
	uint64_t min; // UINT64_MAX when empty
	uint64_t max;
	uint64_t cells[HISTOGRAM_CELLS];
};

void histogram_init(struct histogram *h);
void histogram_record(struct histogram *h, uint64_t value);
// Adds all of `from` to `into`.
void histogram_merge(struct histogram *into, const struct histogram *from);
// The value that at least `permille_of_percent` / 1000 percent of the records do not exceed:
// 50000 = median, 99900 = p99.9, 100000 = the maximum. 0 when empty. Never above max.
uint64_t histogram_at(const struct histogram *h, uint32_t permille_of_percent);

// The cell of a value, and the largest value that falls into a cell.
uint32_t histogram_cell(uint64_t value);
uint64_t histogram_cell_max(uint32_t cell);
