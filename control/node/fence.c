// SPDX-License-Identifier: BSD-3-Clause
// The formal release of a dead node's authorities (O6): by an operator, or by policy. First its
// row is marked, on the evidence of an unbroken watch of its beat; then its Spots are taken and
// released, a batch a transaction. A run that came back meanwhile ends it: that run releases its
// former rows itself.
#include "node/fence.h"

#include <stdarg.h>
#include <stdio.h>

#include "node/internal.h"

enum { FENCE_RETRY_MS = 1000 };

static void answer(struct node *n, struct result result, const char *format, ...) PRINTF_LIKE(3, 4);
static void answer(struct node *n, struct result result, const char *format, ...)
{
	struct fence *f = &n->fence;
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	struct node_fence_report report = {.result = result,
		.changed = f->marked || f->released > 0,
		.rows_released = f->released,
		.text = text};
	node_fence_done done = f->done;
	f->done = NULL;
	if (done != NULL)
		done(f->arg, &report);
}

// ---- may it be fenced? pure but for the view ----
struct fence_verdict fence_judge(struct node *n, const char *node_id)
{
	struct peer *p = peers_find(n, node_id);
	if (strcmp(node_id, n->node_id) == 0)
		return (struct fence_verdict){FENCE_IS_SELF, 0, 0};
	if (n->peers.asked_ns == 0 || n->peers.gap)
		return (struct fence_verdict){FENCE_NO_VIEW, 0, 0};
	if (p == NULL)
		return (struct fence_verdict){FENCE_NOBODY, 0, 0};
	uint64_t still = peers_still_ns(n, p), needed = peers_needed_ns(n, p);
	bool over = peer_is_over(peers_standing_of(n, p));
	return (struct fence_verdict){over ? FENCE_MAY : FENCE_WATCHED, still, needed};
}

static struct result refusal_of(enum fence_may may)
{
	switch (may) {
	case FENCE_IS_SELF:
		return result_refused(RESULT_INVALID_OPERATION, REASON_NONE);
	case FENCE_NOBODY:
		return result_refused(RESULT_NOT_FOUND, REASON_NONE);
	case FENCE_NO_VIEW:
		return result_refused(RESULT_UNAVAILABLE, REASON_STORE_UNREACHABLE);
	case FENCE_WATCHED:
		return result_refused(RESULT_REJECTED, REASON_NONE);
	case FENCE_MAY:
		break;
	}
	return result_ok();
}

static void refuse(const char *node_id, struct fence_verdict v, node_fence_done done, void *arg)
{
	char text[256] = "";
	if (v.may == FENCE_IS_SELF)
		snprintf(text, sizeof(text), "%s is this very node: stop it instead", node_id);
	else if (v.may == FENCE_NOBODY)
		snprintf(text, sizeof(text), "no node %s in the store", node_id);
	else if (v.may == FENCE_NO_VIEW)
		snprintf(text, sizeof(text),
			"no unbroken view of the nodes yet: the watch begins anew");
	else
		snprintf(text, sizeof(text),
			"%s counts as live: its beat stands still here for %.1f s, and has to "
			"for more than %.1f s (O6); try again then",
			node_id, (double)v.still_ns / 1e9, (double)v.needed_ns / 1e9);
	struct node_fence_report report = {.result = refusal_of(v.may), .text = text};
	if (done != NULL)
		done(arg, &report);
}

// ---- the store's answers ----
static void end(struct node *n)
{
	n->fence.phase = FENCE_NONE;
}

static void came_back(struct node *n)
{
	answer(n, result_refused(RESULT_REJECTED, REASON_NONE),
		"%s is held by a run that was not watched: its beat moved or it started again; "
		"a new run releases the rows of its former ones itself",
		n->fence.node_id);
	peers_refresh(n);
	end(n);
}

static void finished(struct node *n)
{
	struct fence *f = &n->fence;
	struct peer *p = peers_find(n, f->node_id);
	if (p != NULL && store_boot_equal(p->row.boot, f->boot))
		p->swept = true;
	node_say_of(n, NODE_EVENT_FENCED, span_of(f->node_id, strlen(f->node_id)), f->released);
	answer(n, result_ok(), "%s is fenced: %llu Spots released", f->node_id,
		(unsigned long long)f->released);
	end(n);
}

static void fence_done(struct store_op *op)
{
	struct node *n = op->arg;
	struct fence *f = &n->fence;
	f->lent = false;
	if (n->halted)
		return;
	switch (op->outcome) {
	case STORE_DONE:
		if (f->phase == FENCE_MARKING) {
			f->phase = FENCE_RELEASING;
			f->marked = !f->was_over;
			peers_refresh(n);
			return;
		}
		f->released += op->count;
		if (op->count == 0)
			finished(n);
		return;
	case STORE_CONFLICT:
		came_back(n);
		return;
	case STORE_EXHAUSTED:
		answer(n, result_refused(RESULT_INTERNAL_FAILURE, REASON_GENERATION_EXHAUSTED),
			"a row of %s has no further authority generation: it was not changed",
			f->node_id);
		end(n);
		return;
	case STORE_DAMAGED:
		node_damaged(n);
		return;
	case STORE_UNREACHABLE:
	case STORE_UNKNOWN: // applied or not: repeated, both steps find what is left
	case STORE_FULL:
		f->next_ns = clock_boot_ns(n->clock) + FENCE_RETRY_MS * NS_PER_MS;
		return;
	}
}

static void ask(struct node *n)
{
	struct fence *f = &n->fence;
	bool marking = f->phase == FENCE_MARKING;
	f->op = (struct store_op){.kind = marking ? STORE_NODE_FENCE : STORE_SPOT_FENCE,
		.id = node_draw_id(n),
		.expect_beat = f->beat,
		.limit = FORMER_BATCH,
		.done = fence_done,
		.arg = n};
	memcpy(f->op.node.node_id, f->node_id, sizeof(f->op.node.node_id));
	f->op.node.boot = f->boot;
	memcpy(f->op.row.owner_node, n->node_id, sizeof(n->node_id));
	f->op.row.owner_boot = n->boot;
	f->op.row.owner_lease = n->lease_generation;
	f->lent = true;
	node_submit(n, &f->op);
}

static void begin(struct node *n, const struct peer *p)
{
	struct fence *f = &n->fence;
	bool left = store_boot_is_zero(p->row.boot);
	*f = (struct fence){.phase = left ? FENCE_RELEASING : FENCE_MARKING,
		.boot = p->row.boot,
		.beat = p->row.beat,
		.was_over = left || p->row.fenced};
	memcpy(f->node_id, p->row.node_id, sizeof(f->node_id));
}

void node_fence(struct node *n, struct span node_id, uint64_t deadline_boot_ns,
	node_fence_done done,
	void *arg)
{
	char id[65] = "";
	n->now_ns = clock_boot_ns(n->clock);
	bool sized = node_id.size > 0 && node_id.size < sizeof(id);
	if (sized)
		memcpy(id, node_id.data, node_id.size);
	struct fence_verdict v = {FENCE_NOBODY, 0, 0};
	if (sized)
		v = fence_judge(n, id);
	struct node_fence_report busy = {.result = result_refused(RESULT_UNAVAILABLE, REASON_NONE),
		.text = "another node is being fenced: try again when that is done"};
	struct node_fence_report idle = {.result = result_refused(RESULT_UNAVAILABLE,
		REASON_LEASE_LOST),
		.text = "this node holds no owner lease: nothing is written without one"};
	if (v.may != FENCE_MAY) {
		refuse(id, v, done, arg);
	} else if (!lease_is_live(n)) {
		done(arg, &idle);
	} else if (n->fence.phase != FENCE_NONE &&
		   (n->fence.done != NULL || strcmp(n->fence.node_id, id) != 0)) {
		done(arg, &busy);
	} else {
		if (n->fence.phase == FENCE_NONE)
			begin(n, peers_find(n, id));
		n->fence.done = done;
		n->fence.arg = arg;
		n->fence.deadline_ns = deadline_boot_ns;
	}
}

// Off unless the configuration says how long after the evidence is complete.
static void policy(struct node *n)
{
	uint64_t grace = n->config.fence_grace_ms * NS_PER_MS;
	for (uint32_t i = 0; n->config.fence_grace_ms != 0 && i < n->peers.count; i++) {
		struct peer *p = &n->peers.peers[i];
		enum peer_standing standing = peers_standing_of(n, p);
		bool ripe = standing == PEER_FENCED ||
			    (standing == PEER_STILL &&
				    peers_still_ns(n, p) > peers_needed_ns(n, p) + grace);
		if (!ripe || p->swept || strcmp(p->row.node_id, n->node_id) == 0)
			continue;
		begin(n, p);
		return;
	}
}

void fence_step(struct node *n)
{
	struct fence *f = &n->fence;
	if (f->done != NULL && n->now_ns >= f->deadline_ns)
		answer(n, result_make(RESULT_DEADLINE_EXCEEDED, REASON_NONE, ACCEPTED_YES),
			"%s: still at it, %llu Spots released so far; it goes on", f->node_id,
			(unsigned long long)f->released);
	if (n->phase != LEASE_HELD || !lease_is_live(n) || n->peers.gap)
		return;
	if (f->phase == FENCE_NONE)
		policy(n);
	if (f->phase != FENCE_NONE && !f->lent && n->now_ns >= f->next_ns)
		ask(n);
}

uint64_t fence_next(const struct node *n)
{
	const struct fence *f = &n->fence;
	uint64_t next = f->done != NULL ? f->deadline_ns : UINT64_MAX;
	if (f->phase != FENCE_NONE && !f->lent && f->next_ns < next && lease_is_live(n))
		next = f->next_ns;
	return next;
}

void fence_end(struct node *n)
{
	if (n->fence.done != NULL)
		answer(n, result_refused(RESULT_SHUTTING_DOWN, REASON_NONE), "this node stops");
}
