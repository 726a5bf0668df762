// SPDX-License-Identifier: BSD-3-Clause
// wants: has no member|does not refer to any field
#include <stddef.h>

#include "spotlane/module.h"

extern const struct spotlane_user_type user;
extern const struct spotlane_instance_type instance;

static int create(spotlane_instance self, struct spotlane_bytes argument)
{
	(void)self;
	(void)argument;
	return 0;
}

const struct spotlane_user_type user = {.name = "made", .create = create};

// Only User Spots are created explicitly; only they and Entry Spots have members.
#ifdef WRONG
const struct spotlane_instance_type instance = {.name = "built", .create = create};
#else
const struct spotlane_instance_type instance = {.name = "built"};
#endif
