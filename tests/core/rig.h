// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A node's data plane under test: workers stepped by hand, clock moved by hand, loop fabric, a client
// that speaks the wire, a module whose handlers do what a message's type says, and a scripted control.

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "core/core.h"
#include "dp/port.h"
#include "dp/remote.h"
#include "fabric/loop.h"
#include "publish/publish.h"
#include "route/route.h"
#include "spotlane/module.h"
#include "wire/segment.h"
#include "wire/wire.h"
#include "worker/worker.h"

enum {
	RIG_SPOTS_MAX = 4096,
	RIG_FACTS_MAX = 8192,
	RIG_LOG_MAX = 65536,
	NODE_PORT = 9000,
	RIG_FRAMES = 512, // of each node queue
};

// What the test module's handlers do, by message type.
enum {
	DO_ECHO = 1,        // reply the payload
	DO_NOTHING = 2,     // leave without a reply
	DO_LOG = 3,         // note the payload's first 8 bytes in the log, reply OK
	DO_ASK = 4,         // request DO_ECHO of the Spot whose id is the payload, wait, reply its answer
	DO_ASK_YIELD = 5,   // the same, with yield
	DO_WAIT_NOTHING = 6, // leave with WAIT and no call
	DO_SEND = 7,        // send DO_LOG to the Spot whose id is the payload
	DO_ERROR = 8,       // reply NotFound
	DO_TWICE = 9,       // reply twice
	DO_SPEND = 10,      // let time pass: payload = ticks (8 bytes)
	DO_CLOSE = 11,      // close_self
	DO_OFFLOAD = 12,    // hand the payload to the pool, reply what comes back
	DO_ASK_HOLD = 13,   // request DO_HOLD of the Spot whose id is the payload
	DO_HOLD = 14,       // wait for blocking work that the test releases
	DO_BIG = 15,        // reply with as many bytes as the payload says (4 bytes)
	DO_SPEND_LOG = 16,  // DO_SPEND and DO_LOG of the next 8 bytes
	DO_TIMER = 17,      // set the timer of a struct rig_timer
	DO_ASK_HOLD_YIELD = 20, // DO_ASK_HOLD with yield
	DO_ASK_TWO_YIELD = 21, // DO_ECHO of "b" and of "c", yield; reply when both have answered
	DO_CANCEL = 19,     // cancel the call that the module made last
	DO_TIMER_CANCEL = 18, // cancel the timer whose name is the payload
	DO_WHO = 32,        // DO_LOG, reply the id of the Actor the message is for
	DO_ASK_ACTOR = 33,  // request DO_WHO of the Actor whose id is the payload
	DO_ASK_ACTOR_YIELD = 34, // the same, with yield
	DO_KEEP = 36,       // keep the client's handle
	DO_PUSH = 37,       // push the payload to the kept handle
	DO_JOIN = 35,       // join the Actor named by the payload's first byte to the Spot of the rest
};

struct rig_config {
	uint16_t workers;
	void (*adjust)(struct dp_config *config);
	uint32_t payload_bytes_max; // of a frame; 0 = 1,472
	uint32_t frames;            // of each node queue, a client has twice as many; 0 = RIG_FRAMES
	struct rig *beside; // a second node on the same net: the two are stepped together, it ends first
};

struct rig_client { // one source address and port
	struct fabric_queue *queue;
	struct peer peer;
	uint64_t session;
	uint64_t counter;
	uint64_t cookie;
	uint64_t operation;
};

struct rig {
	struct dp *dp;
	struct route_table *routes;
	struct fabric_loop *net;
	uint16_t workers;
	uint32_t frames;
	struct rig *beside; // the other node
	bool second;
	struct fabric_queue *queues[8];
	struct rig_client clients[8];
	uint32_t client_count;
	struct dp_spot *spots[RIG_SPOTS_MAX];
	uint32_t spot_count;
	uint64_t generations;
	// What control does on its own, and what it saw.
	bool manual; // facts are only kept
	struct dp_fact facts[RIG_FACTS_MAX];
	uint32_t fact_count, fact_taken;
	bool decline; // the User type's create declines
	struct { // per key under activation: who waits
		struct spot_key key;
		uint16_t origin;
		uint32_t waiters; // bit per worker
		bool used;
	} pending[64];
};

// What DO_TIMER sets, and what its ticks do.
struct rig_timer {
	char name[8];
	struct spotlane_timer timer;
	int tick_does; // DO_NOTHING, DO_SPEND (once), DO_TIMER (sets itself anew once), DO_HOLD, DO_ASK_YIELD
	uint64_t spend;
};

// The log of the module's turns (all Spots of the process).
struct rig_log {
	bool many_threads; // set before any worker runs: only `values` are kept
	uint64_t values[RIG_LOG_MAX];
	uint32_t count;
	char order[256]; // lifecycle letters: c construct, f configure, k create, i initialise, x closing, d dispose
	uint32_t closings;
	int closing_reason;
	uint64_t closing_deadline;
	uint32_t disposes;
	int closing_returns;
	int construct_returns, configure_returns, create_returns, initialise_returns;
	uint32_t second_reply_refused;
	uint64_t self_call;
	int cancel_returned;
	int answers_wanted; // DO_ASK_TWO_YIELD
	uint8_t answer_kind, answer_reason, answer_accepted;
	char members[256]; // membership: ? joining, + joined, - left, each with the id's first byte
	int joining_returns;
	struct spotlane_client_handle client;
	int client_returned, push_returned;
	uint32_t answers;
	struct rig_timer timer; // the last that was set
	int timer_set_returned, timer_cancel_returned;
	uint32_t ticks, ticks_under_way, ticks_overlapped;
	struct {
		uint64_t at_ns, due_ns, generation, left_out;
	} tick[256];
};
extern struct rig_log rig_log;

struct rig_clock {
	struct clock clock;
	uint64_t boot_ns; // ticks are nanoseconds here
};
extern struct rig_clock rig_clock;

struct rig *rig_start(const struct rig_config *config);
struct rig *rig_start_plain(uint16_t workers);
void rig_stop(struct rig *rig); // closes what lives, compares the books

void rig_pass(uint64_t ns); // moves the clock
// Steps every worker and control until nothing moves.
void rig_settle(struct rig *rig);
bool rig_control(struct rig *rig);
bool rig_step(struct rig *rig, uint16_t worker);

struct span rig_id(const char *text);
// A published, open Spot with home worker.
struct dp_spot *rig_spot(struct rig *rig, const char *id, const char *type, uint16_t home);
struct dp_spot *rig_find(struct rig *rig, const char *id);
void rig_close(struct rig *rig, struct dp_spot *spot, uint8_t reason);
// Two nodes know each other.
struct rig_pair {
	struct rig *a, *b;
	struct dp_peer *b_at_a, *a_at_b;
};
struct rig_pair rig_pair_start(uint16_t workers, void (*adjust)(struct dp_config *config));
void rig_pair_stop(struct rig_pair *pair);
// At node a: id is at b.
struct dp_remote *rig_remote(struct rig_pair *pair, const char *id);
void rig_remote_retire(struct rig_pair *pair, struct dp_remote *remote);

// ---- Actors: the steps of control, by hand ----
struct dp_actor *rig_place(struct rig *rig, const char *id, struct dp_spot *host);
enum dp_actor_step rig_actor_step(struct rig *rig, const struct dp_actor *actor); // the last told
void rig_enter(struct rig *rig, struct dp_actor *actor); // published, opened
struct dp_actor *rig_join(struct rig *rig, const char *id, struct dp_spot *host); // NULL: refused
void rig_leave(struct rig *rig, struct dp_actor *actor); // ends it
void rig_forget_members(struct rig *rig, struct dp_spot *closed);

uint64_t rig_counter(struct rig *rig, size_t offset);
#define RIG_COUNT(rig, name) rig_counter(rig, offsetof(struct dp_counters, name))
#define RIG_REFUSED(rig, reason)                                                                   \
	rig_counter(rig, offsetof(struct dp_counters, refusals) + (reason) * sizeof(uint64_t))

// ---- client ----
struct rig_client *rig_client(struct rig *rig); // with a cookie
struct rig_client *rig_client_raw(struct rig *rig);
struct rig_message {
	uint8_t family; // 0: request
	const char *id;
	bool actor; // the id is an Actor's
	bool with_id;
	const char *intent; // type name: intent family
	uint16_t type;
	uint8_t flags;
	uint32_t budget_us;
	struct span payload;
	uint64_t owner_node, owner_lease, object_generation;
	uint64_t counter; // 0: next
	uint32_t spot_type;
};
// Builds one frame; returns its size. *out_operation may be NULL.
size_t rig_frame(struct rig *rig, struct rig_client *client, const struct rig_message *m, uint8_t *out,
	uint64_t *out_operation);
// Puts it into worker's queue; returns the operation id.
uint64_t rig_send(struct rig *rig, struct rig_client *client, uint16_t worker, const struct rig_message *m);
void rig_inject(struct rig *rig, struct rig_client *client, uint16_t worker, const void *data, size_t bytes);
// The next frame that came back to the client; false when none.
struct rig_reply {
	struct wire_header h;
	uint8_t body[70000];
	uint32_t body_bytes;
	uint32_t frame_bytes;
};
bool rig_receive(struct rig *rig, struct rig_client *client, struct rig_reply *out);
// Sends a request, settles, expects its reply.
void rig_ask(struct rig *rig, struct rig_client *client, uint16_t worker, const struct rig_message *m,
	struct rig_reply *out);
struct rig_message rig_request(const char *id, uint16_t type, const void *payload, size_t bytes);
void rig_expect(const struct rig_reply *reply, enum result_kind kind, enum result_reason reason,
	enum result_accepted accepted);
// A segmented message: sends segments as a well-behaved sender until the node says done or replies.
// True when *out holds a reply.
bool rig_send_segmented(struct rig *rig, struct rig_client *client, uint16_t worker,
	const struct rig_message *m, struct rig_reply *out);

int rig_main_begin(void);
void rig_main_end(void);
// What blocking work waits for in DO_HOLD: nothing (inline pool); kept for the thread test.
extern const struct spotlane_module rig_module;
