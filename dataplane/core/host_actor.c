// SPDX-License-Identifier: BSD-3-Clause
// What handlers may ask about Actors (X6, B1).
#include <string.h>

#include "core/actor.h"
#include "core/call.h"
#include "core/core.h"
#include "core/host.h"
#include "core/turn.h"
#include "core/turn_inline.h"
#include "spot/name.h"

struct spotlane_bytes host_actor(spotlane_turn turn)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct dp_spot *place = w == NULL ? NULL : w->turn.env->spot;
	if (place == NULL || !actor_is(place))
		return (struct spotlane_bytes){"", 0};
	struct span id = actor_id(actor_of(place));
	return (struct spotlane_bytes){id.data, id.size};
}

static struct spot_key key_of(struct spotlane_bytes id)
{
	return actor_key_of(span_of(id.data, id.size));
}

int host_send_actor(spotlane_turn turn, struct spotlane_bytes actor_id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct host_message m = {actor_id, type, content, payload};
	if (w == NULL || !host_message_is_sound(w, &m))
		return -1;
	uint64_t deadline = w->turn_now_ns + w->dp->default_budget_ns;
	return host_deliver(w, key_of(actor_id), &m, deadline, 0) == DELIVER_REFUSED ? -1 : 0;
}

// X3: an Actor whose turns run on the gate of this very turn.
static bool is_own_gate(const struct dp_worker *w, struct spot_key key)
{
	route_word word = route_lookup(w->dp->config.routes, key);
	return route_tag(word) == ROUTE_ACTOR && actor_gate(route_pointer(word)) == w->turn.spot;
}

spotlane_call host_request_actor(spotlane_turn turn, struct spotlane_bytes actor_id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload, uint32_t budget_us)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct host_message m = {actor_id, type, content, payload};
	if (w == NULL || !w->turn.may_wait || !host_message_is_sound(w, &m) ||
		is_own_gate(w, key_of(actor_id)))
		return (spotlane_call){0};
	return host_ask(w, key_of(actor_id), &m, budget_us);
}

// To control as an operation that nobody waits for: the callbacks tell what came of it.
static int change(spotlane_turn turn, struct spotlane_bytes actor_id, struct spotlane_bytes spot_id,
	enum wire_control operation)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct span actor = span_of(actor_id.data, actor_id.size);
	struct span spot = span_of(spot_id.data, spot_id.size);
	if (w == NULL || !id_is_valid(actor) || (spot.size > 0 && !id_is_valid(spot)))
		return -1;
	struct fact_node *node = fact_begin(w);
	if (node == NULL)
		return -1;
	struct dp_fact *fact = &node->fact;
	fact->kind = DP_FACT_CONTROL;
	fact->worker = w->index;
	fact->key = actor_key_of(actor);
	fact->as.control.token = 0;
	fact->as.control.operation = (uint16_t)operation;
	fact->as.control.spot_type.value = 0;
	fact->as.control.object_generation.value = 0;
	fact->as.control.deadline_boot_ns = w->turn_now_ns + w->dp->default_budget_ns;
	fact->as.control.id_bytes = (uint8_t)actor.size;
	memcpy(fact->as.control.id, actor.data, actor.size);
	fact->as.control.argument_bytes = (uint16_t)spot.size;
	if (spot.size > 0)
		memcpy(fact->as.control.argument, spot.data, spot.size);
	fact_post(w, node);
	return 0;
}

int host_join(spotlane_turn turn, struct spotlane_bytes actor_id, struct spotlane_bytes spot_id)
{
	return change(turn, actor_id, spot_id, WIRE_CONTROL_JOIN);
}

int host_leave(spotlane_turn turn, struct spotlane_bytes actor_id)
{
	return change(turn, actor_id, (struct spotlane_bytes){"", 0}, WIRE_CONTROL_LEAVE);
}
