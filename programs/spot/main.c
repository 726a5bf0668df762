// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <signal.h>
#include <string.h>

static enum spot_exit help(const struct spot_options *o)
{
	static const char *const names[] = {[SPOT_VERB_REQUEST] = "request",
		[SPOT_VERB_SEND] = "send",
		[SPOT_VERB_CREATE] = "create",
		[SPOT_VERB_CLOSE] = "close",
		[SPOT_VERB_LOOKUP] = "lookup",
		[SPOT_VERB_REPLAY] = "replay",
		[SPOT_VERB_GEN] = "gen",
		[SPOT_VERB_JOIN] = "join",
		[SPOT_VERB_LEAVE] = "leave",
		[SPOT_VERB_LISTEN] = "listen"};
	enum spot_verb verb = SPOT_VERB_NONE;
	for (int i = SPOT_VERB_REQUEST; o->operand_count > 0 && i <= SPOT_VERB_LISTEN; i++)
		if (names[i] != NULL && strcmp(names[i], o->operands[0]) == 0)
			verb = (enum spot_verb)i;
	options_help(verb);
	return SPOT_EXIT_OK;
}

static enum spot_exit run(const struct spot_options *o)
{
	switch (o->verb) {
	case SPOT_VERB_REQUEST:
	case SPOT_VERB_SEND:
	case SPOT_VERB_CREATE:
	case SPOT_VERB_CLOSE:
	case SPOT_VERB_LOOKUP:
	case SPOT_VERB_JOIN:
	case SPOT_VERB_LEAVE:
	case SPOT_VERB_LISTEN:
		return verb_call(o);
	case SPOT_VERB_REPLAY:
		return verb_replay(o);
	case SPOT_VERB_GEN:
		return verb_gen(o);
	case SPOT_VERB_HELP:
		return help(o);
	case SPOT_VERB_VERSION:
		puts("spot " SPOT_VERSION);
		return SPOT_EXIT_OK;
	case SPOT_VERB_NONE:
		break;
	}
	return SPOT_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	// A reader that went away shows as a failed write, which is reported.
	signal(SIGPIPE, SIG_IGN);
	struct spot_options o;
	enum spot_exit bad = options_parse(argc, argv, &o);
	return bad ? (int)bad : (int)run(&o);
}
