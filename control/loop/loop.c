// SPDX-License-Identifier: BSD-3-Clause
#include "loop/loop.h"

#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

struct loop_step {
	uint64_t (*step)(void *arg);
	void *arg;
};

struct loop_wake {
	uv_poll_t poll;
	int fd;
};

struct loop_signal {
	uv_signal_t signal;
	void (*on_signal)(void *arg, int signum);
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t timer;
	struct clock *clock;
	struct loop_step steps[LOOP_STEPS_MAX];
	uint32_t steps_count;
	struct loop_wake wakes[LOOP_WAKES_MAX];
	uint32_t wakes_count;
	struct loop_signal signals[LOOP_SIGNALS_MAX];
	uint32_t signals_count;
	void (*sleeping)(void *arg, bool asleep);
	void *sleeping_arg;
};

// Runs every step; the earliest time any of them wants to be called again.
static uint64_t run_steps(struct loop *loop)
{
	uint64_t next = LOOP_NEVER;
	for (uint32_t i = 0; i < loop->steps_count; i++) {
		uint64_t wanted = loop->steps[i].step(loop->steps[i].arg);
		if (wanted < next)
			next = wanted;
	}
	return next;
}

static void on_timer(uv_timer_t *timer)
{
	(void)timer; // waking up was its job: the steps run in on_check
}

static void arm_timer(struct loop *loop, uint64_t next_boot_ns)
{
	enum { NS_PER_MS = 1000000 };
	if (next_boot_ns == LOOP_NEVER) {
		uv_timer_stop(&loop->timer);
		return;
	}
	uint64_t now = clock_boot_ns(loop->clock);
	uint64_t wait_ns = next_boot_ns > now ? next_boot_ns - now : 0;
	uv_update_time(&loop->uv);
	uv_timer_start(&loop->timer, on_timer, (wait_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;
	if (loop->sleeping != NULL)
		loop->sleeping(loop->sleeping_arg, true);
	arm_timer(loop, run_steps(loop));
}

static void on_check(uv_check_t *check)
{
	struct loop *loop = check->data;
	if (loop->sleeping != NULL)
		loop->sleeping(loop->sleeping_arg, false);
	run_steps(loop);
}

struct loop *loop_create(struct clock *clock)
{
	struct loop *loop = mem_zalloc(sizeof(*loop));
	if (loop == NULL)
		return NULL;
	loop->clock = clock;
	if (uv_loop_init(&loop->uv) != 0) {
		mem_free(loop);
		return NULL;
	}
	CHECK(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
	CHECK(uv_check_init(&loop->uv, &loop->check) == 0);
	CHECK(uv_timer_init(&loop->uv, &loop->timer) == 0);
	loop->prepare.data = loop;
	loop->check.data = loop;
	return loop;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_destroy(struct loop *loop)
{
	if (loop == NULL)
		return;
	uv_walk(&loop->uv, close_handle, NULL);
	while (uv_run(&loop->uv, UV_RUN_NOWAIT) != 0)
		continue;
	CHECK(uv_loop_close(&loop->uv) == 0);
	mem_free(loop);
}

uv_loop_t *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

void loop_add_step(struct loop *loop, uint64_t (*step)(void *arg), void *arg)
{
	CHECK(loop->steps_count < LOOP_STEPS_MAX);
	loop->steps[loop->steps_count++] = (struct loop_step){step, arg};
}

static void on_wake(uv_poll_t *poll, int status, int events)
{
	struct loop_wake *wake = poll->data;
	uint64_t count;
	(void)status;
	(void)events;
	// An empty eventfd (EAGAIN) means that somebody drained it already: nothing is lost.
	ssize_t got = read(wake->fd, &count, sizeof(count));
	(void)got;
}

void loop_add_wake(struct loop *loop, int eventfd)
{
	CHECK(loop->wakes_count < LOOP_WAKES_MAX);
	struct loop_wake *wake = &loop->wakes[loop->wakes_count++];
	wake->fd = eventfd;
	CHECK(uv_poll_init(&loop->uv, &wake->poll, eventfd) == 0);
	wake->poll.data = wake;
	CHECK(uv_poll_start(&wake->poll, UV_READABLE, on_wake) == 0);
}

static void on_uv_signal(uv_signal_t *handle, int signum)
{
	struct loop_signal *signal = handle->data;
	signal->on_signal(signal->arg, signum);
}

void loop_add_signal(
	struct loop *loop, int signum, void (*on_signal)(void *arg, int signum), void *arg)
{
	CHECK(loop->signals_count < LOOP_SIGNALS_MAX);
	struct loop_signal *signal = &loop->signals[loop->signals_count++];
	signal->on_signal = on_signal;
	signal->arg = arg;
	CHECK(uv_signal_init(&loop->uv, &signal->signal) == 0);
	signal->signal.data = signal;
	CHECK(uv_signal_start(&signal->signal, on_uv_signal, signum) == 0);
}

void loop_set_sleeping(struct loop *loop, void (*sleeping)(void *arg, bool asleep), void *arg)
{
	loop->sleeping = sleeping;
	loop->sleeping_arg = arg;
}

void loop_run(struct loop *loop)
{
	CHECK(uv_prepare_start(&loop->prepare, on_prepare) == 0);
	CHECK(uv_check_start(&loop->check, on_check) == 0);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	uv_prepare_stop(&loop->prepare);
	uv_check_stop(&loop->check);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}
