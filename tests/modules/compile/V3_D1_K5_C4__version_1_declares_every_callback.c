// SPDX-License-Identifier: BSD-3-Clause
// wants: has no member|no member named
#include <stddef.h>

#include "spotlane/module.h"

int every_callback(const struct spotlane_user_type *t);

// The order of K5, the closing of C4, the state of D1, the capture of V3.
int every_callback(const struct spotlane_user_type *t)
{
#ifdef WRONG
	return t->on_idle != NULL;
#else
	return t->construct && t->configure && t->create && t->initialise && t->closing && t->dispose &&
	       t->state_loaded && t->capture && t->restore;
#endif
}
