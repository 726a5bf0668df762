// SPDX-License-Identifier: BSD-3-Clause
// Many seeds. A broken promise prints its seed; the seeds of seeds.txt (each was broken once) go first.
//
//   test_sim                          seeds.txt, then as many seeds as the time allows
//   test_sim --seed N [--trace]       one seed, to the same step
//   test_sim --soak COUNT [--from N]  COUNT seeds on all processors; prints faults and visits; a zero
//                                     cell fails
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitize.h"
#include "publish/publish.h"
#include "sim.h"

enum {
	JOBS_MAX = 16,
	TWICE_EVERY = 64,
	SEEDS_DEFAULT = 10000,
	SECONDS_DEFAULT = SANITIZE_ADDRESS ? 45 : 100,
};

struct board { // shared by the processes of one run
	struct sim_totals totals;
	uint64_t next, end;     // seeds left
	uint64_t stop_after_s;  // CLOCK_MONOTONIC; 0: none
	uint64_t done, failed, failures_max;
	uint64_t running[JOBS_MAX]; // the seed of each job
};

static uint64_t run_once(uint64_t seed, bool trace)
{
	struct sim *s = sim_create(seed, trace);
	sim_run(s, SIM_STEPS);
	sim_finish(s);
	uint64_t hash = s->hash;
	free(s);
	return hash;
}

static void run_seed(uint64_t seed)
{
	uint64_t first = run_once(seed, false);
	if (seed % TWICE_EVERY != 0 || first == run_once(seed, false))
		return;
	printf("seed %llu: two runs differ\n", (unsigned long long)seed);
	fflush(stdout);
	abort();
}

static uint64_t seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

static void job(struct board *b, uint32_t index)
{
	for (;;) {
		if (b->stop_after_s != 0 && seconds() >= b->stop_after_s)
			_exit(0);
		uint64_t seed = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
		if (seed >= b->end)
			_exit(0);
		b->running[index] = seed;
		run_seed(seed);
		sim_totals_move(&b->totals);
		__atomic_fetch_add(&b->done, 1, __ATOMIC_RELAXED);
	}
}

static pid_t start(struct board *b, uint32_t index)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		job(b, index);
	return pid;
}

// A job that dies took its seed with it: counted, and another goes on.
static void run_jobs(struct board *b, uint32_t jobs)
{
	pid_t pids[JOBS_MAX] = {0};
	uint32_t left = jobs;
	for (uint32_t i = 0; i < jobs; i++)
		pids[i] = start(b, i);
	while (left > 0) {
		int status;
		pid_t pid = wait(&status);
		for (uint32_t i = 0; i < jobs; i++) {
			if (pids[i] != pid)
				continue;
			if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
				left--;
				break;
			}
			b->failed++;
			printf("seed %llu failed\n", (unsigned long long)b->running[i]);
			if (b->failed >= b->failures_max)
				b->next = b->end;
			pids[i] = start(b, i);
		}
	}
}

static struct board *board_new(void)
{
	struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		-1, 0);
	if (b == MAP_FAILED)
		abort();
	b->failures_max = 10;
	return b;
}

static uint32_t job_count(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > JOBS_MAX ? JOBS_MAX : (uint32_t)n;
}

// ---- the tests ----
static void run_kept_seeds(struct board *b)
{
	const char *path = getenv("SIM_SEEDS");
	FILE *f = path != NULL ? fopen(path, "r") : NULL;
	char line[256];
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		b->next = strtoull(line, NULL, 10);
		b->end = b->next + 1;
		run_jobs(b, 1);
	}
	fclose(f);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void I23_I2_I4_I5_I6_I7_I8_I10_I11_I12__seeds_keep_every_promise(void **state)
{
	(void)state;
	struct board *b = board_new();
	run_kept_seeds(b);
	assert_int_equal(b->failed, 0);
	b->done = 0;
	b->next = 1;
	b->end = 1 + env_number("SIM_SEED_COUNT", SEEDS_DEFAULT);
	b->stop_after_s = seconds() + env_number("SIM_SECONDS", SECONDS_DEFAULT);
	run_jobs(b, job_count());
	printf("%llu seeds, %llu failed\n", (unsigned long long)b->done,
		(unsigned long long)b->failed);
	uint64_t zeros = sim_totals_print(&b->totals, stdout);
	printf("%llu cells of zero\n", (unsigned long long)zeros);
	assert_int_equal(b->failed, 0);
	// The runs are about something: messages ran, objects were built, leases lapsed.
	assert_true(b->totals.executions > b->done * 10);
	assert_true(b->totals.built > b->done * 5);
	assert_true(b->totals.faults[SIM_FAULT_LAPSE] > b->done / 10);
}

static int soak(uint64_t count, uint64_t from, uint64_t failures_max)
{
	struct board *b = board_new();
	b->next = from;
	b->end = from + count;
	b->failures_max = failures_max;
	run_jobs(b, job_count());
	uint32_t zeros = sim_totals_print(&b->totals, stdout);
	printf("%llu seeds passed, %llu failed, %u cells of zero\n", (unsigned long long)b->done,
		(unsigned long long)b->failed, zeros);
	return b->failed > 0 || zeros > 0;
}

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return i + 1 < argc ? argv[i + 1] : "";
	return NULL;
}

int main(int argc, char **argv)
{
	publish_start();
	// Tables are large and hardly touched: huge pages would be zeroed for nothing.
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	const char *seed = option(argc, argv, "--seed"), *count = option(argc, argv, "--soak");
	const char *from = option(argc, argv, "--from"), *most = option(argc, argv, "--failures");
	if (seed != NULL) {
		printf("seed %s: %016llx\n", seed,
			(unsigned long long)run_once(strtoull(seed, NULL, 10),
				option(argc, argv, "--trace") != NULL));
		return 0;
	}
	if (count != NULL)
		return soak(strtoull(count, NULL, 10), from != NULL ? strtoull(from, NULL, 10) : 1,
			most != NULL ? strtoull(most, NULL, 10) : 10);
	if (argc > 1) {
		printf("test_sim [--seed N [--trace]] [--soak COUNT [--from N] [--failures N]]\n");
		return strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(I23_I2_I4_I5_I6_I7_I8_I10_I11_I12__seeds_keep_every_promise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
