// SPDX-License-Identifier: BSD-3-Clause
#include "scenarios.h"

#include <stddef.h>

#include "base/atomic.h"
#include "lane/lane.h"

static struct lane_word word;
static struct lane_bounds bounds;
static int holders; // threads that were admitted and have not returned yet
static int sealers;
static int admitted;

static void reset_with(struct lane_bounds with, bool opening)
{
	bounds = with;
	lane_word_init(&word, opening);
	holders = sealers = admitted = 0;
}

static const char *within_bounds(void)
{
	struct lane_level level = lane_level(&word);

	if (level.count > bounds.count_max)
		return "I12: count above its bound";
	if (level.bytes > bounds.bytes_max)
		return "I12: bytes above their bound";
	if (sealers > 1 || (sealers > 0 && holders > 0))
		return "a seal is not alone";
	return NULL;
}

static const char *empty_at_end(void)
{
	struct lane_level level = lane_level(&word);

	if (level.count != 0 || level.bytes != 0)
		return "I10: the word is not zero at the end";
	if (level.sealed || level.opening)
		return "a mark is left at the end";
	return NULL;
}

static void admit_and_return(uint32_t charge_bytes)
{
	if (lane_reserve(&word, bounds, charge_bytes) != LANE_ADMITTED)
		return;
	holders++;
	admitted++;
	explore_point(); // others may run while the item is held
	holders--;
	lane_return(&word, charge_bytes);
}

// ---- bounds ----

static void reset_count(void)
{
	reset_with((struct lane_bounds){.bytes_max = 1000, .count_max = 2}, false);
}

static void admit_twice(void)
{
	admit_and_return(30);
	admit_and_return(7);
}

const struct explore_scenario scenario_count_bound = {
	.name = "count bound", .threads = 3, .preemptions_max = 3, .reset = reset_count,
	.thread = {admit_twice, admit_twice, admit_twice},
	.always = within_bounds, .at_end = empty_at_end,
};

static void reset_bytes(void)
{
	reset_with((struct lane_bounds){.bytes_max = 100, .count_max = 10}, false);
}

static void admit_large(void)
{
	admit_and_return(60);
	admit_and_return(100);
}

static void admit_middle(void)
{
	admit_and_return(50);
	admit_and_return(40);
}

static void admit_small(void)
{
	admit_and_return(1);
	admit_and_return(51);
}

static const char *bytes_at_end(void)
{
	return admitted == 0 ? "refused everybody" : empty_at_end();
}

const struct explore_scenario scenario_bytes_bound = {
	.name = "bytes bound", .threads = 3, .preemptions_max = 3, .reset = reset_bytes,
	.thread = {admit_large, admit_middle, admit_small},
	.always = within_bounds, .at_end = bytes_at_end,
};

// ---- seal ----

static void seal_and_unseal(void)
{
	if (!lane_seal(&word))
		return;
	EXPLORE_ASSERT(holders == 0);
	sealers++;
	explore_point();
	EXPLORE_ASSERT(lane_level(&word).count == 0);
	sealers--;
	lane_unseal(&word);
}

static void seal_twice(void)
{
	seal_and_unseal();
	seal_and_unseal();
}

const struct explore_scenario scenario_seal = {
	.name = "seal from empty", .threads = 3, .preemptions_max = 3, .reset = reset_count,
	.thread = {admit_twice, seal_twice, seal_and_unseal},
	.always = within_bounds, .at_end = empty_at_end,
};

// ---- opening (A7) ----

static bool first_queued;

static void reset_opening(void)
{
	reset_with((struct lane_bounds){.bytes_max = 1000, .count_max = 3}, true);
	first_queued = false;
}

static void home_opens(void)
{
	EXPLORE_ASSERT(lane_reserve_first(&word, bounds, 10) == LANE_ADMITTED);
	explore_point();
	first_queued = true;
	lane_open(&word);
	explore_point();
	lane_return(&word, 10);
}

static void admit_after_first(void)
{
	for (int tries = 0; tries < 2; tries++) {
		enum lane_verdict verdict = lane_reserve(&word, bounds, 20);
		if (verdict == LANE_OPENING)
			continue;
		EXPLORE_ASSERT(verdict == LANE_ADMITTED);
		EXPLORE_ASSERT(first_queued); // nobody overtakes the first message
		lane_return(&word, 20);
	}
}

const struct explore_scenario scenario_opening = {
	.name = "opening", .threads = 3, .preemptions_max = 3, .reset = reset_opening,
	.thread = {home_opens, admit_after_first, admit_after_first},
	.always = within_bounds, .at_end = empty_at_end,
};
