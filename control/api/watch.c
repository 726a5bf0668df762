// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "wire/wire.h"

// Events to clients that watch. A client that reads slowly misses events, is told how many, and
// never delays the node: what waits for it is bounded by half of its write queue.

struct api_watch {
	struct api_watch *next, **link;
	struct api *api;
	struct api_request *request; // NULL: ended, the timer is being closed
	uint64_t missed;
	uv_timer_t timer; // compares counters, with `drops`
	bool first;
	struct dp_counters before;
	json_t *fabrics_before; // name -> losses by name
};

static bool has_room(const struct api_watch *watch)
{
	const struct api_conn *conn = watch->request->conn;
	return conn_queued(conn) < conn->api->options.limits.queue_bytes_max / 2;
}

// False: the watch is gone.
static bool tell_missed(struct api_watch *watch)
{
	if (watch->missed == 0)
		return true;
	json_t *event = json_pack("{s:s}", "kind", "missed");
	view_set(event, "missed", watch->missed);
	watch->missed = 0;
	return api_part(watch->request, "event", event);
}

// Takes over the event.
static void send_event(struct api_watch *watch, json_t *event)
{
	if (!has_room(watch)) {
		watch->missed++;
		watch->api->meter.events_missed++;
		json_decref(event);
		return;
	}
	if (tell_missed(watch))
		api_part(watch->request, "event", event);
	else
		json_decref(event);
}

void watch_flush(struct api_conn *conn)
{
	for (struct api_watch *w = conn->api->watches; w != NULL; w = w->next) {
		if (w->request->conn != conn || w->missed == 0 || conn_queued(conn) != 0)
			continue;
		tell_missed(w);
		return; // a write may have ended the connection and with it the list's order
	}
}

void api_event(struct api *api, const struct node_event *event)
{
	struct api_watch *next;
	if (api->watches == NULL)
		return;
	json_t *json = view_event(event);
	for (struct api_watch *w = api->watches; w != NULL && json != NULL; w = next) {
		next = w->next; // of another connection: sending may end this one
		send_event(w, json_incref(json));
	}
	json_decref(json);
}

// ---- drops ----

static void add_change(json_t *changes, const char *group, const char *name, uint64_t before, uint64_t now)
{
	if (name == NULL || now == before)
		return;
	json_t *change = json_pack("{s:s, s:s}", "group", group, "reason", name);
	view_set(change, "more", now - before);
	view_set(change, "total", now);
	json_array_append_new(changes, change);
}

static void compare_counters(json_t *changes, const struct dp_counters *b, const struct dp_counters *n)
{
	for (size_t i = 1; i < ARRAY_COUNT(n->refusals); i++)
		add_change(changes, "refusal", result_reason_name((uint8_t)i), b->refusals[i], n->refusals[i]);
	for (size_t i = 1; i < ARRAY_COUNT(n->rejects); i++)
		add_change(changes, "reject", wire_reject_name((enum wire_reject)i), b->rejects[i],
			n->rejects[i]);
	for (size_t i = 1; i < ARRAY_COUNT(n->drops); i++)
		add_change(changes, "drop", result_kind_name((uint8_t)i), b->drops[i], n->drops[i]);
#define DROP(name) add_change(changes, "drop", #name, b->name, n->name)
	DROP(frames_repeated);
	DROP(frames_session_refused);
	DROP(sends_refused);
	DROP(reassemblies_expired);
	DROP(facts_full);
#undef DROP
}

static void emit_loss(void *to, const char *name, uint64_t value)
{
	static const char *const traffic[] = {"rx_frames", "rx_bytes", "tx_frames", "tx_bytes", "rx_other"};
	json_t *object = to;
	for (size_t i = 0; i < ARRAY_COUNT(traffic); i++) {
		if (strcmp(name, traffic[i]) == 0)
			return;
	}
	view_set(object, name, (uint64_t)json_integer_value(json_object_get(object, name)) + value);
}

static json_t *fabric_losses(const struct api *api)
{
	const struct api_host *host = api->options.host;
	json_t *all = json_object();
	for (uint32_t i = 0; i < host->fabrics && host->fabric_stats != NULL && host->fabric != NULL; i++) {
		struct api_fabric fabric = {0};
		json_t *losses = json_object();
		host->fabric(host->arg, i, &fabric);
		for (uint16_t w = 0; w < host->workers; w++)
			host->fabric_stats(host->arg, i, w, emit_loss, losses);
		json_object_set_new(all, fabric.name != NULL ? fabric.name : "", losses);
	}
	return all;
}

static void compare_fabrics(json_t *changes, json_t *before, json_t *now)
{
	const char *fabric, *name;
	json_t *losses, *value;
	json_object_foreach(now, fabric, losses) {
		json_t *then = json_object_get(before, fabric);
		json_object_foreach(losses, name, value) {
			add_change(changes, fabric, name,
				(uint64_t)json_integer_value(json_object_get(then, name)),
				(uint64_t)json_integer_value(value));
		}
	}
}

static void on_interval(uv_timer_t *timer)
{
	struct api_watch *watch = timer->data;
	const struct api *api = watch->api;
	struct dp_counters now = {0}, c;
	for (uint16_t w = 0; w < api->options.host->workers; w++) {
		dp_counters_read(api->options.dp, w, &c);
		stats_add(&now, &c);
	}
	json_t *changes = json_array();
	json_t *fabrics = fabric_losses(api);
	if (!watch->first) {
		compare_counters(changes, &watch->before, &now);
		compare_fabrics(changes, watch->fabrics_before, fabrics);
	}
	watch->first = false;
	watch->before = now;
	json_decref(watch->fabrics_before);
	watch->fabrics_before = fabrics;
	if (json_array_size(changes) == 0) {
		json_decref(changes);
		return;
	}
	send_event(watch, json_pack("{s:s, s:o}", "kind", "drops", "changes", changes));
}

// ---- begin and end ----

static void watch_closed(uv_handle_t *timer)
{
	struct api_watch *watch = timer->data;
	struct api *api = watch->api;
	json_decref(watch->fabrics_before);
	mem_free(watch);
	api_handle_closed(api);
}

void watch_end(struct api_request *request)
{
	struct api_watch *watch = request->watch;
	request->watch = NULL;
	watch->request = NULL;
	*watch->link = watch->next;
	if (watch->next != NULL)
		watch->next->link = watch->link;
	uv_close((uv_handle_t *)&watch->timer, watch_closed);
}

void op_watch(struct api_request *request)
{
	struct api *api = request->api;
	for (struct api_watch *w = api->watches; w != NULL; w = w->next) {
		if (w->request->conn == request->conn) {
			api_fail(request, API_ERROR_TOO_MANY_REQUESTS, NULL, "this connection watches already");
			return;
		}
	}
	struct api_watch *watch = mem_zalloc(sizeof *watch);
	if (watch == NULL) {
		api_done(request, NULL);
		return;
	}
	watch->api = api;
	watch->request = request;
	watch->first = true;
	uv_timer_init(api->options.uv, &watch->timer);
	watch->timer.data = watch;
	api->handles++;
	watch->next = api->watches;
	watch->link = &api->watches;
	if (api->watches != NULL)
		api->watches->link = &watch->next;
	api->watches = watch;
	request->watch = watch;
	if (arg_yes(request, "drops"))
		uv_timer_start(&watch->timer, on_interval, 0, (uint64_t)arg_number(request, "interval_ms", 1000));
	json_t *event = json_pack("{s:s}", "kind", "watching");
	view_set(event, "boot_ns", view_now(api));
	send_event(watch, event);
}
