// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the workers of one port share with control: the mailboxes for frames that are not datagrams,
// the neighbour table, and the wake descriptor. Knows no driver.

#include "dp/net.h"
#include "fabric/mailbox.h"
#include "fabric/neighbours.h"

enum { LINK_WORKERS_MAX = 64, LINK_FRAMES = 64, LINK_WANTED = 64 };

struct link;

// identity is copied. NULL when memory or descriptors are short.
MUST_USE struct link *link_create(const struct dp_net_identity *identity, uint16_t workers);
void link_destroy(struct link *link); // accepts NULL
const struct dp_net_identity *link_identity(const struct link *link);
const struct neighbours *link_neighbours(const struct link *link);
// Control's side. Valid while the link lives.
void link_io(struct link *link, struct dp_net_io *out_io);

// ---- workers ----
// Hands a raw frame to control; false: mailbox full or frame too long, counted there.
bool link_to_control(struct link *link, uint16_t worker, const uint8_t *data, uint32_t bytes);
// Asks control to resolve a next hop.
void link_want(struct link *link, uint16_t worker, const uint8_t ip[16]);
// After a burst that used one of the two: at most one system call per turn of control.
void link_wake(struct link *link);
// What control wants sent; worker 0 only.
struct mailbox *link_from_control(struct link *link);
// Frames that did not fit a mailbox, both ways; a relaxed reading for people.
uint64_t link_refused(const struct link *link);
