// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The neighbours of one port as a pure state table: which address is behind which MAC, since when,
// and what is to be asked next. No input or output here: events in, effects out. Control's thread.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum neighbour_state {
	NEIGHBOUR_INCOMPLETE = 1, // asked, no answer yet
	NEIGHBOUR_REACHABLE = 2,  // wanted by a worker or a gateway, answered lately
	NEIGHBOUR_PROBING = 3,    // answered once; being asked whether it is still there
	NEIGHBOUR_LEARNED = 4,    // told us by itself, nobody here wanted it yet
	NEIGHBOUR_FAILED = 5,     // did not answer; not asked again for a while
};

enum neighbour_event {
	NEIGHBOUR_WANTED = 1,   // a worker has a frame for it
	NEIGHBOUR_ANSWERED = 2, // its MAC was told
	NEIGHBOUR_DUE = 3,      // its timer
	NEIGHBOUR_SPENT = 4,    // its timer, and no tries are left
};

enum neighbour_effect {
	NEIGHBOUR_NOTHING = 1,
	NEIGHBOUR_ASK = 2,      // ask everybody on the link
	NEIGHBOUR_PROBE = 3,    // ask it alone
	NEIGHBOUR_PUBLISH = 4,  // tell the workers
	NEIGHBOUR_WITHDRAW = 5, // workers must not use it any more
	NEIGHBOUR_FORGET = 6,   // withdraw, and the entry is gone
	NEIGHBOUR_IMPOSSIBLE = 7,
};

enum {
	NEIGHBOUR_STATES = 5,
	NEIGHBOUR_EVENTS = 4,
	NEIGHBOURS_MAX = 512,
	NEIGHBOURS_PENDING_MAX = 64, // unanswered at a time
	NEIGHBOUR_TRIES_MAX = 3,
};

#define NEIGHBOUR_ASK_NS UINT64_C(1000000000)        // first retry; doubles
#define NEIGHBOUR_REACHABLE_NS UINT64_C(30000000000) // then it is probed
#define NEIGHBOUR_LEARNED_NS UINT64_C(60000000000)   // then it is forgotten
#define NEIGHBOUR_FAILED_NS UINT64_C(5000000000)     // then it may be asked for again

struct neighbour {
	uint8_t ip[16];
	uint8_t mac[6];
	bool gateway; // never forgotten, asked for from the start
	uint8_t tries;
	enum neighbour_state state;
	uint64_t due_ns;
};

struct neighbour_table {
	struct neighbour *entries[NEIGHBOURS_MAX];
	uint32_t count;
	uint32_t pending;
	uint64_t due_ns; // no entry is due before
};

struct neighbour_step {
	uint8_t next; // enum neighbour_state; 0 = the entry ends
	uint8_t effect;
};
// The table itself: indexed by state - 1, event - 1. For gateways FAILED is never the end.
extern const struct neighbour_step neighbour_steps[NEIGHBOUR_STATES][NEIGHBOUR_EVENTS];

void neighbour_table_fini(struct neighbour_table *table);
// NULL = not there.
struct neighbour *neighbour_find(const struct neighbour_table *table, const uint8_t ip[16]);
// A new entry in state INCOMPLETE or LEARNED. When the table is full an entry that nobody wanted
// makes room and is handed out in *out_forgotten (to be withdrawn; used = true). NULL: the table is
// full of wanted ones, too many are pending, or memory is short.
struct neighbour_forgotten {
	bool used;
	uint8_t ip[16];
};
MUST_USE struct neighbour *neighbour_add(struct neighbour_table *table, const uint8_t ip[16],
	enum neighbour_state state, uint64_t now_ns, struct neighbour_forgotten *out_forgotten);
// Steps an entry; sets its next due time. After FORGET the entry is gone. For ANSWERED the caller
// has put the MAC in place.
MUST_USE enum neighbour_effect neighbour_event(struct neighbour_table *table, struct neighbour *n,
	enum neighbour_event event, uint64_t now_ns);
// An entry that is due, with the event to give it; NULL when none is.
struct neighbour *neighbour_due(
	struct neighbour_table *table, uint64_t now_ns, enum neighbour_event *out_event);
