// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// From bytes of a client to one checked JSON object. Pure; any thread. It keeps what §7.6 of every
// parser asks: bounded size and depth before anything is built, integers only, no repeated member.

#include <jansson.h>
#include <stddef.h>

#include "api/errors.h"
#include "base/compiler.h"

enum { LINE_DEPTH_MAX = 8, LINE_BYTES_MAX = 65536 };

struct line_error {
	enum api_error code;
	char text[160];
};

// One line without its end. NULL: *out_error says what is wrong. The object is the caller's.
MUST_USE json_t *line_parse(const char *text, size_t size, struct line_error *out_error);
