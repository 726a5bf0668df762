// SPDX-License-Identifier: BSD-3-Clause
// Two lanes, each a queue, a thread and a connection. A lane takes a run of queued operations, does
// them in one transaction, and puts them on the common list of the finished. Writers of the two lanes
// take turns through `turn`: SQLite's own waiting polls, and a polling waiter can starve beside a busy
// neighbour, so within this process the lease lane's next transaction simply goes first.
#include "store/sqlite/sqlite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "store/sqlite/create.h"
#include "store/sqlite/statements.h"

enum { BATCH_MS_DEFAULT = 10, BATCH_OPS_DEFAULT = 512 };

struct op_queue {
	struct store_op *first, **end;
};

struct sqlite_store;

struct lane {
	struct sqlite_store *store;
	struct connection connection;
	struct op_queue queued; // store->mutex
	pthread_cond_t wakeup;
	pthread_t thread;
	bool leases;
};

struct sqlite_store {
	struct store base;
	struct lane spots, nodes;
	pthread_mutex_t mutex; // queues, finished, stopping
	struct op_queue finished;
	bool stopping;
	pthread_mutex_t turn_mutex;
	pthread_cond_t turn_changed;
	uint32_t leases_waiting; // turn_mutex
	bool turn_taken;         // turn_mutex
	atomic_bool poisoned;    // set by a lane, read by both (relaxed: it only ever becomes true)
	int wake_fd;
	uint64_t batch_ns;
	uint32_t batch_ops_max;
};

static struct sqlite_store *sqlite_of(struct store *store)
{
	return container_of(store, struct sqlite_store, base);
}

// ---- queues ----
static void queue_init(struct op_queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static void queue_push(struct op_queue *q, struct store_op *op)
{
	op->next = NULL;
	*q->end = op;
	q->end = &op->next;
}

static struct store_op *queue_pop(struct op_queue *q)
{
	struct store_op *op = q->first;
	if (op == NULL)
		return NULL;
	q->first = op->next;
	if (q->first == NULL)
		q->end = &q->first;
	return op;
}

static void queue_append(struct op_queue *q, struct op_queue *tail)
{
	if (tail->first == NULL)
		return;
	*q->end = tail->first;
	q->end = tail->end;
	queue_init(tail);
}

// ---- the write turn ----
static void turn_take(struct lane *lane)
{
	struct sqlite_store *s = lane->store;
	pthread_mutex_lock(&s->turn_mutex);
	s->leases_waiting += lane->leases;
	while (s->turn_taken || (!lane->leases && s->leases_waiting > 0))
		pthread_cond_wait(&s->turn_changed, &s->turn_mutex);
	s->leases_waiting -= lane->leases;
	s->turn_taken = true;
	pthread_mutex_unlock(&s->turn_mutex);
}

static void turn_give(struct lane *lane)
{
	struct sqlite_store *s = lane->store;
	pthread_mutex_lock(&s->turn_mutex);
	s->turn_taken = false;
	pthread_cond_broadcast(&s->turn_changed);
	pthread_mutex_unlock(&s->turn_mutex);
}

// ---- one transaction ----
static uint64_t monotonic_ns(void)
{
	struct timespec ts;
	CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void finish(struct lane *lane, struct op_queue *done)
{
	struct sqlite_store *s = lane->store;
	if (done->first == NULL)
		return;
	pthread_mutex_lock(&s->mutex);
	queue_append(&s->finished, done);
	pthread_mutex_unlock(&s->mutex);
	uint64_t one = 1;
	ssize_t n = write(s->wake_fd, &one, sizeof(one));
	(void)n; // a full counter is readable already
}

// Everything in the batch shares the fate of its transaction.
static void end_all(struct lane *lane, struct op_queue *batch, enum store_outcome outcome)
{
	if (outcome == STORE_DAMAGED)
		atomic_store_explicit(&lane->store->poisoned, true, memory_order_relaxed);
	for (struct store_op *op = batch->first; op != NULL; op = op->next)
		op->outcome = outcome;
}

static void settle_all(struct lane *lane, struct op_queue *batch)
{
	for (struct store_op *op = batch->first; op != NULL; op = op->next)
		op->outcome = connection_settle(&lane->connection, op);
}

static void roll_back(struct connection *c)
{
	if (!sqlite3_get_autocommit(c->db) && connection_do(c, STATEMENT_ROLLBACK) != SQLITE_OK)
		c->code = SQLITE_IOERR; // SQLite rolled back by itself; nothing was applied either way
}

// Ends the transaction of `batch`, whose operations all went well so far.
static void commit_batch(struct lane *lane, struct op_queue *batch)
{
	struct connection *c = &lane->connection;
	int rc = connection_do(c, STATEMENT_COMMIT);
	if (rc == SQLITE_OK)
		return;
	bool still_open = !sqlite3_get_autocommit(c->db);
	enum store_outcome outcome = outcome_of_code(c->db, rc);
	roll_back(c);
	end_all(lane, batch, outcome);
	// Still open after COMMIT: nothing was applied. Otherwise only a failed write leaves doubt.
	if (!still_open && outcome == STORE_UNREACHABLE)
		settle_all(lane, batch);
}

// Runs operations from `in` until the batch is full or its time is over; the rest stays in `in`.
static void run_batch(struct lane *lane, struct op_queue *in, bool writes)
{
	struct sqlite_store *s = lane->store;
	struct connection *c = &lane->connection;
	struct op_queue batch;
	queue_init(&batch);
	int rc = connection_do(c, writes ? STATEMENT_BEGIN_WRITE : STATEMENT_BEGIN_READ);
	enum store_outcome broken = rc == SQLITE_OK ? STORE_DONE : outcome_of_code(c->db, rc);
	uint64_t until = monotonic_ns() + s->batch_ns;
	uint32_t count = 0;
	for (struct store_op *op; count < s->batch_ops_max && (op = queue_pop(in)) != NULL; count++) {
		queue_push(&batch, op);
		if (broken == STORE_DONE) {
			op->outcome = connection_run(c, op);
			bool verdict = op->outcome == STORE_DONE || op->outcome == STORE_CONFLICT ||
				       op->outcome == STORE_EXHAUSTED;
			broken = verdict ? STORE_DONE : op->outcome;
		}
		if (broken == STORE_DONE && monotonic_ns() >= until)
			break;
	}
	if (broken == STORE_DONE) {
		commit_batch(lane, &batch);
	} else {
		roll_back(c);
		end_all(lane, &batch, broken);
	}
	finish(lane, &batch);
}

static void run_writes(struct lane *lane, struct op_queue *writes)
{
	while (writes->first != NULL) {
		turn_take(lane);
		run_batch(lane, writes, true);
		turn_give(lane);
	}
}

static void run_taken(struct lane *lane, struct op_queue *taken)
{
	struct op_queue reads, writes;
	queue_init(&reads);
	queue_init(&writes);
	for (struct store_op *op; (op = queue_pop(taken)) != NULL;)
		queue_push(store_op_writes(op->kind) ? &writes : &reads, op);
	if (atomic_load_explicit(&lane->store->poisoned, memory_order_relaxed)) {
		queue_append(&reads, &writes);
		end_all(lane, &reads, STORE_DAMAGED);
		finish(lane, &reads);
		return;
	}
	// Reads first: they need no lock, and a caller that wants to read what it wrote waits for the
	// write's completion before it asks.
	while (reads.first != NULL)
		run_batch(lane, &reads, false);
	run_writes(lane, &writes);
}

static void *lane_main(void *arg)
{
	struct lane *lane = arg;
	struct sqlite_store *s = lane->store;
	struct op_queue taken;
	queue_init(&taken);
	for (;;) { // ends when the store stops and nothing is queued
		pthread_mutex_lock(&s->mutex);
		while (lane->queued.first == NULL && !s->stopping)
			pthread_cond_wait(&lane->wakeup, &s->mutex);
		queue_append(&taken, &lane->queued);
		pthread_mutex_unlock(&s->mutex);
		if (taken.first == NULL)
			return NULL;
		run_taken(lane, &taken);
	}
}

// ---- the port ----
static bool is_lease_op(enum store_op_kind kind)
{
	return kind == STORE_NODE_READ || kind == STORE_NODE_JOIN || kind == STORE_NODE_RENEW ||
	       kind == STORE_NODE_LEAVE || kind == STORE_NODE_LIST || kind == STORE_NODE_FENCE;
}

static void sqlite_submit(struct store *store, struct store_op *op)
{
	struct sqlite_store *s = sqlite_of(store);
	struct lane *lane = is_lease_op(op->kind) ? &s->nodes : &s->spots;
	pthread_mutex_lock(&s->mutex);
	CHECK(!s->stopping);
	queue_push(&lane->queued, op);
	pthread_cond_signal(&lane->wakeup);
	pthread_mutex_unlock(&s->mutex);
}

static uint32_t sqlite_poll(struct store *store)
{
	struct sqlite_store *s = sqlite_of(store);
	struct op_queue done;
	queue_init(&done);
	uint64_t rung;
	ssize_t n = read(s->wake_fd, &rung, sizeof(rung));
	(void)n; // nothing rung: nothing to clear
	pthread_mutex_lock(&s->mutex);
	queue_append(&done, &s->finished);
	pthread_mutex_unlock(&s->mutex);
	uint32_t count = 0;
	for (struct store_op *op; (op = queue_pop(&done)) != NULL; count++)
		store_finish(store, op);
	return count;
}

static int sqlite_wait_fd(struct store *store)
{
	return sqlite_of(store)->wake_fd;
}

static void free_store(struct sqlite_store *s)
{
	connection_close(&s->spots.connection);
	connection_close(&s->nodes.connection);
	pthread_cond_destroy(&s->spots.wakeup);
	pthread_cond_destroy(&s->nodes.wakeup);
	pthread_cond_destroy(&s->turn_changed);
	pthread_mutex_destroy(&s->turn_mutex);
	pthread_mutex_destroy(&s->mutex);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	mem_free(s);
}

static void stop_lanes(struct sqlite_store *s, bool spots_started, bool nodes_started)
{
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	pthread_cond_signal(&s->spots.wakeup);
	pthread_cond_signal(&s->nodes.wakeup);
	pthread_mutex_unlock(&s->mutex);
	if (spots_started)
		pthread_join(s->spots.thread, NULL);
	if (nodes_started)
		pthread_join(s->nodes.thread, NULL);
}

// What is queued is still done, so its outcome is the real one.
static void sqlite_destroy(struct store *store)
{
	struct sqlite_store *s = sqlite_of(store);
	stop_lanes(s, true, true);
	sqlite_poll(store);
	free_store(s);
}

static const struct store_ops sqlite_ops = {
	"sqlite", sqlite_submit, sqlite_poll, sqlite_wait_fd, sqlite_destroy};

static void lane_init(struct lane *lane, struct sqlite_store *s, struct clock *clock, bool leases)
{
	lane->store = s;
	lane->leases = leases;
	lane->connection.clock = clock;
	queue_init(&lane->queued);
	pthread_cond_init(&lane->wakeup, NULL);
}

static struct sqlite_store *new_store(const struct sqlite_store_config *config)
{
	struct sqlite_store *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	s->base.ops = &sqlite_ops;
	s->batch_ns = (config->batch_ms ? config->batch_ms : BATCH_MS_DEFAULT) * UINT64_C(1000000);
	s->batch_ops_max = config->batch_ops_max ? config->batch_ops_max : BATCH_OPS_DEFAULT;
	queue_init(&s->finished);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_mutex_init(&s->turn_mutex, NULL);
	pthread_cond_init(&s->turn_changed, NULL);
	lane_init(&s->spots, s, config->clock, false);
	lane_init(&s->nodes, s, config->clock, true);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s;
}

static bool start_lanes(struct sqlite_store *s)
{
	if (pthread_create(&s->spots.thread, NULL, lane_main, &s->spots) != 0)
		return false;
	if (pthread_create(&s->nodes.thread, NULL, lane_main, &s->nodes) == 0)
		return true;
	stop_lanes(s, true, false);
	return false;
}

enum sqlite_open sqlite_store_create(
	const struct sqlite_store_config *config, struct store **out_store, char out_why[256])
{
	out_why[0] = 0;
	enum sqlite_open verdict = database_prepare(config->path, config->lease_wait_ms, out_why);
	if (verdict != SQLITE_OPEN_DONE)
		return verdict;
	struct sqlite_store *s = new_store(config);
	if (s == NULL) {
		snprintf(out_why, 256, "out of memory");
		return SQLITE_OPEN_UNREACHABLE;
	}
	int rc = s->wake_fd < 0 ? SQLITE_CANTOPEN
			        : connection_open(&s->spots.connection, config->path,
					  config->spot_wait_ms);
	if (rc == SQLITE_OK)
		rc = connection_open(&s->nodes.connection, config->path, config->lease_wait_ms);
	if (rc == SQLITE_OK && start_lanes(s)) {
		*out_store = &s->base;
		return SQLITE_OPEN_DONE;
	}
	snprintf(out_why, 256, "%s: %s", config->path,
		rc == SQLITE_OK ? "cannot start a thread" : sqlite3_errstr(rc));
	verdict = outcome_of_code(NULL, rc) == STORE_DAMAGED && rc != SQLITE_OK
			  ? SQLITE_OPEN_DAMAGED
			  : SQLITE_OPEN_UNREACHABLE;
	free_store(s);
	return verdict;
}

const char *sqlite_store_library_version(void)
{
	return sqlite3_libversion();
}
