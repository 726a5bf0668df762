// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: what one constructor makes is no other kind (K1).
#include "core/spot.h"

struct dp_spot *compile_fail_make(
	struct dp *dp, const struct instance_type *type, const struct dp_spot_spec *spec);
struct dp_spot *compile_fail_make(
	struct dp *dp, const struct instance_type *type, const struct dp_spot_spec *spec)
{
#ifdef WRONG
	struct user_spot *spot = instance_spot_create(dp, type, spec);
#else
	struct instance_spot *spot = instance_spot_create(dp, type, spec);
#endif
	return &spot->base;
}
