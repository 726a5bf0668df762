// SPDX-License-Identifier: BSD-3-Clause
// wants: incompatible pointer|incompatible-pointer
#include <stddef.h>

#include "spotlane/module.h"

extern const struct spotlane_instance_type type;
extern const struct spotlane_module module_of_one;

// A type is of one kind: it goes into that kind's list only.
const struct spotlane_instance_type type = {.name = "thing"};

#ifdef WRONG
static const struct spotlane_entry_type *const types[] = {&type, NULL};
const struct spotlane_module module_of_one = {.entry_types = types};
#else
static const struct spotlane_instance_type *const types[] = {&type, NULL};
const struct spotlane_module module_of_one = {.instance_types = types};
#endif
