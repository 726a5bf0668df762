// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Filter and admission: from a key to a place in a lane, or to the one refusal that says why not.
// resolve.c looks a burst up and calls this. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "core/egress.h"
#include "core/explain.h"
#include "core/item.h"
#include "route/route.h"

struct dp_worker;

// One whole message on its way in.
struct offer {
	struct envelope env;
	struct item *item;        // already in memory (parked, reassembled), else NULL
	struct frame *frame;      // on a received frame, else NULL
	struct worker_queue *queue; // of the frame
	struct span id;           // full id, when given
	bool id_checked;          // hashes to the key
};

enum delivered { DELIVER_ADMITTED = 1, DELIVER_PARKED = 2, DELIVER_REFUSED = 3,
	DELIVER_FORWARDED = 4 };

// Consumes item and frame.
enum delivered deliver_offer(struct dp_worker *w, struct offer *offer, route_word word);
// An item that another worker admitted for a Spot at home here.
void deliver_arrived(struct dp_worker *w, struct item *item);
// Puts an admitted item onto its lane: here, or on the way to the home worker.
void deliver_enqueue(struct dp_worker *w, struct item *item);
// Ends an offer that was not admitted: one refusal counted, one result sent.
enum delivered deliver_refuse(
	struct dp_worker *w, struct offer *offer, struct result result, const struct refusal *refusal);
// Ends an admitted item without a turn: one drop counted, one result sent.
void deliver_drop(struct dp_worker *w, struct item *item, struct result result);
// Returns what the item holds of lane and process bound, and its memory.
void deliver_item_end(struct dp_worker *w, struct item *item);
// Copies a message that is not in memory yet into an item. NULL when memory is short.
MUST_USE struct item *deliver_copy(struct dp_worker *w, const struct envelope *env, struct span id);
// The charge of a message not yet in memory, and of one that is (L2).
static inline uint32_t deliver_charge(
	enum ledger_accounting accounting, const struct envelope *env, bool explained)
{
	size_t block = sizeof(struct item) + env->id_bytes + env->payload_bytes +
		(explained ? sizeof(struct explain) + 8 : 0);
	return ledger_charge_of(accounting, block, env->payload_bytes);
}
uint32_t deliver_item_charge(const struct dp_worker *w, const struct item *item);
// Fills the body of a lane's refusal.
enum result_reason deliver_lane_refusal(const struct dp_worker *w, const struct dp_spot *spot,
	enum lane_verdict verdict, struct refusal *out);
struct refusal deliver_node_refusal(const struct dp_worker *w, uint64_t limit, uint64_t current);
