// SPDX-License-Identifier: BSD-3-Clause
#include "node/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/inet.h"
#include "node/internal.h"

// ---- addresses ----
static bool port_of(const char *text, uint16_t *out)
{
	char *end = NULL;
	unsigned long port = strtoul(text, &end, 10);
	*out = (uint16_t)port;
	return end != text && *end == '\0' && port > 0 && port <= UINT16_MAX;
}

// "192.0.2.1:7700" or "[2001:db8::1]:7700". An unspecified address leads nowhere.
static bool address_of(const char *text, uint8_t ip[16], uint16_t *port)
{
	static const uint8_t any[16];
	char host[64];
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[';
	size_t skip = v6 ? 1 : 0, size = colon == NULL ? 0 : (size_t)(colon - text) - 2 * skip;
	if (colon == NULL || size == 0 || size >= sizeof(host) || !port_of(colon + 1, port))
		return false;
	memcpy(host, text + skip, size);
	host[size] = '\0';
	if (v6)
		return colon[-1] == ']' && inet_pton(AF_INET6, host, ip) == 1 &&
		       memcmp(ip, any, sizeof(any)) != 0;
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	return inet_pton(AF_INET, host, ip + 12) == 1 && memcmp(ip + 12, any, 4) != 0;
}

// ---- routes ----
static void free_remote(struct publish_deferred *deferred)
{
	mem_free(container_of(deferred, struct dp_remote, deferred));
}

static void free_peer(struct publish_deferred *deferred)
{
	mem_free(container_of(deferred, struct dp_peer, deferred));
}

static void retire(struct node *n, struct dp_remote *r)
{
	struct remotes *all = &n->remotes;
	*(r->previous != NULL ? &r->previous->next : &all->first) = r->next;
	*(r->next != NULL ? &r->next->previous : &all->last) = r->previous;
	all->count--;
	// Something newer may stand there by now.
	if (dp_remote_of_route(route_lookup(n->routes, r->key)) == r)
		(void)route_retire(n->routes, r->key);
	publish_defer(&r->deferred, free_remote);
}

static void keep(struct node *n, struct dp_remote *r)
{
	struct remotes *all = &n->remotes;
	r->previous = all->last;
	*(all->last != NULL ? &all->last->next : &all->first) = r;
	all->last = r;
	all->count++;
	if (all->count > REMOTES_MAX)
		retire(n, all->first);
}

static struct remote_peer *find(struct node *n, const char *node_id, struct store_boot_id boot)
{
	for (uint32_t i = 0; i < n->remotes.peer_count; i++) {
		struct remote_peer *p = &n->remotes.peers[i];
		if (strcmp(p->node_id, node_id) == 0 && store_boot_equal(p->boot, boot))
			return p;
	}
	return NULL;
}

static bool usable(const struct node *n, const struct dp_peer *peer)
{
	return n->now_ns < atomic_load_explicit(&peer->usable_until_boot_ns, memory_order_relaxed);
}

enum remote_verdict remote_publish(
	struct node *n, const struct store_spot_row *row, uint64_t asked_ns)
{
	struct remote_peer *owner = find(n, row->owner_node, row->owner_boot);
	if (owner == NULL)
		return peers_find(n, row->owner_node) != NULL ? REMOTE_NO_ADDRESS
							      : REMOTE_NOT_USABLE;
	if (!usable(n, owner->peer))
		return REMOTE_NOT_USABLE;
	if (publish_pending() > n->config.rcu_pending_max)
		return REMOTE_STALLED;
	struct dp_remote *r = mem_zalloc(sizeof(*r));
	if (r == NULL)
		return REMOTE_NO_MEMORY;
	r->key = row->key;
	r->owner = owner->peer;
	r->authority_generation = row->authority_generation;
	r->object_generation = row->object_generation;
	r->version = row->version;
	r->read_boot_ns = asked_ns;
	r->expires_boot_ns = asked_ns + ROUTE_CACHE_MAX_AGE_MS * NS_PER_MS;
	struct dp_remote *old = dp_remote_of_route(route_lookup(n->routes, row->key));
	enum route_write written = route_publish(n->routes, row->key, dp_remote_route(r));
	if (written != ROUTE_WRITTEN) {
		mem_free(r);
		return written == ROUTE_STALLED ? REMOTE_STALLED : REMOTE_NO_MEMORY;
	}
	if (old != NULL)
		retire(n, old);
	keep(n, r);
	return REMOTE_PUBLISHED;
}

// ---- peers ----
static void drop_routes(struct node *n, const struct dp_peer *owner)
{
	for (struct dp_remote *r = n->remotes.first, *next; r != NULL; r = next) {
		next = r->next;
		if (owner == NULL || r->owner == owner)
			retire(n, r);
	}
}

// What a run that is no member says means nothing any more. One whose beat stands still is a
// member yet: it may come back and say that it refused.
static bool is_member(enum peer_standing standing)
{
	return standing == PEER_LIVE || standing == PEER_STILL;
}

static struct dp_peer *make(struct node *n, const struct peer *seen)
{
	uint8_t ip[16];
	uint16_t port;
	if (!address_of(seen->row.address, ip, &port) ||
		n->remotes.peer_count == STORE_NODES_MAX)
		return NULL;
	struct dp_peer *peer = mem_zalloc(sizeof(*peer));
	if (peer == NULL)
		return NULL; // the next view tries again
	peer->node = node_key_of(span_of(seen->row.node_id, strlen(seen->row.node_id)));
	peer->lease = seen->row.lease_generation;
	memcpy(peer->ip, ip, sizeof(ip));
	peer->port = port;
	struct remote_peer *at = &n->remotes.peers[n->remotes.peer_count++];
	*at = (struct remote_peer){.boot = seen->row.boot, .peer = peer};
	memcpy(at->node_id, seen->row.node_id, sizeof(at->node_id));
	return peer;
}

// R1: the last movement of its beat that was seen here, and its term from there.
static void refresh(struct node *n, struct peer *seen, bool *changed)
{
	struct remote_peer *at = find(n, seen->row.node_id, seen->row.boot);
	struct dp_peer *peer = at != NULL ? at->peer : make(n, seen);
	*changed |= at == NULL && peer != NULL;
	if (peer != NULL)
		atomic_store_explicit(&peer->usable_until_boot_ns,
			seen->moved_ns + seen->row.ttl_ms * NS_PER_MS, memory_order_relaxed);
}

static bool still_member(struct node *n, const struct remote_peer *at)
{
	struct peer *seen = peers_find(n, at->node_id);
	return seen != NULL && store_boot_equal(seen->row.boot, at->boot) &&
	       is_member(peers_standing_of(n, seen));
}

// Those that are no members any more move behind the others; returns how many stay.
static uint32_t part(struct node *n)
{
	struct remotes *all = &n->remotes;
	uint32_t stay = 0;
	for (uint32_t i = 0; i < all->peer_count; i++) {
		struct remote_peer at = all->peers[i];
		if (!still_member(n, &at))
			continue;
		all->peers[i] = all->peers[stay];
		all->peers[stay++] = at;
	}
	return stay;
}

static bool publish_set(struct node *n, uint32_t count)
{
	struct dp_peer *set[STORE_NODES_MAX];
	_Static_assert((int)STORE_NODES_MAX == (int)DP_PEERS_MAX, "every node is a peer");
	for (uint32_t i = 0; i < count; i++)
		set[i] = n->remotes.peers[i].peer;
	return dp_peers_set(n->dp, set, count) == DP_DONE;
}

void remote_peers_changed(struct node *n, bool recovered)
{
	struct remotes *all = &n->remotes;
	uint32_t stay = part(n);
	bool changed = stay < all->peer_count;
	for (uint32_t i = stay; i < all->peer_count; i++) { // R2: their leases are over
		atomic_store_explicit(
			&all->peers[i].peer->usable_until_boot_ns, 0, memory_order_relaxed);
		drop_routes(n, all->peers[i].peer);
	}
	if (changed && !publish_set(n, stay))
		return; // memory is short: unusable, and let go with a later view
	for (uint32_t i = stay; i < all->peer_count; i++)
		publish_defer(&all->peers[i].peer->deferred, free_peer);
	all->peer_count = stay;
	bool joined = false;
	for (uint32_t i = 0; i < n->peers.count; i++) {
		struct peer *seen = &n->peers.peers[i];
		bool self = strcmp(seen->row.node_id, n->node_id) == 0;
		if (!self && is_member(peers_standing_of(n, seen)))
			refresh(n, seen, &joined);
	}
	if (joined)
		(void)publish_set(n, all->peer_count); // else their frames are foreign for a view
	if (recovered) // R2: what was written while the store was out of reach is not known
		drop_routes(n, NULL);
}

void remote_step(struct node *n)
{
	while (n->remotes.first != NULL && n->remotes.first->expires_boot_ns <= n->now_ns)
		retire(n, n->remotes.first);
}

uint64_t remote_next(const struct node *n)
{
	return n->remotes.first == NULL ? UINT64_MAX : n->remotes.first->expires_boot_ns;
}

void remote_end(struct node *n)
{
	drop_routes(n, NULL);
	for (uint32_t i = 0; i < n->remotes.peer_count; i++)
		publish_defer(&n->remotes.peers[i].peer->deferred, free_peer);
	n->remotes.peer_count = 0;
}
