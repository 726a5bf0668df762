// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Between workers: one bounded ring per ordered pair, filled in bursts; what finds no room waits, in
// order, on the producer's own list, so nothing is lost and a stalled consumer delays only its own
// items. Ended items go back to the worker whose memory they are, in batches.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"

struct dp_worker;

enum { CROSS_FOREIGN_LARGE_BYTES = 32 * 1024 }; // given back at once

// Passes a node (item or command) on. P charges of a message are handed out by the caller.
void cross_send(struct dp_worker *w, uint16_t to, struct item_head *node);
// Takes what other workers passed here. True when there was something.
bool cross_poll(struct dp_worker *w);
// Pushes what gathered; gives foreign items back.
void cross_flush(struct dp_worker *w);
