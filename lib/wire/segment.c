// SPDX-License-Identifier: BSD-3-Clause
#include "wire/segment.h"

#include <string.h>

#include "base/check.h"

// Both sides keep one bit per segment. The sender learns of losses in two ways: a report that shows
// a later segment here and an earlier one missing (a gap), or silence (seg_tx_timeout). A gap is
// repeated once; it is due again only when a segment sent after the repetition is reported, so that
// many reports of one gap do not multiply its repetitions.

enum { REPORT_BITS = 256 };

static bool bit_get(const uint64_t *words, uint32_t i)
{
	return (words[i / 64] >> (i % 64)) & 1;
}

static void bit_set(uint64_t *words, uint32_t i)
{
	words[i / 64] |= UINT64_C(1) << (i % 64);
}

// First clear bit at or after `from`, or `end`. Looks at one word at a time.
static uint32_t first_clear(const uint64_t *words, uint32_t from, uint32_t end)
{
	while (from < end) {
		uint64_t clear = ~words[from / 64] >> (from % 64);
		if (clear != 0) {
			from += (uint32_t)__builtin_ctzll(clear);
			return from < end ? from : end;
		}
		from += 64 - from % 64;
	}
	return end;
}

static void put_le(uint8_t *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *in, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << (8 * i);
	return value;
}

void seg_ack_encode(const struct seg_ack *ack, uint8_t out[SEG_ACK_BYTES])
{
	put_le(out, ack->base, 4);
	put_le(out + 4, ack->window, 2);
	put_le(out + 6, ack->done, 2);
	for (size_t i = 0; i < 4; i++)
		put_le(out + 8 + 8 * i, ack->bits[i], 8);
	put_le(out + 40, 0, 8);
}

bool seg_ack_decode(struct span body, struct seg_ack *out)
{
	if (body.size != SEG_ACK_BYTES)
		return false;
	struct seg_ack ack = {
		.base = (uint32_t)get_le(body.data, 4),
		.window = (uint16_t)get_le(body.data + 4, 2),
		.done = (uint16_t)get_le(body.data + 6, 2),
		.reserved = get_le(body.data + 40, 8),
	};
	for (size_t i = 0; i < 4; i++)
		ack.bits[i] = get_le(body.data + 8 + 8 * i, 8);
	if (ack.base > SEG_COUNT_MAX || ack.window == 0 || ack.window > SEG_WINDOW_MAX ||
		ack.done > 1 || ack.reserved != 0)
		return false;
	*out = ack;
	return true;
}

// ---- receiving ----

void seg_rx_init(struct seg_rx *rx, uint64_t *bitmap, uint32_t total_bytes, uint16_t unit)
{
	CHECK(unit > 0 && total_bytes <= WIRE_MESSAGE_BYTES_MAX);
	uint32_t count = seg_count(total_bytes, unit);
	CHECK(count <= SEG_COUNT_MAX);
	memset(bitmap, 0, seg_bitmap_words(count) * sizeof(*bitmap));
	*rx = (struct seg_rx){
		.have = bitmap, .total_bytes = total_bytes, .count = count, .unit = unit};
}

static bool rx_fits(const struct seg_rx *rx, uint32_t total_bytes, uint32_t offset, uint16_t bytes,
	uint16_t unit)
{
	if (total_bytes != rx->total_bytes || unit != rx->unit || offset % rx->unit != 0 ||
		offset / rx->unit >= rx->count)
		return false;
	uint32_t left = rx->total_bytes - offset;
	return bytes == (left < rx->unit ? left : rx->unit);
}

enum seg_rx_verdict seg_rx_accept(
	struct seg_rx *rx, uint32_t total_bytes, uint32_t offset, uint16_t bytes, uint16_t unit)
{
	if (!rx_fits(rx, total_bytes, offset, bytes, unit))
		return SEG_RX_MISMATCH;
	uint32_t index = offset / rx->unit;
	rx->unreported++;
	if (bit_get(rx->have, index)) {
		rx->due |= rx->got == rx->count; // the sender has not heard that all is here
		return SEG_RX_REPEAT;
	}
	bit_set(rx->have, index);
	rx->got++;
	if (index > rx->top)
		rx->due = true; // a gap opened before it
	if (index >= rx->top)
		rx->top = index + 1;
	rx->base = first_clear(rx->have, rx->base, rx->count);
	if (rx->got < rx->count)
		return SEG_RX_KEPT;
	rx->due = true;
	return SEG_RX_WHOLE;
}

bool seg_rx_due(struct seg_rx *rx, uint16_t window, bool ack_now)
{
	if (!ack_now && !rx->due && rx->unreported * 2 < window)
		return false;
	rx->due = false;
	rx->unreported = 0;
	return true;
}

void seg_rx_report(const struct seg_rx *rx, uint16_t window, bool done, struct seg_ack *out)
{
	*out = (struct seg_ack){.base = rx->base, .window = window, .done = done};
	for (uint32_t i = 0; i < REPORT_BITS && rx->base + 1 + i < rx->top; i++)
		if (bit_get(rx->have, rx->base + 1 + i))
			bit_set(out->bits, i);
}

// ---- sending ----

static uint16_t window_clamp(uint16_t window)
{
	return window == 0 ? 1 : window > SEG_WINDOW_MAX ? SEG_WINDOW_MAX : window;
}

void seg_tx_init(
	struct seg_tx *tx, uint64_t *bitmap, uint32_t total_bytes, uint16_t unit, uint16_t window)
{
	CHECK(unit > 0 && total_bytes <= WIRE_MESSAGE_BYTES_MAX);
	uint32_t count = seg_count(total_bytes, unit);
	CHECK(count <= SEG_COUNT_MAX);
	memset(bitmap, 0, seg_bitmap_words(count) * sizeof(*bitmap));
	*tx = (struct seg_tx){.acked = bitmap,
		.total_bytes = total_bytes,
		.count = count,
		.unit = unit,
		.window = window_clamp(window)};
}

// The next segment that is due again, or count when none is. When all is there but not said to be
// done, the last one is sent again to ask.
static uint32_t tx_due_again(const struct seg_tx *tx)
{
	if (tx->resend >= tx->resend_end)
		return tx->count;
	if (tx->base == tx->count)
		return tx->count - 1;
	uint32_t index = first_clear(tx->acked, tx->resend, tx->resend_end);
	return index < tx->resend_end ? index : tx->count;
}

static bool tx_may_send_new(const struct seg_tx *tx)
{
	return tx->next < tx->count && tx->next - tx->base < tx->window;
}

bool seg_tx_next(struct seg_tx *tx, uint32_t *out_index)
{
	if (tx->done)
		return false;
	uint32_t again = tx_due_again(tx);
	if (again < tx->count) {
		tx->resend = again + 1;
		*out_index = again;
		return true;
	}
	tx->resend = tx->resend_end;
	if (!tx_may_send_new(tx))
		return false;
	*out_index = tx->next++;
	return true;
}

bool seg_tx_spent(const struct seg_tx *tx)
{
	return tx->done || (tx_due_again(tx) == tx->count && !tx_may_send_new(tx));
}

// Marks what a report names; returns one past the highest segment it shows to be there.
static uint32_t tx_mark(struct seg_tx *tx, const struct seg_ack *ack)
{
	uint32_t top = ack->base;
	for (uint32_t i = tx->base; i < ack->base; i++)
		bit_set(tx->acked, i);
	for (uint32_t i = 0; i < REPORT_BITS && ack->base + 1 + i < tx->next; i++) {
		if (!bit_get(ack->bits, i))
			continue;
		bit_set(tx->acked, ack->base + 1 + i);
		top = ack->base + 2 + i;
	}
	tx->base = first_clear(tx->acked, tx->base, tx->count);
	return top;
}

void seg_tx_ack(struct seg_tx *tx, const struct seg_ack *ack)
{
	if (ack->base > tx->next) // names what was never sent: not an answer to this message
		return;
	tx->window = window_clamp(ack->window);
	if (ack->done) {
		tx->done = true;
		return;
	}
	uint32_t top = tx_mark(tx, ack);
	if (top > tx->recover) { // something sent after the last repetition arrived
		tx->resend = tx->base;
		tx->resend_end = top;
		tx->recover = tx->next;
	} else if (top > tx->resend_end) { // gaps that no report showed before
		tx->resend_end = top;      // the scan goes on from where it stands
	}
}

void seg_tx_timeout(struct seg_tx *tx)
{
	if (tx->done || tx->next == 0)
		return;
	tx->resend = tx->base == tx->count ? tx->count - 1 : tx->base;
	tx->resend_end = tx->next;
	tx->recover = tx->next;
}
