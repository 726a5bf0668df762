// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The node's log: lines for people on stderr (or a file), with a time and a level. Workers never
// log; the control thread and start-up do. A line that repeats is written at most once in ten
// seconds, with the number of suppressed ones.

#include "base/compiler.h"

enum log_level { LOG_LEVEL_ERROR = 1, LOG_LEVEL_WARN = 2, LOG_LEVEL_INFO = 3, LOG_LEVEL_DEBUG = 4 };

// path: NULL or "" = stderr. False when the file cannot be opened (errno says why).
MUST_USE int log_open(const char *path, enum log_level level);
void log_reopen(void); // after a rotation: SIGHUP, SIGUSR1
void log_close(void);
PRINTF_LIKE(2, 3) void log_line(enum log_level level, const char *format, ...);
