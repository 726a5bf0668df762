// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Loads Spot types from shared objects (docs/MODULES.md).
//
// A file is opened once, checked through its descriptor, and loaded through the same descriptor, so
// what was checked is what runs. It must be a regular file, not a symbolic link, owned by root or
// by this process's user, writable by nobody else, under directories that nobody else may write (a
// sticky directory such as the temporary one is accepted). The exported table is then checked
// whole: ABI number and size, names, limits, and callbacks that must or must not be there. A module
// is never unloaded. Its constructors run before any check of the table can: loading trusts the
// file's owner.
//
// Threads: the main thread, before the workers start. May block on the file system.
// dp_register_module (dp/port.h) calls the table's attach; loading alone does not.

#include <stddef.h>

#include "base/compiler.h"
#include "spotlane/module.h"

enum module_verdict {
	MODULE_LOADED = 1,
	MODULE_NOT_FOUND = 2,   // no such file, or it may not be read
	MODULE_UNSAFE = 3,      // link, odd file type, foreign owner, or others may write it
	MODULE_NOT_LOADABLE = 4, // the dynamic linker refused it
	MODULE_NO_SYMBOL = 5,   // does not export spotlane_module_v1
	MODULE_WRONG_ABI = 6,   // built for another version of module.h
	MODULE_BAD_TABLE = 7,   // a name, limit or callback is wrong; the text says which
};

enum { MODULE_TYPES_MAX = 32, MODULE_WHY_BYTES = 512 };

// On MODULE_LOADED *out_module is the table, lent for the process's life; otherwise out_why holds
// one line for a person that names the file and what to do, and *out_module is untouched.
MUST_USE enum module_verdict module_load(const char *path,
	const struct spotlane_module **out_module, char out_why[MODULE_WHY_BYTES]);

// The checks of the table alone: pure. `name` stands in messages for the file.
MUST_USE enum module_verdict module_table_check(
	const struct spotlane_module *module, const char *name, char out_why[MODULE_WHY_BYTES]);

const char *module_verdict_name(enum module_verdict verdict);
