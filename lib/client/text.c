// SPDX-License-Identifier: BSD-3-Clause
#include "client/spotlane/client.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/result.h"
#include "wire/layout.h"

// The installed numbers are the wire's.
_Static_assert((int)SPOTLANE_KIND_OK == (int)RESULT_OK, "same numbers");
_Static_assert((int)SPOTLANE_KIND_UNAVAILABLE == (int)RESULT_UNAVAILABLE, "same numbers");
_Static_assert(
	(int)SPOTLANE_KIND_CAPACITY_EXCEEDED == (int)RESULT_CAPACITY_EXCEEDED, "same numbers");
_Static_assert((int)SPOTLANE_KIND_CANCELLED == (int)RESULT_CANCELLED, "same numbers");
_Static_assert((int)SPOTLANE_KIND_UNSUPPORTED == (int)RESULT_UNSUPPORTED, "same numbers");
_Static_assert((int)SPOTLANE_ACCEPTED_UNKNOWN == (int)ACCEPTED_UNKNOWN, "same numbers");
_Static_assert((int)SPOTLANE_CONTENT_REFUSAL == (int)WIRE_CONTENT_REFUSAL, "same numbers");

const char *spotlane_kind_name(uint8_t kind)
{
	return result_kind_name(kind);
}

const char *spotlane_reason_name(uint8_t reason)
{
	return result_reason_name(reason);
}

const char *spotlane_accepted_name(uint8_t accepted)
{
	return result_accepted_name(accepted);
}

// What a bound is of, and in what it counts (M5).
struct bound_words {
	const char *of;
	const char *unit;
	bool of_spot;
};

static struct bound_words bound_words_of(uint8_t reason)
{
	switch (reason) {
	case REASON_PROCESS_INBOUND:
		return (struct bound_words){"payload not yet started, on the node", "bytes", false};
	case REASON_PARKED:
		return (struct bound_words){
			"place for messages that wait for a Spot", "messages", false};
	case REASON_APPLICATION_LANE_COUNT:
		return (struct bound_words){"lane", "messages", true};
	case REASON_APPLICATION_LANE_BYTES:
		return (struct bound_words){"lane", "bytes", true};
	case REASON_LIFECYCLE_LANE_COUNT:
		return (struct bound_words){"lifecycle lane", "messages", true};
	case REASON_LIFECYCLE_LANE_BYTES:
		return (struct bound_words){"lifecycle lane", "bytes", true};
	case REASON_SCHEDULER_QUEUE:
		return (struct bound_words){"scheduler queue", "Spots", false};
	case REASON_WORKER_QUEUE:
		return (struct bound_words){"queue of the worker pool", "jobs", false};
	case REASON_ACTIVATION_CEILING:
		return (struct bound_words){"ceiling of live Spots", "Spots", false};
	case REASON_PENDING_ACTIVATIONS:
		return (struct bound_words){"list of activations under way", "activations", false};
	case REASON_PENDING_RESOLVES:
		return (struct bound_words){"list of look-ups under way", "look-ups", false};
	case REASON_REASSEMBLY:
		return (struct bound_words){"place for segmented messages", "bytes", false};
	default:
		return (struct bound_words){"a bound of the node", "units", false};
	}
}

static int print_bound(const struct spotlane_client_result *r, const void *id, size_t id_bytes,
	char *out, size_t size)
{
	struct bound_words words = bound_words_of(r->reason);
	const char *of = words.of_spot ? " of Spot " : "";
	int shown = words.of_spot && id ? (int)id_bytes : 0;
	return snprintf(out, size, ": %s%s%.*s is full: %" PRIu64 " of %" PRIu64 " %s", words.of,
		of, shown, id ? (const char *)id : "", r->refusal.current, r->refusal.limit,
		words.unit);
}

// What a kind means, for people who meet it for the first time. NULL: the name says it.
static const char *kind_words(const struct spotlane_client_result *r)
{
	switch (r->kind) {
	case RESULT_NOT_FOUND:
		return "no such Spot";
	case RESULT_ALREADY_EXISTS:
		return "a Spot with this id exists";
	case RESULT_TYPE_MISMATCH:
		return "the Spot is of another type";
	case RESULT_NOT_CONFIGURED:
		return "the node has no such type or function";
	case RESULT_UNAVAILABLE:
		return "the Spot has an owner that cannot be used now";
	case RESULT_DEADLINE_EXCEEDED:
		return r->end == SPOTLANE_END_DEADLINE ? "no answer within the budget"
						       : "the budget ran out at the node";
	case RESULT_STALE_ROUTE:
		return "the node does not own this Spot now";
	case RESULT_SHUTTING_DOWN:
		return "the node is stopping";
	default:
		return NULL;
	}
}

static int print_words(const struct spotlane_client_result *r, const void *id, size_t id_bytes,
	char *out, size_t size)
{
	if (r->refused)
		return print_bound(r, id, id_bytes, out, size);
	// A handler's own text says more than anything we could.
	if (r->end == SPOTLANE_END_REPLY && r->content_type == SPOTLANE_CONTENT_TEXT &&
		r->payload_bytes > 0 && r->kind != RESULT_OK) {
		size_t shown = r->payload_bytes < 512 ? r->payload_bytes : 512;
		return snprintf(out, size, ": %.*s", (int)shown, (const char *)r->payload);
	}
	const char *words = kind_words(r);
	if (!words)
		return 0;
	if (!id)
		return snprintf(out, size, ": %s", words);
	return snprintf(out, size, ": %s: %.*s", words, (int)id_bytes, (const char *)id);
}

static size_t used(int printed)
{
	return printed > 0 ? (size_t)printed : 0;
}

size_t spotlane_result_text(const struct spotlane_client_result *result, const void *id,
	size_t id_bytes, char *out, size_t size)
{
	char line[1024];
	const char *kind = result_kind_name(result->kind);
	const char *reason = result_reason_name(result->reason);
	const char *accepted = result_accepted_name(result->accepted);
	size_t at = used(snprintf(line, sizeof(line), "%s%s%s", kind ? kind : "?",
		result->reason ? "/" : "", result->reason ? (reason ? reason : "?") : ""));
	at += used(print_words(result, id, id_bytes, line + at, sizeof(line) - at));
	if (at >= sizeof(line))
		at = sizeof(line) - 1;
	at += used(snprintf(
		line + at, sizeof(line) - at, " (accepted: %s)", accepted ? accepted : "?"));
	if (size > 0)
		snprintf(out, size, "%s", line);
	return at;
}
