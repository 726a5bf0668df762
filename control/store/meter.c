// SPDX-License-Identifier: BSD-3-Clause
#include "store/meter.h"

void store_measure(struct store *store, struct store_meter *meter, struct clock *clock)
{
	*meter = (struct store_meter){.clock = clock};
	store->meter = meter;
}

static bool is_counted(const struct store_op *op)
{
	return (uint32_t)op->kind > 0 && (uint32_t)op->kind < STORE_OP_KINDS;
}

void store_meter_submit(struct store_meter *meter, struct store_op *op)
{
	op->submitted_boot_ns = clock_boot_ns(meter->clock);
	meter->pending++;
}

void store_meter_finish(struct store_meter *meter, const struct store_op *op)
{
	uint64_t now = clock_boot_ns(meter->clock);
	meter->pending--;
	if (!is_counted(op))
		return;
	uint32_t outcome = (uint32_t)op->outcome < STORE_OUTCOMES ? (uint32_t)op->outcome : 0;
	meter->outcomes[op->kind][outcome]++;
	latency_record(&meter->latency[op->kind],
		now > op->submitted_boot_ns ? now - op->submitted_boot_ns : 0);
}

const char *store_op_kind_name(enum store_op_kind kind)
{
	switch (kind) {
	case STORE_NODE_READ:
		return "node.read";
	case STORE_NODE_JOIN:
		return "node.join";
	case STORE_NODE_RENEW:
		return "node.renew";
	case STORE_NODE_LEAVE:
		return "node.leave";
	case STORE_NODE_LIST:
		return "node.list";
	case STORE_SPOT_READ:
		return "spot.read";
	case STORE_SPOT_CLAIM:
		return "spot.claim";
	case STORE_SPOT_COMMIT:
		return "spot.commit";
	case STORE_SPOT_ABORT:
	case STORE_SPOT_CLEAN:
		return "spot.abort";
	case STORE_SPOT_RELEASE:
		return "spot.release";
	case STORE_SPOT_FORMER:
		return "spot.former";
	case STORE_GENERATION_DRAW:
		return "generation.draw";
	case STORE_SPOT_LIST:
		return "spot.list";
	case STORE_NODE_FENCE:
		return "node.fence";
	case STORE_SPOT_FENCE:
		return "spot.fence";
	}
	return NULL;
}
