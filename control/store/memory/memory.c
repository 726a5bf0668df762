// SPDX-License-Identifier: BSD-3-Clause
#include "store/memory/memory.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/memory/rows.h"

enum { PLANTS_MAX = 16 };

struct plant {
	enum store_op_kind kind; // 0: any
	enum memory_fault fault;
	uint32_t count;
};

struct pending {
	struct pending *next;
	struct store_op *op;
	uint64_t due_poll;
	bool applied; // the answer waits for its submitter
};

struct memory_data { // what all processes at one store see
	struct spot_rows spots;
	uint64_t writes;
	struct store_node_row nodes[STORE_NODES_MAX];
	uint32_t node_count;
	uint32_t users;
	uint64_t last_generation;
};

struct memory_store { // one process's door to it
	struct store base;
	struct clock *clock;
	struct rng rng;
	struct memory_data *data;
	struct memory_faults faults;
	uint64_t fault_counts[MEMORY_FAULT_END];
	struct plant plants[PLANTS_MAX];
	struct pending *first, **end;
	uint64_t polls, pending;
	bool held, damaged;
};

static struct memory_store *memory_of(struct store *store)
{
	return container_of(store, struct memory_store, base);
}

// ---- rows ----
// NULL: no such row. Else `room`, filled.
static struct store_spot_row *spot_find(
	const struct memory_data *m, struct spot_key key, struct store_spot_row *room)
{
	return spot_rows_read(&m->spots, key, room) ? room : NULL;
}

static void spot_insert(struct memory_data *m, const struct store_spot_row *row)
{
	spot_rows_insert(&m->spots, row);
	m->writes++;
}

static void spot_remove(struct memory_data *m, struct spot_key key)
{
	spot_rows_remove(&m->spots, key);
	m->writes++;
}

static struct store_node_row *node_row(struct memory_data *m, const char *node_id)
{
	for (uint32_t i = 0; i < m->node_count; i++)
		if (strcmp(m->nodes[i].node_id, node_id) == 0)
			return &m->nodes[i];
	return NULL;
}

// ---- operations: each returns its outcome and fills the op ----
static enum store_outcome conflict_row(struct store_op *op, const struct store_spot_row *row)
{
	if (row != NULL)
		op->row = *row;
	else
		op->row.exists = false;
	return STORE_CONFLICT;
}

static bool fences_match(const struct store_spot_row *row, const struct store_op *op)
{
	return store_boot_equal(row->owner_boot, op->row.owner_boot) &&
	       row->object_generation.value == op->row.object_generation.value &&
	       row->authority_generation.value == op->row.authority_generation.value;
}

static enum store_outcome spot_claim(struct memory_data *m, struct store_op *op)
{
	struct store_spot_row room, *row = spot_find(m, op->row.key, &room);
	if (row == NULL) {
		op->row.state = STORE_SPOT_CREATING;
		op->row.last_operation = op->id;
		op->row.version = store_version_of(op->id);
		op->row.exists = true;
		spot_insert(m, &op->row);
		return STORE_DONE;
	}
	bool mine =
		row->state == STORE_SPOT_CREATING && store_op_equal(row->last_operation, op->id);
	conflict_row(op, row);
	return mine ? STORE_DONE : STORE_CONFLICT;
}

static enum store_outcome spot_commit(struct memory_data *m, struct store_op *op)
{
	struct store_spot_row room, *row = spot_find(m, op->row.key, &room);
	if (row == NULL)
		return conflict_row(op, NULL);
	bool attempt = row->state == STORE_SPOT_CREATING && fences_match(row, op) &&
		       store_op_equal(row->last_operation, op->row.last_operation);
	if (attempt) {
		row->state = STORE_SPOT_READY;
		row->last_operation = op->id;
		row->version = store_version_of(op->id);
		spot_rows_advance(&m->spots, row);
		m->writes++;
	}
	bool mine = row->state == STORE_SPOT_READY && store_op_equal(row->last_operation, op->id);
	conflict_row(op, row);
	return mine ? STORE_DONE : STORE_CONFLICT;
}

// Does the run that op watched go on?
static bool has_beaten_since(struct memory_data *m, const struct store_op *op)
{
	const struct store_node_row *row = node_row(m, op->node.node_id);
	return row != NULL && store_boot_equal(row->boot, op->node.boot) && !row->fenced &&
	       row->beat != op->expect_beat;
}

static enum store_outcome spot_delete(struct memory_data *m, struct store_op *op)
{
	struct store_spot_row room, *row = spot_find(m, op->row.key, &room);
	if (row == NULL)
		return conflict_row(op, NULL);
	bool hit = fences_match(row, op);
	if (op->kind == STORE_SPOT_CLEAN)
		hit = hit && !has_beaten_since(m, op);
	if (op->kind != STORE_SPOT_RELEASE)
		hit = hit && row->state == STORE_SPOT_CREATING &&
		      store_op_equal(row->last_operation, op->row.last_operation);
	else
		hit = hit && row->state == STORE_SPOT_READY;
	if (!hit)
		return conflict_row(op, row);
	spot_remove(m, op->row.key);
	op->row.exists = false;
	return STORE_DONE;
}

struct row_walk {
	struct memory_data *store;
	struct store_op *op;
};

static bool remove_former(const struct store_spot_row *row, void *arg)
{
	struct row_walk *walk = arg;
	struct store_op *op = walk->op;
	if (strcmp(row->owner_node, op->row.owner_node) == 0 &&
		!store_boot_equal(row->owner_boot, op->row.owner_boot)) {
		spot_remove(walk->store, row->key);
		op->count++;
	}
	return op->count < op->limit;
}

static enum store_outcome spot_former(struct memory_data *m, struct store_op *op)
{
	op->count = 0;
	if (op->limit > 0)
		spot_rows_each(&m->spots, remove_former, &(struct row_walk){m, op});
	return STORE_DONE;
}

static int key_compare(struct spot_key a, struct spot_key b)
{
	uint8_t x[KEY_BYTES], y[KEY_BYTES];
	spot_key_bytes(a, x);
	spot_key_bytes(b, y);
	return memcmp(x, y, KEY_BYTES);
}

// Keeps the `limit` smallest keys after row.key, sorted by insertion.
static bool keep_smallest(const struct store_spot_row *row, void *arg)
{
	struct store_op *op = arg;
	if (!spot_key_is_zero(op->row.key) && key_compare(row->key, op->row.key) <= 0)
		return true;
	uint32_t at = op->count;
	while (at > 0 && key_compare(op->rows[at - 1].key, row->key) > 0)
		at--;
	if (at >= op->limit)
		return true;
	uint32_t moved = op->count - at;
	if (op->count == op->limit)
		moved--;
	else
		op->count++;
	memmove(&op->rows[at + 1], &op->rows[at], moved * sizeof(op->rows[0]));
	op->rows[at] = *row;
	return true;
}

static enum store_outcome spot_list(struct memory_data *m, struct store_op *op)
{
	op->count = 0;
	spot_rows_each(&m->spots, keep_smallest, op);
	return STORE_DONE;
}

static enum store_outcome generation_draw(struct memory_data *m, struct store_op *op)
{
	uint64_t left = GENERATION_MAX - m->last_generation;
	if (op->range_count > left)
		op->range_count = left;
	if (op->range_count == 0)
		return STORE_EXHAUSTED;
	op->range_first = m->last_generation + 1;
	m->last_generation += op->range_count;
	return STORE_DONE;
}

static enum store_outcome node_join(struct memory_data *m, struct store_op *op)
{
	struct store_node_row *row = node_row(m, op->node.node_id);
	if (row != NULL && store_boot_equal(row->boot, op->node.boot)) {
		op->node = *row;
		return STORE_DONE;
	}
	if (row == NULL) {
		if (!store_boot_is_zero(op->expect_boot) || m->node_count == STORE_NODES_MAX)
			return STORE_CONFLICT;
		row = &m->nodes[m->node_count++];
		row->lease_generation.value = 0;
	} else if (!store_boot_equal(row->boot, op->expect_boot) ||
		   (!store_boot_is_zero(row->boot) && row->beat != op->expect_beat)) {
		op->node = *row;
		return STORE_CONFLICT;
	}
	if (row->lease_generation.value == GENERATION_MAX)
		return STORE_EXHAUSTED;
	op->node.lease_generation.value = row->lease_generation.value + 1;
	op->node.beat = 1;
	op->node.fenced = false;
	op->node.exists = true;
	*row = op->node;
	return STORE_DONE;
}

static enum store_outcome node_change(struct memory_data *m, struct store_op *op)
{
	struct store_node_row *row = node_row(m, op->node.node_id);
	bool member = row != NULL && store_boot_equal(row->boot, op->node.boot);
	if (!member || (op->kind == STORE_NODE_RENEW && row->fenced)) {
		op->node.exists = row != NULL;
		if (row != NULL)
			op->node = *row;
		return STORE_CONFLICT;
	}
	if (op->kind == STORE_NODE_RENEW)
		row->beat++;
	else
		row->boot = (struct store_boot_id){{0}};
	op->node = *row;
	return STORE_DONE;
}

static enum store_outcome node_fence(struct memory_data *m, struct store_op *op)
{
	struct store_node_row *row = node_row(m, op->node.node_id);
	bool hit = row != NULL && store_boot_equal(row->boot, op->node.boot) &&
		   (row->fenced || row->beat == op->expect_beat);
	op->node.exists = row != NULL;
	if (hit)
		row->fenced = true;
	if (row != NULL)
		op->node = *row;
	return hit ? STORE_DONE : STORE_CONFLICT;
}

static bool release_taken(const struct store_spot_row *row, void *arg)
{
	struct row_walk *walk = arg;
	struct store_op *op = walk->op;
	if (strcmp(row->owner_node, op->node.node_id) != 0)
		return true;
	if (row->authority_generation.value == GENERATION_MAX) { // T6
		op->outcome = STORE_EXHAUSTED;
		return false;
	}
	spot_remove(walk->store, row->key);
	op->count++;
	return op->count < op->limit;
}

static enum store_outcome spot_fence(struct memory_data *m, struct store_op *op)
{
	struct store_node_row *row = node_row(m, op->node.node_id);
	bool over = row != NULL && store_boot_equal(row->boot, op->node.boot) &&
		    (row->fenced || store_boot_is_zero(row->boot));
	op->count = 0;
	op->node.exists = row != NULL;
	if (!over) {
		if (row != NULL)
			op->node = *row;
		return STORE_CONFLICT;
	}
	op->outcome = STORE_DONE;
	if (op->limit > 0)
		spot_rows_each(&m->spots, release_taken, &(struct row_walk){m, op});
	return op->outcome;
}

static enum store_outcome node_read(struct memory_data *m, struct store_op *op)
{
	struct store_node_row *row = node_row(m, op->node.node_id);
	op->node.exists = row != NULL;
	if (row != NULL)
		op->node = *row;
	return STORE_DONE;
}

static enum store_outcome apply(struct memory_store *store, struct store_op *op)
{
	struct memory_data *m = store->data;
	op->store_wall_ns = store->clock->wall_ns(store->clock);
	switch (op->kind) {
	case STORE_NODE_READ:
		return node_read(m, op);
	case STORE_NODE_JOIN:
		return node_join(m, op);
	case STORE_NODE_RENEW:
	case STORE_NODE_LEAVE:
		return node_change(m, op);
	case STORE_NODE_LIST:
		memcpy(op->nodes, m->nodes, m->node_count * sizeof(m->nodes[0]));
		op->count = m->node_count;
		return STORE_DONE;
	case STORE_SPOT_READ: {
		struct spot_key key = op->row.key; // which the row read would overwrite
		(void)spot_rows_read(&m->spots, key, &op->row);
		return STORE_DONE;
	}
	case STORE_SPOT_CLAIM:
		return spot_claim(m, op);
	case STORE_SPOT_COMMIT:
		return spot_commit(m, op);
	case STORE_SPOT_ABORT:
	case STORE_SPOT_CLEAN:
	case STORE_SPOT_RELEASE:
		return spot_delete(m, op);
	case STORE_SPOT_FORMER:
		return spot_former(m, op);
	case STORE_GENERATION_DRAW:
		return generation_draw(m, op);
	case STORE_SPOT_LIST:
		return spot_list(m, op);
	case STORE_NODE_FENCE:
		return node_fence(m, op);
	case STORE_SPOT_FENCE:
		return spot_fence(m, op);
	}
	CHECK(!"operation kind");
	return STORE_DAMAGED;
}

// ---- faults ----
static bool grows_disk(enum store_op_kind kind)
{
	return kind == STORE_NODE_JOIN || kind == STORE_NODE_RENEW || kind == STORE_SPOT_CLAIM ||
	       kind == STORE_SPOT_COMMIT || kind == STORE_GENERATION_DRAW;
}

static enum memory_fault planted_fault(struct memory_store *m, enum store_op_kind kind)
{
	for (uint32_t i = 0; i < PLANTS_MAX; i++) {
		struct plant *p = &m->plants[i];
		if (p->count == 0 || (p->kind != 0 && p->kind != kind))
			continue;
		if (p->fault == MEMORY_FAULT_FULL && !grows_disk(kind))
			continue;
		p->count--;
		return p->fault;
	}
	return MEMORY_FAULT_NONE;
}

static enum memory_fault draw_fault(struct memory_store *m, enum store_op_kind kind)
{
	enum memory_fault planted = planted_fault(m, kind);
	if (planted != MEMORY_FAULT_NONE)
		return planted;
	uint64_t dice = rng_below(&m->rng, 1000);
	uint64_t edge = m->faults.before_permille;
	if (dice < edge)
		return MEMORY_FAULT_BEFORE;
	if (dice < (edge += m->faults.answer_permille))
		return MEMORY_FAULT_ANSWER;
	if (dice < (edge += m->faults.lost_permille))
		return MEMORY_FAULT_LOST;
	if (dice < edge + m->faults.full_permille && grows_disk(kind))
		return MEMORY_FAULT_FULL;
	return MEMORY_FAULT_NONE;
}

static enum store_outcome run(struct memory_store *m, struct store_op *op)
{
	if (m->damaged)
		return STORE_DAMAGED;
	enum memory_fault fault = draw_fault(m, op->kind);
	m->fault_counts[fault]++;
	switch (fault) {
	case MEMORY_FAULT_BEFORE:
		return STORE_UNREACHABLE;
	case MEMORY_FAULT_ANSWER: {
		struct store_op lost = *op; // what it found never reaches the caller
		(void)apply(m, &lost);
		return STORE_UNKNOWN;
	}
	case MEMORY_FAULT_LOST:
		return STORE_UNKNOWN;
	case MEMORY_FAULT_FULL:
		return STORE_FULL;
	case MEMORY_FAULT_DAMAGE:
		m->damaged = true;
		return STORE_DAMAGED;
	case MEMORY_FAULT_NONE:
	case MEMORY_FAULT_END:
		break;
	}
	return apply(m, op);
}

// ---- the port ----
static void memory_submit(struct store *store, struct store_op *op)
{
	struct memory_store *m = memory_of(store);
	struct pending *p = mem_zalloc(sizeof(*p));
	CHECK(p != NULL);
	p->op = op;
	p->due_poll = m->polls + 1 + rng_below(&m->rng, (uint64_t)m->faults.delay_polls_max + 1);
	*m->end = p;
	m->end = &p->next;
	m->pending++;
}

static void unlink_pending(struct memory_store *m, struct pending **at)
{
	struct pending *p = *at;
	*at = p->next;
	if (p->next == NULL)
		m->end = at;
	m->pending--;
	mem_free(p);
}

void memory_store_turn(struct store *store)
{
	struct memory_store *m = memory_of(store);
	m->polls++;
	for (struct pending *p = m->first; !m->held && p != NULL; p = p->next) {
		if (p->applied || p->due_poll > m->polls)
			continue;
		p->op->outcome = run(m, p->op);
		p->applied = true;
	}
}

static uint32_t memory_poll(struct store *store)
{
	struct memory_store *m = memory_of(store);
	uint32_t done = 0;
	memory_store_turn(store);
	// What a completion submits is due at a later poll, so this walk ends.
	for (struct pending **at = &m->first; !m->held && *at != NULL;) {
		struct store_op *op = (*at)->op;
		if (!(*at)->applied) {
			at = &(*at)->next;
			continue;
		}
		unlink_pending(m, at);
		store_finish(store, op);
		done++;
	}
	return done;
}

static int memory_wait_fd(struct store *store)
{
	(void)store;
	return -1;
}

static void memory_destroy(struct store *store)
{
	struct memory_store *m = memory_of(store);
	while (m->first != NULL) {
		struct store_op *op = m->first->op;
		if (!m->first->applied)
			op->outcome = STORE_UNKNOWN;
		unlink_pending(m, &m->first);
		store_finish(store, op);
	}
	if (--m->data->users == 0) {
		spot_rows_fini(&m->data->spots);
		mem_free(m->data);
	}
	mem_free(m);
}

static const struct store_ops memory_ops = {
	"memory", memory_submit, memory_poll, memory_wait_fd, memory_destroy};

static struct store *door_create(struct memory_data *data, struct clock *clock, uint64_t seed)
{
	struct memory_store *m = mem_zalloc(sizeof(*m));
	if (m == NULL)
		return NULL;
	m->base.ops = &memory_ops;
	m->data = data;
	data->users++;
	m->clock = clock;
	rng_seed(&m->rng, seed);
	m->end = &m->first;
	return &m->base;
}

struct store *memory_store_create(struct clock *clock, uint64_t seed)
{
	struct memory_data *data = mem_zalloc(sizeof(*data));
	if (data == NULL)
		return NULL;
	struct store *store = spot_rows_init(&data->spots) ? door_create(data, clock, seed) : NULL;
	if (store == NULL) {
		if (data->spots.buckets != NULL)
			spot_rows_fini(&data->spots);
		mem_free(data);
	}
	return store;
}

struct store *memory_store_share(struct store *store, struct clock *clock, uint64_t seed)
{
	return door_create(memory_of(store)->data, clock, seed);
}

void memory_store_faults(struct store *store, const struct memory_faults *faults)
{
	memory_of(store)->faults = *faults;
}

void memory_store_plant(
	struct store *store, enum store_op_kind kind, enum memory_fault fault, uint32_t count)
{
	struct memory_store *m = memory_of(store);
	for (uint32_t i = 0; i < PLANTS_MAX; i++)
		if (m->plants[i].count == 0) {
			m->plants[i] = (struct plant){kind, fault, count};
			return;
		}
	CHECK(!"room for planted faults");
}

void memory_store_hold(struct store *store, bool hold)
{
	memory_of(store)->held = hold;
}

// What it would have answered is lost.
static void apply_perhaps(struct memory_store *m, const struct store_op *op)
{
	struct store_op lost = *op;
	bool lists = op->kind == STORE_NODE_LIST || op->kind == STORE_SPOT_LIST;
	if (rng_below(&m->rng, 2) == 0 && !lists)
		(void)apply(m, &lost);
}

void memory_store_crash(struct store *store)
{
	struct memory_store *m = memory_of(store);
	while (m->first != NULL) {
		if (!m->first->applied)
			apply_perhaps(m, m->first->op);
		unlink_pending(m, &m->first);
	}
}

void memory_store_restart(struct store *store)
{
	struct memory_store *m = memory_of(store);
	for (struct pending *p = m->first; p != NULL; p = p->next) {
		if (!p->applied)
			apply_perhaps(m, p->op);
		p->op->outcome = STORE_UNKNOWN;
		p->applied = true;
	}
}

void memory_store_generation_set(struct store *store, uint64_t last)
{
	memory_of(store)->data->last_generation = last;
}

bool memory_store_spot(struct store *store, struct spot_key key, struct store_spot_row *out)
{
	return spot_rows_read(&memory_of(store)->data->spots, key, out);
}

bool memory_store_node(struct store *store, const char *node_id, struct store_node_row *out)
{
	struct store_node_row *row = node_row(memory_of(store)->data, node_id);
	if (row != NULL)
		*out = *row;
	return row != NULL;
}

void memory_store_node_put(struct store *store, const struct store_node_row *row)
{
	struct memory_data *m = memory_of(store)->data;
	struct store_node_row *at = node_row(m, row->node_id);
	CHECK(at != NULL || m->node_count < STORE_NODES_MAX);
	if (at == NULL)
		at = &m->nodes[m->node_count++];
	*at = *row;
	at->exists = true;
}

void memory_store_spot_put(struct store *store, const struct store_spot_row *row)
{
	struct memory_data *m = memory_of(store)->data;
	struct store_spot_row old;
	if (spot_find(m, row->key, &old) != NULL)
		spot_remove(m, row->key);
	spot_insert(m, row);
}

uint64_t memory_store_fault_count(struct store *store, enum memory_fault fault)
{
	return memory_of(store)->fault_counts[fault];
}

uint64_t memory_store_spot_count(struct store *store)
{
	return memory_of(store)->data->spots.count;
}

uint64_t memory_store_pending(struct store *store)
{
	return memory_of(store)->pending;
}

uint64_t memory_store_writes(struct store *store)
{
	return memory_of(store)->data->writes;
}

struct each {
	void (*visit)(const struct store_spot_row *row, void *arg);
	void *arg;
};

static bool visit_each(const struct store_spot_row *row, void *arg)
{
	struct each *each = arg;
	each->visit(row, each->arg);
	return true;
}

void memory_store_each(
	struct store *store, void (*visit)(const struct store_spot_row *row, void *arg), void *arg)
{
	spot_rows_each(&memory_of(store)->data->spots, visit_each, &(struct each){visit, arg});
}
