// SPDX-License-Identifier: BSD-3-Clause
// Planted: one byte past a heap block. AddressSanitizer must report it.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	(void)argv;
	char *volatile block = malloc(24);
	if (block == NULL)
		return 0;
	block[23 + argc] = 1;
	printf("%d\n", block[0] = 1);
	free(block);
	return 0;
}
