// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Making and checking the database file. Blocking; before the store's threads start.

#include "store/sqlite/sqlite.h"

enum { SQLITE_STORE_APPLICATION = 0x53504f54, SQLITE_STORE_VERSION = 1 };

// Makes the file when there is none (crash-safe), then checks that it is ours and of this version.
MUST_USE enum sqlite_open database_prepare(const char *path, uint32_t wait_ms, char out_why[256]);
