// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The only place where GNU extensions get a name of ours.

#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CACHE_LINE_BYTES 64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE_BYTES)))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
