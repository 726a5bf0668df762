// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the two halves of the DPDK fabric: opening a port, and its queues at work.

// Ours first: DPDK defines container_of only where nobody has.
#include "fabric/dpdk.h"
#include "fabric/link.h"
#include "fabric/packet.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

struct dpdk_queue {
	struct fabric_queue_base base; // first
	uint16_t port_id;
	uint16_t queue_id; // = worker
	struct rte_mempool *pool;
	struct link *link;
	struct mailbox *from_control; // worker 0; NULL for the others
	const struct dp_net_identity *identity;
	const struct neighbours *neighbours;
	struct packet_site site;
};

struct fabric_dpdk_port {
	uint16_t port_id;
	uint16_t queue_count;
	bool started;
	char driver[32];
	uint64_t tx_capabilities;
	struct dp_net_identity identity;
	struct link *link;
	struct dpdk_queue *queues[LINK_WORKERS_MAX];
};

extern const struct fabric_ops dpdk_ops;
