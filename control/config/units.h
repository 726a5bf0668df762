// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Numbers with units, as people write them: 64MiB, 15s, 500ms. Pure; any thread. Nothing is guessed:
// no fraction, no sign, no blank, and a number other than 0 needs its unit.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum units_status {
	UNITS_OK = 1,
	UNITS_NO_NUMBER = 2,
	UNITS_BAD_UNIT = 3,
	UNITS_TOO_LARGE = 4,
	UNITS_INEXACT = 5, // finer than the field's unit
};

MUST_USE enum units_status units_parse_number(const char *text, uint64_t *out);
MUST_USE enum units_status units_parse_octal(const char *text, uint64_t *out);
MUST_USE enum units_status units_parse_size(const char *text, uint64_t *out_bytes);
// step_ns: the field's unit in nanoseconds (1000000 for ms).
MUST_USE enum units_status units_parse_time(const char *text, uint64_t step_ns, uint64_t *out);

// The shortest exact text, which parses back to the same value.
void units_print_size(uint64_t bytes, char *out, size_t capacity);
void units_print_time(uint64_t value, uint64_t step_ns, char *out, size_t capacity);
