// SPDX-License-Identifier: BSD-3-Clause
// Control's side of dp/port.h: commands in, facts out. Control thread only.
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/actor.h"
#include "core/core.h"

static struct command *command_new(enum command_kind what, struct dp_spot *spot, struct span argument)
{
	struct command *c = mem_zalloc(sizeof(*c) + argument.size);
	if (c == NULL)
		return NULL;
	c->kind = ITEM_COMMAND;
	c->what = (uint8_t)what;
	c->spot = spot;
	c->node.origin = FACT_OF_COMMAND;
	if (spot != NULL)
		c->key = spot->key;
	c->argument_bytes = (uint32_t)argument.size;
	if (argument.size > 0)
		memcpy(c->argument, argument.data, argument.size);
	return c;
}

static enum dp_status submit(struct dp *dp, uint16_t worker, struct command *command)
{
	void *p = command;
	if (ring_push(dp->workers[worker]->facts.commands, &p, 1) == 1) {
		worker_nudge(dp, worker);
		return DP_DONE;
	}
	if (command->charge_bytes > 0)
		lane_return(&command->spot->lifecycle, command->charge_bytes);
	mem_free(command);
	return DP_BUSY;
}

// Lifecycle work takes its place in the lifecycle lane first (L1). c may be NULL: no memory.
static enum dp_status submit_to_lane(struct dp *dp, struct dp_spot *spot, struct command *c)
{
	if (c == NULL)
		return DP_NO_MEMORY;
	struct span argument = span_of(c->argument, c->argument_bytes);
	uint32_t charge = ledger_charge_of(
		dp->config.accounting, sizeof(*c) + argument.size, argument.size);
	if (lane_reserve(&spot->lifecycle, spot->type->lifecycle, charge) != LANE_ADMITTED) {
		mem_free(c);
		return DP_BUSY;
	}
	c->charge_bytes = charge;
	return submit(dp, spot->home_worker, c);
}

static enum dp_status submit_lifecycle(struct dp *dp, enum command_kind what, struct dp_spot *spot,
	struct span argument, uint8_t reason, uint64_t deadline_boot_ns, uint64_t idle_ns)
{
	struct command *c = command_new(what, spot, argument);
	if (c != NULL) {
		c->idle_ns = idle_ns;
		c->reason = reason;
		c->deadline_boot_ns = deadline_boot_ns;
	}
	return submit_to_lane(dp, spot, c);
}

enum dp_status dp_construct(struct dp *dp, struct dp_spot *spot, struct span argument)
{
	return submit_lifecycle(dp, COMMAND_CONSTRUCT, spot, argument, 0, 0, 0);
}

enum dp_status dp_close(struct dp *dp, struct dp_spot *spot, uint8_t reason, uint64_t deadline_boot_ns)
{
	return submit_lifecycle(
		dp, COMMAND_CLOSE, spot, span_of(NULL, 0), reason, deadline_boot_ns, 0);
}

enum dp_status dp_close_idle(
	struct dp *dp, struct dp_spot *spot, uint64_t idle_ns, uint64_t deadline_boot_ns)
{
	return submit_lifecycle(dp, COMMAND_CLOSE_IDLE, spot, span_of(NULL, 0),
		SPOTLANE_CLOSE_IDLE_EVICTED, deadline_boot_ns, idle_ns);
}

static enum dp_status submit_actor(struct dp *dp, enum command_kind what, struct dp_actor *actor)
{
	struct command *c = command_new(what, actor->host, span_of(NULL, 0));
	if (c != NULL)
		c->actor = actor;
	return submit_to_lane(dp, actor->host, c);
}

enum dp_status dp_actor_admit(struct dp *dp, struct dp_actor *actor)
{
	return submit_actor(dp, COMMAND_ACTOR_ADMIT, actor);
}

enum dp_status dp_actor_enter(struct dp *dp, struct dp_actor *actor)
{
	return submit_actor(dp, COMMAND_ACTOR_ENTER, actor);
}

enum dp_status dp_actor_leave(struct dp *dp, struct dp_actor *actor)
{
	return submit_actor(dp, COMMAND_ACTOR_LEAVE, actor);
}

enum dp_status dp_open(struct dp *dp, struct dp_spot *spot, uint16_t origin)
{
	struct command *c = command_new(COMMAND_OPEN, spot, span_of(NULL, 0));
	return c == NULL ? DP_NO_MEMORY : submit(dp, origin, c);
}

enum dp_status dp_release(struct dp *dp, uint16_t worker, struct spot_key key)
{
	struct command *c = command_new(COMMAND_RELEASE, NULL, span_of(NULL, 0));
	if (c == NULL)
		return DP_NO_MEMORY;
	c->key = key;
	return submit(dp, worker, c);
}

static void set_refusal(struct command *c, const struct refusal *refusal)
{
	c->has_refusal = refusal != NULL;
	if (refusal != NULL)
		c->refusal = *refusal;
}

enum dp_status dp_fail(struct dp *dp, uint16_t worker, struct spot_key key, enum dp_fail_scope scope,
	struct result result, const struct refusal *refusal)
{
	struct command *c = command_new(COMMAND_FAIL, NULL, span_of(NULL, 0));
	if (c == NULL)
		return DP_NO_MEMORY;
	c->key = key;
	c->scope = (uint8_t)scope;
	c->result = result;
	set_refusal(c, refusal);
	return submit(dp, worker, c);
}

enum dp_status dp_control_reply(struct dp *dp, uint16_t worker, uint64_t token, struct result result,
	const struct refusal *refusal, struct span body)
{
	struct command *c = command_new(COMMAND_CONTROL_REPLY, NULL, body);
	if (c == NULL)
		return DP_NO_MEMORY;
	c->token = token;
	c->result = result;
	set_refusal(c, refusal);
	return submit(dp, worker, c);
}

static void give_node_back(struct dp_worker *w, struct fact_node *node)
{
	void *p = node;
	if (node->origin == FACT_OF_COMMAND)
		mem_free(container_of(node, struct command, node));
	else
		CHECK(ring_push(w->facts.returned, &p, 1) == 1); // holds the whole pool
}

static uint32_t facts_of(struct dp_worker *w, struct dp_fact *out, uint32_t n)
{
	uint32_t got = 0;
	void *p;
	while (got < n && ring_pop(w->facts.facts, &p, 1) == 1) {
		struct fact_node *node = p;
		if (node->told)
			out[got++] = node->fact;
		give_node_back(w, node);
	}
	return got;
}

uint32_t dp_facts(struct dp *dp, struct dp_fact *out, uint32_t n)
{
	uint32_t got = 0;
	for (uint16_t i = 0; i < dp->config.workers && got < n; i++) {
		got += facts_of(dp->workers[dp->fact_turn], out + got, n - got);
		dp->fact_turn = (uint16_t)((dp->fact_turn + 1) % dp->config.workers);
	}
	return got;
}

int dp_wake_fd(const struct dp *dp)
{
	return dp->wake_fd;
}

void dp_control_sleeps(struct dp *dp, bool sleeps)
{
	// Pairs with the exchange in wake_control (command.c).
	(void)atomic_exchange_explicit(&dp->control_sleeps, sleeps, memory_order_acq_rel);
}
