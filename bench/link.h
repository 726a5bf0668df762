// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The generator's end of a link: raw frames through a DPDK port, Ethernet, IPv4 and UDP headers from a
// template. One thread. A process has one EAL: all ports of a run are opened here.

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
	LINK_BURST = 32,
	LINK_HEADERS_BYTES = 14 + 20 + 8,
	LINK_ROUTER_PORT = 7700,
};

struct link_frame {
	uint8_t *payload; // UDP payload
	uint32_t bytes;
	void *handle;
};

// vdevs: EAL device strings of the client ends. False after printing why.
MUST_USE bool link_start(const char *const *vdevs, uint32_t count, int cpu, bool hugepages);
// Opens the port of a vdev (its name up to the comma); its server must be there. Returns its number
// or -1.
int link_open(const char *vdev);
bool link_is_up(int port);
// Takes the router's MAC for the headers (anything will do on memif).
uint32_t link_alloc(struct link_frame *out, uint32_t n);
// Fills headers for `bytes` of payload and sends; what the driver does not take is freed. Returns how
// many went out.
uint32_t link_send(int port, struct link_frame *frames, uint32_t n);
uint32_t link_receive(int port, struct link_frame *out, uint32_t n);
void link_free(struct link_frame *frames, uint32_t n);
