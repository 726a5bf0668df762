// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// RCU behind one door (R3). The only includer of liburcu (qsbr flavour).
//
// Readers (workers): register, announce quiescence once per loop turn, go offline before any sleep.
// Writers (control, never a registered reader): defer frees; nothing here waits for a grace period
// except publish_barrier, for tests and the end of the process.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Once per process, from an unpinned thread: the reclaimer thread inherits its affinity.
void publish_start(void);
void publish_stop(void); // after all readers left; runs what is still deferred

void publish_reader_enter(void);  // this thread becomes a reader, online
void publish_reader_leave(void);
void publish_quiescent(void);     // holds no published pointer
void publish_reader_offline(void); // before a sleep
void publish_reader_online(void);

struct publish_deferred { // embed in the object to be freed; opaque
	void *internal[3];
};
// Calls fn(node) after all present readers have been quiescent, on the reclaimer thread.
void publish_defer(struct publish_deferred *node, void (*fn)(struct publish_deferred *node));
// How many deferred calls have not run yet; the publisher refuses beyond a bound (R3, RcuStalled).
uint64_t publish_pending(void);
// Waits until everything deferred so far has run. Never on a reader or on control's loop.
void publish_barrier(void);
