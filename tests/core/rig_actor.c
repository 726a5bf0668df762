// SPDX-License-Identifier: BSD-3-Clause
// Scripted control of Actors: the steps of a change of membership, one by one or in a row.
#include "rig.h"

struct dp_actor *rig_place(struct rig *rig, const char *id, struct dp_spot *host)
{
	struct dp_actor_spec spec = {
		.key = actor_key_of(rig_id(id)), .id = rig_id(id), .host = host};
	struct dp_actor *actor = dp_actor_create(rig->dp, &spec);
	assert_non_null(actor);
	return actor;
}

enum dp_actor_step rig_actor_step(struct rig *rig, const struct dp_actor *actor)
{
	enum dp_actor_step step = 0;
	for (uint32_t i = 0; i < rig->fact_count; i++)
		if (rig->facts[i].kind == DP_FACT_ACTOR && rig->facts[i].as.actor.actor == actor)
			step = rig->facts[i].as.actor.step;
	return step;
}

void rig_enter(struct rig *rig, struct dp_actor *actor)
{
	struct dp_actor_view view;
	dp_actor_view(actor, &view);
	assert_int_equal(
		route_publish(rig->routes, view.key, dp_actor_route(actor)), ROUTE_WRITTEN);
	assert_int_equal(dp_actor_enter(rig->dp, actor), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_actor_step(rig, actor), DP_ACTOR_ENTERED);
}

struct dp_actor *rig_join(struct rig *rig, const char *id, struct dp_spot *host)
{
	struct dp_actor *actor = rig_place(rig, id, host);
	assert_int_equal(dp_actor_admit(rig->dp, actor), DP_DONE);
	rig_settle(rig);
	if (rig_actor_step(rig, actor) == DP_ACTOR_REFUSED) {
		dp_actor_destroy(actor);
		return NULL;
	}
	rig_enter(rig, actor);
	return actor;
}

void rig_leave(struct rig *rig, struct dp_actor *actor)
{
	struct dp_actor_view view;
	dp_actor_view(actor, &view);
	assert_int_equal(dp_actor_leave(rig->dp, actor), DP_DONE);
	rig_settle(rig);
	assert_int_equal(rig_actor_step(rig, actor), DP_ACTOR_LEFT);
	(void)route_retire(rig->routes, view.key);
	dp_actor_destroy(actor);
}

void rig_forget_members(struct rig *rig, struct dp_spot *closed)
{
	struct dp_actor *actor = dp_closed_member(closed, NULL);
	while (actor != NULL) {
		struct dp_actor *next = dp_closed_member(closed, actor);
		struct dp_actor_view view;
		dp_actor_view(actor, &view);
		(void)route_retire(rig->routes, view.key);
		dp_actor_destroy(actor);
		actor = next;
	}
}
