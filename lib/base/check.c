// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *expression, const char *file, int line)
{
	fprintf(stderr, "spotlane: defect: %s does not hold at %s:%d\n", expression, file, line);
	fflush(stderr);
	abort();
}
