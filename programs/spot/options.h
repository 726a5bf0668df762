// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The command line of `spot`: one verb, its operands and options in any order. Main thread.

#include <stdbool.h>
#include <stdint.h>

#include "client/spotlane/client.h"

// Exit codes (docs/man/spot.1).
enum spot_exit {
	SPOT_EXIT_OK = 0,
	SPOT_EXIT_REFUSED = 1,
	SPOT_EXIT_USAGE = 2,
	SPOT_EXIT_UNREACHABLE = 3,
	SPOT_EXIT_TIME = 4,
	SPOT_EXIT_DENIED = 5,
	SPOT_EXIT_CONFLICT = 6,
	SPOT_EXIT_NOT_FOUND = 7,
	SPOT_EXIT_UNAVAILABLE = 8,
	SPOT_EXIT_CAPACITY = 9,
	SPOT_EXIT_PARTLY = 10, // replay: some messages were answered OK, some were not
	SPOT_EXIT_INTERNAL = 70,
};

enum spot_verb {
	SPOT_VERB_NONE = 0,
	SPOT_VERB_REQUEST = 1,
	SPOT_VERB_SEND = 2,
	SPOT_VERB_CREATE = 3,
	SPOT_VERB_CLOSE = 4,
	SPOT_VERB_LOOKUP = 5,
	SPOT_VERB_REPLAY = 6,
	SPOT_VERB_GEN = 7,
	SPOT_VERB_HELP = 8,
	SPOT_VERB_VERSION = 9,
	SPOT_VERB_JOIN = 10,
	SPOT_VERB_LEAVE = 11,
	SPOT_VERB_LISTEN = 12,
};

enum { SPOT_OPERANDS_MAX = 2 };
#define SPOT_RATE_MAX_SPEED UINT64_MAX // --rate max: as fast as the window allows

struct spot_options {
	enum spot_verb verb;
	const char *operands[SPOT_OPERANDS_MAX];
	uint32_t operand_count;
	const char *node;
	const char *intent;
	const char *type_name;
	const char *type_map;
	const char *output;
	int content; // enum spotlane_content_type; -1 = judged by the payload
	uint16_t message_type;
	bool json;
	bool explain;
	bool actor; // request, send: the id is an Actor's
	bool existing_ok; // create: get-or-create
	uint64_t budget_us;
	uint64_t rate; // messages a second; SPOT_RATE_MAX_SPEED; 0 = not given
	uint32_t window;
	uint32_t repeat;
	uint32_t ports;
	uint32_t count;
	uint32_t seconds;
	uint64_t seed;
};

// SPOT_EXIT_OK, or SPOT_EXIT_USAGE after a sentence on stderr. Strings are borrowed from argv.
enum spot_exit options_parse(int argc, char **argv, struct spot_options *out);
// Usage of one verb (SPOT_VERB_NONE: the overview) on stdout.
void options_help(enum spot_verb verb);
