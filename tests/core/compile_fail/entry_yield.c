// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: an Entry turn has no yield (K2).
#include "spotlane/module.h"

static enum spotlane_entry_outcome message(spotlane_instance self, spotlane_entry_turn turn,
	const struct spotlane_message *message)
{
	(void)self;
	(void)turn;
	(void)message;
#ifdef WRONG
	return SPOTLANE_YIELD;
#else
	return SPOTLANE_ENTRY_DONE;
#endif
}

const struct spotlane_entry_type compile_fail_type;
const struct spotlane_entry_type compile_fail_type = {.name = "x", .message = message};
