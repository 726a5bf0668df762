// SPDX-License-Identifier: BSD-3-Clause
// Result names, random numbers, failing allocations, checks, the clock.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/result.h"
#include "base/rng.h"

// ---- results ----

static void M4__kinds_keep_their_numbers_and_names(void **state)
{
	(void)state;
	static const char *const names[] = {NULL, "OK", "NotFound", "AlreadyExists", "TypeMismatch",
		"NotConfigured", "Rejected", "StaleRoute", "Unavailable", "CapacityExceeded",
		"DeadlineExceeded", "Cancelled", "ShuttingDown", "ProtocolError",
		"InvalidOperation", "DataLost", "InternalFailure", "NotHomed", "SnapshotConflict",
		"HeadMismatch", "LifecycleConflict", "Denied", "Unauthenticated", "Unsupported"};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	for (uint32_t n = 0; n < 256; n++) {
		const char *name = result_kind_name((uint8_t)n);
		if (n == 0 || n >= COUNT)
			assert_null(name);
		else
			assert_string_equal(name, names[n]);
	}
}

static void M5__the_refusals_for_room_are_never_merged(void **state)
{
	(void)state;
	static const char *const names[] = {"None", "ProcessInbound", "Parked",
		"ApplicationLaneCount", "ApplicationLaneBytes", "LifecycleLaneCount",
		"LifecycleLaneBytes", "SchedulerQueue", "WorkerQueue", "Batch", "ActivationCeiling",
		"PendingActivations", "PendingResolves", "Placement"};
	for (uint8_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		assert_string_equal(result_reason_name(n), names[n]);
	uint32_t named = 0;
	for (uint32_t a = 0; a < 256; a++) {
		const char *name = result_reason_name((uint8_t)a);
		named += name != NULL;
		for (uint32_t b = 0; name != NULL && b < a; b++) {
			const char *other = result_reason_name((uint8_t)b);
			assert_true(other == NULL || strcmp(name, other) != 0);
		}
	}
	uint32_t listed = 1; // None
#define X(name, number, text) listed++;
	RESULT_REASONS(X)
#undef X
	assert_int_equal(named, listed);
}

static void M4__a_result_says_whether_it_was_accepted(void **state)
{
	(void)state;
	assert_null(result_accepted_name(0));
	assert_string_equal(result_accepted_name(ACCEPTED_YES), "yes");
	assert_string_equal(result_accepted_name(ACCEPTED_NO), "no");
	assert_string_equal(result_accepted_name(ACCEPTED_UNKNOWN), "unknown");
	assert_null(result_accepted_name(4));
	struct result ok = result_ok();
	assert_int_equal(ok.kind, RESULT_OK);
	assert_int_equal(ok.reason, REASON_NONE);
	assert_int_equal(ok.accepted, ACCEPTED_YES);
	struct result no = result_refused(RESULT_CAPACITY_EXCEEDED, REASON_PARKED);
	assert_int_equal(no.kind, 9);
	assert_int_equal(no.reason, 2);
	assert_int_equal(no.accepted, ACCEPTED_NO);
}

// ---- random numbers ----

static void x__xoshiro_gives_its_known_answers(void **state)
{
	(void)state;
	// The generator's published sequence for the state 1, 2, 3, 4.
	struct rng rng = {{1, 2, 3, 4}};
	assert_true(rng_u64(&rng) == 11520);
	assert_true(rng_u64(&rng) == 0);
	assert_true(rng_u64(&rng) == 1509978240);
	assert_true(rng_u64(&rng) == UINT64_C(1215971899390074240));
	// splitmix64's published sequence seeds it.
	rng_seed(&rng, 1234567);
	assert_true(rng.s[0] == UINT64_C(6457827717110365317));
	assert_true(rng.s[1] == UINT64_C(3203168211198807973));
	assert_true(rng.s[2] == UINT64_C(9817491932198370423));
	assert_true(rng.s[3] == UINT64_C(4593380528125082431));
	rng_seed(&rng, 42);
	assert_true(rng_u64(&rng) == UINT64_C(0x15780b2e0c2ec716));
	assert_true(rng_u64(&rng) == UINT64_C(0x6104d9866d113a7e));
}

static void x__equal_seeds_give_equal_sequences(void **state)
{
	(void)state;
	struct rng a, b, c;
	rng_seed(&a, 7);
	rng_seed(&b, 7);
	rng_seed(&c, 8);
	bool differs = false;
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_u64(&a);
		assert_true(x == rng_u64(&b));
		differs |= x != rng_u64(&c);
	}
	assert_true(differs);
}

static void x__rng_below_stays_below_and_reaches_all(void **state)
{
	(void)state;
	struct rng rng;
	rng_seed(&rng, 3);
	uint32_t hits[7] = {0};
	for (int i = 0; i < 70000; i++) {
		uint64_t x = rng_below(&rng, 7);
		assert_true(x < 7);
		hits[x]++;
		assert_true(rng_below(&rng, 1) == 0);
		assert_true(rng_below(&rng, UINT64_MAX) < UINT64_MAX);
	}
	for (int i = 0; i < 7; i++) // the seed is fixed, so this holds or does not
		assert_in_range(hits[i], 9600, 10400);
}

static void x__system_randomness_differs(void **state)
{
	(void)state;
	uint8_t a[700] = {0}, b[700] = {0}, zero[16] = {0};
	rng_secret(a, sizeof(a));
	rng_secret(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a + sizeof(a) - 16, zero, 16);
	struct rng x, y;
	rng_seed_system(&x);
	rng_seed_system(&y);
	assert_memory_not_equal(&x, &y, sizeof(x));
}

// ---- memory ----

static void x__memory_comes_zeroed_and_aligned(void **state)
{
	(void)state;
	static const uint8_t zero[200];
	for (int i = 0; i < 50; i++) {
		uint8_t *p = mem_zalloc(200);
		assert_non_null(p);
		assert_memory_equal(p, zero, 200);
		memset(p, 0xff, 200);
		mem_free(p);
		uint8_t *q = mem_zalloc_aligned(64, 200);
		assert_non_null(q);
		assert_int_equal((uintptr_t)q % 64, 0);
		assert_memory_equal(q, zero, 200);
		memset(q, 0xff, 200);
		mem_free(q);
	}
	mem_free(NULL);
	char *text = mem_strdup("text");
	assert_string_equal(text, "text");
	text = mem_resize(text, 100);
	assert_non_null(text);
	assert_string_equal(text, "text");
	mem_free(text);
}

// Which of ten allocations failed, as bits.
static uint32_t failures(void)
{
	uint32_t failed = 0;
	for (uint32_t i = 0; i < 10; i++) {
		void *p = i % 4 == 0   ? mem_zalloc(8)
			  : i % 4 == 1 ? mem_zalloc_aligned(64, 64)
			  : i % 4 == 2 ? (void *)mem_strdup("x")
				       : mem_resize(NULL, 8);
		failed |= (p == NULL) << i;
		mem_free(p);
	}
	return failed;
}

static void x__the_nth_allocation_fails(void **state)
{
	(void)state;
	assert_int_equal(failures(), 0);
	for (uint32_t nth = 1; nth <= 10; nth++) {
		mem_fail_nth(nth, 0);
		assert_int_equal(failures(), 1u << (nth - 1));
		assert_int_equal(failures(), 0);
		mem_fail_nth(nth, 1);
		assert_int_equal(failures(), 0x3ff & ~((1u << (nth - 1)) - 1));
		assert_int_equal(failures(), 0x3ff);
		mem_fail_nth(0, 0);
		assert_int_equal(failures(), 0);
	}
	mem_fail_nth(1, 0);
	assert_null(mem_strdup("text"));
}

static void x__a_failed_resize_keeps_the_block(void **state)
{
	(void)state;
	char *text = mem_strdup("kept");
	mem_fail_nth(1, 0);
	assert_null(mem_resize(text, 1000));
	assert_string_equal(text, "kept");
	mem_free(text);
}

// ---- checks ----

static void x__a_failed_check_aborts_and_says_where(void **state)
{
	(void)state;
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(pipe_fds[1], STDERR_FILENO);
		CHECK(2 + 2 == 4);
		CHECK(2 + 2 == 5);
		_exit(0);
	}
	close(pipe_fds[1]);
	char text[512] = {0};
	size_t size = 0;
	ssize_t n;
	while ((n = read(pipe_fds[0], text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	close(pipe_fds[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "2 + 2 == 5"));
	assert_non_null(strstr(text, "test_base.c:"));
	assert_null(strstr(text, "2 + 2 == 4"));
}

// ---- clock ----

static void x__the_clock_never_goes_back(void **state)
{
	(void)state;
	struct clock *clock = clock_system();
	assert_ptr_equal(clock, clock_system());
	assert_true(clock->ticks_hz > 0);
	uint64_t boot = 0, ticks = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t b = clock_boot_ns(clock), t = clock_ticks(clock);
		assert_true(b >= boot && t >= ticks);
		boot = b;
		ticks = t;
	}
	assert_true(clock->wall_ns(clock) > UINT64_C(1600000000) * 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M4__kinds_keep_their_numbers_and_names),
		cmocka_unit_test(M5__the_refusals_for_room_are_never_merged),
		cmocka_unit_test(M4__a_result_says_whether_it_was_accepted),
		cmocka_unit_test(x__xoshiro_gives_its_known_answers),
		cmocka_unit_test(x__equal_seeds_give_equal_sequences),
		cmocka_unit_test(x__rng_below_stays_below_and_reaches_all),
		cmocka_unit_test(x__system_randomness_differs),
		cmocka_unit_test(x__memory_comes_zeroed_and_aligned),
		cmocka_unit_test(x__the_nth_allocation_fails),
		cmocka_unit_test(x__a_failed_resize_keeps_the_block),
		cmocka_unit_test(x__a_failed_check_aborts_and_says_where),
		cmocka_unit_test(x__the_clock_never_goes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
