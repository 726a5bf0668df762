// SPDX-License-Identifier: BSD-3-Clause
// The module of the simulator: watches its own births, deaths and turns.
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"
#include "spotlane/module.h"

static const struct spotlane_host *host;

// Instance numbers: kind (0 Instance, 1 User) * SIM_SPOTS + number + 1; Entry: 1000.
enum { ENTRY_INSTANCE = 1000 };

static uint32_t *alive_of(spotlane_instance self)
{
	uint32_t at = (uint32_t)self.value - 1;
	return &sim_world->alive[at / SIM_SPOTS][at % SIM_SPOTS];
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	char id[16] = {0};
	memcpy(id, info->id.data, info->id.size < 15 ? info->id.size : 15);
	uint32_t kind = id[0] == 'r', number = (uint32_t)atoi(id + 2);
	struct sim *s = sim_world;
	out->value = kind * SIM_SPOTS + number + 1;
	sim_note(s, 1, info->object_generation);
	if (rng_below(&s->rng, 1000) < s->factory_fail_permille)
		return SPOTLANE_UNAVAILABLE;
	sim_check(s, *alive_of(*out) == 0, "I4: never two objects of one id");
	sim_check(s, info->object_generation > s->last_generation[kind][number],
		"I4, T3: one factory call per incarnation");
	s->last_generation[kind][number] = info->object_generation;
	*alive_of(*out) = 1;
	s->activations++;
	return 0;
}

static int entry_construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	out->value = ENTRY_INSTANCE;
	return 0;
}

static int create(spotlane_instance self, struct spotlane_bytes argument)
{
	(void)self;
	(void)argument;
	return rng_below(&sim_world->rng, 1000) < sim_world->factory_fail_permille ? SPOTLANE_REJECTED : 0;
}

static void dispose(spotlane_instance self)
{
	*alive_of(self) = 0;
	sim_note(sim_world, 2, self.value);
}

static void entry_dispose(spotlane_instance self)
{
	(void)self;
}

static void turn_begins(const struct spotlane_message *m)
{
	struct sim *s = sim_world;
	uint64_t op = 0;
	uint64_t deadline =
		atomic_load_explicit(&dp_lease(s->dp)->deadline_boot_ns, memory_order_acquire);
	sim_check(s, s->clock.boot_ns < deadline, "I2, O3: no turn after the lease deadline");
	if (m->type == SIM_ASKED)
		return;
	memcpy(&op, m->payload.data, sizeof(op));
	sim_check(s, op < s->op_count, "payload is whole");
	sim_check(s, ++s->ops[op].executions == 1, "I6: no accepted message runs twice");
	s->executions++;
	sim_note(s, 3, op);
}

static spotlane_call ask(spotlane_turn turn)
{
	char id[16];
	int n = snprintf(id, sizeof(id), "s-%u", (unsigned)rng_below(&sim_world->rng, SIM_SPOTS));
	return host->request(turn, (struct spotlane_bytes){id, (size_t)n}, SIM_ASKED, SPOTLANE_BYTES,
		(struct spotlane_bytes){"12345678", 8}, 0);
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	turn_begins(m);
	sim_check(sim_world, *alive_of(self) == 1, "turns run on live objects");
	if (m->type == SIM_CLOSE)
		host->close_self(turn);
	if (m->type == SIM_ASK && ask(spotlane_instance_common(turn)).value != 0)
		return rng_below(&sim_world->rng, 2) ? SPOTLANE_WAIT : SPOTLANE_YIELD;
	return SPOTLANE_DONE;
}

static enum spotlane_outcome answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)turn;
	(void)call;
	sim_note(sim_world, 4, answer->kind);
	sim_check(sim_world, *alive_of(self) == 1, "answers reach live objects");
	return SPOTLANE_DONE;
}

static enum spotlane_outcome user_message(
	spotlane_instance self, spotlane_user_turn turn, const struct spotlane_message *m)
{
	turn_begins(m);
	sim_check(sim_world, *alive_of(self) == 1, "turns run on live objects");
	return m->type == SIM_ASK && ask(spotlane_user_common(turn)).value != 0 ? SPOTLANE_WAIT
										 : SPOTLANE_DONE;
}

static enum spotlane_outcome user_answered(spotlane_instance self, spotlane_user_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)self;
	(void)turn;
	(void)call;
	sim_note(sim_world, 5, answer->kind);
	return SPOTLANE_DONE;
}

static enum spotlane_entry_outcome entry_message(
	spotlane_instance self, spotlane_entry_turn turn, const struct spotlane_message *m)
{
	(void)self;
	(void)turn;
	(void)m;
	return SPOTLANE_ENTRY_DONE;
}

static const struct spotlane_instance_type cell = {.name = "cell",
	.limits = {.application_count_max = 4, .application_bytes_max = 2048},
	.construct = construct, .dispose = dispose, .message = message, .answered = answered};
static const struct spotlane_user_type room = {.name = "room", .construct = construct,
	.dispose = dispose, .create = create, .message = user_message, .answered = user_answered};
static const struct spotlane_entry_type door = {.name = "door", .construct = entry_construct,
	.dispose = entry_dispose, .message = entry_message};

static const struct spotlane_instance_type *const instance_types[] = {&cell, NULL};
static const struct spotlane_user_type *const user_types[] = {&room, NULL};
static const struct spotlane_entry_type *const entry_types[] = {&door, NULL};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

const struct spotlane_module sim_module = {.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "sim",
	.version = "1",
	.attach = attach,
	.instance_types = instance_types,
	.user_types = user_types,
	.entry_types = entry_types};
