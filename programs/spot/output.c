// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/result.h"
#include "wire/wire.h"

enum spot_exit exit_code_of(const struct spotlane_client_result *result)
{
	switch ((enum spotlane_kind)result->kind) {
	case SPOTLANE_KIND_OK:
		return SPOT_EXIT_OK;
	case SPOTLANE_KIND_NOT_FOUND:
		return SPOT_EXIT_NOT_FOUND;
	case SPOTLANE_KIND_UNAVAILABLE:
	case SPOTLANE_KIND_STALE_ROUTE:
		return SPOT_EXIT_UNAVAILABLE;
	case SPOTLANE_KIND_CAPACITY_EXCEEDED:
		return SPOT_EXIT_CAPACITY;
	case SPOTLANE_KIND_DEADLINE_EXCEEDED:
		return SPOT_EXIT_TIME;
	case SPOTLANE_KIND_DENIED:
	case SPOTLANE_KIND_UNAUTHENTICATED:
		return SPOT_EXIT_DENIED;
	case SPOTLANE_KIND_SNAPSHOT_CONFLICT:
	case SPOTLANE_KIND_HEAD_MISMATCH:
	case SPOTLANE_KIND_LIFECYCLE_CONFLICT:
		return SPOT_EXIT_CONFLICT;
	case SPOTLANE_KIND_ALREADY_EXISTS:
	case SPOTLANE_KIND_TYPE_MISMATCH:
	case SPOTLANE_KIND_NOT_CONFIGURED:
	case SPOTLANE_KIND_REJECTED:
	case SPOTLANE_KIND_CANCELLED:
	case SPOTLANE_KIND_SHUTTING_DOWN:
	case SPOTLANE_KIND_PROTOCOL_ERROR:
	case SPOTLANE_KIND_INVALID_OPERATION:
	case SPOTLANE_KIND_DATA_LOST:
	case SPOTLANE_KIND_INTERNAL_FAILURE:
	case SPOTLANE_KIND_NOT_HOMED:
	case SPOTLANE_KIND_UNSUPPORTED:
		return SPOT_EXIT_REFUSED;
	}
	return SPOT_EXIT_REFUSED;
}

const char *json_name_of_end(uint8_t end)
{
	switch ((enum spotlane_end)end) {
	case SPOTLANE_END_REPLY:
		return "reply";
	case SPOTLANE_END_SENT:
		return "sent";
	case SPOTLANE_END_DEADLINE:
		return "deadline";
	case SPOTLANE_END_CANCELLED:
		return "cancelled";
	case SPOTLANE_END_LOCAL:
		return "local";
	}
	return "unknown";
}

json_t *json_of_refusal(const struct spotlane_refusal *refusal)
{
	char key[2 * sizeof(refusal->owner_key) + 1];
	for (size_t i = 0; i < sizeof(refusal->owner_key); i++)
		snprintf(key + 2 * i, 3, "%02x", refusal->owner_key[i]);
	char node[17];
	snprintf(node, sizeof(node), "%016" PRIx64, refusal->owner_node);
	return json_pack("{s:I, s:I, s:s, s:s}", "limit", (json_int_t)refusal->limit, "current",
		(json_int_t)refusal->current, "owner_key", key, "owner_node", node);
}

static void put_count(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *json_of_rejects(const struct spotlane_client_stats *stats)
{
	json_t *rejects = json_object();
	for (uint32_t i = 1; i < ARRAY_COUNT(stats->by_reject); i++) {
		const char *name = wire_reject_name((enum wire_reject)i);
		if (stats->by_reject[i] > 0)
			put_count(rejects, name ? name : "other", stats->by_reject[i]);
	}
	return rejects;
}

json_t *json_of_stats(const struct spotlane_client_stats *stats)
{
	json_t *object = json_object();
	put_count(object, "started", stats->started);
	put_count(object, "in_flight", stats->in_flight);
	put_count(object, "replies", stats->replies);
	put_count(object, "sent", stats->sent);
	put_count(object, "deadlines", stats->deadlines);
	put_count(object, "cancelled", stats->cancelled);
	put_count(object, "local", stats->local);
	put_count(object, "frames_sent", stats->frames_sent);
	put_count(object, "frames_received", stats->frames_received);
	put_count(object, "bytes_sent", stats->bytes_sent);
	put_count(object, "bytes_received", stats->bytes_received);
	put_count(object, "frames_rejected", stats->frames_rejected);
	json_object_set_new(object, "rejects", json_of_rejects(stats));
	put_count(object, "frames_unexpected", stats->frames_unexpected);
	put_count(object, "acks_received", stats->acks_received);
	put_count(object, "late", stats->late);
	put_count(object, "repeats", stats->repeats);
	put_count(object, "segments_sent", stats->segments_sent);
	put_count(object, "segments_received", stats->segments_received);
	put_count(object, "segments_repeated", stats->segments_repeated);
	put_count(object, "challenges", stats->challenges);
	put_count(object, "hellos", stats->hellos);
	put_count(object, "send_errors", stats->send_errors);
	put_count(object, "refused", stats->refused);
	return object;
}

enum spot_exit json_print(json_t *document)
{
	if (!document) {
		fprintf(stderr, "spot: no memory for the output.\n");
		return SPOT_EXIT_INTERNAL;
	}
	int bad = json_dumpf(document, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
	json_decref(document);
	if (bad || putchar('\n') == EOF || fflush(stdout) != 0) {
		perror("spot: cannot write to standard output");
		return SPOT_EXIT_INTERNAL;
	}
	return SPOT_EXIT_OK;
}
