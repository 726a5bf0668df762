// SPDX-License-Identifier: BSD-3-Clause
// User Spots: made by an explicit create, which the module may decline; their turns may yield.
#include "base/check.h"
#include "core/core.h"
#include "core/spot.h"

static const struct spotlane_user_type *module_of(const struct dp_spot *spot)
{
	return container_of(spot->type, const struct user_type, base)->module;
}

static struct spot_callbacks callbacks_of(const struct spotlane_user_type *module)
{
	return (struct spot_callbacks){
		module->construct, module->configure, module->initialise, module->dispose};
}

struct user_spot *user_spot_create(
	struct dp *dp, const struct user_type *type, const struct dp_spot_spec *spec)
{
	return spot_block_create(dp, &type->base, spec, sizeof(struct user_spot));
}

static struct dp_spot *create(struct dp *dp, const struct dp_spot_spec *spec)
{
	const struct user_type *type = container_of(spec->type, const struct user_type, base);
	struct user_spot *spot = user_spot_create(dp, type, spec);
	return spot == NULL ? NULL : &spot->base;
}

static struct result construct(struct dp_spot *spot, struct span argument)
{
	const struct spotlane_user_type *module = module_of(spot);
	struct spot_callbacks cb = callbacks_of(module);
	struct result result = spot_construct_begin(spot, &cb);
	if (result.kind != RESULT_OK)
		return result;
	if (module->create != NULL &&
		module->create(spot->instance,
			(struct spotlane_bytes){argument.data, argument.size}) != 0) {
		if (module->dispose != NULL)
			module->dispose(spot->instance);
		return result_refused(RESULT_REJECTED, REASON_DECLINED);
	}
	return spot_construct_end(spot, &cb);
}

static enum spotlane_outcome run(
	struct dp_spot *spot, uint64_t turn, const struct turn_event *event)
{
	const struct spotlane_user_type *module = module_of(spot);
	spotlane_user_turn t = {turn};
	if (event->message != NULL)
		return module->message(spot->instance, t, event->message);
	if (event->tick != NULL) // timer_set refuses a type without the callback
		return module->ticked(spot->instance, t, event->tick);
	if (module->answered == NULL)
		return (enum spotlane_outcome)0; // a fault of the handler
	return module->answered(spot->instance, t, event->call, event->answer);
}

static bool hears_ticks(const struct dp_type *type)
{
	return container_of(type, const struct user_type, base)->module->ticked != NULL;
}

static int closing(struct dp_spot *spot, enum spotlane_close_reason reason, uint64_t deadline_ns)
{
	const struct spotlane_user_type *module = module_of(spot);
	return module->closing == NULL ? 0 : module->closing(spot->instance, reason, deadline_ns);
}

static void dispose(struct dp_spot *spot)
{
	const struct spotlane_user_type *module = module_of(spot);
	if (module->dispose != NULL)
		module->dispose(spot->instance);
}

static const struct dp_type *actor_type(const struct dp_type *type)
{
	return &container_of(type, const struct user_type, base)->actor;
}

static bool joining(struct dp_spot *spot, struct span actor)
{
	const struct spotlane_user_type *module = module_of(spot);
	struct spotlane_bytes id = {actor.data, actor.size};
	return module->joining == NULL || module->joining(spot->instance, id) == 0;
}

static void joined(struct dp_spot *spot, struct span actor)
{
	const struct spotlane_user_type *module = module_of(spot);
	if (module->joined != NULL)
		module->joined(spot->instance, (struct spotlane_bytes){actor.data, actor.size});
}

static void left(struct dp_spot *spot, struct span actor)
{
	const struct spotlane_user_type *module = module_of(spot);
	if (module->left != NULL)
		module->left(spot->instance, (struct spotlane_bytes){actor.data, actor.size});
}

const struct spot_ops user_spot_ops = {
	.kind = SPOT_KIND_USER,
	.create = create,
	.construct = construct,
	.hears_ticks = hears_ticks,
	.run = run,
	.closing = closing,
	.dispose = dispose,
	.actor_type = actor_type,
	.joining = joining,
	.joined = joined,
	.left = left,
};
