// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// spotctl: the operator's side of the control socket. Driven by the same table of commands as the
// server (api/commands.h); one process, one thread, blocking with limits.

// Returns the process's exit code (enum api_exit of api/errors.h).
int cli_main(int argc, char **argv, const char *version, const char *git);
