// SPDX-License-Identifier: BSD-3-Clause
// Limits of one connection to the control socket.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/errors.h"
#include "fake_node.h"
#include "server.h"

#define CREATE                                                                                     \
	"{\"op\":\"spot.create\",\"args\":{\"id\":\"a\",\"type\":\"counter\",\"nonce\":\"nonce-17\"}}\n"

// One change runs, more requests wait for its receipt: the seventeenth is told, the others are done.
static void G1__a_connection_has_sixteen_requests_under_way(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	fake.hold = true;
	for (int i = 0; i < 17; i++)
		client_write(fd, CREATE, strlen(CREATE));
	assert_int_equal(error_code(client_line(fd)), API_ERROR_TOO_MANY_REQUESTS);
	fake_release();
	for (int i = 0; i < 16; i++)
		assert_int_equal(error_code(client_line(fd)), 0);
	assert_int_equal(fake.creates, 1);
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"status\"}")), 0);
	client_end(fd);
	server_stop();
}

static void G4__a_connection_watches_once(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"watch\"}")), 0);
	assert_int_equal(
		error_code(client_ask(fd, "{\"op\":\"watch\"}")), API_ERROR_TOO_MANY_REQUESTS);
	client_end(fd);
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(G1__a_connection_has_sixteen_requests_under_way),
		cmocka_unit_test(G4__a_connection_watches_once),
	};
	return cmocka_run_group_tests_name("api limits", tests, NULL, NULL);
}
