// SPDX-License-Identifier: BSD-3-Clause
// The module of the simulator: watches its own births, deaths and turns, on every node.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "spotlane/module.h"

static const struct spotlane_host *host;

// Instance numbers: kind (0 Instance, 1 User) * SIM_SPOTS + number + 1; Entry: 1000.
enum { ENTRY_INSTANCE = 1000 };

static struct sim_node *here(void)
{
	return sim_world->current;
}

static struct sim_object *object_of(spotlane_instance self)
{
	uint32_t at = (uint32_t)self.value - 1;
	return &here()->objects[at / SIM_SPOTS][at % SIM_SPOTS];
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	char id[16] = {0};
	memcpy(id, info->id.data, info->id.size < 15 ? info->id.size : 15);
	uint32_t kind = id[0] == 'r', number = (uint32_t)atoi(id + 2);
	struct sim *s = sim_world;
	out->value = kind * SIM_SPOTS + number + 1;
	sim_note(s, 1, info->object_generation);
	sim_trace(s, "  n%u builds %s, generation %llu", here()->index, id,
		(unsigned long long)info->object_generation);
	sim_check_built(here(), kind, number, info->object_generation);
	if (sim_chance(s, s->factory_fail_permille)) {
		sim_fault(SIM_FAULT_FACTORY_FAILED);
		return SPOTLANE_UNAVAILABLE;
	}
	*object_of(*out) = (struct sim_object){.alive = true, .generation = info->object_generation};
	sim_totals.built++;
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
	if (!sim_chance(sim_world, sim_world->factory_fail_permille))
		return 0;
	sim_fault(SIM_FAULT_CREATE_DECLINED);
	return SPOTLANE_REJECTED;
}

static int closing(spotlane_instance self, enum spotlane_close_reason reason, uint64_t deadline_ns)
{
	struct sim_object *o = object_of(self);
	(void)deadline_ns;
	sim_check(sim_world, o->alive && !o->closing, "C4: one closing callback for each close");
	o->closing = true;
	sim_note(sim_world, 10, reason);
	if (!sim_chance(sim_world, sim_world->factory_fail_permille))
		return 0;
	sim_fault(SIM_FAULT_CLOSING_FAILED);
	return SPOTLANE_INTERNAL_FAILURE;
}

static void dispose(spotlane_instance self)
{
	struct sim_object *o = object_of(self);
	sim_check(sim_world, o->alive, "an object is disposed of once");
	sim_trace(sim_world, "  n%u disposes of %llu", here()->index, (unsigned long long)self.value);
	memset(o, 0, sizeof(*o));
	sim_note(sim_world, 2, self.value);
}

static void entry_dispose(spotlane_instance self)
{
	(void)self;
}

static void turn_begins(spotlane_instance self, const struct spotlane_message *m)
{
	struct sim *s = sim_world;
	uint64_t op = 0;
	uint32_t at = (uint32_t)self.value - 1;
	sim_check_turn(here(), at / SIM_SPOTS, at % SIM_SPOTS);
	if (m->type == SIM_ASKED)
		return;
	sim_check(s, m->payload.size == sizeof(op), "payload is whole");
	memcpy(&op, m->payload.data, sizeof(op));
	sim_check(s, op < s->op_count, "payload is whole");
	sim_trace(s, "  n%u runs op %llu", here()->index, (unsigned long long)op);
	sim_check(s, ++s->ops[op].executions == 1, "I6: no accepted message runs twice");
	sim_totals.executions++;
	sim_note(s, 3, op);
}

static spotlane_call ask(spotlane_turn turn)
{
	char id[16];
	int n = snprintf(id, sizeof(id), "s-%u", (unsigned)rng_below(&sim_world->rng, SIM_SPOTS));
	return host->request(turn, (struct spotlane_bytes){id, (size_t)n}, SIM_ASKED, SPOTLANE_BYTES,
		(struct spotlane_bytes){"12345678", 8}, 0);
}

static size_t work(const void *argument, size_t argument_size, void *out, size_t capacity)
{
	size_t size = argument_size < capacity ? argument_size : capacity;
	memcpy(out, argument, size);
	return size;
}

static spotlane_call hand_off(spotlane_turn turn)
{
	return host->offload(turn, work, (struct spotlane_bytes){"work", 4}, 16);
}

static bool begins_a_wait(spotlane_turn turn, const struct spotlane_message *m)
{
	if (m->type == SIM_ASK)
		return ask(turn).value != 0;
	return m->type == SIM_WORK && hand_off(turn).value != 0;
}

static enum spotlane_outcome message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	turn_begins(self, m);
	if (m->type == SIM_CLOSE)
		host->close_self(turn);
	if (begins_a_wait(spotlane_instance_common(turn), m))
		return rng_below(&sim_world->rng, 2) ? SPOTLANE_WAIT : SPOTLANE_YIELD;
	return SPOTLANE_DONE;
}

static void answer_comes(spotlane_instance self, const struct spotlane_answer *answer)
{
	uint32_t at = (uint32_t)self.value - 1;
	sim_note(sim_world, 4, answer->kind);
	sim_check_turn(here(), at / SIM_SPOTS, at % SIM_SPOTS);
}

static enum spotlane_outcome answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)turn;
	(void)call;
	answer_comes(self, answer);
	return SPOTLANE_DONE;
}

static enum spotlane_outcome user_message(
	spotlane_instance self, spotlane_user_turn turn, const struct spotlane_message *m)
{
	turn_begins(self, m);
	return begins_a_wait(spotlane_user_common(turn), m) ? SPOTLANE_WAIT : SPOTLANE_DONE;
}

static enum spotlane_outcome user_answered(spotlane_instance self, spotlane_user_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)turn;
	(void)call;
	answer_comes(self, answer);
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
	.limits = {.application_count_max = 4, .application_bytes_max = 1u << 20},
	.construct = construct, .closing = closing, .dispose = dispose, .message = message,
	.answered = answered};
static const struct spotlane_user_type room = {.name = "room", .construct = construct,
	.closing = closing, .dispose = dispose, .create = create, .message = user_message,
	.answered = user_answered};
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
