// SPDX-License-Identifier: BSD-3-Clause
#include "core/session.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"

_Static_assert(sizeof(struct session) == 56 + SESSION_WINDOW / 8, "56 bytes and the window");
_Static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == 8, "SipHash");

static uint32_t power_of_two_above(uint32_t n)
{
	uint32_t p = 1;
	while (p < n)
		p <<= 1;
	return p;
}

bool session_table_init(struct session_table *table, uint32_t capacity, const uint8_t key[16])
{
	memset(table, 0, sizeof(*table));
	uint32_t buckets = power_of_two_above(capacity);
	table->sessions = mem_zalloc((size_t)capacity * sizeof(table->sessions[0]));
	table->buckets = mem_zalloc((size_t)buckets * sizeof(table->buckets[0]));
	table->capacity = capacity;
	table->bucket_mask = buckets - 1;
	memcpy(table->key, key, sizeof(table->key));
	if (table->sessions != NULL && table->buckets != NULL)
		return true;
	session_table_fini(table);
	return false;
}

void session_table_fini(struct session_table *table)
{
	mem_free(table->sessions);
	mem_free(table->buckets);
	table->sessions = NULL;
	table->buckets = NULL;
}

static uint64_t cookie_of_slot(
	const struct session_table *table, const struct peer *peer, uint64_t slot)
{
	uint8_t text[16 + 2 + 8];
	memcpy(text, peer->ip, 16);
	memcpy(text + 16, &peer->port, 2);
	memcpy(text + 18, &slot, 8);
	uint64_t cookie;
	crypto_shorthash((unsigned char *)&cookie, text, sizeof(text), table->key);
	return cookie == 0 ? 1 : cookie;
}

static uint64_t slot_of(uint64_t now_ns)
{
	return now_ns / (COOKIE_SLOT_S * UINT64_C(1000000000));
}

uint64_t session_cookie(const struct session_table *table, const struct peer *peer, uint64_t now_ns)
{
	return cookie_of_slot(table, peer, slot_of(now_ns));
}

bool session_cookie_valid(const struct session_table *table, const struct peer *peer,
	uint64_t cookie, uint64_t now_ns)
{
	if (cookie == 0)
		return false;
	uint64_t slot = slot_of(now_ns);
	return cookie == cookie_of_slot(table, peer, slot) ||
		(slot > 0 && cookie == cookie_of_slot(table, peer, slot - 1));
}

// Keyed, so that a sender cannot choose ids that share a bucket.
static uint32_t bucket_of(const struct session_table *table, uint64_t id)
{
	uint64_t k0, k1;
	memcpy(&k0, table->key, 8);
	memcpy(&k1, table->key + 8, 8);
	__uint128_t m = (__uint128_t)(id ^ k0) * (k1 | 1);
	uint64_t x = (uint64_t)m ^ (uint64_t)(m >> 64);
	return (uint32_t)(x ^ (x >> 32)) & table->bucket_mask;
}

void session_prefetch(const struct session_table *table, uint64_t id)
{
	__builtin_prefetch(&table->buckets[bucket_of(table, id)]);
}

static struct session *at(const struct session_table *table, uint32_t index1)
{
	return &table->sessions[index1 - 1];
}

static void order_unlink(struct session_table *table, struct session *s)
{
	if (s->older != 0)
		at(table, s->older)->newer = s->newer;
	else
		table->oldest = s->newer;
	if (s->newer != 0)
		at(table, s->newer)->older = s->older;
	else
		table->newest = s->older;
}

static void order_link_newest(struct session_table *table, struct session *s)
{
	uint32_t index1 = (uint32_t)(s - table->sessions) + 1;
	s->newer = 0;
	s->older = table->newest;
	if (table->newest != 0)
		at(table, table->newest)->newer = index1;
	else
		table->oldest = index1;
	table->newest = index1;
}

static struct session *find(const struct session_table *table, uint64_t id)
{
	uint32_t index1 = table->buckets[bucket_of(table, id)];
	while (index1 != 0 && at(table, index1)->id != id)
		index1 = at(table, index1)->chain;
	return index1 == 0 ? NULL : at(table, index1);
}

static void forget(struct session_table *table, struct session *s)
{
	uint32_t index1 = (uint32_t)(s - table->sessions) + 1;
	uint32_t *link = &table->buckets[bucket_of(table, s->id)];
	while (*link != index1)
		link = &at(table, *link)->chain;
	*link = s->chain;
	order_unlink(table, s);
	s->id = 0;
	s->chain = table->free_chain;
	table->free_chain = index1;
}

static struct session *take_entry(struct session_table *table, uint64_t now_ns)
{
	if (table->free_chain == 0 && table->used == table->capacity) {
		struct session *oldest = at(table, table->oldest);
		// The order is exact to a grain only, hence the added grain.
		if (now_ns < oldest->last_ns + SESSION_IDLE_NS + SESSION_ORDER_GRAIN_NS)
			return NULL;
		forget(table, oldest);
	}
	if (table->free_chain != 0) {
		struct session *s = at(table, table->free_chain);
		table->free_chain = s->chain;
		return s;
	}
	return &table->sessions[table->used++];
}

static struct session *make(
	struct session_table *table, const struct peer *peer, uint64_t id, uint64_t now_ns)
{
	struct session *s = take_entry(table, now_ns);
	if (s == NULL)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->id = id;
	s->last_ns = now_ns;
	s->port = peer->port;
	memcpy(s->ip, peer->ip, sizeof(s->ip));
	uint32_t *bucket = &table->buckets[bucket_of(table, id)];
	s->chain = *bucket;
	*bucket = (uint32_t)(s - table->sessions) + 1;
	order_link_newest(table, s);
	return s;
}

static bool is_repeat(const struct session *s, uint64_t counter)
{
	if (counter > s->highest)
		return false;
	if (s->highest - counter >= SESSION_WINDOW)
		return true; // too old to tell: counts as seen
	return (s->seen[counter % SESSION_WINDOW / 64] >> (counter % 64)) & 1;
}

enum session_verdict session_check(struct session_table *table, const struct peer *peer,
	uint64_t id, uint64_t counter, uint64_t cookie, uint64_t now_ns, struct session **out_session)
{
	struct session *s = find(table, id);
	if (s == NULL) {
		if (!session_cookie_valid(table, peer, cookie, now_ns))
			return SESSION_NO_COOKIE;
		s = make(table, peer, id, now_ns);
		if (s == NULL)
			return SESSION_NO_ROOM;
	} else if (s->port != peer->port || memcmp(s->ip, peer->ip, sizeof(s->ip)) != 0) {
		return SESSION_FOREIGN;
	}
	if (is_repeat(s, counter))
		return SESSION_REPEAT;
	*out_session = s;
	return SESSION_FRESH;
}

static void window_advance(struct session *s, uint64_t counter)
{
	uint64_t step = counter - s->highest;
	if (step >= SESSION_WINDOW) {
		memset(s->seen, 0, sizeof(s->seen));
	} else {
		for (uint64_t c = s->highest + 1; c <= counter; c++)
			s->seen[c % SESSION_WINDOW / 64] &= ~(UINT64_C(1) << (c % 64));
	}
	s->highest = counter;
}

void session_take(
	struct session_table *table, struct session *session, uint64_t counter, uint64_t now_ns)
{
	table->last = session;
	if (counter > session->highest)
		window_advance(session, counter);
	session->seen[counter % SESSION_WINDOW / 64] |= UINT64_C(1) << (counter % 64);
	if (now_ns - session->last_ns >= SESSION_ORDER_GRAIN_NS) {
		session->last_ns = now_ns;
		order_unlink(table, session);
		order_link_newest(table, session);
	}
}

bool session_is_leased(const struct session_table *table, const struct peer *peer, uint64_t id,
	uint64_t now_ns, uint64_t lease_ns)
{
	const struct session *s = find(table, id);
	return s != NULL && s->port == peer->port && memcmp(s->ip, peer->ip, sizeof(s->ip)) == 0 &&
		now_ns - s->last_ns < lease_ns;
}
