// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target without libFuzzer: its corpus, then seeded mutations of it.
//
//   TARGET LABELS NAME CORPUS RUNS [SEED]
//
// FUZZ_KEEP=FILE keeps the input under way in FILE, for the one that ends the process.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "fuzz.h"

enum { INPUTS_MAX = 4096, INPUT_BYTES_MAX = 65536, SEED = 20240229 };

struct input {
	uint8_t *data;
	size_t size;
};

static struct input corpus[INPUTS_MAX];
static uint32_t corpus_count;
static uint32_t missed_count;

#pragma weak LLVMFuzzerInitialize
#pragma weak fuzz_unreached

static void run(const uint8_t *data, size_t size)
{
	const char *keep = getenv("FUZZ_KEEP");
	FILE *file = keep == NULL ? NULL : fopen(keep, "wb");
	if (file != NULL) {
		fwrite(data, 1, size, file);
		fclose(file);
	}
	uint8_t *exact = malloc(size != 0 ? size : 1);
	CHECK(exact != NULL);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

// ---- corpus ----
static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load(const char *folder)
{
	struct dirent **names;
	int count = scandir(folder, &names, visible, alphasort);
	for (int i = 0; i < count; i++) {
		static uint8_t buffer[INPUT_BYTES_MAX];
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		FILE *file = fopen(path, "rb");
		CHECK(file != NULL && corpus_count < INPUTS_MAX);
		size_t size = fread(buffer, 1, sizeof(buffer), file);
		fclose(file);
		corpus[corpus_count++] = (struct input){fuzz_exact(buffer, size), size};
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

// ---- mutations ----
static const uint32_t interesting[] = {0, 1, 2, 7, 8, 16, 31, 32, 63, 64, 100, 127, 128, 135, 136, 137, 255,
	256, 1023, 1024, 1025, 1472, 4095, 4096, 16383, 16384, 32767, 32768, 65535, 65536, 0x7fffffff,
	0x80000000, 0xffffffff};

static void overwrite(struct rng *rng, uint8_t *data, size_t size)
{
	size_t width = (size_t)1 << rng_below(rng, 3);
	if (width > size)
		return;
	uint32_t value = interesting[rng_below(rng, ARRAY_COUNT(interesting))];
	memcpy(data + rng_below(rng, size - width + 1), &value, width);
}

static size_t cut(struct rng *rng, uint8_t *data, size_t size)
{
	size_t at = rng_below(rng, size);
	size_t count = 1 + rng_below(rng, size - at);
	memmove(data + at, data + at + count, size - at - count);
	return size - count;
}

// A piece of any input of the corpus, put in at any place.
static size_t graft(struct rng *rng, uint8_t *data, size_t size)
{
	const struct input *from = &corpus[rng_below(rng, corpus_count)];
	if (from->size == 0)
		return size;
	size_t start = rng_below(rng, from->size);
	size_t count = 1 + rng_below(rng, from->size - start);
	size_t at = rng_below(rng, size + 1);
	if (size + count > INPUT_BYTES_MAX)
		return size;
	memmove(data + at + count, data + at, size - at);
	memcpy(data + at, from->data + start, count);
	return size + count;
}

static size_t mutate(struct rng *rng, uint8_t *data, size_t size)
{
	for (uint64_t i = 1 + rng_below(rng, 4); i > 0; i--) {
		switch (size == 0 ? 5 : rng_below(rng, 6)) {
		case 0:
			data[rng_below(rng, size)] ^= (uint8_t)(1u << rng_below(rng, 8));
			break;
		case 1:
			data[rng_below(rng, size)] = (uint8_t)rng_u64(rng);
			break;
		case 2:
		case 3:
			overwrite(rng, data, size);
			break;
		case 4:
			size = cut(rng, data, size);
			break;
		default:
			size = graft(rng, data, size);
			break;
		}
	}
	return size;
}

static void run_mutated(uint32_t runs, uint64_t seed)
{
	static uint8_t data[INPUT_BYTES_MAX];
	struct rng rng;
	rng_seed(&rng, seed);
	for (uint32_t i = 0; i < runs; i++) {
		const struct input *from = &corpus[rng_below(&rng, corpus_count)];
		memcpy(data, from->data, from->size);
		run(data, mutate(&rng, data, from->size));
	}
}

static void missed(const char *what)
{
	printf("# the corpus does not reach: %s\n", what);
	missed_count++;
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: %s LABELS NAME CORPUS RUNS [SEED]\n", argv[0]);
		return 2;
	}
	const char *labels = argv[1], *name = argv[2];
	uint64_t seed = argc > 5 ? strtoull(argv[5], NULL, 0) : SEED;
	load(argv[3]);
	if (corpus_count == 0) {
		printf("not ok x__%s_has_a_corpus\n0 passed, 1 failed\n", name);
		return 1;
	}
	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	for (uint32_t i = 0; i < corpus_count; i++)
		run(corpus[i].data, corpus[i].size);
	printf("ok %s__%s_replays_its_corpus\n", labels, name);
	if (fuzz_unreached != NULL) {
		fuzz_unreached(missed);
		printf("%sok x__%s_corpus_reaches_everything\n", missed_count > 0 ? "not " : "", name);
	}
	fflush(stdout);
	uint32_t runs = (uint32_t)strtoul(argv[4], NULL, 10);
	run_mutated(runs, seed);
	printf("ok %s__%s_stands_mutated_inputs # %u, seed %llu\n", labels, name, runs,
		(unsigned long long)seed);
	printf("%d passed, %d failed\n", (fuzz_unreached != NULL) + 2 - (missed_count > 0), missed_count > 0);
	return missed_count > 0;
}
