// SPDX-License-Identifier: BSD-3-Clause
#include "core/reassembly.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/explain.h"
#include "core/resolve.h"
#include "spot/name.h"

enum { WINDOW = 64, ID_ROOM = 256 };
#define ENDED_NS UINT64_C(5000000000)

bool reassembly_table_init(struct reassembly_table *table, uint64_t bytes_max)
{
	memset(table, 0, sizeof(*table));
	table->slots = mem_zalloc(REASSEMBLIES_MAX * sizeof(table->slots[0]));
	table->ended = mem_zalloc(ENDED_MAX * sizeof(table->ended[0]));
	table->bytes_max = bytes_max;
	table->next_expiry_ns = UINT64_MAX;
	if (table->slots == NULL || table->ended == NULL)
		return false;
	for (uint32_t i = 0; i < REASSEMBLIES_MAX; i++) {
		table->slots[i].next = table->free;
		table->free = &table->slots[i];
	}
	return true;
}

// ---- what ended ----
static const struct ended *ended_find(const struct dp_worker *w, uint64_t session, uint64_t operation)
{
	for (uint32_t i = 0; i < ENDED_MAX; i++) {
		const struct ended *e = &w->reassembly.ended[i];
		if (e->operation == operation && e->session == session && e->expires_ns > w->now_ns)
			return e;
	}
	return NULL;
}

static void ended_note(struct dp_worker *w, uint64_t session, uint64_t operation, struct result result,
	const struct refusal *refusal)
{
	struct reassembly_table *t = &w->reassembly;
	struct ended *e = &t->ended[t->ended_next];
	*e = (struct ended){session, operation, w->now_ns + ENDED_NS, result, refusal != NULL, {0}};
	if (refusal != NULL)
		e->refusal = *refusal;
	t->ended_next = (t->ended_next + 1) % ENDED_MAX;
}

static void send_report(struct dp_worker *w, const struct envelope *env, const struct seg_ack *ack)
{
	struct wire_header h;
	uint8_t body[SEG_ACK_BYTES];
	egress_header(w, env, (struct result){0, 0, 0}, WIRE_ACK, &h);
	h.content_type = WIRE_CONTENT_ACK;
	h.total_bytes = sizeof(body);
	seg_ack_encode(ack, body);
	egress_small(w, &env->reply.peer, &h, span_of(NULL, 0), span_of(body, sizeof(body)));
}

static void send_done(struct dp_worker *w, const struct envelope *env, uint32_t count)
{
	struct seg_ack ack = {.base = count, .window = WINDOW, .done = 1};
	send_report(w, env, &ack);
}

// A one-way message that is refused has no REPLY to end its sending: a report that needs nothing more and
// has nothing does. Its refusal is counted like any (M6).
static void close_one_way(struct dp_worker *w, const struct envelope *env)
{
	if (!reply_is_wanted(env->reply.kind))
		send_done(w, env, 0);
}

// A late segment of a message that has ended.
static void answer_late(
	struct dp_worker *w, const struct wire_frame *wf, const struct envelope *env, const struct ended *e)
{
	if (e->result.kind == 0) {
		send_done(w, env, seg_count(wf->h.total_bytes, wf->h.segment_unit));
		return;
	}
	struct reply reply = {
		.result = e->result, .refusal = e->has_refusal ? &e->refusal : NULL};
	close_one_way(w, env);
	if (env->reply.kind == REPLY_CLIENT || env->reply.kind == REPLY_NODE)
		egress_reply(w, env, NULL, &reply);
}

// ---- the table ----
static struct reassembly *find(const struct reassembly_table *t, uint64_t session, uint64_t operation)
{
	struct reassembly *r = t->oldest;
	while (r != NULL && (r->session != session || r->operation != operation))
		r = r->next;
	return r;
}

static void unlink_slot(struct reassembly_table *t, struct reassembly *r)
{
	struct reassembly *before = NULL;
	for (struct reassembly *i = t->oldest; i != r; i = i->next)
		before = i;
	if (before == NULL)
		t->oldest = r->next;
	else
		before->next = r->next;
	if (t->newest == r)
		t->newest = before;
	t->count--;
	t->bytes -= r->budget_bytes;
	if (r->report_due)
		t->reports_due--;
	if (r->item != NULL && r->item->env.charge_bytes > 0)
		t->reserved_messages--;
	r->next = t->free;
	t->free = r;
}

// Ends a half-message: everything reserved goes back.
static void discard(struct dp_worker *w, struct reassembly *r)
{
	struct item *item = r->item;
	unlink_slot(&w->reassembly, r);
	r->item = NULL;
	deliver_item_end(w, item);
}

static struct reassembly *oldest_of_peer(const struct reassembly_table *t, const uint8_t ip[16])
{
	struct reassembly *r = t->oldest;
	while (r != NULL && memcmp(r->ip, ip, 16) != 0)
		r = r->next;
	return r;
}

static uint64_t peer_bytes(const struct reassembly_table *t, const uint8_t ip[16])
{
	uint64_t sum = 0;
	for (const struct reassembly *r = t->oldest; r != NULL; r = r->next)
		if (memcmp(r->ip, ip, 16) == 0)
			sum += r->budget_bytes;
	return sum;
}

// Room in the peer's budget and in the table, made at the cost of the same peer's oldest.
static bool make_room(struct dp_worker *w, const uint8_t ip[16], uint32_t bytes)
{
	struct reassembly_table *t = &w->reassembly;
	while (peer_bytes(t, ip) + bytes > w->dp->config.peer_reassembly_bytes_max || t->free == NULL) {
		struct reassembly *oldest = oldest_of_peer(t, ip);
		if (oldest == NULL)
			return false;
		COUNT(w, reassemblies_expired);
		discard(w, oldest);
	}
	return t->bytes + bytes <= t->bytes_max;
}

// ---- the first segment ----
struct plan { // what the whole item will take
	size_t room; // behind the struct
	uint32_t block_bytes;
	uint32_t charge_bytes;
	uint32_t front_bytes; // room for an id that may come later
	uint32_t bitmap_words;
	bool explained;
};

static struct plan plan_of(const struct dp_worker *w, const struct wire_frame *wf, const struct envelope *env)
{
	struct plan p = {.explained = env->explain != NULL};
	p.front_bytes = env->reply.kind >= REPLY_NODE ? WIRE_ROUTE_BYTES
			: env->spot_type.value != 0   ? ID_ROOM
						      : 0;
	p.bitmap_words = seg_bitmap_words(seg_count(wf->h.total_bytes, wf->h.segment_unit));
	p.room = p.front_bytes + (size_t)wf->h.total_bytes + 8 + p.bitmap_words * sizeof(uint64_t) +
		(p.explained ? sizeof(struct explain) : 0);
	size_t block = sizeof(struct item) + p.room;
	p.block_bytes = ledger_size_class(block);
	p.charge_bytes = ledger_charge_of(w->dp->config.accounting, block, wf->h.total_bytes);
	return p;
}

// Takes the place in the lane where there is one already. False: the offer was refused with *out.
static bool reserve_lane(struct dp_worker *w, struct offer *offer, const struct plan *p,
	struct result *out, struct refusal *out_refusal, bool *out_has_refusal)
{
	struct envelope *env = &offer->env;
	route_word word = route_lookup(w->dp->config.routes, env->key);
	if (env->reply.kind == REPLY_RELAY)
		return true; // for no lane
	if (envelope_is_forwarded(env) && route_tag(word) != ROUTE_LOCAL) { // S1
		*out = result_refused(RESULT_STALE_ROUTE, REASON_WRONG_OWNER);
		return false;
	}
	if (p->charge_bytes > w->dp->config.application.bytes_max && word == ROUTE_NONE) {
		*out = result_refused(RESULT_INVALID_OPERATION, REASON_TOO_LARGE);
		return false;
	}
	if (route_tag(word) != ROUTE_LOCAL || park_waits(&w->park, env->key))
		return true; // decided when it is whole
	struct dp_spot *spot = route_pointer(word);
	if (p->charge_bytes > spot_bounds(spot)->bytes_max) {
		*out = result_refused(RESULT_INVALID_OPERATION, REASON_TOO_LARGE);
		return false;
	}
	if (!lease_valid(w, w->now_ns) || spot_state(spot) >= SPOT_CLOSING ||
		(env->spot_type.value != 0 && env->spot_type.value != spot->type->key.value))
		return true;
	enum lane_verdict verdict =
		lane_reserve(&spot->application, *spot_bounds(spot), p->charge_bytes);
	if (verdict == LANE_OPENING || verdict == LANE_SEALED)
		return true;
	if (verdict == LANE_ADMITTED) {
		env->spot = spot;
		env->charge_bytes = p->charge_bytes;
		return true;
	}
	atomic_fetch_add_explicit(&spot->refused, 1, memory_order_relaxed);
	enum result_reason reason = deliver_lane_refusal(w, spot, verdict, out_refusal);
	*out = result_refused(RESULT_CAPACITY_EXCEEDED, reason);
	*out_has_refusal = true;
	return false;
}

static bool reserve_process(struct dp_worker *w, struct offer *offer, uint32_t bytes,
	struct result *out, struct refusal *out_refusal)
{
	if (ledger_charge(&w->shard, bytes)) {
		offer->env.process_bytes = bytes;
		return true;
	}
	*out = result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PROCESS_INBOUND);
	*out_refusal = deliver_node_refusal(
		w, w->dp->process.mark_bytes, ledger_process_taken(&w->dp->process));
	return false;
}

static struct item *build_item(struct dp_worker *w, const struct wire_frame *wf, const struct offer *offer,
	const struct plan *p, uint64_t **out_bitmap)
{
	struct item *item = item_new(w, ITEM_MESSAGE, p->room);
	if (item == NULL)
		return NULL;
	item->env = offer->env;
	if (offer->env.reply.kind >= REPLY_NODE) // every segment carries the same route
		memcpy(item->payload, offer->id.data, WIRE_ROUTE_BYTES);
	item_set_result(item, (struct result){wf->h.kind, wf->h.reason, wf->h.accepted});
	uint8_t *payload = item->payload + p->front_bytes;
	item->env.payload = payload;
	item->env.payload_bytes = wf->h.total_bytes;
	uintptr_t after = (uintptr_t)(payload + wf->h.total_bytes + 7) & ~(uintptr_t)7;
	*out_bitmap = (uint64_t *)after;
	memset(*out_bitmap, 0, p->bitmap_words * sizeof(uint64_t));
	if (p->explained) {
		item->env.explain = (struct explain *)(*out_bitmap + p->bitmap_words);
		*item->env.explain = *offer->env.explain;
	}
	return item;
}

static struct reassembly *slot_start(struct dp_worker *w, struct worker_queue *q,
	const struct wire_frame *wf, struct item *item, uint64_t *bitmap, const struct plan *p)
{
	struct reassembly_table *t = &w->reassembly;
	struct reassembly *r = t->free;
	t->free = r->next;
	memset(r, 0, sizeof(*r));
	r->item = item;
	r->session = wf->h.session;
	r->operation = wf->h.operation_id;
	r->budget_bytes = p->block_bytes;
	r->queue = fabric_base(q->queue)->fabric;
	memcpy(r->ip, item->env.reply.peer.ip, sizeof(r->ip));
	seg_rx_init(&r->rx, bitmap, wf->h.total_bytes, wf->h.segment_unit);
	if (t->newest == NULL)
		t->oldest = r;
	else
		t->newest->next = r;
	t->newest = r;
	t->count++;
	t->bytes += r->budget_bytes;
	if (item->env.charge_bytes > 0)
		t->reserved_messages++;
	return r;
}

// A result that finds no room on its way back: the work was done, the caller hears a short one.
static void relay_refused(struct dp_worker *w, const struct envelope *env, struct result why)
{
	struct item *item = item_new(w, ITEM_REPLY, WIRE_ROUTE_BYTES);
	if (item == NULL)
		return; // the caller's deadline ends it
	item->env = *env;
	item->env.charge_bytes = item->env.process_bytes = 0;
	memcpy(item->payload, env->payload - env->id_bytes, WIRE_ROUTE_BYTES);
	item->env.payload = item->payload + WIRE_ROUTE_BYTES;
	item->env.payload_bytes = 0;
	item->env.content = WIRE_CONTENT_BYTES;
	item->env.explain = NULL;
	item->env.reply.explain = 0;
	item_set_result(item, result_make((enum result_kind)why.kind,
				      (enum result_reason)why.reason, ACCEPTED_YES));
	forward_reply_item(w, item);
}

static void refuse(struct dp_worker *w, const struct wire_frame *wf, struct offer *offer,
	struct result result, const struct refusal *refusal)
{
	ended_note(w, wf->h.session, wf->h.operation_id, result, refusal);
	if (offer->env.reply.kind == REPLY_RELAY) {
		send_done(w, &offer->env, seg_count(wf->h.total_bytes, wf->h.segment_unit));
		relay_refused(w, &offer->env, result);
		return;
	}
	COUNT(w, messages_in);
	close_one_way(w, &offer->env);
	deliver_refuse(w, offer, result, refusal);
}

// Reserves everything, in the order of narrowing: size, peer and worker, lane, process, memory.
static struct reassembly *begin(
	struct dp_worker *w, struct worker_queue *q, const struct wire_frame *wf, struct offer *offer)
{
	struct result result = {0, 0, 0};
	struct refusal refusal;
	bool has_refusal = false;
	uint64_t *bitmap = NULL;
	struct item *item = NULL;
	struct plan p = plan_of(w, wf, &offer->env);
	if (wf->h.total_bytes > w->dp->config.message_bytes_max) {
		result = result_refused(RESULT_INVALID_OPERATION, REASON_TOO_LARGE);
	} else if (!make_room(w, offer->env.reply.peer.ip, p.block_bytes)) {
		result = result_refused(RESULT_CAPACITY_EXCEEDED, REASON_REASSEMBLY);
		refusal = deliver_node_refusal(w, w->reassembly.bytes_max, w->reassembly.bytes);
		has_refusal = true;
	} else if (reserve_lane(w, offer, &p, &result, &refusal, &has_refusal)) {
		if (!reserve_process(w, offer, wf->h.total_bytes, &result, &refusal))
			has_refusal = true;
		else if ((item = build_item(w, wf, offer, &p, &bitmap)) == NULL)
			result = result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY);
	}
	if (item == NULL) {
		refuse(w, wf, offer, result, has_refusal ? &refusal : NULL);
		return NULL;
	}
	return slot_start(w, q, wf, item, bitmap, &p);
}

// ---- every segment ----
static bool belongs(const struct reassembly *r, const struct wire_frame *wf, const struct envelope *env)
{
	const struct envelope *have = &r->item->env;
	return spot_key_equal(have->key, env->key) && have->reply.kind == env->reply.kind &&
		have->spot_type.value == env->spot_type.value &&
		have->message_type == env->message_type && have->content == env->content &&
		wf->h.operation_scope == have->reply.scope;
}

static void kill_message(struct dp_worker *w, struct reassembly *r)
{
	struct item *item = r->item;
	struct offer offer = {.item = item};
	struct result result = result_refused(RESULT_PROTOCOL_ERROR, REASON_REASSEMBLY);
	ended_note(w, r->session, r->operation, result, NULL);
	unlink_slot(&w->reassembly, r);
	r->item = NULL;
	if (item->env.reply.kind == REPLY_RELAY) {
		relay_refused(w, &item->env, result);
		deliver_item_end(w, item);
		return;
	}
	COUNT(w, messages_in);
	close_one_way(w, &item->env);
	deliver_refuse(w, &offer, result, NULL);
}

static void keep_id(struct reassembly *r, const struct wire_frame *wf)
{
	struct envelope *env = &r->item->env;
	if (wf->id.size == 0 || env->spot_type.value == 0 || env->reply.kind >= REPLY_NODE)
		return;
	env->id_bytes = (uint16_t)wf->id.size;
	memcpy(r->item->payload + ID_ROOM - wf->id.size, wf->id.data, wf->id.size);
}

static bool id_is_right(const struct envelope *env)
{
	return env->spot_type.value == 0 || env->reply.kind >= REPLY_NODE ||
		spot_key_equal(
			spot_key_of(span_of(env->payload - env->id_bytes, env->id_bytes)), env->key);
}

// Whole: to its place in the lane, or through routing when it has none yet.
static void complete(struct dp_worker *w, struct reassembly *r)
{
	struct item *item = r->item;
	uint32_t count = r->rx.count;
	uint64_t session = r->session, operation = r->operation;
	unlink_slot(&w->reassembly, r);
	r->item = NULL;
	if (!id_is_right(&item->env)) {
		struct offer offer = {.item = item};
		struct result result = result_refused(RESULT_PROTOCOL_ERROR, REASON_NONE);
		COUNT(w, messages_in);
		counter_add(&w->counters.rejects[WIRE_REJECT_ID_KEY], 1);
		ended_note(w, session, operation, result, NULL);
		close_one_way(w, &item->env);
		deliver_refuse(w, &offer, result, NULL);
		return;
	}
	COUNT(w, reassemblies);
	// Before the item may end: its way back tells the client that nothing more is needed.
	send_done(w, &item->env, count);
	ended_note(w, session, operation, (struct result){0, 0, 0}, NULL);
	if (item->env.reply.kind == REPLY_RELAY) {
		forward_reply_item(w, item);
		return;
	}
	COUNT(w, messages_in);
	if (item->env.charge_bytes == 0) {
		struct offer offer = {.item = item};
		resolve_one(w, &offer);
		return;
	}
	item->env.authority = item->env.spot->authority_generation;
	item->env.since_ticks = w->now_ticks;
	COUNT(w, messages_accepted);
	deliver_enqueue(w, item);
}

static void report_later(struct dp_worker *w, struct reassembly *r)
{
	if (!r->report_due)
		w->reassembly.reports_due++;
	r->report_due = 1;
}

static void accept(struct dp_worker *w, struct reassembly *r, const struct wire_frame *wf)
{
	enum seg_rx_verdict verdict = seg_rx_accept(&r->rx, wf->h.total_bytes, wf->h.segment_offset,
		wf->h.segment_bytes, wf->h.segment_unit);
	if (verdict == SEG_RX_MISMATCH) {
		kill_message(w, r);
		return;
	}
	if (verdict != SEG_RX_REPEAT) {
		COUNT(w, segments_in);
		keep_id(r, wf);
		memcpy((uint8_t *)(uintptr_t)r->item->env.payload + wf->h.segment_offset,
			wf->segment.data, wf->segment.size);
		r->expires_ns =
			w->now_ns + (uint64_t)w->dp->config.reassembly_expiry_ms * 1000000;
		if (r->expires_ns < w->reassembly.next_expiry_ns)
			w->reassembly.next_expiry_ns = r->expires_ns;
	}
	if (verdict == SEG_RX_WHOLE) {
		complete(w, r);
		return;
	}
	if (seg_rx_due(&r->rx, WINDOW, (wf->h.flags & WIRE_FLAG_ACK_NOW) != 0))
		report_later(w, r);
}

void reassembly_segment(struct dp_worker *w, struct worker_queue *q, const struct wire_frame *frame,
	struct offer *offer)
{
	offer->frame = NULL; // its bytes are copied, the frame ends with the caller
	struct reassembly *r = find(&w->reassembly, frame->h.session, frame->h.operation_id);
	if (r == NULL) {
		const struct ended *e = ended_find(w, frame->h.session, frame->h.operation_id);
		if (e != NULL) {
			answer_late(w, frame, &offer->env, e);
			return;
		}
		if (offer->env.reply.kind != REPLY_RELAY &&
			resolve_refuses(w, offer, frame->h.owner_node, frame->h.owner_lease)) {
			COUNT(w, messages_in);
			close_one_way(w, &offer->env);
			return;
		}
		r = begin(w, q, frame, offer);
		if (r == NULL)
			return;
	} else if (!belongs(r, frame, &offer->env)) {
		kill_message(w, r);
		return;
	}
	accept(w, r, frame);
}

void reassembly_report(struct dp_worker *w)
{
	for (struct reassembly *r = w->reassembly.oldest; r != NULL; r = r->next) {
		struct seg_ack ack;
		if (!r->report_due)
			continue;
		r->report_due = 0;
		w->reassembly.reports_due--;
		seg_rx_report(&r->rx, WINDOW, false, &ack);
		send_report(w, &r->item->env, &ack);
	}
}

bool reassembly_tick(struct dp_worker *w)
{
	struct reassembly_table *t = &w->reassembly;
	struct reassembly *next;
	if (LIKELY(w->now_ns < t->next_expiry_ns))
		return false;
	t->next_expiry_ns = UINT64_MAX;
	for (struct reassembly *r = t->oldest; r != NULL; r = next) {
		next = r->next;
		if (w->now_ns >= r->expires_ns) {
			COUNT(w, reassemblies_expired);
			discard(w, r);
		} else if (r->expires_ns < t->next_expiry_ns) {
			t->next_expiry_ns = r->expires_ns;
		}
	}
	return true;
}

void reassembly_table_fini(struct dp_worker *w)
{
	while (w->reassembly.oldest != NULL)
		discard(w, w->reassembly.oldest);
	mem_free(w->reassembly.slots);
	mem_free(w->reassembly.ended);
}
