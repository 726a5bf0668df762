// SPDX-License-Identifier: BSD-3-Clause
#include "core/ingress.h"

#include <string.h>

#include "core/control_call.h"
#include "core/core.h"
#include "core/explain.h"
#include "core/push.h"
#include "core/resolve.h"

// What one burst carries from stage to stage.
struct burst {
	struct worker_queue *queue;
	struct frame frames[FABRIC_BURST_MAX];
	struct wire_frame wire[FABRIC_BURST_MAX];
	struct offer offers[FABRIC_BURST_MAX];
	struct explain explains[FABRIC_BURST_MAX];
	uint32_t count;
	uint32_t offer_count;
	uint32_t explain_count;
	uint32_t messages; // whole ones
	bool refusing;     // the node admits nothing now
};

static bool is_client_message(uint8_t family)
{
	return family >= WIRE_SEND && family <= WIRE_INTENT_REQUEST;
}

static bool is_message(uint8_t family)
{
	return is_client_message(family) || family == WIRE_FORWARD_SEND ||
		family == WIRE_FORWARD_REQUEST;
}

static bool wants_reply(uint8_t family)
{
	return family == WIRE_REQUEST || family == WIRE_INTENT_REQUEST || family == WIRE_CONTROL;
}

// Drops what does not decode; the rest moves up, frames and decoded forms alike.
static void decode(struct dp_worker *w, struct burst *b)
{
	uint32_t kept = 0;
	uint64_t last = 0; // session of the frame before: most bursts have few
	for (uint32_t i = 0; i < b->count; i++) {
		struct frame *f = &b->frames[i];
		if (i + 4 < b->count)
			__builtin_prefetch(b->frames[i + 4].data);
		enum wire_reject reject =
			wire_decode(span_of(f->data, f->bytes), &b->wire[kept]);
		if (LIKELY(reject == WIRE_TAKEN) && !w->dp->config.insecure)
			reject = WIRE_REJECT_SUITE;
		if (UNLIKELY(reject != WIRE_TAKEN)) {
			COUNT(w, frames_rejected);
			counter_add(&w->counters.rejects[reject % 32], 1);
			egress_drop(b->queue, f);
			continue;
		}
		if (b->wire[kept].h.session != last) {
			last = b->wire[kept].h.session;
			session_prefetch(&w->sessions, last);
		}
		if (kept != i)
			b->frames[kept] = *f;
		kept++;
	}
	b->count = kept;
}

static bool is_between_nodes(uint8_t family)
{
	return family >= WIRE_FORWARD_SEND;
}

static enum reply_kind way_back(uint8_t family)
{
	switch (family) {
	case WIRE_FORWARD_REQUEST:
		return REPLY_NODE;
	case WIRE_FORWARD_SEND:
		return REPLY_NODE_SEND;
	case WIRE_FORWARD_REPLY:
		return REPLY_RELAY;
	default:
		return wants_reply(family) ? REPLY_CLIENT : REPLY_NOWHERE;
	}
}

static void reply_to_client(
	const struct dp_worker *w, const struct frame *frame, const struct wire_header *h,
	struct reply_to *out)
{
	out->peer = frame->peer;
	out->scope = h->operation_scope;
	out->operation_id = h->operation_id;
	out->kind = way_back(h->family);
	out->ingress_worker = (uint8_t)w->index;
	out->explain = (h->flags & WIRE_FLAG_EXPLAIN) != 0;
	memset(out->reserved, 0, sizeof(out->reserved));
}

static uint64_t deadline_of(const struct dp_worker *w, uint32_t budget_us)
{
	return w->now_ns +
		(budget_us == 0 ? w->dp->default_budget_ns : (uint64_t)budget_us * 1000);
}

static inline void envelope_of(
	const struct dp_worker *w, const struct frame *frame, const struct wire_frame *wf,
	struct envelope *out)
{
	const struct wire_header *h = &wf->h;
	bool intent = h->family == WIRE_INTENT_SEND || h->family == WIRE_INTENT_REQUEST ||
		h->family == WIRE_FORWARD_SEND || h->family == WIRE_FORWARD_REQUEST;
	out->spot = NULL;
	out->key = wire_frame_key(wf);
	out->payload = wf->segment.data;
	out->payload_bytes = (uint32_t)wf->segment.size;
	out->charge_bytes = 0;
	out->process_bytes = 0;
	out->spot_type.value = intent || h->family == WIRE_CONTROL ? h->spot_type : 0;
	out->deadline_boot_ns = deadline_of(w, h->budget_us);
	out->authority = 0;
	out->since_ticks = w->now_ticks;
	out->message_type = h->message_type;
	out->content = h->content_type;
	out->id_bytes = is_between_nodes(h->family) ? h->id_bytes : 0;
	out->reserved = 0;
	out->explain = NULL;
	reply_to_client(w, frame, h, &out->reply);
}

static void explain_begin(struct dp_worker *w, struct burst *b, struct envelope *env)
{
	struct explain *e = &b->explains[b->explain_count++];
	memset(e, 0, sizeof(*e));
	e->session = "verified";
	e->ingress_worker = w->index;
	e->route = "waiting";
	env->explain = e;
}

// A whole message: into the array. A segment: to its reassembly; its frame ends here.
static inline void take_message(struct dp_worker *w, struct burst *b, uint32_t i)
{
	const struct wire_frame *wf = &b->wire[i];
	struct offer *offer = &b->offers[b->offer_count];
	envelope_of(w, &b->frames[i], wf, &offer->env);
	offer->item = NULL;
	offer->frame = &b->frames[i];
	offer->queue = b->queue;
	offer->id = wf->id;
	offer->id_checked = is_between_nodes(wf->h.family); // a reply route, not an id
	if (UNLIKELY(wf->h.flags & WIRE_FLAG_EXPLAIN))
		explain_begin(w, b, &offer->env);
	if (UNLIKELY(wf->h.flags & WIRE_FLAG_SEGMENTED)) {
		reassembly_segment(w, b->queue, wf, offer);
		egress_drop(b->queue, &b->frames[i]);
		return;
	}
	b->messages++;
	if (LIKELY(wf->h.owner_node == 0) && LIKELY(!b->refusing)) {
		b->offer_count++;
		return;
	}
	if (UNLIKELY(resolve_refuses(w, offer, wf->h.owner_node, wf->h.owner_lease)))
		return;
	b->offer_count++;
}

static void take_result(struct dp_worker *w, struct burst *b, uint32_t i)
{
	const struct wire_frame *wf = &b->wire[i];
	if (wf->h.flags & WIRE_FLAG_SEGMENTED) {
		struct offer offer = {.id = wf->id, .id_checked = true};
		envelope_of(w, &b->frames[i], wf, &offer.env);
		reassembly_segment(w, b->queue, wf, &offer);
		return;
	}
	forward_reply_frame(w, &b->frames[i].peer, wf);
}

static void take_control(struct dp_worker *w, struct burst *b, uint32_t i)
{
	struct envelope env;
	envelope_of(w, &b->frames[i], &b->wire[i], &env);
	control_call_begin(w, &env, &b->wire[i]);
	egress_drop(b->queue, &b->frames[i]);
}

// A frame of a verified session, not seen before.
static void take(struct dp_worker *w, struct burst *b, uint32_t i)
{
	uint8_t family = b->wire[i].h.family;
	if (LIKELY(is_message(family))) {
		take_message(w, b, i);
		return;
	}
	switch (family) {
	case WIRE_CONTROL:
		take_control(w, b, i);
		return;
	case WIRE_ACK:
		segment_out_ack(w, &b->wire[i]);
		break;
	case WIRE_FORWARD_REPLY:
		take_result(w, b, i);
		break;
	default: // families that only clients receive
		COUNT(w, frames_rejected);
		counter_add(&w->counters.rejects[WIRE_REJECT_FAMILY], 1);
		break;
	}
	egress_drop(b->queue, &b->frames[i]);
}

static void not_fresh(struct dp_worker *w, struct burst *b, uint32_t i, enum session_verdict verdict)
{
	const struct wire_header *h = &b->wire[i].h;
	if (verdict == SESSION_NO_COOKIE) {
		egress_challenge(w, b->queue, &b->frames[i], &b->wire[i]);
		return;
	}
	if (verdict == SESSION_REPEAT) {
		COUNT(w, frames_repeated);
		if (wants_reply(h->family) && !segment_out_repeat(w, h->operation_scope, h->operation_id))
			held_repeat(w, wire_frame_key(&b->wire[i]), &b->frames[i].peer,
				h->operation_scope, h->operation_id);
	} else {
		COUNT(w, frames_session_refused);
	}
	egress_drop(b->queue, &b->frames[i]);
}

static void judge(struct dp_worker *w, struct burst *b, uint32_t i)
{
	const struct wire_header *h = &b->wire[i].h;
	struct session *session = NULL;
	if (LIKELY(is_client_message(h->family)) && LIKELY(session_take_next(&w->sessions, &b->frames[i].peer,
			h->session, h->counter, w->now_ns))) {
		take_message(w, b, i);
		return;
	}
	if (UNLIKELY(h->family == WIRE_HELLO)) {
		push_keepalive(w, &b->frames[i].peer, h);
		egress_challenge(w, b->queue, &b->frames[i], &b->wire[i]);
		return;
	}
	uint64_t cookie = h->cookie;
	if (UNLIKELY(is_between_nodes(h->family) || h->family == WIRE_ACK)) {
		// The node table stands for the cookie: who is in it receives at its address.
		if (forward_is_peer(w, &b->frames[i].peer)) {
			cookie = session_cookie(&w->sessions, &b->frames[i].peer, w->now_ns);
		} else if (h->family != WIRE_ACK) {
			COUNT(w, frames_foreign);
			egress_drop(b->queue, &b->frames[i]);
			return;
		}
	}
	enum session_verdict verdict = session_check(&w->sessions, &b->frames[i].peer, h->session,
		h->counter, cookie, w->now_ns, &session);
	if (UNLIKELY(verdict != SESSION_FRESH)) {
		not_fresh(w, b, i, verdict);
		return;
	}
	session_take(&w->sessions, session, h->counter, w->now_ns);
	take(w, b, i);
}

bool ingress_poll(struct dp_worker *w, struct worker_queue *q)
{
	struct burst b;
	b.queue = q;
	b.count = q->ops->rx(q->queue, b.frames, FABRIC_BURST_MAX);
	if (b.count == 0)
		return false;
	counter_add(&w->counters.frames_in, b.count);
	b.offer_count = 0;
	b.explain_count = 0;
	b.messages = 0;
	b.refusing = atomic_load_explicit(&w->dp->admit_refusal, memory_order_relaxed) != 0;
	decode(w, &b);
	for (uint32_t i = 0; i < b.count; i++)
		judge(w, &b, i);
	counter_add(&w->counters.messages_in, b.messages);
	resolve_burst(w, b.offers, b.offer_count);
	if (w->reassembly.reports_due > 0)
		reassembly_report(w);
	return true;
}
