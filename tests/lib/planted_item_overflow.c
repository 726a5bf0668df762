// SPDX-License-Identifier: BSD-3-Clause
// A defect on purpose: one byte past the end of an item, still inside its size class. The address
// sanitizer must report it. Run by test_sanitizer.c.
#include <stddef.h>

#include "ledger/ledger.h"

int main(void)
{
	struct item_arena *arena = item_arena_create(0);
	struct item_head *item = arena != NULL ? item_alloc(arena, 100) : NULL;

	if (item == NULL)
		return 1;
	volatile char *bytes = (char *)item;
	bytes[100] = 1; // the block is 112 bytes
	item_free(arena, item);
	item_arena_destroy(arena);
	return 0;
}
