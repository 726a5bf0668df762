// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/compiler.h"

// Assertions that stay on in release builds: a failed CHECK is a defect of ours, never bad input.
// It prints the fact and the place to stderr and aborts. Any thread.

NORETURN void check_failed(const char *expression, const char *file, int line);

#define CHECK(expression)                                                                          \
	do {                                                                                       \
		if (UNLIKELY(!(expression)))                                                       \
			check_failed(#expression, __FILE__, __LINE__);                             \
	} while (0)
