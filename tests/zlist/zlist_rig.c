// SPDX-License-Identifier: BSD-3-Clause
#include "zlist_rig.h"

#include <stdio.h>

#include "base/rng.h"
#include "publish/publish.h"
#include "spotlane/module.h"
#include "worker/worker.h"

// ---- the module ----
static const struct spotlane_host *host;
static struct z_id ids[2][Z_IDS];
enum { ENTRY = 1000 };

static struct z_id *record(uint64_t instance)
{
	static struct z_id entry;
	return instance == ENTRY ? &entry : &ids[instance / Z_IDS][instance % Z_IDS];
}

static uint64_t instance_of(const char *id)
{
	uint64_t number = (uint64_t)strtoul(id + 2, NULL, 10) % Z_IDS;
	return (id[0] == 'r' ? Z_IDS : 0) + number;
}

struct z_id *z_id(const char *id)
{
	return record(instance_of(id));
}

static int construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	char id[16] = {0};
	memcpy(id, info->id.data, info->id.size < 15 ? info->id.size : 15);
	out->value = instance_of(id);
	record(out->value)->built++;
	return 0;
}

static int entry_construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	out->value = ENTRY;
	return 0;
}

static int closing(spotlane_instance self, enum spotlane_close_reason reason, uint64_t deadline_ns)
{
	(void)deadline_ns;
	record(self.value)->closings++;
	record(self.value)->close_reason = (int)reason;
	return 0;
}

static void dispose(spotlane_instance self)
{
	record(self.value)->disposed++;
}

// s-63 asks s-62, everybody else asks s-63: who asks waits until its budget ends.
static bool works_on(
	spotlane_instance self, spotlane_turn turn, const struct spotlane_message *m)
{
	struct spotlane_bytes whom = {self.value == instance_of("s-63") ? "s-62" : "s-63", 4};
	struct spotlane_bytes nothing = {"", 0};
	return m->type == Z_WORK &&
	       host->request(turn, whom, Z_WORK, SPOTLANE_BYTES, nothing, 0).value != 0;
}

static enum spotlane_outcome instance_message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	record(self.value)->ran++;
	return works_on(self, spotlane_instance_common(turn), m) ? SPOTLANE_WAIT : SPOTLANE_DONE;
}

static enum spotlane_outcome instance_answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *answer)
{
	(void)self;
	(void)turn;
	(void)call;
	(void)answer;
	return SPOTLANE_DONE;
}

static enum spotlane_outcome user_message(
	spotlane_instance self, spotlane_user_turn turn, const struct spotlane_message *m)
{
	(void)turn;
	(void)m;
	record(self.value)->ran++;
	return SPOTLANE_DONE;
}

static enum spotlane_entry_outcome entry_message(
	spotlane_instance self, spotlane_entry_turn turn, const struct spotlane_message *m)
{
	(void)self;
	(void)turn;
	(void)m;
	return SPOTLANE_ENTRY_DONE;
}

// Eight places and 8 KiB a lane: six messages of 1,200 bytes fill the bytes, empty ones the places.
// `narrow` has room for many empty messages by count, and for few by bytes.
static const struct spotlane_instance_type cell = {.name = "cell",
	.limits = {.application_count_max = 8, .application_bytes_max = 8192},
	.construct = construct, .closing = closing, .dispose = dispose,
	.message = instance_message, .answered = instance_answered};
static const struct spotlane_instance_type narrow = {.name = "narrow",
	.limits = {.application_count_max = 1000, .application_bytes_max = 1024},
	.construct = construct, .closing = closing, .dispose = dispose,
	.message = instance_message, .answered = instance_answered};
static const struct spotlane_user_type room = {.name = "room",
	.limits = {.application_count_max = 8, .application_bytes_max = 8192},
	.construct = construct, .closing = closing, .dispose = dispose, .message = user_message};
static const struct spotlane_entry_type door = {.name = "door",
	.limits = {.application_count_max = 8, .application_bytes_max = 8192},
	.construct = entry_construct, .closing = closing, .dispose = dispose,
	.message = entry_message};
static const struct spotlane_instance_type *const instance_types[] = {&cell, &narrow, NULL};
static const struct spotlane_user_type *const user_types[] = {&room, NULL};
static const struct spotlane_entry_type *const entry_types[] = {&door, NULL};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static const struct spotlane_module module = {.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "zlist",
	.version = "1",
	.attach = attach,
	.instance_types = instance_types,
	.user_types = user_types,
	.entry_types = entry_types};

// ---- nodes ----
static uint64_t now_ns;

static uint64_t clock_read(struct clock *c)
{
	(void)c;
	return now_ns;
}

static struct clock stepped = {clock_read, clock_read, clock_read, 1000000000u};

static void make_dp(struct z *z, uint32_t i, const char *name)
{
	const char *why = NULL;
	struct z_node *n = &z->nodes[i];
	struct dp_config c = {.workers = 1,
		.idle = DP_IDLE_SPIN,
		.accounting = LEDGER_MEASURED,
		.application = {1u << 20, 64},
		.lifecycle = {1u << 18, 32},
		.process_mark_bytes = 64u << 20,
		.parked_messages_max = 256,
		.resolves_in_flight_max = 64,
		.message_bytes_max = 1u << 16,
		.peer_reassembly_bytes_max = 1u << 18,
		.reassembly_expiry_ms = 500,
		.sessions_max = 64,
		.turn_budget_us = 10000,
		.default_budget_ms = 1000,
		.offload_queue_max = 16,
		.insecure = true,
		.node = node_key_of(span_of(name, strlen(name))),
		.cookie_key = "zlist cookies..",
		.clock = &stepped,
		.routes = n->routes};
	n->dp = dp_create(&c, &why);
	if (n->dp == NULL)
		fail_msg("dp_create: %s", why);
	assert_int_equal(dp_register_module(n->dp, &module, NULL, &why), DP_DONE);
	uint8_t v4[4] = {10, 0, 0, (uint8_t)(i + 1)};
	struct fabric_loop_endpoint e = {.port = 9000, .frames = 256};
	peer_ip_from_v4(e.ip, v4);
	n->queue = fabric_loop_open(z->net, &e);
	assert_true(dp_attach_queue(n->dp, 0, n->queue));
	fabric_loop_wire(n->queue, z->client);
}

static void make_node(struct z *z, uint32_t i, const struct z_options *options)
{
	static const uint8_t key[16] = "zlist";
	struct z_node *n = &z->nodes[i];
	const char *why = NULL;
	char name[8], address[24];
	snprintf(name, sizeof(name), "n%u", i);
	snprintf(address, sizeof(address), "10.0.0.%u:9000", i + 1);
	rng_seed(&n->rng, 7 + i);
	n->store = memory_store_share(z->rows, &stepped, i);
	n->routes = route_table_create(key, 256);
	make_dp(z, i, name);
	struct node_config c = {.node_id = name,
		.entry_prefix = name,
		.entry_type = "door",
		.address = address,
		.lease_ttl_ms = 3000,
		.lease_renew_ms = 500,
		.lease_timeout_ms = 300,
		.lease_margin_ms = 500,
		.clock_rate_error_percent = 1,
		.activations_max = 128,
		.activations_waiting_max = 1024,
		.resolves_max = 256,
		.spots_max = options->spots_max,
		.idle_ms = options->idle_ms,
		.sweep_interval_ms = 10,
		.closing_limit_ms = 5000,
		.drain_deadline_ms = 5000,
		.rcu_pending_max = 1000000,
		.workers = 1,
		.host_id = name,
		.node_lock_held = true};
	n->node = node_create(&c, &stepped, &n->rng, n->store, n->dp, n->routes, &why);
	if (n->node == NULL)
		fail_msg("node_create: %s", why);
	n->session = 0x5e5510 + i;
	node_start(n->node);
}

static void take_frame(struct z *z, uint32_t node, const struct frame *f)
{
	struct wire_frame w;
	assert_int_equal(wire_decode(span_of(f->data, f->bytes), &w), WIRE_TAKEN);
	if (w.h.family == WIRE_CHALLENGE)
		z->nodes[node].cookie = w.h.cookie;
	if (w.h.family != WIRE_REPLY)
		return;
	assert_in_range(w.h.operation_id, 1, z->asked_count);
	struct z_answer *a = &z->asked[w.h.operation_id - 1];
	a->come = true;
	a->times++;
	a->result = (struct result){w.h.kind, w.h.reason, w.h.accepted};
	if (w.h.content_type == WIRE_CONTENT_REFUSAL)
		assert_int_equal(wire_refusal_decode(w.segment, &a->refusal), WIRE_TAKEN);
}

static void receive(struct z *z)
{
	struct frame f;
	const struct fabric_ops *ops = fabric_base(z->client)->ops;
	while (ops->rx(z->client, &f, 1) == 1) {
		take_frame(z, f.peer.ip[15] - 1u, &f);
		ops->release(z->client, &f, 1);
	}
}

void z_pass(struct z *z, uint32_t ms)
{
	for (uint32_t i = 0; i < ms; i++) {
		for (uint32_t k = 0; k < z->node_count; k++) {
			struct z_node *n = &z->nodes[k];
			if (n->stopped_dead)
				continue;
			(void)dp_worker_turn(n->dp, 0);
			(void)node_step(n->node);
			(void)dp_worker_turn(n->dp, 0);
		}
		receive(z);
		now_ns += Z_MS;
	}
}

static void hello(struct z *z, uint32_t node)
{
	struct z_node *n = &z->nodes[node];
	uint8_t frame[256];
	struct wire_header h = {.version = WIRE_VERSION,
		.family = WIRE_HELLO,
		.session = n->session,
		.counter = ++n->counter};
	size_t size = wire_encode(&h, span_of(NULL, 0), span_of(NULL, 0), frame, sizeof(frame));
	assert_true(fabric_loop_inject(n->queue, &z->client_peer, frame, (uint32_t)size));
}

struct z *z_start(const struct z_options *options)
{
	static const struct z_options plain;
	static const uint8_t v4[4] = {10, 0, 1, 1};
	struct fabric_loop_endpoint e = {.port = 5000, .frames = 512};
	struct z *z = calloc(1, sizeof(*z));
	if (options == NULL)
		options = &plain;
	memset(ids, 0, sizeof(ids));
	now_ns = UINT64_C(1000000000000);
	z->rows = memory_store_create(&stepped, 1);
	z->net = fabric_loop_create();
	peer_ip_from_v4(e.ip, v4);
	memcpy(z->client_peer.ip, e.ip, sizeof(e.ip));
	z->client_peer.port = e.port;
	z->client = fabric_loop_open(z->net, &e);
	z->node_count = options->nodes == 0 ? 1 : options->nodes;
	for (uint32_t i = 0; i < z->node_count; i++)
		make_node(z, i, options);
	if (z->node_count == 2)
		fabric_loop_wire(z->nodes[0].queue, z->nodes[1].queue);
	z_pass(z, 50);
	for (uint32_t i = 0; i < z->node_count; i++)
		hello(z, i);
	z_pass(z, 5);
	return z;
}

void z_stop(struct z *z)
{
	for (uint32_t i = 0; i < z->node_count; i++) {
		struct z_node *n = &z->nodes[i];
		node_halt(n->node);
		store_destroy(n->store);
		publish_barrier();
		node_destroy(n->node);
		dp_destroy(n->dp);
		publish_barrier();
	}
	fabric_loop_destroy(z->net);
	for (uint32_t i = 0; i < z->node_count; i++)
		route_table_destroy(z->nodes[i].routes);
	store_destroy(z->rows);
	free(z);
}

// ---- the client ----
static uint32_t send(struct z *z, uint32_t node, struct wire_header *h, struct span id,
	struct span payload)
{
	struct z_node *n = &z->nodes[node];
	uint8_t frame[1472];
	assert_in_range(z->asked_count, 0, Z_ASKED_MAX - 1);
	uint32_t place = z->asked_count++;
	h->version = WIRE_VERSION;
	h->session = n->session;
	h->counter = ++n->counter;
	h->cookie = n->cookie;
	h->operation_scope = n->session;
	h->operation_id = place + 1;
	h->total_bytes = (uint32_t)payload.size;
	size_t size = wire_encode(h, id, payload, frame, sizeof(frame));
	assert_true(size > 0);
	assert_true(fabric_loop_inject(n->queue, &z->client_peer, frame, (uint32_t)size));
	return place;
}

uint32_t z_send(struct z *z, uint32_t node, const struct z_message *m)
{
	static const uint8_t zeros[1400];
	struct span id = span_of(m->id, strlen(m->id));
	struct spot_key key = spot_key_of(id);
	bool intent = m->family == WIRE_INTENT_SEND || m->family == WIRE_INTENT_REQUEST;
	const char *type = strcmp(m->id, "s-50") == 0 ? "narrow" : "cell";
	struct wire_header h = {.family = m->family,
		.spot_key_lo = key.lo,
		.spot_key_hi = key.hi,
		.spot_type = intent ? type_key_of(type).value : 0,
		.message_type = m->type,
		.budget_us = (m->budget_ms == 0 ? 1000 : m->budget_ms) * 1000};
	return send(z, node, &h, intent ? id : span_of(NULL, 0), span_of(zeros, m->payload_bytes));
}

static struct z_answer await(struct z *z, uint32_t place)
{
	for (int i = 0; !z->asked[place].come && i < 3000; i++)
		z_pass(z, 1);
	assert_true(z->asked[place].come);
	return z->asked[place];
}

struct z_answer z_ask(struct z *z, uint32_t node, const struct z_message *message)
{
	return await(z, z_send(z, node, message));
}

struct z_answer z_control(struct z *z, uint32_t node, uint16_t operation, struct span id,
	struct spot_key key, struct span payload)
{
	bool creates = operation == WIRE_CONTROL_CREATE || operation == WIRE_CONTROL_GET_OR_CREATE;
	struct wire_header h = {.family = WIRE_CONTROL,
		.spot_key_lo = key.lo,
		.spot_key_hi = key.hi,
		.spot_type = creates ? type_key_of("room").value : 0,
		.message_type = operation,
		.budget_us = 1000 * 1000};
	return await(z, send(z, node, &h, id, payload));
}

struct z_answer z_create(struct z *z, uint32_t node, const char *id)
{
	struct span span = span_of(id, strlen(id));
	return z_control(
		z, node, WIRE_CONTROL_CREATE, span, spot_key_of(span), span_of(NULL, 0));
}
