// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "contract.h"
#include "fabric/udp.h"

static struct fabric_queue *open_one(const char *address, uint16_t port, uint32_t payload_bytes_max)
{
	struct fabric_udp_config config = {
		.address = address, .port = port, .payload_bytes_max = payload_bytes_max};
	struct fabric_queue *q;
	struct fabric_why why;
	if (!fabric_udp_open(&config, &q, 1, &why)) {
		print_error("%s\n", why.text);
		return NULL;
	}
	return q;
}

static struct peer peer_at(const char *address, const struct fabric_queue *q)
{
	struct peer p = {.port = fabric_udp_port(q)};
	uint8_t v4[4];
	if (inet_pton(AF_INET, address, v4) == 1)
		peer_ip_from_v4(p.ip, v4);
	else
		assert_int_equal(inet_pton(AF_INET6, address, p.ip), 1);
	return p;
}

static void FC119__a_busy_port_is_named(void **state)
{
	(void)state;
	struct fabric_queue *held = open_one("127.0.0.1", 0, 0);
	assert_non_null(held);
	struct fabric_udp_config config = {.address = "127.0.0.1", .port = fabric_udp_port(held)};
	for (uint16_t n = 1; n <= 2; n++) {
		struct fabric_queue *queues[2];
		struct fabric_why why;
		assert_false(fabric_udp_open(&config, queues, n, &why));
		char port[8];
		snprintf(port, sizeof(port), "%u", config.port);
		assert_non_null(strstr(why.text, "in use"));
		assert_non_null(strstr(why.text, port));
	}
	fabric_udp_close(held);
}

// Several workers share a port among themselves, and still with nobody else.
static void FC119__a_port_shared_by_workers_is_busy_for_others(void **state)
{
	(void)state;
	struct fabric_udp_config config = {.address = "127.0.0.1"};
	struct fabric_queue *mine[2], *other[2];
	struct fabric_why why;
	assert_true(fabric_udp_open(&config, mine, 2, &why));
	assert_int_equal(fabric_udp_port(mine[0]), fabric_udp_port(mine[1]));
	assert_int_equal(fabric_base(mine[1])->worker, 1);
	config.port = fabric_udp_port(mine[0]);
	assert_false(fabric_udp_open(&config, other, 2, &why));
	assert_non_null(strstr(why.text, "in use"));
	assert_null(other[0]);
	fabric_udp_close(mine[0]);
	fabric_udp_close(mine[1]);
}

static void x__workers_share_the_senders(void **state)
{
	(void)state;
	struct fabric_udp_config config = {.address = "127.0.0.1"};
	struct fabric_queue *workers[2];
	struct fabric_why why;
	assert_true(fabric_udp_open(&config, workers, 2, &why));
	struct peer at = peer_at("127.0.0.1", workers[0]);
	enum { SENDERS = 64 };
	for (uint32_t i = 0; i < SENDERS; i++) {
		struct fabric_queue *sender = open_one("127.0.0.1", 0, 0);
		struct frame f;
		assert_int_equal(fabric_base(sender)->ops->alloc(sender, &f, 1), 1);
		f.bytes = 4;
		f.peer = at;
		fabric_base(sender)->ops->tx(sender, &f, 1);
		fabric_udp_close(sender);
	}
	uint32_t got[2] = {0, 0};
	while (got[0] + got[1] < SENDERS) {
		struct pollfd fds[2];
		for (uint32_t w = 0; w < 2; w++)
			fds[w] = (struct pollfd){
				.fd = fabric_base(workers[w])->ops->wait_fd(workers[w]),
				.events = POLLIN};
		assert_true(poll(fds, 2, 10000) > 0);
		for (uint32_t w = 0; w < 2; w++) {
			struct frame frames[FABRIC_BURST_MAX];
			uint32_t n = fabric_base(workers[w])->ops->rx(
				workers[w], frames, FABRIC_BURST_MAX);
			fabric_base(workers[w])->ops->release(workers[w], frames, n);
			got[w] += n;
		}
	}
	assert_true(got[0] > 0);
	assert_true(got[1] > 0);
	fabric_udp_close(workers[0]);
	fabric_udp_close(workers[1]);
}

static void x__bad_addresses_are_explained(void **state)
{
	(void)state;
	static const struct {
		const char *address, *says;
		uint32_t payload_bytes_max;
	} cases[] = {
		{"localhost", "numeric", 0},
		{"", "numeric", 0},
		{"127.0.0.1.1", "numeric", 0},
		{"198.51.100.7", "no such address", 0},
		{"2001:db8::7", "no such address", 0},
		{"127.0.0.1", "65,507", 65508},
	};
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct fabric_udp_config config = {.address = cases[i].address,
			.port = 7001,
			.payload_bytes_max = cases[i].payload_bytes_max};
		struct fabric_queue *q;
		struct fabric_why why;
		assert_false(fabric_udp_open(&config, &q, 1, &why));
		assert_non_null(strstr(why.text, cases[i].says));
	}
}

static void P3__truncated_and_unsendable_are_counted(void **state)
{
	(void)state;
	struct fabric_queue *small = open_one("127.0.0.1", 0, 100);
	struct fabric_queue *large = open_one("127.0.0.1", 0, 1000);
	struct peer at_small = peer_at("127.0.0.1", small), v6 = {.port = 9, .ip = {[15] = 1}};
	struct frame f[3];
	assert_int_equal(fabric_base(large)->ops->alloc(large, f, 3), 3);
	f[0].bytes = 101;
	f[0].peer = at_small;
	f[1].bytes = 10;
	f[1].peer = v6;
	f[2].bytes = 100;
	f[2].peer = at_small;
	fabric_base(large)->ops->tx(large, f, 3);
	assert_int_equal(fabric_base(large)->stats.tx_no_neighbour, 1);
	struct pollfd fd = {.fd = fabric_base(small)->ops->wait_fd(small), .events = POLLIN};
	uint32_t got = 0;
	while (got == 0) {
		assert_true(poll(&fd, 1, 10000) > 0);
		got = fabric_base(small)->ops->rx(small, f, 2);
	}
	assert_int_equal(f[0].bytes, 100);
	assert_int_equal(fabric_base(small)->stats.rx_malformed, 1);
	fabric_base(small)->ops->release(small, f, got);
	fabric_udp_close(small);
	fabric_udp_close(large);
}

static void P3__what_the_kernel_drops_is_counted(void **state)
{
	(void)state;
	struct fabric_udp_config config = {.address = "127.0.0.1", .socket_buffer_bytes = 4096};
	struct fabric_queue *slow, *sender = open_one("127.0.0.1", 0, 0);
	struct fabric_why why;
	assert_true(fabric_udp_open(&config, &slow, 1, &why));
	struct peer at = peer_at("127.0.0.1", slow);
	struct frame frames[FABRIC_BURST_MAX];
	uint32_t sent = 0, got = 0, n;
	for (uint32_t round = 0; round < 8; round++) {
		assert_int_equal(fabric_base(sender)->ops->alloc(sender, frames, 8), 8);
		for (uint32_t i = 0; i < 8; i++) {
			frames[i].bytes = 1000;
			frames[i].peer = at;
		}
		fabric_base(sender)->ops->tx(sender, frames, 8);
		sent += 8;
	}
	// The counter travels beside the next datagram that gets in.
	while ((n = fabric_base(slow)->ops->rx(slow, frames, FABRIC_BURST_MAX)) > 0) {
		fabric_base(slow)->ops->release(slow, frames, n);
		got += n;
	}
	assert_int_equal(fabric_base(sender)->ops->alloc(sender, frames, 1), 1);
	frames[0].bytes = 1;
	frames[0].peer = at;
	fabric_base(sender)->ops->tx(sender, frames, 1);
	struct pollfd fd = {.fd = fabric_base(slow)->ops->wait_fd(slow), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(fabric_base(slow)->ops->rx(slow, frames, 1), 1);
	fabric_base(slow)->ops->release(slow, frames, 1);
	assert_true(got < sent);
	assert_int_equal(fabric_base(slow)->stats.rx_missed, sent - got);
	fabric_udp_close(slow);
	fabric_udp_close(sender);
}

static void x__short_memory_is_a_verdict(void **state)
{
	(void)state;
	struct fabric_udp_config config = {.address = "127.0.0.1"};
	struct fabric_queue *queues[2];
	struct fabric_why why;
	for (uint64_t nth = 1; nth <= 6; nth++) {
		mem_fail_nth(nth, 0);
		assert_false(fabric_udp_open(&config, queues, 2, &why));
		assert_non_null(strstr(why.text, "memory"));
	}
	mem_fail_nth(0, 0);
}

static int contract(const char *address, uint32_t payload_bytes_max)
{
	char group[64];
	struct contract_pair pair = {.a = open_one(address, 0, payload_bytes_max),
		.b = open_one(address, 0, payload_bytes_max)};
	if (pair.a == NULL || pair.b == NULL)
		return 1;
	pair.at_a = peer_at(address, pair.a);
	pair.at_b = peer_at(address, pair.b);
	snprintf(group, sizeof(group), "fabric contract: udp %s", address);
	int failed = contract_run(group, &pair);
	fabric_udp_close(pair.a);
	fabric_udp_close(pair.b);
	return failed;
}

static bool host_has_v6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;
	if (fd >= 0)
		close(fd);
	return has;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(FC119__a_busy_port_is_named),
		cmocka_unit_test(FC119__a_port_shared_by_workers_is_busy_for_others),
		cmocka_unit_test(x__workers_share_the_senders),
		cmocka_unit_test(x__bad_addresses_are_explained),
		cmocka_unit_test(P3__truncated_and_unsendable_are_counted),
		cmocka_unit_test(P3__what_the_kernel_drops_is_counted),
		cmocka_unit_test(x__short_memory_is_a_verdict),
	};
	int failed = contract("127.0.0.1", 0) + contract("127.0.0.1", 9000);
	if (host_has_v6())
		failed += contract("::1", 0);
	return failed + cmocka_run_group_tests_name("fabric udp", tests, NULL, NULL);
}
