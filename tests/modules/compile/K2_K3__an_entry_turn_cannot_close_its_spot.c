// SPDX-License-Identifier: BSD-3-Clause
// wants: incompatible type
#include <stddef.h>

#include "spotlane/module.h"

int ask(const struct spotlane_host *host, spotlane_entry_turn entry, spotlane_instance_turn instance);

// Closing oneself belongs to Instance Spots.
int ask(const struct spotlane_host *host, spotlane_entry_turn entry, spotlane_instance_turn instance)
{
	(void)entry;
	(void)instance;
#ifdef WRONG
	return host->close_self(entry);
#else
	return host->close_self(instance);
#endif
}
