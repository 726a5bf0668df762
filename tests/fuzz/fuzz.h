// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a fuzz target gives. Built with -Dfuzzers=true, libFuzzer calls it; otherwise driver.c does, with
// the corpus and a bounded number of seeded mutations. `data` is a heap buffer of exactly `size` bytes.
// A target ends the process (CHECK) when what it holds does not hold.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
// Optional.
int LLVMFuzzerInitialize(int *argc, char ***argv);
// Optional: after the corpus alone, calls `missed` with each thing that no input of it reached.
void fuzz_unreached(void (*missed)(const char *what));

// The input as choices: reading past its end gives zeros, and `left` tells.
struct fuzz_reader {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_reader *r)
{
	if (r->left == 0)
		return 0;
	r->left--;
	return *r->at++;
}

static inline uint16_t fuzz_u16(struct fuzz_reader *r)
{
	uint16_t low = fuzz_u8(r);
	return (uint16_t)(low | fuzz_u8(r) << 8);
}

// Up to `size` bytes of the input.
static inline const uint8_t *fuzz_bytes(struct fuzz_reader *r, size_t size, size_t *out_size)
{
	const uint8_t *at = r->at;
	*out_size = size < r->left ? size : r->left;
	r->at += *out_size;
	r->left -= *out_size;
	return at;
}

// A copy that a sanitizer guards to the byte; The caller frees it.
static inline uint8_t *fuzz_exact(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size != 0 ? size : 1);
	CHECK(copy != NULL);
	if (size != 0)
		memcpy(copy, data, size);
	return copy;
}
