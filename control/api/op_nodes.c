// SPDX-License-Identifier: BSD-3-Clause
// The nodes of this node's store.
#include "api/internal.h"
#include "node/listing.h"
#include "node/peers.h"

// What this node has seen of the others' beats, by its own clock.
struct view {
	struct node_peer peers[STORE_NODES_MAX];
	uint32_t count;
	uint64_t age_ns; // UINT64_MAX: none
};

static void view_take(const struct api *api, struct view *out)
{
	out->count = node_peers(api->options.node, out->peers, &out->age_ns);
}

static const struct node_peer *view_find(const struct view *view, const struct store_node_row *row)
{
	for (uint32_t i = 0; i < view->count; i++) {
		const struct node_peer *peer = &view->peers[i];
		if (strcmp(peer->row.node_id, row->node_id) == 0 &&
			store_boot_equal(peer->row.boot, row->boot))
			return peer;
	}
	return NULL;
}

// `state` is the row's; `standing` is what this node may take it for, and why.
static json_t *view_node(
	const struct api *api, const struct store_node_row *row, const struct node_peer *peer)
{
	const char *own = api->options.config->node.id;
	const char *state = row->fenced ? "fenced" : store_boot_is_zero(row->boot) ? "left" : "member";
	json_t *json = json_pack("{s:o, s:s, s:b}", "node",
		view_text(span_of(row->node_id, strnlen(row->node_id, sizeof row->node_id))), "state",
		state, "self", strcmp(row->node_id, own) == 0);
	if (json == NULL)
		return NULL;
	if (peer != NULL) {
		json_object_set_new(json, "standing", json_string(peer_standing_name(peer->standing)));
		view_set(json, "still_ns", peer->still_ns);
		view_set(json, "needed_ns", peer->needed_ns);
	}
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
	struct view view;
	json_t *nodes = json_array();
	view_take(request->api, &view);
	for (uint32_t i = 0; i < listing->count; i++) {
		const struct store_node_row *row = &listing->nodes[i];
		json_array_append_new(nodes, view_node(request->api, row, view_find(&view, row)));
	}
	json_t *result = json_pack("{s:o}", "nodes", nodes);
	if (view.age_ns != UINT64_MAX)
		view_set(result, "view_age_ns", view.age_ns);
	api_done(request, result);
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
	struct view view;
	view_take(request->api, &view);
	for (uint32_t i = 0; i < listing->count; i++) {
		if (strcmp(listing->nodes[i].node_id, wanted) == 0) {
			const struct store_node_row *row = &listing->nodes[i];
			api_done(request, view_node(request->api, row, view_find(&view, row)));
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

// ---- fence ----

static void fence_done(void *arg, const struct node_fence_report *report)
{
	struct api_request *request = arg;
	if (request->api == NULL) {
		api_done(request, NULL);
		return;
	}
	json_t *detail = json_pack("{s:b}", "changed", report->changed);
	view_set(detail, "spots_released", report->rows_released);
	if (report->result.kind != RESULT_OK) {
		api_fail_said(request, report->result, detail, report->text);
		return;
	}
	json_object_set_new(detail, "node", json_string(arg_text(request, "node")));
	api_done(request, detail);
}

void op_node_fence(struct api_request *request)
{
	const struct api *api = request->api;
	uint64_t budget_ms = (uint64_t)arg_number(request, "budget_ms", 10000);
	request->held = true;
	node_fence(api->options.node, arg_span(request, "node"),
		view_now(api) + budget_ms * UINT64_C(1000000), fence_done, request);
}
