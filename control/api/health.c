// SPDX-License-Identifier: BSD-3-Clause
#include "node/health.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/internal.h"

enum { NS_PER_MS = 1000000, WHY_BYTES = 320 };

// Which process answers: a probe can tell a new node from the one it replaced.
static json_t *health_of(const struct api *api, const struct node_status *s, bool yes)
{
	char instance[API_INSTANCE_BYTES];
	view_instance(s, instance);
	return json_pack("{s:b, s:s, s:s, s:s, s:s}", "yes", yes, "state", node_state_name(s->state), "node",
		api->options.config->node.id, "instance", instance, "config_digest", api->digest);
}

json_t *health_live(const struct api *api)
{
	struct node_status s;
	node_status(api->options.node, &s);
	return health_of(api, &s, s.state != NODE_ERROR && s.state != NODE_STOPPED);
}

static void stalled_workers(const struct api *api, uint64_t stalled, char *out, size_t size)
{
	uint64_t now = view_now(api);
	size_t used = 0;
	for (uint16_t w = 0; w < api->options.host->workers && used < size; w++) {
		uint64_t beat = dp_worker_heartbeat(api->options.dp, w);
		if (stalled >> w & 1)
			used += (size_t)snprintf(out + used, size - used,
				"%sworker %u has not turned over for %" PRIu64 " ms", used == 0 ? "" : ", ", w,
				beat == 0 || beat > now ? 0 : (now - beat) / NS_PER_MS);
	}
}

static void why_not(const struct api *api, enum node_ready_part part, const struct node_status *s,
	const struct node_health *h, char out[WHY_BYTES])
{
	switch (part) {
	case NODE_READY_STATE:
		snprintf(out, WHY_BYTES, "the node is %s%s%s", node_state_name(s->state),
			s->why[0] != '\0' ? ": " : "", s->why);
		return;
	case NODE_READY_LEASE:
		snprintf(out, WHY_BYTES, "the owner lease is not held: %" PRId64 " ms left, %" PRIu64 " failures",
			s->lease_left_ns / NS_PER_MS, s->lease_failures);
		return;
	case NODE_READY_STORE:
		snprintf(out, WHY_BYTES, "the store did not answer the last renewal");
		return;
	case NODE_READY_WORKERS:
		stalled_workers(api, h->workers_stalled, out, WHY_BYTES);
		return;
	case NODE_READY_CLOSE_BACKLOG:
		snprintf(out, WHY_BYTES, "%" PRIu64 " closings at once, %d are bearable", h->close_backlog,
			NODE_CLOSE_BACKLOG_MAX);
		return;
	case NODE_READY_PART_END:
		break;
	}
}

json_t *health_ready(const struct api *api)
{
	struct node_status s;
	struct node_health h;
	json_t *failing = json_array(), *why = json_array();
	char text[WHY_BYTES];
	node_status(api->options.node, &s);
	node_health(api->options.node, &h);
	for (uint32_t p = NODE_READY_STATE; p < NODE_READY_PART_END; p++) {
		if ((h.failing >> p & 1) == 0)
			continue;
		text[0] = '\0';
		why_not(api, (enum node_ready_part)p, &s, &h, text);
		json_array_append_new(failing, json_string(node_ready_name((enum node_ready_part)p)));
		json_array_append_new(why, view_text(span_of(text, strlen(text))));
	}
	json_t *body = health_of(api, &s, h.failing == 0);
	json_object_set_new(body, "failing", failing);
	json_object_set_new(body, "why", why);
	return body;
}

void op_health_live(struct api_request *request)
{
	api_done(request, health_live(request->api));
}

void op_health_ready(struct api_request *request)
{
	api_done(request, health_ready(request->api));
}
