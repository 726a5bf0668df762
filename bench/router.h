// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The router's process of the memif scenario: a node with one spinning worker on a memif port, whose
// worker can be told to route, to swap addresses only, or to stand still.

#include <stdint.h>

#include "base/compiler.h"
#include "scenario.h"

enum router_mode { ROUTER_STILL = 'P', ROUTER_ROUTE = 'R', ROUTER_SWAP = 'S', ROUTER_QUIT = 'Q' };

// Runs in a child process: reads modes from fd, one byte each, and answers each with one byte once it
// is in force. Returns an exit code.
int router_run(const struct bench_options *options, const char *socket_path, int fd);
