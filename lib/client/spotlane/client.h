// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The client library: calls to the Spots of one Spotlane node over UDP (docs/WIRE.md).
//
// A client is a non-blocking machine over one or more UDP sockets. It has no threads of its own and
// works only inside the calls below: start() takes a call, poll() sends, receives, watches time
// limits and runs completions. Every call that was started ends with exactly one completion: the
// reply, a local end (time limit, cancellation) or, for one-way messages, having left (M2). A call
// is never made a second time by the library (M3): what is repeated are unanswered frames,
// unchanged, which the node accepts at most once (M9).
//
// Threads: one thread at a time per client; different clients are independent.
// Memory: bytes given to start() are copied; bytes given to a completion are borrowed until it
// returns. Completions may start and cancel calls, but not poll, wait or close.
// Errors: functions returning int give 0 (or a count) or a negative errno.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOTLANE_CLIENT_API 1u

// ---- results (M4). Numbers as on the wire. ----

enum spotlane_kind {
	SPOTLANE_KIND_OK = 1,
	SPOTLANE_KIND_NOT_FOUND = 2,
	SPOTLANE_KIND_ALREADY_EXISTS = 3,
	SPOTLANE_KIND_TYPE_MISMATCH = 4,
	SPOTLANE_KIND_NOT_CONFIGURED = 5,
	SPOTLANE_KIND_REJECTED = 6,
	SPOTLANE_KIND_STALE_ROUTE = 7,
	SPOTLANE_KIND_UNAVAILABLE = 8,
	SPOTLANE_KIND_CAPACITY_EXCEEDED = 9,
	SPOTLANE_KIND_DEADLINE_EXCEEDED = 10,
	SPOTLANE_KIND_CANCELLED = 11,
	SPOTLANE_KIND_SHUTTING_DOWN = 12,
	SPOTLANE_KIND_PROTOCOL_ERROR = 13,
	SPOTLANE_KIND_INVALID_OPERATION = 14,
	SPOTLANE_KIND_DATA_LOST = 15,
	SPOTLANE_KIND_INTERNAL_FAILURE = 16,
	SPOTLANE_KIND_NOT_HOMED = 17,
	SPOTLANE_KIND_SNAPSHOT_CONFLICT = 18,
	SPOTLANE_KIND_HEAD_MISMATCH = 19,
	SPOTLANE_KIND_LIFECYCLE_CONFLICT = 20,
	SPOTLANE_KIND_DENIED = 21,
	SPOTLANE_KIND_UNAUTHENTICATED = 22,
	SPOTLANE_KIND_UNSUPPORTED = 23
};

enum spotlane_accepted {
	SPOTLANE_ACCEPTED_YES = 1,
	SPOTLANE_ACCEPTED_NO = 2,
	SPOTLANE_ACCEPTED_UNKNOWN = 3
};

// Printed names ("CapacityExceeded", "ApplicationLaneCount", "unknown"); NULL outside the closed
// sets.
const char *spotlane_kind_name(uint8_t kind);
const char *spotlane_reason_name(uint8_t reason);
const char *spotlane_accepted_name(uint8_t accepted);

enum spotlane_content_type {
	SPOTLANE_CONTENT_BYTES = 0,
	SPOTLANE_CONTENT_JSON = 1,
	SPOTLANE_CONTENT_TEXT = 2,
	SPOTLANE_CONTENT_REFUSAL = 3
};

// Who ended the call.
enum spotlane_end {
	SPOTLANE_END_REPLY = 1,    // the node answered
	// a one-way message left this host (in segments: the node needs no more)
	SPOTLANE_END_SENT = 2,
	SPOTLANE_END_DEADLINE = 3, // the budget ran out here
	SPOTLANE_END_CANCELLED = 4, // spotlane_client_cancel or close
	SPOTLANE_END_LOCAL = 5     // no memory for the reply, or its segments contradict each other
};

// The body of a refusal for room (M5).
struct spotlane_refusal {
	uint64_t limit;
	uint64_t current;
	uint8_t owner_key[16]; // the Spot whose lane refused; zero when the bound is the node's own
	uint64_t owner_node;
};

struct spotlane_client_result {
	uint8_t kind;
	uint8_t reason;   // 0 = no further reason
	uint8_t accepted; // enum spotlane_accepted
	uint8_t end;      // enum spotlane_end
	uint16_t content_type;
	uint8_t ingress_worker; // hints (replies)
	uint8_t home_worker;
	uint8_t pressure;  // 1 = the node asks its clients to slow down
	uint8_t explained; // 1 = `explanation` is filled
	uint8_t refused;   // 1 = `refusal` is filled
	uint8_t reserved;
	uint32_t port; // source port index that the call used, from 0
	uint64_t object_generation;
	uint64_t latency_ns; // from start() to the end
	struct spotlane_refusal refusal;
	const void *payload;
	size_t payload_bytes;
	const char *explanation; // the stages' verdicts, JSON text without a NUL
	size_t explanation_bytes;
};

// ---- a client ----

typedef struct spotlane_client spotlane_client;

struct spotlane_client_options {
	size_t size;                // sizeof(struct spotlane_client_options)
	uint32_t ports;             // source ports, one session each; 1..64, 0 = 1
	uint32_t in_flight_max;     // calls at once; 0 = 65536
	// largest datagram sent; 1416..9000, 0 = 1452 (fits IPv6 in 1500)
	uint32_t frame_bytes_max;
	uint32_t socket_bytes;      // socket buffers asked for; 0 = 4 MiB
	uint64_t reply_bytes_max;   // memory for replies being reassembled; 0 = 64 MiB
	// Repeat an unanswered single-frame request, unchanged, after this, then at doubling
	// intervals; 0 = never. Of use while fewer than 2,048 frames a port are unanswered.
	uint32_t repeat_after_ms;
};

// Opens the sockets; sends nothing yet. node: "HOST:PORT", "[V6]:PORT". Options may be NULL. May
// block while the name is resolved. On failure a sentence is written to error (if given).
int spotlane_client_open(const char *node, const struct spotlane_client_options *options,
	spotlane_client **out, char *error, size_t error_size);
// Calls in flight end Cancelled (their completions run). Accepts NULL.
void spotlane_client_close(spotlane_client *client);
// Waits until the node has answered on every port (with the cookie that calls need): 0,
// -ECONNREFUSED (nothing listens there) or -ETIMEDOUT. Calls ask by themselves; this tells the
// cases apart early.
int spotlane_client_reach(spotlane_client *client, uint64_t wait_us);

// ---- calls ----

enum spotlane_call_family {
	SPOTLANE_CALL_SEND = 1,    // one way; with `type` an intent send
	SPOTLANE_CALL_REQUEST = 2, // one result; with `type` an intent request
	SPOTLANE_CALL_CREATE = 3,
	SPOTLANE_CALL_GET_OR_CREATE = 4,
	SPOTLANE_CALL_CLOSE = 5,
	SPOTLANE_CALL_LOOKUP = 6,
	SPOTLANE_CALL_JOIN = 7, // id: an Actor; payload: the Spot to join, empty = the node's Entry Spot
	SPOTLANE_CALL_LEAVE = 8 // id: an Actor
};

typedef void spotlane_client_done(void *arg, const struct spotlane_client_result *result);

struct spotlane_client_call {
	size_t size; // sizeof(struct spotlane_client_call)
	enum spotlane_call_family family;
	const void *id; // 1..255 bytes of UTF-8 without NUL
	size_t id_bytes;
	const char *type; // Spot type: declares intent, or names what to create; NULL = none
	uint16_t message_type;
	uint16_t content_type; // enum spotlane_content_type
	uint8_t explain;       // 1 = ask for each stage's verdict
	uint8_t actor;         // 1 = id is an Actor's (send and request, without type)
	uint8_t reserved[2];
	uint32_t port; // 1 + index of the source port to use; 0 = in turn
	const void *payload;
	size_t payload_bytes; // up to 16 MiB
	uint64_t budget_us;   // M7, covers everything up to the reply; 0 = 5 s; at most 1 h
	spotlane_client_done *done; // may be NULL
	void *arg;
};

// Takes a call; it leaves with the next poll. -EINVAL: something in it is not legal; -EMSGSIZE:
// more than 16 MiB; -EAGAIN: in_flight_max calls are in flight; -ENOMEM. Nothing happened then, and
// `done` will not run. out_ticket may be NULL.
int spotlane_client_start(
	spotlane_client *client, const struct spotlane_client_call *call, uint64_t *out_ticket);
// Ends a call here: its completion runs at once with Cancelled. -ENOENT when it already ended.
int spotlane_client_cancel(spotlane_client *client, uint64_t ticket);

// Sends, receives, and ends what is due; waits up to wait_us for something to happen (0 = do not
// wait). Returns how many calls ended.
int spotlane_client_poll(spotlane_client *client, uint64_t wait_us);
// For the caller's own loop: poll(client, 0) when this descriptor is readable, and at the latest
// after spotlane_client_next_us() microseconds (UINT64_MAX = no timer is set).
int spotlane_client_fd(const spotlane_client *client);
uint64_t spotlane_client_next_us(spotlane_client *client);
uint32_t spotlane_client_in_flight(const spotlane_client *client);

// The blocking form: starts the call, polls until it ends. call->done must be NULL. The reply's
// payload is the caller's until spotlane_reply_free. Other calls in flight make progress meanwhile.
struct spotlane_reply {
	struct spotlane_client_result result; // payload points to `bytes`
	void *bytes;
};
int spotlane_client_call_wait(spotlane_client *client, const struct spotlane_client_call *call,
	struct spotlane_reply *out_reply);
void spotlane_reply_free(struct spotlane_reply *reply);

// The refusal sentence for people, for example
// "CapacityExceeded/ApplicationLaneCount: lane of Spot slow-1 is full: 8 of 8 messages (accepted:
// no)". id may be NULL. Writes at most size bytes with a NUL; returns the length it needed.
size_t spotlane_result_text(const struct spotlane_client_result *result, const void *id,
	size_t id_bytes, char *out, size_t size);

// ---- pushes (M10) ----

// What a Spot sent unasked, to a client whose request it once answered.
struct spotlane_push {
	uint8_t spot_key[16]; // of the Spot, or of the Actor whose turn sent it
	uint16_t message_type;
	uint16_t content_type; // enum spotlane_content_type
	uint32_t port;         // source port index, from 0
	const void *payload;   // borrowed until the callback returns
	size_t payload_bytes;
};
typedef void spotlane_client_pushed(void *arg, const struct spotlane_push *push);
// From now on pushes are given to `pushed`, inside poll(), each once and in no promised order, and a
// keepalive leaves each port every 20 s of silence on the node's side, so that Spots may push for as
// long as poll() is called. NULL ends it. Pushes that nobody listens to are counted and dropped.
void spotlane_client_listen(spotlane_client *client, spotlane_client_pushed *pushed, void *arg);

// ---- statistics ----

struct spotlane_client_stats {
	// started = in_flight + replies + sent + deadlines + cancelled + local
	uint64_t started;
	uint64_t in_flight;
	uint64_t replies;
	uint64_t sent;
	uint64_t deadlines;
	uint64_t cancelled;
	uint64_t local;
	uint64_t by_kind[32];   // replies, by kind
	uint64_t by_reason[64]; // replies, by reason
	uint64_t frames_sent;
	uint64_t frames_received;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	uint64_t frames_rejected; // did not decode (docs/WIRE.md, reject codes)
	uint64_t by_reject[32];
	uint64_t frames_unexpected; // decoded, but nothing a client takes, or of another session
	uint64_t acks_received;     // reports about segments sent
	uint64_t late;              // replies to calls that had already ended (repeats included)
	uint64_t repeats;           // frames sent again
	uint64_t segments_sent;     // repeats included
	uint64_t segments_received; // repeats included
	uint64_t segments_repeated; // received again
	uint64_t challenges;
	uint64_t hellos;
	uint64_t send_errors; // datagrams the kernel refused
	uint64_t refused;     // "nothing listens there" reports of the network
	uint64_t pushes;      // given to the listener
};
void spotlane_client_stats_read(const spotlane_client *client, struct spotlane_client_stats *out);

#ifdef __cplusplus
}
#endif
