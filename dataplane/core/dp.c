// SPDX-License-Identifier: BSD-3-Clause
// The data plane as a whole: made, observed, ended. Worker parts are in the files of their stage.
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/control_call.h"
#include "core/core.h"
#include "core/timer.h"

// Module calls name their node by its number here: several nodes may live in one process (simulation).
_Atomic(struct dp *) dp_registry[DP_NODES_MAX];

static bool registry_take(struct dp *dp)
{
	for (uint16_t i = 0; i < DP_NODES_MAX; i++) {
		struct dp *none = NULL;
		dp->number = i;
		if (atomic_compare_exchange_strong(&dp_registry[i], &none, dp))
			return true;
	}
	return false;
}

// ---- configuration ----
static const char *fault_of_lanes(const struct dp_config *c)
{
	if (!lane_bounds_valid(c->application) || !lane_bounds_valid(c->lifecycle))
		return "a lane needs both bounds, within 2^22 items and 2^40 bytes";
	uint32_t largest = ledger_charge_of(
		c->accounting, sizeof(struct item) + c->message_bytes_max, c->message_bytes_max);
	if (largest > c->application.bytes_max)
		return "the largest message does not fit the application lane's bytes";
	if (largest > c->peer_reassembly_bytes_max)
		return "the largest message does not fit a peer's reassembly budget";
	if (largest > c->process_mark_bytes / 4)
		return "the largest message is more than a quarter of the process mark";
	return NULL;
}

static const char *fault_of(const struct dp_config *c)
{
	if (c->workers == 0 || c->workers > DP_WORKERS_MAX)
		return "workers: 1 to 64";
	if (c->clock == NULL || c->routes == NULL || c->clock->ticks_hz == 0)
		return "clock and route table are needed";
	if (c->message_bytes_max == 0 || c->message_bytes_max > WIRE_MESSAGE_BYTES_MAX)
		return "message_bytes_max: 1 to 16 MiB";
	if (c->parked_messages_max == 0 || c->resolves_in_flight_max == 0 || c->sessions_max == 0)
		return "parked messages, resolves in flight and sessions need a bound above 0";
	if (c->turn_budget_us == 0 || c->default_budget_ms == 0 || c->reassembly_expiry_ms == 0)
		return "turn budget, default budget and reassembly expiry are above 0";
	return fault_of_lanes(c);
}

// ---- workers ----
static uint32_t share(uint32_t all, uint16_t workers)
{
	return all / workers > 0 ? all / workers : 1;
}

static uint64_t reassembly_bytes_max(const struct dp_config *c)
{
	uint64_t quarter = c->process_mark_bytes / 4 / c->workers;
	uint64_t largest = ledger_size_class(
		sizeof(struct item) + (size_t)c->message_bytes_max + SEG_COUNT_MAX / 8 + 1024);
	return quarter > largest ? quarter : largest;
}

// The id of the session under which a worker sends, from the boot-time key: unlike any other node's.
static uint64_t session_id_of(const struct dp *dp, const struct dp_worker *w)
{
	struct peer nobody = {.port = (uint16_t)(w->index + 1), .ip = "spotlane worker"};
	return session_cookie(&w->sessions, &nobody, UINT64_MAX) ^ dp->config.node.value;
}

static bool worker_tables(struct dp *dp, struct dp_worker *w)
{
	const struct dp_config *c = &dp->config;
	uint16_t n = c->workers;
	w->arena = item_arena_create(w->index);
	w->cross = mem_zalloc(n * sizeof(w->cross[0]));
	w->cross_in = mem_zalloc(n * sizeof(w->cross_in[0]));
	w->cross_out_rings = mem_zalloc(n * sizeof(w->cross_out_rings[0]));
	return w->arena != NULL && w->cross != NULL && w->cross_in != NULL &&
		w->cross_out_rings != NULL && control_calls_init(w) && call_table_init(&w->calls) &&
		fact_port_init(&w->facts) && timer_wheel_init(w) &&
		held_init(&w->held, c->held_replies_bytes) &&
		session_table_init(&w->sessions, c->sessions_max, c->cookie_key) &&
		park_table_init(&w->park, share(c->resolves_in_flight_max, n),
			share(c->parked_messages_max, n)) &&
		reassembly_table_init(&w->reassembly, reassembly_bytes_max(c));
}

static struct dp_worker *worker_create(struct dp *dp, uint16_t index)
{
	struct dp_worker *w = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*w));
	if (w == NULL)
		return NULL;
	dp->workers[index] = w;
	w->dp = dp;
	w->index = index;
	w->sole = dp->config.workers == 1;
	w->clock = dp->config.clock;
	w->tick_ns_q32 =
		(uint64_t)(((__uint128_t)1000000000u << 32) / dp->config.clock->ticks_hz);
	w->pass_ticks = (uint64_t)((__uint128_t)dp->config.turn_budget_us *
		dp->config.clock->ticks_hz / 1000000u);
	w->now_ns = clock_boot_ns(w->clock);
	w->now_ticks = w->last_ticks = clock_ticks(w->clock);
	ledger_shard_init(&w->shard, &dp->process);
	if (!worker_tables(dp, w))
		return NULL;
	w->session_id = session_id_of(dp, w);
	return w;
}

static bool connect_workers(struct dp *dp)
{
	for (uint16_t from = 0; from < dp->config.workers; from++)
		for (uint16_t to = 0; to < dp->config.workers; to++) {
			if (from == to)
				continue;
			struct ring *ring = ring_create(CROSS_RING);
			dp->workers[from]->cross_out_rings[to] = ring;
			dp->workers[to]->cross_in[from] = ring;
			if (ring == NULL)
				return false;
		}
	return true;
}

struct dp *dp_create(const struct dp_config *config, const char **out_why)
{
	*out_why = fault_of(config);
	if (*out_why != NULL)
		return NULL;
	*out_why = "memory is short";
	struct dp *dp = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*dp));
	if (dp == NULL)
		return NULL;
	dp->config = *config;
	dp->wake_fd = -1;
	dp->default_budget_ns = (uint64_t)config->default_budget_ms * 1000000;
	dp->mark_pause = config->process_mark_bytes / 10 * 8;
	dp->mark_resume = config->process_mark_bytes / 10 * 6;
	ledger_process_init(&dp->process, config->process_mark_bytes);
	atomic_init(&dp->admit_refusal, RESULT_UNAVAILABLE);
	reply_route_key(config->cookie_key, dp->route_key);
	bool made = true;
	for (uint16_t i = 0; i < config->workers && made; i++)
		made = worker_create(dp, i) != NULL;
	if (!made || !connect_workers(dp) || !registry_take(dp)) {
		dp_destroy(dp);
		return NULL;
	}
	*out_why = NULL;
	return dp;
}

// What is still under way when the node ends: memory goes back where it belongs.
static void drain_head(struct dp *dp, struct item_head *head)
{
	if (((struct node_head *)(void *)head)->kind != ITEM_COMMAND) {
		item_give_back(dp->workers[head->owner]->arena, head, head);
		return;
	}
	struct command *command = (struct command *)(void *)head;
	if (command->first != NULL) // an opening carries the first message
		drain_head(dp, &command->first->head);
	mem_free(command);
}

static void drain_cross(struct dp_worker *w)
{
	for (uint16_t from = 0; w->cross_in != NULL && from < w->dp->config.workers; from++) {
		void *p;
		while (w->cross_in[from] != NULL && ring_pop(w->cross_in[from], &p, 1) == 1)
			drain_head(w->dp, p);
	}
}

static void drain_out(struct dp_worker *w)
{
	for (uint16_t to = 0; w->cross != NULL && to < w->dp->config.workers; to++) {
		struct cross_out *out = &w->cross[to];
		struct item_head *head;
		while ((head = lane_list_pop(&out->list)) != NULL)
			drain_head(w->dp, head);
		if (out->foreign_head != NULL)
			item_give_back(w->dp->workers[to]->arena, out->foreign_head,
				out->foreign_tail);
		out->foreign_head = NULL;
	}
}

static void worker_drain(struct dp_worker *w)
{
	struct item_head *head;
	egress_detach(w);
	while ((head = lane_list_pop(&w->offload_inline)) != NULL)
		drain_head(w->dp, head);
	drain_cross(w);
	segment_out_fini(w);
	reassembly_table_fini(w);
	park_table_fini(w);
	timer_wheel_fini(w);
	drain_out(w);
}

static void worker_destroy(struct dp_worker *w)
{
	uint16_t n = w->dp->config.workers;
	for (uint16_t to = 0; w->cross_out_rings != NULL && to < n; to++)
		ring_destroy(w->cross_out_rings[to]);
	for (uint16_t i = 0; i < w->queue_count; i++)
		mem_free(w->queues[i]);
	fact_port_fini(&w->facts);
	session_table_fini(&w->sessions);
	held_fini(&w->held);
	call_table_fini(&w->calls);
	mem_free(w->control_calls.slots);
	mem_free(w->cross);
	mem_free(w->cross_in);
	mem_free(w->cross_out_rings);
	item_arena_destroy(w->arena);
	mem_free(w);
}

void dp_destroy(struct dp *dp)
{
	if (dp == NULL)
		return;
	if (dp_by_number(dp->number) == dp)
		atomic_store(&dp_registry[dp->number], NULL);
	for (uint16_t i = 0; i < dp->config.workers; i++)
		if (dp->workers[i] != NULL)
			worker_drain(dp->workers[i]);
	for (uint16_t i = 0; i < dp->config.workers; i++)
		if (dp->workers[i] != NULL)
			worker_destroy(dp->workers[i]);
	mem_free(atomic_load_explicit(&dp->peers, memory_order_relaxed));
	for (uint32_t i = 0; i < dp->type_count; i++)
		mem_free(dp->types[i]);
	mem_free(dp);
}

// ---- what control sets ----
struct dp_lease *dp_lease(struct dp *dp)
{
	return &dp->lease;
}

void dp_admit_set(struct dp *dp, bool admit, enum result_kind refuse_with)
{
	atomic_store_explicit(
		&dp->admit_refusal, admit ? 0 : (uint32_t)refuse_with, memory_order_relaxed);
}

// ---- observation ----
void dp_counters_read(const struct dp *dp, uint16_t worker, struct dp_counters *out)
{
	const uint64_t *from = (const uint64_t *)&dp->workers[worker]->counters;
	uint64_t *to = (uint64_t *)out;
	for (size_t i = 0; i < sizeof(*out) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

uint64_t dp_worker_heartbeat(const struct dp *dp, uint16_t worker)
{
	return atomic_load_explicit(&dp->workers[worker]->heartbeat_boot_ns, memory_order_relaxed);
}

bool dp_worker_running(
	const struct dp *dp, uint16_t worker, struct spot_key *out_key, uint64_t *out_since_boot_ns)
{
	const struct dp_worker *w = dp->workers[worker];
	uint64_t since = atomic_load_explicit(&w->running_since_boot_ns, memory_order_acquire);
	if (since == 0)
		return false;
	out_key->lo = atomic_load_explicit(&w->running_key_lo, memory_order_relaxed);
	out_key->hi = atomic_load_explicit(&w->running_key_hi, memory_order_relaxed);
	*out_since_boot_ns = since;
	return true;
}

bool dp_pressure(const struct dp *dp)
{
	return dp->workers[0]->pressure;
}

uint64_t dp_process_bytes(const struct dp *dp)
{
	uint64_t sum = 0;
	for (uint16_t i = 0; i < dp->config.workers; i++)
		sum += atomic_load_explicit(
			&dp->workers[i]->shard.charged_bytes, memory_order_relaxed);
	return sum;
}
