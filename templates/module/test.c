// SPDX-License-Identifier: BSD-3-Clause
// Runs the handler without a node: `make test`.
#include <stdio.h>
#include <string.h>

#include "spotlane/harness.h"

int main(int argc, char **argv)
{
	struct spotlane_harness *h = argc == 2 ? spotlane_harness_open(argv[1]) : NULL;
	struct spotlane_bytes none = {"", 0}, hello = {"hello", 5};
	struct spotlane_harness_reply reply;
	struct spotlane_harness_spot *spot;
	int passed;

	if (h == NULL)
		return 1;
	spot = spotlane_harness_make(h, "@NAME@", "one", NULL, none, NULL);
	if (spot == NULL)
		return 1;
	reply = spotlane_harness_request(spot, 1, SPOTLANE_TEXT, hello);
	passed = reply.kind == SPOTLANE_OK && strcmp(reply.payload.data, "message 1: hello") == 0;
	printf("%s handler_answers\n", passed ? "ok" : "not ok");
	spotlane_harness_end(spot, SPOTLANE_CLOSE_EXPLICIT);
	spotlane_harness_close(h);
	return !passed;
}
