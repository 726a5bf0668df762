// SPDX-License-Identifier: BSD-3-Clause
#include "core/forward.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"

// ---- who takes part ----
static void free_set(struct publish_deferred *deferred)
{
	mem_free(container_of(deferred, struct peer_set, deferred));
}

enum dp_status dp_peers_set(struct dp *dp, struct dp_peer *const *peers, uint32_t count)
{
	CHECK(count <= DP_PEERS_MAX);
	struct peer_set *set = mem_zalloc(sizeof(*set) + count * sizeof(set->peers[0]));
	if (set == NULL)
		return DP_NO_MEMORY;
	set->count = count;
	if (count > 0)
		memcpy(set->peers, peers, count * sizeof(peers[0]));
	// Pairs with the workers' acquire: who sees the set sees the peers.
	struct peer_set *old = atomic_exchange_explicit(&dp->peers, set, memory_order_acq_rel);
	if (old != NULL)
		publish_defer(&old->deferred, free_set);
	return DP_DONE;
}

bool forward_is_peer(const struct dp_worker *w, const struct peer *peer)
{
	const struct peer_set *set = atomic_load_explicit(&w->dp->peers, memory_order_acquire);
	for (uint32_t i = 0; set != NULL && i < set->count; i++)
		if (set->peers[i]->port == peer->port &&
			memcmp(set->peers[i]->ip, peer->ip, sizeof(peer->ip)) == 0)
			return true;
	return false;
}

int forward_worker_of(const struct dp *dp, uint64_t session)
{
	for (uint16_t i = 0; i < dp->config.workers; i++)
		if (dp->workers[i]->session_id == session)
			return i;
	return -1;
}

// ---- out, at the node that received the message ----
static struct envelope *envelope_of(struct offer *offer)
{
	return offer->item != NULL ? &offer->item->env : &offer->env;
}

static struct peer address_of(const struct dp_remote *remote)
{
	struct peer to = {.port = remote->owner->port, .fabric = remote->owner->fabric};
	memcpy(to.ip, remote->owner->ip, sizeof(to.ip));
	return to;
}

static uint32_t budget_us(const struct dp_worker *w, const struct envelope *env)
{
	uint64_t left = (env->deadline_boot_ns - w->now_ns) / 1000;
	return left == 0 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static void seal(
	const struct dp_worker *w, const struct envelope *env, uint8_t out[WIRE_ROUTE_BYTES])
{
	struct reply_route route = {
		.reply = env->reply, .expires_boot_ns = env->deadline_boot_ns};
	reply_route_seal(w->dp->route_key, env->key, &route, out);
}

static void header_of(struct dp_worker *w, const struct envelope *env,
	const struct dp_remote *remote, struct wire_header *h)
{
	bool wanted = reply_is_wanted(env->reply.kind);
	memset(h, 0, sizeof(*h));
	h->version = WIRE_VERSION;
	h->suite_phase = WIRE_SUITE_NONE << 1;
	h->family = wanted ? WIRE_FORWARD_REQUEST : WIRE_FORWARD_SEND;
	h->flags = wanted && env->reply.explain ? WIRE_FLAG_EXPLAIN : 0;
	h->id_bytes = WIRE_ROUTE_BYTES;
	h->session = w->session_id;
	h->counter = ++w->session_counter;
	h->spot_key_lo = env->key.lo;
	h->spot_key_hi = env->key.hi;
	h->operation_scope = w->session_id;
	h->operation_id = ++w->forward_serial;
	h->owner_node = remote->owner->node.value;
	h->owner_lease = remote->owner->lease.value;
	h->spot_type = env->spot_type.value;
	h->message_type = env->message_type;
	h->content_type = env->content;
	h->budget_us = budget_us(w, env);
	h->total_bytes = env->payload_bytes;
}

static void end_offer(struct dp_worker *w, struct offer *offer)
{
	struct envelope *env = envelope_of(offer);
	COUNT(w, messages_forwarded);
	if (env->process_bytes > 0)
		ledger_release(&w->shard, env->process_bytes);
	env->process_bytes = 0;
	if (offer->frame != NULL)
		egress_drop(offer->queue, offer->frame);
	if (offer->item != NULL)
		item_end(w, &offer->item->head);
}

static bool send_in_frame(struct dp_worker *w, struct worker_queue *q, const struct envelope *env,
	const struct dp_remote *remote)
{
	struct frame frame;
	struct wire_header h;
	if (!egress_fresh(q, &frame))
		return false;
	header_of(w, env, remote, &h);
	h.segment_bytes = (uint16_t)env->payload_bytes;
	memcpy(frame.data, &h, sizeof(h));
	seal(w, env, frame.data + WIRE_HEADER_BYTES);
	if (env->payload_bytes > 0)
		memcpy(frame.data + WIRE_HEADER_BYTES + WIRE_ROUTE_BYTES, env->payload,
			env->payload_bytes);
	frame.bytes = WIRE_HEADER_BYTES + WIRE_ROUTE_BYTES + env->payload_bytes;
	frame.peer = address_of(remote);
	frame.received = false;
	egress_frame(q, &frame);
	return true;
}

// A message larger than a frame: a copy with the route in front goes out as segments.
static bool send_in_segments(
	struct dp_worker *w, const struct envelope *env, const struct dp_remote *remote)
{
	struct wire_header h;
	struct item *item = item_new(w, ITEM_REPLY, WIRE_ROUTE_BYTES + (size_t)env->payload_bytes);
	if (item == NULL)
		return false;
	header_of(w, env, remote, &h);
	item->env = *env;
	item->env.spot = NULL;
	item->env.explain = NULL;
	item->env.charge_bytes = item->env.process_bytes = 0;
	item->env.id_bytes = WIRE_ROUTE_BYTES;
	item->env.payload = item->payload + WIRE_ROUTE_BYTES;
	item->env.reply.peer = address_of(remote);
	item->env.reply.scope = h.operation_scope;
	item->env.reply.operation_id = h.operation_id;
	seal(w, env, item->payload);
	memcpy(item->payload + WIRE_ROUTE_BYTES, env->payload, env->payload_bytes);
	return segment_out_send(w, item, &h);
}

enum delivered forward_offer(struct dp_worker *w, struct offer *offer, struct dp_remote *remote)
{
	struct envelope *env = envelope_of(offer);
	struct worker_queue *q = egress_queue(w, remote->owner->fabric);
	if (env->deadline_boot_ns <= w->now_ns)
		return deliver_refuse(
			w, offer, result_refused(RESULT_DEADLINE_EXCEEDED, REASON_NONE), NULL);
	if (q == NULL)
		return deliver_refuse(
			w, offer, result_refused(RESULT_UNAVAILABLE, REASON_OWNER_UNUSABLE), NULL);
	uint32_t front = WIRE_HEADER_BYTES + WIRE_ROUTE_BYTES;
	bool sent = front + env->payload_bytes <= q->payload_bytes_max
			    ? send_in_frame(w, q, env, remote)
			    : send_in_segments(w, env, remote);
	if (!sent) {
		struct refusal r = deliver_node_refusal(
			w, SEGMENT_OUT_BYTES_MAX, w->segment_out.bytes);
		return deliver_refuse(
			w, offer, result_refused(RESULT_CAPACITY_EXCEEDED, REASON_REASSEMBLY), &r);
	}
	end_offer(w, offer);
	return DELIVER_FORWARDED;
}

// ---- back ----
// R2: at once for this key, whoever looks; control reads again when the next message asks.
static void drop_route(struct dp_worker *w, struct spot_key key, const struct peer *from)
{
	struct dp_remote *remote = dp_remote_of_route(route_lookup(w->dp->config.routes, key));
	if (remote == NULL || remote->owner->port != from->port ||
		memcmp(remote->owner->ip, from->ip, sizeof(from->ip)) != 0)
		return;
	COUNT(w, routes_stale);
	atomic_store_explicit(&remote->stale, 1, memory_order_relaxed);
}

// M5: room that is full on another node is not the caller's node's.
static struct result seen_from_here(struct result result)
{
	bool room = result.kind == RESULT_CAPACITY_EXCEEDED && result.accepted == ACCEPTED_NO;
	// Scheduler queue, worker queue, batch: capacity of the way there, the same everywhere.
	bool of_the_way = result.reason >= REASON_SCHEDULER_QUEUE &&
		result.reason < REASON_ACTIVATION_CEILING;
	if (room && !of_the_way)
		result.kind = RESULT_UNAVAILABLE;
	return result;
}

struct back { // a result on its way back
	struct spot_key key;
	const struct peer *from;
	const uint8_t *sealed;
	struct result result;
	struct span body;
	uint16_t content;
	uint16_t message_type;
	uint8_t flags;
};

static void give_back(struct dp_worker *w, const struct back *b)
{
	struct reply_route route;
	struct envelope env = {.key = b->key, .message_type = b->message_type};
	if (!reply_route_open(w->dp->route_key, b->key, b->sealed, &route)) {
		COUNT(w, routes_forged);
		return;
	}
	if (b->result.kind == RESULT_STALE_ROUTE && b->result.accepted == ACCEPTED_NO)
		drop_route(w, b->key, b->from);
	if (route.expires_boot_ns <= w->now_ns)
		return; // the caller has its result
	env.reply = route.reply;
	env.deadline_boot_ns = route.expires_boot_ns;
	struct result result = seen_from_here(b->result);
	if (route.reply.kind == REPLY_CALL)
		(void)call_send_answer(w, &env, result, b->content, b->body);
	else if (route.reply.kind == REPLY_CLIENT)
		egress_pass(w, &env, result, b->content, b->flags & WIRE_FLAG_EXPLAIN, b->body);
}

void forward_reply_frame(
	struct dp_worker *w, const struct peer *from, const struct wire_frame *frame)
{
	struct back b = {.key = wire_frame_key(frame),
		.from = from,
		.sealed = frame->id.data,
		.result = {frame->h.kind, frame->h.reason, frame->h.accepted},
		.body = frame->segment,
		.content = frame->h.content_type,
		.message_type = frame->h.message_type,
		.flags = frame->h.flags};
	segment_out_answered(w, frame->h.operation_scope, frame->h.operation_id);
	give_back(w, &b);
}

void forward_reply_item(struct dp_worker *w, struct item *item)
{
	const struct envelope *env = &item->env;
	struct back b = {.key = env->key,
		.from = &env->reply.peer,
		.sealed = env->payload - env->id_bytes,
		.result = item_result(item),
		.body = span_of(env->payload, env->payload_bytes),
		.content = env->content,
		.message_type = env->message_type,
		.flags = env->reply.explain ? WIRE_FLAG_EXPLAIN : 0};
	CHECK(env->id_bytes == WIRE_ROUTE_BYTES);
	give_back(w, &b);
	deliver_item_end(w, item);
}

// ---- notices, at the node that is not the owner ----
static uint64_t mixed(const struct peer *peer)
{
	uint64_t half[2];
	memcpy(half, peer->ip, sizeof(half));
	return (half[0] ^ half[1] * UINT64_C(0x9e3779b97f4a7c15)) + peer->port;
}

static bool told_lately(struct dp_worker *w, const struct envelope *env)
{
	uint64_t peer = mixed(&env->reply.peer);
	struct forward_notice *n =
		&w->notices[(env->key.lo ^ peer ^ peer >> 32) % FORWARD_NOTICES];
	if (n->peer == peer && spot_key_equal(n->key, env->key) && w->now_ns < n->next_ns)
		return true;
	*n = (struct forward_notice){env->key, peer, w->now_ns + FORWARD_NOTICE_NS};
	return false;
}

void forward_notice(struct dp_worker *w, const struct envelope *env, struct result result)
{
	bool stale = result.kind == RESULT_STALE_ROUTE && result.accepted == ACCEPTED_NO;
	if (!stale || told_lately(w, env))
		return;
	COUNT(w, notices);
	egress_pass(w, env, result, WIRE_CONTENT_BYTES, 0, span_of(NULL, 0));
}
