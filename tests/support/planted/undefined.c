// SPDX-License-Identifier: BSD-3-Clause
// Planted: a signed overflow. UndefinedBehaviorSanitizer must report it.
#include <limits.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	(void)argv;
	int n = INT_MAX - 1 + argc;
	n += argc;
	printf("%d\n", n);
	return 0;
}
