// SPDX-License-Identifier: BSD-3-Clause
// counter: an Instance Spot type that adds (dataplane/modules/counter/README.md).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

enum { COUNTER_ADD = 1, COUNTER_GET = 2 };

static const struct spotlane_host *host;

struct counter {
	uint64_t value;
};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static struct counter *counter_of(spotlane_instance self)
{
	return (struct counter *)(uintptr_t)self.value;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct counter *c = calloc(1, sizeof(*c));

	(void)info;
	if (c == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)c;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free(counter_of(self));
}

// Decimal digits only, no more than fit. 0 = read.
static int read_decimal(struct spotlane_bytes text, uint64_t *out)
{
	const char *p = text.data;
	uint64_t value = 0;

	if (text.size == 0 || text.size > 20)
		return -1;
	for (size_t i = 0; i < text.size; i++) {
		unsigned digit = (unsigned)(unsigned char)p[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return -1;
		value = value * 10 + digit;
	}
	*out = value;
	return 0;
}

// What to add: nothing given means 1. 0 = read.
static int read_amount(const struct spotlane_message *m, uint64_t *out)
{
	if (m->payload.size == 0) {
		*out = 1;
		return 0;
	}
	if (m->content != SPOTLANE_BYTES)
		return read_decimal(m->payload, out);
	if (m->payload.size < sizeof(*out))
		return -1;
	// little-endian, as this machine; what follows is the caller's
	memcpy(out, m->payload.data, sizeof(*out));
	return 0;
}

static void answer(spotlane_turn turn, const struct spotlane_message *m, uint64_t value)
{
	char text[24];
	int n;

	if (!m->wants_reply)
		return;
	if (m->content == SPOTLANE_BYTES) {
		host->reply(turn, SPOTLANE_BYTES, (struct spotlane_bytes){&value, sizeof(value)});
		return;
	}
	n = snprintf(text, sizeof(text), "%" PRIu64, value);
	host->reply(turn, m->content, (struct spotlane_bytes){text, (size_t)n});
}

static void answer_error(spotlane_turn turn, const struct spotlane_message *m,
	enum spotlane_result kind, const char *text)
{
	if (m->wants_reply)
		host->reply_error(turn, kind, (struct spotlane_bytes){text, strlen(text)});
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn t, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_instance_common(t);
	struct counter *c = counter_of(self);
	uint64_t amount;

	if (m->type == COUNTER_ADD) {
		if (read_amount(m, &amount) != 0) {
			answer_error(turn, m, SPOTLANE_REJECTED,
				"counter: add takes nothing, at least 8 bytes, or decimal digits");
			return SPOTLANE_DONE;
		}
		c->value += amount;
		answer(turn, m, c->value);
	} else if (m->type == COUNTER_GET) {
		answer(turn, m, c->value);
	} else {
		answer_error(
			turn, m, SPOTLANE_UNSUPPORTED, "counter: message types 1 (add), 2 (get)");
	}
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type counter_type = {
	.name = "counter",
	.flags = SPOTLANE_TYPE_NOWAIT,
	.cadence = SPOTLANE_STATE_NONE,
	.construct = construct,
	.dispose = dispose,
	.message = message,
};

static const struct spotlane_instance_type *const types[] = {&counter_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "counter",
	.version = "1",
	.attach = attach,
	.instance_types = types,
};
