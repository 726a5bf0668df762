// SPDX-License-Identifier: BSD-3-Clause
#include "vehicles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/rng.h"

enum {
	REPORT_EVERY_MIN_S = 300,
	REPORT_EVERY_MAX_S = 540,
	NOBODY = -1,
	CENTRE_LAT = 52520000, // microdegrees
	CENTRE_LON = 13405000,
	TOWN_LAT = 90000, // half the height and width of the town
	TOWN_LON = 150000,
	// Microdegrees per ten metres at this latitude.
	LAT_PER_10_M = 90,
	LON_PER_10_M = 148,
};
#define RECORDING_BEGINS 1772434800 // 2026-03-02T07:00:00Z

// Sixteen compass directions: north and east parts in thousandths.
static const struct {
	int16_t north;
	int16_t east;
} compass[16] = {{1000, 0}, {924, 383}, {707, 707}, {383, 924}, {0, 1000}, {-383, 924}, {-707, 707},
	{-924, 383}, {-1000, 0}, {-924, -383}, {-707, -707}, {-383, -924}, {0, -1000}, {383, -924},
	{707, -707}, {924, -383}};

struct vehicle {
	int32_t lat;
	int32_t lon;
	uint32_t odometer_decametres;
	uint32_t reported_s;
	int32_t next; // in the list of the same second
	uint8_t heading;
	uint8_t speed_kmh;
};

struct vehicles {
	struct rng rng;
	uint32_t seconds;
	uint32_t second;
	int32_t *due; // one list of vehicles per second of the recording
	struct vehicle cars[];
};

static void car_schedule(struct vehicles *v, int32_t car, uint64_t second)
{
	if (second >= v->seconds)
		return;
	v->cars[car].next = v->due[second];
	v->due[second] = car;
}

struct vehicles *vehicles_create(uint32_t count, uint32_t seconds, uint64_t seed)
{
	struct vehicles *v = calloc(1, sizeof(*v) + count * sizeof(struct vehicle));
	int32_t *due = calloc(seconds, sizeof(*due));
	if (!v || !due) {
		free(v);
		free(due);
		return NULL;
	}
	v->due = due;
	v->seconds = seconds;
	rng_seed(&v->rng, seed);
	for (uint32_t i = 0; i < seconds; i++)
		due[i] = NOBODY;
	for (uint32_t i = 0; i < count; i++) {
		struct vehicle *car = &v->cars[i];
		car->lat = (int32_t)(CENTRE_LAT - TOWN_LAT / 2 +
				     (int64_t)rng_below(&v->rng, TOWN_LAT));
		car->lon = (int32_t)(CENTRE_LON - TOWN_LON / 2 +
				     (int64_t)rng_below(&v->rng, TOWN_LON));
		car->odometer_decametres = 100000 + (uint32_t)rng_below(&v->rng, 18000000);
		car->heading = (uint8_t)rng_below(&v->rng, 16);
		car->speed_kmh = (uint8_t)rng_below(&v->rng, 60);
		car_schedule(v, (int32_t)i, rng_below(&v->rng, REPORT_EVERY_MAX_S));
	}
	return v;
}

void vehicles_destroy(struct vehicles *vehicles)
{
	if (!vehicles)
		return;
	free(vehicles->due);
	free(vehicles);
}

static void car_steer(struct vehicles *v, struct vehicle *car)
{
	uint64_t turn = rng_below(&v->rng, 8);
	if (turn < 2)
		car->heading = (uint8_t)((car->heading + (turn == 0 ? 4 : 12)) % 16);
	// Out of town: straight back to the centre.
	if (car->lat > CENTRE_LAT + TOWN_LAT)
		car->heading = 8;
	else if (car->lat < CENTRE_LAT - TOWN_LAT)
		car->heading = 0;
	else if (car->lon > CENTRE_LON + TOWN_LON)
		car->heading = 12;
	else if (car->lon < CENTRE_LON - TOWN_LON)
		car->heading = 4;
	// One in four waits; the others drive as towns allow.
	car->speed_kmh = rng_below(&v->rng, 4) == 0 ? 0 : (uint8_t)(8 + rng_below(&v->rng, 63));
}

static void car_drive(struct vehicle *car, uint32_t second)
{
	int64_t decametres = (int64_t)car->speed_kmh * (second - car->reported_s) / 36;
	car->lat += (int32_t)(decametres * compass[car->heading].north * LAT_PER_10_M / 1000);
	car->lon += (int32_t)(decametres * compass[car->heading].east * LON_PER_10_M / 1000);
	car->odometer_decametres += (uint32_t)decametres;
	car->reported_s = second;
}

bool vehicles_next(struct vehicles *v, struct vehicle_report *out)
{
	while (v->second < v->seconds && v->due[v->second] == NOBODY)
		v->second++;
	if (v->second == v->seconds)
		return false;
	int32_t index = v->due[v->second];
	struct vehicle *car = &v->cars[index];
	v->due[v->second] = car->next;
	car_drive(car, v->second);
	car_steer(v, car);
	*out = (struct vehicle_report){
		.vehicle = (uint32_t)index,
		.second = v->second,
		.lat_microdegrees = car->lat,
		.lon_microdegrees = car->lon,
		.speed_kmh = car->speed_kmh,
		.heading_degrees = car->heading * 45u / 2,
		.odometer_decametres = car->odometer_decametres,
	};
	uint64_t wait = rng_below(&v->rng, REPORT_EVERY_MAX_S - REPORT_EVERY_MIN_S + 1);
	car_schedule(v, index, v->second + REPORT_EVERY_MIN_S + wait);
	return true;
}

void vehicle_report_print(const struct vehicle_report *r, char out[VEHICLE_LINE_BYTES])
{
	time_t at = RECORDING_BEGINS + (time_t)r->second;
	struct tm utc;
	CHECK(gmtime_r(&at, &utc));
	char clock[32];
	strftime(clock, sizeof(clock), "%Y-%m-%dT%H:%M:%SZ", &utc);
	int size = snprintf(out, VEHICLE_LINE_BYTES,
		"{\"id\":\"vehicle/%05" PRIu32
		"\",\"type\":\"position\",\"payload\":{\"time\":\"%s\","
		"\"lat\":%" PRId64 ".%06" PRId64 ",\"lon\":%" PRId64 ".%06" PRId64
		",\"speed_kmh\":%" PRIu32 ",\"heading\":%" PRIu32 ",\"odometer_km\":%" PRIu32
		".%02" PRIu32 "}}\n",
		r->vehicle, clock, r->lat_microdegrees / 1000000, r->lat_microdegrees % 1000000,
		r->lon_microdegrees / 1000000, r->lon_microdegrees % 1000000, r->speed_kmh,
		r->heading_degrees, r->odometer_decametres / 100, r->odometer_decametres % 100);
	CHECK(size > 0 && size < VEHICLE_LINE_BYTES);
}
