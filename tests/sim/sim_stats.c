// SPDX-License-Identifier: BSD-3-Clause
#include "sim_stats.h"

#include <stdbool.h>
#include <string.h>

struct sim_totals sim_totals;

// Every step of the machine goes through here (the linker's --wrap): counted, then taken.
struct activation_step __real_activation_next(
	enum activation_state state, enum activation_event event);
struct activation_step __wrap_activation_next(
	enum activation_state state, enum activation_event event);

struct activation_step __wrap_activation_next(
	enum activation_state state, enum activation_event event)
{
	sim_totals.cells[state][event]++;
	return __real_activation_next(state, event);
}

void sim_totals_move(struct sim_totals *into)
{
	const uint64_t *from = (const uint64_t *)&sim_totals;
	uint64_t *to = (uint64_t *)into;
	for (size_t i = 0; i < sizeof(sim_totals) / sizeof(uint64_t); i++)
		__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	memset(&sim_totals, 0, sizeof(sim_totals));
}

static const char *const fault_texts[] = {
#define X(name, text) text,
	SIM_FAULTS(X)
#undef X
};

static uint32_t print_faults(const struct sim_totals *t, FILE *out)
{
	uint32_t zeros = 0;
	fprintf(out, "faults\n");
	for (int f = 0; f < SIM_FAULT_COUNT; f++) {
		fprintf(out, "  %12llu  %s%s\n", (unsigned long long)t->faults[f], fault_texts[f],
			t->faults[f] == 0 ? "  ZERO" : "");
		zeros += t->faults[f] == 0;
	}
	return zeros;
}

// Cells that the simulator cannot reach, and who does. Exhausted generations would end every node of a
// seed; the others guard against a driver's defect: one entry leads all work on its key, so no object
// appears while it reads, and an awaited attempt is ended from the reading that follows.
static const struct {
	enum activation_state state;
	enum activation_event event;
	const char *by;
} elsewhere[] = {
	{ACTIVATION_DRAWING, ACTIVATION_EV_REFUSED,
		"T3_T6__generations_are_fresh_and_end_in_exhaustion"},
	{ACTIVATION_READING, ACTIVATION_EV_HERE, "A2__every_pair_is_a_step_or_impossible"},
	{ACTIVATION_AWAITING, ACTIVATION_EV_REFUSED, "A2__every_pair_is_a_step_or_impossible"},
	{ACTIVATION_AWAITING, ACTIVATION_EV_LIMIT, "A2__every_pair_is_a_step_or_impossible"},
};

static const char *reached_by(int state, int event)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if ((int)elsewhere[i].state == state && (int)elsewhere[i].event == event)
			return elsewhere[i].by;
	return NULL;
}

static uint32_t print_cells(const struct sim_totals *t, FILE *out)
{
	uint32_t zeros = 0;
	fprintf(out, "visits of (state, event)\n");
	for (int s = 1; s < ACTIVATION_STATE_END; s++)
		for (int e = 1; e < ACTIVATION_EVENT_END; e++) {
			struct activation_step step = __real_activation_next(
				(enum activation_state)s, (enum activation_event)e);
			if (step.next == ACTIVATION_STATE_NONE)
				continue;
			const char *by = reached_by(s, e);
			bool zero = t->cells[s][e] == 0 && by == NULL;
			fprintf(out, "  %12llu  %s, %s%s%s\n", (unsigned long long)t->cells[s][e],
				activation_state_name((enum activation_state)s),
				activation_event_name((enum activation_event)e),
				zero ? "  ZERO" : by != NULL ? "  elsewhere: " : "",
				by != NULL ? by : "");
			zeros += zero;
		}
	return zeros;
}

uint32_t sim_totals_print(const struct sim_totals *t, FILE *out)
{
	uint32_t zeros = print_faults(t, out) + print_cells(t, out);
	fprintf(out, "results by kind\n");
	for (uint8_t k = 1; k < 24; k++)
		if (t->kinds[k] > 0)
			fprintf(out, "  %12llu  kind %u\n", (unsigned long long)t->kinds[k], k);
	fprintf(out, "%llu steps, %llu operations, %llu results, %llu handler runs, %llu objects built\n",
		(unsigned long long)t->steps, (unsigned long long)t->operations,
		(unsigned long long)t->results, (unsigned long long)t->executions,
		(unsigned long long)t->built);
	return zeros;
}
