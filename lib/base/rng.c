// SPDX-License-Identifier: BSD-3-Clause
// xoshiro256** (Blackman and Vigna), seeded through splitmix64 as its authors advise.
#include "base/rng.h"

#include <sys/random.h>

#include "base/check.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
}

void rng_seed_system(struct rng *rng)
{
	uint64_t seed;
	rng_secret(&seed, sizeof(seed));
	rng_seed(rng, seed);
}

uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	CHECK(bound > 0);
	uint64_t floor = (0 - bound) % bound; // values below would favour small results
	uint64_t x;
	do
		x = rng_u64(rng);
	while (x < floor);
	return x % bound;
}

void rng_secret(void *out, size_t size)
{
	uint8_t *p = out;
	while (size > 0) {
		size_t want = size < 256 ? size : 256;
		CHECK(getrandom(p, want, 0) == (ssize_t)want);
		p += want;
		size -= want;
	}
}
