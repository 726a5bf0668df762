// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The load: requests to `counter` Spots, uniform at random from a printed seed, and the check of every
// reply (key, operation, kind, and the counter's value, which must be exactly one more than the last).
// Transport-free: writes and reads UDP payloads. One thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "base/rng.h"
#include "wire/wire.h"

enum {
	LOAD_PAYLOAD_BYTES = 64,
	LOAD_OUTSTANDING_MAX = 1u << 14, // operations in flight, power of two
	LOAD_FRAME_BYTES = WIRE_HEADER_BYTES + LOAD_PAYLOAD_BYTES,
};

struct load_operation {
	uint32_t spot; // index; UINT32_MAX = not in flight
	uint64_t id;
};

struct load_counts {
	uint64_t sent, answered, wrong, foreign, refused;
};

struct load {
	struct rng rng;
	uint64_t seed;
	uint32_t spots;
	struct spot_key *keys;     // per Spot
	bool keys_borrowed;
	uint32_t *expected;        // per Spot: value of the last checked reply
	struct load_operation *in_flight;
	struct wire_header header; // template
	uint64_t session, counter, cookie, operation;
	struct load_counts counts;
	uint8_t wrong_kind, wrong_reason; // of the last reply that was not OK
};

MUST_USE bool load_init(struct load *load, uint32_t spots, uint64_t seed);
// A second load on the keys and the seed of `of`, which outlives it, with its own books.
MUST_USE bool load_init_beside(struct load *load, const struct load *of);
void load_fini(struct load *load);
// A first frame that makes the node ask for a cookie, and the answer to it.
uint32_t load_hello(struct load *load, uint8_t *out);
bool load_take_challenge(struct load *load, const uint8_t *payload, uint32_t bytes);
// An intent request that builds Spot `index`.
uint32_t load_build(struct load *load, uint32_t index, uint8_t *out, uint32_t room);
// A request to a random Spot: LOAD_FRAME_BYTES into out.
void load_request(struct load *load, uint8_t *out);
// Judges a reply; false when it was not one to an operation in flight, or wrong (see counts).
bool load_reply(struct load *load, const uint8_t *payload, uint32_t bytes);
// The same for a stage that only sends requests back as they are.
bool load_echo(struct load *load, const uint8_t *payload, uint32_t bytes);
uint64_t load_in_flight(const struct load *load);
