// SPDX-License-Identifier: BSD-3-Clause
// Built with a sanitizer only: the planted program, the first argument, must be reported by it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitize.h"

enum { REPORTED = 66 };
static char *planted;

static void expect_report(void)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		setenv("TSAN_OPTIONS", "exitcode=66", 1);
		setenv("ASAN_OPTIONS", "exitcode=66", 1);
		execl(planted, planted, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), REPORTED);
}

static void L8__a_second_producer_on_a_ring_is_reported(void **state)
{
	(void)state;
	if (!SANITIZE_THREAD)
		skip();
	expect_report();
}

static void L3__an_overflow_inside_the_size_class_is_reported(void **state)
{
	(void)state;
	if (!SANITIZE_ADDRESS)
		skip();
	expect_report();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest thread_tests[] = {
		cmocka_unit_test(L8__a_second_producer_on_a_ring_is_reported),
	};
	const struct CMUnitTest address_tests[] = {
		cmocka_unit_test(L3__an_overflow_inside_the_size_class_is_reported),
	};

	if (argc != 2)
		return 2;
	planted = argv[1];
	return SANITIZE_THREAD
		       ? cmocka_run_group_tests_name("sanitizer", thread_tests, NULL, NULL)
		       : cmocka_run_group_tests_name("sanitizer", address_tests, NULL, NULL);
}
