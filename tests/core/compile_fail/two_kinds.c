// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: a Spot of one kind from the type of another (K1).
#include "core/spot.h"

struct user_spot *compile_fail_make(struct dp *dp, const struct user_type *user,
	const struct entry_type *entry, const struct dp_spot_spec *spec);
struct user_spot *compile_fail_make(struct dp *dp, const struct user_type *user,
	const struct entry_type *entry, const struct dp_spot_spec *spec)
{
	(void)user;
	(void)entry;
#ifdef WRONG
	return user_spot_create(dp, entry, spec);
#else
	return user_spot_create(dp, user, spec);
#endif
}
