// SPDX-License-Identifier: BSD-3-Clause
#include "worker/worker.h"

#include "core/core.h"
#include "core/step.h"

bool dp_attach_queue(struct dp *dp, uint16_t worker, struct fabric_queue *queue)
{
	return worker < dp->config.workers && worker_attach_queue(dp->workers[worker], queue);
}

bool dp_worker_turn(struct dp *dp, uint16_t worker)
{
	return worker_step(dp->workers[worker]);
}
