// SPDX-License-Identifier: BSD-3-Clause
#include "json.h"

#include <inttypes.h>

struct bench_json bench_json_begin(FILE *file, const char *scenario)
{
	if (file != NULL)
		fprintf(file, "{\"scenario\":\"%s\",\"parameters\":{", scenario);
	return (struct bench_json){.file = file};
}

void bench_json_parameter(struct bench_json *j, const char *name, uint64_t value)
{
	if (j->file != NULL)
		fprintf(j->file, "%s\"%s\":%" PRIu64, j->parameters++ > 0 ? "," : "", name, value);
}

void bench_json_samples(
	struct bench_json *j, const char *name, const char *unit, const struct stats *samples)
{
	if (j->file == NULL || samples->count == 0)
		return;
	fprintf(j->file, "%s\"%s\":{\"unit\":\"%s\",\"samples\":[",
		j->metrics++ > 0 ? "," : "},\"metrics\":{", name, unit);
	for (uint32_t i = 0; i < samples->count; i++)
		fprintf(j->file, "%s%.6g", i > 0 ? "," : "", samples->samples[i]);
	fputs("]}", j->file);
}

void bench_json_value(struct bench_json *j, const char *name, const char *unit, double value)
{
	struct stats one = {{value}, 1};
	bench_json_samples(j, name, unit, &one);
}

void bench_json_end(struct bench_json *j)
{
	if (j->file == NULL)
		return;
	fputs(j->metrics > 0 ? "}}\n" : "},\"metrics\":{}}\n", j->file);
	fflush(j->file);
}
