// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: only a User type has a create callback (K3, K5).
#include "spotlane/module.h"

static int create(spotlane_instance self, struct spotlane_bytes argument)
{
	(void)self;
	(void)argument;
	return 0;
}

#ifdef WRONG
const struct spotlane_instance_type compile_fail_type;
const struct spotlane_instance_type compile_fail_type = {.name = "x", .create = create};
#else
const struct spotlane_user_type compile_fail_type;
const struct spotlane_user_type compile_fail_type = {.name = "x", .create = create};
#endif
