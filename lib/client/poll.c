// SPDX-License-Identifier: BSD-3-Clause
#include "client/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/check.h"
#include "base/mem.h"

// ---- timers ----

static void repeat_fired(spotlane_client *client, struct client_op *op)
{
	op->repeat_wait_ms *= 2;
	uint32_t most = CLIENT_REPEAT_MS_MAX;
	if (client->repeat_after_ms > most)
		most = client->repeat_after_ms;
	if (op->repeat_wait_ms > most)
		op->repeat_wait_ms = most;
	if (op->upload)
		seg_tx_timeout(&op->upload->tx);
	else if (op->state != OP_SENT)
		return;
	port_queue(op->port, op);
}

static void hello_fired(spotlane_client *client, struct client_port *port)
{
	if (port->cookie_state != COOKIE_ASKED)
		return;
	if (TAILQ_EMPTY(&port->queue) && !client->reaching)
		port->cookie_state = COOKIE_ABSENT; // nobody waits for it: asked again when needed
	else
		port->hello_due = true;
}

static void timer_fired(spotlane_client *client, struct client_timer *timer)
{
	switch (timer->kind) {
	case TIMER_DEADLINE:
		op_end_here(client, container_of(timer, struct client_op, deadline),
			SPOTLANE_END_DEADLINE, SPOTLANE_KIND_DEADLINE_EXCEEDED, REASON_NONE);
		return;
	case TIMER_REPEAT:
		repeat_fired(client, container_of(timer, struct client_op, repeat));
		return;
	case TIMER_KEEPALIVE:
		push_keepalive(container_of(timer, struct client_port, keepalive));
		return;
	case TIMER_HELLO:
		hello_fired(client, container_of(timer, struct client_port, hello));
		return;
	}
}

// ---- one step, and waiting ----

static void step(spotlane_client *client)
{
	client->now_ns = clock_boot_ns(client->clock);
	// What has arrived goes before what has run out: a reply already here is not late.
	for (uint32_t i = 0; i < client->port_count; i++)
		port_receive(&client->ports[i]);
	struct wheel_node *node;
	while ((node = wheel_take(&client->wheel, client->now_ns)))
		timer_fired(client, container_of(node, struct client_timer, node));
	for (uint32_t i = 0; i < client->port_count; i++)
		port_pump(&client->ports[i]);
}

static bool any_port_ready(const spotlane_client *client)
{
	for (uint32_t i = 0; i < client->port_count; i++)
		if (port_is_ready(&client->ports[i]))
			return true;
	return false;
}

static void doze(spotlane_client *client, uint64_t until_ns)
{
	uint64_t next_ns = wheel_next_ns(&client->wheel);
	if (next_ns > until_ns)
		next_ns = until_ns;
	uint64_t now_ns = clock_boot_ns(client->clock);
	uint64_t left_ns = next_ns > now_ns && !any_port_ready(client) ? next_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
		.tv_nsec = (long)(left_ns % 1000000000u)};
	struct epoll_event events[CLIENT_PORTS_MAX];
	// Errors (a signal) end the wait early, which is harmless: every caller loops on its own
	// clock.
	(void)epoll_pwait2(client->epoll_fd, events, CLIENT_PORTS_MAX, &left, NULL);
}

static uint64_t wait_end_ns(const spotlane_client *client, uint64_t wait_us)
{
	uint64_t now_ns = clock_boot_ns(client->clock);
	return wait_us > (UINT64_MAX - now_ns) / 1000 ? UINT64_MAX : now_ns + wait_us * 1000;
}

int spotlane_client_poll(spotlane_client *client, uint64_t wait_us)
{
	if (client->in_poll)
		return -EBUSY;
	client->in_poll = true;
	uint64_t before = client->ended;
	uint64_t until_ns = wait_us > 0 ? wait_end_ns(client, wait_us) : 0;
	step(client);
	while (client->ended == before && client->now_ns < until_ns) {
		doze(client, until_ns);
		step(client);
	}
	client->in_poll = false;
	uint64_t ended = client->ended - before;
	return ended > INT32_MAX ? INT32_MAX : (int)ended;
}

uint64_t spotlane_client_next_us(spotlane_client *client)
{
	if (any_port_ready(client))
		return 0;
	uint64_t next_ns = wheel_next_ns(&client->wheel);
	if (next_ns == UINT64_MAX)
		return UINT64_MAX;
	uint64_t now_ns = clock_boot_ns(client->clock);
	return next_ns > now_ns ? (next_ns - now_ns + 999) / 1000 : 0;
}

// ---- blocking forms ----

static bool all_reached(const spotlane_client *client)
{
	for (uint32_t i = 0; i < client->port_count; i++)
		if (client->ports[i].cookie_state != COOKIE_HELD)
			return false;
	return true;
}

static bool any_refused(const spotlane_client *client)
{
	for (uint32_t i = 0; i < client->port_count; i++)
		if (client->ports[i].refused)
			return true;
	return false;
}

int spotlane_client_reach(spotlane_client *client, uint64_t wait_us)
{
	if (client->in_poll)
		return -EBUSY;
	client->in_poll = true;
	client->reaching = true;
	uint64_t until_ns = wait_end_ns(client, wait_us);
	for (uint32_t i = 0; i < client->port_count; i++)
		port_ask_cookie(&client->ports[i]);
	step(client);
	while (!all_reached(client) && client->now_ns < until_ns) {
		doze(client, until_ns);
		step(client);
	}
	client->reaching = false;
	client->in_poll = false;
	if (all_reached(client))
		return 0;
	return any_refused(client) ? -ECONNREFUSED : -ETIMEDOUT;
}

struct waiter {
	struct spotlane_reply reply;
	enum { WAITER_WAITS = 1, WAITER_ENDED = 2, WAITER_NO_MEMORY = 3 } state;
};

static void waiter_done(void *arg, const struct spotlane_client_result *result)
{
	struct waiter *waiter = arg;
	waiter->reply.result = *result;
	size_t size = result->payload_bytes + result->explanation_bytes;
	uint8_t *bytes = mem_zalloc(size > 0 ? size : 1);
	if (!bytes) {
		waiter->state = WAITER_NO_MEMORY;
		return;
	}
	if (result->payload_bytes > 0)
		memcpy(bytes, result->payload, result->payload_bytes);
	if (result->explanation_bytes > 0)
		memcpy(bytes + result->payload_bytes, result->explanation,
			result->explanation_bytes);
	waiter->reply.bytes = bytes;
	waiter->reply.result.payload = bytes;
	waiter->reply.result.explanation = (const char *)bytes + result->payload_bytes;
	waiter->state = WAITER_ENDED;
}

int spotlane_client_call_wait(spotlane_client *client, const struct spotlane_client_call *call,
	struct spotlane_reply *out_reply)
{
	if (call->done)
		return -EINVAL;
	if (client->in_poll)
		return -EBUSY;
	struct waiter waiter = {.state = WAITER_WAITS};
	struct spotlane_client_call mine = *call;
	mine.done = waiter_done;
	mine.arg = &waiter;
	int bad = spotlane_client_start(client, &mine, NULL);
	if (bad)
		return bad;
	// Ends at the latest with the call's own time limit.
	while (waiter.state == WAITER_WAITS)
		(void)spotlane_client_poll(client, 1000 * 1000);
	if (waiter.state == WAITER_NO_MEMORY)
		return -ENOMEM;
	*out_reply = waiter.reply;
	return 0;
}

void spotlane_reply_free(struct spotlane_reply *reply)
{
	if (!reply)
		return;
	mem_free(reply->bytes);
	*reply = (struct spotlane_reply){0};
}
