// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// An item: one block from an item arena that holds a message from its reservation (or its parking)
// to its end: queue node, envelope, the state of its turn, payload. Also the small nodes that travel
// between workers beside messages (answers, replies that leave elsewhere).
//
// Threads: one owner at a time: the worker whose list it is on. It changes hands only through the
// rings between workers (cross.h), which publish it.

#include <stdint.h>

#include "base/ids.h"
#include "base/result.h"
#include "fabric/fabric.h"
#include "lane/lane.h"
#include "ledger/ledger.h"

struct dp_spot;
struct explain;

// Where the terminal result goes (M2).
enum reply_kind {
	REPLY_NOWHERE = 1, // one-way
	REPLY_CLIENT = 2,  // a frame to `peer`
	REPLY_CALL = 3,    // a call of a handler: worker `ingress_worker`, call number `operation_id`
	// Between nodes: `peer` is the other node, and a sealed reply route lies in front of the payload,
	// `id_bytes` of it.
	REPLY_NODE = 4,      // through the node that forwarded the request
	REPLY_NODE_SEND = 5, // one-way: that node hears of a stale route only
	REPLY_RELAY = 6,     // is itself a result on its way back through here
};

static inline bool reply_is_wanted(uint8_t kind)
{
	return kind != REPLY_NOWHERE && kind != REPLY_NODE_SEND;
}

struct reply_to {
	struct peer peer;
	uint64_t scope;
	uint64_t operation_id;
	uint8_t kind;           // enum reply_kind
	uint8_t ingress_worker; // whose session table and segment senders know this client; the caller
	uint8_t explain;        // 1: the client asked for each stage's verdict
	uint8_t reserved[5];
};
_Static_assert(sizeof(struct reply_to) == 56, "kept in every item");

// All that is known of one whole message. Lives in the burst's array, then in the item.
struct envelope {
	struct dp_spot *spot; // where it was admitted; NULL before
	struct spot_key key;
	const uint8_t *payload; // in the frame, or in the item behind the struct
	uint32_t payload_bytes;
	uint32_t charge_bytes;     // L2; 0 = holds no reservation
	uint32_t process_bytes;    // P1; what it holds of the process bound
	struct type_key spot_type; // intent; 0 = ordinary
	uint64_t deadline_boot_ns; // M7
	uint64_t authority;        // O8: the authority generation it was admitted under
	uint64_t since_ticks;      // when it was admitted or parked
	uint16_t message_type;
	uint16_t content;
	uint16_t id_bytes; // in front of the payload: a parked intent's id, or a sealed reply route
	uint16_t reserved;
	struct explain *explain; // NULL unless asked for
	struct reply_to reply;
};

// Came from another node: it is for the owner only, and never goes further.
static inline bool envelope_is_forwarded(const struct envelope *env)
{
	return env->reply.kind == REPLY_NODE || env->reply.kind == REPLY_NODE_SEND;
}
// May build what it is for. The owner of a forwarded message builds nothing for it.
static inline bool envelope_may_build(const struct envelope *env)
{
	return env->spot_type.value != 0 && !envelope_is_forwarded(env);
}

enum item_kind {
	ITEM_MESSAGE = 1, // an application message
	ITEM_ANSWER = 2,  // the end of a call: result, payload; travels to the caller's worker
	ITEM_REPLY = 3,   // a reply that leaves through another worker's queue
	ITEM_COMMAND = 4, // a command of control (command.h): lifecycle work, or an opening
	ITEM_BLOCK = 5,   // memory of a reassembly, a segmented reply, an offload or a timer; never queued
	ITEM_TICK = 6,    // a tick of a timer (timer.h), on its Spot's application lane
	ITEM_REPEAT = 7,  // a repeated request on its way to where its result may be held (held.h)
	ITEM_ACK = 8,     // a report for segments that another worker sends; payload: the report
	ITEM_CANCEL = 9,  // a caller's wish that a queued request end (cancel.h)
	ITEM_PUSH = 12,  // a push on its way to the worker of the client's session
};

// How a handler left an item's turn.
enum turn_leave { TURN_FRESH = 0, TURN_WAITING = 1, TURN_YIELDED = 2, TURN_QUEUED = 3 };

// Common start of everything that is queued.
struct node_head {
	struct item_head head;
	uint8_t kind; // enum item_kind
};

struct item {
	struct item_head head;
	uint8_t kind;          // enum item_kind
	uint8_t leave;         // enum turn_leave
	uint8_t answered;      // the request of this turn has its result
	uint8_t cancelled;     // ended while queued: does not run, keeps place and charge until taken (L5)
	uint16_t calls_open;   // calls of this turn that have not ended
	uint16_t result_kind;  // ANSWER, REPLY: struct result
	uint8_t result_reason;
	uint8_t result_accepted;
	uint8_t pad[2];
	uint32_t calls_head;     // first open call of this turn, index + 1
	uint64_t call;           // ANSWER: which call ended
	struct lane_list answers; // ended calls of a waiting or yielded turn
	struct envelope env;
	uint8_t payload[];
};
_Static_assert(sizeof(struct envelope) == 144, "known");
_Static_assert(sizeof(struct item) == 200, "what a queued empty message costs before its size class");

static inline struct item *item_of(struct item_head *head)
{
	return (struct item *)(void *)head;
}

static inline struct result item_result(const struct item *item)
{
	return (struct result){(uint8_t)item->result_kind, item->result_reason, item->result_accepted};
}

static inline void item_set_result(struct item *item, struct result result)
{
	item->result_kind = result.kind;
	item->result_reason = result.reason;
	item->result_accepted = result.accepted;
}
