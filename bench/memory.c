// SPDX-License-Identifier: BSD-3-Clause
// Frames in memory on one core: what the router itself costs, without any driver.
#include <inttypes.h>
#include <jemalloc/jemalloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "bench_node.h"
#include "json.h"
#include "load.h"
#include "mill.h"
#include "planted.h"
#include "publish/publish.h"
#include "scenario.h"
#include "stats.h"
#include "worker/worker.h"
#include "yardstick.h"

enum { BUILD_BURST = 1024, TURNS_MAX = 1 << 20, ROUNDS_MAX = 4096 };

// Of fewer Spots the memory is lost in what else the process frees and takes meanwhile.
enum { IDLE_SPOTS_MIN = 50000 };

struct memory_run {
	const struct bench_options *options;
	struct mill *mill;
	struct load load;
	struct load beside; // the yardstick's
	struct yardstick *yardstick;
	struct bench_node node;
	struct planted planted;
};

// One repetition's rounds, ns a message; then the medians of all repetitions.
struct rounds {
	double router[ROUNDS_MAX], swap[ROUNDS_MAX], yardstick[ROUNDS_MAX];
};
struct figures {
	struct stats router, swap, yardstick, ratio;
};

static size_t allocated_bytes(void)
{
	uint64_t epoch = 1;
	size_t size = sizeof(epoch), bytes = 0;
	mallctl("epoch", &epoch, &size, &epoch, sizeof(epoch));
	size = sizeof(bytes);
	mallctl("stats.allocated", &bytes, &size, NULL, 0);
	return bytes;
}

static void pin_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

// Looks at all answers; how many were right.
static uint32_t take_answers(struct memory_run *r, struct load *load)
{
	uint32_t right = 0, bytes;
	for (uint32_t i = 0; i < mill_answers(r->mill); i++) {
		const uint8_t *payload = mill_answer(r->mill, i, &bytes);
		right += load_reply(load, payload, bytes);
	}
	return right;
}

// Both planes on this thread until `want` answers came.
static bool run_until_answers(struct memory_run *r, uint32_t want)
{
	for (uint32_t turns = 0; turns < TURNS_MAX && mill_answers(r->mill) < want; turns++) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
		bench_node_step(&r->node);
	}
	return mill_answers(r->mill) >= want;
}

static bool say_hello(struct memory_run *r)
{
	uint32_t bytes;
	mill_set_bytes(r->mill, 0, load_hello(&r->load, mill_payload(r->mill, 0)));
	mill_load(r->mill, 1);
	if (!run_until_answers(r, 1))
		return false;
	const uint8_t *payload = mill_answer(r->mill, 0, &bytes);
	return load_take_challenge(&r->load, payload, bytes);
}

static bool build_spots(struct memory_run *r)
{
	for (uint32_t done = 0; done < r->options->spots;) {
		uint32_t n = r->options->spots - done < BUILD_BURST ? r->options->spots - done
								    : BUILD_BURST;
		for (uint32_t i = 0; i < n; i++)
			mill_set_bytes(r->mill, i,
				load_build(&r->load, done + i, mill_payload(r->mill, i),
					MILL_ROOM_BYTES));
		mill_load(r->mill, n);
		if (!run_until_answers(r, n) || take_answers(r, &r->load) != n)
			return false;
		done += n;
	}
	return true;
}

static void write_requests(struct memory_run *r, struct load *load)
{
	for (uint32_t i = 0; i < MILL_FRAMES; i++) {
		load_request(load, mill_payload(r->mill, i));
		mill_set_bytes(r->mill, i, LOAD_FRAME_BYTES);
	}
	mill_load(r->mill, MILL_FRAMES);
}

// The two timed stretches, by name for a profiler that collects inside them only (README.md).
__attribute__((noipa)) static void work_off_router(struct memory_run *r)
{
	while (mill_left(r->mill) > 0) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
	}
}

// The same, slower on purpose.
static void work_off_planted(struct memory_run *r)
{
	while (mill_left(r->mill) > 0) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
		planted_after_turn(&r->planted, r->node.dp);
	}
}

__attribute__((noipa)) static void work_off_yardstick(struct memory_run *r)
{
	while (mill_left(r->mill) > 0)
		yardstick_turn(r->yardstick, mill_queue(r->mill));
}

static double ns_each(const struct memory_run *r, uint64_t ticks)
{
	return (double)ticks * 1e9 / (double)r->node.clock->ticks_hz / MILL_FRAMES;
}

// One round of the router: ns per message, or a negative number when an answer was wrong.
static double time_router(struct memory_run *r)
{
	write_requests(r, &r->load);
	uint64_t start = clock_ticks(r->node.clock);
	if (r->options->plant_delay_ns > 0)
		work_off_planted(r);
	else
		work_off_router(r);
	uint64_t ticks = clock_ticks(r->node.clock) - start;
	if (!run_until_answers(r, MILL_FRAMES) || take_answers(r, &r->load) != MILL_FRAMES)
		return -1;
	return ns_each(r, ticks);
}

static double time_yardstick(struct memory_run *r)
{
	write_requests(r, &r->beside);
	uint64_t start = clock_ticks(r->node.clock);
	work_off_yardstick(r);
	uint64_t ticks = clock_ticks(r->node.clock) - start;
	return take_answers(r, &r->beside) == MILL_FRAMES ? ns_each(r, ticks) : -1;
}

static double time_swap(struct memory_run *r)
{
	struct fabric_queue *queue = mill_queue(r->mill);
	mill_load(r->mill, MILL_FRAMES); // the frames as the last round left them
	uint64_t start = clock_ticks(r->node.clock);
	while (mill_left(r->mill) > 0)
		fabric_base(queue)->ops->swap(queue, FABRIC_BURST_MAX);
	return ns_each(r, clock_ticks(r->node.clock) - start);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of(double *samples, uint32_t n)
{
	qsort(samples, n, sizeof(samples[0]), compare_doubles);
	return samples[n / 2];
}

// Rounds of the three alternate, and each repetition keeps their medians: a round that somebody
// else interrupted counts as one of many.
static bool measure(struct memory_run *r, struct figures *f)
{
	static struct rounds rounds;
	const uint32_t n = r->options->rounds;
	for (uint32_t rep = 0; rep < r->options->repetitions; rep++) {
		for (uint32_t i = 0; i < n; i++) {
			rounds.router[i] = time_router(r);
			rounds.swap[i] = time_swap(r);
			rounds.yardstick[i] = time_yardstick(r);
			if (rounds.router[i] < 0 || rounds.yardstick[i] < 0)
				return false;
			bench_node_step(&r->node);
		}
		double router = median_of(rounds.router, n),
		       yardstick = median_of(rounds.yardstick, n);
		stats_add(&f->router, router);
		stats_add(&f->yardstick, yardstick);
		stats_add(&f->swap, median_of(rounds.swap, n));
		stats_add(&f->ratio, router / yardstick);
	}
	return true;
}

static void line(const char *name, const struct stats *s, const char *unit)
{
	printf("  %-10s %7.1f %s (%.1f .. %.1f)\n", name, stats_median(s), unit, stats_min(s),
		stats_max(s));
}

static void report(struct memory_run *r, const struct figures *f, double spot_bytes)
{
	const struct bench_options *o = r->options;
	printf("frames in memory, one core, %u Spots, uniform (seed %" PRIu64
	       "), %d-byte payload\n",
		o->spots, o->seed, LOAD_PAYLOAD_BYTES);
	line("router", &f->router, "ns a message");
	line("yardstick", &f->yardstick, "ns a message");
	line("swap only", &f->swap, "ns a frame");
	printf("  ratio      %7.2f router to yardstick (%.2f .. %.2f)\n", stats_median(&f->ratio),
		stats_min(&f->ratio), stats_max(&f->ratio));
	if (o->spots >= IDLE_SPOTS_MIN)
		printf("  idle Spot  %7.1f bytes, all told (jemalloc's allocated bytes, and the "
		       "route table)\n",
			spot_bytes);
	printf("  checked    %" PRIu64 " sent = %" PRIu64 " right + %" PRIu64 " wrong + %" PRIu64
	       " refused + %" PRIu64 " missing\n",
		r->load.counts.sent, r->load.counts.answered, r->load.counts.wrong,
		r->load.counts.refused, load_in_flight(&r->load));
	struct bench_json j = bench_json_begin(o->json, "memory");
	bench_json_parameter(&j, "spots", o->spots);
	bench_json_parameter(&j, "seed", o->seed);
	bench_json_parameter(&j, "payload", LOAD_PAYLOAD_BYTES);
	bench_json_samples(&j, "router", "ns", &f->router);
	bench_json_samples(&j, "swap", "ns", &f->swap);
	bench_json_samples(&j, "yardstick", "ns", &f->yardstick);
	bench_json_samples(&j, "to_yardstick", "ratio", &f->ratio);
	if (o->spots >= IDLE_SPOTS_MIN)
		bench_json_value(&j, "idle_spot", "bytes", spot_bytes);
	bench_json_value(&j, "sent", "messages", (double)r->load.counts.sent);
	bench_json_value(&j, "right", "messages", (double)r->load.counts.answered);
	bench_json_end(&j);
}

static int run_open(struct memory_run *r)
{
	struct figures figures = {0};
	if (!bench_node_open(&r->node, NULL, r->options->spots, r->options->counter_module,
		    mill_queue(r->mill)))
		return BENCH_ENVIRONMENT;
	publish_reader_enter();
	pin_to(r->options->router_cpu);
	for (uint32_t i = 0; i < TURNS_MAX && !bench_node_serving(&r->node); i++) {
		dp_worker_turn(r->node.dp, 0);
		publish_quiescent();
		bench_node_step(&r->node);
	}
	size_t before = allocated_bytes();
	r->planted =
		(struct planted){.clock = r->node.clock, .delay_ns = r->options->plant_delay_ns};
	bool right = say_hello(r) && build_spots(r);
	// Full-grown shards of the route table are mapped, so jemalloc does not know of them.
	// With few Spots what the node itself gave back meanwhile can outweigh them.
	double all =
		(double)allocated_bytes() - (double)before + (double)route_bytes(r->node.routes);
	double spot_bytes = all / r->options->spots;
	right = right &&
		(r->yardstick = yardstick_create(r->load.keys, r->options->spots)) != NULL &&
		load_init_beside(&r->beside, &r->load) && measure(r, &figures);
	report(r, &figures, spot_bytes);
	yardstick_destroy(r->yardstick);
	load_fini(&r->beside);
	if (!right)
		fprintf(stderr,
			"spotbench: a reply was wrong or missing (last refusal: kind %u reason "
			"%u)\n",
			r->load.wrong_kind, r->load.wrong_reason);
	publish_reader_leave();
	bench_node_close(&r->node);
	return right ? BENCH_OK : BENCH_WRONG;
}

int scenario_memory(const struct bench_options *options)
{
	static struct memory_run r;
	r = (struct memory_run){.options = options, .mill = mill_create()};
	publish_start();
	if (r.mill == NULL || !load_init(&r.load, options->spots, options->seed)) {
		fprintf(stderr, "spotbench: out of memory\n");
		return BENCH_ENVIRONMENT;
	}
	int code = run_open(&r);
	load_fini(&r.load);
	mill_destroy(r.mill);
	return code;
}
