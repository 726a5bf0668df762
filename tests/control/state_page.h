// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The page docs/states/activation.md, made from the table.
#include <stdio.h>

void state_page_print(FILE *out);
