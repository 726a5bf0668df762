// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sender sessions (M9): at most one acceptance of each (session, counter), one source per session.
// A session is made only by a frame that echoes a cookie, so a forged source cannot fill the table;
// it may be forgotten only after a silence longer than any cookie lives, so that a recorded frame of a
// forgotten session finds no valid cookie. One table per worker; that worker only.

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "fabric/fabric.h"

enum {
	SESSION_WINDOW = 2048,
	COOKIE_SLOT_S = 60, // a cookie lives for its slot and the next
};
// Moving a session to the young end at each frame would write three entries a message; an order that
// is right to within a second is enough to find one that was silent for two minutes.
#define SESSION_ORDER_GRAIN_NS UINT64_C(1000000000)
#define SESSION_IDLE_NS ((uint64_t)2 * COOKIE_SLOT_S * 1000000000)

struct session {
	uint64_t id; // 0 = free
	uint64_t highest;
	uint64_t last_ns;
	uint32_t chain; // next in the bucket, index + 1
	uint32_t older, newer; // by last use, index + 1
	uint16_t port;
	uint8_t ip[16];
	uint64_t seen[SESSION_WINDOW / 64]; // bit counter % SESSION_WINDOW
};

struct session_table {
	struct session *sessions;
	uint32_t *buckets; // index + 1
	uint32_t capacity;
	uint32_t bucket_mask;
	uint32_t used;
	uint32_t free_chain;     // forgotten entries, index + 1
	uint32_t oldest, newest; // index + 1
	struct session *last;    // whose frame was taken last; may be free by now (its id is 0 then)
	uint8_t key[16];
};

enum session_verdict {
	SESSION_FRESH = 1,     // not seen before; session_take after the frame was taken
	SESSION_REPEAT = 2,    // drop
	SESSION_FOREIGN = 3,   // bound to another source
	SESSION_NO_COOKIE = 4, // unknown and no valid cookie: challenge
	SESSION_NO_ROOM = 5,   // the table is full of sessions in use
};

MUST_USE bool session_table_init(
	struct session_table *table, uint32_t capacity, const uint8_t key[16]);
void session_table_fini(struct session_table *table);

// The cookie of a source in the slot of now_ns; never 0.
uint64_t session_cookie(const struct session_table *table, const struct peer *peer, uint64_t now_ns);
bool session_cookie_valid(const struct session_table *table, const struct peer *peer,
	uint64_t cookie, uint64_t now_ns);

// Finds, or with a valid cookie makes, the frame's session and tests the counter. The window is not
// changed. *out_session is written when FRESH.
MUST_USE enum session_verdict session_check(struct session_table *table, const struct peer *peer,
	uint64_t id, uint64_t counter, uint64_t cookie, uint64_t now_ns, struct session **out_session);
// The frame was taken: marks its counter.
void session_take(
	struct session_table *table, struct session *session, uint64_t counter, uint64_t now_ns);
// The session is known, of that source, and was heard within lease_ns (to the table's grain).
bool session_is_leased(const struct session_table *table, const struct peer *peer, uint64_t id,
	uint64_t now_ns, uint64_t lease_ns);
// Starts fetching what session_check will read.
void session_prefetch(const struct session_table *table, uint64_t id);

// What most frames are: the next one of the session whose frame came last. True: what session_check and
// session_take would have done is done. False: nothing is changed.
static inline bool session_take_next(struct session_table *table, const struct peer *peer, uint64_t id,
	uint64_t counter, uint64_t now_ns)
{
	struct session *s = table->last;
	if (s == NULL || s->id != id || counter != s->highest + 1 || s->port != peer->port ||
		memcmp(s->ip, peer->ip, sizeof(s->ip)) != 0 ||
		now_ns - s->last_ns >= SESSION_ORDER_GRAIN_NS)
		return false;
	s->highest = counter;
	// The bit's last owner is a window behind, so what it says is void.
	s->seen[counter % SESSION_WINDOW / 64] |= UINT64_C(1) << (counter % 64);
	return true;
}
