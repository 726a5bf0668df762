// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fabric/link.h"

static struct dp_net_identity identity_make(void)
{
	struct dp_net_identity identity = {.address_count = 1, .mac = {2, 0, 0, 0, 0, 1}};
	const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
	memcpy(identity.addresses[0].ip, ip, 16);
	identity.addresses[0].prefix_bits = 120;
	return identity;
}

static bool wake_is_pending(const struct dp_net_io *io)
{
	struct pollfd fd = {.fd = io->wake_fd, .events = POLLIN};
	return poll(&fd, 1, 0) == 1;
}

static void x__frames_reach_control_from_all_workers(void **state)
{
	(void)state;
	struct dp_net_identity identity = identity_make();
	struct link *link = link_create(&identity, 3);
	struct dp_net_io io;
	struct dp_net_frame frame;
	uint32_t seen[3] = {0, 0, 0}, count = 0;
	link_io(link, &io);
	for (uint16_t w = 0; w < 3; w++) {
		for (uint8_t i = 0; i < 5; i++)
			assert_true(link_to_control(link, w, (uint8_t[2]){(uint8_t)w, i}, 2));
	}
	while (io.receive(io.self, &frame)) {
		assert_int_equal(frame.bytes, 2);
		assert_int_equal(frame.data[1], seen[frame.data[0]]++);
		count++;
	}
	assert_int_equal(count, 15);
	link_destroy(link);
}

static void P3__a_full_mailbox_refuses_and_counts(void **state)
{
	(void)state;
	struct dp_net_identity identity = identity_make();
	struct link *link = link_create(&identity, 1);
	static const uint8_t large[DP_NET_FRAME_BYTES_MAX + 1];
	struct dp_net_io io;
	link_io(link, &io);
	for (uint32_t i = 0; i < LINK_FRAMES; i++)
		assert_true(link_to_control(link, 0, large, DP_NET_FRAME_BYTES_MAX));
	assert_false(link_to_control(link, 0, large, 1));
	for (uint32_t i = 0; i < LINK_FRAMES; i++)
		assert_true(io.send(io.self, large, 60));
	assert_false(io.send(io.self, large, 60));
	mailbox_drop(link_from_control(link));
	assert_false(io.send(io.self, large, sizeof(large)));
	assert_int_equal(link_refused(link), 3);
	link_destroy(link);
}

static void x__a_worker_wakes_control_once_a_turn(void **state)
{
	(void)state;
	struct dp_net_identity identity = identity_make();
	struct link *link = link_create(&identity, 1);
	struct dp_net_io io;
	link_io(link, &io);
	assert_false(wake_is_pending(&io));
	for (uint32_t i = 0; i < 5; i++)
		link_wake(link);
	assert_true(wake_is_pending(&io));
	io.begin(io.self);
	assert_false(wake_is_pending(&io));
	link_wake(link);
	assert_true(wake_is_pending(&io));
	link_destroy(link);
}

static void x__wanted_addresses_reach_control(void **state)
{
	(void)state;
	struct dp_net_identity identity = identity_make();
	struct link *link = link_create(&identity, 2);
	const uint8_t ip[16] = {0xfd, [15] = 7};
	uint8_t got[16];
	struct dp_net_io io;
	link_io(link, &io);
	for (uint32_t i = 0; i < LINK_WANTED + 5; i++)
		link_want(link, 1, ip);
	uint32_t count = 0;
	while (io.wanted(io.self, got)) {
		assert_memory_equal(got, ip, 16);
		count++;
	}
	assert_int_equal(count, LINK_WANTED);
	link_destroy(link);
}

static void ip_of(uint32_t i, uint8_t out[16])
{
	memset(out, 0, 16);
	out[0] = 0xfd;
	memcpy(out + 8, &i, sizeof(i));
}

static void x__neighbours_are_set_found_and_cleared(void **state)
{
	(void)state;
	struct neighbours *table = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(*table));
	uint8_t ip[16], mac[6] = {2}, got[6];
	uint32_t found = 0;
	neighbours_init(table, 12345);
	for (uint32_t i = 0; i < 256; i++) {
		ip_of(i, ip);
		memcpy(mac + 2, &i, 4);
		neighbours_set(table, ip, mac);
		assert_true(neighbours_lookup(table, ip, got));
		assert_memory_equal(got, mac, 6);
		neighbours_set(table, ip, mac); // again: no second entry
	}
	for (uint32_t i = 0; i < 256; i++) {
		ip_of(i, ip);
		memcpy(mac + 2, &i, 4);
		if (!neighbours_lookup(table, ip, got))
			continue;
		assert_memory_equal(got, mac, 6);
		found++;
	}
	assert_true(found >= 250); // a bucket that overflowed may have lost some
	for (uint32_t i = 0; i < 256; i++) {
		ip_of(i, ip);
		neighbours_clear(table, ip);
		assert_false(neighbours_lookup(table, ip, got));
	}
	neighbours_clear(table, ip); // not there
	mem_free(table);
}

struct race {
	struct neighbours *table;
	_Atomic bool stop;
	_Atomic uint64_t torn, seen;
};

// Every published MAC of the one address repeats one byte; a mix is a torn read.
static void *race_read(void *arg)
{
	struct race *race = arg;
	uint8_t ip[16], mac[6];
	uint64_t torn = 0, seen = 0;
	ip_of(1, ip);
	while (!atomic_load_explicit(&race->stop, memory_order_relaxed)) {
		if (!neighbours_lookup(race->table, ip, mac))
			continue;
		seen++;
		for (uint32_t i = 1; i < 6; i++)
			torn += mac[i] != mac[0];
	}
	atomic_fetch_add(&race->torn, torn);
	atomic_fetch_add(&race->seen, seen);
	return NULL;
}

static void x__readers_never_see_half_a_neighbour(void **state)
{
	(void)state;
	struct race race = {.table = mem_zalloc_aligned(CACHE_LINE_BYTES, sizeof(struct neighbours))};
	pthread_t reader;
	uint8_t ip[16], other[16], mac[6];
	neighbours_init(race.table, 1);
	ip_of(1, ip);
	assert_int_equal(pthread_create(&reader, NULL, race_read, &race), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		memset(mac, (int)(i % 250 + 2), 6);
		neighbours_set(race.table, ip, mac);
		ip_of(i % 3000, other);
		if (i % 3000 != 1)
			neighbours_set(race.table, other, mac);
		if (i % 7 == 0)
			neighbours_clear(race.table, ip);
	}
	atomic_store(&race.stop, true);
	pthread_join(reader, NULL);
	assert_int_equal(atomic_load(&race.torn), 0);
	mem_free(race.table);
}

static void *mailbox_fill(void *arg)
{
	struct mailbox *box = arg;
	for (uint32_t i = 0; i < 50000;) {
		uint8_t data[64];
		uint32_t bytes = 4 + i % 60;
		memset(data, (int)(i & 0xff), sizeof(data));
		memcpy(data, &i, 4);
		if (mailbox_put(box, data, bytes))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void x__a_mailbox_keeps_order_between_threads(void **state)
{
	(void)state;
	struct mailbox box;
	pthread_t writer;
	assert_true(mailbox_init(&box, 16, 64));
	assert_int_equal(pthread_create(&writer, NULL, mailbox_fill, &box), 0);
	for (uint32_t expected = 0; expected < 50000;) {
		uint32_t bytes, number;
		const uint8_t *data = mailbox_peek(&box, &bytes);
		if (data == NULL) {
			sched_yield();
			continue;
		}
		memcpy(&number, data, 4);
		assert_int_equal(number, expected);
		assert_int_equal(bytes, 4 + expected % 60);
		assert_int_equal(data[bytes - 1],
			bytes > 4 ? (expected & 0xff) : (expected >> 24 & 0xff));
		mailbox_drop(&box);
		expected++;
	}
	pthread_join(writer, NULL);
	mailbox_fini(&box);
}

static void x__next_hop_and_source(void **state)
{
	(void)state;
	struct dp_net_identity id = {.address_count = 4};
	static const struct {
		uint8_t ip[16];
		uint8_t bits;
	} ours[4] = {
		{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 96 + 24},
		{{[10] = 0xff, 0xff, 192, 168, 4, 1}, 96 + 22},
		{{0xfd, 0x99, [15] = 1}, 64},
		{{0xfe, 0x80, [15] = 1}, 64},
	};
	static const struct {
		uint8_t ip[16];
		int hop; // 0 itself, 4 or 6 the gateway, -1 none
		int source;
		bool gateways;
	} cases[] = {
		{{[10] = 0xff, 0xff, 10, 0, 0, 200}, 0, 0, true},
		{{[10] = 0xff, 0xff, 192, 168, 7, 9}, 0, 1, true},
		{{[10] = 0xff, 0xff, 192, 168, 8, 9}, 4, 0, true},
		{{[10] = 0xff, 0xff, 192, 168, 8, 9}, -1, 0, false},
		{{0xfd, 0x99, [15] = 7}, 0, 2, true},
		{{0xfd, 0x98, [15] = 7}, 6, 2, true},
		{{0xfd, 0x98, [15] = 7}, -1, 2, false},
		{{0xfe, 0x80, [15] = 7}, 0, 3, false},
	};
	const uint8_t gateway_v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 254};
	const uint8_t gateway_v6[16] = {0xfe, 0x80, [15] = 0xfe}, none[16] = {0};
	for (uint32_t i = 0; i < 4; i++) {
		memcpy(id.addresses[i].ip, ours[i].ip, 16);
		id.addresses[i].prefix_bits = ours[i].bits;
	}
	for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint8_t hop[16];
		memcpy(id.gateway_v4, cases[i].gateways ? gateway_v4 : none, 16);
		memcpy(id.gateway_v6, cases[i].gateways ? gateway_v6 : none, 16);
		assert_int_equal(dp_net_next_hop(&id, cases[i].ip, hop), cases[i].hop >= 0);
		if (cases[i].hop >= 0)
			assert_memory_equal(hop,
				cases[i].hop == 0   ? cases[i].ip
				: cases[i].hop == 4 ? gateway_v4
						    : gateway_v6,
				16);
		assert_int_equal(dp_net_source_for(&id, cases[i].ip), cases[i].source);
	}
}

static void x__short_memory_is_a_verdict(void **state)
{
	(void)state;
	struct dp_net_identity identity = identity_make();
	for (uint64_t nth = 1; nth <= 7; nth++) {
		mem_fail_nth(nth, 0);
		assert_null(link_create(&identity, 1));
	}
	mem_fail_nth(0, 0);
	struct link *link = link_create(&identity, 1);
	assert_non_null(link);
	link_destroy(link);
	link_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__frames_reach_control_from_all_workers),
		cmocka_unit_test(P3__a_full_mailbox_refuses_and_counts),
		cmocka_unit_test(x__a_worker_wakes_control_once_a_turn),
		cmocka_unit_test(x__wanted_addresses_reach_control),
		cmocka_unit_test(x__neighbours_are_set_found_and_cleared),
		cmocka_unit_test(x__readers_never_see_half_a_neighbour),
		cmocka_unit_test(x__a_mailbox_keeps_order_between_threads),
		cmocka_unit_test(x__next_hop_and_source),
		cmocka_unit_test(x__short_memory_is_a_verdict),
	};
	return cmocka_run_group_tests_name("fabric link", tests, NULL, NULL);
}
