// SPDX-License-Identifier: BSD-3-Clause
// @NAME@: a Spot type of your own. An Instance Spot is made by the first intent call to its id.
#include <stdio.h>
#include <stdlib.h>

#include "spotlane/module.h"

static const struct spotlane_host *host;

// What one Spot remembers between messages.
struct state {
	unsigned long messages;
};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

// Called before the first message of a new Spot: the number given back stands for it from then on.
static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct state *s = calloc(1, sizeof(*s));

	(void)info;
	if (s == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)s;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free((void *)(uintptr_t)self.value);
}

// The handler: one turn for each message, never two at once for one Spot.
static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	struct state *s = (struct state *)(uintptr_t)self.value;
	char text[256];
	int n;

	s->messages++;
	n = snprintf(text, sizeof(text), "message %lu: %.*s", s->messages,
		(int)(m->payload.size < 200 ? m->payload.size : 200),
		(const char *)m->payload.data);
	if (m->wants_reply)
		host->reply(spotlane_instance_common(turn), SPOTLANE_TEXT,
			(struct spotlane_bytes){text, (size_t)n});
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type type = {
	.name = "@NAME@",
	.flags = SPOTLANE_TYPE_NOWAIT, // this handler never waits
	.construct = construct,
	.dispose = dispose,
	.message = message,
};

static const struct spotlane_instance_type *const types[] = {&type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "@NAME@",
	.version = "0.1",
	.attach = attach,
	.instance_types = types,
};
