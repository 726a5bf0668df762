// SPDX-License-Identifier: BSD-3-Clause
// One module, broken in one way chosen by BAD: what the loader must refuse.
#include <stddef.h>

#include "spotlane/module.h"

enum {
	GOOD = 0,
	ABI_BELOW = 1,
	ABI_ABOVE = 2,
	SHORT_TABLE = 3,
	ODD_NAME = 4,
	NO_CONSTRUCT = 5,
	NO_MESSAGE = 6,
	NOWAIT_ANSWERS = 7,
	UNKNOWN_FLAG = 8,
	SAME_NAME_TWICE = 9,
	CAPTURE_ALONE = 10,
	STATE_UNHEARD = 11,
	NO_TYPES = 12,
	NO_ATTACH = 13,
	ODD_TYPE_NAME = 14,
	NO_DISPOSE = 15,
};

static int attach(const struct spotlane_host *host)
{
	return host == NULL;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	out->value = BAD;
	return 0;
}

static void dispose(spotlane_instance self)
{
	(void)self;
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	(void)self;
	(void)turn;
	(void)m;
	return SPOTLANE_DONE;
}

static enum spotlane_outcome answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)self;
	(void)turn;
	(void)call;
	(void)answer;
	return SPOTLANE_DONE;
}

static size_t capture(spotlane_instance self, void *buf, size_t capacity)
{
	(void)self;
	(void)buf;
	(void)capacity;
	return 0;
}

static const struct spotlane_instance_type type = {
	.name = BAD == ODD_TYPE_NAME ? "Has Blanks" : "good",
	.flags = (BAD == NOWAIT_ANSWERS ? SPOTLANE_TYPE_NOWAIT : 0) | (BAD == UNKNOWN_FLAG ? 1u << 7 : 0),
	.cadence = BAD == STATE_UNHEARD ? SPOTLANE_STATE_CHECKPOINT : SPOTLANE_STATE_NONE,
	.construct = BAD == NO_CONSTRUCT ? NULL : construct,
	.dispose = BAD == NO_DISPOSE ? NULL : dispose,
	.capture = BAD == CAPTURE_ALONE ? capture : NULL,
	.message = BAD == NO_MESSAGE ? NULL : message,
	.answered = answered,
};

static const struct spotlane_instance_type *const types[] = {
	BAD == NO_TYPES ? NULL : &type, BAD == SAME_NAME_TWICE ? &type : NULL, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI + (BAD == ABI_ABOVE) - (BAD == ABI_BELOW),
	.size = sizeof(struct spotlane_module) - (BAD == SHORT_TABLE ? 8 : 0),
	.name = BAD == ODD_NAME ? "no_underscore" : "bad",
	.version = "1",
	.attach = BAD == NO_ATTACH ? NULL : attach,
	.instance_types = types,
};
