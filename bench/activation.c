// SPDX-License-Identifier: BSD-3-Clause
// New Spots a second: intent requests to ids that nobody has, in memory, both planes on one core,
// with the memory store and with SQLite (durable: each answer comes after its row was synced to
// disk).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench_node.h"
#include "json.h"
#include "load.h"
#include "mill.h"
#include "publish/publish.h"
#include "scenario.h"
#include "stats.h"
#include "store/sqlite/sqlite.h"
#include "worker/worker.h"

enum { BATCH = 4096, WAIT_S = 60 };

struct activation_run {
	const struct bench_options *options;
	struct mill *mill;
	struct load load;
	struct bench_node node;
};

// Both planes on this thread until `want` answers came or nothing came for WAIT_S.
static bool run_until_answers(struct activation_run *r, uint32_t want)
{
	struct clock *clock = r->node.clock;
	uint64_t limit = clock_boot_ns(clock) + WAIT_S * UINT64_C(1000000000);
	while (mill_answers(r->mill) < want && clock_boot_ns(clock) < limit) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
		bench_node_step(&r->node);
	}
	return mill_answers(r->mill) >= want;
}

static bool say_hello(struct activation_run *r)
{
	uint32_t bytes;
	mill_set_bytes(r->mill, 0, load_hello(&r->load, mill_payload(r->mill, 0)));
	mill_load(r->mill, 1);
	if (!run_until_answers(r, 1))
		return false;
	const uint8_t *payload = mill_answer(r->mill, 0, &bytes);
	return load_take_challenge(&r->load, payload, bytes);
}

// Builds Spots first .. first + n; false when an answer is missing or wrong.
static bool build_batch(struct activation_run *r, uint32_t first, uint32_t n)
{
	uint32_t bytes, right = 0;
	for (uint32_t i = 0; i < n; i++)
		mill_set_bytes(r->mill, i,
			load_build(&r->load, first + i, mill_payload(r->mill, i), MILL_ROOM_BYTES));
	mill_load(r->mill, n);
	if (!run_until_answers(r, n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *payload = mill_answer(r->mill, i, &bytes);
		right += load_reply(&r->load, payload, bytes);
	}
	return right == n;
}

static bool measure(struct activation_run *r, struct stats *rate)
{
	const struct bench_options *o = r->options;
	uint32_t each = o->spots / o->repetitions, next = 0;
	for (uint32_t rep = 0; rep < o->repetitions; rep++) {
		uint64_t start = clock_boot_ns(r->node.clock);
		for (uint32_t end = next + each; next < end;) {
			uint32_t n = end - next < BATCH ? end - next : BATCH;
			if (!build_batch(r, next, n))
				return false;
			next += n;
		}
		stats_add(
			rate, (double)each * 1e9 / (double)(clock_boot_ns(r->node.clock) - start));
	}
	return true;
}

static bool run_with(struct activation_run *r, struct store *store, struct stats *rate)
{
	if (!bench_node_open(&r->node, store, r->options->spots, r->options->counter_module,
		    mill_queue(r->mill)))
		return false;
	publish_reader_enter();
	while (!bench_node_serving(&r->node)) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
		bench_node_step(&r->node);
	}
	bool right = say_hello(r) && measure(r, rate);
	if (!right)
		fprintf(stderr,
			"spotbench: %" PRIu64 " right, %" PRIu64 " wrong, %" PRIu64
			" refused (kind %u reason %u), %" PRIu64 " foreign, %" PRIu64 " missing\n",
			r->load.counts.answered, r->load.counts.wrong, r->load.counts.refused,
			r->load.wrong_kind, r->load.wrong_reason, r->load.counts.foreign,
			load_in_flight(&r->load));
	publish_reader_leave();
	bench_node_close(&r->node);
	return right;
}

static struct store *open_sqlite(const char *path)
{
	struct store *store = NULL;
	char why[256];
	struct sqlite_store_config config = {
		.path = path, .lease_wait_ms = 2000, .spot_wait_ms = 2000, .clock = clock_system()};
	if (sqlite_store_create(&config, &store, why) != SQLITE_OPEN_DONE)
		fprintf(stderr, "spotbench: %s: %s\n", path, why);
	return store;
}

// One run in a process of its own: a node is made once in a process.
static int run_store(const struct bench_options *options, const char *sqlite_path)
{
	static struct activation_run r;
	struct stats rate = {0};
	const char *name = sqlite_path != NULL ? "sqlite" : "memory";
	r = (struct activation_run){.options = options, .mill = mill_create()};
	publish_start();
	if (r.mill == NULL || !load_init(&r.load, options->spots, options->seed))
		return BENCH_ENVIRONMENT;
	struct store *store = sqlite_path != NULL ? open_sqlite(sqlite_path) : NULL;
	if (sqlite_path != NULL && store == NULL)
		return BENCH_ENVIRONMENT;
	bool right = run_with(&r, store, &rate);
	printf("activation, %s store, %u new Spots: %.1f k a second (%.1f .. %.1f)\n", name,
		options->spots, stats_median(&rate) / 1e3, stats_min(&rate) / 1e3,
		stats_max(&rate) / 1e3);
	struct bench_json j = bench_json_begin(options->json, "activation");
	bench_json_parameter(&j, "spots", options->spots);
	bench_json_samples(&j, name, "Spots/s", &rate);
	bench_json_end(&j);
	load_fini(&r.load);
	mill_destroy(r.mill);
	return right ? BENCH_OK : BENCH_WRONG;
}

int scenario_activation(const struct bench_options *options)
{
	if (options->sqlite_folder == NULL)
		return run_store(options, NULL);
	char folder[256], path[300];
	snprintf(folder, sizeof(folder), "%s/spotbench.XXXXXX", options->sqlite_folder);
	if (mkdtemp(folder) == NULL) {
		perror(folder);
		return BENCH_ENVIRONMENT;
	}
	snprintf(path, sizeof(path), "%s/store.db", folder);
	int code = run_store(options, path);
	static const char *const files[] = {"", "-wal", "-shm"};
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/store.db%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
	return code;
}
