// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The catalogue of errors on the control socket. One list makes the enum, the names, the tool's exit
// codes, the table in docs/CONTROL_API.md and the tests. Numbers never change their meaning.
// 1xx: the line or the request was wrong. 2xx: the node's answer, 200 + the result kind of docs/WIRE.md.

#include <stdint.h>

#include "base/result.h"

// X(C name, code, kind, exit code of the tool, closes the connection, meaning)
#define API_ERRORS(X)                                                                              \
	X(MALFORMED, 101, "Malformed", 1, 1, "The line is not one JSON object.")                   \
	X(LINE_TOO_LONG, 102, "LineTooLong", 1, 1, "The line has more than 65,536 bytes.")         \
	X(LINE_TIMEOUT, 103, "LineTimeout", 1, 1, "The line was not finished in 5 seconds.")       \
	X(TOO_DEEP, 104, "TooDeep", 1, 0, "The object is nested deeper than 8 levels.")            \
	X(NOT_INTEGER, 105, "NotInteger", 1, 0, "A number with a fraction or an exponent.")        \
	X(BAD_REQUEST, 106, "BadRequest", 2, 0, "A member of the request is unknown, missing or of the wrong type.") \
	X(UNKNOWN_OP, 107, "UnknownOp", 2, 0, "No such op.")                                       \
	X(UNKNOWN_ARGUMENT, 108, "UnknownArgument", 2, 0, "The op has no such argument.")          \
	X(MISSING_ARGUMENT, 109, "MissingArgument", 2, 0, "The op needs an argument that is not there.") \
	X(BAD_ARGUMENT, 110, "BadArgument", 2, 0, "An argument has the wrong type or is out of range.") \
	X(TOO_MANY_CLIENTS, 111, "TooManyClients", 9, 1, "64 clients are connected already.")      \
	X(TOO_MANY_REQUESTS, 112, "TooManyRequests", 9, 0, "16 requests of this connection are running already.") \
	X(NOT_PERMITTED, 113, "NotPermitted", 5, 0, "The peer's role does not allow the op.")      \
	X(NONCE_CONFLICT, 114, "NonceConflict", 6, 0, "The nonce was used for another request.")   \
	X(IDLE_TIMEOUT, 115, "IdleTimeout", 1, 1, "No request for 300 seconds.")                   \
	X(NO_MEMORY, 116, "NoMemory", 70, 0, "Memory is short.")                                   \
	X(NOT_FOUND, 202, "NotFound", 7, 0, "No such thing.")                                      \
	X(ALREADY_EXISTS, 203, "AlreadyExists", 6, 0, "It exists already.")                        \
	X(TYPE_MISMATCH, 204, "TypeMismatch", 6, 0, "It exists with another type.")                \
	X(NOT_CONFIGURED, 205, "NotConfigured", 1, 0, "The type is not loaded here.")              \
	X(REJECTED, 206, "Rejected", 1, 0, "The module declined.")                                 \
	X(STALE_ROUTE, 207, "StaleRoute", 8, 0, "This node's lease does not cover it now.")        \
	X(UNAVAILABLE, 208, "Unavailable", 8, 0, "Owner, store or lease is not usable.")           \
	X(CAPACITY_EXCEEDED, 209, "CapacityExceeded", 9, 0, "A bound was hit; detail.reason names it.") \
	X(DEADLINE_EXCEEDED, 210, "DeadlineExceeded", 4, 0, "The time limit passed.")              \
	X(CANCELLED, 211, "Cancelled", 1, 0, "Cancelled.")                                         \
	X(SHUTTING_DOWN, 212, "ShuttingDown", 8, 0, "The node is stopping.")                       \
	X(PROTOCOL_ERROR, 213, "ProtocolError", 1, 0, "A message did not decode.")                 \
	X(INVALID_OPERATION, 214, "InvalidOperation", 1, 0, "It cannot do that.")                  \
	X(DATA_LOST, 215, "DataLost", 1, 0, "Stored data is damaged.")                             \
	X(INTERNAL_FAILURE, 216, "InternalFailure", 70, 0, "A defect or a fault in a module.")     \
	X(NOT_HOMED, 217, "NotHomed", 8, 0, "Another node is its home.")                           \
	X(SNAPSHOT_CONFLICT, 218, "SnapshotConflict", 6, 0, "A state write met a newer version.")  \
	X(HEAD_MISMATCH, 219, "HeadMismatch", 6, 0, "The expected head is not the current one.")   \
	X(LIFECYCLE_CONFLICT, 220, "LifecycleConflict", 6, 0, "Not in this lifecycle state.")      \
	X(DENIED, 221, "Denied", 5, 0, "Not allowed.")                                             \
	X(UNAUTHENTICATED, 222, "Unauthenticated", 5, 0, "Who asks is not known.")                 \
	X(UNSUPPORTED, 223, "Unsupported", 1, 0, "Not supported by this version.")

#define X(name, code, kind, exit_code, closes, text) API_ERROR_##name = (code),
enum api_error { API_ERRORS(X) };
#undef X

enum { API_ERROR_OF_RESULT = 200 }; // + result kind

#define X(name, code, kind, exit_code, closes, text) API_ERROR_ROW_##name,
enum api_error_row_index { API_ERRORS(X) API_ERROR_COUNT };
#undef X

struct api_error_row {
	enum api_error code;
	const char *name; // kind on the wire
	int exit_code;
	int closes;
	const char *text;
};
extern const struct api_error_row api_error_rows[API_ERROR_COUNT];
const struct api_error_row *api_error_find(int code); // NULL when unknown

// The tool's own exit codes (operator conventions).
enum api_exit {
	API_EXIT_DONE = 0,
	API_EXIT_FAILED = 1,
	API_EXIT_USAGE = 2,
	API_EXIT_NO_DAEMON = 3,
	API_EXIT_TIMEOUT = 4,
	API_EXIT_NOT_PERMITTED = 5,
	API_EXIT_CONFLICT = 6,
	API_EXIT_NOT_FOUND = 7,
	API_EXIT_UNAVAILABLE = 8,
	API_EXIT_CAPACITY = 9,
	API_EXIT_PARTLY = 10,
	API_EXIT_INTERNAL = 70,
};
