// SPDX-License-Identifier: BSD-3-Clause
// A Spot that is freed with what it still holds: the node ends by force, or at its deadline, and
// its workers are over. Nobody is answered (callers find out by their own deadlines), no callback
// runs; every block goes back to its arena, so that the end is as clean as any.
#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/deliver.h"
#include "core/timer.h"

static void discard_item(struct dp_worker *w, struct item *item)
{
	call_abandon(w, item);
	deliver_item_end(w, item);
}

// Yielded turns are held by nothing but their open calls.
static void discard_yielded(struct dp_worker *w, struct dp_spot *spot)
{
	for (uint32_t i = 0; i < w->calls.slots_used; i++) {
		struct call_slot *slot = &w->calls.slots[i];
		if (slot->used && slot->spot == spot && slot->turn->leave == TURN_YIELDED)
			discard_item(w, slot->turn);
	}
}

void dp_spot_discard(struct dp_spot *spot)
{
	struct item_head *head;
	if (spot == NULL)
		return;
	struct dp_worker *w = spot->dp->workers[spot->home_worker];
	discard_yielded(w, spot);
	if (spot->waiting != NULL)
		discard_item(w, spot->waiting);
	while ((head = lane_list_pop(&spot->application_list)) != NULL)
		discard_item(w, item_of(head));
	while ((head = lane_list_pop(&spot->lifecycle_list)) != NULL)
		mem_free(head);
	mem_free(spot->closing);
	timer_discard_all(w, spot);
	mem_free(spot);
}
