// SPDX-License-Identifier: BSD-3-Clause
#include "core/spot.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"

void *spot_block_create(
	struct dp *dp, const struct dp_type *type, const struct dp_spot_spec *spec, size_t spot_bytes)
{
	CHECK(spec->home_worker < dp->config.workers);
	CHECK(spec->id.size > 0 && spec->id.size <= ID_BYTES_MAX);
	struct dp_spot *spot = mem_zalloc_aligned(CACHE_LINE_BYTES, spot_bytes + spec->id.size);
	if (spot == NULL)
		return NULL;
	lane_word_init(&spot->application, true);
	lane_word_init(&spot->lifecycle, false);
	spot->type = type;
	spot->home_worker = spec->home_worker;
	atomic_init(&spot->state, SPOT_NEW);
	atomic_init(&spot->refused, 0);
	spot->gate = GATE_IDLE;
	spot->readiness = SPOT_IDLE;
	spot->key = spec->key;
	spot->object_generation = spec->object_generation.value;
	spot->authority_generation = spec->authority_generation.value;
	spot->dp = dp;
	spot->id_bytes = (uint16_t)spec->id.size;
	memcpy((uint8_t *)spot + spot_bytes, spec->id.data, spec->id.size);
	return spot;
}

// The siblings add nothing to the base today, so the id starts at the same place in all three.
_Static_assert(sizeof(struct entry_spot) == sizeof(struct dp_spot), "id behind the base");
_Static_assert(sizeof(struct user_spot) == sizeof(struct dp_spot), "id behind the base");
_Static_assert(sizeof(struct instance_spot) == sizeof(struct dp_spot), "id behind the base");

struct span spot_id(const struct dp_spot *spot)
{
	return span_of((const uint8_t *)spot + sizeof(*spot), spot->id_bytes);
}

struct result spot_construct_begin(struct dp_spot *spot, const struct spot_callbacks *cb)
{
	const char *config = spot->type->config_json != NULL ? spot->type->config_json : "";
	struct span id = spot_id(spot);
	struct spotlane_spot_info info = {
		.id = {id.data, id.size},
		.config = {config, strlen(config)},
		.object_generation = spot->object_generation,
	};
	struct result failed = result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED);
	if (cb->construct(&info, &spot->instance) != 0)
		return failed;
	if (cb->configure != NULL && cb->configure(spot->instance, info.config) != 0) {
		if (cb->dispose != NULL)
			cb->dispose(spot->instance);
		return failed;
	}
	return result_ok();
}

struct result spot_construct_end(struct dp_spot *spot, const struct spot_callbacks *cb)
{
	if (cb->initialise == NULL || cb->initialise(spot->instance) == 0)
		return result_ok();
	if (cb->dispose != NULL)
		cb->dispose(spot->instance);
	return result_refused(RESULT_INTERNAL_FAILURE, REASON_FACTORY_FAILED);
}

// ---- port ----
struct dp_spot *dp_spot_create(struct dp *dp, const struct dp_spot_spec *spec)
{
	return spec->type->ops->create(dp, spec);
}

void dp_spot_destroy(struct dp_spot *spot)
{
	if (spot == NULL)
		return;
	struct lane_level application = lane_level(&spot->application);
	CHECK(application.count == 0 && application.bytes == 0);
	CHECK(lane_level(&spot->lifecycle).count == 0);
	CHECK(spot->readiness == SPOT_IDLE && spot->application_list.head == NULL);
	mem_free(atomic_load_explicit(&spot->members, memory_order_relaxed));
	mem_free(spot);
}

uint16_t dp_home_for(const struct dp *dp, struct spot_key key)
{
	return (uint16_t)(key.hi % dp->config.workers);
}

void *dp_spot_control_area(struct dp_spot *spot)
{
	return spot->control_area;
}

route_word dp_spot_route(struct dp_spot *spot)
{
	return route_make(spot, ROUTE_LOCAL);
}

struct dp_spot *dp_spot_of_route(route_word word)
{
	return route_tag(word) == ROUTE_LOCAL ? route_pointer(word) : NULL;
}

static uint64_t relaxed(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static uint64_t running_since(const struct dp_spot *spot)
{
	uint64_t waiting = relaxed(&spot->running_since_boot_ns);
	struct spot_key key;
	uint64_t since;
	if (waiting != 0)
		return waiting;
	if (dp_worker_running(spot->dp, spot->home_worker, &key, &since) &&
		spot_key_equal(key, spot->key))
		return since;
	return 0;
}

void dp_spot_view(const struct dp_spot *spot, struct dp_spot_view *out)
{
	enum spot_state state = spot_state(spot);
	*out = (struct dp_spot_view){
		.key = spot->key,
		.id = spot_id(spot),
		.type = spot->type,
		.kind = spot->type->ops->kind,
		.home_worker = spot->home_worker,
		.closing = state >= SPOT_CLOSING,
		.application = lane_level(&spot->application),
		.lifecycle = lane_level(&spot->lifecycle),
		.application_bounds = *spot_bounds(spot),
		.lifecycle_bounds = spot->type->lifecycle,
		.object_generation = {spot->object_generation},
		.authority_generation = {spot->authority_generation},
		.turns = relaxed(&spot->turns),
		.refused = atomic_load_explicit(&spot->refused, memory_order_relaxed),
		.overruns = relaxed(&spot->overruns),
		.last_finished_boot_ns = relaxed(&spot->last_finished_boot_ns),
		.running_since_boot_ns = running_since(spot),
	};
	out->opening = out->application.opening;
}
