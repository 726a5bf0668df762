// SPDX-License-Identifier: BSD-3-Clause
#include "core/park.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/cross.h"
#include "core/explain.h"
#include "core/lifecycle.h"
#include "core/resolve.h"
#include "spot/name.h"

// Waiting messages are walked for their deadlines no more often than this, however many there are.
#define EXPIRY_GRAIN_NS UINT64_C(5000000)

static uint32_t bucket_of(const struct park_table *park, struct spot_key key)
{
	return (uint32_t)(key.lo ^ (key.hi >> 7)) & park->bucket_mask;
}

bool park_table_init(struct park_table *park, uint32_t entries_max, uint32_t messages_max)
{
	uint32_t buckets = 1;
	while (buckets < entries_max)
		buckets <<= 1;
	memset(park, 0, sizeof(*park));
	park->entries = mem_zalloc((size_t)entries_max * sizeof(park->entries[0]));
	park->buckets = mem_zalloc((size_t)buckets * sizeof(park->buckets[0]));
	park->capacity = entries_max;
	park->bucket_mask = buckets - 1;
	park->messages_max = messages_max;
	park->next_expiry_ns = UINT64_MAX;
	return park->entries != NULL && park->buckets != NULL;
}

bool park_waits(struct park_table *park, struct spot_key key)
{
	struct park_entry *e = park_find(park, key);
	return e != NULL && e->count > 0;
}

struct park_entry *park_find(struct park_table *park, struct spot_key key)
{
	uint32_t index1 = park->buckets[bucket_of(park, key)];
	while (index1 != 0 && !spot_key_equal(park->entries[index1 - 1].key, key))
		index1 = park->entries[index1 - 1].chain;
	return index1 == 0 ? NULL : &park->entries[index1 - 1];
}

static struct park_entry *entry_make(struct park_table *park, struct spot_key key)
{
	uint32_t index1;
	if (park->free_chain != 0) {
		index1 = park->free_chain;
		park->free_chain = park->entries[index1 - 1].chain;
	} else if (park->entries_used < park->capacity) {
		index1 = ++park->entries_used;
	} else {
		return NULL;
	}
	struct park_entry *e = &park->entries[index1 - 1];
	uint32_t *bucket = &park->buckets[bucket_of(park, key)];
	memset(e, 0, sizeof(*e));
	e->key = key;
	e->used = 1;
	e->chain = *bucket;
	*bucket = index1;
	return e;
}

static void entry_free(struct park_table *park, struct park_entry *e)
{
	uint32_t index1 = (uint32_t)(e - park->entries) + 1;
	uint32_t *link = &park->buckets[bucket_of(park, e->key)];
	CHECK(e->count == 0);
	while (*link != index1)
		link = &park->entries[*link - 1].chain;
	*link = e->chain;
	if (e->due != 0)
		park->due--;
	e->due = 0;
	e->used = 0;
	e->chain = park->free_chain;
	park->free_chain = index1;
}

static enum park_asked class_of(const struct item *item)
{
	return envelope_may_build(&item->env) ? PARK_ASKED_INTENT : PARK_ASKED_ORDINARY;
}

static void set_due(struct park_table *park, struct park_entry *e, uint8_t due)
{
	park->due += (uint32_t)(due != 0) - (uint32_t)(e->due != 0);
	e->due = due;
}

// The first waiting message of a class: the one whose id and type the fact carries.
static struct item *first_of(const struct park_entry *e, enum park_asked class)
{
	struct item_head *i = e->waiting.head;
	while (i != NULL && class_of(item_of(i)) != class)
		i = i->next;
	return i == NULL ? NULL : item_of(i);
}

static void tell(struct dp_worker *w, struct park_entry *e)
{
	enum park_asked class = e->due & PARK_ASKED_INTENT ? PARK_ASKED_INTENT : PARK_ASKED_ORDINARY;
	struct item *item = first_of(e, class);
	if (item == NULL) { // ended before it could be told
		set_due(&w->park, e, e->due & (uint8_t)~class);
		return;
	}
	struct fact_node *node = fact_begin(w);
	if (node == NULL)
		return;
	struct dp_fact *fact = &node->fact;
	fact->kind = DP_FACT_RESOLVE;
	fact->worker = w->index;
	fact->key = e->key;
	fact->as.resolve.intent = class == PARK_ASKED_INTENT;
	fact->as.resolve.spot_type = item->env.spot_type;
	fact->as.resolve.id_bytes = (uint8_t)item->env.id_bytes;
	memcpy(fact->as.resolve.id, item->env.payload - item->env.id_bytes, item->env.id_bytes);
	if (class == PARK_ASKED_INTENT)
		e->asked_type = item->env.spot_type;
	COUNT(w, resolves);
	set_due(&w->park, e, e->due & (uint8_t)~class);
	e->asked |= class;
	fact_post(w, node);
}

// Keeps the invariant: who waits has been asked for. An ordinary message behind an intent needs no
// question of its own: what is decided for the intent decides for it.
static void ask(struct dp_worker *w, struct park_entry *e)
{
	uint8_t asked = e->asked | e->due;
	uint8_t due = e->due;
	if (!(asked & PARK_ASKED_INTENT) && first_of(e, PARK_ASKED_INTENT) != NULL)
		due |= PARK_ASKED_INTENT;
	else if (asked == 0 && e->count > 0)
		due |= PARK_ASKED_ORDINARY;
	set_due(&w->park, e, due);
	if (due != 0)
		tell(w, e);
}

// An entry stays while a question is out: control may be asked only once.
static void settle(struct dp_worker *w, struct park_entry *e)
{
	if (e->count > 0) {
		ask(w, e);
		return;
	}
	set_due(&w->park, e, 0);
	if (e->asked == 0)
		entry_free(&w->park, e);
}

static void push(struct dp_worker *w, struct park_entry *e, struct item *item)
{
	lane_list_push(&e->waiting, &item->head);
	e->count++;
	w->park.messages++;
	if (item->env.deadline_boot_ns < w->park.next_expiry_ns)
		w->park.next_expiry_ns = item->env.deadline_boot_ns;
	ask(w, e);
}

static enum delivered refuse_node(struct dp_worker *w, struct offer *offer, enum result_reason reason,
	uint64_t limit, uint64_t current)
{
	struct refusal r = deliver_node_refusal(w, limit, current);
	return deliver_refuse(w, offer, result_refused(RESULT_CAPACITY_EXCEEDED, reason), &r);
}

static bool id_is_right(const struct offer *offer)
{
	return offer->id_checked || offer->id.size == 0 ||
		spot_key_equal(spot_key_of(offer->id), offer->env.key);
}

// Into memory, against the process bound. NULL: the offer was ended.
static struct item *keep(struct dp_worker *w, struct offer *offer)
{
	struct envelope *env = &offer->env;
	if (env->process_bytes == 0 && env->payload_bytes > 0) {
		if (!ledger_charge(&w->shard, env->payload_bytes)) {
			refuse_node(w, offer, REASON_PROCESS_INBOUND, w->dp->process.mark_bytes,
				ledger_process_taken(&w->dp->process));
			return NULL;
		}
		env->process_bytes = env->payload_bytes;
	}
	struct item *item = deliver_copy(w, env, offer->id);
	if (item == NULL) {
		deliver_refuse(w, offer,
			result_refused(RESULT_INTERNAL_FAILURE, REASON_OUT_OF_MEMORY), NULL);
		return NULL;
	}
	item->env.since_ticks = w->now_ticks;
	if (offer->frame != NULL)
		egress_drop(offer->queue, offer->frame);
	return item;
}

enum delivered park_message(struct dp_worker *w, struct offer *offer)
{
	struct park_table *park = &w->park;
	struct spot_key key = offer->item != NULL ? offer->item->env.key : offer->env.key;
	if (offer->item == NULL && !id_is_right(offer)) {
		counter_add(&w->counters.rejects[WIRE_REJECT_ID_KEY], 1);
		return deliver_refuse(
			w, offer, result_refused(RESULT_PROTOCOL_ERROR, REASON_NONE), NULL);
	}
	if (park->messages >= park->messages_max)
		return refuse_node(w, offer, REASON_PARKED, park->messages_max, park->messages);
	struct park_entry *e = park_find(park, key);
	if (e == NULL && park->free_chain == 0 && park->entries_used == park->capacity)
		return refuse_node(w, offer, REASON_PENDING_RESOLVES, park->capacity, park->capacity);
	struct item *item = offer->item;
	if (item == NULL) {
		item = keep(w, offer);
		if (item == NULL)
			return DELIVER_REFUSED;
		COUNT(w, messages_parked);
	}
	if (e == NULL)
		e = entry_make(park, key);
	push(w, e, item);
	return DELIVER_PARKED;
}

static struct lane_list take_all(struct dp_worker *w, struct park_entry *e)
{
	struct lane_list all = e->waiting;
	w->park.messages -= e->count;
	e->waiting.head = e->waiting.tail = NULL;
	e->count = 0;
	return all;
}

static void explain_parked(struct dp_worker *w, struct envelope *env)
{
	if (env->explain != NULL)
		env->explain->parked_ticks += w->now_ticks - env->since_ticks;
}

static void end_waiting(
	struct dp_worker *w, struct item *item, struct result result, const struct refusal *refusal)
{
	struct offer offer = {.item = item};
	explain_parked(w, &item->env);
	deliver_refuse(w, &offer, result, refusal);
}

static struct result expired(void)
{
	return result_refused(RESULT_DEADLINE_EXCEEDED, REASON_NONE);
}

void park_release(struct dp_worker *w, struct spot_key key)
{
	struct park_entry *e = park_find(&w->park, key);
	if (e == NULL)
		return;
	struct lane_list all = take_all(w, e);
	entry_free(&w->park, e);
	struct item_head *head;
	// One that must wait again makes a new entry, and those behind it follow into it, in order.
	while ((head = lane_list_pop(&all)) != NULL) {
		struct item *item = item_of(head);
		if (item->env.deadline_boot_ns <= w->now_ns) {
			end_waiting(w, item, expired(), NULL);
			continue;
		}
		explain_parked(w, &item->env);
		struct offer offer = {.item = item};
		resolve_one(w, &offer);
	}
}

static bool fails(const struct park_entry *e, enum dp_fail_scope scope, const struct item *item)
{
	switch (scope) {
	case DP_FAIL_ALL:
		return true;
	case DP_FAIL_ORDINARY:
		return class_of(item) == PARK_ASKED_ORDINARY;
	case DP_FAIL_INTENT: // another type's intent was not asked about
		return class_of(item) == PARK_ASKED_INTENT &&
			item->env.spot_type.value == e->asked_type.value;
	}
	return false;
}

// The questions that a failure of this scope answers.
static uint8_t answered_by(enum dp_fail_scope scope)
{
	if (scope == DP_FAIL_ORDINARY)
		return PARK_ASKED_ORDINARY;
	return scope == DP_FAIL_INTENT ? PARK_ASKED_INTENT : PARK_ASKED_ORDINARY | PARK_ASKED_INTENT;
}

void park_fail(struct dp_worker *w, struct spot_key key, enum dp_fail_scope scope, struct result result,
	const struct refusal *refusal)
{
	struct park_entry *e = park_find(&w->park, key);
	if (e == NULL)
		return;
	struct lane_list all = take_all(w, e);
	struct item_head *head;
	while ((head = lane_list_pop(&all)) != NULL) {
		struct item *item = item_of(head);
		if (fails(e, scope, item)) {
			end_waiting(w, item, result, refusal);
			continue;
		}
		lane_list_push(&e->waiting, head);
		e->count++;
		w->park.messages++;
	}
	e->asked &= (uint8_t)~answered_by(scope);
	settle(w, e);
}

bool park_cancel(struct dp_worker *w, struct spot_key key, uint64_t call)
{
	struct park_entry *e = park_find(&w->park, key);
	struct item *found = NULL;
	if (e == NULL)
		return false;
	struct lane_list all = take_all(w, e);
	struct item_head *head;
	while ((head = lane_list_pop(&all)) != NULL) {
		const struct envelope *env = &item_of(head)->env;
		if (env->reply.kind == REPLY_CALL && env->reply.operation_id == call) {
			found = item_of(head);
			continue;
		}
		lane_list_push(&e->waiting, head);
		e->count++;
		w->park.messages++;
	}
	settle(w, e);
	if (found == NULL)
		return false;
	COUNT(w, messages_cancelled);
	end_waiting(w, found, result_refused(RESULT_CANCELLED, REASON_NONE), NULL);
	return true;
}

// Reserves the message's place past `opening`, or ends it. True: item is admitted.
static bool reserve_first(struct dp_worker *w, struct dp_spot *spot, struct item *item)
{
	struct envelope *env = &item->env;
	uint32_t charge = deliver_item_charge(w, item);
	explain_parked(w, env);
	if (env->deadline_boot_ns <= w->now_ns) {
		end_waiting(w, item, expired(), NULL);
		return false;
	}
	if (!lease_valid(w, w->now_ns)) {
		end_waiting(w, item, result_refused(RESULT_STALE_ROUTE, REASON_LEASE_LOST), NULL);
		return false;
	}
	if (charge > spot_bounds(spot)->bytes_max) {
		end_waiting(w, item, result_refused(RESULT_INVALID_OPERATION, REASON_TOO_LARGE), NULL);
		return false;
	}
	if (env->spot_type.value != 0 && env->spot_type.value != spot->type->key.value) {
		end_waiting(w, item, result_refused(RESULT_TYPE_MISMATCH, REASON_NONE), NULL);
		return false;
	}
	if (lane_reserve_first(&spot->application, *spot_bounds(spot), charge) != LANE_ADMITTED) {
		end_waiting(w, item, result_refused(RESULT_UNAVAILABLE, REASON_CLOSING), NULL);
		return false;
	}
	env->spot = spot;
	env->charge_bytes = charge;
	env->authority = spot->authority_generation;
	env->since_ticks = w->now_ticks;
	if (env->explain != NULL) {
		env->explain->route = "activated";
		env->explain->filter = "passed";
		env->explain->lane_verdict = "admitted";
		env->explain->home_worker = spot->home_worker;
		env->explain->charge_bytes = charge;
		env->explain->bounds = *spot_bounds(spot);
		env->explain->process = "admitted";
	}
	COUNT(w, messages_accepted);
	return true;
}

void park_open(struct dp_worker *w, struct command *command)
{
	struct dp_spot *spot = command->spot;
	struct park_entry *e = park_find(&w->park, spot->key);
	struct item *first = NULL;
	while (e != NULL && first == NULL && e->waiting.head != NULL) {
		struct item *item = item_of(lane_list_pop(&e->waiting));
		e->count--;
		w->park.messages--;
		if (reserve_first(w, spot, item))
			first = item;
	}
	command->first = first;
	if (spot->home_worker == w->index) {
		lifecycle_open(w, command);
		park_release(w, spot->key);
		return;
	}
	if (first != NULL) {
		COUNT(w, messages_crossed);
		ledger_hand_out(&w->shard, first->env.process_bytes);
	}
	command->crossed = true;
	cross_send(w, spot->home_worker, &command->head);
	if (e == NULL)
		return;
	// The rest waits for the lane to open: control is asked again and releases it then.
	e->asked = 0;
	settle(w, e);
}

static void expire_entry(struct dp_worker *w, struct park_entry *e)
{
	struct lane_list all = take_all(w, e);
	struct item_head *head;
	while ((head = lane_list_pop(&all)) != NULL) {
		struct item *item = item_of(head);
		if (item->env.deadline_boot_ns <= w->now_ns) {
			end_waiting(w, item, expired(), NULL);
			continue;
		}
		lane_list_push(&e->waiting, head);
		e->count++;
		w->park.messages++;
		if (item->env.deadline_boot_ns < w->park.next_expiry_ns)
			w->park.next_expiry_ns = item->env.deadline_boot_ns;
	}
	settle(w, e);
}

bool park_tick(struct dp_worker *w)
{
	struct park_table *park = &w->park;
	bool any = false;
	if (park->due > 0)
		for (uint32_t i = 0; i < park->entries_used && park->due > 0; i++)
			if (park->entries[i].used && park->entries[i].due != 0)
				tell(w, &park->entries[i]);
	if (LIKELY(w->now_ns < park->next_expiry_ns))
		return any;
	park->next_expiry_ns = UINT64_MAX;
	for (uint32_t i = 0; i < park->entries_used; i++)
		if (park->entries[i].used)
			expire_entry(w, &park->entries[i]);
	if (park->next_expiry_ns < w->now_ns + EXPIRY_GRAIN_NS)
		park->next_expiry_ns = w->now_ns + EXPIRY_GRAIN_NS;
	return true;
}

void park_table_fini(struct dp_worker *w)
{
	for (uint32_t i = 0; i < w->park.entries_used; i++) {
		struct park_entry *e = &w->park.entries[i];
		struct item_head *head;
		if (!e->used)
			continue;
		struct lane_list all = take_all(w, e);
		while ((head = lane_list_pop(&all)) != NULL)
			deliver_item_end(w, item_of(head));
	}
	mem_free(w->park.entries);
	mem_free(w->park.buckets);
}
