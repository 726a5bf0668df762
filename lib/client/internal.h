// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The insides of a client, shared by the files of this folder and by tests.
//
//   start() ─► op (queued at its port) ─► pump: frames of ready ops into the port's send batch
//         ─► kernel
//   kernel ─► receive batch ─► decode ─► CHALLENGE / ACK / REPLY to the op they name ─► completion
//
// An op is one call. Its state says what is awaited; parts that exist only while segments travel
// hang off it (upload, download). A port is one socket with one session (M9). One owner thread per
// client.

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "client/spotlane/client.h"
#include "base/wheel.h"
#include "wire/segment.h"
#include "wire/wire.h"

enum {
	CLIENT_PORTS_MAX = 64,
	CLIENT_BATCH_FRAMES = 64,
	CLIENT_FRAME_BYTES_MAX = 9216, // largest datagram taken
	CLIENT_REPEAT_MS_MIN = 20,     // first repetition after silence; doubles to
	CLIENT_REPEAT_MS_MAX = 200,
	CLIENT_UPLOAD_WINDOW = 64,   // until the first report names the node's window
	CLIENT_SEGMENTS_IN_TURN = 32, // of one op before the next op of the port gets its turn
	CLIENT_KEPT_BYTES_MAX = 4096, // buffers up to this size stay with a free op
	CLIENT_RECEIVE_ROUNDS = 16,   // receive batches in one poll
	// a frame older than that many others is dropped by the node (M9)
	CLIENT_COUNTER_WINDOW = 2048,
	CLIENT_KEEPALIVE_S = 20,
	CLIENT_COOKIE_FRESH_S = 55,   // after that long without traffic a cookie is asked for again
};

enum client_timer_kind {
	TIMER_DEADLINE = 1,
	TIMER_REPEAT = 2,
	TIMER_HELLO = 3,
	TIMER_KEEPALIVE = 4
};

struct client_timer {
	struct wheel_node node;
	enum client_timer_kind kind;
};

enum op_state {
	OP_FREE = 1,
	OP_QUEUED = 2,  // nothing was sent
	OP_SENDING = 3, // segments go out
	OP_LEAVING = 4, // one way, in the send batch
	OP_SENT = 5,    // the answer is awaited
	OP_REPLYING = 6 // segments of the answer come in
};

struct op_upload {
	struct seg_tx tx;
	uint32_t sent_end; // segments below were sent at least once
	uint64_t bitmap[];
};

struct op_download {
	struct seg_rx rx;
	struct wire_header h; // of the first segment that came
	uint8_t *bytes;
	uint64_t bitmap[];
};

struct client_port;

struct client_op {
	enum op_state state;
	uint32_t slot;
	uint32_t round; // how often this slot was used: a late reply names an older round
	uint32_t repeat_wait_ms;
	bool in_queue; // of its port; independent of the state (a challenge queues a sent op again)
	bool in_acks;
	struct client_port *port;
	struct wire_header h; // counter and budget are set by the first sending
	uint64_t sent_cookie; // the cookie its latest frame carried
	uint32_t sendings;    // of its single frame, under whatever cookie
	uint64_t started_ns;
	uint64_t deadline_ns;
	struct client_timer deadline;
	struct client_timer repeat;
	TAILQ_ENTRY(client_op) queue_link; // queue or leaving
	TAILQ_ENTRY(client_op) acks_link;
	struct client_op *next_free;
	spotlane_client_done *done;
	void *arg;
	uint8_t *bytes; // id, then payload
	size_t capacity;
	uint8_t id_bytes;
	uint32_t payload_bytes;
	struct op_upload *upload;
	struct op_download *download;
};

TAILQ_HEAD(op_list, client_op);

enum cookie_state { COOKIE_ABSENT = 1, COOKIE_ASKED = 2, COOKIE_HELD = 3 };

struct client_port {
	struct spotlane_client *client;
	uint32_t index;
	int fd;
	uint64_t session;
	uint64_t counter; // last used
	enum cookie_state cookie_state;
	uint64_t cookie;
	uint32_t hello_wait_ms;
	struct client_timer hello;
	bool hello_due;
	struct client_timer keepalive; // while somebody listens
	uint64_t push_session, push_highest, push_seen; // the node's frames that were pushes (M9)
	uint64_t used_ns; // when a frame last left, or a cookie came
	bool refused; // the network said that nothing listens, and nothing was heard since
	bool blocked; // the kernel's send buffer is full: wait for EPOLLOUT
	struct op_list queue;
	struct op_list acks;
	struct op_list leaving;
	uint32_t out_count;
	uint32_t out_sent;
	uint8_t *out_bytes; // CLIENT_BATCH_FRAMES frames of frame_bytes_max
	struct iovec out_iov[CLIENT_BATCH_FRAMES];
	struct mmsghdr out_msgs[CLIENT_BATCH_FRAMES];
};

struct spotlane_client {
	struct clock *clock;
	uint64_t now_ns; // read once per step
	int epoll_fd;
	bool in_poll;
	bool closing; // completions run for the last time: no call is taken
	bool reaching; // a cookie is wanted though no call waits for one
	uint32_t frame_bytes_max;
	uint32_t repeat_after_ms;
	uint16_t receive_window; // segments beyond the first missing one that we have room for
	uint64_t reply_bytes;    // held by replies being reassembled
	uint64_t reply_bytes_max;
	uint32_t port_count;
	uint32_t port_next;
	struct client_port *ports;
	uint32_t op_max;
	uint32_t op_count; // slots used so far
	struct client_op **ops;
	struct client_op *free_ops;
	uint64_t ended; // calls ended, ever
	struct wheel wheel;
	struct spotlane_client_stats stats;
	spotlane_client_pushed *pushed; // NULL: nobody listens
	void *pushed_arg;
	uint8_t *in_bytes;
	struct iovec in_iov[CLIENT_BATCH_FRAMES];
	struct mmsghdr in_msgs[CLIENT_BATCH_FRAMES];
};

// open.c. clock NULL = the machine's boot-time clock.
int client_open(const char *node, const struct spotlane_client_options *options,
	struct clock *clock, spotlane_client **out, char *error, size_t error_size);

// op.c
static inline uint64_t op_id(const struct client_op *op)
{
	return (uint64_t)op->round << 32 | (op->slot + 1);
}
static inline bool op_is_one_way(const struct client_op *op)
{
	return op->h.family == WIRE_SEND || op->h.family == WIRE_INTENT_SEND;
}
static inline uint64_t op_budget_left_ns(const struct client_op *op, uint64_t now_ns)
{
	return op->deadline_ns > now_ns ? op->deadline_ns - now_ns : 0;
}
// The op in flight with that id, or NULL.
struct client_op *op_find(spotlane_client *client, uint64_t id);
// Fills what every result has.
struct spotlane_client_result op_result(const struct client_op *op, uint64_t now_ns);
// The end of a call: frees the op, then runs its completion. `result` may point into rx buffers.
void op_end(spotlane_client *client, struct client_op *op, struct spotlane_client_result *result);
// Ends that come from here. Accepted is "no" when nothing had left, else "unknown".
void op_end_here(spotlane_client *client, struct client_op *op, enum spotlane_end end,
	enum spotlane_kind kind, uint8_t reason);

// tx.c
void port_queue(struct client_port *port, struct client_op *op);
void port_queue_ack(struct client_port *port, struct client_op *op);
// Puts what is ready into the send batch and gives it to the kernel.
void port_pump(struct client_port *port);
void port_ask_cookie(struct client_port *port);
// Tells the sender of a reply that nothing more of it is needed.
void port_ack_done(struct client_port *port, const struct wire_header *reply);
bool port_is_ready(const struct client_port *port);

// push.c
void push_take(struct client_port *port, const struct wire_frame *frame);
void push_keepalive(struct client_port *port);

// rx.c. Takes what has arrived on the port.
void port_receive(struct client_port *port);
void port_take_frame(struct client_port *port, struct span bytes);
