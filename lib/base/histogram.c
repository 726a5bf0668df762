// SPDX-License-Identifier: BSD-3-Clause
#include "base/histogram.h"

#include <string.h>

#include "base/check.h"

// Above the exact range a value with highest bit e (7..63) keeps its next six bits, so the cell
// number is a shift and an addition and a cell is never wider than 1/64 of its values.

void histogram_init(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

uint32_t histogram_cell(uint64_t value)
{
	if (value < HISTOGRAM_EXACT)
		return (uint32_t)value;
	uint32_t exponent = 63u - (uint32_t)__builtin_clzll(value);
	uint32_t below = (uint32_t)(value >> (exponent - 6)) & 63u;
	return HISTOGRAM_EXACT + (exponent - 7) * 64 + below;
}

uint64_t histogram_cell_max(uint32_t cell)
{
	CHECK(cell < HISTOGRAM_CELLS);
	if (cell < HISTOGRAM_EXACT)
		return cell;
	uint32_t exponent = 7 + (cell - HISTOGRAM_EXACT) / 64;
	uint64_t below = (cell - HISTOGRAM_EXACT) % 64;
	uint64_t low = (64 + below) << (exponent - 6);
	return low + ((UINT64_C(1) << (exponent - 6)) - 1);
}

void histogram_record(struct histogram *h, uint64_t value)
{
	h->count++;
	h->cells[histogram_cell(value)]++;
	h->sum = h->sum + value < h->sum ? UINT64_MAX : h->sum + value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->count += from->count;
	into->sum = into->sum + from->sum < into->sum ? UINT64_MAX : into->sum + from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	for (uint32_t i = 0; i < HISTOGRAM_CELLS; i++)
		into->cells[i] += from->cells[i];
}

uint64_t histogram_at(const struct histogram *h, uint32_t permille_of_percent)
{
	if (h->count == 0)
		return 0;
	CHECK(permille_of_percent <= 100000);
	// The rank, rounded up, without overflow for any count below 2^63.
	uint64_t whole = h->count / 100000 * permille_of_percent;
	uint64_t rest = h->count % 100000 * permille_of_percent;
	uint64_t rank = whole + (rest + 99999) / 100000;
	if (rank == 0)
		rank = 1;
	uint64_t seen = 0;
	for (uint32_t i = 0; i < HISTOGRAM_CELLS; i++) {
		seen += h->cells[i];
		if (seen >= rank) {
			uint64_t value = histogram_cell_max(i);
			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}
