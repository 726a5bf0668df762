// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The in-memory fabric, for tests and the simulator: endpoints with addresses on one net, wired in
// pairs by an explicit call. A hook may decide about every frame, so that a simulator can lose,
// repeat, reorder, or keep it and put it back later.
//
// One thread uses a net and all its endpoints. No system calls; memory is taken when a net or an
// endpoint is made, never later. A frame goes to the wired endpoint whose address is frame.peer; of
// several endpoints with one address (workers of one node) the sender's port picks one, as
// receive-side scaling would.

#include "base/ids.h"
#include "fabric/fabric.h"

enum { FABRIC_LOOP_ENDPOINTS_MAX = 64, FABRIC_LOOP_LATE_MAX = 32 };

enum fabric_loop_verdict {
	FABRIC_LOOP_DELIVER = 1,
	FABRIC_LOOP_DROP = 2,
	FABRIC_LOOP_DUPLICATE = 3,
	// Overtaken by up to `overtaken_by` later frames; comes at the latest when the receiver
	// polls and has nothing else.
	FABRIC_LOOP_LATE = 4,
};

struct fabric_loop_fault {
	enum fabric_loop_verdict verdict;
	uint32_t overtaken_by;
};

struct fabric_loop_pass { // one frame on its way; data is borrowed, writable (to damage it)
	struct fabric_queue *from, *to;
	uint8_t *data;
	uint32_t bytes;
};

typedef struct fabric_loop_fault (*fabric_loop_hook)(
	void *arg, const struct fabric_loop_pass *pass);

struct fabric_loop_endpoint {
	uint8_t ip[16]; // as in struct peer
	uint16_t port;
	uint16_t worker;
	uint8_t fabric;
	uint32_t payload_bytes_max; // 0 = 1,472
	uint32_t frames;            // buffers of this endpoint, in flight or held; 0 = 1,024
};

struct fabric_loop;

// NULL when memory is short.
MUST_USE struct fabric_loop *fabric_loop_create(void);
// Ends every endpoint too. Frames still held by a caller are gone with it.
void fabric_loop_destroy(struct fabric_loop *net);
// NULL when memory is short or the net has FABRIC_LOOP_ENDPOINTS_MAX endpoints.
MUST_USE struct fabric_queue *fabric_loop_open(
	struct fabric_loop *net, const struct fabric_loop_endpoint *config);
// Both ways. Unwired endpoints do not hear each other (a partition); what is under way arrives.
void fabric_loop_wire(struct fabric_queue *a, struct fabric_queue *b);
void fabric_loop_unwire(struct fabric_queue *a, struct fabric_queue *b);
// NULL = deliver all.
void fabric_loop_hook_set(struct fabric_loop *net, fabric_loop_hook hook, void *arg);
// Puts a datagram into an endpoint's inbox past wires and hook (a kept frame that comes late, or
// one that nobody sent). False when it does not fit or no buffer is free: counted there.
bool fabric_loop_inject(
	struct fabric_queue *to, const struct peer *from, const void *data, uint32_t bytes);
// Frames waiting in the inbox, late ones included.
uint32_t fabric_loop_waiting(const struct fabric_queue *q);
// Buffers that neither wait nor are held by a caller; equals config.frames when all is at rest.
uint32_t fabric_loop_free_buffers(const struct fabric_queue *q);
