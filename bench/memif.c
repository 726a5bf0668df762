// SPDX-License-Identifier: BSD-3-Clause
// Generator on one core, router on the other, over memif: the full path. In the same run,
// alternated: the router, its own swap-only stage, and dpdk-testpmd in macswap mode on a link of
// the same kind.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "json.h"
#include "link.h"
#include "load.h"
#include "router.h"
#include "scenario.h"
#include "stats.h"

extern char **environ;

enum { START_MS = 15000, DRAIN_MS = 2000, NS_PER_MS = 1000000, BUILD_WINDOW = 1024 };
enum { OPEN_IN_FLIGHT_MAX = 1024, OPEN_PERCENT = 80 };

struct memif_run {
	const struct bench_options *options;
	struct clock *clock;
	struct load load;
	char directory[64], router_socket[96], testpmd_socket[96];
	char router_vdev[256], testpmd_vdev[256];
	pid_t router, testpmd;
	int control;       // to the router's process
	int testpmd_input; // keeps its prompt open
	int router_port, testpmd_port;
};

// What one of the three stages got, and the frames it is driven with: requests of the same making
// and the same judging for all, so that the generator's own work is the same beside each.
struct measured {
	struct load *load;
	bool (*judge)(struct load *load, const uint8_t *payload, uint32_t bytes);
	int port;
	struct stats rate; // a second
	struct stats p50_ns, p99_ns;
	struct stats open_p50_ns, open_p99_ns, open_p999_ns; // at a fixed rate
	struct histogram latency_ticks;                      // of one stretch
};

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * NS_PER_MS};
	nanosleep(&t, NULL);
}

static bool wait_for_file(const char *path)
{
	for (int ms = 0; ms < START_MS; ms += 20) {
		if (access(path, F_OK) == 0)
			return true;
		pause_ms(20);
	}
	return false;
}

// ---- the other processes ----

static bool start_router(struct memif_run *r)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	r->router = fork();
	if (r->router == 0) {
		close(pair[0]);
		_exit(router_run(r->options, r->router_socket, pair[1]));
	}
	close(pair[1]);
	r->control = pair[0];
	char ready;
	struct pollfd p = {.fd = r->control, .events = POLLIN};
	return r->router > 0 && poll(&p, 1, START_MS) == 1 && read(r->control, &ready, 1) == 1;
}

static bool set_mode(struct memif_run *r, char mode)
{
	char answer = 0;
	return write(r->control, &mode, 1) == 1 && read(r->control, &answer, 1) == 1 &&
	       answer == mode;
}

static bool start_testpmd(struct memif_run *r)
{
	char lcores[32], vdev[256], log[96];
	int input[2];
	posix_spawn_file_actions_t actions;
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", r->options->generator_cpu,
		r->options->router_cpu);
	snprintf(vdev, sizeof(vdev), "net_memif0,role=server,socket-abstract=no,rsize=11,socket=%s",
		r->testpmd_socket);
	snprintf(log, sizeof(log), "%s/testpmd.log", r->directory);
	const char *argv[] = {"dpdk-testpmd", "--lcores", lcores, "--main-lcore", "0", "--no-pci",
		"--file-prefix=spotbench-testpmd", "-m", "256", "--vdev", vdev,
		r->options->hugepages ? "--in-memory" : "--no-huge", "--", "-i", "--nb-cores=1",
		"--forward-mode=macswap", "--burst=32", "--txd=2048", "--rxd=2048", "--auto-start",
		NULL};
	if (pipe(input) != 0)
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input[0], 0);
	posix_spawn_file_actions_addclose(&actions, input[1]);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	int rc = posix_spawnp(
		&r->testpmd, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(input[0]);
	r->testpmd_input = input[1];
	if (rc != 0) {
		fprintf(stderr, "spotbench: dpdk-testpmd: %s; install the package dpdk\n",
			strerror(rc));
		r->testpmd = 0;
	}
	return rc == 0 && wait_for_file(r->testpmd_socket);
}

static void end_processes(struct memif_run *r)
{
	char quit = ROUTER_QUIT;
	if (r->router > 0) {
		ssize_t done = write(r->control, &quit, 1);
		(void)done;
		close(r->control);
		waitpid(r->router, NULL, 0);
	}
	if (r->testpmd > 0) {
		kill(r->testpmd, SIGCONT);
		kill(r->testpmd, SIGKILL);
		close(r->testpmd_input);
		waitpid(r->testpmd, NULL, 0);
	}
}

// ---- traffic ----

static uint64_t sent_at[LOAD_OUTSTANDING_MAX];

static uint64_t operation_of(const struct link_frame *frame)
{
	uint64_t operation = 0;
	if (frame->bytes >= WIRE_HEADER_BYTES)
		memcpy(&operation, frame->payload + offsetof(struct wire_header, operation_id),
			sizeof(operation));
	return operation & (LOAD_OUTSTANDING_MAX - 1);
}

// Sends up to n requests, the first stamped `stamp` and each other `step` ticks later; how many.
static uint32_t send_requests(struct measured *m, uint32_t n, double stamp, double step)
{
	struct link_frame frames[LINK_BURST];
	n = link_alloc(frames, n < LINK_BURST ? n : LINK_BURST);
	for (uint32_t i = 0; i < n; i++, stamp += step) {
		load_request(m->load, frames[i].payload);
		frames[i].bytes = LOAD_FRAME_BYTES;
		sent_at[m->load->operation & (LOAD_OUTSTANDING_MAX - 1)] = (uint64_t)stamp;
	}
	if (n > 0)
		link_send(m->port, frames, n);
	return n;
}

static void take_answers(struct memif_run *r, struct measured *m)
{
	struct link_frame frames[LINK_BURST];
	uint32_t got = link_receive(m->port, frames, LINK_BURST);
	uint64_t now = clock_ticks(r->clock);
	for (uint32_t i = 0; i < got; i++) {
		uint64_t operation = operation_of(&frames[i]);
		if (m->judge(m->load, frames[i].payload, frames[i].bytes))
			histogram_record(&m->latency_ticks, now - sent_at[operation]);
	}
	link_free(frames, got);
}

// One step of a closed loop.
static void turn(struct memif_run *r, struct measured *m, uint32_t n)
{
	send_requests(m, n, (double)clock_ticks(r->clock), 0);
	take_answers(r, m);
}

static void drain(struct memif_run *r, struct measured *m)
{
	uint64_t limit = clock_boot_ns(r->clock) + (uint64_t)DRAIN_MS * NS_PER_MS;
	while (load_in_flight(m->load) > 0 && clock_boot_ns(r->clock) < limit)
		turn(r, m, 0);
}

static void measure(struct memif_run *r, struct measured *m)
{
	histogram_init(&m->latency_ticks);
	uint64_t start = clock_boot_ns(r->clock), before = m->load->counts.answered;
	uint64_t end = start + r->options->seconds * 1000ull * NS_PER_MS, now = start;
	while (now < end) {
		for (int i = 0; i < 64; i++) {
			uint64_t open = load_in_flight(m->load);
			turn(r, m,
				open < r->options->window ? (uint32_t)(r->options->window - open)
							  : 0);
		}
		now = clock_boot_ns(r->clock);
	}
	stats_add(&m->rate,
		(double)(m->load->counts.answered - before) * 1e9 / (double)(now - start));
	double tick_ns = 1e9 / (double)r->clock->ticks_hz;
	stats_add(&m->p50_ns, (double)histogram_at(&m->latency_ticks, 50000) * tick_ns);
	stats_add(&m->p99_ns, (double)histogram_at(&m->latency_ticks, 99000) * tick_ns);
	drain(r, m);
}

// A stretch at a fixed rate. A request's latency counts from when it was due, whether or not it
// could be sent then: a router that stands still for a while is charged for all that was due
// meanwhile. At most OPEN_IN_FLIGHT_MAX are sent and unanswered, so that no ring overflows.
static void measure_open(struct memif_run *r, struct measured *m, double rate)
{
	const double step = (double)r->clock->ticks_hz / rate;
	uint64_t start = clock_ticks(r->clock);
	uint64_t end = start + r->options->seconds * r->clock->ticks_hz;
	double due = (double)start;
	histogram_init(&m->latency_ticks);
	for (uint64_t now = start; now < end; now = clock_ticks(r->clock)) {
		uint64_t open = load_in_flight(m->load);
		double late = (double)now - due;
		uint32_t n = late < 0 ? 0 : (uint32_t)(late / step) + 1;
		uint32_t room =
			open < OPEN_IN_FLIGHT_MAX ? (uint32_t)(OPEN_IN_FLIGHT_MAX - open) : 0;
		due += step * send_requests(m, n < room ? n : room, due, step);
		take_answers(r, m);
	}
	drain(r, m);
	double tick_ns = 1e9 / (double)r->clock->ticks_hz;
	stats_add(&m->open_p50_ns, (double)histogram_at(&m->latency_ticks, 50000) * tick_ns);
	stats_add(&m->open_p99_ns, (double)histogram_at(&m->latency_ticks, 99000) * tick_ns);
	stats_add(&m->open_p999_ns, (double)histogram_at(&m->latency_ticks, 99900) * tick_ns);
}

// ---- preparation ----

static bool exchange_hello(struct memif_run *r)
{
	for (int tries = 0; tries < 100; tries++) {
		struct link_frame frames[LINK_BURST];
		if (link_alloc(frames, 1) == 1) {
			frames[0].bytes = load_hello(&r->load, frames[0].payload);
			link_send(r->router_port, frames, 1);
		}
		pause_ms(20);
		uint32_t got = link_receive(r->router_port, frames, LINK_BURST);
		bool taken = false;
		for (uint32_t i = 0; i < got; i++)
			taken |= load_take_challenge(&r->load, frames[i].payload, frames[i].bytes);
		link_free(frames, got);
		if (taken)
			return true;
	}
	return false;
}

static bool build_spots(struct memif_run *r)
{
	struct measured building = {.load = &r->load, .judge = load_reply, .port = r->router_port};
	uint64_t limit = clock_boot_ns(r->clock) + 120000ull * NS_PER_MS;
	uint32_t next = 0;
	while ((next < r->options->spots || load_in_flight(&r->load) > 0) &&
		clock_boot_ns(r->clock) < limit) {
		struct link_frame frames[LINK_BURST];
		uint32_t room = BUILD_WINDOW - (uint32_t)load_in_flight(&r->load), n = 0;
		uint32_t left = r->options->spots - next;
		room = room < LINK_BURST ? room : LINK_BURST;
		room = left < room ? left : room;
		if (room > 0 && (n = link_alloc(frames, room)) > 0) {
			for (uint32_t i = 0; i < n; i++)
				frames[i].bytes =
					load_build(&r->load, next++, frames[i].payload, 1024);
			link_send(r->router_port, frames, n);
		}
		turn(r, &building, 0);
	}
	return r->load.counts.answered == r->options->spots;
}

static bool wait_up(int port)
{
	for (int ms = 0; ms < START_MS; ms += 10) {
		if (link_is_up(port))
			return true;
		pause_ms(10);
	}
	return false;
}

static bool prepare(struct memif_run *r)
{
	const char *vdevs[2] = {r->router_vdev, r->testpmd_vdev};
	uint32_t count = r->options->testpmd ? 2 : 1;
	snprintf(r->router_vdev, sizeof(r->router_vdev),
		"net_memif0,role=client,socket-abstract=no,rsize=11,socket=%s", r->router_socket);
	snprintf(r->testpmd_vdev, sizeof(r->testpmd_vdev),
		"net_memif1,role=client,socket-abstract=no,rsize=11,socket=%s", r->testpmd_socket);
	if (!start_router(r)) {
		fprintf(stderr, "spotbench: the router did not start\n");
		return false;
	}
	if (r->options->testpmd && !start_testpmd(r))
		return false;
	if (!link_start(vdevs, count, r->options->generator_cpu, r->options->hugepages))
		return false;
	r->router_port = link_open(r->router_vdev);
	if (r->router_port < 0 || !wait_up(r->router_port))
		return false;
	if (r->options->testpmd) {
		pause_ms(500); // testpmd has the socket before its port forwards
		r->testpmd_port = link_open(r->testpmd_vdev);
		if (r->testpmd_port < 0 || !wait_up(r->testpmd_port))
			return false;
		kill(r->testpmd, SIGSTOP);
	}
	if (!exchange_hello(r) || !build_spots(r)) {
		fprintf(stderr,
			"spotbench: building the Spots: %" PRIu64
			" of %u (last: kind %u reason %u)\n",
			r->load.counts.answered, r->options->spots, r->load.wrong_kind,
			r->load.wrong_reason);
		return false;
	}
	return true;
}

// ---- the run ----

// Three stages, alternated: the router, its swap-only stage, testpmd on a link of its own.
struct stages {
	struct load swap_load, testpmd_load;
	struct measured router, swap, testpmd;
};

static bool measure_all(struct memif_run *r, struct stages *s)
{
	for (uint32_t rep = 0; rep < r->options->repetitions; rep++) {
		if (!set_mode(r, ROUTER_ROUTE))
			return false;
		measure(r, &s->router);
		if (!set_mode(r, ROUTER_SWAP))
			return false;
		measure(r, &s->swap);
		if (!r->options->testpmd)
			continue;
		if (!set_mode(r, ROUTER_STILL))
			return false;
		kill(r->testpmd, SIGCONT);
		measure(r, &s->testpmd);
		kill(r->testpmd, SIGSTOP);
	}
	return true;
}

// Router and swap-only at the same rate: a share of what the router answered without loss.
static bool measure_all_open(struct memif_run *r, struct stages *s)
{
	double rate = stats_median(&s->router.rate) * OPEN_PERCENT / 100;
	for (uint32_t rep = 0; r->options->open && rep < r->options->repetitions; rep++) {
		if (!set_mode(r, ROUTER_SWAP))
			return false;
		measure_open(r, &s->swap, rate);
		if (!set_mode(r, ROUTER_ROUTE))
			return false;
		measure_open(r, &s->router, rate);
	}
	return true;
}

static void print_open(const char *what, const struct measured *m)
{
	printf("  %-10s at a fixed rate, from the time due: p50 %.1f us  p99 %.1f us  p99.9 %.1f "
	       "us\n",
		what, stats_median(&m->open_p50_ns) / 1e3, stats_median(&m->open_p99_ns) / 1e3,
		stats_median(&m->open_p999_ns) / 1e3);
}

static void print_stage(const char *what, const struct measured *m, const char *unit)
{
	printf("  %-10s %7.2f M %s a second (%.2f .. %.2f), round trip p50 %.1f us p99 %.1f us\n",
		what, stats_median(&m->rate) / 1e6, unit, stats_min(&m->rate) / 1e6,
		stats_max(&m->rate) / 1e6, stats_median(&m->p50_ns) / 1e3,
		stats_median(&m->p99_ns) / 1e3);
}

static void print_checked(const char *what, const struct load_counts *c, uint64_t missing)
{
	printf("  %-10s %" PRIu64 " sent = %" PRIu64 " right + %" PRIu64 " wrong + %" PRIu64
	       " refused + %" PRIu64 " missing\n",
		what, c->sent, c->answered, c->wrong, c->refused, missing);
}

static void report(const struct memif_run *r, const struct stages *s, double handoff)
{
	const struct bench_options *o = r->options;
	printf("memif, generator on CPU %d, router on CPU %d, %u Spots, uniform (seed %" PRIu64
	       "), %d-byte payload, window %u\n",
		o->generator_cpu, o->router_cpu, o->spots, o->seed, LOAD_PAYLOAD_BYTES, o->window);
	print_stage("router", &s->router, "requests answered");
	print_stage("swap only", &s->swap, "frames sent back");
	if (o->testpmd)
		print_stage("testpmd", &s->testpmd, "frames sent back (macswap)");
	printf("  router / swap only  %.2f\n",
		stats_median(&s->router.rate) / stats_median(&s->swap.rate));
	if (o->testpmd)
		printf("  swap only / testpmd %.2f\n",
			stats_median(&s->swap.rate) / stats_median(&s->testpmd.rate));
	if (o->open) {
		print_open("router", &s->router);
		print_open("swap only", &s->swap);
	}
	printf("  hand-off of a cache line between the two CPUs %.0f ns one way; stolen CPU time "
	       "%.1f %%\n",
		handoff, steal_percent());
	print_checked("checked", &r->load.counts, load_in_flight(&r->load));
}

static void report_json(const struct memif_run *r, const struct stages *s, double handoff)
{
	const struct bench_options *o = r->options;
	struct bench_json j = bench_json_begin(o->json, "memif");
	bench_json_parameter(&j, "spots", o->spots);
	bench_json_parameter(&j, "seed", o->seed);
	bench_json_parameter(&j, "window", o->window);
	bench_json_parameter(&j, "payload", LOAD_PAYLOAD_BYTES);
	bench_json_samples(&j, "router", "messages/s", &s->router.rate);
	bench_json_samples(&j, "swap", "messages/s", &s->swap.rate);
	bench_json_samples(&j, "testpmd", "messages/s", &s->testpmd.rate);
	bench_json_samples(&j, "trip_p50", "ns", &s->router.p50_ns);
	bench_json_samples(&j, "trip_p99", "ns", &s->router.p99_ns);
	bench_json_samples(&j, "swap_trip_p50", "ns", &s->swap.p50_ns);
	bench_json_samples(&j, "swap_trip_p99", "ns", &s->swap.p99_ns);
	bench_json_samples(&j, "open_p50", "ns", &s->router.open_p50_ns);
	bench_json_samples(&j, "open_p99", "ns", &s->router.open_p99_ns);
	bench_json_samples(&j, "open_p999", "ns", &s->router.open_p999_ns);
	bench_json_samples(&j, "swap_open_p50", "ns", &s->swap.open_p50_ns);
	bench_json_samples(&j, "swap_open_p99", "ns", &s->swap.open_p99_ns);
	bench_json_samples(&j, "swap_open_p999", "ns", &s->swap.open_p999_ns);
	bench_json_value(&j, "handoff", "ns", handoff);
	bench_json_value(&j, "sent", "messages", (double)r->load.counts.sent);
	bench_json_value(&j, "right", "messages", (double)r->load.counts.answered);
	bench_json_end(&j);
}

static bool make_stages(struct memif_run *r, struct stages *s)
{
	if (!load_init_beside(&s->swap_load, &r->load) ||
		!load_init_beside(&s->testpmd_load, &r->load))
		return false;
	s->router =
		(struct measured){.load = &r->load, .judge = load_reply, .port = r->router_port};
	s->swap = (struct measured){
		.load = &s->swap_load, .judge = load_echo, .port = r->router_port};
	s->testpmd = (struct measured){
		.load = &s->testpmd_load, .judge = load_echo, .port = r->testpmd_port};
	return true;
}

static void make_paths(struct memif_run *r)
{
	snprintf(r->directory, sizeof(r->directory), "/tmp/spotbench.XXXXXX");
	if (mkdtemp(r->directory) == NULL)
		return;
	snprintf(r->router_socket, sizeof(r->router_socket), "%s/router", r->directory);
	snprintf(r->testpmd_socket, sizeof(r->testpmd_socket), "%s/testpmd", r->directory);
}

static void remove_paths(const struct memif_run *r)
{
	char log[96];
	snprintf(log, sizeof(log), "%s/testpmd.log", r->directory);
	unlink(log);
	unlink(r->router_socket);
	unlink(r->testpmd_socket);
	rmdir(r->directory);
}

static int run_stages(struct memif_run *r, double handoff)
{
	static struct stages stages;
	bool done =
		make_stages(r, &stages) && measure_all(r, &stages) && measure_all_open(r, &stages);
	report(r, &stages, handoff);
	report_json(r, &stages, handoff);
	load_fini(&stages.swap_load);
	load_fini(&stages.testpmd_load);
	return done && r->load.counts.answered == r->load.counts.sent ? BENCH_OK : BENCH_WRONG;
}

int scenario_memif(const struct bench_options *options)
{
	static struct memif_run r;
	r = (struct memif_run){.options = options, .clock = clock_system()};
	signal(SIGPIPE, SIG_IGN);
	make_paths(&r);
	if (!load_init(&r.load, options->spots, options->seed))
		return BENCH_ENVIRONMENT;
	double handoff = handoff_ns(options->generator_cpu, options->router_cpu);
	steal_percent();
	int code = prepare(&r) ? run_stages(&r, handoff) : BENCH_ENVIRONMENT;
	end_processes(&r);
	remove_paths(&r);
	load_fini(&r.load);
	return code;
}
