// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages without a usable route (A7, A10). They stay, in order of arrival, with the worker that
// received them, charged to the process bound and bounded in number; only key, intent and id travel to
// control. While a key has waiting messages here, newer ones of that key go behind them.
// Invariant: an entry with messages has a question outstanding (or waiting for room in the fact ring),
// so control always owes it a release, an opening or a failure. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "base/result.h"
#include "core/deliver.h"
#include "core/item.h"
#include "dp/port.h"

struct dp_worker;
struct command;

// What was asked of control and not answered yet.
enum park_asked { PARK_ASKED_ORDINARY = 1u << 0, PARK_ASKED_INTENT = 1u << 1 };

struct park_entry {
	struct spot_key key;
	struct lane_list waiting;
	uint32_t count;
	uint32_t chain; // next in the bucket, or of the free list; index + 1
	struct type_key asked_type; // the intent that control was asked about
	uint8_t asked;  // enum park_asked
	uint8_t due;    // enum park_asked: facts that found no room yet
	uint8_t used;
};

struct park_table {
	struct park_entry *entries;
	uint32_t *buckets; // index + 1
	uint32_t capacity; // entries: resolves in flight
	uint32_t bucket_mask;
	uint32_t free_chain;
	uint32_t entries_used;
	uint32_t messages;
	uint32_t messages_max;
	uint32_t due;             // entries whose fact is due
	uint64_t next_expiry_ns;  // no waiting message expires before
};

MUST_USE bool park_table_init(struct park_table *park, uint32_t entries_max, uint32_t messages_max);
void park_table_fini(struct dp_worker *w); // frees what still waits

bool park_waits(struct park_table *park, struct spot_key key); // messages of key wait here
struct park_entry *park_find(struct park_table *park, struct spot_key key);

// Parks a message: in its item, or copied into one. Ends it with a refusal when a bound is met or its
// id is not the one of its key.
enum delivered park_message(struct dp_worker *w, struct offer *offer);

void park_release(struct dp_worker *w, struct spot_key key);
void park_fail(struct dp_worker *w, struct spot_key key, enum dp_fail_scope scope, struct result result,
	const struct refusal *refusal);
// Ends a waiting request of a handler here, Cancelled; false: it does not wait here.
bool park_cancel(struct dp_worker *w, struct spot_key key, uint64_t call);
// A7 step 3, at the origin. Takes the command.
void park_open(struct dp_worker *w, struct command *command);
// Expires, and tells control what found no room before.
bool park_tick(struct dp_worker *w);
