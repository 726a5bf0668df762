// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counters of one worker. Written by that worker only (plain adds on its own lines), read relaxed by
// anyone. One X-list: the struct, the names in `stats`, the metrics and the documents come from it.

#include <stdint.h>

#include "base/result.h"
#include "wire/wire.h"

// X(name, what it counts)
#define DP_COUNTERS(X)                                                                             \
	X(loops, "loop turns")                                                                     \
	X(loops_busy, "loop turns that found work")                                                \
	X(frames_in, "frames handed up by fabrics")                                                \
	X(frames_rejected, "frames that did not decode (see rejects)")                             \
	X(frames_repeated, "frames dropped as repeats (M9)")                                       \
	X(frames_session_refused, "frames of a session bound to another source, or no room for one") \
	X(frames_challenged, "frames answered with a cookie challenge")                            \
	X(messages_in, "whole messages offered to routing")                                        \
	X(messages_internal, "messages sent by handlers here")                                     \
	X(messages_accepted, "messages admitted into a lane")                                      \
	X(messages_parked, "messages that waited for a route")                                     \
	X(messages_forwarded, "messages sent on to the node that owns their Spot")                 \
	X(messages_delivered, "messages whose handler reached its terminal completion")            \
	X(messages_refused, "messages refused before admission (see refusals)")                    \
	X(messages_dropped, "admitted messages ended without a turn (deadline, close, stale)")     \
	X(messages_cancelled, "requests of handlers that ended Cancelled while they waited (L5)")  \
	X(messages_in_place, "turns run on the received frame")                                    \
	X(messages_crossed, "items passed to another worker")                                      \
	X(sends_refused, "one-way messages refused (M6; see refusals)")                            \
	X(frames_foreign, "frames between nodes that came from no node (dropped)")                 \
	X(routes_stale, "remote routes dropped because their owner said StaleRoute (R2)")          \
	X(routes_forged, "results from other nodes whose reply route is not ours (dropped)")       \
	X(notices, "notices of a stale route to nodes that send one-way")                          \
	X(turns, "handler turns")                                                                  \
	X(turn_overruns, "turns over their time budget (X4)")                                      \
	X(second_answers, "answers a module gave twice")                                           \
	X(pushes, "pushes sent to clients (M10)")                                                  \
	X(pushes_dropped, "pushes whose client was silent for too long, or that found no room (M10)") \
	X(replies, "terminal results sent to clients")                                             \
	X(replies_again, "held results sent again on a repeat of their request (M9)")              \
	X(replies_segmented, "replies that needed several frames")                                 \
	X(segments_in, "segments kept")                                                            \
	X(segments_out, "segments sent, repeats included")                                         \
	X(segments_resent, "segments sent again")                                                  \
	X(reassemblies, "segmented messages completed")                                            \
	X(reassemblies_expired, "half-messages dropped after their time")                          \
	X(calls, "requests made by handlers")                                                      \
	X(calls_late, "answers that came after their call ended (M2)")                             \
	X(offloads, "pieces of blocking work handed off")                                          \
	X(timer_ticks, "timer ticks run (X7)")                                                     \
	X(timer_ticks_left_out, "timer ticks left out: late, the lane full, or no lease")          \
	X(timer_ticks_old, "queued timer ticks of an earlier setting, not run")                    \
	X(resolves, "keys asked of control")                                                       \
	X(facts_full, "times the fact ring was full")                                              \
	X(idle_sleeps, "times the worker slept")

struct dp_counters {
#define X(name, text) uint64_t name;
	DP_COUNTERS(X)
#undef X
	uint64_t rejects[32];      // by enum wire_reject
	uint64_t results[24];      // terminal results by kind
	uint64_t refusals[64];     // refusals by reason
	uint64_t drops[24];        // messages_dropped by kind of the result they ended with
	uint64_t turn_ns_total;
};
