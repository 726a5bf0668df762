// SPDX-License-Identifier: BSD-3-Clause
// spotd: one node. Reads its options, checks its configuration, runs until it is stopped.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "host.h"
#include "log.h"
#include "process.h"

enum { OPTION_CHECK = 256 };

static const char usage[] =
	"usage: spotd --config FILE [--check[=strict]]\n"
	"       spotd -V | -VV | --help\n"
	"\n"
	"  -c, --config FILE     the node's configuration (YAML; see spotd.conf(5))\n"
	"      --check[=strict]  check it and stop: needs neither root nor a NIC; strict refuses\n"
	"                        warnings too\n"
	"  -V, -VV               version; with all libraries built and run with\n"
	"\n"
	"Exit codes: 0 stopped cleanly, 2 configuration, 11 environment (pages, NIC, permissions),\n"
	"12 store, 13 lost its lease, 14 store of another version, 70 internal.\n";

struct options {
	const char *config;
	int version;
	bool check, strict;
};

// False after printing what is wrong.
static bool parse_options(int argc, char **argv, struct options *out)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", optional_argument, NULL, OPTION_CHECK},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;
	while ((option = getopt_long(argc, argv, "c:Vh", longs, NULL)) != -1) {
		switch (option) {
		case 'c':
			out->config = optarg;
			break;
		case 'V':
			out->version++;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(SPOTD_EXIT_CLEAN);
		case OPTION_CHECK:
			out->check = true;
			out->strict = optarg != NULL && strcmp(optarg, "strict") == 0;
			if (optarg != NULL && !out->strict) {
				fprintf(stderr, "spotd: --check=%s: only `strict` is known\n",
					optarg);
				return false;
			}
			break;
		default:
			return false;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"spotd: %s: not an option; the configuration is given by --config\n",
			argv[optind]);
		return false;
	}
	return true;
}

static enum spotd_exit run(const char *path)
{
	static struct config config;
	struct config_report report;
	if (config_load(path, &config, &report) != CONFIG_ACCEPTED) {
		fprintf(stderr, "spotd: %s\n", report.error);
		return SPOTD_EXIT_CONFIG;
	}
	if (!log_open(config.log.file, (enum log_level)config.log.level)) {
		fprintf(stderr, "spotd: log file %s cannot be opened\n", config.log.file);
		return SPOTD_EXIT_ENVIRONMENT;
	}
	for (uint32_t i = 0; i < report.warning_count; i++)
		log_line(LOG_LEVEL_WARN, "%s", report.warnings[i]);
	enum spotd_exit code = process_run(&config, path);
	config_fini(&config);
	log_close();
	return code;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	if (!parse_options(argc, argv, &options)) {
		fputs("spotd: see spotd --help\n", stderr);
		return SPOTD_EXIT_CONFIG;
	}
	if (options.version > 0) {
		host_print_versions(options.version > 1);
		return SPOTD_EXIT_CLEAN;
	}
	if (options.config == NULL) {
		fputs("spotd: --config FILE is missing; see spotd --help\n", stderr);
		return SPOTD_EXIT_CONFIG;
	}
	if (options.check)
		return config_check(options.config, options.strict);
	return run(options.config);
}
