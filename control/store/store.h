// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The Location Store port: asynchronous operations with completions. Implementations: memory/ (with
// fault injection for tests and the simulator), sqlite/. One contract suite runs over all.
//
// Threads: submit and poll on the control thread; a provider may use its own threads behind it.
// Completions are delivered by store_poll, on the control thread, in the order the store decided.
// Ownership: the op belongs to the caller and is lent to the store from submit to its `done`.
// Fences (T3, O7): every statement that changes a Spot's row carries owner boot id, object generation
// and authority generation in its own condition, and stores the operation id beside it. A provider
// batches ops into transactions (group commit, <= 20 ms); lease ops never wait behind others (O5).

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "spot/name.h"

struct store;

enum store_outcome {
	STORE_DONE = 1,
	STORE_CONFLICT = 2,    // zero rows: the row as it is now is in `row` (row.exists tells)
	STORE_UNREACHABLE = 3, // locked, slow, gone: nothing was applied
	STORE_UNKNOWN = 4,     // no answer: may have been applied; read back the operation id
	STORE_FULL = 5,        // disk full: nothing was applied
	STORE_DAMAGED = 6,     // damage or failed sync: poisoned for this process
	STORE_EXHAUSTED = 7,   // a counter stands at 2^63-1 (T6): nothing was changed
};
const char *store_outcome_name(enum store_outcome outcome);

struct store_boot_id {
	uint8_t bytes[16];
};
struct store_op_id {
	uint8_t bytes[16];
};

enum store_spot_state { STORE_SPOT_CREATING = 1, STORE_SPOT_READY = 2 };

struct store_spot_row {
	bool exists;
	struct spot_key key;
	uint8_t id_bytes;
	uint8_t id[ID_BYTES_MAX];
	enum store_spot_state state;
	enum spot_kind kind;
	char type_name[65];
	char owner_node[65];
	struct store_boot_id owner_boot;
	struct lease_generation owner_lease;
	struct object_generation object_generation;
	struct authority_generation authority_generation;
	struct store_op_id last_operation; // also the attempt while CREATING
	struct store_version version;
};

struct store_node_row {
	char node_id[65];
	bool exists;
	struct store_boot_id boot; // all zero: nobody holds this node id (clean leave)
	struct lease_generation lease_generation;
	uint64_t beat;
	uint64_t ttl_ms;
	bool fenced;
	char host_id[65]; // where it ran (lock.h), for O4's quick restart
	char address[128];
};

enum store_op_kind {
	STORE_NODE_READ = 1,  // in: node.node_id → node (node.exists)
	STORE_NODE_JOIN = 2,  // in: node (id, boot, ttl, host, address), expect_boot and expect_beat as
			      // watched (zero: no row, or nobody in it) → node with lease_generation =
			      // former + 1, beat 1. CONFLICT: node as it is. Repeated by the boot that
			      // joined: DONE, nothing changed
	STORE_NODE_RENEW = 3, // in: node.node_id, node.boot → node.beat; CONFLICT = no longer a member
	STORE_NODE_LEAVE = 4, // in: node.node_id, node.boot. CONFLICT = was no member
	STORE_NODE_LIST = 5,  // → nodes[], count (max STORE_NODES_MAX)
	STORE_SPOT_READ = 6,  // in: row.key → row; DONE also when there is none (row.exists)
	STORE_SPOT_CLAIM = 7, // in: row (owner = me, generations), id = the attempt. Inserts a CREATING
			      // row if there is none; CONFLICT: row as it is. Repeated with the id that
			      // made the row: DONE
	STORE_SPOT_COMMIT = 8, // in: row.key, fences, row.last_operation = the attempt. CREATING of this
			       // attempt → READY, last_operation = id → row. Repeated with its id: DONE
	STORE_SPOT_ABORT = 9,  // in: as COMMIT; deletes the CREATING row of this attempt
	STORE_SPOT_RELEASE = 10, // in: row.key, fences (owner boot, both generations); deletes the READY
				 // row. Repeated, or already gone: CONFLICT with row.exists false
	STORE_SPOT_FORMER = 11,  // rows owned by node row.owner_node with a boot other than
				 // row.owner_boot: deletes up to `limit` → count deleted (O6)
	STORE_GENERATION_DRAW = 12, // in: range_count wanted → range_first, range_count given (fewer at
				    // the end): object generations never given before. EXHAUSTED: none
	STORE_SPOT_LIST = 13, // pages by key: in row.key = after (zero: start), rows, limit → rows, count
	STORE_NODE_FENCE = 14, // in: node.node_id, node.boot and expect_beat as watched: marks that run
			       // as fenced → node. CONFLICT: node as it is. Repeated: DONE
	STORE_SPOT_CLEAN = 16, // in: as ABORT, and node.node_id, node.boot, expect_beat: the claimant's run
			       // as it was watched standing still. As ABORT while that run has not
			       // beaten since (A8); CONFLICT with the row there: it has
	STORE_SPOT_FENCE = 15, // in: node.node_id, node.boot of a run that is fenced or left, row.owner_*
			       // of who takes, limit. Takes up to `limit` rows of that node, each by a
			       // conditional write on its own row (boot and authority generation as
			       // seen; authority generation + 1), and releases it → count released
			       // (O6). CONFLICT: that run is not over: node as it is
};
enum { STORE_NODES_MAX = 64 };

struct store_op {
	enum store_op_kind kind;
	struct store_op_id id; // drawn by the caller, stored beside the change
	struct store_spot_row row;
	struct store_node_row node;
	struct store_boot_id expect_boot;
	uint64_t expect_beat;
	struct store_node_row *nodes; // NODE_LIST: caller's array of STORE_NODES_MAX
	struct store_spot_row *rows;  // SPOT_LIST: caller's array of `limit`
	uint32_t limit;
	uint32_t count;
	uint64_t range_first, range_count;
	uint64_t store_wall_ns; // the store's clock at execution, for display (O2)
	enum store_outcome outcome;
	void (*done)(struct store_op *op); // called once, from store_poll
	void *arg;
	struct store_op *next; // provider's, while lent
	uint64_t submitted_boot_ns; // of a measured store (meter.h)
};

struct store_ops {
	const char *name; // "memory", "sqlite"
	void (*submit)(struct store *store, struct store_op *op);
	// Delivers completions that are due; returns how many.
	uint32_t (*poll)(struct store *store);
	// Readable when poll has something; -1: poll by time (memory).
	int (*wait_fd)(struct store *store);
	// Refuses new work, ends what is pending with UNKNOWN or its real outcome, closes, frees.
	void (*destroy)(struct store *store);
};

struct store_meter;
// First member of every provider.
struct store {
	const struct store_ops *ops;
	struct store_meter *meter; // NULL = not measured (meter.h)
};
void store_meter_submit(struct store_meter *meter, struct store_op *op);
void store_meter_finish(struct store_meter *meter, const struct store_op *op);

static inline void store_submit(struct store *s, struct store_op *op)
{
	if (s->meter != NULL)
		store_meter_submit(s->meter, op);
	s->ops->submit(s, op);
}
// A provider's way to give an operation back; its outcome is set.
static inline void store_finish(struct store *s, struct store_op *op)
{
	if (s->meter != NULL)
		store_meter_finish(s->meter, op);
	op->done(op);
}
static inline uint32_t store_poll(struct store *s)
{
	return s->ops->poll(s);
}
static inline int store_wait_fd(struct store *s)
{
	return s->ops->wait_fd(s);
}
static inline void store_destroy(struct store *s)
{
	if (s != NULL)
		s->ops->destroy(s);
}

static inline bool store_boot_equal(struct store_boot_id a, struct store_boot_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}
static inline bool store_boot_is_zero(struct store_boot_id a)
{
	return store_boot_equal(a, (struct store_boot_id){{0}});
}
static inline bool store_op_equal(struct store_op_id a, struct store_op_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}
// The version a row takes with the change `id`: opaque, equality only (T5), and no shared counter.
struct store_version store_version_of(struct store_op_id id);
