// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Segmentation and reassembly of payloads larger than one frame (M8), as pure state machines: no
// clock, no sockets, no allocation. The caller supplies the buffers, sends what `seg_tx_next` names
// and feeds what arrives. Used by the node (both directions) and by the client library.
// One owner thread per struct.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"
#include "wire/layout.h"

enum {
	SEG_COUNT_MAX = 16384, // 16 MiB / 1,024 B
	SEG_WINDOW_MAX = 256,  // segments in flight, also the width of one acknowledgement report
	SEG_ACK_BYTES = 48,    // body of a WIRE_ACK frame
};

// Body of a WIRE_ACK frame, little-endian, 48 bytes: what the receiver has.
// All segments below `base` are here; bit i of `bits` says whether segment base + 1 + i is here.
struct seg_ack {
	uint32_t base;
	uint16_t window; // 1..SEG_WINDOW_MAX: segments from base on that the sender may have in
			 // flight
	uint16_t done;   // 1 = the whole message is here; the receiver needs nothing more of it
	uint64_t bits[4];
	uint64_t reserved; // zero
};

void seg_ack_encode(const struct seg_ack *ack, uint8_t out[SEG_ACK_BYTES]);
MUST_USE bool seg_ack_decode(struct span body, struct seg_ack *out);

// Receiving side. `have` is a bitmap of SEG_COUNT_MAX bits supplied by the caller (sized for the
// message: seg_bitmap_words(count) words).
struct seg_rx {
	uint64_t *have;
	uint32_t total_bytes;
	uint32_t count; // segments in all
	uint32_t got;
	uint32_t base;       // first missing segment
	uint32_t top;        // one past the highest segment here
	uint32_t unreported; // arrived since the last report
	uint16_t unit;       // bytes of each segment but the last
	bool due;            // a gap opened, or all is here: report at once
};

enum seg_rx_verdict {
	SEG_RX_KEPT = 1,    // copy the bytes to segment_offset
	SEG_RX_REPEAT = 2,  // already here
	SEG_RX_WHOLE = 3,   // kept, and it was the last missing one
	SEG_RX_MISMATCH = 4 // does not fit what the first segment declared: end the message
};

static inline uint32_t seg_count(uint32_t total_bytes, uint16_t unit)
{
	return total_bytes == 0 ? 1 : (total_bytes + unit - 1) / unit;
}

static inline uint32_t seg_bitmap_words(uint32_t count)
{
	return (count + 63) / 64;
}

void seg_rx_init(struct seg_rx *rx, uint64_t *bitmap, uint32_t total_bytes, uint16_t unit);
MUST_USE enum seg_rx_verdict seg_rx_accept(
	struct seg_rx *rx, uint32_t total_bytes, uint32_t offset, uint16_t bytes, uint16_t unit);
// After each segment that was kept or was a repeat: whether to send a report now. Half a window
// arrived since the last, or a gap opened, or the message is whole, or the sender asked
// (WIRE_FLAG_ACK_NOW). A true answer starts the count anew.
MUST_USE bool seg_rx_due(struct seg_rx *rx, uint16_t window, bool ack_now);
void seg_rx_report(const struct seg_rx *rx, uint16_t window, bool done, struct seg_ack *out);

// Sending side.
struct seg_tx {
	uint64_t *acked; // bitmap, caller's
	uint32_t total_bytes;
	uint32_t count;
	uint32_t base;       // first segment not known to be there
	uint32_t next;       // first never-sent segment
	uint32_t resend;     // scan position for repeating what is due again
	uint32_t resend_end; // where that scan ends; resend >= resend_end = nothing is due
	uint32_t recover;    // first segment never sent when the last repetition began
	uint16_t unit;
	uint16_t window;
	bool done;
};

void seg_tx_init(
	struct seg_tx *tx, uint64_t *bitmap, uint32_t total_bytes, uint16_t unit, uint16_t window);
// The next segment to send now, or false when the window is full or all was sent. Missing segments
// named by a report come first.
MUST_USE bool seg_tx_next(struct seg_tx *tx, uint32_t *out_index);
// True when seg_tx_next would say false: the frame just sent is the last of its burst and should
// carry WIRE_FLAG_ACK_NOW.
MUST_USE bool seg_tx_spent(const struct seg_tx *tx);
void seg_tx_ack(struct seg_tx *tx, const struct seg_ack *ack);
// Nothing was heard for a while: everything sent and unacknowledged is due again; when all is
// acknowledged but not said to be done, the last segment is.
void seg_tx_timeout(struct seg_tx *tx);
static inline uint32_t seg_tx_offset(const struct seg_tx *tx, uint32_t index)
{
	return index * tx->unit;
}
static inline uint16_t seg_tx_bytes(const struct seg_tx *tx, uint32_t index)
{
	uint32_t left = tx->total_bytes - index * tx->unit;
	return (uint16_t)(left < tx->unit ? left : tx->unit);
}
