// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The SQLite store provider: one database file in WAL mode, synchronous = FULL.
//
// Two connections, each with its own thread: one runs the Spot operations, everything that is queued
// in one transaction (group commit, bounded in time and number); the other runs node and lease
// operations, and its next transaction goes before the next one of the first (O5). Submit and poll:
// control thread.

#include <stdint.h>

#include "base/clock.h"
#include "store/store.h"

struct sqlite_store_config {
	const char *path;
	uint32_t lease_wait_ms; // how long a lease op waits for another process's lock: < renew timeout
	uint32_t spot_wait_ms;  // the same for Spot operations
	uint32_t batch_ms;      // a transaction stops taking operations after this, <= 20; 0 = 10
	uint32_t batch_ops_max; // 0 = 512
	struct clock *clock;    // for store_wall_ns
};

enum sqlite_open {
	SQLITE_OPEN_DONE = 1,
	SQLITE_OPEN_UNREACHABLE = 2, // cannot be opened or made, or is locked
	SQLITE_OPEN_DAMAGED = 3,     // no database, or one that does not read
	SQLITE_OPEN_VERSION = 4,     // another program's, or of a version this one does not know
};

// Makes the file when there is none: written whole under a temporary name, synced, renamed without
// overwriting, directory synced. *out_why: what went wrong, for people (256 bytes).
MUST_USE enum sqlite_open sqlite_store_create(
	const struct sqlite_store_config *config, struct store **out_store, char out_why[256]);
// The library that runs, for display. Any thread.
const char *sqlite_store_library_version(void);
