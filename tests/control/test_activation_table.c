// SPDX-License-Identifier: BSD-3-Clause
// The pure activation table, over every (state, event) pair, and the resolver's four states.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "spot/activation.h"
#include "state_page.h"

static const char *page_path;

static uint32_t effects_of(enum activation_state s, enum activation_event e)
{
	return activation_next(s, e).effects;
}

static void A2__every_pair_is_a_step_or_impossible(void **state)
{
	(void)state;
	int possible = 0;
	for (int s = 1; s < ACTIVATION_STATE_END; s++)
		for (int e = 1; e < ACTIVATION_EVENT_END; e++) {
			struct activation_step step =
				activation_next((enum activation_state)s, (enum activation_event)e);
			assert_true(step.next < ACTIVATION_STATE_END);
			if (step.next == ACTIVATION_STATE_NONE)
				assert_int_equal(step.effects, 0);
			else
				possible++;
			assert_true(step.effects < 1u << ACTIVATION_EFFECT_COUNT);
		}
	assert_true(possible > 50);
}

// From everywhere some sequence of events leads back to idle: nothing is Creating for ever.
static void A8__every_state_can_end(void **state)
{
	(void)state;
	bool ends[ACTIVATION_STATE_END] = {false};
	ends[ACTIVATION_IDLE] = true;
	for (int round = 0; round < ACTIVATION_STATE_END; round++)
		for (int s = 1; s < ACTIVATION_STATE_END; s++)
			for (int e = 1; e < ACTIVATION_EVENT_END; e++)
				if (ends[activation_next((enum activation_state)s,
					    (enum activation_event)e)
						    .next])
					ends[s] = true;
	for (int s = 1; s < ACTIVATION_STATE_END; s++)
		assert_true(ends[s]);
}

// What went wrong is told to those who wait in the same step that gives the attempt up.
static void A8__giving_up_tells_everybody(void **state)
{
	(void)state;
	static const enum activation_state working[] = {ACTIVATION_QUEUED, ACTIVATION_DRAWING,
		ACTIVATION_CLAIMING, ACTIVATION_CLAIM_LOST, ACTIVATION_BUILDING, ACTIVATION_COMMITTING,
		ACTIVATION_COMMIT_LOST, ACTIVATION_OPENING};
	for (size_t i = 0; i < ARRAY_COUNT(working); i++)
		for (int e = 1; e < ACTIVATION_EVENT_END; e++) {
			struct activation_step step =
				activation_next(working[i], (enum activation_event)e);
			bool gives_up = step.next == ACTIVATION_ABORTING ||
					step.next == ACTIVATION_UNBUILDING ||
					step.next == ACTIVATION_WITHDRAWING ||
					(step.next == ACTIVATION_IDLE && e != ACTIVATION_EV_OPENED);
			if (gives_up)
				assert_true(step.effects & ACTIVATION_DO_FAIL);
		}
}

// The factory runs from CLAIMING alone (or its read-back), the route is published from a commit alone.
static void A5_A7__order_is_in_the_table(void **state)
{
	(void)state;
	for (int s = 1; s < ACTIVATION_STATE_END; s++)
		for (int e = 1; e < ACTIVATION_EVENT_END; e++) {
			uint32_t what = effects_of((enum activation_state)s, (enum activation_event)e);
			bool claimed = (s == ACTIVATION_CLAIMING && e == ACTIVATION_EV_DONE) ||
				       (s == ACTIVATION_CLAIM_LOST && e == ACTIVATION_EV_OURS);
			bool committed = (s == ACTIVATION_COMMITTING && e == ACTIVATION_EV_DONE) ||
					 (s == ACTIVATION_COMMIT_LOST && e == ACTIVATION_EV_OURS);
			assert_int_equal((what & ACTIVATION_DO_BUILD) != 0, claimed);
			assert_int_equal((what & ACTIVATION_DO_PUBLISH) != 0, committed);
			// C4: the row is deleted after the object was disposed of, or on a retry of that.
			if (what & ACTIVATION_DO_RELEASE)
				assert_true(e == ACTIVATION_EV_CLOSED || s == ACTIVATION_RELEASING);
			// Unavailable leads nowhere near a creation (A3).
			if (e == ACTIVATION_EV_ELSEWHERE)
				assert_int_equal(what & ~(uint32_t)(ACTIVATION_DO_FAIL |
								    ACTIVATION_DO_SERVE),
					0);
		}
}

static void A2__the_resolver_has_four_answers(void **state)
{
	(void)state;
	struct resolve_row row = {.exists = false, .read_wall_ns = 5};
	struct resolved r = activation_resolve(&row);
	assert_int_equal(r.kind, RESOLVED_MISSING);
	assert_int_equal(r.as.missing.lookup_wall_ns, 5);

	row = (struct resolve_row){.exists = true, .owner = OWNER_OTHER_LIVE, .fence = {.object_generation = {7}}};
	r = activation_resolve(&row);
	assert_int_equal(r.kind, RESOLVED_CREATING);
	assert_int_equal(r.as.creating.claimant, CLAIMANT_OTHER);
	assert_int_equal(r.as.creating.reservation.object_generation.value, 7);
	row.owner = OWNER_OTHER_OVER;
	assert_int_equal(activation_resolve(&row).as.creating.claimant, CLAIMANT_DEAD);
	row.owner = OWNER_FORMER_RUN;
	assert_int_equal(activation_resolve(&row).as.creating.claimant, CLAIMANT_OURS_LOST);
	row.owner = OWNER_THIS_RUN;
	assert_int_equal(activation_resolve(&row).as.creating.claimant, CLAIMANT_OURS_LOST);

	row.ready = true;
	r = activation_resolve(&row);
	assert_int_equal(r.kind, RESOLVED_UNAVAILABLE);
	assert_int_equal(r.as.unavailable.evidence, EVIDENCE_NO_OBJECT);
	row.owner = OWNER_FORMER_RUN;
	assert_int_equal(activation_resolve(&row).as.unavailable.evidence, EVIDENCE_FORMER_RUN);
	row.owner = OWNER_THIS_RUN;
	row.object_here = true;
	row.owner_lease.value = 3;
	r = activation_resolve(&row);
	assert_int_equal(r.kind, RESOLVED_READY);
	assert_int_equal(r.as.ready.place, READY_HERE);
	assert_int_equal(r.as.ready.owner_lease.value, 3);
	row.owner = OWNER_OTHER_LIVE;
	assert_int_equal(activation_resolve(&row).as.ready.place, READY_ELSEWHERE);
	row.owner = OWNER_OTHER_OVER;
	r = activation_resolve(&row);
	assert_int_equal(r.kind, RESOLVED_UNAVAILABLE);
	assert_int_equal(r.as.unavailable.evidence, EVIDENCE_OWNER_OVER);
	assert_int_equal(r.as.unavailable.authority.object_generation.value, 7);
}

static void x__the_page_is_what_the_table_says(void **state)
{
	(void)state;
	char *made = NULL;
	size_t made_size = 0;
	FILE *out = open_memstream(&made, &made_size);
	state_page_print(out);
	fclose(out);
	FILE *page = fopen(page_path, "r");
	assert_non_null(page);
	char *kept = malloc(made_size + 2);
	size_t size = fread(kept, 1, made_size + 1, page);
	fclose(page);
	assert_int_equal(size, made_size);
	assert_memory_equal(kept, made, size);
	free(kept);
	free(made);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	page_path = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A2__every_pair_is_a_step_or_impossible),
		cmocka_unit_test(A8__every_state_can_end),
		cmocka_unit_test(A8__giving_up_tells_everybody),
		cmocka_unit_test(A5_A7__order_is_in_the_table),
		cmocka_unit_test(A2__the_resolver_has_four_answers),
		cmocka_unit_test(x__the_page_is_what_the_table_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
