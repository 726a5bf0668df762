// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the verbs of `spot` share. Main thread only.

#include <jansson.h>
#include <stdio.h>

#include "client/spotlane/client.h"
#include "options.h"

// ---- verbs; each returns the program's exit code ----
enum spot_exit verb_call(const struct spot_options *o);   // request, send, create, close, lookup
enum spot_exit verb_replay(const struct spot_options *o); // replay.c
enum spot_exit verb_gen(const struct spot_options *o);    // gen.c

// listen.c: the call that asks for pushes, then what is pushed.
enum spot_exit listen_after(const struct spot_options *o, spotlane_client *client,
	const struct spotlane_client_call *call);

// ---- node.c ----
// Opens a client and makes sure that the node answers; says on stderr what is wrong otherwise.
enum spot_exit node_open(
	const struct spot_options *o, uint32_t in_flight_max, spotlane_client **out);

// ---- payload.c ----
struct payload {
	uint8_t *bytes; // the caller's, to free()
	size_t size;
};
// The text itself, @FILE, or - for standard input. NULL = empty.
enum spot_exit payload_read(const char *text, struct payload *out);
// What the bytes look like: JSON, else UTF-8 text, else bytes.
enum spotlane_content_type payload_judge(const struct payload *payload);

// ---- output.c ----
enum spot_exit exit_code_of(const struct spotlane_client_result *result);
json_t *json_of_refusal(const struct spotlane_refusal *refusal);
json_t *json_of_stats(const struct spotlane_client_stats *stats);
// One document on stdout, and a newline. Frees it. SPOT_EXIT_INTERNAL when stdout does not take it.
enum spot_exit json_print(json_t *document);
const char *json_name_of_end(uint8_t end);
