// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A Spot's beginning and end on its home worker (K5, A7, C4): commands of control that run as work of
// the lifecycle lane. A close refuses new work, lets what was accepted finish, seals the lane from
// empty, calls `closing` once, disposes, and tells control. Owner (home) worker only.

#include <stdbool.h>

struct dp_worker;
struct dp_spot;
struct command;

// A command for the lifecycle lane (CONSTRUCT, CLOSE, ACTOR_*).
void lifecycle_enqueue(struct dp_worker *w, struct command *command);
// Runs the first command of the lane.
void lifecycle_run(struct dp_worker *w, struct dp_spot *spot);
// The home worker's part of A7 step 3: first message in, mark off, OPENED. Takes the command.
void lifecycle_open(struct dp_worker *w, struct command *command);
// The command's reservation in the lifecycle lane goes back.
void lifecycle_give_up_place(struct command *command);
// Ends a close whose Spot has become quiet.
void lifecycle_try_close(struct dp_worker *w, struct dp_spot *spot);
// Closes that wait: another worker may have returned the last reservation.
bool lifecycle_tick(struct dp_worker *w);
void lifecycle_tell_close_self(struct dp_worker *w, struct dp_spot *spot);
