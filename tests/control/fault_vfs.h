// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A SQLite VFS over the default one that can fail writes and syncs, and counts syncs.

#include <stddef.h>
#include <stdint.h>

void fault_vfs_install(void); // becomes the default VFS of this process
// SQLite codes returned from now on; 0 = none. Any thread.
void fault_vfs_fail(int write_code, int sync_code);
uint64_t fault_vfs_syncs(void);

// Every change of a file that succeeded, as it happens, on the thread that makes it. Set only while no
// store is open.
enum fault_vfs_kind {
	FAULT_VFS_WRITE = 1,
	FAULT_VFS_TRUNCATE = 2, // to `at` bytes
	FAULT_VFS_SYNC = 3,
	FAULT_VFS_DELETE = 4,
};
struct fault_vfs_event {
	enum fault_vfs_kind kind;
	int64_t at;
	const void *bytes;
	size_t size;
};
typedef void (*fault_vfs_seen)(const char *name, const struct fault_vfs_event *event);
void fault_vfs_watch(fault_vfs_seen watcher);
