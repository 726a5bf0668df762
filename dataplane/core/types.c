// SPDX-License-Identifier: BSD-3-Clause
// The registered Spot types: checked once when a module is loaded, constant from then on.
#include <string.h>

#include "base/mem.h"
#include "core/actor.h"
#include "core/core.h"
#include "core/turn.h"
#include "spot/name.h"

enum { TYPE_NAME_BYTES_MAX = 64 };

static bool name_is_valid(const char *name)
{
	size_t n = name == NULL ? 0 : strnlen(name, TYPE_NAME_BYTES_MAX + 1);
	if (n == 0 || n > TYPE_NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
			return false;
	}
	return true;
}

static struct lane_bounds narrowed(struct lane_bounds bounds, const struct spotlane_type_limits *limits)
{
	if (limits->application_count_max > 0 && limits->application_count_max < bounds.count_max)
		bounds.count_max = limits->application_count_max;
	if (limits->application_bytes_max > 0 && limits->application_bytes_max < bounds.bytes_max)
		bounds.bytes_max = limits->application_bytes_max;
	return bounds;
}

// Why the type cannot be registered, or NULL.
static const char *fault_of(const struct dp *dp, const char *name, bool complete)
{
	if (!name_is_valid(name))
		return "a Spot type's name is 1 to 64 bytes of a-z, 0-9 and '-'";
	if (!complete)
		return "a Spot type has no construct or no message callback";
	if (dp_type_by_name(dp, name) != NULL)
		return "two Spot types have one name";
	if (dp_type_by_key(dp, type_key_of(name)) != NULL)
		return "two Spot types have one key; rename one";
	if (dp->type_count == DP_TYPES_MAX)
		return "too many Spot types";
	return NULL;
}

static void base_fill(struct dp *dp, struct dp_type *base, const struct spot_ops *ops, const char *name,
	uint32_t flags, const struct spotlane_type_limits *limits, const char *config_json)
{
	uint32_t budget_us = limits->turn_budget_us > 0 ? limits->turn_budget_us
							: dp->config.turn_budget_us;
	base->ops = ops;
	base->flags = flags;
	base->key = type_key_of(name);
	base->bounds = narrowed(dp->config.application, limits);
	base->lifecycle = dp->config.lifecycle;
	base->turn_budget_ns = (uint64_t)budget_us * 1000;
	base->turn_budget_ticks =
		(uint64_t)((__uint128_t)base->turn_budget_ns * dp->config.clock->ticks_hz / 1000000000u);
	base->spots_max = limits->spots_max;
	base->name = name;
	base->config_json = config_json;
	dp->types[dp->type_count++] = base;
}

// The places of Actors on Spots of a type: the type's limits, and what runs them.
static void actor_type_fill(
	struct dp_type *actor, const struct dp_type *base, const struct spot_ops *ops)
{
	*actor = *base;
	actor->ops = ops;
}
static void instance_members(struct instance_type *type)
{
	(void)type; // never any (K3)
}
static void user_members(struct user_type *type)
{
	actor_type_fill(&type->actor, &type->base, &user_actor_ops);
}
static void entry_members(struct entry_type *type)
{
	actor_type_fill(&type->actor, &type->base, &entry_actor_ops);
}

// One list of a module. The macro is the three lists' one text: they differ in the type's name only.
#define REGISTER_LIST(kind)                                                                        \
	static enum dp_status register_##kind##_types(struct dp *dp,                               \
		const struct spotlane_##kind##_type *const *list, const char *const **config,      \
		const char **out_why)                                                              \
	{                                                                                          \
		for (; list != NULL && *list != NULL; list++) {                                    \
			const struct spotlane_##kind##_type *m = *list;                            \
			*out_why = fault_of(dp, m->name, m->construct != NULL && m->message != NULL); \
			if (*out_why != NULL)                                                      \
				return DP_BUSY;                                                    \
			struct kind##_type *type = mem_zalloc(sizeof(*type));                      \
			if (type == NULL)                                                          \
				return DP_NO_MEMORY;                                               \
			type->module = m;                                                          \
			base_fill(dp, &type->base, &kind##_spot_ops, m->name, m->flags, &m->limits, \
				*config != NULL ? *(*config)++ : NULL);                            \
			kind##_members(type);                                                      \
		}                                                                                  \
		return DP_DONE;                                                                    \
	}
REGISTER_LIST(instance)
REGISTER_LIST(user)
REGISTER_LIST(entry)

enum dp_status dp_register_module(struct dp *dp, const struct spotlane_module *module,
	const char *const *type_config_json, const char **out_why)
{
	enum dp_status status;
	*out_why = NULL;
	if (dp->started || module->abi != SPOTLANE_MODULE_ABI || module->size < sizeof(*module)) {
		*out_why = dp->started ? "the node runs already"
				       : "the module was built for another interface version";
		return DP_BUSY;
	}
	if (module->attach != NULL && module->attach(&host_table) != 0) {
		*out_why = "the module refused to load";
		return DP_BUSY;
	}
	status = register_instance_types(dp, module->instance_types, &type_config_json, out_why);
	if (status == DP_DONE)
		status = register_user_types(dp, module->user_types, &type_config_json, out_why);
	if (status == DP_DONE)
		status = register_entry_types(dp, module->entry_types, &type_config_json, out_why);
	return status;
}

static struct lane_bounds overridden(struct lane_bounds bounds, struct lane_bounds by)
{
	if (by.count_max > 0)
		bounds.count_max = by.count_max;
	if (by.bytes_max > 0)
		bounds.bytes_max = by.bytes_max;
	return bounds;
}

bool dp_type_limit(
	struct dp *dp, const char *name, const struct dp_type_limits *limits, const char **out_why)
{
	for (uint32_t i = 0; i < dp->type_count && !dp->started; i++) {
		struct dp_type *type = dp->types[i];
		if (strcmp(type->name, name) != 0)
			continue;
		struct lane_bounds application = overridden(type->bounds, limits->application);
		struct lane_bounds lifecycle = overridden(type->lifecycle, limits->lifecycle);
		*out_why = "a lane needs both bounds, within 2^22 items and 2^40 bytes";
		if (!lane_bounds_valid(application) || !lane_bounds_valid(lifecycle))
			return false;
		*out_why = NULL;
		type->bounds = application;
		type->lifecycle = lifecycle;
		return true;
	}
	*out_why = dp->started ? "the node runs already" : "no module has this Spot type";
	return false;
}

const struct dp_type *dp_type_by_key(const struct dp *dp, struct type_key key)
{
	for (uint32_t i = 0; i < dp->type_count; i++)
		if (dp->types[i]->key.value == key.value)
			return dp->types[i];
	return NULL;
}

const struct dp_type *dp_type_by_name(const struct dp *dp, const char *name)
{
	for (uint32_t i = 0; i < dp->type_count; i++)
		if (strcmp(dp->types[i]->name, name) == 0)
			return dp->types[i];
	return NULL;
}

const char *dp_type_name(const struct dp_type *type)
{
	return type->name;
}

enum spot_kind dp_type_kind(const struct dp_type *type)
{
	return type->ops->kind;
}

struct type_key dp_type_key(const struct dp_type *type)
{
	return type->key;
}

uint32_t dp_type_spots_max(const struct dp_type *type)
{
	return type->spots_max;
}

uint32_t dp_type_count(const struct dp *dp)
{
	return dp->type_count;
}

const struct dp_type *dp_type_at(const struct dp *dp, uint32_t index)
{
	return index < dp->type_count ? dp->types[index] : NULL;
}
