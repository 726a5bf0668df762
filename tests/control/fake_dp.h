// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A scripted data plane behind dp/port.h: commands are recorded, facts are what a test says, or by
// default what a willing worker would report at the next dp_facts.

#include "dp/port.h"

enum fake_command {
	FAKE_CONSTRUCT = 1,
	FAKE_OPEN = 2,
	FAKE_RELEASE = 3,
	FAKE_FAIL = 4,
	FAKE_CLOSE = 5,
	FAKE_REPLY = 6,
	FAKE_ADMIT = 7,
	FAKE_LEAVE = 8,
	FAKE_ENTER = 9,
	FAKE_CLOSE_IDLE = 10,
};
struct fake_record {
	enum fake_command command;
	uint16_t worker;
	struct spot_key key;
	enum dp_fail_scope scope;
	struct result result;
	struct refusal refusal;
	uint64_t token;
	uint8_t reason;
	uint8_t body[64];
	size_t body_bytes;
};

enum { FAKE_RECORDS_MAX = 8192 };

struct dp *fake_dp_create(uint16_t workers);
// From then on a lane must not open before its route leads to its Spot (A7).
void fake_routes(struct dp *dp, struct route_table *routes);
void fake_dp_destroy(struct dp *dp); // fails the test when a Spot is left
// Types: "tracker" (Instance), "small" (Instance, at most 2), "room" (User), "gate" (Entry).
struct type_key fake_type(const char *name);

void fake_resolve(struct dp *dp, uint16_t worker, const char *id, const char *intent_type);
void fake_resolve_key(struct dp *dp, uint16_t worker, struct spot_key key, const char *id,
	const char *intent_type);
void fake_control(struct dp *dp, uint16_t worker, uint64_t token, uint16_t operation, const char *id,
	const char *type, uint64_t generation, uint64_t deadline_ns);
// A join or leave of an Actor; spot "" = the Entry Spot.
void fake_change(struct dp *dp, uint64_t token, uint16_t operation, const char *actor,
	const char *spot, uint64_t deadline_ns);
void fake_refuse_actors(struct dp *dp, bool refuse);
// While held, a step of an Actor does not end; let go, the last one does.
void fake_hold_actors(struct dp *dp, bool hold);
void fake_actor_told(struct dp *dp, struct dp_actor *actor, enum dp_actor_step step);
void fake_close_self(struct dp *dp, struct dp_spot *spot);

// While held, factories (closings) do not end.
void fake_hold_factories(struct dp *dp, bool hold);
void fake_hold_closings(struct dp *dp, bool hold);
void fake_factory_result(struct dp *dp, struct result result); // of all later factories
void fake_busy(struct dp *dp, uint32_t commands);              // the next ones meet a full ring
void fake_fail_memory(struct dp *dp, uint32_t spots);          // dp_spot_create: NULL
void fake_turn_running(struct dp *dp, uint16_t worker, struct spot_key key, uint64_t since);
void fake_stop_worker(struct dp *dp, uint16_t worker); // its heart stands still

// Idle cleanup: dp_sweep shows what was marked, DP_SWEEP a look, whose work ended long enough ago by
// the clock given to it.
void fake_idle(struct dp *dp, struct dp_spot *spot, uint64_t finished_ns);
void fake_clock(struct dp *dp, const uint64_t *boot_ns);
void fake_keep(struct dp *dp, bool keep); // idle closes find work: KEPT
uint32_t fake_sweeps(const struct dp *dp);

uint32_t fake_count(const struct dp *dp, enum fake_command command);
const struct fake_record *fake_last(const struct dp *dp, enum fake_command command);
const struct fake_record *fake_record_at(const struct dp *dp, uint32_t index);
uint32_t fake_records(const struct dp *dp);
void fake_forget(struct dp *dp); // empties the record
uint64_t fake_factories(const struct dp *dp);
uint64_t fake_spots_alive(const struct dp *dp);
bool fake_admits(const struct dp *dp);
