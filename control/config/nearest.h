// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// "Did you mean": the candidate nearest to a misspelt word. Pure; any thread.

#include <stdbool.h>
#include <stdint.h>

enum { NEAREST_WORD_MAX = 64 };

// Optimal string alignment distance (insert, delete, replace, swap of neighbours), each 1. Words
// longer than NEAREST_WORD_MAX are far from everything.
uint32_t nearest_distance(const char *a, const char *b);

struct nearest {
	const char *word; // asked for
	const char *best; // borrowed from the candidates; NULL when none is near
	uint32_t distance;
};
void nearest_begin(struct nearest *n, const char *word);
// Near enough is at most a third of the word's length, at least 2; the first of equals wins.
void nearest_offer(struct nearest *n, const char *candidate);
