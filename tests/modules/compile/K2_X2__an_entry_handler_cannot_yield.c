// SPDX-License-Identifier: BSD-3-Clause
// wants: converting|incompatible|implicit conversion|enum-conversion
#include <stddef.h>

#include "spotlane/module.h"

enum spotlane_entry_outcome handler(void);

// An Entry turn cannot yield.
enum spotlane_entry_outcome handler(void)
{
#ifdef WRONG
	return SPOTLANE_YIELD;
#else
	return SPOTLANE_ENTRY_WAIT;
#endif
}
