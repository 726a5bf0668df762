// SPDX-License-Identifier: BSD-3-Clause
#include "scenarios.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Built once as is, when every scenario must be clean, and once per planted defect (EXPLORE_BUG),
// when the scenario that watches the broken promise must fail: an explorer that finds nothing where
// there is something proves nothing.

#ifndef EXPLORE_BUG
#define EXPLORE_BUG 0
#endif

static struct explore_outcome explore(const struct explore_scenario *scenario)
{
	struct explore_outcome outcome = explore_all(scenario);

	print_message("%s: %lu interleavings, %lu points\n", scenario->name,
		(unsigned long)outcome.runs, (unsigned long)outcome.points);
	if (outcome.failure != NULL)
		print_message("broken: %s; schedule %s\n", outcome.failure, outcome.schedule);
	return outcome;
}

#if EXPLORE_BUG == 0
static void clean(const struct explore_scenario *scenario, uint64_t runs_min)
{
	struct explore_outcome outcome = explore(scenario);

	assert_null(outcome.failure);
	assert_true(outcome.runs >= runs_min); // the scenario still has something to interleave
}

static void I12_L4_I10__no_interleaving_passes_the_count_bound(void **state)
{
	(void)state;
	clean(&scenario_count_bound, 10000);
}

static void I12_L4_I10__no_interleaving_passes_the_bytes_bound(void **state)
{
	(void)state;
	clean(&scenario_bytes_bound, 10000);
}

static void L4_C4__no_interleaving_seals_a_lane_that_is_not_empty(void **state)
{
	(void)state;
	clean(&scenario_seal, 1000);
}

static void A7__no_interleaving_overtakes_the_first_message(void **state)
{
	(void)state;
	clean(&scenario_opening, 1000);
}

static void L7_L8__no_interleaving_loses_or_reorders_in_a_ring(void **state)
{
	(void)state;
	clean(&scenario_ring, 1000);
}

static void L5_L8_I10__no_interleaving_loses_an_admitted_item_on_its_way(void **state)
{
	(void)state;
	clean(&scenario_crossing, 10000);
}

static void L3_I11__no_interleaving_loses_or_doubles_an_item_given_back(void **state)
{
	(void)state;
	clean(&scenario_give_back, 1000);
}
#else
static void found(const struct explore_scenario *scenario)
{
	assert_non_null(explore(scenario).failure);
}
#endif

#if EXPLORE_BUG == 1
static void I12_L4__the_explorer_finds_add_then_undo(void **state)
{
	(void)state;
	found(&scenario_count_bound);
	found(&scenario_bytes_bound);
	found(&scenario_crossing);
}
#elif EXPLORE_BUG == 2
static void I10_L5__the_explorer_finds_a_double_return(void **state)
{
	(void)state;
	found(&scenario_count_bound);
	found(&scenario_crossing);
}
#elif EXPLORE_BUG == 3
static void L8__the_explorer_finds_a_tail_published_before_its_slot(void **state)
{
	(void)state;
	found(&scenario_ring);
	found(&scenario_crossing);
}
#elif EXPLORE_BUG == 4
static void L4_C4__the_explorer_finds_a_seal_without_compare(void **state)
{
	(void)state;
	found(&scenario_seal);
}
#elif EXPLORE_BUG == 5
static void L3_I11__the_explorer_finds_a_give_back_without_compare(void **state)
{
	(void)state;
	found(&scenario_give_back);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if EXPLORE_BUG == 0
		cmocka_unit_test(I12_L4_I10__no_interleaving_passes_the_count_bound),
		cmocka_unit_test(I12_L4_I10__no_interleaving_passes_the_bytes_bound),
		cmocka_unit_test(L4_C4__no_interleaving_seals_a_lane_that_is_not_empty),
		cmocka_unit_test(A7__no_interleaving_overtakes_the_first_message),
		cmocka_unit_test(L7_L8__no_interleaving_loses_or_reorders_in_a_ring),
		cmocka_unit_test(L5_L8_I10__no_interleaving_loses_an_admitted_item_on_its_way),
		cmocka_unit_test(L3_I11__no_interleaving_loses_or_doubles_an_item_given_back),
#elif EXPLORE_BUG == 1
		cmocka_unit_test(I12_L4__the_explorer_finds_add_then_undo),
#elif EXPLORE_BUG == 2
		cmocka_unit_test(I10_L5__the_explorer_finds_a_double_return),
#elif EXPLORE_BUG == 3
		cmocka_unit_test(L8__the_explorer_finds_a_tail_published_before_its_slot),
#elif EXPLORE_BUG == 4
		cmocka_unit_test(L4_C4__the_explorer_finds_a_seal_without_compare),
#elif EXPLORE_BUG == 5
		cmocka_unit_test(L3_I11__the_explorer_finds_a_give_back_without_compare),
#endif
	};

	return cmocka_run_group_tests_name("explore", tests, NULL, NULL);
}
