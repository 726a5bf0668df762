// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vehicles.h"

enum spot_exit verb_gen(const struct spot_options *o)
{
	struct vehicles *vehicles = vehicles_create(o->count, o->seconds, o->seed);
	if (!vehicles) {
		fprintf(stderr, "spot: no memory for %" PRIu32 " vehicles.\n", o->count);
		return SPOT_EXIT_INTERNAL;
	}
	struct vehicle_report report;
	while (vehicles_next(vehicles, &report)) {
		char line[VEHICLE_LINE_BYTES];
		vehicle_report_print(&report, line);
		if (fputs(line, stdout) == EOF)
			break;
	}
	vehicles_destroy(vehicles);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("spot: cannot write to standard output");
		return SPOT_EXIT_INTERNAL;
	}
	return SPOT_EXIT_OK;
}
