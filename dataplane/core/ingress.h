// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The first stage: a burst of frames from one queue is decoded, checked against its sessions (M9) and
// sorted by family. Whole messages go on to resolve.c as an array. Owner worker only.

#include <stdbool.h>

#include "core/egress.h"

struct dp_worker;

// One burst of one queue. True when frames came.
bool ingress_poll(struct dp_worker *w, struct worker_queue *q);
