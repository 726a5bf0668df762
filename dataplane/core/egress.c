// SPDX-License-Identifier: BSD-3-Clause
#include "core/egress.h"

#include <string.h>

#include "base/check.h"
#include "core/copy.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/explain.h"
#include "core/held.h"

struct worker_queue *egress_queue(struct dp_worker *w, uint8_t fabric)
{
	for (uint16_t i = 0; i < w->queue_count; i++)
		if (fabric_base(w->queues[i]->queue)->fabric == fabric)
			return w->queues[i];
	return NULL;
}

void egress_flush_tx(struct worker_queue *q)
{
	if (q->tx_count > 0) {
		if (q->held != NULL)
			held_put_burst(q->held, q->tx, q->tx_count);
		q->ops->tx(q->queue, q->tx, q->tx_count);
	}
	q->tx_count = 0;
}

static void flush_dead(struct worker_queue *q)
{
	if (q->dead_count > 0)
		q->ops->release(q->queue, q->dead, q->dead_count);
	q->dead_count = 0;
}

void egress_drop(struct worker_queue *q, struct frame *frame)
{
	q->dead[q->dead_count++] = *frame;
	if (q->dead_count == FABRIC_BURST_MAX)
		flush_dead(q);
}

bool egress_fresh(struct worker_queue *q, struct frame *out)
{
	if (q->stash_count == 0)
		q->stash_count = q->ops->alloc(q->queue, q->stash, FABRIC_BURST_MAX);
	if (UNLIKELY(q->stash_count == 0))
		return false;
	*out = q->stash[--q->stash_count];
	return true;
}

void egress_flush(struct dp_worker *w)
{
	for (uint16_t i = 0; i < w->queue_count; i++) {
		egress_flush_tx(w->queues[i]);
		flush_dead(w->queues[i]);
	}
}

void egress_detach(struct dp_worker *w)
{
	egress_flush(w);
	for (uint16_t i = 0; i < w->queue_count; i++) {
		struct worker_queue *q = w->queues[i];
		if (q->stash_count > 0)
			q->ops->release(q->queue, q->stash, q->stash_count);
		q->stash_count = 0;
	}
}

void egress_header(struct dp_worker *w, const struct envelope *env, struct result result,
	uint8_t family, struct wire_header *out)
{
	memset(out, 0, sizeof(*out));
	out->version = WIRE_VERSION;
	out->suite_phase = WIRE_SUITE_NONE << 1;
	out->family = family;
	out->flags = w->pressure ? WIRE_FLAG_PRESSURE : 0;
	out->kind = result.kind;
	out->reason = result.reason;
	out->accepted = result.accepted;
	out->session = w->session_id;
	out->counter = ++w->session_counter;
	out->spot_key_lo = env->key.lo;
	out->spot_key_hi = env->key.hi;
	out->operation_scope = env->reply.scope;
	out->operation_id = env->reply.operation_id;
	out->message_type = env->message_type;
	out->ingress_worker = env->reply.ingress_worker;
	out->home_worker = (uint8_t)w->index;
}

struct span egress_front(const struct envelope *env)
{
	bool node = env->reply.kind >= REPLY_NODE;
	return node ? span_of(env->payload - env->id_bytes, env->id_bytes) : span_of(NULL, 0);
}

uint8_t egress_reply_family(const struct envelope *env)
{
	return env->reply.kind >= REPLY_NODE ? WIRE_FORWARD_REPLY : WIRE_REPLY;
}

// What one reply is made of: header fields, then up to two parts of body.
struct parts {
	struct span first;
	struct span second;
	uint16_t content;
	uint8_t flags;
};

static uint32_t parts_bytes(const struct parts *p)
{
	return (uint32_t)(p->first.size + p->second.size);
}

static void parts_copy(const struct parts *p, uint8_t *out)
{
	// The second part may lie where the reply goes (a reply from the request's own frame).
	if (p->second.size > 0)
		memmove(out + p->first.size, p->second.data, p->second.size);
	if (p->first.size > 0)
		memcpy(out, p->first.data, p->first.size);
}

static bool fits(const struct worker_queue *q, uint32_t body_bytes)
{
	return body_bytes + WIRE_HEADER_BYTES <= q->payload_bytes_max;
}

static bool frame_takes(const struct frame *frame, uint32_t body_bytes)
{
	return frame != NULL && body_bytes + WIRE_HEADER_BYTES <= frame->room;
}

static inline void put_u64(uint8_t *out, size_t offset, uint64_t value)
{
	memcpy(out + offset, &value, sizeof(value));
}

// A reply's header, word by word into the frame: built elsewhere and copied, its narrow stores would be
// read back as wide ones before they are done.
static inline void write_reply_header(struct dp_worker *w, const struct envelope *env,
	struct result result, uint8_t flags, uint16_t content, uint32_t bytes, uint8_t *out)
{
	flags |= w->pressure ? WIRE_FLAG_PRESSURE : 0;
	put_u64(out, 0, WIRE_VERSION | WIRE_SUITE_NONE << 9 | (uint64_t)WIRE_REPLY << 16 |
		(uint64_t)flags << 24 | (uint64_t)result.kind << 32 | (uint64_t)result.reason << 40 |
		(uint64_t)result.accepted << 48);
	put_u64(out, offsetof(struct wire_header, session), w->session_id);
	put_u64(out, offsetof(struct wire_header, counter), ++w->session_counter);
	put_u64(out, offsetof(struct wire_header, cookie), 0);
	put_u64(out, offsetof(struct wire_header, spot_key_lo), env->key.lo);
	put_u64(out, offsetof(struct wire_header, spot_key_hi), env->key.hi);
	put_u64(out, offsetof(struct wire_header, operation_scope), env->reply.scope);
	put_u64(out, offsetof(struct wire_header, operation_id), env->reply.operation_id);
	put_u64(out, offsetof(struct wire_header, owner_node), 0);
	put_u64(out, offsetof(struct wire_header, owner_lease), 0);
	put_u64(out, offsetof(struct wire_header, object_generation), 0);
	put_u64(out, offsetof(struct wire_header, spot_type),
		(uint64_t)env->message_type << 32 | (uint64_t)content << 48);
	put_u64(out, offsetof(struct wire_header, budget_us), (uint64_t)bytes << 32);
	put_u64(out, offsetof(struct wire_header, segment_offset), (uint64_t)bytes << 32);
	put_u64(out, offsetof(struct wire_header, ingress_worker),
		env->reply.ingress_worker | (uint64_t)w->index << 8);
	put_u64(out, offsetof(struct wire_header, tag), 0);
	put_u64(out, offsetof(struct wire_header, tag) + 8, 0);
}
_Static_assert(offsetof(struct wire_header, message_type) == offsetof(struct wire_header, spot_type) + 4 &&
	offsetof(struct wire_header, content_type) == offsetof(struct wire_header, spot_type) + 6 &&
	offsetof(struct wire_header, total_bytes) == offsetof(struct wire_header, budget_us) + 4 &&
	offsetof(struct wire_header, segment_bytes) == offsetof(struct wire_header, segment_offset) + 4 &&
	offsetof(struct wire_header, home_worker) == offsetof(struct wire_header, ingress_worker) + 1,
	"words of the header as write_reply_header puts them together");

static void send_in_frame(struct dp_worker *w, struct worker_queue *q, const struct envelope *env,
	struct frame *frame, struct result result, const struct parts *p)
{
	uint32_t bytes = parts_bytes(p);
	struct span front = egress_front(env);
	uint8_t *body = frame->data + WIRE_HEADER_BYTES + front.size;
	// In a received frame the front lies where it goes already.
	if (UNLIKELY(front.size > 0))
		memmove(frame->data + WIRE_HEADER_BYTES, front.data, front.size);
	parts_copy(p, body);
	write_reply_header(w, env, result, p->flags, p->content, bytes, frame->data);
	if (UNLIKELY(front.size > 0)) {
		frame->data[offsetof(struct wire_header, family)] = egress_reply_family(env);
		frame->data[offsetof(struct wire_header, id_bytes)] = (uint8_t)front.size;
	}
	frame->bytes = (uint32_t)(WIRE_HEADER_BYTES + front.size) + bytes;
	egress_frame(q, frame);
}

bool egress_turn_frame(struct dp_worker *w, struct worker_queue *q, const struct envelope *env,
	struct frame *frame, const struct turn *t)
{
	uint32_t bytes = t->reply_bytes;
	if (UNLIKELY(env->reply.kind != REPLY_CLIENT) || UNLIKELY(t->reply_item != NULL) ||
		UNLIKELY(env->explain != NULL) || UNLIKELY(!fits(q, bytes)) ||
		UNLIKELY(!frame_takes(frame, bytes)))
		return false;
	COUNT(w, replies);
	CHECK(t->reply_result.kind < ARRAY_COUNT(w->counters.results));
	counter_add(&w->counters.results[t->reply_result.kind], 1);
	copy_body(frame->data + WIRE_HEADER_BYTES, t->reply_room, bytes);
	write_reply_header(w, env, t->reply_result, 0, t->reply_content, bytes, frame->data);
	egress_frame_of(q, frame, WIRE_HEADER_BYTES + bytes);
	return true;
}

// A reply that must leave elsewhere or in several frames, as an item with its whole body.
static struct item *reply_item(struct dp_worker *w, const struct envelope *env, struct result result,
	const struct parts *p)
{
	struct span front = egress_front(env);
	struct item *item = item_new(w, ITEM_REPLY, front.size + parts_bytes(p));
	if (item == NULL)
		return NULL;
	item->env = *env;
	item->env.spot = NULL;
	item->env.charge_bytes = 0;
	item->env.process_bytes = 0;
	item->env.explain = NULL;
	item->env.content = p->content;
	item->env.id_bytes = (uint16_t)front.size;
	item->env.payload = item->payload + front.size;
	item->env.payload_bytes = parts_bytes(p);
	if (front.size > 0)
		memcpy(item->payload, front.data, front.size);
	item->env.reply.explain = (p->flags & WIRE_FLAG_EXPLAIN) != 0;
	item_set_result(item, result);
	parts_copy(p, item->payload + front.size);
	return item;
}

// The worker that took the request knows a way back; segmented replies go through it, since their
// reports arrive there.
static void send_as_item(struct dp_worker *w, const struct envelope *env, struct result result,
	const struct parts *p)
{
	struct item *item = reply_item(w, env, result, p);
	if (item == NULL) {
		struct parts none = {.content = WIRE_CONTENT_BYTES};
		result = result_make(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY, result.accepted);
		item = reply_item(w, env, result, &none);
	}
	if (item == NULL)
		return; // not even a frame's worth of memory: the caller's deadline ends it
	if (env->reply.ingress_worker == w->index)
		egress_reply_item(w, item);
	else
		cross_send(w, env->reply.ingress_worker, &item->head);
}

static void send_to_client(struct dp_worker *w, const struct envelope *env, struct frame *frame,
	struct result result, const struct parts *p)
{
	struct worker_queue *q = egress_queue(w, env->reply.peer.fabric);
	uint32_t bytes = (uint32_t)egress_front(env).size + parts_bytes(p);
	COUNT(w, replies);
	counter_add(&w->counters.results[result.kind % ARRAY_COUNT(w->counters.results)], 1);
	if (UNLIKELY(q == NULL) || UNLIKELY(!fits(q, bytes))) {
		send_as_item(w, env, result, p);
		if (frame != NULL)
			egress_drop(q, frame);
		return;
	}
	if (frame_takes(frame, bytes)) {
		send_in_frame(w, q, env, frame, result, p);
		return;
	}
	struct frame fresh;
	bool have = egress_fresh(q, &fresh);
	if (have) {
		fresh.peer = env->reply.peer;
		send_in_frame(w, q, env, &fresh, result, p);
	}
	if (frame != NULL)
		egress_drop(q, frame);
}

// The explain part: u16 little-endian size, then that many bytes of JSON.
static struct span explain_part(
	const struct dp_worker *w, const struct envelope *env, struct result result, uint8_t *room)
{
	size_t size = explain_print(env->explain, w->tick_ns_q32, result_kind_name(result.kind),
		result_reason_name(result.reason), (char *)room + 2, EXPLAIN_JSON_MAX);
	room[0] = (uint8_t)size;
	room[1] = (uint8_t)(size >> 8);
	return span_of(room, size + 2);
}

void egress_reply(
	struct dp_worker *w, const struct envelope *env, struct frame *frame, const struct reply *reply)
{
	uint8_t refusal_body[WIRE_REFUSAL_BYTES];
	uint8_t explain_room[EXPLAIN_JSON_MAX + 2];
	if (UNLIKELY(env->reply.kind != REPLY_CLIENT && env->reply.kind != REPLY_NODE)) {
		if (env->reply.kind == REPLY_CALL)
			// Without memory for it the call's deadline ends it.
			(void)call_send_answer(
				w, env, reply->result, reply->content, reply->payload);
		else if (env->reply.kind == REPLY_NODE_SEND)
			forward_notice(w, env, reply->result);
		if (frame != NULL)
			egress_drop(egress_queue(w, frame->peer.fabric), frame);
		return;
	}
	struct parts p = {.second = reply->payload, .content = reply->content};
	if (reply->refusal != NULL) {
		wire_refusal_encode(reply->refusal, refusal_body);
		p.second = span_of(refusal_body, sizeof(refusal_body));
		p.content = WIRE_CONTENT_REFUSAL;
	}
	if (UNLIKELY(env->explain != NULL)) {
		p.first = explain_part(w, env, reply->result, explain_room);
		p.flags = WIRE_FLAG_EXPLAIN;
	}
	send_to_client(w, env, frame, reply->result, &p);
}

void egress_reply_item(struct dp_worker *w, struct item *item)
{
	struct worker_queue *q = egress_queue(w, item->env.reply.peer.fabric);
	if (q == NULL) { // its queue is gone: nothing leads to that client any more
		item_end(w, &item->head);
		return;
	}
	if (!fits(q, item->env.payload_bytes + (uint32_t)egress_front(&item->env).size)) {
		segment_out_begin(w, item);
		return;
	}
	struct frame fresh;
	struct parts p = {.second = span_of(item->env.payload, item->env.payload_bytes),
		.content = item->env.content,
		.flags = item->env.reply.explain ? WIRE_FLAG_EXPLAIN : 0};
	if (egress_fresh(q, &fresh)) {
		fresh.peer = item->env.reply.peer;
		send_in_frame(w, q, &item->env, &fresh, item_result(item), &p);
	}
	item_end(w, &item->head);
}

void egress_pass(struct dp_worker *w, const struct envelope *env, struct result result,
	uint16_t content, uint8_t flags, struct span body)
{
	struct parts p = {.second = body, .content = content, .flags = flags};
	send_to_client(w, env, NULL, result, &p);
}

void egress_challenge(
	struct dp_worker *w, struct worker_queue *q, struct frame *frame, const struct wire_frame *in)
{
	struct wire_header h;
	memset(&h, 0, sizeof(h));
	COUNT(w, frames_challenged);
	h.version = WIRE_VERSION;
	h.suite_phase = WIRE_SUITE_NONE << 1;
	h.family = WIRE_CHALLENGE;
	h.flags = w->pressure ? WIRE_FLAG_PRESSURE : 0;
	h.session = w->session_id;
	h.counter = ++w->session_counter;
	h.cookie = session_cookie(&w->sessions, &frame->peer, w->now_ns);
	h.spot_key_lo = in->h.spot_key_lo;
	h.spot_key_hi = in->h.spot_key_hi;
	h.operation_scope = in->h.session;
	h.operation_id = in->h.operation_id;
	h.ingress_worker = h.home_worker = (uint8_t)w->index;
	memcpy(frame->data, &h, sizeof(h));
	// Never longer than what came in: a frame that decoded has at least a header.
	frame->bytes = WIRE_HEADER_BYTES;
	egress_frame(q, frame);
}

void egress_small(struct dp_worker *w, const struct peer *peer, struct wire_header *h, struct span id,
	struct span body)
{
	struct worker_queue *q = egress_queue(w, peer->fabric);
	struct frame fresh;
	if (q == NULL || !egress_fresh(q, &fresh))
		return;
	fresh.peer = *peer;
	size_t size = wire_encode(h, id, body, fresh.data, fresh.room);
	CHECK(size > 0);
	fresh.bytes = (uint32_t)size;
	egress_frame(q, &fresh);
}
