// SPDX-License-Identifier: BSD-3-Clause
// The nodes of this node's store.
#include "api/internal.h"
#include "node/listing.h"

static json_t *view_node(const struct api *api, const struct store_node_row *row)
{
	const char *own = api->options.config->node.id;
	const char *state = row->fenced ? "fenced" : store_boot_is_zero(row->boot) ? "left" : "member";
	json_t *json = json_pack("{s:o, s:s, s:b}", "node",
		view_text(span_of(row->node_id, strnlen(row->node_id, sizeof row->node_id))), "state",
		state, "self", strcmp(row->node_id, own) == 0);
	if (json == NULL)
		return NULL;
	json_object_set_new(json, "address",
		view_text(span_of(row->address, strnlen(row->address, sizeof row->address))));
	json_object_set_new(json, "host",
		view_text(span_of(row->host_id, strnlen(row->host_id, sizeof row->host_id))));
	view_set(json, "lease_generation", row->lease_generation.value);
	view_set(json, "beat", row->beat);
	view_set(json, "ttl_ns", row->ttl_ms * UINT64_C(1000000));
	return json;
}

// False: the request is ended.
static bool listed(struct api_request *request, const struct node_listing *listing)
{
	if (request->api == NULL) {
		api_done(request, NULL);
		return false;
	}
	if (listing->outcome == STORE_DONE)
		return true;
	api_fail(request, API_ERROR_UNAVAILABLE,
		json_pack("{s:s}", "outcome", store_outcome_name(listing->outcome)),
		"the store did not give its table of nodes (%s); spotctl doctor looks at the store",
		store_outcome_name(listing->outcome));
	return false;
}

static void list_done(void *arg, const struct node_listing *listing)
{
	struct api_request *request = arg;
	if (!listed(request, listing))
		return;
	json_t *nodes = json_array();
	for (uint32_t i = 0; i < listing->count; i++)
		json_array_append_new(nodes, view_node(request->api, &listing->nodes[i]));
	api_done(request, json_pack("{s:o}", "nodes", nodes));
}

void op_node_list(struct api_request *request)
{
	request->held = true;
	node_list(request->api->options.node, list_done, request);
}

static void show_done(void *arg, const struct node_listing *listing)
{
	struct api_request *request = arg;
	if (!listed(request, listing))
		return;
	const char *wanted = arg_text(request, "node");
	for (uint32_t i = 0; i < listing->count; i++) {
		if (strcmp(listing->nodes[i].node_id, wanted) == 0) {
			api_done(request, view_node(request->api, &listing->nodes[i]));
			return;
		}
	}
	api_fail(request, API_ERROR_NOT_FOUND, json_pack("{s:s}", "node", wanted),
		"the store knows no node \"%.64s\"; spotctl node list shows those it knows", wanted);
}

void op_node_show(struct api_request *request)
{
	request->held = true;
	node_list(request->api->options.node, show_done, request);
}
