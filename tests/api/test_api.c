// SPDX-License-Identifier: BSD-3-Clause
// The control server over real sockets, with a node made of tables.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/commands.h"
#include "api/errors.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "fake_node.h"
#include "server.h"

static const char *text_at(json_t *json, const char *a, const char *b)
{
	json_t *value = json_object_get(json, a);
	return json_string_value(b == NULL ? value : json_object_get(value, b));
}

static void G1_G2__server_speaks_first_and_names_role_and_instance(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_connect();
	json_t *hello = client_line(fd);
	assert_string_equal(text_at(hello, "hello", NULL), "spotlane");
	assert_string_equal(text_at(hello, "role", NULL), "administer");
	assert_string_equal(text_at(hello, "instance", NULL), "ab000000000000000000000000000000");
	assert_int_equal(json_integer_value(json_object_get(hello, "v")), 1);
	json_decref(hello);
	client_end(fd);
	server_stop();
}

static const struct {
	const char *line;
	int code;
} bad_lines[] = {
	{"{", 101},
	{"nonsense", 101},
	{"[1]", 101},
	{"\"x\"", 101},
	{"{\"op\":\"status\",\"op\":\"status\"}", 101},
	{"{\"op\":\"status\"} x", 101},
	{"{\"op\":\"sta\\u0000tus\"}", 101},
	{"{\"op\":\"\xff\"}", 101},
	{"{\"id\":99999999999999999999999}", 101},
	{"{\"op\":\"status\",\"args\":{\"a\":[[[[[[[[1]]]]]]]]}}", 104},
	{"{\"id\":1.0,\"op\":\"status\"}", 105},
	{"{\"id\":1e3,\"op\":\"status\"}", 105},
	{"{\"op\":\"spot.list\",\"args\":{\"limit\":5.5}}", 105},
	{"{\"op\":1}", 106},
	{"{\"id\":1}", 106},
	{"{\"op\":\"status\",\"extra\":1}", 106},
	{"{\"op\":\"status\",\"v\":2}", 106},
	{"{\"op\":\"status\",\"id\":[]}", 106},
	{"{\"op\":\"status\",\"args\":[]}", 106},
	{"{\"op\":\"statsu\"}", 107},
	{"{\"op\":\"spot.list\",\"args\":{\"knd\":\"user\"}}", 108},
	{"{\"op\":\"status\",\"args\":{\"x\":1}}", 108},
	{"{\"op\":\"spot.show\"}", 109},
	{"{\"op\":\"spot.create\",\"args\":{\"id\":\"a\",\"type\":\"counter\"}}", 109},
	{"{\"op\":\"spot.show\",\"args\":{\"id\":1}}", 110},
	{"{\"op\":\"spot.show\",\"args\":{\"id\":\"\"}}", 110},
	{"{\"op\":\"spot.list\",\"args\":{\"limit\":0}}", 110},
	{"{\"op\":\"spot.list\",\"args\":{\"limit\":\"5\"}}", 110},
	{"{\"op\":\"spot.list\",\"args\":{\"kind\":\"User\"}}", 110},
	{"{\"op\":\"spot.list\",\"args\":{\"cursor\":\"-1\"}}", 110},
	{"{\"op\":\"stats.show\",\"args\":{\"worker\":2}}", 202},
	{"{\"op\":\"spot.show\",\"args\":{\"id\":\"nobody\"}}", 202},
	{"{\"op\":\"route.show\",\"args\":{\"id\":\"nobody\"}}", 202},
	{"{\"op\":\"spot.create\",\"args\":{\"id\":\"a\",\"type\":\"conter\",\"nonce\":\"12345678\"}}", 205},
};

static void G1__every_bad_line_gets_its_error_and_the_node_survives(void **state)
{
	(void)state;
	server_start(NULL);
	for (size_t i = 0; i < ARRAY_COUNT(bad_lines); i++) {
		int fd = client_pair();
		int code = error_code(client_ask(fd, bad_lines[i].line));
		if (code != bad_lines[i].code)
			print_error("%s\n", bad_lines[i].line);
		assert_int_equal(code, bad_lines[i].code);
		// Malformed text closes, a wrong request does not.
		if (api_error_find(code)->closes)
			assert_null(client_line(fd));
		else
			assert_int_equal(error_code(client_ask(fd, "{\"op\":\"status\"}")), 0);
		client_end(fd);
	}
	assert_int_equal(fake.creates, 0);
	server_stop();
}

static void G1__a_line_of_65536_bytes_is_read_and_one_more_is_refused(void **state)
{
	static char line[65536 + 2];
	(void)state;
	server_start(NULL);
	memset(line, ' ', sizeof line);
	memcpy(line, "{\"op\":\"status\"}", 15);
	line[65536] = '\n';
	int fd = client_pair();
	client_write(fd, line, 65537);
	assert_int_equal(error_code(client_line(fd)), 0);
	line[65536] = ' ';
	client_write(fd, line, 65537);
	assert_int_equal(error_code(client_line(fd)), API_ERROR_LINE_TOO_LONG);
	assert_null(client_line(fd));
	client_end(fd);
	server_stop();
}

static void G1__requests_cut_at_every_byte_are_the_same_requests(void **state)
{
	static const char text[] = "{\"id\":1,\"op\":\"health.live\"}\r\n\n{\"id\":2,\"op\":\"x\"}\n";
	(void)state;
	server_start(NULL);
	for (size_t cut = 0; cut < sizeof text; cut++) {
		int fd = client_pair();
		client_write(fd, text, cut);
		for (int i = 0; i < 3; i++)
			uv_run(&server.uv, UV_RUN_NOWAIT);
		client_write(fd, text + cut, sizeof text - 1 - cut);
		json_t *first = client_line(fd);
		assert_int_equal(json_integer_value(json_object_get(first, "id")), 1);
		assert_true(json_is_true(json_object_get(json_object_get(first, "result"), "yes")));
		json_decref(first);
		assert_int_equal(error_code(client_line(fd)), API_ERROR_UNKNOWN_OP);
		client_end(fd);
	}
	server_stop();
}

static void G1__client_65_is_told_and_closed_and_its_place_is_free_again(void **state)
{
	int fds[4];
	(void)state;
	server_start(&(struct api_limits){.clients_max = 3});
	for (int i = 0; i < 3; i++)
		fds[i] = client_pair();
	fds[3] = client_connect();
	assert_int_equal(error_code(client_line(fds[3])), API_ERROR_TOO_MANY_CLIENTS);
	assert_null(client_line(fds[3]));
	client_end(fds[3]);
	assert_int_equal(error_code(client_ask(fds[0], "{\"op\":\"status\"}")), 0);
	client_end(fds[1]);
	fds[1] = client_pair();
	for (int i = 0; i < 3; i++)
		client_end(fds[i]);
	server_stop();
}

static void G1__an_unfinished_line_and_an_idle_client_meet_their_limits(void **state)
{
	(void)state;
	server_start(&(struct api_limits){.line_timeout_ms = 20, .idle_timeout_ms = 30});
	int fd = client_pair();
	client_write(fd, "{\"op\"", 5);
	assert_int_equal(error_code(client_line(fd)), API_ERROR_LINE_TIMEOUT);
	assert_null(client_line(fd));
	client_end(fd);
	fd = client_pair();
	assert_int_equal(error_code(client_line(fd)), API_ERROR_IDLE_TIMEOUT);
	assert_null(client_line(fd));
	client_end(fd);
	server_stop();
}

static void G1__a_client_that_does_not_read_is_dropped_and_delays_nobody(void **state)
{
	static const char ask[] = "{\"op\":\"spot.list\"}\n";
	(void)state;
	server_start(&(struct api_limits){.queue_bytes_max = 64 * 1024});
	int slow = client_pair(), other = client_pair();
	bool dropped = false;
	for (int i = 0; i < 100000 && !dropped; i++) {
		dropped = send(slow, ask, sizeof ask - 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN;
		uv_run(&server.uv, UV_RUN_NOWAIT);
	}
	assert_true(dropped);
	assert_int_equal(error_code(client_ask(other, "{\"op\":\"status\"}")), 0);
	client_end(slow);
	client_end(other);
	server_stop();
}

#define CREATE(nonce, id)                                                                          \
	"{\"id\":9,\"op\":\"spot.create\",\"args\":{\"id\":\"" id                                  \
	"\",\"type\":\"counter\",\"nonce\":\"" nonce "\"}}"

static void G5__a_repeated_nonce_returns_the_first_receipt(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	json_t *first = client_ask(fd, CREATE("nonce-01", "a"));
	assert_true(json_is_true(json_object_get(json_object_get(first, "result"), "changed")));
	assert_null(json_object_get(first, "replayed"));
	json_t *again = client_ask(fd, CREATE("nonce-01", "a"));
	assert_true(json_is_true(json_object_get(again, "replayed")));
	assert_true(json_equal(json_object_get(first, "result"), json_object_get(again, "result")));
	assert_int_equal(fake.creates, 1);
	json_t *conflict = client_ask(fd, CREATE("nonce-01", "b"));
	assert_null(json_object_get(conflict, "result"));
	assert_int_equal(json_object_size(json_object_get(json_object_get(conflict, "error"), "detail")), 0);
	assert_int_equal(error_code(conflict), API_ERROR_NONCE_CONFLICT);
	assert_int_equal(fake.creates, 1);
	json_decref(first);
	json_decref(again);
	client_end(fd);
	server_stop();
}

static void G5__the_same_nonce_while_it_runs_waits_for_the_one_receipt(void **state)
{
	(void)state;
	server_start(NULL);
	int a = client_pair(), b = client_pair();
	fake.hold = true;
	client_write(a, CREATE("nonce-02", "a") "\n", strlen(CREATE("nonce-02", "a")) + 1);
	while (fake.creates == 0)
		uv_run(&server.uv, UV_RUN_NOWAIT);
	client_write(b, CREATE("nonce-02", "a") "\n", strlen(CREATE("nonce-02", "a")) + 1);
	for (int i = 0; i < 5; i++)
		uv_run(&server.uv, UV_RUN_NOWAIT);
	client_end(a); // who asked first is gone: the receipt is not
	fake_release();
	json_t *reply = client_line(b);
	assert_true(json_is_true(json_object_get(reply, "replayed")));
	assert_true(json_is_true(json_object_get(reply, "ok")));
	assert_int_equal(fake.creates, 1);
	json_decref(reply);
	client_end(b);
	server_stop();
}

static void G5__receipts_are_bounded_and_the_oldest_makes_room(void **state)
{
	char line[256];
	(void)state;
	server_start(&(struct api_limits){.receipts_max = 4});
	int fd = client_pair();
	for (int i = 0; i < 10; i++) {
		snprintf(line, sizeof line, CREATE("nonce-%04d", "a"), i);
		assert_int_equal(error_code(client_ask(fd, line)), 0);
	}
	json_t *reply = client_ask(fd, CREATE("nonce-0009", "a"));
	assert_true(json_is_true(json_object_get(reply, "replayed")));
	json_decref(reply);
	reply = client_ask(fd, CREATE("nonce-0000", "a"));
	assert_null(json_object_get(reply, "replayed"));
	json_decref(reply);
	assert_int_equal(fake.creates, 11);
	client_end(fd);
	server_stop();
}

static void FC65_FC67_M5__each_refusal_keeps_its_own_reason_and_figures(void **state)
{
	char line[256];
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	fake.refusal = (struct refusal){.limit = 12, .current = 11};
	for (int reason = REASON_PROCESS_INBOUND; reason <= REASON_REASSEMBLY; reason++) {
		fake.result = result_refused(RESULT_CAPACITY_EXCEEDED, (enum result_reason)reason);
		snprintf(line, sizeof line, CREATE("reason-%02d", "a"), reason);
		json_t *reply = client_ask(fd, line), *error = json_object_get(reply, "error");
		assert_string_equal(text_at(error, "detail", "reason"), result_reason_name((uint8_t)reason));
		json_t *detail = json_object_get(error, "detail");
		assert_int_equal(json_integer_value(json_object_get(detail, "limit")), 12);
		assert_int_equal(json_integer_value(json_object_get(detail, "current")), 11);
		assert_non_null(strstr(text_at(error, "message", NULL), result_reason_name((uint8_t)reason)));
		assert_string_equal(text_at(error, "accepted", NULL), "no");
		assert_int_equal(error_code(reply), API_ERROR_CAPACITY_EXCEEDED);
	}
	client_end(fd);
	server_stop();
}

static void M4__every_failed_kind_has_a_numbered_error(void **state)
{
	char line[256];
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	for (int kind = RESULT_NOT_FOUND; kind <= RESULT_UNSUPPORTED; kind++) {
		fake.result = (struct result){(uint8_t)kind, 0, ACCEPTED_UNKNOWN};
		snprintf(line, sizeof line,
			"{\"op\":\"spot.close\",\"args\":{\"id\":\"spot-1\",\"nonce\":\"kind-%04d\"}}", kind);
		json_t *reply = client_ask(fd, line);
		assert_string_equal(text_at(json_object_get(reply, "error"), "kind", NULL),
			result_kind_name((uint8_t)kind));
		assert_string_equal(text_at(json_object_get(reply, "error"), "accepted", NULL), "unknown");
		assert_int_equal(error_code(reply), API_ERROR_OF_RESULT + kind);
	}
	client_end(fd);
	server_stop();
}

static void x__list_pages_filters_and_reaches_every_spot_once(void **state)
{
	char line[256];
	bool seen[3000] = {false};
	uint32_t count = 0;
	(void)state;
	server_start(NULL);
	fake_reset(3000);
	int fd = client_pair();
	char cursor[32] = "";
	do {
		snprintf(line, sizeof line, "{\"op\":\"spot.list\",\"args\":{\"limit\":1000%s%s%s}}",
			cursor[0] ? ",\"cursor\":\"" : "", cursor, cursor[0] ? "\"" : "");
		json_t *reply = client_ask(fd, line), *spot;
		size_t i;
		json_array_foreach(json_object_get(json_object_get(reply, "result"), "spots"), i, spot) {
			unsigned n = (unsigned)strtoul(text_at(spot, "id", NULL) + 5, NULL, 10);
			assert_false(seen[n]);
			seen[n] = true;
			count++;
		}
		const char *next = text_at(reply, "result", "next");
		snprintf(cursor, sizeof cursor, "%s", next != NULL ? next : "");
		json_decref(reply);
	} while (cursor[0] != '\0');
	assert_int_equal(count, 3000);
	json_t *reply = client_ask(fd, "{\"op\":\"spot.list\",\"args\":{\"match\":\"spot-299\",\"kind\":\"instance\"}}");
	assert_int_equal(json_array_size(json_object_get(json_object_get(reply, "result"), "spots")), 11);
	json_decref(reply);
	reply = client_ask(fd, "{\"op\":\"spot.list\",\"args\":{\"kind\":\"entry\"}}");
	assert_int_equal(json_array_size(json_object_get(json_object_get(reply, "result"), "spots")), 1);
	json_decref(reply);
	client_end(fd);
	server_stop();
}

static void x__lane_top_ranks_by_items_or_bytes(void **state)
{
	(void)state;
	server_start(NULL);
	fake_reset(5000);
	for (uint32_t i = 100; i < 200; i++)
		fake.items[i] = i;
	int fd = client_pair();
	json_t *reply = client_ask(fd, "{\"op\":\"lane.top\",\"args\":{\"limit\":3}}");
	json_t *spots = json_object_get(json_object_get(reply, "result"), "spots");
	assert_int_equal(json_array_size(spots), 3);
	assert_string_equal(text_at(json_array_get(spots, 0), "id", NULL), "spot-199");
	assert_string_equal(text_at(json_array_get(spots, 2), "id", NULL), "spot-197");
	json_decref(reply);
	reply = client_ask(fd, "{\"op\":\"lane.top\",\"args\":{\"by\":\"bytes\"}}");
	spots = json_object_get(json_object_get(reply, "result"), "spots");
	assert_int_equal(json_array_size(spots), 10);
	assert_string_equal(text_at(json_array_get(spots, 0), "id", NULL), "spot-100");
	json_decref(reply);
	client_end(fd);
	server_stop();
}

static void L3__audit_waits_for_a_busy_data_plane_and_walks_the_lanes(void **state)
{
	(void)state;
	server_start(NULL);
	fake.items[3] = 2;
	fake.audit_busy = 3;
	fake.audit = (struct dp_audit){.ledger_bytes = 640, .measured_bytes = 641, .equal = false};
	int fd = client_pair();
	json_t *reply = client_ask(fd, "{\"op\":\"stats.audit\"}"), *r = json_object_get(reply, "result");
	assert_true(json_is_false(json_object_get(r, "equal")));
	assert_int_equal(json_integer_value(json_object_get(r, "lane_bytes")), 1700);
	assert_int_equal(json_integer_value(json_object_get(r, "lane_items")), 2);
	assert_int_equal(json_integer_value(json_object_get(r, "measured_bytes")), 641);
	json_decref(reply);
	client_end(fd);
	server_stop();
}

static void G4__watch_gives_events_and_says_what_it_missed(void **state)
{
	struct node_event event = {.kind = NODE_EVENT_ACTIVATED, .id = span_of("car-1", 5)};
	(void)state;
	server_start(&(struct api_limits){.queue_bytes_max = 16 * 1024});
	int fd = client_pair();
	json_decref(client_ask(fd, "{\"id\":\"w\",\"op\":\"watch\"}"));
	api_event(server.api, &event);
	json_t *line = client_line(fd);
	assert_string_equal(text_at(line, "event", "kind"), "activated");
	assert_string_equal(text_at(line, "event", "id"), "car-1");
	json_decref(line);
	// More than socket and queue take, unread: missed, not waited for.
	enum { EVENTS = 20000 };
	for (int i = 0; i < EVENTS; i++)
		api_event(server.api, &event);
	uint64_t got = 0, missed = 0;
	while (got + missed < EVENTS) {
		line = client_line(fd);
		assert_non_null(line);
		json_t *count = json_object_get(json_object_get(line, "event"), "missed");
		if (count != NULL)
			missed += (uint64_t)json_integer_value(count);
		else
			got++;
		json_decref(line);
	}
	assert_int_equal(got + missed, EVENTS);
	assert_true(missed > 0);
	client_end(fd);
	server_stop();
}

static void G4__watch_shows_drops_by_reason_as_they_change(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	json_decref(client_ask(fd, "{\"op\":\"watch\",\"args\":{\"drops\":true,\"interval_ms\":100}}"));
	fake.counters[0].refusals[REASON_PARKED] = 1;
	fake.counters[0].loops = 0;
	// The first look may have come before or after the change: from then on each one is told once.
	json_t *line = NULL;
	for (uint64_t n = 2; line == NULL; n++) {
		fake.counters[1].refusals[REASON_PARKED] = n;
		for (int i = 0; i < 50; i++)
			uv_run(&server.uv, UV_RUN_NOWAIT);
		line = server.bytes > 0 || recv(fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) == 1 ? client_line(fd)
											: NULL;
	}
	json_t *change = json_array_get(json_object_get(json_object_get(line, "event"), "changes"), 0);
	assert_string_equal(text_at(change, "group", NULL), "refusal");
	assert_string_equal(text_at(change, "reason", NULL), "Parked");
	assert_true(json_integer_value(json_object_get(change, "more")) > 0);
	json_decref(line);
	client_end(fd);
	server_stop();
}

static void G1_H3__stop_is_answered_when_the_server_goes(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair(), other = client_pair();
	fake.hold = true;
	client_write(other, CREATE("nonce-03", "a") "\n", strlen(CREATE("nonce-03", "a")) + 1);
	client_write(fd, "{\"op\":\"stop\",\"args\":{\"nonce\":\"12345678\"}}\n", 43);
	while (server.stops == 0 || fake.creates == 0)
		uv_run(&server.uv, UV_RUN_NOWAIT);
	server_finish();
	char text[512];
	ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "\"stopped\":true"));
	n = recv(other, text, sizeof text - 1, MSG_DONTWAIT);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "ShuttingDown"));
	fake_release(); // the node's completion comes after the server: it touches nothing
	close(fd);
	close(other);
}

static void G2__roles_come_from_the_peer_and_gate_each_op(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		enum api_role role;
	} peers[] = {{4001, 4001, API_ROLE_OPERATE}, {4002, 4002, API_ROLE_READ},
		{4003, 4500, API_ROLE_ADMINISTER}, {65534, 65534, API_ROLE_READ}};
	(void)state;
	if (geteuid() != 0)
		skip(); // other users' sockets need root
	server_start(NULL);
	server.config.control.roles[0] = (struct config_role_rule){4001, -1, CONFIG_ROLE_OPERATE};
	server.config.control.roles[1] = (struct config_role_rule){-1, 4500, CONFIG_ROLE_ADMINISTER};
	server.config.control.roles[2] = (struct config_role_rule){65534, -1, CONFIG_ROLE_ADMINISTER};
	server.config.control.role_count = 3;
	for (size_t i = 0; i < ARRAY_COUNT(peers); i++) {
		int fds[2];
		assert_int_equal(setegid(peers[i].gid), 0);
		assert_int_equal(seteuid(peers[i].uid), 0);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setegid(0), 0);
		api_adopt(server.api, fds[1]);
		server.bytes = 0;
		json_t *hello = client_line(fds[0]);
		assert_string_equal(text_at(hello, "role", NULL), api_role_name(peers[i].role));
		json_decref(hello);
		int create = error_code(client_ask(fds[0], CREATE("role-000", "a")));
		int status = error_code(client_ask(fds[0], "{\"op\":\"status\"}"));
		assert_int_equal(status, 0);
		assert_int_equal(create, peers[i].role >= API_ROLE_OPERATE ? 0 : API_ERROR_NOT_PERMITTED);
		if (peers[i].role < API_ROLE_ADMINISTER)
			assert_int_equal(error_code(client_ask(fds[0],
						 "{\"op\":\"stop\",\"args\":{\"nonce\":\"12345678\"}}")),
				API_ERROR_NOT_PERMITTED);
		client_end(fds[0]);
	}
	// The same nonce of two users is two changes.
	assert_int_equal(fake.creates, 2);
	assert_int_equal(server.stops, 0);
	server_stop();
}

static void FC110__many_requests_odd_ones_included_leave_the_server_answering(void **state)
{
	static const char *const ops[] = {"status", "spot.list", "stats.show", "schema", "doctor", "config.show"};
	char line[256];
	struct rng rng;
	(void)state;
	rng_seed(&rng, 110);
	server_start(NULL);
	int fd = client_pair();
	for (int i = 0; i < 20000; i++) {
		bool odd = rng_below(&rng, 4) == 0;
		snprintf(line, sizeof line, "{\"id\":%d,\"op\":\"%s\"}", i, ops[rng_below(&rng, i % 100 ? 2 : 6)]);
		if (odd)
			line[rng_below(&rng, strlen(line))] = (char)(rng_below(&rng, 126) + 1);
		for (char *c = line; *c != '\0'; c++)
			*c = *c == '\n' || *c == '\r' ? ' ' : *c;
		json_t *reply = client_ask(fd, line);
		assert_non_null(reply);
		while (json_is_false(json_object_get(reply, "done"))) {
			json_decref(reply);
			reply = client_line(fd);
		}
		int code = error_code(reply);
		if (code != 0 && api_error_find(code)->closes) {
			client_end(fd);
			fd = client_pair();
		}
	}
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"health.live\"}")), 0);
	client_end(fd);
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(G1_G2__server_speaks_first_and_names_role_and_instance),
		cmocka_unit_test(G1__every_bad_line_gets_its_error_and_the_node_survives),
		cmocka_unit_test(G1__a_line_of_65536_bytes_is_read_and_one_more_is_refused),
		cmocka_unit_test(G1__requests_cut_at_every_byte_are_the_same_requests),
		cmocka_unit_test(G1__client_65_is_told_and_closed_and_its_place_is_free_again),
		cmocka_unit_test(G1__an_unfinished_line_and_an_idle_client_meet_their_limits),
		cmocka_unit_test(G1__a_client_that_does_not_read_is_dropped_and_delays_nobody),
		cmocka_unit_test(G5__a_repeated_nonce_returns_the_first_receipt),
		cmocka_unit_test(G5__the_same_nonce_while_it_runs_waits_for_the_one_receipt),
		cmocka_unit_test(G5__receipts_are_bounded_and_the_oldest_makes_room),
		cmocka_unit_test(FC65_FC67_M5__each_refusal_keeps_its_own_reason_and_figures),
		cmocka_unit_test(M4__every_failed_kind_has_a_numbered_error),
		cmocka_unit_test(x__list_pages_filters_and_reaches_every_spot_once),
		cmocka_unit_test(x__lane_top_ranks_by_items_or_bytes),
		cmocka_unit_test(L3__audit_waits_for_a_busy_data_plane_and_walks_the_lanes),
		cmocka_unit_test(G4__watch_gives_events_and_says_what_it_missed),
		cmocka_unit_test(G4__watch_shows_drops_by_reason_as_they_change),
		cmocka_unit_test(G1_H3__stop_is_answered_when_the_server_goes),
		cmocka_unit_test(G2__roles_come_from_the_peer_and_gate_each_op),
		cmocka_unit_test(FC110__many_requests_odd_ones_included_leave_the_server_answering),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
