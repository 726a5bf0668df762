// SPDX-License-Identifier: BSD-3-Clause
#include "node/peers.h"

#include <stdio.h>

#include "node/internal.h"

enum { PERCENT = 100 };

const char *peer_standing_name(enum peer_standing standing)
{
	switch (standing) {
	case PEER_UNKNOWN:
		return "unknown";
	case PEER_LIVE:
		return "live";
	case PEER_STILL:
		return "still";
	case PEER_FENCED:
		return "fenced";
	case PEER_LEFT:
		return "left";
	case PEER_FOLLOWED:
		return "followed";
	case PEER_GONE:
		return "gone";
	}
	return "invalid";
}

bool peer_is_over(enum peer_standing standing)
{
	return standing != PEER_UNKNOWN && standing != PEER_LIVE;
}

static uint64_t needed_ns(const struct store_node_row *row, uint64_t rho_percent)
{
	uint64_t term = row->ttl_ms * NS_PER_MS;
	return term + term * rho_percent / PERCENT;
}

enum peer_standing peer_judge(const struct store_node_row *row, struct store_boot_id boot,
	struct lease_generation lease, uint64_t still_ns, uint64_t rho_percent)
{
	if (row == NULL || !row->exists)
		return PEER_GONE;
	// Lease generations rise with each start: a smaller one was read before that run joined.
	if (row->lease_generation.value < lease.value)
		return PEER_UNKNOWN;
	if (row->lease_generation.value > lease.value)
		return PEER_FOLLOWED;
	if (!store_boot_equal(row->boot, boot))
		return PEER_LEFT;
	if (row->fenced)
		return PEER_FENCED;
	return still_ns > needed_ns(row, rho_percent) ? PEER_STILL : PEER_LIVE;
}

// ---- the view ----
static struct peer *find(struct peer_view *v, const char *node_id)
{
	for (uint32_t i = 0; i < v->count; i++)
		if (strcmp(v->peers[i].row.node_id, node_id) == 0)
			return &v->peers[i];
	return NULL;
}

static uint64_t still_of(const struct node *n, const struct peer *p)
{
	const struct peer_view *v = &n->peers;
	return v->asked_ns > p->since_ns ? v->asked_ns - p->since_ns : 0;
}

static enum peer_standing standing_of_row(const struct node *n, const struct peer *p)
{
	if (store_boot_is_zero(p->row.boot))
		return PEER_LEFT;
	return peer_judge(&p->row, p->row.boot, p->row.lease_generation, still_of(n, p),
		n->config.clock_rate_error_percent);
}

// The watch goes on where run and beat are those of the view before; else it begins with this
// answer.
static void merge(struct node *n, const struct store_node_row *row, struct peer *out)
{
	const struct peer *before = find(&n->peers, row->node_id);
	bool same = before != NULL && !n->peers.gap &&
		    store_boot_equal(before->row.boot, row->boot) && before->row.beat == row->beat;
	*out = (struct peer){.row = *row, .since_ns = clock_boot_ns(n->clock)};
	if (before != NULL)
		out->told = before->told;
	if (before != NULL && store_boot_equal(before->row.boot, row->boot))
		out->swept = before->swept;
	if (same)
		out->since_ns = before->since_ns;
	bool moved = before == NULL || !store_boot_equal(before->row.boot, row->boot) ||
		     before->row.beat != row->beat;
	out->moved_ns = moved ? out->since_ns : before->moved_ns;
}

static void tell_changes(struct node *n)
{
	for (uint32_t i = 0; i < n->peers.count; i++) {
		struct peer *p = &n->peers.peers[i];
		enum peer_standing now = standing_of_row(n, p);
		bool self = strcmp(p->row.node_id, n->node_id) == 0;
		if (now == p->told || self)
			continue;
		p->told = now;
		node_say_of(n, NODE_EVENT_PEER, span_of(p->row.node_id, strlen(p->row.node_id)),
			(uint64_t)now);
	}
}

static void listed(struct store_op *op)
{
	struct node *n = op->arg;
	struct peer_view *v = &n->peers;
	v->lent = false;
	if (n->halted)
		return;
	v->next_ns = v->request_ns + n->config.lease_renew_ms * NS_PER_MS;
	if (op->outcome != STORE_DONE) { // O6: a failed read restarts every watch
		v->gap = true;
		v->next_ns = clock_boot_ns(n->clock) + PEER_RETRY_MS * NS_PER_MS;
		if (op->outcome == STORE_DAMAGED)
			node_damaged(n);
		return;
	}
	struct peer merged[STORE_NODES_MAX];
	for (uint32_t i = 0; i < op->count; i++)
		merge(n, &v->rows[i], &merged[i]);
	memcpy(v->peers, merged, op->count * sizeof(merged[0]));
	v->count = op->count;
	bool recovered = v->gap && v->asked_ns != 0;
	v->gap = false;
	v->asked_ns = v->request_ns;
	tell_changes(n);
	remote_peers_changed(n, recovered);
	entry_peers_changed(n);
}

void peers_refresh(struct node *n)
{
	n->peers.next_ns = 0;
}

void peers_step(struct node *n)
{
	struct peer_view *v = &n->peers;
	if (n->phase != LEASE_HELD || v->lent || n->now_ns < v->next_ns)
		return;
	v->op = (struct store_op){.kind = STORE_NODE_LIST,
		.id = node_draw_id(n),
		.nodes = v->rows,
		.done = listed,
		.arg = n};
	v->lent = true;
	v->request_ns = clock_boot_ns(n->clock);
	node_submit(n, &v->op);
}

uint64_t peers_next(const struct node *n)
{
	return n->phase != LEASE_HELD || n->peers.lent ? UINT64_MAX : n->peers.next_ns;
}

static bool view_serves(const struct node *n)
{
	const struct peer_view *v = &n->peers;
	return v->asked_ns != 0 && n->now_ns - v->asked_ns <= PEER_VIEW_MS * NS_PER_MS;
}

struct peer *peers_find(struct node *n, const char *node_id)
{
	return find(&n->peers, node_id);
}

enum peer_standing peers_standing(struct node *n, const char *node_id, struct store_boot_id boot,
	struct lease_generation lease, uint64_t seen_ns)
{
	struct peer *p = find(&n->peers, node_id);
	if (!view_serves(n))
		return PEER_UNKNOWN;
	if (p == NULL) // absence speaks only when it was seen after the run was
		return n->peers.asked_ns > seen_ns ? PEER_GONE : PEER_UNKNOWN;
	return peer_judge(&p->row, boot, lease, still_of(n, p), n->config.clock_rate_error_percent);
}

enum peer_standing peers_standing_of(struct node *n, struct peer *p)
{
	return standing_of_row(n, p);
}

void peers_put_watched(const struct node *n, const struct store_spot_row *row, struct store_op *op)
{
	const struct peer *p = find((struct peer_view *)(uintptr_t)&n->peers, row->owner_node);
	op->node = (struct store_node_row){.boot = row->owner_boot};
	memcpy(op->node.node_id, row->owner_node, sizeof(op->node.node_id));
	// Not in the view: over by its absence, and no beat makes it live again.
	op->expect_beat =
		p != NULL && store_boot_equal(p->row.boot, row->owner_boot) ? p->row.beat : 0;
}

void peers_watch_anew(struct node *n, const char *node_id)
{
	struct peer *p = find(&n->peers, node_id);
	if (p != NULL)
		p->since_ns = clock_boot_ns(n->clock);
	peers_refresh(n);
}

uint64_t peers_still_ns(const struct node *n, const struct peer *p)
{
	return still_of(n, p);
}

uint64_t peers_needed_ns(const struct node *n, const struct peer *p)
{
	return needed_ns(&p->row, n->config.clock_rate_error_percent);
}

uint32_t node_peers(
	const struct node *n, struct node_peer out[STORE_NODES_MAX], uint64_t *out_age_ns)
{
	uint64_t now = clock_boot_ns(n->clock);
	bool serves = n->peers.asked_ns != 0 && now - n->peers.asked_ns <= PEER_VIEW_MS * NS_PER_MS;
	*out_age_ns = serves ? now - n->peers.asked_ns : UINT64_MAX;
	for (uint32_t i = 0; serves && i < n->peers.count; i++) {
		const struct peer *p = &n->peers.peers[i];
		out[i] = (struct node_peer){.row = p->row,
			.standing = standing_of_row(n, p),
			.still_ns = still_of(n, p),
			.needed_ns = needed_ns(&p->row, n->config.clock_rate_error_percent),
			.self = strcmp(p->row.node_id, n->node_id) == 0};
	}
	return serves ? n->peers.count : 0;
}
