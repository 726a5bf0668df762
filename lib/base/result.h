// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Terminal results of messages and operations: a kind, a reason and whether the work was accepted
// (semantics M4, M5). Numbers are on the wire and in vectors: they never change and 0 is never
// sent. This list is the one source: the wire page, the dissector, the Python client's table and
// the vectors are generated from it by scripts/gen-wire.

#include <stdint.h>

#include "base/compiler.h"

// X(C name, wire number, printed name)
#define RESULT_KINDS(X)                                                                            \
	X(OK, 1, "OK")                                                                             \
	X(NOT_FOUND, 2, "NotFound")                                                                \
	X(ALREADY_EXISTS, 3, "AlreadyExists")                                                      \
	X(TYPE_MISMATCH, 4, "TypeMismatch")                                                        \
	X(NOT_CONFIGURED, 5, "NotConfigured")                                                      \
	X(REJECTED, 6, "Rejected")                                                                 \
	X(STALE_ROUTE, 7, "StaleRoute")                                                            \
	X(UNAVAILABLE, 8, "Unavailable")                                                           \
	X(CAPACITY_EXCEEDED, 9, "CapacityExceeded")                                                \
	X(DEADLINE_EXCEEDED, 10, "DeadlineExceeded")                                               \
	X(CANCELLED, 11, "Cancelled")                                                              \
	X(SHUTTING_DOWN, 12, "ShuttingDown")                                                       \
	X(PROTOCOL_ERROR, 13, "ProtocolError")                                                     \
	X(INVALID_OPERATION, 14, "InvalidOperation")                                               \
	X(DATA_LOST, 15, "DataLost")                                                               \
	X(INTERNAL_FAILURE, 16, "InternalFailure")                                                 \
	X(NOT_HOMED, 17, "NotHomed")                                                               \
	X(SNAPSHOT_CONFLICT, 18, "SnapshotConflict")                                               \
	X(HEAD_MISMATCH, 19, "HeadMismatch")                                                       \
	X(LIFECYCLE_CONFLICT, 20, "LifecycleConflict")                                             \
	X(DENIED, 21, "Denied")                                                                    \
	X(UNAUTHENTICATED, 22, "Unauthenticated")                                                  \
	X(UNSUPPORTED, 23, "Unsupported")

// Reason 0 means "no further reason" and is legal on the wire. 1..13 are the capacity reasons of M5
// (a refusal with one of them carries a refusal body); the rest say more about other kinds.
#define RESULT_REASONS(X)                                                                          \
	X(PROCESS_INBOUND, 1, "ProcessInbound")                                                    \
	X(PARKED, 2, "Parked")                                                                     \
	X(APPLICATION_LANE_COUNT, 3, "ApplicationLaneCount")                                       \
	X(APPLICATION_LANE_BYTES, 4, "ApplicationLaneBytes")                                       \
	X(LIFECYCLE_LANE_COUNT, 5, "LifecycleLaneCount")                                           \
	X(LIFECYCLE_LANE_BYTES, 6, "LifecycleLaneBytes")                                           \
	X(SCHEDULER_QUEUE, 7, "SchedulerQueue")                                                    \
	X(WORKER_QUEUE, 8, "WorkerQueue")                                                          \
	X(BATCH, 9, "Batch")                                                                       \
	X(ACTIVATION_CEILING, 10, "ActivationCeiling")                                             \
	X(PENDING_ACTIVATIONS, 11, "PendingActivations")                                           \
	X(PENDING_RESOLVES, 12, "PendingResolves")                                                 \
	X(PLACEMENT, 13, "Placement")                                                              \
	X(REASSEMBLY, 14, "Reassembly")                                                            \
	X(TOO_LARGE, 32, "TooLarge")                                                               \
	X(KEY_COLLISION, 33, "KeyCollision")                                                       \
	X(GENERATION_EXHAUSTED, 34, "GenerationExhausted")                                         \
	X(STORE_UNREACHABLE, 35, "StoreUnreachable")                                               \
	X(RCU_STALLED, 36, "RcuStalled")                                                           \
	X(LEASE_LOST, 37, "LeaseLost")                                                             \
	X(OWNER_UNUSABLE, 38, "OwnerUnusable")                                                     \
	X(CLOSING, 39, "Closing")                                                                  \
	X(DECLINED, 40, "Declined")                                                                \
	X(FACTORY_FAILED, 41, "FactoryFailed")                                                     \
	X(HANDLER_FAULT, 42, "HandlerFault")                                                       \
	X(NO_REPLY, 43, "NoReply")                                                                 \
	X(UNKNOWN_TYPE, 44, "UnknownType")                                                         \
	X(UNKNOWN_MESSAGE, 45, "UnknownMessage")                                                   \
	X(BAD_PAYLOAD, 46, "BadPayload")                                                           \
	X(ID_MISSING, 47, "IdMissing")                                                             \
	X(ENTRY_ID_SHAPE, 48, "EntryIdShape")                                                      \
	X(SELF_AWAIT, 49, "SelfAwait")                                                             \
	X(COOKIE_REQUIRED, 50, "CookieRequired")                                                   \
	X(GENERATION_MISMATCH, 51, "GenerationMismatch")                                           \
	X(OUT_OF_MEMORY, 52, "OutOfMemory")                                                        \
	X(HAS_MEMBERS, 53, "HasMembers")                                                           \
	X(WRONG_OWNER, 54, "WrongOwner")

#define X(name, number, text) RESULT_##name = (number),
enum result_kind { RESULT_KINDS(X) };
#undef X

enum result_reason {
	REASON_NONE = 0,
#define X(name, number, text) REASON_##name = (number),
	RESULT_REASONS(X)
#undef X
};

enum result_accepted { ACCEPTED_YES = 1, ACCEPTED_NO = 2, ACCEPTED_UNKNOWN = 3 };

// A terminal result, small enough to pass by value. Fields hold enum values in wire width.
struct result {
	uint8_t kind;     // enum result_kind
	uint8_t reason;   // enum result_reason
	uint8_t accepted; // enum result_accepted
};

// The body of a refusal for room (M5): whose room, which bound, how full.
struct refusal {
	uint64_t limit;
	uint64_t current;
	uint8_t owner_key[16]; // Spot key whose lane refused; zero when the bound is the node's
	uint64_t owner_node;   // node key (base/ids.h)
};

// Printed names; NULL for a number outside the closed set. Any thread.
const char *result_kind_name(uint8_t kind);
const char *result_reason_name(uint8_t reason);
const char *result_accepted_name(uint8_t accepted);

static inline struct result result_make(
	enum result_kind kind, enum result_reason reason, enum result_accepted accepted)
{
	return (struct result){(uint8_t)kind, (uint8_t)reason, (uint8_t)accepted};
}

static inline struct result result_ok(void)
{
	return result_make(RESULT_OK, REASON_NONE, ACCEPTED_YES);
}

// A definite no: nothing was accepted.
static inline struct result result_refused(enum result_kind kind, enum result_reason reason)
{
	return result_make(kind, reason, ACCEPTED_NO);
}
