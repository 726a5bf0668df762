// SPDX-License-Identifier: BSD-3-Clause
#include "peer.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char usage[] =
	"usage: %s ENDPOINT [options]\n"
	"  --repetitions N   stretches measured (default 5)\n"
	"  --milliseconds N  of each stretch (default 1000)\n"
	"  --window N        messages in flight (default 256)\n"
	"  --cpus D,S        CPU of the driver and of the server (default 0,1)\n";

bool peer_parse(int argc, char **argv, struct peer_options *out)
{
	static const struct option longs[] = {{"repetitions", required_argument, NULL, 'r'},
		{"milliseconds", required_argument, NULL, 'm'},
		{"window", required_argument, NULL, 'w'}, {"cpus", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0}};
	*out = (struct peer_options){
		.repetitions = 5, .milliseconds = 1000, .window = 256, .server_cpu = 1};
	bool good = true;
	int option;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (option == 'r')
			out->repetitions = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'm')
			out->milliseconds = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'w')
			out->window = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option != 'c' ||
			 sscanf(optarg, "%d,%d", &out->driver_cpu, &out->server_cpu) != 2)
			good = false;
	}
	good = good && optind == argc - 1 && out->repetitions > 0 && out->milliseconds > 0 &&
	       out->repetitions <= PEER_SAMPLES_MAX && out->window > 0 && out->window <= 4096;
	if (!good) {
		fprintf(stderr, usage, argv[0]);
		return false;
	}
	out->endpoint = argv[optind];
	return true;
}

void peer_pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		peer_die("pinning to a CPU", "no such CPU, or not allowed");
}

uint64_t peer_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void peer_sample(struct peer_samples *samples, double value)
{
	if (samples->count < PEER_SAMPLES_MAX)
		samples->values[samples->count++] = value;
}

void peer_print(const struct peer_samples *s)
{
	printf("{\"scenario\":\"peer\",\"peer\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\","
	       "\"samples\":[",
		s->peer, s->metric, s->unit);
	for (uint32_t i = 0; i < s->count; i++)
		printf("%s%.6g", i > 0 ? "," : "", s->values[i]);
	printf("]}\n");
}

void peer_die(const char *what, const char *why)
{
	fprintf(stderr, "peer: %s: %s\n", what, why);
	exit(11);
}
