// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Activation of one Spot on one node (semantics A): what a stored row means, and the machine that
// carries a key from its first question to Ready, and from Ready to gone. Pure; any thread. The
// driver (control/node) carries effects out and reports what happened as the next event.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ids.h"

// ---- A2: the resolver's four closed states, each with its fences ----
enum resolved_kind {
	RESOLVED_MISSING = 1,
	RESOLVED_CREATING = 2,
	RESOLVED_READY = 3,
	RESOLVED_UNAVAILABLE = 4,
};

enum claimant { // whose attempt a CREATING row is
	CLAIMANT_OTHER = 1,
	CLAIMANT_OURS_LOST = 2, // this node's (this run's or a former one's) and nobody works on it
	CLAIMANT_DEAD = 3,      // another node's run that is over: who reads this cleans it (A8)
};

enum ready_place { READY_HERE = 1, READY_ELSEWHERE = 2 };

enum owner_evidence { // what speaks against the owner
	EVIDENCE_OWNER_OVER = 1,  // another node's run that is over; its release is a formal act (O6)
	EVIDENCE_FORMER_RUN = 2,  // a run of this node that is over
	EVIDENCE_NO_OBJECT = 3,   // this run's row, and no object for it
};

// Who the row names, as this node can tell (O4). A run that this node's view does not know yet is not
// among them: the driver reads the view anew before it asks.
enum owner_standing {
	OWNER_THIS_RUN = 1,
	OWNER_FORMER_RUN = 2, // of this node
	OWNER_OTHER_LIVE = 3,
	OWNER_OTHER_OVER = 4,
};

struct authority_fence {
	uint8_t owner_boot[16];
	struct object_generation object_generation;
	struct authority_generation authority_generation;
};

struct resolved {
	enum resolved_kind kind;
	union {
		struct {
			uint64_t lookup_wall_ns; // the read that found nothing
		} missing;
		struct {
			enum claimant claimant;
			struct authority_fence reservation;
			uint8_t attempt[16];
		} creating;
		struct {
			enum ready_place place;
			struct authority_fence authority;
			struct lease_generation owner_lease;
		} ready;
		struct {
			struct authority_fence authority;
			enum owner_evidence evidence;
		} unavailable;
	} as;
};

struct resolve_row { // what of a stored row decides
	bool exists;
	bool ready; // else creating
	enum owner_standing owner;
	bool object_here; // a live route to an object of this very object generation
	struct authority_fence fence;
	struct lease_generation owner_lease;
	uint8_t last_operation[16];
	uint64_t read_wall_ns;
};
struct resolved activation_resolve(const struct resolve_row *row);

// ---- A4: two tags that cannot be swapped ----
// A formal release is complete: goes to the creation coordinator, which may find Missing now.
struct authority_released {
	struct authority_fence was;
};
// The owner cannot be used; authority stays: goes to the terminal completion adapter.
struct owner_availability_changed {
	struct authority_fence authority;
	enum owner_evidence evidence;
};

// ---- the machine ----
// X(name, printed name, what it means)
#define ACTIVATION_STATES(X)                                                                       \
	X(IDLE, "idle", "nothing under way: Ready with an object here, or unknown")                \
	X(READING, "reading", "the stored row is being read")                                      \
	X(AWAITING, "awaiting", "another node's attempt, or a run not seen yet; read again later")  \
	X(CLEANING, "cleaning", "a row that nobody works on is being deleted (A8)")                 \
	X(QUEUED, "queued", "a creation waits for its turn (A10)")                                 \
	X(DRAWING, "drawing", "waits for an object generation (T3)")                               \
	X(CLAIMING, "claiming", "the claim is at the store")                                       \
	X(CLAIM_LOST, "claim-lost", "the claim's answer was lost; reading back (O7)")              \
	X(BUILDING, "building", "the home worker runs the factory")                                \
	X(COMMITTING, "committing", "Ready is at the store")                                       \
	X(COMMIT_LOST, "commit-lost", "the commit's answer was lost; reading back (O7)")           \
	X(OPENING, "opening", "published; the first message is being enqueued (A7)")               \
	X(UNBUILDING, "unbuilding", "the attempt failed; the object is being disposed of")         \
	X(ABORTING, "aborting", "the attempt failed; its claim is being deleted (A8)")             \
	X(WITHDRAWING, "withdrawing", "committed but not published; the object is being disposed of") \
	X(CLOSING, "closing", "the home worker finishes work and runs the closing callback (C4)")  \
	X(STUCK, "stuck", "the closing callback outlasted its hard limit: owned and unroutable")   \
	X(RELEASING, "releasing", "the closed Spot's row is being deleted")

enum activation_state {
	ACTIVATION_STATE_NONE = 0,
#define X(name, text, meaning) ACTIVATION_##name,
	ACTIVATION_STATES(X)
#undef X
		ACTIVATION_STATE_END,
};

#define ACTIVATION_EVENTS(X)                                                                       \
	X(ASKED, "asked", "somebody waits for this key")                                           \
	X(FRESH, "fresh", "a new id of this node's own (Entry)")                                   \
	X(CLOSE, "close", "the object here is to be closed")                                       \
	X(MISSING, "missing", "no row, and nobody wants one")                                      \
	X(WANTED, "wanted", "no row, and somebody declared intent or creates")                     \
	X(HERE, "here", "Ready with its object on this node")                                      \
	X(ELSEWHERE, "elsewhere", "Ready with an owner that is not this run")                       \
	X(OTHERS, "others", "Creating by another node, or owned by a run not seen yet")             \
	X(ORPHAN, "orphan", "a row of this node, or a dead node's claim, that nobody works on")     \
	X(REFUSED, "refused", "a bound, a collision or the end of admission refuses")              \
	X(TURN, "turn", "a place among the running activations is free")                           \
	X(DRAWN, "drawn", "an object generation is at hand")                                       \
	X(DONE, "done", "the store did it")                                                        \
	X(CONFLICT, "conflict", "the store met another row, or none")                              \
	X(FAILED, "failed", "the store failed; nothing was applied")                               \
	X(LOST, "lost", "no answer from the store; may have been applied")                         \
	X(OURS, "ours", "read back: it was applied")                                               \
	X(NOT_OURS, "not-ours", "read back: it was not applied")                                   \
	X(BUILT, "built", "the factory succeeded")                                                 \
	X(UNBUILT, "unbuilt", "the factory failed, or there was no memory for it")                 \
	X(LAPSED, "lapsed", "the owner lease ran out on the way (O3)")                             \
	X(UNPUBLISHED, "unpublished", "the route could not be published (R3)")                     \
	X(OPENED, "opened", "the lane is open")                                                    \
	X(CLOSED, "closed", "the home worker disposed of the object")                              \
	X(KEPT, "kept", "work came before the idle close: the object stays (C4)")                  \
	X(LIMIT, "limit", "the time of this state is over")                                        \
	X(RETRY, "retry", "time to try again")

enum activation_event {
	ACTIVATION_EVENT_NONE = 0,
#define X(name, text, meaning) ACTIVATION_EV_##name,
	ACTIVATION_EVENTS(X)
#undef X
		ACTIVATION_EVENT_END,
};

// In the order in which a driver carries them out.
#define ACTIVATION_EFFECTS(X)                                                                      \
	X(FAIL, "fail", "end everybody who waits, once each")                                      \
	X(STUCK, "stuck", "count and name the stuck closing")                                      \
	X(UNSTUCK, "unstuck", "count it back")                                                     \
	X(DESTROY, "destroy", "free the object, which was never published")                        \
	X(READ, "read", "read the row")                                                            \
	X(QUEUE, "queue", "wait for a place")                                                      \
	X(DRAW, "draw", "take an object generation")                                               \
	X(CLAIM, "claim", "store the claim, with a fresh attempt")                                 \
	X(BUILD, "build", "make the object and run its factory")                                   \
	X(COMMIT, "commit", "store Ready")                                                         \
	X(PUBLISH, "publish", "publish the route and open the lane, in this continuation")         \
	X(DISPOSE, "dispose", "close the object on its home worker")                               \
	X(ABORT, "abort", "delete the claim")                                                      \
	X(CLEAN, "clean", "delete the orphaned row")                                               \
	X(RELEASE, "release", "delete the Ready row")                                              \
	X(RETIRE, "retire", "retire the route; the object is freed after a grace period")          \
	X(LATER, "later", "try again later")                                                       \
	X(SERVE, "serve", "everybody who waits looks again, or the entry ends")

enum activation_effect_bit {
#define X(name, text, meaning) ACTIVATION_BIT_##name,
	ACTIVATION_EFFECTS(X)
#undef X
		ACTIVATION_EFFECT_COUNT,
};
enum activation_effect {
	ACTIVATION_NOTHING = 0,
#define X(name, text, meaning) ACTIVATION_DO_##name = 1 << ACTIVATION_BIT_##name,
	ACTIVATION_EFFECTS(X)
#undef X
};

struct activation_step {
	uint8_t next;     // enum activation_state; NONE: the pair is impossible
	uint32_t effects; // enum activation_effect
};
struct activation_step activation_next(enum activation_state state, enum activation_event event);

const char *activation_state_name(enum activation_state state);
const char *activation_event_name(enum activation_event event);
const char *activation_effect_name(enum activation_effect_bit bit);
const char *activation_state_text(enum activation_state state);
const char *activation_event_text(enum activation_event event);
const char *activation_effect_text(enum activation_effect_bit bit);
