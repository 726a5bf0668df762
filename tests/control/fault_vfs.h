// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A SQLite VFS over the default one that can fail writes and syncs, and counts syncs.

#include <stdint.h>

void fault_vfs_install(void); // becomes the default VFS of this process
// SQLite codes returned from now on; 0 = none. Any thread.
void fault_vfs_fail(int write_code, int sync_code);
uint64_t fault_vfs_syncs(void);
