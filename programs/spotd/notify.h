// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Tells a service manager how we are (sd_notify's datagram protocol, environment NOTIFY_SOCKET).
// Without one it does nothing.

void notify_send(const char *state); // "READY=1", "STATUS=…", "STOPPING=1", "WATCHDOG=1"
// Microseconds between two signs of life that the manager wants, 0 = none.
unsigned long long notify_watchdog_us(void);
