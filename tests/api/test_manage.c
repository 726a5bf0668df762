// SPDX-License-Identifier: BSD-3-Clause
// Audit, ceilings, nodes, roles of every op, and clients that behave badly.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/commands.h"
#include "api/errors.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "fake_node.h"
#include "server.h"

static json_t *result_of(int fd, const char *line)
{
	json_t *reply = client_ask(fd, line);
	json_t *result = json_incref(json_object_get(reply, "result"));
	assert_non_null(result);
	json_decref(reply);
	return result;
}

static int64_t number_at(json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

static bool conserved(int fd)
{
	json_t *audit = result_of(fd, "{\"op\":\"stats.audit\"}");
	bool yes = json_is_true(json_object_get(audit, "conserved"));
	json_decref(audit);
	return yes;
}

static void M2_G4__audit_says_whether_every_accepted_message_is_accounted_for(void **state)
{
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	fake.audit.accepted = 100;
	fake.audit.delivered = 90;
	fake.audit.in_flight = 3;
	fake.audit.dropped = 7;
	fake.audit.dropped_by[RESULT_DEADLINE_EXCEEDED] = 5;
	fake.audit.dropped_by[RESULT_STALE_ROUTE] = 2;
	fake.audit.refused = 40; // never accepted: beside the sum
	assert_true(conserved(fd));
	json_t *audit = result_of(fd, "{\"op\":\"stats.audit\"}");
	json_t *by = json_object_get(audit, "dropped_by");
	assert_int_equal(number_at(by, "DeadlineExceeded"), 5);
	assert_int_equal(number_at(by, "StaleRoute"), 2);
	assert_int_equal(json_object_size(by), 2);
	json_decref(audit);
	uint64_t *const parts[] = {&fake.audit.accepted, &fake.audit.delivered, &fake.audit.in_flight,
		&fake.audit.dropped, &fake.audit.dropped_by[RESULT_CANCELLED]};
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		(*parts[i])++; // one lost, one twice, or one without a reason
		assert_false(conserved(fd));
		(*parts[i])--;
	}
	assert_true(conserved(fd));
	client_end(fd);
	server_stop();
}

static void N1_G3__status_shows_ceilings_and_the_headroom_below_them(void **state)
{
	(void)state;
	server_start(NULL);
	fake.health.spots_counted = 7;
	int fd = client_pair();
	json_t *status = result_of(fd, "{\"op\":\"status\"}");
	json_t *ceilings = json_object_get(status, "ceilings"), *spots = json_object_get(ceilings, "spots");
	assert_int_equal(number_at(spots, "counted"), 7);
	assert_null(json_object_get(spots, "headroom")); // no ceiling, no headroom
	json_t *type = json_array_get(json_object_get(ceilings, "types"), 0);
	assert_string_equal(json_string_value(json_object_get(type, "type")), "counter");
	assert_int_equal(number_at(type, "headroom"), 7);
	json_decref(status);
	fake.health.spots_max = 5; // lowered below what lives: none is left, not minus two
	status = result_of(fd, "{\"op\":\"status\"}");
	spots = json_object_get(json_object_get(status, "ceilings"), "spots");
	assert_int_equal(number_at(spots, "headroom"), 0);
	json_decref(status);
	client_end(fd);
	server_stop();
}

static void G3__nodes_are_listed_with_their_state(void **state)
{
	static const char *const states[] = {"member", "fenced", "left"};
	(void)state;
	server_start(NULL);
	fake.nodes[1].fenced = true;
	int fd = client_pair();
	json_t *list = result_of(fd, "{\"op\":\"node.list\"}"), *nodes = json_object_get(list, "nodes"), *node;
	size_t i;
	assert_int_equal(json_array_size(nodes), 3);
	json_array_foreach(nodes, i, node) {
		assert_string_equal(json_string_value(json_object_get(node, "state")), states[i]);
		assert_int_equal(json_is_true(json_object_get(node, "self")), i == 0);
		assert_int_equal(number_at(node, "beat"), 17);
	}
	json_decref(list);
	node = result_of(fd, "{\"op\":\"node.show\",\"args\":{\"node\":\"n2\"}}");
	assert_string_equal(json_string_value(json_object_get(node, "state")), "fenced");
	json_decref(node);
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"node.show\",\"args\":{\"node\":\"n9\"}}")),
		API_ERROR_NOT_FOUND);
	fake.list_outcome = STORE_UNREACHABLE;
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"node.list\"}")), API_ERROR_UNAVAILABLE);
	client_end(fd);
	server_stop();
}

static void O6_G5__fence_is_asked_once_and_says_what_it_released(void **state)
{
	static const char ask[] =
		"{\"op\":\"node.fence\",\"args\":{\"node\":\"n2\",\"nonce\":\"fence-0001\"}}";
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	json_t *first = result_of(fd, ask), *again = result_of(fd, ask);
	assert_true(json_is_true(json_object_get(first, "changed")));
	assert_int_equal(number_at(first, "spots_released"), 12);
	assert_true(json_equal(first, again));
	assert_int_equal(fake.fences, 1); // the repeat is the receipt
	json_decref(first);
	json_decref(again);
	fake.fence = (struct node_fence_report){.result = result_refused(RESULT_REJECTED, REASON_NONE),
		.text = "n2 counts as live: its beat stands still here for 3 s"};
	json_t *reply = client_ask(fd, "{\"op\":\"node.fence\",\"args\":{\"node\":\"n2\","
				       "\"nonce\":\"fence-0002\"}}");
	json_t *error = json_object_get(reply, "error");
	assert_non_null(strstr(json_string_value(json_object_get(error, "message")), "counts as live"));
	assert_int_equal(error_code(reply), API_ERROR_REJECTED);
	client_end(fd);
	server_stop();
}

static void O4_G3__a_listed_node_shows_how_long_its_beat_stood_still_here(void **state)
{
	(void)state;
	server_start(NULL);
	fake.peers = 2; // the third joined after the view
	int fd = client_pair();
	json_t *list = result_of(fd, "{\"op\":\"node.list\"}"), *nodes = json_object_get(list, "nodes");
	json_t *still = json_array_get(nodes, 1);
	assert_string_equal(json_string_value(json_object_get(still, "standing")), "still");
	assert_true(number_at(still, "still_ns") > number_at(still, "needed_ns"));
	assert_null(json_object_get(json_array_get(nodes, 2), "standing"));
	assert_int_equal(number_at(list, "view_age_ns"), 250000000);
	json_decref(list);
	client_end(fd);
	server_stop();
}

// ---- roles ----

static void line_of(const struct api_command *c, char *line, size_t size)
{
	size_t used = (size_t)snprintf(line, size, "{\"op\":\"%s\",\"args\":{", c->op);
	const char *comma = "";
	for (const struct api_arg *a = c->args; a->name != NULL; a++) {
		const char *value = strcmp(a->name, "nonce") == 0 ? c->op : "counter";
		if (!a->required)
			continue;
		used += (size_t)snprintf(line + used, size - used, "%s\"%s\":\"%s%s\"", comma, a->name, value,
			strcmp(a->name, "nonce") == 0 ? "-nonce" : "");
		comma = ",";
	}
	snprintf(line + used, size - used, "}}");
}

// A client whose role the table of rules gives, by its uid.
static int connect_as(enum api_role role)
{
	uid_t uid = geteuid() == 0 ? 4001 : geteuid(); // root is nobody's reader: be someone else then
	server.config.control.roles[0] =
		(struct config_role_rule){.uid = (int64_t)uid, .gid = -1, .role = (uint32_t)role};
	server.config.control.role_count = 1;
	bool root = geteuid() == 0;
	assert_true(!root || seteuid(uid) == 0);
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_true(!root || seteuid(0) == 0);
	api_adopt(server.api, fds[1]);
	server.bytes = 0;
	json_decref(client_line(fds[0]));
	return fds[0];
}

// Each op, as each role: refused exactly below the role of the one table, saying which one it needs.
static void each_op_as(enum api_role role)
{
	char line[512];
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		int fd = connect_as(role);
		if (c->id == API_COMMAND_STOP && role >= c->role) {
			client_end(fd);
			continue; // it answers when the server goes; tested elsewhere
		}
		line_of(c, line, sizeof line);
		json_t *reply = client_ask(fd, line), *error = json_object_get(reply, "error");
		bool denied = number_at(error, "code") == API_ERROR_NOT_PERMITTED;
		if (denied != (role < c->role))
			print_error("%s as %s\n", c->op, api_role_name(role));
		assert_int_equal(denied, role < c->role);
		if (denied) {
			json_t *detail = json_object_get(error, "detail");
			const char *message = json_string_value(json_object_get(error, "message"));
			assert_string_equal(
				json_string_value(json_object_get(detail, "needed")), api_role_name(c->role));
			assert_string_equal(
				json_string_value(json_object_get(detail, "role")), api_role_name(role));
			assert_non_null(strstr(message, api_role_name(c->role)));
			assert_non_null(strstr(message, "control.roles"));
		}
		json_decref(reply);
		client_end(fd);
	}
}

static void G2__each_op_asks_for_the_role_of_the_table(void **state)
{
	static const uid_t another = 4999; // else this very process administers
	(void)state;
	server.owner = &another;
	server_start(NULL);
	for (int role = API_ROLE_READ; role <= API_ROLE_ADMINISTER; role++)
		each_op_as((enum api_role)role);
	assert_int_equal(server.stops, 0);
	server_stop();
	server.owner = NULL;
}

static void G2__changes_are_never_open_to_readers(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < API_COMMAND_COUNT; i++) {
		const struct api_command *c = api_command_at(i);
		bool has_nonce = false;
		for (const struct api_arg *a = c->args; a->name != NULL; a++)
			has_nonce = has_nonce || (strcmp(a->name, "nonce") == 0 && a->required);
		if (c->class == API_CHANGE)
			assert_true(c->role > API_ROLE_READ);
		assert_int_equal(has_nonce, c->class == API_CHANGE); // G5: each of them repeatable
	}
}

// ---- clients that behave badly ----

static int open_files(void)
{
	int count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void G1__clients_that_leave_in_the_middle_leave_nothing_behind(void **state)
{
	static const char *const starts[] = {"", "{", "{\"op\":\"sta", "{\"op\":\"status\"}",
		"{\"op\":\"status\"}\n", "{\"op\":\"metrics\"}\n{\"op\":\"schema\"}\n{\"op",
		"{\"op\":\"watch\",\"args\":{\"drops\":true}}\n", "{\"op\":\"stats.audit\"}\n",
		"{\"op\":\"lane.top\"}\n", "\xff\xfe\x00\x01\n"};
	(void)state;
	server_start(NULL);
	int before = open_files();
	for (int i = 0; i < 500; i++) {
		const char *text = starts[(size_t)i % ARRAY_COUNT(starts)];
		int fd = client_connect();
		client_write(fd, text, strlen(text));
		for (int turns = 0; turns < i % 4; turns++)
			uv_run(&server.uv, UV_RUN_NOWAIT);
		if (i % 3 == 0) { // reset instead of an orderly end
			struct linger linger = {1, 0};
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
		}
		client_end(fd);
	}
	int fd = client_pair();
	json_t *status = result_of(fd, "{\"op\":\"status\"}");
	assert_int_equal(number_at(status, "clients"), 1);
	json_decref(status);
	client_end(fd);
	assert_int_equal(open_files(), before);
	server_stop();
}

static void G1__binary_of_any_kind_is_refused_and_harms_nothing(void **state)
{
	struct rng rng;
	char noise[4096];
	(void)state;
	rng_seed(&rng, 7);
	server_start(NULL);
	for (int round = 0; round < 300; round++) {
		int fd = client_pair();
		size_t size = 1 + rng_below(&rng, sizeof noise - 1);
		for (size_t i = 0; i < size; i++)
			noise[i] = (char)rng_below(&rng, 256);
		noise[size - 1] = '\n';
		client_write(fd, noise, size);
		json_t *reply;
		while ((reply = client_line(fd)) != NULL) { // each line its error, until one closes
			int code = error_code(reply);
			assert_int_not_equal(code, 0);
			if (api_error_find(code)->closes)
				break;
		}
		client_end(fd);
	}
	int fd = client_pair();
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"health.live\"}")), 0);
	client_end(fd);
	server_stop();
}

static void G1__nesting_of_any_depth_costs_no_stack(void **state)
{
	static char line[65536];
	(void)state;
	server_start(NULL);
	for (size_t depth = 9; depth < sizeof line - 20; depth *= 3) {
		int fd = client_pair();
		memcpy(line, "{\"args\":", 8);
		memset(line + 8, depth % 2 ? '[' : '{', depth);
		line[8 + depth] = '\n';
		client_write(fd, line, depth + 9);
		assert_int_equal(error_code(client_line(fd)), API_ERROR_TOO_DEEP);
		assert_int_equal(error_code(client_ask(fd, "{\"op\":\"health.live\"}")), 0);
		client_end(fd);
	}
	server_stop();
}

static void G1__without_descriptors_the_listener_recovers(void **state)
{
	struct rlimit old, tight;
	int fds[8];
	(void)state;
	server_start(NULL);
	int held = client_pair();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	tight = old;
	tight.rlim_cur = (rlim_t)fds[ARRAY_COUNT(fds) - 1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, server.config.control.socket);
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		(void)!connect(fds[i], (struct sockaddr *)&address, sizeof address);
	for (int i = 0; i < 20; i++)
		assert_int_equal(error_code(client_ask(held, "{\"op\":\"health.live\"}")), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		close(fds[i]);
	client_end(held);
	int fd = client_connect();
	json_decref(client_line(fd));
	assert_int_equal(error_code(client_ask(fd, "{\"op\":\"health.live\"}")), 0);
	client_end(fd);
	server_stop();
}

static void G4__a_watcher_that_never_reads_delays_no_event_of_others(void **state)
{
	struct node_event event = {.kind = NODE_EVENT_ACTIVATED, .id = span_of("car-1", 5)};
	(void)state;
	server_start(&(struct api_limits){.queue_bytes_max = 64 * 1024});
	int slow = client_pair();
	client_write(slow, "{\"op\":\"watch\"}\n", 15);
	for (int i = 0; i < 5; i++)
		uv_run(&server.uv, UV_RUN_NOWAIT);
	int quick = client_pair();
	json_decref(client_ask(quick, "{\"op\":\"watch\"}"));
	for (int i = 0; i < 20000; i++) {
		api_event(server.api, &event);
		json_t *line = client_line(quick);
		assert_string_equal(
			json_string_value(json_object_get(json_object_get(line, "event"), "kind")), "activated");
		json_decref(line);
	}
	// The slow one now reads: what it has, then how many it missed, and together they are all.
	server.bytes = 0;
	uint64_t seen = 0, missed = 0;
	while (seen + missed < 20000) {
		json_t *line = client_line(slow), *e = json_object_get(line, "event");
		const char *kind = json_string_value(json_object_get(e, "kind"));
		if (kind == NULL || strcmp(kind, "watching") == 0)
			seen += 0; // hello was taken; the first line of the watch itself
		else if (strcmp(kind, "missed") == 0)
			missed += (uint64_t)number_at(e, "missed");
		else
			seen++;
		json_decref(line);
	}
	assert_int_equal(seen + missed, 20000);
	assert_true(missed > 0);
	client_end(slow);
	client_end(quick);
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(M2_G4__audit_says_whether_every_accepted_message_is_accounted_for),
		cmocka_unit_test(N1_G3__status_shows_ceilings_and_the_headroom_below_them),
		cmocka_unit_test(G3__nodes_are_listed_with_their_state),
		cmocka_unit_test(O6_G5__fence_is_asked_once_and_says_what_it_released),
		cmocka_unit_test(O4_G3__a_listed_node_shows_how_long_its_beat_stood_still_here),
		cmocka_unit_test(G2__each_op_asks_for_the_role_of_the_table),
		cmocka_unit_test(G2__changes_are_never_open_to_readers),
		cmocka_unit_test(G1__clients_that_leave_in_the_middle_leave_nothing_behind),
		cmocka_unit_test(G1__binary_of_any_kind_is_refused_and_harms_nothing),
		cmocka_unit_test(G1__nesting_of_any_depth_costs_no_stack),
		cmocka_unit_test(G1__without_descriptors_the_listener_recovers),
		cmocka_unit_test(G4__a_watcher_that_never_reads_delays_no_event_of_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
