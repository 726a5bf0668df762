// SPDX-License-Identifier: BSD-3-Clause
// slow: an Instance Spot type that takes its time, so that lanes fill and budgets are overrun
// (dataplane/modules/slow/README.md).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spotlane/module.h"

enum { SLOW_WAIT = 1, SLOW_BUSY = 2, SLOW_MS_MAX = 60000 };

static const struct spotlane_host *host;

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	out->value = 0;
	return 0;
}

static void dispose(spotlane_instance self)
{
	(void)self;
}

// Decimal milliseconds. 0 = read.
static int read_ms(struct spotlane_bytes text, uint32_t *out_ms)
{
	const char *p = text.data;
	uint32_t ms = 0;

	if (text.size == 0 || text.size > 5)
		return -1;
	for (size_t i = 0; i < text.size; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		ms = ms * 10 + (uint32_t)(p[i] - '0');
	}
	if (ms > SLOW_MS_MAX)
		return -1;
	*out_ms = ms;
	return 0;
}

// On the blocking pool.
static size_t sleep_work(const void *argument, size_t argument_size, void *out, size_t capacity)
{
	struct timespec left;
	uint32_t ms;

	(void)out;
	(void)capacity;
	if (argument_size != sizeof(ms))
		return 0;
	memcpy(&ms, argument, sizeof(ms));
	left = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	return 0;
}

// Breaks the rule that a turn is short, on purpose: this is how overruns are made to order.
static void burn(uint32_t ms)
{
	struct timespec start, now;
	int64_t elapsed_ns;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		elapsed_ns = (int64_t)(now.tv_sec - start.tv_sec) * 1000000000 +
			     (now.tv_nsec - start.tv_nsec);
	} while (elapsed_ns < (int64_t)ms * 1000000);
}

static void answer_error(spotlane_turn turn, enum spotlane_result kind, const char *text)
{
	host->reply_error(turn, kind, (struct spotlane_bytes){text, strlen(text)});
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn t, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_instance_common(t);
	uint32_t ms;

	(void)self;
	if (m->type != SLOW_WAIT && m->type != SLOW_BUSY) {
		answer_error(turn, SPOTLANE_UNSUPPORTED, "slow: message types 1 (wait), 2 (busy)");
		return SPOTLANE_DONE;
	}
	if (read_ms(m->payload, &ms) != 0) {
		answer_error(
			turn, SPOTLANE_REJECTED, "slow: milliseconds from 0 to 60000, as digits");
		return SPOTLANE_DONE;
	}
	if (m->type == SLOW_BUSY) {
		burn(ms);
		return SPOTLANE_DONE;
	}
	if (host->offload(turn, sleep_work, (struct spotlane_bytes){&ms, sizeof(ms)}, 0).value ==
		0) {
		answer_error(turn, SPOTLANE_CAPACITY_EXCEEDED, "slow: the blocking pool is full");
		return SPOTLANE_DONE;
	}
	return SPOTLANE_WAIT;
}

static enum spotlane_outcome answered(spotlane_instance self, spotlane_instance_turn t,
	spotlane_call call, const struct spotlane_answer *a)
{
	(void)self;
	(void)call;
	if (a->kind == SPOTLANE_OK)
		host->reply(spotlane_instance_common(t), SPOTLANE_TEXT,
			(struct spotlane_bytes){"slept", 5});
	else
		answer_error(spotlane_instance_common(t), SPOTLANE_UNAVAILABLE,
			"slow: the sleep did not end");
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type slow_type = {
	.name = "slow",
	.cadence = SPOTLANE_STATE_NONE,
	.limits = {.application_count_max = 8},
	.construct = construct,
	.dispose = dispose,
	.message = message,
	.answered = answered,
};

static const struct spotlane_instance_type *const types[] = {&slow_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "slow",
	.version = "1",
	.attach = attach,
	.instance_types = types,
};
