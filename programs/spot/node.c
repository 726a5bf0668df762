// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <errno.h>
#include <string.h>

enum { REACH_US_MAX = 3 * 1000 * 1000 };

static enum spot_exit say_unreachable(const struct spot_options *o, int error, uint64_t waited_us)
{
	if (error == -ECONNREFUSED)
		fprintf(stderr, "spot: nothing listens at %s.\n", o->node);
	else
		fprintf(stderr, "spot: no answer from %s within %.1f s.\n", o->node,
			(double)waited_us / 1e6);
	fprintf(stderr,
		"      Is a node running there? Start one with scripts/run, or name another with\n"
		"      --node HOST:PORT or SPOTLANE_NODE.\n");
	return SPOT_EXIT_UNREACHABLE;
}

enum spot_exit node_open(
	const struct spot_options *o, uint32_t in_flight_max, spotlane_client **out)
{
	struct spotlane_client_options options = {
		.size = sizeof(options), .ports = o->ports, .in_flight_max = in_flight_max};
	char error[256];
	spotlane_client *client = NULL;
	int bad = spotlane_client_open(o->node, &options, &client, error, sizeof(error));
	if (bad) {
		fprintf(stderr, "spot: %s\n", error);
		return bad == -EINVAL ? SPOT_EXIT_USAGE : SPOT_EXIT_UNREACHABLE;
	}
	uint64_t wait_us = o->budget_us < REACH_US_MAX ? o->budget_us : REACH_US_MAX;
	bad = spotlane_client_reach(client, wait_us);
	if (bad) {
		spotlane_client_close(client);
		return say_unreachable(o, bad, wait_us);
	}
	*out = client;
	return SPOT_EXIT_OK;
}
