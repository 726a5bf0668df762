// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One process per node id on one machine (O4): an advisory lock on `<database>.<node id>.lock`. The
// kernel drops it when the process ends, however it ends, so a lock that can be taken proves that the
// former run on this host is over.

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct store_lock {
	int fd; // -1: not held
};

enum store_lock_verdict {
	STORE_LOCK_TAKEN = 1,
	STORE_LOCK_HELD = 2,   // another process runs this node id here
	STORE_LOCK_FAILED = 3, // errno says why
};
// node_id is percent-encoded where it is no plain file name character. Never blocks.
MUST_USE enum store_lock_verdict store_lock_take(
	struct store_lock *lock, const char *database, const char *node_id);
void store_lock_release(struct store_lock *lock); // the file stays

enum { STORE_HOST_ID_BYTES = 65 };
// Names this machine: /etc/machine-id, or the kernel's boot id where there is none.
void store_host_id(char out[STORE_HOST_ID_BYTES]);
