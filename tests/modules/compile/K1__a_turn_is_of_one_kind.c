// SPDX-License-Identifier: BSD-3-Clause
// wants: incompatible type
#include <stddef.h>

#include "spotlane/module.h"

int answer(const struct spotlane_host *host, spotlane_user_turn turn, spotlane_turn common);

// A turn of one kind becomes the common one only by its own conversion.
int answer(const struct spotlane_host *host, spotlane_user_turn turn, spotlane_turn common)
{
	(void)turn;
	(void)common;
#ifdef WRONG
	return host->reply(spotlane_instance_common(turn), SPOTLANE_BYTES, (struct spotlane_bytes){NULL, 0});
#else
	return host->reply(common, SPOTLANE_BYTES, (struct spotlane_bytes){NULL, 0});
#endif
}
