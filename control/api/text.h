// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A text that grows while it is written. Short of memory it turns `failed` and stays as it is.

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct text {
	char *data; // ended by NUL once anything was added; freed with text_fini
	size_t size, capacity;
	bool failed;
};

PRINTF_LIKE(2, 3) void text_add(struct text *t, const char *format, ...);
void text_fini(struct text *t);
