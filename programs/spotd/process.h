// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One running node: everything wired together, in order, and taken apart in the reverse order.
// Main thread, which becomes the control thread.

#include <stdbool.h>

#include "config/config.h"

// What the process exits with (docs/OPERATIONS.md, "Exit codes").
enum spotd_exit {
	SPOTD_EXIT_CLEAN = 0,
	SPOTD_EXIT_CONFIG = 2,
	SPOTD_EXIT_ENVIRONMENT = 11,
	SPOTD_EXIT_STORE = 12,
	SPOTD_EXIT_LEASE_LOST = 13,
	SPOTD_EXIT_SCHEMA = 14,
	SPOTD_EXIT_INTERNAL = 70,
};

// Runs until stopped. config_path: for display; NULL when there was no file.
enum spotd_exit process_run(const struct config *config, const char *config_path);
