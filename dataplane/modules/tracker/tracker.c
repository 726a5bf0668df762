// SPDX-License-Identifier: BSD-3-Clause
// tracker: an Instance Spot type that keeps the last position report of one vehicle
// (dataplane/modules/tracker/README.md).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

enum { TRACKER_REPORT = 1, TRACKER_LAST = 2, TRACKER_REPORT_BYTES_MAX = 1024 };

static const struct spotlane_host *host;

// The report is kept as it came: nothing here needs to understand more of it than where it ends.
struct tracker {
	uint64_t reports;
	uint16_t room_bytes;
	uint16_t report_bytes;
	char *report;
};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static struct tracker *tracker_of(spotlane_instance self)
{
	return (struct tracker *)(uintptr_t)self.value;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct tracker *t = calloc(1, sizeof(*t));

	(void)info;
	if (t == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)t;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free(tracker_of(self)->report);
	free(tracker_of(self));
}

static int looks_like_object(struct spotlane_bytes json)
{
	const char *p = json.data;

	return json.size >= 2 && p[0] == '{' && p[json.size - 1] == '}';
}

// 0 = kept. Grows in steps, so that reports of a similar length never allocate again.
static int keep(struct tracker *t, struct spotlane_bytes json)
{
	if (json.size > t->room_bytes) {
		size_t room = (json.size + 63) / 64 * 64;
		char *bigger = realloc(t->report, room);

		if (bigger == NULL)
			return -1;
		t->report = bigger;
		t->room_bytes = (uint16_t)room;
	}
	memcpy(t->report, json.data, json.size);
	t->report_bytes = (uint16_t)json.size;
	t->reports++;
	return 0;
}

static void answer_error(spotlane_turn turn, const struct spotlane_message *m,
	enum spotlane_result kind, const char *text)
{
	if (m->wants_reply)
		host->reply_error(turn, kind, (struct spotlane_bytes){text, strlen(text)});
}

static void take_report(
	struct tracker *t, spotlane_turn turn, const struct spotlane_message *m)
{
	char text[48];
	int n;

	if (m->content != SPOTLANE_JSON || !looks_like_object(m->payload) ||
		m->payload.size > TRACKER_REPORT_BYTES_MAX) {
		answer_error(turn, m, SPOTLANE_REJECTED,
			"tracker: a report is a JSON object of at most 1024 bytes");
		return;
	}
	if (keep(t, m->payload) != 0) {
		answer_error(turn, m, SPOTLANE_CAPACITY_EXCEEDED, "tracker: memory is short");
		return;
	}
	if (!m->wants_reply)
		return;
	n = snprintf(text, sizeof(text), "{\"reports\":%" PRIu64 "}", t->reports);
	host->reply(turn, SPOTLANE_JSON, (struct spotlane_bytes){text, (size_t)n});
}

static void answer_last(struct tracker *t, spotlane_turn turn, const struct spotlane_message *m)
{
	if (t->reports == 0)
		answer_error(turn, m, SPOTLANE_NOT_FOUND, "tracker: no report yet");
	else if (m->wants_reply)
		host->reply(turn, SPOTLANE_JSON,
			(struct spotlane_bytes){t->report, t->report_bytes});
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn it, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_instance_common(it);

	if (m->type == TRACKER_REPORT)
		take_report(tracker_of(self), turn, m);
	else if (m->type == TRACKER_LAST)
		answer_last(tracker_of(self), turn, m);
	else
		answer_error(turn, m, SPOTLANE_UNSUPPORTED,
			"tracker: message types 1 (report), 2 (last)");
	return SPOTLANE_DONE;
}

static const struct spotlane_instance_type tracker_type = {
	.name = "tracker",
	.flags = SPOTLANE_TYPE_NOWAIT,
	.cadence = SPOTLANE_STATE_NONE,
	.construct = construct,
	.dispose = dispose,
	.message = message,
};

static const struct spotlane_instance_type *const types[] = {&tracker_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "tracker",
	.version = "1",
	.attach = attach,
	.instance_types = types,
};
