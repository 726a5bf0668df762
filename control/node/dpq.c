// SPDX-License-Identifier: BSD-3-Clause
// Commands to the data plane, kept in their order per worker while its ring is full. The queue nodes
// are part of what they serve (an entry, a waiter), so keeping one cannot fail and their number is
// bounded by the entries and the waiters.
#include "node/internal.h"

#include "base/check.h"

enum { CROWDED = 16384 };

void dpq_init(struct node *n)
{
	for (uint32_t i = 0; i < DP_WORKERS_MAX; i++) {
		n->commands[i].first = NULL;
		n->commands[i].end = &n->commands[i].first;
	}
}

static enum dp_status run(struct node *n, struct command *c)
{
	if (c->kind >= COMMAND_ACTOR_ADMIT)
		return actor_command(n, c);
	return c->kind <= COMMAND_CLOSE_IDLE ? entry_command(n, c) : waiter_command(n, c);
}

static void done(struct node *n, struct command *c)
{
	enum command_kind kind = c->kind;
	c->kind = COMMAND_NONE;
	if (kind >= COMMAND_ACTOR_ADMIT)
		actor_command_done(c, kind);
	else if (kind > COMMAND_CLOSE_IDLE)
		waiter_command_done(n, c);
}

void dpq_send(struct node *n, struct command *c)
{
	CHECK(c->worker < n->config.workers);
	struct command_queue *q = &n->commands[c->worker];
	if (q->first == NULL && run(n, c) == DP_DONE) {
		done(n, c);
		return;
	}
	c->next = NULL;
	*q->end = c;
	q->end = &c->next;
	n->commands_queued++;
}

static void flush_worker(struct node *n, struct command_queue *q)
{
	while (q->first != NULL) {
		struct command *c = q->first;
		if (run(n, c) != DP_DONE)
			return;
		q->first = c->next;
		if (q->first == NULL)
			q->end = &q->first;
		n->commands_queued--;
		done(n, c);
	}
}

void dpq_flush(struct node *n)
{
	for (uint16_t i = 0; n->commands_queued > 0 && i < n->config.workers; i++)
		flush_worker(n, &n->commands[i]);
}

bool dpq_is_crowded(const struct node *n)
{
	return n->commands_queued >= CROWDED;
}
