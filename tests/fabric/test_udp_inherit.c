// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "fabric/udp.h"

// The descriptors 3 and 4 as a parent would hand them over: one stream socket, one datagram socket.
static uint16_t hand_over(int count)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int stream = socket(AF_INET, SOCK_STREAM, 0), datagram = socket(AF_INET, SOCK_DGRAM, 0);
	char text[32];

	assert_true(datagram > stream && stream >= 3);
	assert_int_equal(bind(datagram, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(datagram, (struct sockaddr *)&address, &size), 0);
	if (datagram != 4)
		assert_int_equal(dup2(datagram, 4), 4);
	if (stream != 3)
		assert_int_equal(dup2(stream, 3), 3);
	if (stream > 4)
		close(stream);
	if (datagram > 4)
		close(datagram);
	snprintf(text, sizeof(text), "%d", count);
	setenv("LISTEN_FDS", text, 1);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("LISTEN_PID", text, 1);
	return ntohs(address.sin_port);
}

static int forget(void **state)
{
	(void)state;
	close(3);
	close(4);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	return 0;
}

static void x__a_socket_handed_over_is_used(void **state)
{
	uint16_t port = hand_over(2);
	struct fabric_udp_config config = {.address = "127.0.0.1", .port = port, .inherit = true};
	struct fabric_queue *queue;
	struct fabric_why why = {{0}};

	(void)state;
	assert_true(fabric_udp_open(&config, &queue, 1, &why));
	assert_int_equal(fabric_udp_port(queue), port);
	fabric_udp_close(queue);
}

static void x__without_inherit_the_address_is_taken(void **state)
{
	uint16_t port = hand_over(2);
	struct fabric_udp_config config = {.address = "127.0.0.1", .port = port};
	struct fabric_queue *queue;
	struct fabric_why why = {{0}};

	(void)state;
	assert_false(fabric_udp_open(&config, &queue, 1, &why));
	assert_non_null(strstr(why.text, "in use"));
}

static void x__fewer_sockets_than_workers_are_refused(void **state)
{
	struct fabric_udp_config config = {
		.address = "127.0.0.1", .port = hand_over(2), .inherit = true};
	struct fabric_queue *queues[2];
	struct fabric_why why = {{0}};

	(void)state;
	assert_false(fabric_udp_open(&config, queues, 2, &why));
	assert_non_null(strstr(why.text, "handed over"));
}

static void x__sockets_of_another_process_are_not_ours(void **state)
{
	uint16_t port = hand_over(2);
	struct fabric_udp_config config = {.address = "127.0.0.1", .port = port, .inherit = true};
	struct fabric_queue *queue;
	struct fabric_why why = {{0}};

	(void)state;
	setenv("LISTEN_PID", "1", 1);
	assert_false(fabric_udp_open(&config, &queue, 1, &why));
	assert_non_null(strstr(why.text, "in use"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(x__a_socket_handed_over_is_used, forget),
		cmocka_unit_test_teardown(x__without_inherit_the_address_is_taken, forget),
		cmocka_unit_test_teardown(x__fewer_sockets_than_workers_are_refused, forget),
		cmocka_unit_test_teardown(x__sockets_of_another_process_are_not_ours, forget),
	};

	close(3);
	close(4);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
