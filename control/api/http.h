// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The HTTP listener for scrapers and probes: GET and HEAD of /metrics, /live, /ready, nothing else. Off
// unless `metrics.listen` names an address; the configuration refuses one beyond loopback unless told.
// It runs on the caller's libuv loop; a client is bounded in number, memory and time, and never waited
// for. libmicrohttpd is used in http.c only. Control thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct api;
struct http;

enum http_page { HTTP_METRICS = 0, HTTP_LIVE = 1, HTTP_READY = 2, HTTP_OTHER = 3, HTTP_PAGES };
const char *http_page_name(enum http_page page);

// NULL with *out_why filled: cannot listen. Its handles count among the api's.
MUST_USE struct http *http_start(struct api *api, char *out_why, size_t why_bytes);
void http_stop(struct http *http); // frees it once its handles are closed
uint16_t http_port(const struct http *http);
