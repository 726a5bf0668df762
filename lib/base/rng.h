// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Randomness. `struct rng` is a small deterministic generator (xoshiro256**), seeded either from
// the kernel (rng_seed_system) or from a number (simulation, tests, generators). Not for secrets:
// keys come from rng_secret. One owner thread per struct.

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
void rng_seed_system(struct rng *rng);
uint64_t rng_u64(struct rng *rng);
// Uniform in [0, bound), bound > 0.
uint64_t rng_below(struct rng *rng, uint64_t bound);
// Fills out with random bytes from the kernel; aborts when the kernel refuses. Any thread.
void rng_secret(void *out, size_t size);
