// SPDX-License-Identifier: BSD-3-Clause
// lobby: an Entry Spot type that greets and passes questions on
// (dataplane/modules/lobby/README.md).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotlane/module.h"

enum { LOBBY_HELLO = 1, LOBBY_ASK = 2, LOBBY_QUESTION_TYPE = 1 };

static const struct spotlane_host *host;

struct lobby {
	uint64_t visitors;
};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static struct lobby *lobby_of(spotlane_instance self)
{
	return (struct lobby *)(uintptr_t)self.value;
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	struct lobby *l = calloc(1, sizeof(*l));

	(void)info;
	if (l == NULL)
		return SPOTLANE_CAPACITY_EXCEEDED;
	out->value = (uintptr_t)l;
	return 0;
}

static void dispose(spotlane_instance self)
{
	free(lobby_of(self));
}

static void answer_error(spotlane_turn turn, enum spotlane_result kind, const char *text)
{
	host->reply_error(turn, kind, (struct spotlane_bytes){text, strlen(text)});
}

static void hello(struct lobby *l, spotlane_turn turn)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "{\"visitors\":%" PRIu64 "}", ++l->visitors);

	host->reply(turn, SPOTLANE_JSON, (struct spotlane_bytes){text, (size_t)n});
}

// The payload is the id of a Spot, a newline, and what to ask it.
static enum spotlane_entry_outcome ask(spotlane_turn turn, const struct spotlane_message *m)
{
	const char *start = m->payload.data;
	const char *newline = m->payload.size ? memchr(start, '\n', m->payload.size) : NULL;
	struct spotlane_bytes id, question;

	if (newline == NULL || newline == start) {
		answer_error(turn, SPOTLANE_REJECTED,
			"lobby: ask takes an id, a newline, and a payload");
		return SPOTLANE_ENTRY_DONE;
	}
	id = (struct spotlane_bytes){start, (size_t)(newline - start)};
	question = (struct spotlane_bytes){newline + 1, m->payload.size - id.size - 1};
	if (host->request(turn, id, LOBBY_QUESTION_TYPE, m->content, question, 0).value == 0) {
		answer_error(turn, SPOTLANE_UNAVAILABLE, "lobby: the question was refused");
		return SPOTLANE_ENTRY_DONE;
	}
	return SPOTLANE_ENTRY_WAIT;
}

static enum spotlane_entry_outcome message(
	spotlane_instance self, spotlane_entry_turn t, const struct spotlane_message *m)
{
	spotlane_turn turn = spotlane_entry_common(t);

	if (m->type == LOBBY_ASK)
		return ask(turn, m);
	if (m->type == LOBBY_HELLO)
		hello(lobby_of(self), turn);
	else
		answer_error(turn, SPOTLANE_UNSUPPORTED, "lobby: message types 1 (hello), 2 (ask)");
	return SPOTLANE_ENTRY_DONE;
}

static enum spotlane_entry_outcome answered(spotlane_instance self, spotlane_entry_turn t,
	spotlane_call call, const struct spotlane_answer *a)
{
	spotlane_turn turn = spotlane_entry_common(t);

	(void)self;
	(void)call;
	if (a->kind == SPOTLANE_OK)
		host->reply(turn, a->content, a->payload);
	else
		host->reply_error(turn, (enum spotlane_result)a->kind, a->payload);
	return SPOTLANE_ENTRY_DONE;
}

static const struct spotlane_entry_type lobby_type = {
	.name = "lobby",
	.cadence = SPOTLANE_STATE_NONE,
	.construct = construct,
	.dispose = dispose,
	.message = message,
	.answered = answered,
};

static const struct spotlane_entry_type *const types[] = {&lobby_type, NULL};

const struct spotlane_module spotlane_module_v1 = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "lobby",
	.version = "1",
	.attach = attach,
	.entry_types = types,
};
