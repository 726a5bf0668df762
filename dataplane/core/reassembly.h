// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages in several frames, coming in (M8). Keyed by (session, operation). At the first segment seen
// the whole item is reserved: lane (when the key has a usable route), process bound, the peer's budget
// and the worker's; only then is a byte kept. A half-message is never delivered: it expires, is ended
// by a segment that does not fit, or makes room for a newer one of its own peer. What ended is
// remembered for a while, so that late repeats get the same answer. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"
#include "wire/segment.h"
#include "wire/wire.h"

struct dp_worker;
struct worker_queue;
struct offer;

enum {
	REASSEMBLIES_MAX = 256, // per worker
	ENDED_MAX = 1024,       // per worker
};

struct reassembly {
	struct reassembly *next; // by start, oldest first; or free
	struct item *item;       // envelope, id, payload; behind them the bitmap
	struct seg_rx rx;
	uint64_t session;
	uint64_t operation;
	uint64_t expires_ns; // moved by each kept segment
	uint32_t budget_bytes; // counts against the peer's and the worker's budget
	uint16_t id_bytes;
	uint8_t queue; // index of the fabric queue it comes through
	uint8_t report_due;
	uint8_t ip[16];
};

struct ended { // what became of a segmented message
	uint64_t session;
	uint64_t operation;
	uint64_t expires_ns;
	struct result result; // kind 0 = admitted whole
	bool has_refusal;
	struct refusal refusal; // M5: a late segment is told the same figures
};

struct reassembly_table {
	struct reassembly *slots;
	struct reassembly *oldest, *newest;
	struct reassembly *free;
	struct ended *ended; // a circle
	uint32_t ended_next;
	uint64_t bytes;
	uint64_t bytes_max;
	uint64_t next_expiry_ns;
	uint32_t count;
	uint32_t reserved_messages; // half-messages that hold a lane reservation
	uint32_t reports_due;
};

MUST_USE bool reassembly_table_init(struct reassembly_table *table, uint64_t bytes_max);
void reassembly_table_fini(struct dp_worker *w);

// One segment. Its bytes are copied; the frame stays the caller's. offer names the message it belongs to
// (payload of the whole not yet known).
void reassembly_segment(struct dp_worker *w, struct worker_queue *q, const struct wire_frame *frame,
	struct offer *offer);
// Sends the reports that the burst made due.
void reassembly_report(struct dp_worker *w);
bool reassembly_tick(struct dp_worker *w);
