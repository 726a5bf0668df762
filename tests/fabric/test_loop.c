// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "contract.h"
#include "fabric/loop.h"

static struct fabric_loop_endpoint endpoint(uint8_t host, uint16_t port)
{
	struct fabric_loop_endpoint e = {.port = port, .fabric = host};
	const uint8_t v4[4] = {10, 0, 0, host};
	peer_ip_from_v4(e.ip, v4);
	return e;
}

static struct peer peer_of(const struct fabric_loop_endpoint *e)
{
	struct peer p = {.port = e->port};
	memcpy(p.ip, e->ip, sizeof(p.ip));
	return p;
}

static struct fabric_queue *open_endpoint(
	struct fabric_loop *net, const struct fabric_loop_endpoint *e)
{
	struct fabric_queue *q = fabric_loop_open(net, e);
	assert_non_null(q);
	return q;
}

static void send_byte(struct fabric_queue *q, const struct peer *to, uint8_t byte)
{
	struct frame f;
	assert_int_equal(fabric_base(q)->ops->alloc(q, &f, 1), 1);
	f.data[0] = byte;
	f.bytes = 1;
	f.peer = *to;
	fabric_base(q)->ops->tx(q, &f, 1);
}

// Reads all that is there; the first bytes as a string.
static void drain(struct fabric_queue *q, char *out)
{
	struct frame f;
	while (fabric_base(q)->ops->rx(q, &f, 1) == 1) {
		*out++ = (char)f.data[0];
		fabric_base(q)->ops->release(q, &f, 1);
	}
	*out = '\0';
}

struct script {
	const struct fabric_loop_fault *faults;
	uint32_t at, count;
};

static struct fabric_loop_fault follow(void *arg, const struct fabric_loop_pass *pass)
{
	struct script *script = arg;
	(void)pass;
	if (script->at == script->count)
		return (struct fabric_loop_fault){FABRIC_LOOP_DELIVER, 0};
	return script->faults[script->at++];
}

static void x__faults_are_carried_out(void **state)
{
	(void)state;
	static const struct {
		struct fabric_loop_fault faults[4];
		const char *expected; // of 'a' 'b' 'c' 'd' sent in this order
	} cases[] = {
		{{{FABRIC_LOOP_DELIVER, 0}, {FABRIC_LOOP_DROP, 0}, {FABRIC_LOOP_DELIVER, 0},
			 {FABRIC_LOOP_DELIVER, 0}},
			"acd"},
		{{{FABRIC_LOOP_DUPLICATE, 0}, {FABRIC_LOOP_DELIVER, 0}, {FABRIC_LOOP_DROP, 0},
			 {FABRIC_LOOP_DELIVER, 0}},
			"aabd"},
		{{{FABRIC_LOOP_LATE, 2}, {FABRIC_LOOP_DELIVER, 0}, {FABRIC_LOOP_DELIVER, 0},
			 {FABRIC_LOOP_DELIVER, 0}},
			"bcad"},
		{{{FABRIC_LOOP_LATE, 9}, {FABRIC_LOOP_LATE, 1}, {FABRIC_LOOP_DELIVER, 0},
			 {FABRIC_LOOP_DELIVER, 0}},
			"cbda"},
	};
	struct fabric_loop_endpoint ea = endpoint(1, 100), eb = endpoint(2, 200);
	struct peer at_b = peer_of(&eb);
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct fabric_loop *net = fabric_loop_create();
		struct fabric_queue *a = open_endpoint(net, &ea), *b = open_endpoint(net, &eb);
		struct script script = {cases[i].faults, 0, 4};
		char got[16];
		fabric_loop_wire(a, b);
		fabric_loop_hook_set(net, follow, &script);
		for (const char *c = "abcd"; *c != '\0'; c++)
			send_byte(a, &at_b, (uint8_t)*c);
		drain(b, got);
		assert_string_equal(got, cases[i].expected);
		assert_int_equal(fabric_loop_waiting(b), 0);
		assert_int_equal(fabric_loop_free_buffers(a), 1024);
		assert_int_equal(fabric_loop_free_buffers(b), 1024);
		fabric_loop_destroy(net);
	}
}

static void x__unwired_endpoints_do_not_hear_each_other(void **state)
{
	(void)state;
	struct fabric_loop_endpoint ea = endpoint(1, 100), eb = endpoint(2, 200);
	struct peer at_b = peer_of(&eb);
	struct fabric_loop *net = fabric_loop_create();
	struct fabric_queue *a = open_endpoint(net, &ea), *b = open_endpoint(net, &eb);
	char got[4];
	send_byte(a, &at_b, 'x');
	assert_int_equal(fabric_base(a)->stats.tx_no_neighbour, 1);
	fabric_loop_wire(a, b);
	send_byte(a, &at_b, 'y');
	fabric_loop_unwire(a, b);
	send_byte(a, &at_b, 'z');
	drain(b, got);
	assert_string_equal(got, "y");
	fabric_loop_destroy(net);
}

static void x__workers_with_one_address_share_by_source_port(void **state)
{
	(void)state;
	struct fabric_loop *net = fabric_loop_create();
	struct fabric_loop_endpoint node = endpoint(9, 7000);
	struct peer at_node = peer_of(&node);
	struct fabric_queue *w0 = open_endpoint(net, &node), *w1 = open_endpoint(net, &node);
	for (uint16_t port = 1000; port < 1004; port++) {
		struct fabric_loop_endpoint client = endpoint(1, port);
		struct fabric_queue *q = open_endpoint(net, &client);
		fabric_loop_wire(q, w0);
		fabric_loop_wire(q, w1);
		send_byte(q, &at_node, 'c');
	}
	assert_int_equal(fabric_loop_waiting(w0), 2);
	assert_int_equal(fabric_loop_waiting(w1), 2);
	fabric_loop_destroy(net);
}

static void P3__a_full_receiver_counts_what_it_loses(void **state)
{
	(void)state;
	struct fabric_loop_endpoint ea = endpoint(1, 100), eb = endpoint(2, 200);
	struct peer at_b = peer_of(&eb);
	eb.frames = 4;
	struct fabric_loop *net = fabric_loop_create();
	struct fabric_queue *a = open_endpoint(net, &ea), *b = open_endpoint(net, &eb);
	char got[8];
	fabric_loop_wire(a, b);
	for (const char *c = "abcdef"; *c != '\0'; c++)
		send_byte(a, &at_b, (uint8_t)*c);
	assert_int_equal(fabric_base(b)->stats.rx_no_buffer, 2);
	drain(b, got);
	assert_string_equal(got, "abcd");
	fabric_loop_destroy(net);
}

static void x__an_injected_frame_comes_from_whom_it_says(void **state)
{
	(void)state;
	struct fabric_loop_endpoint eb = endpoint(2, 200);
	struct peer from = {.port = 77};
	struct fabric_loop *net = fabric_loop_create();
	struct fabric_queue *b = open_endpoint(net, &eb);
	struct frame f;
	uint8_t large[2000] = {0};
	assert_true(fabric_loop_inject(b, &from, "hi", 2));
	assert_false(fabric_loop_inject(b, &from, large, sizeof(large)));
	assert_int_equal(fabric_base(b)->stats.rx_malformed, 1);
	assert_int_equal(fabric_base(b)->ops->rx(b, &f, 1), 1);
	assert_int_equal(f.peer.port, 77);
	assert_int_equal(f.bytes, 2);
	fabric_base(b)->ops->release(b, &f, 1);
	fabric_loop_destroy(net);
}

static void x__short_memory_is_a_verdict(void **state)
{
	(void)state;
	struct fabric_loop_endpoint e = endpoint(1, 1);
	mem_fail_nth(1, 0);
	assert_null(fabric_loop_create());
	struct fabric_loop *net = fabric_loop_create();
	for (uint64_t nth = 1; nth <= 4; nth++) {
		mem_fail_nth(nth, 0);
		assert_null(fabric_loop_open(net, &e));
	}
	mem_fail_nth(0, 0);
	assert_non_null(fabric_loop_open(net, &e));
	fabric_loop_destroy(net);
}

static int contract(void)
{
	struct fabric_loop_endpoint ea = endpoint(1, 100), eb = endpoint(2, 200);
	struct fabric_loop *net = fabric_loop_create();
	struct contract_pair pair = {.a = fabric_loop_open(net, &ea),
		.b = fabric_loop_open(net, &eb),
		.at_a = peer_of(&ea),
		.at_b = peer_of(&eb)};
	fabric_loop_wire(pair.a, pair.b);
	int failed = contract_run("fabric contract: loop", &pair);
	fabric_loop_destroy(net);
	return failed;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__faults_are_carried_out),
		cmocka_unit_test(x__unwired_endpoints_do_not_hear_each_other),
		cmocka_unit_test(x__workers_with_one_address_share_by_source_port),
		cmocka_unit_test(P3__a_full_receiver_counts_what_it_loses),
		cmocka_unit_test(x__an_injected_frame_comes_from_whom_it_says),
		cmocka_unit_test(x__short_memory_is_a_verdict),
	};
	int failed = contract();
	return failed + cmocka_run_group_tests_name("fabric loop", tests, NULL, NULL);
}
