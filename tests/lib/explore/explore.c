// SPDX-License-Identifier: BSD-3-Clause
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/check.h"

// A run follows `path`, the choices of the current branch, and takes option 0 beyond its end.
// Option 0 is "go on with the thread that runs"; the others switch. At the end the deepest choice
// with an untried option is advanced and the run repeated: depth-first, no state kept between runs.

enum { PATH_MAX_CHOICES = 4096, STACK_BYTES = 64 * 1024, NOBODY = -1 };

struct choice {
	uint8_t taken;
	uint8_t options;
};

struct logical {
	ucontext_t context;
	bool ended;
	char stack[STACK_BYTES] __attribute__((aligned(16)));
};

static struct {
	const struct explore_scenario *scenario;
	struct logical threads[EXPLORE_THREADS_MAX];
	ucontext_t home;
	int running; // index, or NOBODY while the explorer itself runs
	bool ending; // at_end runs, in the explorer's own context
	int preemptions;
	struct choice path[PATH_MAX_CHOICES];
	int depth;  // choices made in this run
	int length; // of path
	struct explore_outcome outcome;
	int schedule_length;
} ex;

static void note(int thread)
{
	if (ex.schedule_length < (int)sizeof(ex.outcome.schedule) - 1)
		ex.outcome.schedule[ex.schedule_length++] = (char)('0' + thread);
	ex.outcome.schedule[ex.schedule_length] = '\0';
}

static int choose(int options)
{
	if (options == 1)
		return 0;
	if (ex.depth == ex.length) {
		if (ex.length == PATH_MAX_CHOICES) {
			fprintf(stderr, "explore: %s is not bounded\n", ex.scenario->name);
			abort();
		}
		ex.path[ex.length++] = (struct choice){0, (uint8_t)options};
	}
	return ex.path[ex.depth++].taken;
}

void explore_fail(const char *what)
{
	ex.outcome.failure = what;
	ex.running = NOBODY;
	setcontext(&ex.home);
	abort();
}

// The product's own assertions end a run the same way.
void check_failed(const char *expression, const char *file, int line)
{
	(void)file;
	(void)line;
	if (ex.running != NOBODY || ex.ending)
		explore_fail(expression);
	fprintf(stderr, "explore: %s does not hold outside a run\n", expression);
	abort();
}

static void check_always(void)
{
	int running = ex.running;

	ex.running = NOBODY; // its own atomic reads are not points
	const char *broken = ex.scenario->always != NULL ? ex.scenario->always() : NULL;
	ex.running = running;
	if (broken != NULL)
		explore_fail(broken);
}

// The nth living thread other than `but`.
static int nth_other(int n, int but)
{
	for (int i = 0; i < ex.scenario->threads; i++)
		if (i != but && !ex.threads[i].ended && n-- == 0)
			return i;
	abort();
}

static int count_others(int but)
{
	int count = 0;

	for (int i = 0; i < ex.scenario->threads; i++)
		count += i != but && !ex.threads[i].ended;
	return count;
}

static void switch_to(int from, int to)
{
	ex.running = to;
	if (swapcontext(&ex.threads[from].context, &ex.threads[to].context) != 0)
		abort();
}

void explore_point(void)
{
	int self = ex.running;

	if (self == NOBODY)
		return;
	ex.outcome.points++;
	check_always();
	int others = ex.preemptions < ex.scenario->preemptions_max ? count_others(self) : 0;
	int chosen = choose(1 + others);
	if (chosen > 0) {
		ex.preemptions++;
		switch_to(self, nth_other(chosen - 1, self));
	}
	note(self);
}

static void thread_main(int index)
{
	ex.scenario->thread[index]();
	check_always();
	ex.threads[index].ended = true;
	int others = count_others(index);
	if (others == 0) {
		ex.running = NOBODY;
		setcontext(&ex.home);
		abort();
	}
	// The end of a thread costs no preemption; who goes on is a choice all the same.
	ex.running = nth_other(choose(others), index);
	setcontext(&ex.threads[ex.running].context);
	abort();
}

static void prepare_thread(struct logical *thread, int index)
{
	thread->ended = false;
	if (getcontext(&thread->context) != 0)
		abort();
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = sizeof(thread->stack);
	thread->context.uc_link = NULL;
	makecontext(&thread->context, (void (*)(void))thread_main, 1, index);
}

static void run_once(void)
{
	ex.running = NOBODY;
	ex.depth = 0;
	ex.preemptions = 0;
	ex.schedule_length = 0;
	ex.outcome.schedule[0] = '\0';
	ex.scenario->reset();
	for (int i = 0; i < ex.scenario->threads; i++)
		prepare_thread(&ex.threads[i], i);
	ex.outcome.runs++;
	ex.running = choose(ex.scenario->threads); // who starts
	if (swapcontext(&ex.home, &ex.threads[ex.running].context) != 0)
		abort();
	// Comes here when the last thread ended, or when something failed, even in at_end itself.
	if (ex.outcome.failure == NULL && ex.scenario->at_end != NULL) {
		ex.ending = true;
		ex.outcome.failure = ex.scenario->at_end();
	}
	ex.ending = false;
}

// False when every branch was taken.
static bool next_path(void)
{
	while (ex.length > 0) {
		struct choice *last = &ex.path[ex.length - 1];

		if (last->taken + 1 < last->options) {
			last->taken++;
			return true;
		}
		ex.length--;
	}
	return false;
}

struct explore_outcome explore_all(const struct explore_scenario *scenario)
{
	memset(&ex.outcome, 0, sizeof(ex.outcome));
	ex.scenario = scenario;
	ex.length = 0;
	do
		run_once();
	while (ex.outcome.failure == NULL && next_path());
	return ex.outcome;
}
