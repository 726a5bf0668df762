// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What only the process knows, told to the control socket (struct api_host): versions, fabrics and
// their statistics, the configuration file's text.

#include "api/api.h"
#include "config/config.h"
#include "fabrics.h"

struct host {
	struct api_host api;
	const struct config *config;
	struct fabrics *fabrics;
	char *config_text; // NULL when there was no file
	void (*stop)(void *arg, uint32_t deadline_ms);
	void *stop_arg;
	bool ending; // the control socket is being closed
};

void host_init(struct host *host, const struct config *config, const char *config_path,
	struct fabrics *fabrics, void (*stop)(void *arg, uint32_t deadline_ms), void *stop_arg);
void host_fini(struct host *host);
// `spotd -V` and `-VV`.
void host_print_versions(bool all);
