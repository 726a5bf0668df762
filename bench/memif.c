// SPDX-License-Identifier: BSD-3-Clause
// Generator on one core, router on the other, over memif: the full path. In the same run, alternated:
// the router, its own swap-only stage, and dpdk-testpmd in macswap mode on a link of the same kind.
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
#include "link.h"
#include "load.h"
#include "router.h"
#include "scenario.h"
#include "stats.h"

extern char **environ;

enum { START_MS = 15000, DRAIN_MS = 2000, NS_PER_MS = 1000000, BUILD_WINDOW = 1024 };

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

struct measured {
	struct stats rate; // millions a second
	struct histogram latency_ns;
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
	return write(r->control, &mode, 1) == 1 && read(r->control, &answer, 1) == 1 && answer == mode;
}

static bool start_testpmd(struct memif_run *r)
{
	char lcores[32], vdev[256], log[96];
	int input[2];
	posix_spawn_file_actions_t actions;
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", r->options->generator_cpu, r->options->router_cpu);
	snprintf(vdev, sizeof(vdev), "net_memif0,role=server,socket-abstract=no,rsize=11,socket=%s",
		r->testpmd_socket);
	snprintf(log, sizeof(log), "%s/testpmd.log", r->directory);
	const char *argv[] = {"dpdk-testpmd", "--lcores", lcores, "--main-lcore", "0", "--no-pci",
		"--file-prefix=spotbench-testpmd", "-m", "256", "--vdev", vdev,
		r->options->hugepages ? "--in-memory" : "--no-huge", "--", "-i", "--nb-cores=1",
		"--forward-mode=macswap", "--burst=32", "--txd=2048", "--rxd=2048", "--auto-start", NULL};
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
		fprintf(stderr, "spotbench: dpdk-testpmd: %s; install the package dpdk\n", strerror(rc));
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

// Sends up to n requests and takes what came back.
static void turn(struct memif_run *r, uint32_t n, struct measured *m, uint64_t *sent_at)
{
	struct link_frame frames[LINK_BURST];
	uint64_t now = clock_ticks(r->clock);
	n = link_alloc(frames, n < LINK_BURST ? n : LINK_BURST);
	for (uint32_t i = 0; i < n; i++) {
		load_request(&r->load, frames[i].payload);
		frames[i].bytes = LOAD_FRAME_BYTES;
		sent_at[r->load.operation & (LOAD_OUTSTANDING_MAX - 1)] = now;
	}
	if (n > 0)
		link_send(r->router_port, frames, n);
	uint32_t got = link_receive(r->router_port, frames, LINK_BURST);
	now = clock_ticks(r->clock);
	for (uint32_t i = 0; i < got; i++) {
		uint64_t operation = 0;
		if (frames[i].bytes >= WIRE_HEADER_BYTES)
			memcpy(&operation, frames[i].payload + offsetof(struct wire_header, operation_id),
				sizeof(operation));
		if (load_reply(&r->load, frames[i].payload, frames[i].bytes) && m != NULL)
			histogram_record(&m->latency_ns,
				(uint64_t)((double)(now - sent_at[operation & (LOAD_OUTSTANDING_MAX - 1)]) *
					   1e9 / (double)r->clock->ticks_hz));
	}
	link_free(frames, got);
}

static void measure_router(struct memif_run *r, struct measured *m)
{
	static uint64_t sent_at[LOAD_OUTSTANDING_MAX];
	uint64_t start = clock_boot_ns(r->clock), before = r->load.counts.answered;
	uint64_t end = start + r->options->seconds * 1000ull * NS_PER_MS, now = start;
	while (now < end) {
		for (int i = 0; i < 64; i++) {
			uint64_t open = load_in_flight(&r->load);
			turn(r, open < r->options->window ? (uint32_t)(r->options->window - open) : 0, m,
				sent_at);
		}
		now = clock_boot_ns(r->clock);
	}
	stats_add(&m->rate, (double)(r->load.counts.answered - before) * 1e3 / (double)(now - start));
	uint64_t limit = now + (uint64_t)DRAIN_MS * NS_PER_MS;
	while (load_in_flight(&r->load) > 0 && clock_boot_ns(r->clock) < limit)
		turn(r, 0, NULL, sent_at);
}

// Frames of the same size, sent and counted, not judged: for stages that only send them back.
static void measure_echo(struct memif_run *r, int port, struct measured *m)
{
	struct link_frame frames[LINK_BURST];
	uint64_t start = clock_boot_ns(r->clock), now = start, sent = 0, back = 0;
	uint64_t end = start + r->options->seconds * 1000ull * NS_PER_MS;
	while (now < end) {
		for (int i = 0; i < 64; i++) {
			uint64_t open = sent - back;
			uint32_t n = open < r->options->window ? (uint32_t)(r->options->window - open) : 0;
			n = link_alloc(frames, n < LINK_BURST ? n : LINK_BURST);
			for (uint32_t k = 0; k < n; k++) {
				memset(frames[k].payload, 0, LOAD_FRAME_BYTES);
				frames[k].bytes = LOAD_FRAME_BYTES;
			}
			sent += n > 0 ? link_send(port, frames, n) : 0;
			uint32_t got = link_receive(port, frames, LINK_BURST);
			back += got;
			link_free(frames, got);
		}
		now = clock_boot_ns(r->clock);
	}
	stats_add(&m->rate, (double)back * 1e3 / (double)(now - start));
	uint64_t limit = now + 100u * NS_PER_MS;
	while (clock_boot_ns(r->clock) < limit) {
		uint32_t got = link_receive(port, frames, LINK_BURST);
		link_free(frames, got);
	}
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
	static uint64_t unused[LOAD_OUTSTANDING_MAX];
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
				frames[i].bytes = load_build(&r->load, next++, frames[i].payload, 1024);
			link_send(r->router_port, frames, n);
		}
		turn(r, 0, NULL, unused);
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
		fprintf(stderr, "spotbench: building the Spots: %" PRIu64 " of %u (last: kind %u reason %u)\n",
			r->load.counts.answered, r->options->spots, r->load.wrong_kind,
			r->load.wrong_reason);
		return false;
	}
	return true;
}

// ---- the run ----

static bool measure_all(
	struct memif_run *r, struct measured *router, struct measured *swap, struct measured *testpmd)
{
	for (uint32_t rep = 0; rep < r->options->repetitions; rep++) {
		if (!set_mode(r, ROUTER_ROUTE))
			return false;
		measure_router(r, router);
		if (!set_mode(r, ROUTER_SWAP))
			return false;
		measure_echo(r, r->router_port, swap);
		if (!r->options->testpmd)
			continue;
		if (!set_mode(r, ROUTER_STILL))
			return false;
		kill(r->testpmd, SIGCONT);
		measure_echo(r, r->testpmd_port, testpmd);
		kill(r->testpmd, SIGSTOP);
	}
	return true;
}

static void print_rate(const char *what, const struct measured *m, const char *unit)
{
	printf("  %-10s %7.2f M %s a second (%.2f .. %.2f)\n", what, stats_median(&m->rate), unit,
		stats_min(&m->rate), stats_max(&m->rate));
}

static void report(const struct memif_run *r, const struct measured *router,
	const struct measured *swap, const struct measured *testpmd, double handoff)
{
	const struct bench_options *o = r->options;
	double ratio = stats_median(&router->rate) / stats_median(&swap->rate);
	printf("memif, generator on CPU %d, router on CPU %d, %u Spots, uniform (seed %" PRIu64
	       "), %d-byte payload, window %u\n",
		o->generator_cpu, o->router_cpu, o->spots, o->seed, LOAD_PAYLOAD_BYTES, o->window);
	print_rate("router", router, "requests answered");
	print_rate("swap only", swap, "frames sent back");
	if (o->testpmd)
		print_rate("testpmd", testpmd, "frames sent back (macswap)");
	printf("  router / swap only  %.2f\n", ratio);
	if (o->testpmd)
		printf("  swap only / testpmd %.2f\n", stats_median(&swap->rate) / stats_median(&testpmd->rate));
	printf("  round trip in this window  p50 %.1f us  p99 %.1f us\n",
		(double)histogram_at(&router->latency_ns, 50000) / 1e3,
		(double)histogram_at(&router->latency_ns, 99000) / 1e3);
	printf("  hand-off of a cache line between the two CPUs %.0f ns one way; stolen CPU time %.1f %%\n",
		handoff, steal_percent());
	printf("  checked    %" PRIu64 " sent = %" PRIu64 " right + %" PRIu64 " wrong + %" PRIu64
	       " refused + %" PRIu64 " missing\n",
		r->load.counts.sent, r->load.counts.answered, r->load.counts.wrong,
		r->load.counts.refused, load_in_flight(&r->load));
	if (o->json == NULL)
		return;
	fprintf(o->json,
		"{\"scenario\":\"memif\",\"spots\":%u,\"seed\":%" PRIu64 ",\"window\":%u,"
		"\"router_mps\":%.3f,\"swap_mps\":%.3f,\"testpmd_mps\":%.3f,\"router_to_swap\":%.3f,"
		"\"handoff_ns\":%.1f,\"sent\":%" PRIu64 ",\"right\":%" PRIu64 "}\n",
		o->spots, o->seed, o->window, stats_median(&router->rate), stats_median(&swap->rate),
		stats_median(&testpmd->rate), ratio, handoff, r->load.counts.sent,
		r->load.counts.answered);
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

int scenario_memif(const struct bench_options *options)
{
	static struct memif_run r;
	static struct measured router, swap, testpmd;
	r = (struct memif_run){.options = options, .clock = clock_system()};
	histogram_init(&router.latency_ns);
	signal(SIGPIPE, SIG_IGN);
	make_paths(&r);
	if (!load_init(&r.load, options->spots, options->seed))
		return BENCH_ENVIRONMENT;
	double handoff = handoff_ns(options->generator_cpu, options->router_cpu);
	steal_percent();
	int code = BENCH_ENVIRONMENT;
	if (prepare(&r)) {
		bool done = measure_all(&r, &router, &swap, &testpmd);
		report(&r, &router, &swap, &testpmd, handoff);
		bool right = done && r.load.counts.answered == r.load.counts.sent;
		code = right ? BENCH_OK : BENCH_WRONG;
	}
	end_processes(&r);
	remove_paths(&r);
	load_fini(&r.load);
	return code;
}
