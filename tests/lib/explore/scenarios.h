// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "explore.h"

extern const struct explore_scenario scenario_count_bound;
extern const struct explore_scenario scenario_bytes_bound;
extern const struct explore_scenario scenario_seal;
extern const struct explore_scenario scenario_opening;
extern const struct explore_scenario scenario_ring;
extern const struct explore_scenario scenario_crossing;
extern const struct explore_scenario scenario_give_back;
