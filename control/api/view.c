// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

uint64_t view_now(const struct api *api)
{
	return api->options.clock->boot_ns(api->options.clock);
}

void view_instance(const struct node_status *status, char out[API_INSTANCE_BYTES])
{
	for (size_t i = 0; i < sizeof status->boot_id; i++)
		snprintf(out + 2 * i, 3, "%02x", status->boot_id[i]);
}

json_t *view_number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

void view_set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, view_number(value));
}

json_t *view_key(struct spot_key key)
{
	uint8_t bytes[KEY_BYTES];
	char text[2 * KEY_BYTES + 1];
	spot_key_bytes(key, bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return json_string(text);
}

json_t *view_text(struct span text)
{
	json_t *json = text.size == 0 ? json_string("") : json_stringn((const char *)text.data, text.size);
	return json != NULL ? json : json_string("(not UTF-8)");
}

json_t *view_lane(struct lane_level level, struct lane_bounds bounds)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "items", (json_int_t)level.count, "items_max",
		(json_int_t)bounds.count_max, "bytes", (json_int_t)level.bytes, "bytes_max",
		(json_int_t)bounds.bytes_max);
}

static uint64_t age_ns(uint64_t now, uint64_t then)
{
	return then == 0 || then > now ? 0 : now - then;
}

json_t *view_spot(const struct api *api, const struct dp_spot *spot)
{
	struct dp_spot_view v;
	uint64_t now = view_now(api);
	dp_spot_view(spot, &v);
	const char *state = v.closing ? "closing" : v.opening ? "opening" : "open";
	json_t *json = json_pack("{s:o, s:o, s:s, s:s, s:s, s:i, s:o, s:o}", "id", view_text(v.id), "key",
		view_key(v.key), "kind", spot_kind_name(v.kind), "type", dp_type_name(v.type), "state",
		state, "home_worker", (int)v.home_worker, "application",
		view_lane(v.application, v.application_bounds), "lifecycle",
		view_lane(v.lifecycle, v.lifecycle_bounds));
	if (json == NULL)
		return NULL;
	view_set(json, "object_generation", v.object_generation.value);
	view_set(json, "authority_generation", v.authority_generation.value);
	view_set(json, "turns", v.turns);
	view_set(json, "refused", v.refused);
	view_set(json, "overruns", v.overruns);
	view_set(json, "idle_ns", age_ns(now, v.last_finished_boot_ns));
	view_set(json, "running_ns", age_ns(now, v.running_since_boot_ns));
	return json;
}

static const char *event_name(enum node_event_kind kind)
{
	switch (kind) {
	case NODE_EVENT_STATE:
		return "state";
	case NODE_EVENT_ACTIVATED:
		return "activated";
	case NODE_EVENT_ACTIVATION_FAILED:
		return "activation-failed";
	case NODE_EVENT_CLOSED:
		return "closed";
	case NODE_EVENT_CLOSE_STUCK:
		return "close-stuck";
	case NODE_EVENT_LEASE_LOST:
		return "lease-lost";
	case NODE_EVENT_LEASE_REGAINED:
		return "lease-regained";
	case NODE_EVENT_OVERRUN:
		return "overrun";
	case NODE_EVENT_SKEW:
		return "skew";
	case NODE_EVENT_PEER:
		return "peer";
	case NODE_EVENT_FENCED:
		return "fenced";
	}
	return "event";
}

json_t *view_event(const struct node_event *event)
{
	json_t *json = json_pack("{s:s}", "kind", event_name(event->kind));
	if (json == NULL)
		return NULL;
	if (event->id.size > 0)
		json_object_set_new(json, "id", view_text(event->id));
	if (!spot_key_is_zero(event->key))
		json_object_set_new(json, "key", view_key(event->key));
	if (event->result.kind != 0 && result_kind_name(event->result.kind) != NULL) {
		json_object_set_new(json, "result", json_string(result_kind_name(event->result.kind)));
		if (event->result.reason != REASON_NONE &&
			result_reason_name(event->result.reason) != NULL)
			json_object_set_new(
				json, "reason", json_string(result_reason_name(event->result.reason)));
	}
	if (event->value != 0)
		view_set(json, "value", event->value);
	if (event->text[0] != '\0')
		json_object_set_new(json, "text",
			view_text(span_of(event->text, strnlen(event->text, sizeof event->text))));
	return json;
}
