// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Copies of bodies, which are mostly short: up to 16 bytes without a call. Pure.

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

// The places do not overlap.
static inline void copy_body(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (LIKELY(bytes - 8 <= 8)) { // two words that may cover each other: 8..16 bytes
		uint64_t first, last;
		memcpy(&first, from, 8);
		memcpy(&last, from + bytes - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + bytes - 8, &last, 8);
	} else if (bytes > 0) {
		memcpy(to, from, bytes);
	}
}
