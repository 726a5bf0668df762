// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whole nodes in one thread for the verification list: control core, workers, one memory store, a
// stepped clock, a client that speaks the wire. A test uses only what the list names: the explicit
// create call, ordinary send results, the candidate list, the closing callback, lane admission results.

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dp/port.h"
#include "fabric/loop.h"
#include "node/node.h"
#include "store/memory/memory.h"
#include "wire/wire.h"

enum { Z_NODES = 2, Z_IDS = 64, Z_ASKED_MAX = 512 };
#define Z_MS UINT64_C(1000000)

enum { // what handlers of the module do, by message type
	Z_NOTE = 1, // count
	Z_WORK = 2, // wait for a Spot that never answers: work in progress until its budget ends
};

struct z_id { // what became of one id, as the module saw it
	uint32_t built, ran, closings, disposed;
	int close_reason;
};

struct z_answer {
	bool come;
	uint32_t times;
	struct result result;
	struct refusal refusal;
};

struct z_options {
	uint32_t nodes; // 0: one
	uint64_t spots_max, idle_ms;
};

struct z_node {
	struct store *store;
	struct route_table *routes;
	struct dp *dp;
	struct node *node;
	struct rng rng;
	struct fabric_queue *queue;
	bool stopped_dead; // not stepped any more, as after kill -9
	uint64_t cookie, session, counter;
};

struct z {
	struct z_node nodes[Z_NODES];
	uint32_t node_count;
	struct store *rows;
	struct fabric_loop *net;
	struct fabric_queue *client;
	struct peer client_peer;
	struct z_answer asked[Z_ASKED_MAX];
	uint32_t asked_count;
};

struct z_message {
	uint8_t family; // enum wire_family
	const char *id;
	uint16_t type;
	uint32_t payload_bytes;
	uint32_t budget_ms; // 0: 1,000
};

// Of "s-7" and "r-7" the number decides; ids of both kinds have records of their own.
struct z_id *z_id(const char *id);

struct z *z_start(const struct z_options *options); // NULL: one node, no bounds of its own
void z_stop(struct z *z);
void z_pass(struct z *z, uint32_t ms); // all that live go on, a millisecond at a time
// The message is on its way (the node has not looked yet); returns its place in z->asked.
uint32_t z_send(struct z *z, uint32_t node, const struct z_message *message);
struct z_answer z_ask(struct z *z, uint32_t node, const struct z_message *message); // until it ends
struct z_answer z_create(struct z *z, uint32_t node, const char *id); // User Spot, explicit create
struct z_answer z_control(struct z *z, uint32_t node, uint16_t operation, struct span id,
	struct spot_key key, struct span payload);
