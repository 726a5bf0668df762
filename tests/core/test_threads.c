// SPDX-License-Identifier: BSD-3-Clause
// Real threads: four workers on whatever cores there are, kernel sockets on loopback, the real clock.
#include "rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fabric/udp.h"

enum { WORKERS = 4, SPOTS = 64, MESSAGES = 4000, WINDOW = 64 };

struct node {
	struct dp *dp;
	struct route_table *routes;
	struct fabric_queue *queues[WORKERS];
	uint16_t ports[WORKERS];
	struct dp_spot *spots[SPOTS];
	uint32_t spot_count;
	uint32_t begun, ended;
};

static void count_begin(void *arg, uint16_t worker)
{
	(void)worker;
	__atomic_fetch_add(&((struct node *)arg)->begun, 1, __ATOMIC_RELAXED);
}

static void count_end(void *arg, uint16_t worker)
{
	(void)worker;
	__atomic_fetch_add(&((struct node *)arg)->ended, 1, __ATOMIC_RELAXED);
}

// Control, reduced: publishes and opens what was constructed, retires what was closed.
static void control(struct node *n)
{
	struct dp_fact facts[32];
	uint32_t got = dp_facts(n->dp, facts, ARRAY_COUNT(facts));
	for (uint32_t i = 0; i < got; i++) {
		struct dp_fact *f = &facts[i];
		if (f->kind == DP_FACT_CONSTRUCTED) {
			struct dp_spot *spot = f->as.constructed.spot;
			struct dp_spot_view view;
			dp_spot_view(spot, &view);
			assert_int_equal(route_publish(n->routes, f->key, dp_spot_route(spot)),
				ROUTE_WRITTEN);
			assert_int_equal(dp_open(n->dp, spot, view.home_worker), DP_DONE);
		} else if (f->kind == DP_FACT_OPENED) {
			n->spot_count++;
		} else if (f->kind == DP_FACT_CLOSED) {
			route_retire(n->routes, f->key);
			n->spot_count--;
		}
	}
}

static uint64_t now_ms(void)
{
	return clock_boot_ns(clock_system()) / 1000000;
}

static void wait_for(struct node *n, const uint32_t *value, uint32_t want)
{
	uint64_t until = now_ms() + 60000;
	while (__atomic_load_n(value, __ATOMIC_RELAXED) != want) {
		struct pollfd p = {.fd = dp_wake_fd(n->dp), .events = POLLIN};
		uint64_t rings;
		dp_control_sleeps(n->dp, true);
		control(n);
		if (__atomic_load_n(value, __ATOMIC_RELAXED) == want)
			break;
		poll(&p, 1, 100);
		dp_control_sleeps(n->dp, false);
		if (p.revents != 0)
			(void)!read(p.fd, &rings, sizeof(rings));
		control(n);
		if (now_ms() > until)
			fail_msg("still %u of %u", *value, want);
	}
}

static void node_start(struct node *n)
{
	const char *why = NULL;
	static const uint8_t key[16] = "threads";
	memset(n, 0, sizeof(*n));
	n->routes = route_table_create(key, 1024);
	struct dp_config c = {.workers = WORKERS, .idle = DP_IDLE_ADAPTIVE,
		.accounting = LEDGER_MEASURED, .application = {64u << 20, 1024},
		.lifecycle = {4u << 20, 128}, .process_mark_bytes = 256u << 20,
		.parked_messages_max = 65536, .resolves_in_flight_max = 4096,
		.message_bytes_max = 16u << 20, .peer_reassembly_bytes_max = 32u << 20,
		.reassembly_expiry_ms = 500, .sessions_max = 64, .turn_budget_us = 10000,
		.default_budget_ms = 60000, .offload_threads = 2, .offload_queue_max = 256,
		.insecure = true, .node = {1}, .cookie_key = "0123456789abcde",
		.clock = clock_system(), .routes = n->routes};
	n->dp = dp_create(&c, &why);
	assert_non_null(n->dp);
	assert_int_equal(dp_register_module(n->dp, &rig_module, NULL, &why), DP_DONE);
	dp_lease(n->dp)->deadline_boot_ns = UINT64_MAX;
	dp_lease(n->dp)->deadline_ticks = UINT64_MAX;
	dp_admit_set(n->dp, true, RESULT_OK);
}

static void open_sockets(struct node *n)
{
	struct fabric_why why;
	struct fabric_udp_config c = {.address = "127.0.0.1"};
	if (!fabric_udp_open(&c, n->queues, WORKERS, &why))
		fail_msg("%s", why.text);
	for (uint16_t i = 0; i < WORKERS; i++) {
		n->ports[i] = fabric_udp_port(n->queues[i]);
		assert_true(dp_attach_queue(n->dp, i, n->queues[i]));
	}
}

static void make_spots(struct node *n)
{
	for (uint32_t i = 0; i < SPOTS; i++) {
		char id[16];
		snprintf(id, sizeof(id), "spot-%u", i);
		struct dp_spot_spec spec = {.key = spot_key_of(rig_id(id)), .id = rig_id(id),
			.type = dp_type_by_name(n->dp, i % 2 == 0 ? "plain" : "quick"),
			.object_generation = {i + 1}, .authority_generation = {1},
			.home_worker = (uint16_t)(i % WORKERS)};
		n->spots[i] = dp_spot_create(n->dp, &spec);
		assert_non_null(n->spots[i]);
		while (dp_construct(n->dp, n->spots[i], span_of(NULL, 0)) != DP_DONE)
			control(n);
	}
	wait_for(n, &n->spot_count, SPOTS);
}

static void close_spots(struct node *n)
{
	for (uint32_t i = 0; i < SPOTS; i++)
		while (dp_close(n->dp, n->spots[i], SPOTLANE_CLOSE_HOST_SHUTDOWN, UINT64_MAX) !=
			DP_DONE)
			control(n);
	wait_for(n, &n->spot_count, 0);
}

// ---- a client on one socket ----
struct sock {
	int fd;
	uint64_t session, counter, cookie, operation, answered, ok;
};

static void transmit(struct sock *s, struct wire_header *h, struct span payload)
{
	uint8_t frame[2048];
	h->version = WIRE_VERSION;
	h->session = s->session;
	h->counter = ++s->counter;
	h->cookie = s->cookie;
	size_t n = wire_encode(h, span_of(NULL, 0), payload, frame, sizeof(frame));
	assert_true(n > 0);
	assert_int_equal(send(s->fd, frame, n, 0), n);
}

// Waits up to 10 s for one frame.
static void receive(struct sock *s, struct wire_header *out)
{
	uint8_t frame[4096];
	struct wire_frame wf;
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 10000), 1);
	ssize_t n = recv(s->fd, frame, sizeof(frame), 0);
	assert_true(n > 0);
	assert_int_equal(wire_decode(span_of(frame, (size_t)n), &wf), WIRE_TAKEN);
	*out = wf.h;
}

static void sock_open(struct sock *s, uint16_t port, uint64_t session)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct wire_header h = {.family = WIRE_HELLO};
	memset(s, 0, sizeof(*s));
	s->session = session;
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(connect(s->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	transmit(s, &h, span_of(NULL, 0));
	receive(s, &h);
	assert_int_equal(h.family, WIRE_CHALLENGE);
	s->cookie = h.cookie;
}

static void request(struct sock *s, struct rng *rng)
{
	static const uint16_t what[] = {DO_ECHO, DO_LOG, DO_ASK, DO_SEND, DO_OFFLOAD};
	char id[16], other[16];
	uint32_t i = (uint32_t)rng_below(rng, SPOTS), o = (uint32_t)rng_below(rng, SPOTS);
	uint32_t type = (uint32_t)rng_below(rng, i % 2 == 0 ? 5 : 2);
	if (o == i)
		o = (o + 1) % SPOTS;
	// A waits for B only towards the ones that never wait, so that no two wait for each other.
	snprintf(id, sizeof(id), "spot-%u", i);
	snprintf(other, sizeof(other), "spot-%u", o | 1);
	struct spot_key key = spot_key_of(rig_id(id));
	struct wire_header h = {.family = WIRE_REQUEST, .spot_key_lo = key.lo, .spot_key_hi = key.hi,
		.operation_scope = s->session, .operation_id = ++s->operation,
		.message_type = what[type], .total_bytes = (uint32_t)strlen(other)};
	transmit(s, &h, rig_id(other));
}

static void L4_L8_X1_I7_I10__four_workers_on_shared_cores_account_for_every_message(void **state)
{
	(void)state;
	static struct node n;
	struct sock socks[WORKERS];
	struct rng rng;
	const char *why = NULL;
	rng_seed(&rng, 7);
	memset(&rig_log, 0, sizeof(rig_log));
	rig_log.many_threads = true;
	node_start(&n);
	open_sockets(&n);
	struct dp_thread_hooks hooks = {count_begin, count_end, &n};
	assert_true(dp_threads_start(n.dp, NULL, &hooks, &why));
	make_spots(&n);
	for (int i = 0; i < WORKERS; i++)
		sock_open(&socks[i], n.ports[0], 100 + (uint64_t)i);
	for (uint32_t sent = 0; sent < MESSAGES; sent += WINDOW) {
		for (int k = 0; k < WINDOW; k++)
			request(&socks[k % WORKERS], &rng);
		for (int k = 0; k < WINDOW; k++) {
			struct wire_header h;
			receive(&socks[k % WORKERS], &h);
			assert_int_equal(h.family, WIRE_REPLY);
			assert_int_equal(h.kind, RESULT_OK);
		}
	}
	struct dp_audit audit;
	while (dp_audit_begin(n.dp) != DP_DONE)
		control(&n);
	uint64_t until = now_ms() + 60000;
	while (!dp_audit_poll(n.dp, &audit)) {
		sched_yield();
		assert_true(now_ms() < until);
	}
	assert_true(audit.equal);
	assert_true(audit.accepted >= MESSAGES / WINDOW * WINDOW);
	close_spots(&n);
	dp_threads_stop(n.dp);
	assert_int_equal(n.begun, WORKERS);
	assert_int_equal(n.ended, WORKERS);
	for (uint32_t i = 0; i < SPOTS; i++)
		dp_spot_destroy(n.spots[i]);
	for (int i = 0; i < WORKERS; i++) {
		close(socks[i].fd);
		fabric_udp_close(n.queues[i]);
	}
	assert_int_equal(dp_process_bytes(n.dp), 0);
	dp_destroy(n.dp);
	publish_barrier();
	route_table_destroy(n.routes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			L4_L8_X1_I7_I10__four_workers_on_shared_cores_account_for_every_message),
	};
	rig_main_begin();
	int failed = cmocka_run_group_tests_name("core threads", tests, NULL, NULL);
	rig_main_end();
	return failed;
}
