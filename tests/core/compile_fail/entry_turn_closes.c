// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: only an Instance turn can close its Spot (K3).
#include "spotlane/module.h"

int compile_fail_close(
	const struct spotlane_host *host, spotlane_instance_turn mine, spotlane_entry_turn other);
int compile_fail_close(
	const struct spotlane_host *host, spotlane_instance_turn mine, spotlane_entry_turn other)
{
	(void)mine;
	(void)other;
#ifdef WRONG
	return host->close_self(other);
#else
	return host->close_self(mine);
#endif
}
