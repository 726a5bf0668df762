// SPDX-License-Identifier: BSD-3-Clause
#include "fake_node.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

struct fake fake;

static struct {
	node_done done;
	void *arg;
	struct spot_key key;
} held;

void fake_reset(uint32_t spots)
{
	memset(&fake, 0, sizeof fake);
	fake.spots = spots;
	fake.status.state = NODE_SERVING;
	fake.status.ready = true;
	fake.status.lease_left_ns = 9000000000;
	fake.status.boot_id[0] = 0xab;
	fake.result = result_ok();
	fake.audit.equal = true;
	fake.fence = (struct node_fence_report){
		.result = result_ok(), .changed = true, .rows_released = 12, .text = "fenced"};
	for (int i = 0; i < 3; i++) {
		struct store_node_row *row = &fake.nodes[i];
		*row = (struct store_node_row){.exists = true, .lease_generation = {4}, .beat = 17,
			.ttl_ms = 15000, .host_id = "h", .address = "10.0.0.1:7700"};
		snprintf(row->node_id, sizeof row->node_id, "n%d", i + 1);
		row->boot.bytes[0] = (uint8_t)(i != 2); // n3 has left
	}
	for (uint32_t i = 0; i < spots; i++)
		snprintf(fake.ids[i], sizeof fake.ids[i], "spot-%u", i);
}

// A Spot is its place in the table, from 1.
static uint32_t index_of(const struct dp_spot *spot)
{
	return (uint32_t)(uintptr_t)spot - 1;
}
static struct dp_spot *spot_at(uint32_t index)
{
	return (struct dp_spot *)(uintptr_t)(index + 1);
}
static struct span id_at(uint32_t index)
{
	return span_of(fake.ids[index], strlen(fake.ids[index]));
}

const char *node_state_name(enum node_state state)
{
	static const char *const names[] = {"", "preparing", "serving", "", "", "draining", "stopped", "error"};
	return names[state];
}
void node_status(const struct node *node, struct node_status *out)
{
	(void)node;
	*out = fake.status;
}

void node_health(const struct node *node, struct node_health *out)
{
	(void)node;
	*out = fake.health;
}
const char *node_ready_name(enum node_ready_part part)
{
	static const char *const names[] = {NULL, "state", "lease", "store", "workers", "close_backlog"};
	return names[part];
}

uint64_t node_type_spots(const struct node *node, const struct dp_type *type)
{
	(void)node, (void)type;
	return 3;
}
uint32_t dp_type_spots_max(const struct dp_type *type)
{
	(void)type;
	return 10;
}
void node_list(struct node *node, node_listing_done done, void *arg)
{
	(void)node;
	struct node_listing listing = {
		fake.list_outcome != 0 ? fake.list_outcome : STORE_DONE, fake.nodes, 3};
	done(arg, &listing);
}

const char *peer_standing_name(enum peer_standing standing)
{
	return standing == PEER_STILL ? "still" : "live";
}
uint32_t node_peers(const struct node *node, struct node_peer out[STORE_NODES_MAX], uint64_t *out_age_ns)
{
	(void)node;
	*out_age_ns = fake.peers > 0 ? 250000000 : UINT64_MAX;
	for (uint32_t i = 0; i < fake.peers; i++)
		out[i] = (struct node_peer){.row = fake.nodes[i],
			.standing = i == 1 ? PEER_STILL : PEER_LIVE,
			.still_ns = 16000000000,
			.needed_ns = 15150000000};
	return fake.peers;
}
void node_fence(struct node *node, struct span node_id, uint64_t deadline_boot_ns, node_fence_done done,
	void *arg)
{
	(void)node, (void)node_id, (void)deadline_boot_ns;
	fake.fences++;
	struct node_fence_report report = fake.fence;
	done(arg, &report);
}

static void change(struct spot_key key, node_done done, void *arg)
{
	held.done = done;
	held.arg = arg;
	held.key = key;
	if (!fake.hold)
		fake_release();
}
void fake_release(void)
{
	node_done done = held.done;
	held.done = NULL;
	fake.hold = false;
	CHECK(done != NULL);
	bool refused = fake.result.kind == RESULT_CAPACITY_EXCEEDED;
	done(held.arg, fake.result, refused ? &fake.refusal : NULL, (struct object_generation){7},
		fake.result.kind == RESULT_OK, held.key);
}
void node_create_spot(struct node *node, struct span id, struct type_key type, struct span argument,
	bool existing_ok, uint64_t deadline_boot_ns, node_done done, void *arg)
{
	(void)node, (void)type, (void)argument, (void)existing_ok, (void)deadline_boot_ns;
	fake.creates++;
	change(spot_key_of(id), done, arg);
}
void node_close_spot(struct node *node, struct span id, struct object_generation generation,
	uint64_t deadline_boot_ns, node_done done, void *arg)
{
	(void)node, (void)generation, (void)deadline_boot_ns;
	fake.closes++;
	change(spot_key_of(id), done, arg);
}
void node_where(struct node *node, struct spot_key key, node_where_done done, void *arg)
{
	struct node_where where = {.store_outcome = STORE_DONE};
	where.local = node_find(node, key);
	where.route_exists = where.store_exists = where.local != NULL;
	where.row = (struct store_spot_row){.exists = true, .kind = SPOT_KIND_INSTANCE,
		.state = STORE_SPOT_READY, .type_name = "counter", .owner_node = "n1"};
	done(arg, &where);
}
struct dp_spot *node_find(struct node *node, struct spot_key key)
{
	(void)node;
	for (uint32_t i = 0; i < fake.spots; i++) {
		if (spot_key_equal(spot_key_of(id_at(i)), key))
			return spot_at(i);
	}
	return NULL;
}
uint32_t node_walk(struct node *node, uint64_t *cursor, uint32_t max,
	void (*visit)(struct dp_spot *spot, void *arg), void *arg)
{
	uint32_t visited = 0;
	(void)node;
	for (; visited < max && *cursor < fake.spots; (*cursor)++, visited++)
		visit(spot_at((uint32_t)*cursor), arg);
	if (*cursor >= fake.spots)
		*cursor = 0;
	return visited;
}

void dp_spot_view(const struct dp_spot *spot, struct dp_spot_view *out)
{
	uint32_t i = index_of(spot);
	fake.walked++;
	*out = (struct dp_spot_view){
		.key = spot_key_of(id_at(i)),
		.id = id_at(i),
		.kind = i == 0 ? SPOT_KIND_ENTRY : SPOT_KIND_INSTANCE,
		.application = {.bytes = UINT64_C(100) * (fake.spots - i) * (fake.items[i] != 0), .count = fake.items[i]},
		.application_bounds = {64 << 20, 1024},
		.lifecycle_bounds = {4 << 20, 128},
		.object_generation = {i + 1},
	};
}
const struct dp_type *dp_type_by_name(const struct dp *dp, const char *name)
{
	(void)dp;
	return strcmp(name, "counter") == 0 ? (const struct dp_type *)(uintptr_t)8 : NULL;
}
const char *dp_type_name(const struct dp_type *type)
{
	(void)type;
	return "counter";
}
struct type_key dp_type_key(const struct dp_type *type)
{
	(void)type;
	return (struct type_key){5};
}
uint32_t dp_type_count(const struct dp *dp)
{
	(void)dp;
	return 1;
}
const struct dp_type *dp_type_at(const struct dp *dp, uint32_t index)
{
	(void)index;
	return dp_type_by_name(dp, "counter");
}
void dp_counters_read(const struct dp *dp, uint16_t worker, struct dp_counters *out)
{
	(void)dp;
	*out = fake.counters[worker];
}
uint64_t dp_worker_heartbeat(const struct dp *dp, uint16_t worker)
{
	(void)dp, (void)worker;
	return 1000;
}
bool dp_worker_running(const struct dp *dp, uint16_t worker, struct spot_key *out_key, uint64_t *out_since)
{
	(void)dp;
	*out_key = spot_key_of(span_of("x", 1));
	*out_since = 500;
	return worker == 1;
}
bool dp_pressure(const struct dp *dp)
{
	(void)dp;
	return false;
}
uint64_t dp_process_bytes(const struct dp *dp)
{
	(void)dp;
	return 4096;
}
enum dp_status dp_audit_begin(struct dp *dp)
{
	(void)dp;
	return fake.audit_busy-- > 0 ? DP_BUSY : DP_DONE;
}
bool dp_audit_poll(struct dp *dp, struct dp_audit *out)
{
	(void)dp;
	*out = fake.audit;
	return true;
}
struct dp_spot *dp_spot_of_route(route_word word)
{
	return word == ROUTE_NONE ? NULL : spot_at((uint32_t)(word >> 2) - 1);
}
static route_word word_at(uint32_t index)
{
	return ((route_word)(index + 1) << 2) | ROUTE_LOCAL;
}
route_word route_lookup(const struct route_table *table, struct spot_key key)
{
	(void)table;
	struct dp_spot *spot = node_find(NULL, key);
	return spot == NULL ? ROUTE_NONE : word_at(index_of(spot));
}
uint32_t route_walk(struct route_table *table, uint64_t *cursor, uint32_t max,
	void (*visit)(struct spot_key key, route_word word, void *arg), void *arg)
{
	uint32_t visited = 0;
	(void)table;
	for (; visited < max && *cursor < fake.spots; (*cursor)++, visited++)
		visit(spot_key_of(id_at((uint32_t)*cursor)), word_at((uint32_t)*cursor), arg);
	if (*cursor >= fake.spots)
		*cursor = 0;
	return visited;
}
