// SPDX-License-Identifier: BSD-3-Clause
// Entry Spots: one per node, made at start; their turns complete or wait and cannot yield.
#include "base/check.h"
#include "core/core.h"
#include "core/spot.h"

static const struct spotlane_entry_type *module_of(const struct dp_spot *spot)
{
	return container_of(spot->type, const struct entry_type, base)->module;
}

static struct spot_callbacks callbacks_of(const struct spotlane_entry_type *module)
{
	return (struct spot_callbacks){
		module->construct, module->configure, module->initialise, module->dispose};
}

struct entry_spot *entry_spot_create(
	struct dp *dp, const struct entry_type *type, const struct dp_spot_spec *spec)
{
	return spot_block_create(dp, &type->base, spec, sizeof(struct entry_spot));
}

static struct dp_spot *create(struct dp *dp, const struct dp_spot_spec *spec)
{
	const struct entry_type *type = container_of(spec->type, const struct entry_type, base);
	struct entry_spot *spot = entry_spot_create(dp, type, spec);
	return spot == NULL ? NULL : &spot->base;
}

static struct result construct(struct dp_spot *spot, struct span argument)
{
	const struct spotlane_entry_type *module = module_of(spot);
	struct spot_callbacks cb = callbacks_of(module);
	struct result result = spot_construct_begin(spot, &cb);
	if (result.kind != RESULT_OK)
		return result;
	(void)argument;
	return spot_construct_end(spot, &cb);
}

static enum spotlane_outcome outcome_of(enum spotlane_entry_outcome outcome)
{
	switch (outcome) {
	case SPOTLANE_ENTRY_DONE:
		return SPOTLANE_DONE;
	case SPOTLANE_ENTRY_WAIT:
		return SPOTLANE_WAIT;
	}
	return (enum spotlane_outcome)0; // a number that is no outcome: a fault of the handler
}

static enum spotlane_outcome run(
	struct dp_spot *spot, uint64_t turn, const struct turn_event *event)
{
	const struct spotlane_entry_type *module = module_of(spot);
	spotlane_entry_turn t = {turn};
	if (event->message != NULL)
		return outcome_of(module->message(spot->instance, t, event->message));
	if (event->tick != NULL) // timer_set refuses a type without the callback
		return outcome_of(module->ticked(spot->instance, t, event->tick));
	if (module->answered == NULL)
		return (enum spotlane_outcome)0;
	return outcome_of(module->answered(spot->instance, t, event->call, event->answer));
}

static bool hears_ticks(const struct dp_type *type)
{
	return container_of(type, const struct entry_type, base)->module->ticked != NULL;
}

static int closing(struct dp_spot *spot, enum spotlane_close_reason reason, uint64_t deadline_ns)
{
	const struct spotlane_entry_type *module = module_of(spot);
	return module->closing == NULL ? 0 : module->closing(spot->instance, reason, deadline_ns);
}

static void dispose(struct dp_spot *spot)
{
	const struct spotlane_entry_type *module = module_of(spot);
	if (module->dispose != NULL)
		module->dispose(spot->instance);
}

static const struct dp_type *actor_type(const struct dp_type *type)
{
	return &container_of(type, const struct entry_type, base)->actor;
}

const struct spot_ops entry_spot_ops = {
	.kind = SPOT_KIND_ENTRY,
	.create = create,
	.construct = construct,
	.hears_ticks = hears_ticks,
	.run = run,
	.closing = closing,
	.dispose = dispose,
	.actor_type = actor_type,
};
