// SPDX-License-Identifier: BSD-3-Clause
// The client library against a scripted node: calls in one frame.
#include "peer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "spot/name.h"

struct ends { // what completions saw
	uint32_t count;
	struct spotlane_client_result last;
	char payload[256];
};

static void ends_take(void *arg, const struct spotlane_client_result *result)
{
	struct ends *ends = arg;
	ends->count++;
	ends->last = *result;
	memset(ends->payload, 0, sizeof(ends->payload));
	if (result->payload_bytes > 0 && result->payload_bytes < sizeof(ends->payload))
		memcpy(ends->payload, result->payload, result->payload_bytes);
}

struct fixture {
	struct peer peer;
	struct stepped_clock clock;
	spotlane_client *client;
	struct ends ends;
};

static int setup(void **state)
{
	static struct fixture f;
	memset(&f, 0, sizeof(f));
	peer_open(&f.peer);
	f.client = peer_client(&f.peer, &f.clock, NULL);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	peer_close(&f->peer);
	return 0;
}

static struct spotlane_client_call call_make(struct fixture *f, enum spotlane_call_family family)
{
	return (struct spotlane_client_call){
		.size = sizeof(struct spotlane_client_call),
		.family = family,
		.id = "vehicle-17",
		.id_bytes = 10,
		.message_type = 7,
		.content_type = SPOTLANE_CONTENT_TEXT,
		.payload = "hello",
		.payload_bytes = 5,
		.done = ends_take,
		.arg = &f->ends,
	};
}

static uint64_t start(struct fixture *f, const struct spotlane_client_call *call)
{
	uint64_t ticket = 0;
	assert_int_equal(spotlane_client_start(f->client, call, &ticket), 0);
	return ticket;
}

static uint64_t request(struct fixture *f)
{
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	return start(f, &call);
}

static void greet(struct fixture *f)
{
	(void)request(f);
	peer_greet(&f->peer, 77);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "hi", 2);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	f->ends.count = 0;
}

static struct spotlane_client_stats stats_of(const struct fixture *f)
{
	struct spotlane_client_stats stats;
	spotlane_client_stats_read(f->client, &stats);
	return stats;
}

static void assert_balanced(const struct fixture *f)
{
	struct spotlane_client_stats s = stats_of(f);
	assert_int_equal(
		s.started, s.in_flight + s.replies + s.sent + s.deadlines + s.cancelled + s.local);
}

// ---- cookie and repetition ----

static void M9__cookie_is_asked_for_first_and_carried(void **state)
{
	struct fixture *f = *state;
	(void)request(f);
	peer_expect(&f->peer, WIRE_HELLO);
	uint64_t session = f->peer.frame.h.session;
	assert_int_equal(f->peer.frame.h.counter, 1);
	peer_expect_silence(&f->peer);
	peer_challenge(&f->peer, 77);
	peer_expect(&f->peer, WIRE_REQUEST);
	const struct wire_header *h = &f->peer.frame.h;
	assert_int_equal(h->cookie, 77);
	assert_int_equal(h->session, session);
	assert_int_equal(h->counter, 2);
	assert_int_equal(h->operation_scope, session);
	assert_int_equal(h->message_type, 7);
	assert_int_equal(h->content_type, WIRE_CONTENT_TEXT);
	assert_int_equal(h->id_bytes, 0);
	assert_true(spot_key_equal(wire_frame_key(&f->peer.frame), spot_key_of(span_of("vehicle-17", 10))));
	assert_int_equal(f->peer.frame.segment.size, 5);
	struct wire_header call = *h;
	peer_reply(&f->peer, &call, result_ok(), WIRE_CONTENT_TEXT, "hi", 2);
	assert_int_equal(spotlane_client_poll(f->client, 0), 1);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_OK);
	assert_int_equal(f->ends.last.end, SPOTLANE_END_REPLY);
	assert_int_equal(f->ends.last.ingress_worker, 3);
	assert_int_equal(f->ends.last.home_worker, 5);
	assert_string_equal(f->ends.payload, "hi");
	assert_balanced(f);
}

static void M9__hello_is_repeated_at_doubling_intervals(void **state)
{
	struct fixture *f = *state;
	(void)request(f);
	peer_expect(&f->peer, WIRE_HELLO);
	const uint64_t waits_ms[] = {20, 40, 80, 160, 200, 200};
	uint64_t counter = 1;
	for (size_t i = 0; i < ARRAY_COUNT(waits_ms); i++) {
		step_ms(&f->peer, &f->clock, waits_ms[i] - 2);
		peer_expect_silence(&f->peer);
		step_ms(&f->peer, &f->clock, 4); // timers have ticks of about a millisecond
		peer_expect(&f->peer, WIRE_HELLO);
		assert_int_equal(f->peer.frame.h.counter, ++counter);
	}
}

static void M9__challenged_request_is_repeated_unchanged_once(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header first = f->peer.frame.h;
	// Time passes before the challenge comes; the repeated frame keeps the budget it left with.
	step_ms(&f->peer, &f->clock, 100);
	peer_challenge(&f->peer, 88);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header again = f->peer.frame.h;
	assert_int_equal(again.cookie, 88);
	again.cookie = first.cookie;
	assert_memory_equal(&again, &first, sizeof(first));
	// The same challenge once more (repeated by the network): nothing is sent a third time.
	peer_challenge(&f->peer, 88);
	peer_expect_silence(&f->peer);
	assert_int_equal(stats_of(f).repeats, 1);
}

static void M3_M9__sent_twice_under_an_older_cookie_is_not_sent_to_the_next_run(void **state)
{
	struct fixture *f = *state;
	spotlane_client_close(f->client);
	struct spotlane_client_options options = {.size = sizeof(options), .repeat_after_ms = 50};
	f->client = peer_client(&f->peer, &f->clock, &options);
	greet(f);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	call.budget_us = 1000 * 1000;
	(void)start(f, &call);
	peer_expect(&f->peer, WIRE_REQUEST);
	step_ms(&f->peer, &f->clock, 100);
	peer_expect(&f->peer, WIRE_REQUEST);
	peer_challenge(&f->peer, 88); // the node was restarted: it knows neither session nor cookie
	(void)spotlane_client_poll(f->client, 0);
	peer_expect_silence(&f->peer);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
}

static void M9__foreign_challenge_is_dropped(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	f->peer.frame.h.session ^= 1;
	peer_challenge(&f->peer, 99);
	peer_expect_silence(&f->peer);
	assert_int_equal(stats_of(f).frames_unexpected, 1);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	assert_int_equal(f->peer.frame.h.cookie, 77);
}

static void M9__cookie_is_asked_for_again_after_silence(void **state)
{
	struct fixture *f = *state;
	greet(f);
	step_ms(&f->peer, &f->clock, 56 * 1000);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_SEND);
	(void)start(f, &call);
	peer_expect(&f->peer, WIRE_HELLO);
	peer_expect_silence(&f->peer);
	peer_challenge(&f->peer, 78);
	peer_expect(&f->peer, WIRE_SEND);
	assert_int_equal(f->peer.frame.h.cookie, 78);
}

static void M3_M9__unanswered_request_is_not_repeated(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	for (int i = 0; i < 60; i++) {
		step_ms(&f->peer, &f->clock, 100);
		peer_expect_silence(&f->peer);
	}
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(stats_of(f).repeats, 0);
}

static void M3__refused_request_is_not_repeated(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	peer_reply(&f->peer, &h, result_refused(RESULT_SHUTTING_DOWN, REASON_NONE), 0, NULL, 0);
	for (int i = 0; i < 60; i++) {
		step_ms(&f->peer, &f->clock, 100);
		peer_expect_silence(&f->peer);
	}
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_SHUTTING_DOWN);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_NO);
}

static void M9__option_repeats_the_same_frame_within_the_budget(void **state)
{
	struct fixture *f = *state;
	spotlane_client_close(f->client);
	struct spotlane_client_options options = {.size = sizeof(options), .repeat_after_ms = 50};
	f->client = peer_client(&f->peer, &f->clock, &options);
	greet(f);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	call.budget_us = 1000 * 1000;
	(void)start(f, &call);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header first = f->peer.frame.h;
	uint32_t repeats = 0;
	for (int i = 0; i < 30; i++) {
		step_ms(&f->peer, &f->clock, 100);
		while (peer_take(&f->peer)) {
			assert_memory_equal(&f->peer.frame.h, &first, sizeof(first));
			repeats++;
		}
	}
	assert_in_range(repeats, 4, 10);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
}

// ---- exactly one terminal result ----

static void M2__repeated_reply_ends_the_call_once(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	for (int i = 0; i < 3; i++)
		peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "x", 1);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(stats_of(f).late, 2);
	// Nor does it end the call that reuses the place.
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "x", 1);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(stats_of(f).late, 3);
	assert_balanced(f);
}

static void M2_M7_M9__deadline_ends_unknown_and_a_later_reply_is_late(void **state)
{
	struct fixture *f = *state;
	greet(f);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	call.budget_us = 250 * 1000;
	(void)start(f, &call);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	assert_int_equal(h.budget_us, 250 * 1000);
	step_ms(&f->peer, &f->clock, 249);
	assert_int_equal(f->ends.count, 0);
	step_ms(&f->peer, &f->clock, 3);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
	assert_int_equal(f->ends.last.end, SPOTLANE_END_DEADLINE);
	peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "x", 1);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(stats_of(f).late, 1);
	assert_balanced(f);
}

static void M2__reply_that_is_here_already_beats_the_deadline(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "x", 1);
	step_ms(&f->peer, &f->clock, 6000);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_OK);
}

static void M2_M4__deadline_before_anything_left_is_a_definite_no(void **state)
{
	struct fixture *f = *state;
	(void)request(f);
	peer_expect(&f->peer, WIRE_HELLO);
	step_ms(&f->peer, &f->clock, 5002);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_DEADLINE_EXCEEDED);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_NO);
	while (peer_take(&f->peer))
		assert_int_equal(f->peer.frame.h.family, WIRE_HELLO);
	peer_challenge(&f->peer, 5);
	peer_expect_silence(&f->peer);
}

static void M2__cancelled_call_ends_once(void **state)
{
	struct fixture *f = *state;
	greet(f);
	uint64_t ticket = request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	assert_int_equal(spotlane_client_cancel(f->client, ticket), 0);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_CANCELLED);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_UNKNOWN);
	assert_int_equal(spotlane_client_cancel(f->client, ticket), -ENOENT);
	peer_reply(&f->peer, &h, result_ok(), WIRE_CONTENT_TEXT, "x", 1);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	// Cancelled before it left: nothing leaves, and the answer is a definite no.
	ticket = request(f);
	assert_int_equal(spotlane_client_cancel(f->client, ticket), 0);
	assert_int_equal(f->ends.last.accepted, SPOTLANE_ACCEPTED_NO);
	peer_expect_silence(&f->peer);
	assert_balanced(f);
}

static void M2__close_ends_what_is_in_flight(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	(void)request(f);
	spotlane_client_close(f->client);
	f->peer.client = NULL;
	assert_int_equal(f->ends.count, 2);
	assert_int_equal(f->ends.last.kind, SPOTLANE_KIND_CANCELLED);
}

struct chain {
	struct fixture *f;
	uint32_t left;
};

static void chain_next(void *arg, const struct spotlane_client_result *result)
{
	struct chain *chain = arg;
	assert_int_equal(result->kind, SPOTLANE_KIND_OK);
	assert_int_equal(spotlane_client_poll(chain->f->client, 0), -EBUSY);
	if (chain->left-- == 0)
		return;
	struct spotlane_client_call call = call_make(chain->f, SPOTLANE_CALL_REQUEST);
	call.done = chain_next;
	call.arg = chain;
	assert_int_equal(spotlane_client_start(chain->f->client, &call, NULL), 0);
}

static void M2__completion_may_start_the_next_call(void **state)
{
	struct fixture *f = *state;
	greet(f);
	struct chain chain = {.f = f, .left = 100};
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	call.done = chain_next;
	call.arg = &chain;
	(void)start(f, &call);
	for (int i = 0; i <= 100; i++) {
		peer_expect(&f->peer, WIRE_REQUEST);
		struct wire_header h = f->peer.frame.h;
		peer_reply(&f->peer, &h, result_ok(), 0, NULL, 0);
	}
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(spotlane_client_in_flight(f->client), 0);
	assert_balanced(f);
}

static void M2__twenty_thousand_in_flight_each_end_once(void **state)
{
	struct fixture *f = *state;
	enum { CALLS = 20000, BATCH = 100 };
	greet(f);
	static struct wire_header calls[CALLS];
	uint32_t seen = 0;
	for (uint32_t i = 0; i < CALLS; i += BATCH) {
		for (uint32_t k = 0; k < BATCH; k++)
			(void)request(f);
		while (peer_take(&f->peer))
			calls[seen++] = f->peer.frame.h;
	}
	assert_int_equal(seen, CALLS);
	assert_int_equal(spotlane_client_in_flight(f->client), CALLS);
	for (uint32_t i = CALLS; i > 0; i--) {
		peer_reply(&f->peer, &calls[i - 1], result_ok(), 0, NULL, 0);
		if (i % BATCH == 1)
			(void)spotlane_client_poll(f->client, 0);
	}
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, CALLS);
	assert_int_equal(stats_of(f).replies, CALLS + 1);
	assert_balanced(f);
}

// ---- families, results, bad input ----

static void M1__families_go_out_as_the_page_says(void **state)
{
	struct fixture *f = *state;
	greet(f);
	const struct {
		enum spotlane_call_family family;
		const char *type;
		uint8_t wire;
		uint16_t message_type;
	} cases[] = {
		{SPOTLANE_CALL_SEND, NULL, WIRE_SEND, 7},
		{SPOTLANE_CALL_SEND, "tracker", WIRE_INTENT_SEND, 7},
		{SPOTLANE_CALL_REQUEST, NULL, WIRE_REQUEST, 7},
		{SPOTLANE_CALL_REQUEST, "tracker", WIRE_INTENT_REQUEST, 7},
		{SPOTLANE_CALL_CREATE, "room", WIRE_CONTROL, WIRE_CONTROL_CREATE},
		{SPOTLANE_CALL_GET_OR_CREATE, "room", WIRE_CONTROL, WIRE_CONTROL_GET_OR_CREATE},
		{SPOTLANE_CALL_CLOSE, NULL, WIRE_CONTROL, WIRE_CONTROL_CLOSE},
		{SPOTLANE_CALL_LOOKUP, NULL, WIRE_CONTROL, WIRE_CONTROL_LOOKUP},
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct spotlane_client_call call = call_make(f, cases[i].family);
		call.type = cases[i].type;
		(void)start(f, &call);
		peer_expect(&f->peer, cases[i].wire);
		const struct wire_header *h = &f->peer.frame.h;
		assert_int_equal(h->message_type, cases[i].message_type);
		assert_int_equal(h->spot_type, call.type ? type_key_of(call.type).value : 0);
		bool with_id = cases[i].wire != WIRE_SEND && cases[i].wire != WIRE_REQUEST;
		assert_int_equal(h->id_bytes, with_id ? 10 : 0);
		// The next poll tells the one-way call that it left.
	}
	assert_int_equal(f->ends.count, 2);
	assert_int_equal(stats_of(f).sent, 2);
	assert_balanced(f);
}

static void M5__refusal_says_whose_room_and_how_full(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	struct refusal refusal = {.limit = 1024, .current = 1024, .owner_key = {1, 2, 3}, .owner_node = 9};
	uint8_t body[WIRE_REFUSAL_BYTES];
	wire_refusal_encode(&refusal, body);
	peer_reply(&f->peer, &h, result_refused(RESULT_CAPACITY_EXCEEDED, REASON_APPLICATION_LANE_COUNT),
		WIRE_CONTENT_REFUSAL, body, sizeof(body));
	(void)spotlane_client_poll(f->client, 0);
	const struct spotlane_client_result *r = &f->ends.last;
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->refusal.limit, 1024);
	assert_int_equal(r->refusal.current, 1024);
	assert_int_equal(r->refusal.owner_key[2], 3);
	assert_int_equal(r->refusal.owner_node, 9);
	assert_int_equal(r->payload_bytes, 0);
	char text[256];
	spotlane_result_text(r, "slow-1", 6, text, sizeof(text));
	assert_string_equal(text, "CapacityExceeded/ApplicationLaneCount: lane of Spot slow-1 is full: 1024 of "
				  "1024 messages (accepted: no)");
	assert_int_equal(stats_of(f).by_kind[RESULT_CAPACITY_EXCEEDED], 1);
	assert_int_equal(stats_of(f).by_reason[REASON_APPLICATION_LANE_COUNT], 1);
}

static void M5_FC67__every_reason_for_room_has_its_own_words(void **state)
{
	(void)state;
	char seen[REASON_REASSEMBLY + 1][256];
	for (uint8_t reason = 1; reason <= REASON_REASSEMBLY; reason++) {
		struct spotlane_client_result r = {.kind = RESULT_CAPACITY_EXCEEDED, .reason = reason,
			.accepted = ACCEPTED_NO, .end = SPOTLANE_END_REPLY, .refused = 1,
			.refusal = {.limit = 12345, .current = 12344}};
		spotlane_result_text(&r, "s", 1, seen[reason], sizeof(seen[reason]));
		assert_non_null(strstr(seen[reason], spotlane_reason_name(reason)));
		assert_non_null(strstr(seen[reason], "12344 of 12345"));
		for (uint8_t other = 1; other < reason; other++)
			assert_string_not_equal(seen[reason], seen[other]);
	}
}

static void M4__every_kind_arrives_as_it_was_sent(void **state)
{
	struct fixture *f = *state;
	greet(f);
	for (uint8_t kind = RESULT_OK; kind <= RESULT_UNSUPPORTED; kind++) {
		(void)request(f);
		peer_expect(&f->peer, WIRE_REQUEST);
		struct wire_header h = f->peer.frame.h;
		struct result result = {kind, REASON_CLOSING, ACCEPTED_YES};
		peer_reply(&f->peer, &h, result, WIRE_CONTENT_JSON, "{}", 2);
		(void)spotlane_client_poll(f->client, 0);
		assert_int_equal(f->ends.last.kind, kind);
		assert_int_equal(f->ends.last.reason, REASON_CLOSING);
		assert_int_equal(f->ends.last.accepted, ACCEPTED_YES);
		assert_int_equal(f->ends.last.content_type, SPOTLANE_CONTENT_JSON);
		assert_non_null(spotlane_kind_name(kind));
	}
	assert_null(spotlane_kind_name(0));
	assert_null(spotlane_kind_name(24));
}

static void x__explanation_is_split_from_the_body(void **state)
{
	struct fixture *f = *state;
	greet(f);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	call.explain = 1;
	(void)start(f, &call);
	peer_expect(&f->peer, WIRE_REQUEST);
	assert_true(f->peer.frame.h.flags & WIRE_FLAG_EXPLAIN);
	struct wire_header h = peer_reply_header(&f->peer, &f->peer.frame.h, result_ok());
	const char body[] = "\x02\x00[]rest";
	h.flags = WIRE_FLAG_EXPLAIN;
	h.total_bytes = 8;
	peer_send_frame(&f->peer, &h, body, 8);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
	assert_int_equal(f->ends.last.explained, 1);
	assert_int_equal(f->ends.last.explanation_bytes, 2);
	assert_string_equal(f->ends.payload, "rest");
}

static void x__explanation_longer_than_the_body_ends_nothing(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = peer_reply_header(&f->peer, &f->peer.frame.h, result_ok());
	h.flags = WIRE_FLAG_EXPLAIN;
	h.total_bytes = 4;
	peer_send_frame(&f->peer, &h, "\x03\x00[]", 4);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 0);
	assert_int_equal(stats_of(f).frames_unexpected, 1);
}

static void x__garbage_is_counted_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	greet(f);
	(void)request(f);
	peer_expect(&f->peer, WIRE_REQUEST);
	struct wire_header h = f->peer.frame.h;
	uint8_t junk[2000];
	struct rng rng;
	rng_seed(&rng, 1);
	for (uint32_t i = 0; i < 500; i++) {
		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rng_u64(&rng);
		peer_send(&f->peer, junk, rng_below(&rng, sizeof(junk)) + 1);
		(void)spotlane_client_poll(f->client, 0);
	}
	assert_int_equal(stats_of(f).frames_rejected, 500);
	uint64_t by_reject = 0;
	for (size_t i = 0; i < 32; i++)
		by_reject += stats_of(f).by_reject[i];
	assert_int_equal(by_reject, 500);
	// Well-formed, but nothing for a client; or for somebody else.
	struct wire_header hello = {.version = WIRE_VERSION, .family = WIRE_HELLO, .session = 1, .counter = 1};
	peer_send_frame(&f->peer, &hello, NULL, 0);
	struct wire_header foreign = h;
	foreign.operation_scope ^= 1;
	peer_reply(&f->peer, &foreign, result_ok(), 0, NULL, 0);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(stats_of(f).frames_unexpected, 2);
	assert_int_equal(f->ends.count, 0);
	peer_reply(&f->peer, &h, result_ok(), 0, NULL, 0);
	(void)spotlane_client_poll(f->client, 0);
	assert_int_equal(f->ends.count, 1);
}

static void T1_M8__illegal_calls_are_refused_before_anything_happens(void **state)
{
	struct fixture *f = *state;
	struct spotlane_client_call good = call_make(f, SPOTLANE_CALL_REQUEST);
	struct spotlane_client_call bad[8];
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		bad[i] = good;
	bad[0].size = 1;
	bad[1].family = (enum spotlane_call_family)9;
	bad[2].id_bytes = 0;
	bad[3].id = "a\0b";
	bad[3].id_bytes = 3;
	bad[4].id = "\xff\xfe";
	bad[4].id_bytes = 2;
	bad[5].family = SPOTLANE_CALL_CREATE; // without a type
	bad[6].type = "";
	bad[7].port = 2; // there is one
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		assert_int_equal(spotlane_client_start(f->client, &bad[i], NULL), -EINVAL);
	static uint8_t large[16 * 1024 * 1024 + 1];
	good.payload = large;
	good.payload_bytes = sizeof(large);
	assert_int_equal(spotlane_client_start(f->client, &good, NULL), -EMSGSIZE);
	peer_expect_silence(&f->peer);
	assert_int_equal(stats_of(f).started, 0);
}

static void x__in_flight_bound_holds(void **state)
{
	struct fixture *f = *state;
	spotlane_client_close(f->client);
	struct spotlane_client_options options = {.size = sizeof(options), .in_flight_max = 3};
	f->client = peer_client(&f->peer, &f->clock, &options);
	uint64_t ticket = request(f);
	(void)request(f);
	(void)request(f);
	struct spotlane_client_call call = call_make(f, SPOTLANE_CALL_REQUEST);
	assert_int_equal(spotlane_client_start(f->client, &call, NULL), -EAGAIN);
	assert_int_equal(spotlane_client_cancel(f->client, ticket), 0);
	(void)request(f);
}

static void x__ports_have_their_own_sessions_and_serve_in_turn(void **state)
{
	struct fixture *f = *state;
	spotlane_client_close(f->client);
	struct spotlane_client_options options = {.size = sizeof(options), .ports = 4};
	f->client = peer_client(&f->peer, &f->clock, &options);
	uint64_t sessions[4];
	for (int i = 0; i < 4; i++)
		(void)request(f);
	for (int i = 0; i < 4; i++) {
		peer_expect(&f->peer, WIRE_HELLO);
		sessions[i] = f->peer.frame.h.session;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(sessions[i], sessions[k]);
	}
	assert_int_equal(f->peer.frame.h.counter, 1);
}

static void x__addresses_are_checked(void **state)
{
	(void)state;
	const char *const bad[] = {"", "host", ":1", "host:", "::1:7700", "[::1]", "[]:1", "h:70x"};
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		spotlane_client *client = NULL;
		char error[128] = "";
		assert_int_equal(spotlane_client_open(bad[i], NULL, &client, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "HOST:PORT"));
	}
	spotlane_client *client = NULL;
	assert_int_equal(spotlane_client_open("[::1]:7700", NULL, &client, NULL, 0), 0);
	spotlane_client_close(client);
}

static void x__nothing_listening_is_told_from_silence(void **state)
{
	(void)state;
	struct peer peer;
	peer_open(&peer);
	char node[32];
	snprintf(node, sizeof(node), "127.0.0.1:%u", peer.port);
	spotlane_client *client = NULL;
	assert_int_equal(spotlane_client_open(node, NULL, &client, NULL, 0), 0);
	assert_int_equal(spotlane_client_reach(client, 1000), -ETIMEDOUT);
	peer.client = NULL;
	peer_close(&peer);
	assert_int_equal(spotlane_client_reach(client, 100 * 1000), -ECONNREFUSED);
	spotlane_client_close(client);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(M9__cookie_is_asked_for_first_and_carried),
		T(M9__hello_is_repeated_at_doubling_intervals),
		T(M9__challenged_request_is_repeated_unchanged_once),
		T(M3_M9__sent_twice_under_an_older_cookie_is_not_sent_to_the_next_run),
		T(M9__foreign_challenge_is_dropped),
		T(M9__cookie_is_asked_for_again_after_silence),
		T(M3_M9__unanswered_request_is_not_repeated),
		T(M3__refused_request_is_not_repeated),
		T(M9__option_repeats_the_same_frame_within_the_budget),
		T(M2__repeated_reply_ends_the_call_once),
		T(M2_M7_M9__deadline_ends_unknown_and_a_later_reply_is_late),
		T(M2__reply_that_is_here_already_beats_the_deadline),
		T(M2_M4__deadline_before_anything_left_is_a_definite_no),
		T(M2__cancelled_call_ends_once),
		T(M2__close_ends_what_is_in_flight),
		T(M2__completion_may_start_the_next_call),
		T(M2__twenty_thousand_in_flight_each_end_once),
		T(M1__families_go_out_as_the_page_says),
		T(M5__refusal_says_whose_room_and_how_full),
		T(M5_FC67__every_reason_for_room_has_its_own_words),
		T(M4__every_kind_arrives_as_it_was_sent),
		T(x__explanation_is_split_from_the_body),
		T(x__explanation_longer_than_the_body_ends_nothing),
		T(x__garbage_is_counted_and_changes_nothing),
		T(T1_M8__illegal_calls_are_refused_before_anything_happens),
		T(x__in_flight_bound_holds),
		T(x__ports_have_their_own_sessions_and_serve_in_turn),
		cmocka_unit_test(x__addresses_are_checked),
		cmocka_unit_test(x__nothing_listening_is_told_from_silence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
