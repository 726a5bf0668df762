// SPDX-License-Identifier: BSD-3-Clause
// What an event says to a person: what happened, to whom, and what comes next or helps.
#include "node/internal.h"

#include <stdio.h>

#include "spotlane/module.h"

enum { ID_SHOWN = 48 };

static const char *reason_text(struct result r)
{
	const char *name = r.reason == REASON_NONE ? NULL : result_reason_name(r.reason);
	return name != NULL ? name : "-";
}

static const char *close_reason_text(uint64_t reason)
{
	switch (reason) {
	case SPOTLANE_CLOSE_EXPLICIT:
		return "ExplicitClose";
	case SPOTLANE_CLOSE_HOST_SHUTDOWN:
		return "HostShutdown";
	case SPOTLANE_CLOSE_IDLE_EVICTED:
		return "IdleEvicted";
	case SPOTLANE_CLOSE_LEASE_LOST:
		return "LeaseLost";
	default:
		return "RelocationOut";
	}
}

static void peer_text(struct node_event *e, const char *id)
{
	enum peer_standing standing = (enum peer_standing)e->value;
	const char *next = "its Spots stay its own until it is fenced or starts again";
	if (standing == PEER_LIVE)
		next = "its Spots are its own";
	else if (standing == PEER_FENCED || standing == PEER_LEFT)
		next = "its Spots are released";
	snprintf(e->text, sizeof(e->text), "node %s: %s; %s", id, peer_standing_name(standing),
		next);
}

static void write_text(struct node *n, struct node_event *e, const char *id)
{
	const char *kind = result_kind_name(e->result.kind), *reason = reason_text(e->result);
	unsigned long long value = (unsigned long long)e->value;
	char *to = e->text;
	size_t room = sizeof(e->text);
	switch (e->kind) {
	case NODE_EVENT_STATE:
	case NODE_EVENT_LEASE_LOST:
	case NODE_EVENT_LEASE_REGAINED:
	case NODE_EVENT_CLOSE_STUCK:
		snprintf(to, room, "%.150s", n->why);
		return;
	case NODE_EVENT_ACTIVATED:
		snprintf(to, room, "%s is live here, generation %llu", id, value);
		return;
	case NODE_EVENT_ACTIVATION_FAILED:
		snprintf(to, room,
			"%s was not built: %s/%s; the next call with intent tries again", id,
			kind, reason);
		return;
	case NODE_EVENT_CLOSED:
		snprintf(to, room, "%s closed (%s); a call with intent builds it anew", id,
			close_reason_text(e->value));
		return;
	case NODE_EVENT_OVERRUN:
		snprintf(to, room, "a turn of %s took %.1f ms: hand long work to the pool", id,
			(double)e->value / 1e6);
		return;
	case NODE_EVENT_SKEW:
		snprintf(to, room,
			"store clock %.3f s %s this host's: nothing rests on it; look at "
				   "time synchronisation",
			(double)e->value / 1e9, n->skew_ns < 0 ? "behind" : "ahead of");
		return;
	case NODE_EVENT_PEER:
		peer_text(e, id);
		return;
	case NODE_EVENT_FENCED:
		snprintf(to, room,
			"node %s is fenced: %llu Spots released; calls with intent build them "
				   "anew",
			id, value);
		return;
	}
}

void node_emit(struct node *n, enum node_event_kind kind, struct spot_key key, struct span id,
	struct result result, uint64_t value)
{
	if (n->sink == NULL)
		return;
	struct node_event event = {
		.kind = kind, .key = key, .id = id, .result = result, .value = value};
	char shown[ID_SHOWN + 4];
	bool cut = id.size > ID_SHOWN;
	snprintf(shown, sizeof(shown), "%.*s%s", (int)(cut ? ID_SHOWN : id.size),
		id.size == 0 ? "" : (const char *)id.data, cut ? "..." : "");
	write_text(n, &event, id.size == 0 ? "(unknown)" : shown);
	n->sink(n->sink_arg, &event);
}

void node_say_of(struct node *n, enum node_event_kind kind, struct span node_id, uint64_t value)
{
	node_emit(n, kind, (struct spot_key){0, 0}, node_id, result_ok(), value);
}
