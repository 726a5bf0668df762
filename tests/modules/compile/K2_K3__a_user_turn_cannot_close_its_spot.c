// SPDX-License-Identifier: BSD-3-Clause
// wants: incompatible type
#include <stddef.h>

#include "spotlane/module.h"

int ask(const struct spotlane_host *host, spotlane_user_turn user, spotlane_instance_turn instance);

int ask(const struct spotlane_host *host, spotlane_user_turn user, spotlane_instance_turn instance)
{
	(void)user;
	(void)instance;
#ifdef WRONG
	return host->close_self(user);
#else
	return host->close_self(instance);
#endif
}
