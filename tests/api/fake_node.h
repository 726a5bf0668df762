// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A node and a data plane made of tables: the functions of node/node.h, dp/port.h and route/route.h
// that the control server calls. Test thread only.

#include <stdbool.h>
#include <stdint.h>

#include "dp/port.h"
#include "node/health.h"
#include "node/listing.h"
#include "node/node.h"
#include "node/peers.h"

enum { FAKE_SPOTS_MAX = 100000 };

struct fake {
	struct node_status status;
	struct node_health health;
	struct store_node_row nodes[3];
	enum store_outcome list_outcome; // 0 = DONE
	uint32_t peers; // of nodes, how many were watched
	struct node_fence_report fence;
	uint32_t fences;
	uint32_t spots;
	char ids[FAKE_SPOTS_MAX][24];
	uint32_t items[FAKE_SPOTS_MAX];
	bool closed[FAKE_SPOTS_MAX];
	struct dp_counters counters[2];
	struct dp_audit audit;
	int audit_busy; // begins that are refused first
	// What the next change ends with; `hold` keeps it until fake_release.
	struct result result;
	struct refusal refusal; // of CapacityExceeded
	bool hold;
	uint64_t walked; // Spots that were looked at
	uint32_t creates, closes; // how often the node was really asked
};
extern struct fake fake;

void fake_reset(uint32_t spots);
void fake_release(void); // ends the held change
