// SPDX-License-Identifier: BSD-3-Clause
// A configuration file. Trusted: the operator, who makes mistakes.
// Refused with one line that says where, or accepted; then its dump reads as the same configuration.
#include "config/config.h"

#include <stdio.h>

#include "base/mem.h"
#include "fuzz.h"

static struct config first, second;
static struct config_report report;
static uint32_t accepted, refused;

static void check_same_again(void)
{
	char digest[CONFIG_DIGEST_BYTES], again[CONFIG_DIGEST_BYTES];
	char *dump = config_dump(&first);
	CHECK(dump != NULL);
	if (config_parse_buffer("dump", dump, strlen(dump), &second, &report) != CONFIG_ACCEPTED) {
		fprintf(stderr, "%s\n%s\n", report.error, dump);
		CHECK(!"a dump is accepted");
	}
	char *dump_again = config_dump(&second);
	CHECK(dump_again != NULL && strcmp(dump, dump_again) == 0);
	config_digest(&first, digest);
	config_digest(&second, again);
	CHECK(strcmp(digest, again) == 0);
	config_fini(&second);
	mem_free(dump);
	mem_free(dump_again);
}

static void check_report(void)
{
	CHECK(memchr(report.error, 0, sizeof(report.error)) != NULL);
	CHECK(report.warning_count <= CONFIG_WARNINGS_MAX && !report.io_failed);
	for (uint32_t i = 0; i < report.warning_count; i++)
		CHECK(report.warnings[i][0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum config_status status =
		config_parse_buffer("input", (const char *)data, size, &first, &report);
	check_report();
	if (status == CONFIG_REFUSED) {
		CHECK(strncmp(report.error, "input:", 6) == 0);
		CHECK(strchr(report.error, '\n') == NULL);
		refused++;
		return 0;
	}
	accepted++;
	check_same_again();
	config_fini(&first);
	return 0;
}

void fuzz_unreached(void (*missed)(const char *what))
{
	if (accepted == 0)
		missed("a configuration that is accepted");
	if (refused == 0)
		missed("a configuration that is refused");
}
