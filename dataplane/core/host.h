// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the files behind the host table (host.c, host_actor.c) share. Owner worker, during a turn.

#include "core/deliver.h"
#include "spotlane/module.h"

struct dp_worker;

// A message of a handler: what is not where it goes.
struct host_message {
	struct spotlane_bytes id;
	uint16_t type;
	uint16_t content;
	struct spotlane_bytes payload;
};
bool host_message_is_sound(const struct dp_worker *w, const struct host_message *m);
// On the same road as one from a frame (L4, P1, A1). call 0: one way.
enum delivered host_deliver(struct dp_worker *w, struct spot_key key, const struct host_message *m,
	uint64_t deadline_boot_ns, uint64_t call);
// A request of the turn on the stack; 0 = refused before submission.
spotlane_call host_ask(
	struct dp_worker *w, struct spot_key key, const struct host_message *m, uint32_t budget_us);

// host_actor.c
struct spotlane_bytes host_actor(spotlane_turn turn);
int host_send_actor(spotlane_turn turn, struct spotlane_bytes actor_id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload);
spotlane_call host_request_actor(spotlane_turn turn, struct spotlane_bytes actor_id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload, uint32_t budget_us);
int host_join(spotlane_turn turn, struct spotlane_bytes actor_id, struct spotlane_bytes spot_id);
int host_leave(spotlane_turn turn, struct spotlane_bytes actor_id);
