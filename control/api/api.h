// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The control socket: JSON lines over a Unix stream socket (docs/CONTROL_API.md; rules G1, G2, G3,
// G5). The server speaks first; each request has exactly one terminal reply, a result or a numbered
// error. It runs on a libuv loop of the caller and never blocks it: long walks and the audit go in
// small pieces between the loop's other work.
//
// The process ignores SIGPIPE: libuv writes to clients that may be gone.
// Threads: control thread only. Nothing here is shared with workers.
// Limits per api_limits; a client that breaks one loses its connection, never the node.

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "config/config.h"
#include "dp/port.h"
#include "node/node.h"
#include "route/route.h"
#include "store/meter.h"

struct api;

// What only the process itself knows. Every callback is called on the control thread and must not
// block; NULL callbacks mean "nothing to tell".
struct api_fabric { // filled by `fabric`; texts are copied before the callback's next call
	const char *name;     // as configured
	const char *kind;     // "dpdk", "udp"
	const char *driver;   // "net_af_packet", "kernel", …
	const char *address;  // where clients reach it, "10.99.0.1:7700"
	bool link_up;
	uint64_t link_mbps;   // 0 = unknown
	bool hides_losses;    // the driver does not say what it dropped (P3)
	uint32_t payload_bytes_max;
};
typedef void (*api_emit_number)(void *to, const char *name, uint64_t value);
typedef void (*api_emit_text)(void *to, const char *name, const char *value);

struct api_host {
	void *arg;
	const char *version;  // "0.1.0"
	const char *git;      // commit the program was built from, or ""
	const char *eal_line; // effective EAL arguments, or ""
	uint16_t workers;
	// Versions of what it was built with and runs with: compiler, dpdk, liburcu, jemalloc, sqlite …
	void (*versions)(void *arg, api_emit_text emit, void *to);
	uint32_t fabrics;
	void (*fabric)(void *arg, uint32_t index, struct api_fabric *out);
	// Counters of one fabric's queue on one worker, by name (fabric_queue_stats).
	void (*fabric_stats)(
		void *arg, uint32_t index, uint16_t worker, api_emit_number emit, void *to);
	// The configuration file's text as it was read; NULL when there was none. Borrowed.
	const char *(*config_file_text)(void *arg);
	const char *config_path;
	// An operator's stop: node_stop with this deadline and, when stopped, the end of the process.
	void (*stop)(void *arg, uint32_t deadline_ms);
};

struct api_limits { // 0 = the default
	uint32_t clients_max;      // 64
	uint32_t line_bytes_max;   // 65,536 in and out
	uint32_t line_timeout_ms;  // 5,000 from a line's first byte to its end
	uint32_t idle_timeout_ms;  // 300,000 without a request
	uint32_t queue_bytes_max;  // 262,144 of replies that a client does not read
	uint32_t requests_max;     // 16 running at once on one connection
	uint32_t receipts_max;     // 1,024 remembered nonces
};

struct api_options {
	uv_loop_t *uv;
	struct clock *clock;
	struct node *node;
	struct dp *dp;
	struct route_table *routes;
	const struct config *config; // in force; borrowed for the server's life
	const struct api_host *host; // borrowed for the server's life
	const struct store_meter *store_meter; // NULL = the store is not measured
	struct api_limits limits;
	const uid_t *owner; // administers besides root; NULL = the process's effective user
};

// Opens the HTTP listener where the configuration names one (http.h).
// Takes the lock file beside the socket (<socket>.lock), removes a stale socket under it, binds,
// listens. NULL: out_why (at least 256 bytes) says why, in one line for a person.
MUST_USE struct api *api_start(const struct api_options *options, char *out_why, size_t why_bytes);
// Refuses new clients, ends running requests with ShuttingDown, closes, removes the socket. `stopped`
// is called from the loop when nothing of it is left; *api is gone then.
void api_stop(struct api *api, void (*stopped)(void *arg), void *arg);

// An event of the node for `watch`. The node has one sink: the process's own, which calls this.
void api_event(struct api *api, const struct node_event *event);

// One connection on a socket that the caller already has (tests, socket activation). The peer's
// credentials are read from it. Takes over the descriptor.
void api_adopt(struct api *api, int fd);
// The port of the HTTP listener; 0 when it is off.
uint16_t api_http_port(const struct api *api);
