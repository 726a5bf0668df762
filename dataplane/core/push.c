// SPDX-License-Identifier: BSD-3-Clause
#include "core/push.h"

#include <string.h>

#include "core/core.h"
#include "core/cross.h"
#include "core/turn.h"
#include "core/turn_inline.h"
#include "wire/wire.h"

// What a handle's words are.
struct place {
	struct peer peer;
	uint64_t session;
	uint8_t worker;
};
_Static_assert(sizeof(struct place) <= sizeof(((struct spotlane_client_handle *)0)->value),
	"a handle holds it");

int host_client(spotlane_turn turn, struct spotlane_client_handle *out)
{
	struct dp_worker *w = turn_worker(turn.value);
	if (w == NULL || w->turn.env->reply.kind != REPLY_CLIENT)
		return -1; // nobody waits for an answer, or another node or Spot does
	const struct reply_to *reply = &w->turn.env->reply;
	struct place place;
	memset(&place, 0, sizeof(place));
	place.peer = reply->peer;
	place.session = reply->scope;
	place.worker = reply->ingress_worker;
	memset(out, 0, sizeof(*out));
	memcpy(out->value, &place, sizeof(place));
	return 0;
}

static void drop(struct dp_worker *w, struct item *item)
{
	COUNT(w, pushes_dropped);
	item_end(w, &item->head);
}

void push_arrived(struct dp_worker *w, struct item *item)
{
	struct worker_queue *q = egress_queue(w, item->env.reply.peer.fabric);
	struct frame frame;
	if (q == NULL ||
		!session_is_leased(&w->sessions, &item->env.reply.peer, item->env.reply.scope,
			w->now_ns, PUSH_LEASE_NS) ||
		item->env.payload_bytes + WIRE_HEADER_BYTES > q->payload_bytes_max ||
		!egress_fresh(q, &frame)) {
		drop(w, item);
		return;
	}
	struct wire_header h;
	egress_header(w, &item->env, (struct result){0, 0, 0}, WIRE_PUSH, &h);
	h.content_type = item->env.content;
	h.total_bytes = item->env.payload_bytes;
	frame.peer = item->env.reply.peer;
	frame.bytes = (uint32_t)wire_encode(&h, span_of(NULL, 0),
		span_of(item->env.payload, item->env.payload_bytes), frame.data, frame.room);
	if (frame.bytes == 0) {
		egress_drop(q, &frame);
		drop(w, item);
		return;
	}
	COUNT(w, pushes);
	egress_frame(q, &frame);
	item_end(w, &item->head);
}

int host_push(spotlane_turn turn, const struct spotlane_client_handle *to, uint16_t type,
	uint16_t content, struct spotlane_bytes payload)
{
	struct dp_worker *w = turn_worker(turn.value);
	struct place place;
	if (w == NULL || content > SPOTLANE_TEXT || payload.size > SPOTLANE_PUSH_BYTES_MAX)
		return -1;
	memcpy(&place, to->value, sizeof(place));
	if (place.session == 0 || place.worker >= w->dp->config.workers)
		return -1;
	struct item *item = item_new(w, ITEM_PUSH, payload.size);
	if (item == NULL) {
		COUNT(w, pushes_dropped);
		return -1;
	}
	memset(&item->env, 0, sizeof(item->env));
	item->env.key = w->turn.env->key;
	item->env.message_type = type;
	item->env.content = content;
	item->env.payload = item->payload;
	item->env.payload_bytes = (uint32_t)payload.size;
	item->env.reply.peer = place.peer;
	item->env.reply.scope = place.session;
	item->env.reply.ingress_worker = place.worker;
	if (payload.size > 0)
		memcpy(item->payload, payload.data, payload.size);
	if (place.worker == w->index)
		push_arrived(w, item);
	else
		cross_send(w, place.worker, &item->head);
	return 0;
}

void push_keepalive(struct dp_worker *w, const struct peer *peer, const struct wire_header *h)
{
	struct session *session = NULL;
	if (h->cookie != 0 && session_cookie_valid(&w->sessions, peer, h->cookie, w->now_ns) &&
		session_check(&w->sessions, peer, h->session, h->counter, h->cookie, w->now_ns,
			&session) == SESSION_FRESH)
		session_take(&w->sessions, session, h->counter, w->now_ns);
}
