// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the peer programs share: options, pinning, the clock, and one line of JSON with the raw
// samples. A peer program measures another system on the same two CPUs as the router, with 64 bytes
// of payload, in that system's own best way; bench/README.md says what is comparable and what is
// not.

#include <stdbool.h>
#include <stdint.h>

enum { PEER_PAYLOAD_BYTES = 64, PEER_SAMPLES_MAX = 32 };

struct peer_options {
	const char *endpoint;
	uint32_t repetitions;
	uint32_t milliseconds; // of each stretch
	uint32_t window;       // messages in flight, where the peer answers
	int driver_cpu, server_cpu;
};

struct peer_samples {
	const char *peer, *metric, *unit;
	double values[PEER_SAMPLES_MAX];
	uint32_t count;
};

// False: bad usage, said on standard error. `endpoint` is the first argument that is no option.
bool peer_parse(int argc, char **argv, struct peer_options *out);
void peer_pin(int cpu);
uint64_t peer_now_ns(void);
void peer_sample(struct peer_samples *samples, double value);
void peer_print(const struct peer_samples *samples);
// Prints what failed and ends the program with the environment's exit code (11).
_Noreturn void peer_die(const char *what, const char *why);
