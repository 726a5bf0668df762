// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/compiler.h"
#include "base/histogram.h"
#include "recording.h"

// Replay keeps at most a window of messages in flight. With --rate N it is open-loop: message i is
// due at start + i/N by the clock, and its latency counts from then, so that a node that falls
// behind shows in the figures although the window holds messages back. Nothing is sent again (M3).

enum { KINDS = 32, REASONS = 64 };

struct cell {
	uint64_t count;
	char example[256]; // the first refusal of this cell in words
	// and in numbers, when it was for room (limit 0 = it was not)
	struct spotlane_refusal refusal;
};

struct flight { // one message under way
	struct replay *replay;
	struct flight *next_free;
	const struct record *record;
	uint64_t due_ns;
};

struct replay {
	const struct spot_options *o;
	struct recording recording;
	spotlane_client *client;
	uint64_t total;
	uint64_t sent;
	uint64_t ok;
	uint64_t refused;
	uint64_t deadlines;
	uint64_t other; // ended here for another reason
	uint8_t pressure; // of the latest reply: the node asks for less (P4)
	uint64_t begin_ns;
	uint64_t end_ns;
	struct flight *flights;
	struct flight *free_flights;
	struct histogram latency;
	struct cell cells[KINDS][REASONS];
};

static volatile sig_atomic_t interrupted; // set by the signal handler, read by the loop

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// ---- endings ----

static void count_end(struct replay *replay, const struct spotlane_client_result *r)
{
	if (r->end == SPOTLANE_END_DEADLINE)
		replay->deadlines++;
	else if (r->end != SPOTLANE_END_REPLY)
		replay->other++;
	else if (r->kind == SPOTLANE_KIND_OK)
		replay->ok++;
	else
		replay->refused++;
}

static void message_done(void *arg, const struct spotlane_client_result *r)
{
	struct flight *flight = arg;
	struct replay *replay = flight->replay;
	count_end(replay, r);
	struct cell *cell = &replay->cells[r->kind % KINDS][r->reason % REASONS];
	if (cell->count++ == 0 && r->kind != SPOTLANE_KIND_OK) {
		cell->refusal = r->refusal;
		spotlane_result_text(r, flight->record->id, flight->record->id_bytes, cell->example,
			sizeof(cell->example));
	}
	if (r->end == SPOTLANE_END_REPLY) {
		replay->pressure = r->pressure;
		uint64_t now = now_ns();
		histogram_record(&replay->latency, now > flight->due_ns ? now - flight->due_ns : 0);
	}
	flight->next_free = replay->free_flights;
	replay->free_flights = flight;
}

// ---- sending ----

static uint64_t due_ns(const struct replay *replay, uint64_t index)
{
	uint64_t whole = index / replay->o->rate * 1000000000u;
	uint64_t part = index % replay->o->rate * 1000000000u / replay->o->rate;
	return replay->begin_ns + whole + part;
}

static bool message_start(struct replay *replay, uint64_t when_due_ns)
{
	const struct record *record =
		&replay->recording.records[replay->sent % replay->recording.count];
	struct flight *flight = replay->free_flights;
	struct spotlane_client_call call = {
		.size = sizeof(call),
		.family = SPOTLANE_CALL_REQUEST,
		.id = record->id,
		.id_bytes = record->id_bytes,
		.type = replay->o->intent,
		.message_type = record->message_type,
		.content_type = record->content_type,
		.payload = record->payload,
		.payload_bytes = record->payload_bytes,
		.budget_us = replay->o->budget_us,
		.done = message_done,
		.arg = flight,
	};
	flight->record = record;
	flight->due_ns = when_due_ns;
	int error = spotlane_client_start(replay->client, &call, NULL);
	if (error == 0) {
		replay->free_flights = flight->next_free;
		replay->sent++;
		return true;
	}
	fprintf(stderr, "spot: message %" PRIu64 " could not be started: %s. Stopping.\n",
		replay->sent, strerror(-error));
	interrupted = 1;
	return false;
}

// Starts what is due; returns how long nothing more will be.
static uint64_t start_due(struct replay *replay)
{
	bool by_clock = replay->o->rate != SPOT_RATE_MAX_SPEED;
	uint64_t now = now_ns();
	while (!interrupted && replay->sent < replay->total && replay->free_flights) {
		// Under pressure half the window, which halves the rate where no clock gives one.
		if (replay->pressure &&
			spotlane_client_in_flight(replay->client) > replay->o->window / 2)
			break;
		uint64_t due = by_clock ? due_ns(replay, replay->sent) : now;
		if (due > now)
			return (due - now) / 1000;
		if (!message_start(replay, due))
			break;
	}
	return 100 * 1000;
}

static void run(struct replay *replay)
{
	replay->begin_ns = now_ns();
	// Ends: every message in flight has a time limit, and an interrupt starts no more.
	for (;;) {
		uint64_t wait_us = start_due(replay);
		bool all = interrupted || replay->sent == replay->total;
		if (all && spotlane_client_in_flight(replay->client) == 0)
			break;
		(void)spotlane_client_poll(replay->client, wait_us);
	}
	replay->end_ns = now_ns();
}

// ---- results ----

static double seconds_of(const struct replay *replay)
{
	return (double)(replay->end_ns - replay->begin_ns) / 1e9;
}

static double per_second(const struct replay *replay)
{
	double seconds = seconds_of(replay);
	return seconds > 0 ? (double)replay->sent / seconds : 0;
}

// Messages without an ending. Anything but 0 is a defect.
static uint64_t unaccounted(const struct replay *replay)
{
	return replay->sent - replay->ok - replay->refused - replay->deadlines - replay->other;
}

static enum spot_exit code_of(const struct replay *replay)
{
	if (unaccounted(replay) != 0)
		return SPOT_EXIT_INTERNAL;
	if (replay->ok == replay->total)
		return SPOT_EXIT_OK;
	if (replay->ok > 0)
		return SPOT_EXIT_PARTLY;
	struct spotlane_client_result most = {0};
	uint64_t count = 0;
	for (uint8_t kind = 0; kind < KINDS; kind++) {
		for (uint8_t reason = 0; reason < REASONS; reason++) {
			if (replay->cells[kind][reason].count <= count)
				continue;
			count = replay->cells[kind][reason].count;
			most.kind = kind;
		}
	}
	return count > 0 ? exit_code_of(&most) : SPOT_EXIT_REFUSED;
}

static void name_cell(uint8_t kind, uint8_t reason, char out[80])
{
	const char *kind_name = spotlane_kind_name(kind);
	const char *reason_name = spotlane_reason_name(reason);
	snprintf(out, 80, "%s%s%s", kind_name ? kind_name : "?", reason ? "/" : "",
		reason ? (reason_name ? reason_name : "?") : "");
}

static void print_cells(const struct replay *replay)
{
	printf("  %-44s %12s\n", "result", "messages");
	for (uint8_t kind = 0; kind < KINDS; kind++) {
		for (uint8_t reason = 0; reason < REASONS; reason++) {
			const struct cell *cell = &replay->cells[kind][reason];
			char name[80];
			if (cell->count == 0)
				continue;
			name_cell(kind, reason, name);
			printf("  %-44s %12" PRIu64 "\n", name, cell->count);
			if (cell->example[0])
				printf("      the first: %s\n", cell->example);
		}
	}
}

static void print_duration(const char *name, uint64_t ns)
{
	if (ns < 10 * 1000 * 1000)
		printf("  %s %.1f µs", name, (double)ns / 1e3);
	else
		printf("  %s %.1f ms", name, (double)ns / 1e6);
}

static void print_table(const struct replay *replay)
{
	const struct histogram *h = &replay->latency;
	printf("%" PRIu64 " messages to %" PRIu64 " Spots in %.2f s: %.0f messages/s\n",
		replay->sent, replay->recording.spots, seconds_of(replay), per_second(replay));
	printf("  sent %" PRIu64 " = answered OK %" PRIu64 " + refused %" PRIu64
	       " + no answer in time %" PRIu64 " + ended here %" PRIu64 "; unaccounted %" PRIu64
	       "\n",
		replay->sent, replay->ok, replay->refused, replay->deadlines, replay->other,
		unaccounted(replay));
	if (replay->sent < replay->total)
		printf("  stopped early: %" PRIu64 " of %" PRIu64 " messages were sent\n",
			replay->sent, replay->total);
	printf("  latency");
	print_duration("p50", histogram_at(h, 50000));
	print_duration("p99", histogram_at(h, 99000));
	print_duration("p99.9", histogram_at(h, 99900));
	print_duration("max", h->max);
	printf(replay->o->rate == SPOT_RATE_MAX_SPEED ? "  (from sending)\n"
						       : "  (from the time each was due)\n");
	print_cells(replay);
}

static json_t *json_of_cells(const struct replay *replay)
{
	json_t *results = json_array();
	for (uint8_t kind = 0; kind < KINDS; kind++) {
		for (uint8_t reason = 0; reason < REASONS; reason++) {
			const struct cell *cell = &replay->cells[kind][reason];
			if (cell->count == 0)
				continue;
			json_array_append_new(results,
				json_pack("{s:s?, s:s?, s:I, s:s?, s:o?}", "kind",
					spotlane_kind_name(kind), "reason",
					reason ? spotlane_reason_name(reason) : NULL, "messages",
					(json_int_t)cell->count, "example",
					cell->example[0] ? cell->example : NULL, "refusal",
					cell->refusal.limit ? json_of_refusal(&cell->refusal)
							    : NULL));
		}
	}
	return results;
}

static json_t *json_of_latency(const struct histogram *h)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)h->count,
		"min", (json_int_t)(h->count ? h->min : 0), "mean",
		(json_int_t)(h->count ? h->sum / h->count : 0), "p50",
		(json_int_t)histogram_at(h, 50000), "p99", (json_int_t)histogram_at(h, 99000),
		"p999", (json_int_t)histogram_at(h, 99900), "max", (json_int_t)h->max);
}

static json_t *json_of_rate(uint64_t rate)
{
	return rate == SPOT_RATE_MAX_SPEED ? json_string("max") : json_integer((json_int_t)rate);
}

static enum spot_exit print_document(const struct replay *replay)
{
	struct spotlane_client_stats stats;
	spotlane_client_stats_read(replay->client, &stats);
	return json_print(json_pack(
		"{s:s, s:s?, s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o}",
		"file", replay->o->operands[0], "intent", replay->o->intent, "rate",
		json_of_rate(replay->o->rate), "window", (int)replay->o->window, "repeat",
		(int)replay->o->repeat, "messages", (json_int_t)replay->total, "spots",
		(json_int_t)replay->recording.spots, "sent", (json_int_t)replay->sent, "ok",
		(json_int_t)replay->ok, "refused", (json_int_t)replay->refused, "deadline",
		(json_int_t)replay->deadlines, "ended_here", (json_int_t)replay->other,
		"unaccounted", (json_int_t)unaccounted(replay), "seconds", seconds_of(replay),
		"messages_per_second", per_second(replay), "latency_ns",
		json_of_latency(&replay->latency), "results", json_of_cells(replay), "client",
		json_of_stats(&stats)));
}

// ---- the verb ----

static bool flights_make(struct replay *replay)
{
	replay->flights = calloc(replay->o->window, sizeof(*replay->flights));
	if (!replay->flights)
		return false;
	for (uint32_t i = 0; i < replay->o->window; i++) {
		replay->flights[i].replay = replay;
		replay->flights[i].next_free = replay->free_flights;
		replay->free_flights = &replay->flights[i];
	}
	return true;
}

static enum spot_exit replay_all(struct replay *replay)
{
	const struct spot_options *o = replay->o;
	enum spot_exit bad = node_open(o, o->window, &replay->client);
	if (bad)
		return bad;
	struct sigaction interrupt = {.sa_handler = on_interrupt};
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	run(replay);
	if (o->json)
		bad = print_document(replay);
	else
		print_table(replay);
	if (!bad && fflush(stdout) != 0)
		bad = SPOT_EXIT_INTERNAL;
	spotlane_client_close(replay->client);
	return bad ? bad : code_of(replay);
}

enum spot_exit verb_replay(const struct spot_options *o)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	if (!replay)
		return SPOT_EXIT_INTERNAL;
	replay->o = o;
	histogram_init(&replay->latency);
	enum spot_exit code = recording_read(o->operands[0], o->type_map, &replay->recording);
	if (!code && !flights_make(replay)) {
		fprintf(stderr, "spot: no memory for a window of %" PRIu32 " messages.\n",
			o->window);
		code = SPOT_EXIT_INTERNAL;
	}
	if (!code) {
		replay->total = replay->recording.count * o->repeat;
		code = replay_all(replay);
	}
	recording_free(&replay->recording);
	free(replay->flights);
	free(replay);
	return code;
}
