// SPDX-License-Identifier: BSD-3-Clause
// room: a User Spot type that people talk in (dataplane/modules/room/README.md).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

enum {
	ROOM_SAY = 1,
	ROOM_READ = 2,
	ROOM_LISTEN = 3,
	ROOM_LISTENERS_MAX = 32,
	ROOM_MEMBERS_MAX = 64,
	ROOM_TITLE_BYTES_MAX = 64,
	ROOM_LINE_BYTES_MAX = 240,
	ROOM_LINES = 16, // a power of two
};

static const struct spotlane_host *host;

struct line {
	uint8_t bytes;
	char text[ROOM_LINE_BYTES_MAX];
};

struct room {
	uint64_t said;
	uint32_t members;
	uint32_t title_bytes;
	char title[ROOM_TITLE_BYTES_MAX];
	uint32_t listeners; // ever: the newest take the places of the oldest
	struct spotlane_client_handle listener[ROOM_LISTENERS_MAX];
	struct line lines[ROOM_LINES]; // the last ones said, by number
};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static struct room *room_of(spotlane_instance self)
{
	return (struct room *)(uintptr_t)self.value;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct room *r = calloc(1, sizeof(*r));

	(void)info;
	if (r == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)r;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free(room_of(self));
}

static int is_one_line(struct spotlane_bytes text)
{
	const unsigned char *p = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return 0;
	return 1;
}

// The creator's argument is the title; one that does not fit a line is declined.
static int create(spotlane_instance self, struct spotlane_bytes argument)
{
	struct room *r = room_of(self);

	if (argument.size > ROOM_TITLE_BYTES_MAX || !is_one_line(argument))
		return SPOTLANE_REJECTED;
	if (argument.size > 0)
		memcpy(r->title, argument.data, argument.size);
	r->title_bytes = (uint32_t)argument.size;
	return 0;
}

static void answer_error(spotlane_turn turn, const struct spotlane_message *m,
	enum spotlane_result kind, const char *text)
{
	if (m->wants_reply)
		host->reply_error(turn, kind, (struct spotlane_bytes){text, strlen(text)});
}

// Who hears is not said: a client that went away is dropped by the node.
static void tell_listeners(struct room *r, spotlane_turn turn, struct spotlane_bytes line)
{
	struct spotlane_bytes who = host->actor(turn);
	char text[256 + 2 + ROOM_LINE_BYTES_MAX];
	size_t n = 0;
	uint32_t count = r->listeners < ROOM_LISTENERS_MAX ? r->listeners : ROOM_LISTENERS_MAX;

	if (who.size > 0) { // a member speaks
		memcpy(text, who.data, who.size);
		memcpy(text + who.size, ": ", 2);
		n = who.size + 2;
	}
	memcpy(text + n, line.data, line.size);
	for (uint32_t i = 0; i < count; i++)
		host->push(turn, &r->listener[i], ROOM_SAY, SPOTLANE_TEXT,
			(struct spotlane_bytes){text, n + line.size});
}

static void listen_to(struct room *r, spotlane_turn turn, const struct spotlane_message *m)
{
	struct spotlane_client_handle client;

	if (host->client(turn, &client) != 0) {
		answer_error(turn, m, SPOTLANE_REJECTED, "room: only clients can listen");
		return;
	}
	for (uint32_t i = 0; i < ROOM_LISTENERS_MAX; i++)
		if (memcmp(&r->listener[i], &client, sizeof(client)) == 0)
			return; // listens already
	r->listener[r->listeners++ % ROOM_LISTENERS_MAX] = client;
}

static void say(struct room *r, spotlane_turn turn, const struct spotlane_message *m)
{
	struct line *line = &r->lines[r->said % ROOM_LINES];
	char text[80];
	int n;

	if (m->payload.size == 0 || m->payload.size > ROOM_LINE_BYTES_MAX ||
		!is_one_line(m->payload)) {
		answer_error(
			turn, m, SPOTLANE_REJECTED, "room: say takes one line of 1 to 240 bytes");
		return;
	}
	memcpy(line->text, m->payload.data, m->payload.size);
	line->bytes = (uint8_t)m->payload.size;
	r->said++;
	tell_listeners(r, turn, m->payload);
	if (!m->wants_reply)
		return;
	n = snprintf(text, sizeof(text), "{\"said\":%" PRIu64 ",\"members\":%" PRIu32 "}", r->said,
		r->members);
	host->reply(turn, SPOTLANE_JSON, (struct spotlane_bytes){text, (size_t)n});
}

static void read_lines(struct room *r, spotlane_turn turn, const struct spotlane_message *m)
{
	char text[ROOM_TITLE_BYTES_MAX + 1 + ROOM_LINES * (ROOM_LINE_BYTES_MAX + 1)];
	uint64_t first = r->said > ROOM_LINES ? r->said - ROOM_LINES : 0;
	size_t n = r->title_bytes;

	if (!m->wants_reply)
		return;
	memcpy(text, r->title, n);
	text[n++] = '\n';
	for (uint64_t i = first; i < r->said; i++) {
		const struct line *line = &r->lines[i % ROOM_LINES];

		memcpy(text + n, line->text, line->bytes);
		n += line->bytes;
		text[n++] = '\n';
	}
	host->reply(turn, SPOTLANE_TEXT, (struct spotlane_bytes){text, n});
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_user_turn t, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_user_common(t);

	if (m->type == ROOM_SAY)
		say(room_of(self), turn, m);
	else if (m->type == ROOM_READ)
		read_lines(room_of(self), turn, m);
	else if (m->type == ROOM_LISTEN)
		listen_to(room_of(self), turn, m);
	else
		answer_error(
			turn, m, SPOTLANE_UNSUPPORTED, "room: message types 1 (say), 2 (read), 3 (listen)");
	return SPOTLANE_DONE;
}

static int joining(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)actor_id;
	return room_of(self)->members < ROOM_MEMBERS_MAX ? 0 : SPOTLANE_CAPACITY_EXCEEDED;
}

static void joined(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)actor_id;
	room_of(self)->members++;
}

static void left(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)actor_id;
	if (room_of(self)->members > 0)
		room_of(self)->members--;
}

static const struct spotlane_user_type room_type = {
	.name = "room",
	.cadence = SPOTLANE_STATE_NONE,
	.construct = construct,
	.create = create,
	.dispose = dispose,
	.message = message,
	.joining = joining,
	.joined = joined,
	.left = left,
};

static const struct spotlane_user_type *const types[] = {&room_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "room",
	.version = "1",
	.attach = attach,
	.user_types = types,
};
