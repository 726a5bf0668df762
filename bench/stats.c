// SPDX-License-Identifier: BSD-3-Clause
#include "stats.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/compiler.h"

void stats_add(struct stats *s, double sample)
{
	CHECK(s->count < STATS_SAMPLES_MAX);
	s->samples[s->count++] = sample;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double at_rank(const struct stats *s, double rank)
{
	double sorted[STATS_SAMPLES_MAX];
	if (s->count == 0)
		return 0;
	memcpy(sorted, s->samples, s->count * sizeof(double));
	qsort(sorted, s->count, sizeof(double), compare);
	return sorted[(uint32_t)(rank * (s->count - 1) + 0.5)];
}

double stats_median(const struct stats *s)
{
	return at_rank(s, 0.5);
}

double stats_min(const struct stats *s)
{
	return at_rank(s, 0);
}

double stats_max(const struct stats *s)
{
	return at_rank(s, 1);
}

enum { HANDOFF_ROUNDS = 200000 };

struct handoff {
	CACHE_ALIGNED _Atomic uint32_t ping;
	CACHE_ALIGNED _Atomic uint32_t pong;
	int cpu;
};

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *answer(void *arg)
{
	struct handoff *h = arg;
	pin(h->cpu);
	for (uint32_t i = 1; i <= HANDOFF_ROUNDS; i++) {
		while (atomic_load_explicit(&h->ping, memory_order_acquire) != i)
			__builtin_ia32_pause();
		atomic_store_explicit(&h->pong, i, memory_order_release);
	}
	return NULL;
}

double handoff_ns(int cpu_a, int cpu_b)
{
	static struct handoff h;
	cpu_set_t before;
	pthread_t thread;
	struct clock *clock = clock_system();
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	h.cpu = cpu_b;
	atomic_store(&h.ping, 0);
	atomic_store(&h.pong, 0);
	CHECK(pthread_create(&thread, NULL, answer, &h) == 0);
	pin(cpu_a);
	uint64_t start = clock_boot_ns(clock);
	for (uint32_t i = 1; i <= HANDOFF_ROUNDS; i++) {
		atomic_store_explicit(&h.ping, i, memory_order_release);
		while (atomic_load_explicit(&h.pong, memory_order_acquire) != i)
			__builtin_ia32_pause();
	}
	uint64_t took = clock_boot_ns(clock) - start;
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	return (double)took / HANDOFF_ROUNDS / 2;
}

double steal_percent(void)
{
	static uint64_t last_steal, last_all;
	uint64_t field[8] = {0}, all = 0;
	FILE *file = fopen("/proc/stat", "re");
	if (file == NULL)
		return 0;
	int n = fscanf(file, "cpu %lu %lu %lu %lu %lu %lu %lu %lu", &field[0], &field[1], &field[2],
		&field[3], &field[4], &field[5], &field[6], &field[7]);
	fclose(file);
	if (n != 8)
		return 0;
	for (int i = 0; i < 8; i++)
		all += field[i];
	double percent = all > last_all ? 100.0 * (double)(field[7] - last_steal) / (double)(all - last_all)
					: 0;
	last_steal = field[7];
	last_all = all;
	return percent;
}
