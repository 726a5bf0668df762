// SPDX-License-Identifier: BSD-3-Clause
// echo: an Instance Spot type that answers with what it was given
// (dataplane/modules/echo/README.md).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

enum { ECHO_BACK = 1, ECHO_MEASURE = 2 };

static const struct spotlane_host *host;

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	out->value = 0; // an echo keeps nothing
	return 0;
}

static void dispose(spotlane_instance self)
{
	(void)self;
}

// Two running sums over the little-endian 64-bit words (the last one padded with zeros): the second
// depends on the order, so that a segment in the wrong place shows. A few milliseconds for 16 MiB.
static void measure(struct spotlane_bytes bytes, uint64_t *out_sum, uint64_t *out_weighted)
{
	const unsigned char *p = bytes.data;
	uint64_t sum = 0, weighted = 0;

	for (size_t at = 0; at < bytes.size; at += 8) {
		uint64_t word = 0;

		memcpy(&word, p + at, bytes.size - at < 8 ? bytes.size - at : 8);
		sum += word;
		weighted += sum;
	}
	*out_sum = sum;
	*out_weighted = weighted;
}

static void answer_measure(spotlane_turn turn, struct spotlane_bytes payload)
{
	uint64_t sum, weighted;
	char text[128];
	int n;

	measure(payload, &sum, &weighted);
	n = snprintf(text, sizeof(text),
		"{\"bytes\":%zu,\"sum\":\"%016" PRIx64 "\",\"weighted\":\"%016" PRIx64 "\"}",
		payload.size, sum, weighted);
	host->reply(turn, SPOTLANE_JSON, (struct spotlane_bytes){text, (size_t)n});
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn t, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_instance_common(t);

	(void)self;
	if (!m->wants_reply)
		return SPOTLANE_DONE;
	if (m->type == ECHO_BACK)
		host->reply(turn, m->content, m->payload);
	else if (m->type == ECHO_MEASURE)
		answer_measure(turn, m->payload);
	else
		host->reply_error(turn, SPOTLANE_UNSUPPORTED,
			(struct spotlane_bytes){"echo: message types 1 (back), 2 (measure)", 41});
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type echo_type = {
	.name = "echo",
	.flags = SPOTLANE_TYPE_NOWAIT,
	.cadence = SPOTLANE_STATE_NONE,
	.construct = construct,
	.dispose = dispose,
	.message = message,
};

static const struct spotlane_instance_type *const types[] = {&echo_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "echo",
	.version = "1",
	.attach = attach,
	.instance_types = types,
};
