// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PAGE_BYTES_MAX = 32 * 1024, WALK_STEP = 16, NS_PER_MS = 1000000 };

// ---- pages ----

// A page ends when it is full, when its line would grow too long, or when enough was looked at for
// one turn of the loop; `next` says where the following one begins.
struct page {
	const struct api_request *request;
	json_t *rows;
	uint32_t limit, count, looked_at;
	size_t bytes;
	enum spot_kind kind; // SPOT_KIND_INVALID = all
	struct span match;
};

static uint64_t cursor_of(const struct api_request *request, bool *out_good)
{
	const char *text = arg_text(request, "cursor");
	char *end = NULL;
	*out_good = true;
	if (text == NULL)
		return 0;
	uint64_t cursor = strtoull(text, &end, 10);
	*out_good = text[0] >= '0' && text[0] <= '9' && *end == '\0';
	return cursor;
}

static bool page_full(const struct page *page)
{
	return page->count >= page->limit || page->bytes > PAGE_BYTES_MAX ||
	       page->looked_at >= API_WALK_CHUNK;
}

static void page_add(struct page *page, json_t *row)
{
	if (row == NULL)
		return;
	page->bytes += json_dumpb(row, NULL, 0, JSON_COMPACT) + 1;
	page->count++;
	json_array_append_new(page->rows, row);
}

static void page_answer(struct api_request *request, struct page *page, const char *name, uint64_t cursor)
{
	char next[24];
	json_t *result = json_pack("{s:o}", name, page->rows);
	snprintf(next, sizeof next, "%" PRIu64, cursor);
	if (cursor != 0)
		json_object_set_new(result, "next", json_string(next));
	api_done(request, result);
}

static void bad_cursor(struct api_request *request)
{
	api_fail(request, API_ERROR_BAD_ARGUMENT, json_pack("{s:s}", "argument", "cursor"),
		"cursor: not one of ours");
}

// The walk is asked for few at a time, and never for more than the page still takes.
static uint32_t walk_ask(const struct page *page)
{
	uint32_t room = page->limit - page->count;
	return room < WALK_STEP ? room : WALK_STEP;
}

static void list_visit(struct dp_spot *spot, void *arg)
{
	struct page *page = arg;
	struct dp_spot_view v;
	page->looked_at++;
	dp_spot_view(spot, &v);
	if (page->kind != SPOT_KIND_INVALID && v.kind != page->kind)
		return;
	if (page->match.size > 0 && (v.id.size < page->match.size ||
					    memcmp(v.id.data, page->match.data, page->match.size) != 0))
		return;
	page_add(page, view_spot(page->request->api, spot));
}

static enum spot_kind kind_of(const char *name)
{
	for (int kind = SPOT_KIND_ENTRY; name != NULL && kind <= SPOT_KIND_INSTANCE; kind++) {
		if (strcmp(name, spot_kind_name((enum spot_kind)kind)) == 0)
			return (enum spot_kind)kind;
	}
	return SPOT_KIND_INVALID;
}

void op_spot_list(struct api_request *request)
{
	bool good;
	uint64_t cursor = cursor_of(request, &good);
	if (!good) {
		bad_cursor(request);
		return;
	}
	struct page page = {
		.request = request,
		.rows = json_array(),
		.limit = (uint32_t)arg_number(request, "limit", 100),
		.kind = kind_of(arg_text(request, "kind")),
		.match = arg_span(request, "match"),
	};
	do
		node_walk(request->api->options.node, &cursor, walk_ask(&page), list_visit, &page);
	while (cursor != 0 && !page_full(&page));
	page_answer(request, &page, "spots", cursor);
}

// ---- one Spot ----

// The empty span when the id is not one (T1); the request is ended then.
static struct span id_of(struct api_request *request)
{
	struct span id = arg_span(request, "id");
	if (id_is_valid(id))
		return id;
	api_fail(request, API_ERROR_BAD_ARGUMENT, json_pack("{s:s}", "argument", "id"),
		"id: 1 to 255 bytes of UTF-8 without NUL");
	return (struct span){0};
}

static void no_spot(struct api_request *request, struct span id)
{
	api_fail(request, API_ERROR_NOT_FOUND,
		json_pack("{s:o, s:o}", "id", view_text(id), "key", view_key(spot_key_of(id))),
		"no Spot of this id lives here");
}

void op_spot_show(struct api_request *request)
{
	struct span id = id_of(request);
	if (id.size == 0)
		return;
	struct dp_spot *spot = node_find(request->api->options.node, spot_key_of(id));
	if (spot == NULL)
		no_spot(request, id);
	else
		api_done(request, view_spot(request->api, spot));
}

static uint64_t deadline_of(const struct api_request *request)
{
	return view_now(request->api) + (uint64_t)arg_number(request, "budget_ms", 10000) * NS_PER_MS;
}

// Whose room was full (M5). NULL: nobody's, or memory is short.
static json_t *view_refusal(const struct refusal *refusal)
{
	json_t *json = refusal == NULL ? NULL : json_object();
	if (json == NULL)
		return NULL;
	view_set(json, "limit", refusal->limit);
	view_set(json, "current", refusal->current);
	view_set(json, "owner_node", refusal->owner_node);
	return json;
}

static void changed(void *arg, struct result result, const struct refusal *refusal,
	struct object_generation generation, bool change, struct spot_key key)
{
	struct api_request *request = arg;
	if (result.kind != RESULT_OK) {
		api_fail_result(request, result, view_refusal(refusal));
		return;
	}
	json_t *json = json_pack("{s:b, s:o}", "changed", change, "key", view_key(key));
	if (json != NULL)
		view_set(json, "object_generation", generation.value);
	api_done(request, json);
}

static void unknown_type(struct api_request *request, const char *name)
{
	const struct dp *dp = request->api->options.dp;
	json_t *types = json_array();
	for (uint32_t i = 0; i < dp_type_count(dp); i++)
		json_array_append_new(types, json_string(dp_type_name(dp_type_at(dp, i))));
	api_fail(request, API_ERROR_NOT_CONFIGURED, json_pack("{s:s, s:o}", "type", name, "types", types),
		"no module here has a Spot type \"%.64s\"", name);
}

void op_spot_create(struct api_request *request)
{
	struct span id = id_of(request);
	if (id.size == 0)
		return;
	const char *name = arg_text(request, "type");
	const struct dp_type *type = dp_type_by_name(request->api->options.dp, name);
	if (type == NULL) {
		unknown_type(request, name);
		return;
	}
	request->held = true;
	node_create_spot(request->api->options.node, id, dp_type_key(type), arg_span(request, "argument"),
		arg_yes(request, "existing_ok"), deadline_of(request), changed, request);
}

void op_spot_close(struct api_request *request)
{
	struct span id = id_of(request);
	if (id.size == 0)
		return;
	struct object_generation generation = {(uint64_t)arg_number(request, "generation", 0)};
	request->held = true;
	node_close_spot(request->api->options.node, id, generation, deadline_of(request), changed, request);
}

// ---- where ----

static json_t *view_row(const struct node_where *where)
{
	json_t *json = json_pack("{s:s}", "outcome", store_outcome_name(where->store_outcome));
	if (json == NULL || where->store_outcome != STORE_DONE)
		return json;
	json_object_set_new(json, "exists", json_boolean(where->store_exists));
	if (!where->store_exists)
		return json;
	const struct store_spot_row *row = &where->row;
	json_object_set_new(
		json, "state", json_string(row->state == STORE_SPOT_READY ? "ready" : "creating"));
	json_object_set_new(json, "kind", json_string(spot_kind_name(row->kind)));
	json_object_set_new(json, "type", json_string(row->type_name));
	json_object_set_new(json, "owner_node", json_string(row->owner_node));
	view_set(json, "owner_lease_generation", row->owner_lease.value);
	view_set(json, "object_generation", row->object_generation.value);
	view_set(json, "authority_generation", row->authority_generation.value);
	return json;
}

static json_t *view_cached(const struct node_where *where)
{
	const char *leads = where->remote_exists ? "another-node"
			    : where->route_exists ? "here"
						  : "nowhere";
	json_t *json = json_pack("{s:b, s:s}", "exists", where->route_exists, "leads", leads);
	if (json == NULL || !where->remote_exists)
		return json;
	view_set(json, "owner_node_key", where->remote_owner.value);
	view_set(json, "owner_lease_generation", where->remote_lease.value);
	view_set(json, "object_generation", where->remote_object_generation.value);
	view_set(json, "authority_generation", where->remote_authority_generation.value);
	json_object_set_new(json, "usable", json_boolean(where->remote_usable));
	json_object_set_new(json, "left_ms", json_integer(where->remote_left_ns / 1000000));
	return json;
}

static void where_done(void *arg, const struct node_where *where)
{
	struct api_request *request = arg;
	if (request->api == NULL) {
		api_done(request, NULL);
		return;
	}
	json_t *local = where->local == NULL ? json_pack("{s:b}", "exists", 0)
					     : view_spot(request->api, where->local);
	if (local != NULL && where->local != NULL)
		json_object_set_new(local, "exists", json_true());
	api_done(request, json_pack("{s:o, s:o, s:o}", "store", view_row(where), "route",
				  view_cached(where), "local", local));
}

void op_spot_where(struct api_request *request)
{
	struct span id = id_of(request);
	if (id.size == 0)
		return;
	request->held = true;
	node_where(request->api->options.node, spot_key_of(id), where_done, request);
}

// ---- routes ----

static json_t *view_route(const struct api *api, struct spot_key key, route_word word)
{
	struct dp_spot *spot = dp_spot_of_route(word);
	json_t *json = json_pack("{s:o, s:s}", "key", view_key(key), "to",
		route_tag(word) == ROUTE_LOCAL ? "local" : "remote");
	if (json == NULL || spot == NULL)
		return json;
	struct dp_spot_view v;
	dp_spot_view(spot, &v);
	json_object_set_new(json, "id", view_text(v.id));
	json_object_set_new(json, "node", json_string(api->options.config->node.id));
	json_object_set_new(json, "home_worker", json_integer(v.home_worker));
	view_set(json, "object_generation", v.object_generation.value);
	view_set(json, "authority_generation", v.authority_generation.value);
	return json;
}

void op_route_show(struct api_request *request)
{
	struct span id = id_of(request);
	if (id.size == 0)
		return;
	struct spot_key key = spot_key_of(id);
	route_word word = route_lookup(request->api->options.routes, key);
	if (word == ROUTE_NONE)
		api_fail(request, API_ERROR_NOT_FOUND,
			json_pack("{s:o, s:o}", "id", view_text(id), "key", view_key(key)),
			"no route for this id");
	else
		api_done(request, view_route(request->api, key, word));
}

static void route_visit(struct spot_key key, route_word word, void *arg)
{
	struct page *page = arg;
	page->looked_at++;
	page_add(page, view_route(page->request->api, key, word));
}

void op_route_list(struct api_request *request)
{
	bool good;
	uint64_t cursor = cursor_of(request, &good);
	if (!good) {
		bad_cursor(request);
		return;
	}
	struct page page = {
		.request = request,
		.rows = json_array(),
		.limit = (uint32_t)arg_number(request, "limit", 100),
	};
	do
		route_walk(request->api->options.routes, &cursor, walk_ask(&page), route_visit, &page);
	while (cursor != 0 && !page_full(&page));
	page_answer(request, &page, "routes", cursor);
}
