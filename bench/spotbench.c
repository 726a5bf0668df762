// SPDX-License-Identifier: BSD-3-Clause
// spotbench: measures the router (bench/README.md). Figures are for reading; nothing passes or
// fails on time, only on wrong or missing replies.
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench_build.h"
#include "scenario.h"

enum { HARNESS_ARGUMENTS_MAX = 16 };

static const char usage[] =
	"usage: spotbench run memory|memif|activation [options]\n"
	"       spotbench all [--quick] [--out FILE.json]\n"
	"       spotbench report FILE.json [--html FILE]\n"
	"       spotbench compare OLD.json NEW.json\n"
	"       spotbench check FILE.json [--exceptions FILE]\n"
	"\n"
	"  memory   frames in memory, one core: what the router itself costs\n"
	"  memif    generator and router on two cores over memif: the full path\n"
	"  activation   new Spots a second\n"
	"\n"
	"  --spots N        Instance Spots of type counter (default 1000)\n"
	"  --repetitions N  default 5\n"
	"  --rounds N       of 4,096 messages in each repetition (memory; default 256)\n"
	"  --seconds N      of each stretch (memif; default 2)\n"
	"  --window N       requests in flight (memif; default 512, at most 8192)\n"
	"  --seed N         of the choice of Spots (default 1)\n"
	"  --cpus G,R       CPU of generator and router (default 0,1)\n"
	"  --no-huge        without hugepages\n"
	"  --testpmd        measure dpdk-testpmd macswap in the same run (memif)\n"
	"  --open           latency at 80 % of the router's rate, from the intended send time "
	"(memif)\n"
	"  --plant-delay-ns N, --plant-stall-ms N\n"
	"                   make the router slower on purpose: each message, or once a stretch\n"
	"  --sqlite FOLDER  a SQLite store in this folder, not one in memory (activation)\n"
	"  --module PATH    counter.so\n"
	"  --json FILE      append one JSON object\n";

// A whole number of any size that the field holds; false when it is none.
static bool take_number(struct bench_options *o, int option, const char *text)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	uint32_t *const small[] = {['s' - 'a'] = &o->spots,
		['r' - 'a'] = &o->repetitions,
		['o' - 'a'] = &o->rounds,
		['t' - 'a'] = &o->seconds,
		['w' - 'a'] = &o->window,
		['x' - 'a'] = &o->plant_delay_ns,
		['y' - 'a'] = &o->plant_stall_ms};
	if (end == text || *end != '\0' || (option != 'd' && number > UINT32_MAX))
		return false;
	if (option == 'd')
		o->seed = number;
	else
		*small[option - 'a'] = (uint32_t)number;
	return true;
}

static bool take_text(struct bench_options *o, int option, const char *text)
{
	switch (option) {
	case 'c':
		return sscanf(text, "%d,%d", &o->generator_cpu, &o->router_cpu) == 2;
	case 'q':
		o->sqlite_folder = text;
		return true;
	case 'm':
		o->counter_module = text;
		return true;
	default:
		o->json = fopen(text, "ae");
		if (o->json == NULL)
			perror(text);
		return o->json != NULL;
	}
}

static bool in_range(const struct bench_options *o)
{
	return o->spots > 0 && o->spots <= 20000000 && o->repetitions > 0 && o->repetitions <= 32 &&
	       o->rounds > 0 && o->rounds <= 4096 && o->seconds > 0 && o->window > 0 &&
	       o->window <= 8192;
}

static bool parse(int argc, char **argv, struct bench_options *o)
{
	static const struct option longs[] = {{"spots", required_argument, NULL, 's'},
		{"repetitions", required_argument, NULL, 'r'},
		{"rounds", required_argument, NULL, 'o'}, {"seconds", required_argument, NULL, 't'},
		{"window", required_argument, NULL, 'w'}, {"seed", required_argument, NULL, 'd'},
		{"plant-delay-ns", required_argument, NULL, 'x'},
		{"plant-stall-ms", required_argument, NULL, 'y'},
		{"cpus", required_argument, NULL, 'c'}, {"sqlite", required_argument, NULL, 'q'},
		{"module", required_argument, NULL, 'm'}, {"json", required_argument, NULL, 'j'},
		{"no-huge", no_argument, NULL, 'n'}, {"testpmd", no_argument, NULL, 'p'},
		{"open", no_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
	int option;
	bool good = true;
	while (good && (option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (strchr("srotwdxy", option) != NULL)
			good = take_number(o, option, optarg);
		else if (strchr("cqmj", option) != NULL)
			good = take_text(o, option, optarg);
		else if (option == 'n')
			o->hugepages = false;
		else if (option == 'p')
			o->testpmd = true;
		else if (option == 'l')
			o->open = true;
		else
			good = false;
	}
	return good && in_range(o);
}

// The verbs that join runs are the harness's, which calls this program again for each run.
static int join_runs(int argc, char **argv)
{
	char self[PATH_MAX];
	const char *args[HARNESS_ARGUMENTS_MAX + 4] = {"/usr/bin/python3", BENCH_HARNESS, self};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0 || argc > HARNESS_ARGUMENTS_MAX)
		return BENCH_USAGE;
	self[n] = '\0';
	for (int i = 1; i < argc; i++)
		args[2 + i] = argv[i];
	execvp(args[0], (char *const *)(uintptr_t)args);
	perror("spotbench: python3");
	return BENCH_ENVIRONMENT;
}

static bool is_joining(const char *verb)
{
	static const char *const verbs[] = {"all", "report", "compare", "check"};
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		if (strcmp(verb, verbs[i]) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && is_joining(argv[1]))
		return join_runs(argc, argv);
	struct bench_options o = {.spots = 1000,
		.repetitions = 5,
		.rounds = 256,
		.seconds = 2,
		.window = 512,
		.seed = 1,
		.generator_cpu = 0,
		.router_cpu = 1,
		.hugepages = true,
		.counter_module = BENCH_COUNTER};
	if (argc < 3 || strcmp(argv[1], "run") != 0 || !parse(argc - 2, argv + 2, &o)) {
		fputs(usage, stderr);
		return BENCH_USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(argv[2], "memory") == 0)
		return scenario_memory(&o);
	if (strcmp(argv[2], "activation") == 0)
		return scenario_activation(&o);
	if (strcmp(argv[2], "memif") == 0)
		return scenario_memif(&o);
	fputs(usage, stderr);
	return BENCH_USAGE;
}
