// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// `spot listen`: one request that asks a Spot or an Actor to push, then each push as a line.

struct listener {
	uint32_t heard;
	bool written;
};

static void pushed(void *arg, const struct spotlane_push *push)
{
	struct listener *l = arg;
	l->heard++;
	l->written &= fwrite(push->payload, 1, push->payload_bytes, stdout) == push->payload_bytes;
	l->written &= putchar('\n') != EOF && fflush(stdout) == 0;
}

static time_t seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

static enum spot_exit hear(const struct spot_options *o, spotlane_client *client,
	const struct listener *l)
{
	time_t until = seconds_now() + (time_t)o->seconds;
	while (l->written && (o->count == 0 || l->heard < o->count) && seconds_now() < until)
		(void)spotlane_client_poll(client, 100 * 1000);
	if (!l->written) {
		perror("spot: cannot write to standard output");
		return SPOT_EXIT_INTERNAL;
	}
	return o->count > 0 && l->heard < o->count ? SPOT_EXIT_TIME : SPOT_EXIT_OK;
}

enum spot_exit listen_after(const struct spot_options *o, spotlane_client *client,
	const struct spotlane_client_call *call)
{
	struct listener l = {.written = true};
	struct spotlane_reply reply;
	char text[1024];
	spotlane_client_listen(client, pushed, &l);
	if (spotlane_client_call_wait(client, call, &reply) != 0)
		return SPOT_EXIT_USAGE;
	enum spot_exit code = exit_code_of(&reply.result);
	if (code != SPOT_EXIT_OK) {
		spotlane_result_text(&reply.result, call->id, call->id_bytes, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
	}
	spotlane_reply_free(&reply);
	return code == SPOT_EXIT_OK ? hear(o, client, &l) : code;
}
