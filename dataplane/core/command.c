// SPDX-License-Identifier: BSD-3-Clause
#include "core/command.h"

#include "base/check.h"
#include "base/mem.h"
#include "core/control_call.h"
#include "core/core.h"
#include "core/lifecycle.h"

bool fact_port_init(struct fact_port *port)
{
	port->commands = ring_create(COMMAND_RING);
	port->facts = ring_create(FACT_RING);
	port->returned = ring_create(FACT_POOL);
	port->pool = mem_zalloc(FACT_POOL * sizeof(port->pool[0]));
	return port->commands != NULL && port->facts != NULL && port->returned != NULL &&
		port->pool != NULL;
}

static struct command *command_of(struct fact_node *node)
{
	return container_of(node, struct command, node);
}

static void free_if_command(struct fact_node *node)
{
	if (node->origin == FACT_OF_COMMAND)
		mem_free(command_of(node));
}

void fact_port_fini(struct fact_port *port)
{
	void *p;
	while (port->commands != NULL && ring_pop(port->commands, &p, 1) == 1)
		mem_free(p);
	while (port->facts != NULL && ring_pop(port->facts, &p, 1) == 1)
		free_if_command(p);
	while (port->head != NULL) {
		struct fact_node *node = port->head;
		port->head = node->next;
		free_if_command(node);
	}
	ring_destroy(port->commands);
	ring_destroy(port->facts);
	ring_destroy(port->returned);
	mem_free(port->pool);
}

static void collect_returned(struct fact_port *port)
{
	void *nodes[32];
	uint32_t n = ring_pop(port->returned, nodes, ARRAY_COUNT(nodes));
	for (uint32_t i = 0; i < n; i++) {
		struct fact_node *node = nodes[i];
		node->next = port->free;
		port->free = node;
	}
}

struct fact_node *fact_begin(struct dp_worker *w)
{
	struct fact_port *port = &w->facts;
	if (port->free == NULL)
		collect_returned(port);
	struct fact_node *node = port->free;
	if (node != NULL) {
		port->free = node->next;
		return node;
	}
	if (port->pool_used == FACT_POOL) {
		COUNT(w, facts_full);
		return NULL;
	}
	node = &port->pool[port->pool_used++]; // untouched memory is not resident
	node->origin = FACT_OF_POOL;
	node->told = 1;
	return node;
}

void fact_post(struct dp_worker *w, struct fact_node *node)
{
	struct fact_port *port = &w->facts;
	node->next = NULL;
	if (port->head == NULL)
		port->head = node;
	else
		port->tail->next = node;
	port->tail = node;
}

void command_done(struct dp_worker *w, struct command *command)
{
	command->node.told = 0;
	fact_post(w, &command->node);
}

// Rings at most once, and only when control said it sleeps. A read-modify-write on the word that
// dp_control_sleeps exchanges: either ours comes first, and control's last look sees the fact, or it
// comes second and sees that control sleeps. It also keeps two workers from ringing for one sleep.
static void wake_control(struct dp *dp)
{
	if (dp->wake == NULL)
		return;
	if (atomic_exchange_explicit(&dp->control_sleeps, 0, memory_order_acq_rel) != 0)
		dp->wake(dp->wake_arg);
}

void fact_flush(struct dp_worker *w)
{
	struct fact_port *port = &w->facts;
	bool any = false;
	while (port->head != NULL) {
		struct fact_node *node = port->head;
		struct fact_node *next = node->next;
		void *p = node;
		if (ring_push(port->facts, &p, 1) == 0) {
			COUNT(w, facts_full);
			break;
		}
		any = true;
		port->head = next;
	}
	if (any)
		wake_control(w->dp);
}

static void run(struct dp_worker *w, struct command *command)
{
	switch ((enum command_kind)command->what) {
	case COMMAND_CONSTRUCT:
	case COMMAND_CLOSE:
	case COMMAND_CLOSE_IDLE:
	case COMMAND_ACTOR_ADMIT:
	case COMMAND_ACTOR_ENTER:
	case COMMAND_ACTOR_LEAVE:
		lifecycle_enqueue(w, command);
		return;
	case COMMAND_OPEN:
		park_open(w, command);
		return;
	case COMMAND_RELEASE:
		park_release(w, command->key);
		command_done(w, command);
		return;
	case COMMAND_FAIL:
		park_fail(w, command->key, (enum dp_fail_scope)command->scope, command->result,
			command->has_refusal ? &command->refusal : NULL);
		command_done(w, command);
		return;
	case COMMAND_CONTROL_REPLY:
		control_call_answer(w, command);
		return;
	}
	CHECK(!"a command of no kind");
}

bool command_poll(struct dp_worker *w)
{
	void *commands[32];
	uint32_t n = ring_pop(w->facts.commands, commands, ARRAY_COUNT(commands));
	for (uint32_t i = 0; i < n; i++)
		run(w, commands[i]);
	return n > 0;
}
