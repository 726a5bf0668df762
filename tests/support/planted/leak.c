// SPDX-License-Identifier: BSD-3-Clause
// Planted: a block that nobody frees. LeakSanitizer must report it.
#include <stdio.h>

#include "base/mem.h"

int main(void)
{
	void *volatile block = mem_zalloc(100);
	printf("%s\n", block != NULL ? "made" : "short");
	block = NULL;
	return 0;
}
