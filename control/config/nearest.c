// SPDX-License-Identifier: BSD-3-Clause
#include "config/nearest.h"

#include <stddef.h>
#include <string.h>

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a < b ? a : b;
	return m < c ? m : c;
}

uint32_t nearest_distance(const char *a, const char *b)
{
	uint32_t rows[3][NEAREST_WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	if (la > NEAREST_WORD_MAX || lb > NEAREST_WORD_MAX)
		return UINT32_MAX;
	for (uint32_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (uint32_t i = 1; i <= la; i++) {
		uint32_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
		now[0] = i;
		for (uint32_t j = 1; j <= lb; j++) {
			uint32_t cost = a[i - 1] != b[j - 1];
			now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				two[j - 2] + 1 < now[j])
				now[j] = two[j - 2] + 1;
		}
	}
	return rows[la % 3][lb];
}

void nearest_begin(struct nearest *n, const char *word)
{
	size_t third = strlen(word) / 3;
	*n = (struct nearest){word, NULL, (uint32_t)(third < 2 ? 2 : third) + 1};
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	uint32_t distance = nearest_distance(n->word, candidate);
	if (distance >= n->distance)
		return;
	n->distance = distance;
	n->best = candidate;
}
