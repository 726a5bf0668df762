// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// WIRE_CONTROL requests: told to control as a fact, answered by control with the fact's token, or by
// the deadline. Owner worker only.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"
#include "wire/wire.h"

struct dp_worker;
struct command;

MUST_USE bool control_calls_init(struct dp_worker *w);
void control_call_begin(struct dp_worker *w, const struct envelope *env, const struct wire_frame *frame);
void control_call_answer(struct dp_worker *w, struct command *command); // takes it
bool control_call_tick(struct dp_worker *w);
