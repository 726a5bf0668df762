// SPDX-License-Identifier: BSD-3-Clause
#include "core/explain.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t ns_of(uint64_t ticks, uint64_t tick_ns_q32)
{
	return (uint64_t)(((__uint128_t)ticks * tick_ns_q32) >> 32);
}

static const char *or_dash(const char *text)
{
	return text == NULL ? "-" : text;
}

size_t explain_print(
	const struct explain *e, uint64_t tick_ns_q32, const char *kind, const char *reason, char *out,
	size_t capacity)
{
	int n = snprintf(out, capacity,
		"{\"result\":\"%s\",\"reason\":\"%s\",\"session\":\"%s\",\"route\":\"%s\","
		"\"filter\":\"%s\",\"process\":{\"verdict\":\"%s\",\"bytes\":%" PRIu64
		",\"mark_bytes\":%" PRIu64 "},\"lane\":{\"name\":\"application\",\"verdict\":\"%s\","
		"\"count\":%u,\"count_max\":%u,\"bytes\":%" PRIu64 ",\"bytes_max\":%" PRIu64
		",\"charge_bytes\":%u},\"parked_ns\":%" PRIu64 ",\"queue_ns\":%" PRIu64
		",\"turn\":{\"verdict\":\"%s\",\"ns\":%" PRIu64
		"},\"ingress_worker\":%u,\"home_worker\":%u}",
		or_dash(kind), or_dash(reason), or_dash(e->session), or_dash(e->route),
		or_dash(e->filter), or_dash(e->process), e->process_bytes, e->process_mark,
		or_dash(e->lane_verdict), e->lane.count, e->bounds.count_max, e->lane.bytes,
		e->bounds.bytes_max, e->charge_bytes, ns_of(e->parked_ticks, tick_ns_q32),
		ns_of(e->queue_ticks, tick_ns_q32), or_dash(e->turn),
		ns_of(e->turn_ticks, tick_ns_q32), e->ingress_worker, e->home_worker);
	if (n < 0)
		return 0;
	return (size_t)n < capacity ? (size_t)n : capacity - 1;
}
