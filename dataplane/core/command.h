// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Commands and facts: the two rings between control and one worker. A command is a block of control's;
// the worker keeps it as the record of what it carries out, and returns it on the fact ring, with its
// fact or without one; control frees it there. Facts that no command asked for use a fixed pool of the
// worker's. So the worker allocates nothing, and no fact is lost for want of room.

#include <stdbool.h>
#include <stdint.h>

#include "core/item.h"
#include "dp/port.h"
#include "lane/ring.h"

struct dp_worker;

enum { COMMAND_RING = 4096, FACT_POOL = 512, FACT_RING = 8192 };

enum command_kind {
	COMMAND_CONSTRUCT = 1,
	COMMAND_OPEN = 2,
	COMMAND_RELEASE = 3,
	COMMAND_FAIL = 4,
	COMMAND_CLOSE = 5,
	COMMAND_CONTROL_REPLY = 6,
	COMMAND_CLOSE_IDLE = 7,
	COMMAND_ACTOR_ADMIT = 16,
	COMMAND_ACTOR_ENTER = 17,
	COMMAND_ACTOR_LEAVE = 18,
};

enum fact_origin { FACT_OF_POOL = 1, FACT_OF_COMMAND = 2 };

struct fact_node {
	struct fact_node *next;
	uint8_t origin;      // enum fact_origin
	uint8_t told;        // 0: nothing to tell, only given back
	struct dp_fact fact;
};

struct command {
	struct item_head head; // linked like an item on lanes and between workers
	uint8_t kind;          // ITEM_COMMAND, as struct node_head
	uint8_t what;          // enum command_kind
	uint8_t reason;        // CLOSE
	uint8_t scope;         // FAIL: enum dp_fail_scope
	uint32_t charge_bytes; // held of the lifecycle lane
	struct dp_spot *spot;
	struct dp_actor *actor; // ACTOR_*: one place in `spot`
	struct spot_key key;
	uint64_t deadline_boot_ns; // CLOSE, CLOSE_IDLE
	uint64_t idle_ns;          // CLOSE_IDLE: how long it must have been quiet
	uint64_t token;            // CONTROL_REPLY
	struct result result;
	bool has_refusal;
	bool crossed; // OPEN: came from another worker
	struct refusal refusal;
	struct item *first; // OPEN: the message that goes in first
	struct command *next_closing;
	struct fact_node node;
	uint32_t argument_bytes;
	uint8_t argument[];
};

// The rings of one worker.
struct fact_port {
	struct ring *commands; // control → worker
	struct ring *facts;    // worker → control: struct fact_node *
	struct ring *returned; // control → worker: pool nodes
	struct fact_node *pool;
	struct fact_node *free;
	uint32_t pool_used; // nodes of the pool that were used at least once
	struct fact_node *head, *tail; // waiting for room in `facts`
};

MUST_USE bool fact_port_init(struct fact_port *port);
void fact_port_fini(struct fact_port *port);

// Worker side.
bool command_poll(struct dp_worker *w);                 // takes and runs a burst of commands
struct fact_node *fact_begin(struct dp_worker *w);      // NULL: pool empty, counted
void fact_post(struct dp_worker *w, struct fact_node *node);
void command_done(struct dp_worker *w, struct command *command); // without a fact
void fact_flush(struct dp_worker *w);
