// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Actors (B1-B3): members of an Entry or a User Spot. An Actor's *place* in a Spot is an
// execution object of its own on the Spot's home worker: lane with both bounds, queue, route
// under the Actor's key. What differs by the kind of the host is in the place's type:
//
//   Entry   the place has its own gate and stands in the worker's ready set by itself (X1): two
//           Actors of one Entry Spot run turns independently of each other and of the Spot's
//           lane
//   User    the place has no gate (GATE_HOSTED): the host takes its items in turn with its own,
//           so the Spot has one gate for everything
//
// A place never moves. An Actor that changes Spot gets a new place, and its old one ends after
// what it accepted; in between messages wait where they came in (park.h). Admission, entering and
// leaving are commands in the host's lifecycle lane (B2), led by control.
//
// Threads: built and freed by control; admission fields as struct dp_spot's; the rest home
// worker.

#include <stdbool.h>
#include <stdint.h>

#include "core/spot.h"

struct dp_worker;
struct command;

// A host's members. Control gives the block with the first of them; home worker's from then on.
struct members {
	struct dp_actor *last;      // ring, in the order of joining
	struct dp_spot *ready_last; // ring of places with work (User)
};

struct dp_actor {
	struct dp_spot base; // lane, queue, gate; key: the Actor's; type: the host type's `actor`
	struct dp_spot *host;
	struct dp_actor *next_member; // ring of the host's members, in the order of joining
	struct dp_actor *previous_member;
	struct command *leaving;      // home worker: the leave under way
	bool member;                  // home worker: in the ring
	uint8_t id[]; // base.id_bytes
};

// What an Actor place's type runs and calls; one table per kind of host (types.c links them).
extern const struct spot_ops entry_actor_ops;
extern const struct spot_ops user_actor_ops;

static inline bool actor_is(const struct dp_spot *spot)
{
	return spot->type->ops == &entry_actor_ops || spot->type->ops == &user_actor_ops;
}
static inline struct dp_actor *actor_of(struct dp_spot *spot)
{
	return (struct dp_actor *)(void *)spot; // base is the first member
}
// Whose gate its turns run on.
static inline struct dp_spot *actor_gate(struct dp_spot *spot)
{
	return spot->gate == GATE_HOSTED ? actor_of(spot)->host : spot;
}
struct span actor_id(const struct dp_actor *actor);

// ---- scheduling of a User Spot's members ----
// A place with work: into its host's ring, and the host into the ready set.
void actor_ready(struct dp_worker *w, struct dp_spot *place);
// One application turn of a host with ready members: they and the host's own lane alternate.
void actor_run_member(struct dp_worker *w, struct dp_spot *host);

// ---- lifecycle work (lifecycle.c calls these on the host's gate) ----
void actor_admit(struct dp_worker *w, struct command *command);
void actor_enter(struct dp_worker *w, struct command *command);
void actor_leave(struct dp_worker *w, struct command *command);
// Ends leaves whose Actors have no accepted work left. True: some ended.
bool actor_tick(struct dp_worker *w);
// The host is to close: seals its members' places. False: one has work left.
bool actor_seal_members(struct dp_spot *host);
// The host closes, its members are sealed: the `left` callbacks, in the order of joining.
void actor_end_members(struct dp_worker *w, struct dp_spot *host);
