// SPDX-License-Identifier: BSD-3-Clause
// Metrics over socket and HTTP, and health, with a node made of tables.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
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
#include "api/http.h"
#include "base/compiler.h"
#include "fake_node.h"
#include "server.h"
#include "wire/wire.h"

// ---- a strict reader of the text form ----

enum { SERIES_MAX = 8192, FAMILIES_MAX = 512 };
struct family {
	char name[96];
	char type[16];
	bool has_help;
};
static struct {
	struct family families[FAMILIES_MAX];
	uint32_t family_count;
	char *series[SERIES_MAX];
	double values[SERIES_MAX];
	uint32_t count;
} page;

static void page_clear(void)
{
	for (uint32_t i = 0; i < page.count; i++)
		free(page.series[i]);
	memset(&page, 0, sizeof page);
}

static bool is_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool letter = (text[i] >= 'a' && text[i] <= 'z') || text[i] == '_';
		if (!letter && !(i > 0 && text[i] >= '0' && text[i] <= '9'))
			return false;
	}
	return size > 0;
}

static bool ends(const char *text, size_t size, const char *end)
{
	size_t n = strlen(end);
	return size >= n && memcmp(text + size - n, end, n) == 0;
}

// HELP, then TYPE, then samples, and a family only once.
static void read_comment(const char *line)
{
	char what[8], name[96], rest[256];
	assert_int_equal(sscanf(line, "# %7s %95s %255[^\n]", what, name, rest), 3);
	assert_true(is_name(name, strlen(name)));
	assert_memory_equal(name, "spotlane_", 9);
	struct family *last = &page.families[page.family_count - (page.family_count > 0)];
	if (strcmp(what, "HELP") == 0) {
		for (uint32_t i = 0; i < page.family_count; i++)
			assert_string_not_equal(page.families[i].name, name);
		assert_true(page.family_count < FAMILIES_MAX);
		last = &page.families[page.family_count++];
		snprintf(last->name, sizeof last->name, "%s", name);
		last->has_help = true;
		return;
	}
	assert_string_equal(what, "TYPE");
	assert_string_equal(last->name, name);
	assert_string_equal(last->type, "");
	assert_true(strcmp(rest, "counter") == 0 || strcmp(rest, "gauge") == 0 || strcmp(rest, "histogram") == 0);
	snprintf(last->type, sizeof last->type, "%.15s", rest);
	size_t size = strlen(name);
	// A counter ends in _total and nothing else does; a unit is a base unit.
	assert_int_equal(strcmp(rest, "counter") == 0, ends(name, size, "_total"));
	assert_false(ends(name, size, "_ns") || ends(name, size, "_ms") || ends(name, size, "_us"));
}

static const char *read_labels(const char *at)
{
	for (at++; *at != '}';) {
		const char *equals = strchr(at, '=');
		assert_non_null(equals);
		assert_true(is_name(at, (size_t)(equals - at)));
		assert_int_equal(equals[1], '"');
		for (at = equals + 2; *at != '"'; at++) {
			assert_true(*at != '\0' && *at != '\n');
			at += *at == '\\';
		}
		at++;
		assert_true(*at == ',' || *at == '}');
		at += *at == ',';
	}
	return at + 1;
}

static void read_sample(const char *line)
{
	size_t size = strcspn(line, "{ ");
	const struct family *family = &page.families[page.family_count - 1];
	size_t own = strlen(family->name);
	assert_true(page.family_count > 0);
	assert_string_not_equal(family->type, "");
	assert_true(is_name(line, size));
	assert_true(size >= own && memcmp(line, family->name, own) == 0);
	if (size > own) {
		assert_string_equal(family->type, "histogram");
		assert_true(ends(line, size, "_bucket") || ends(line, size, "_sum") || ends(line, size, "_count"));
	}
	const char *at = line + size, *labels_end = at;
	if (*at == '{')
		labels_end = read_labels(at);
	assert_int_equal(*labels_end, ' ');
	char *end;
	double number = strtod(labels_end + 1, &end);
	assert_int_equal(*end, '\0');
	char *series = strndup(line, (size_t)(labels_end - line));
	for (uint32_t i = 0; i < page.count; i++)
		assert_string_not_equal(page.series[i], series); // FC97: none twice
	assert_true(page.count < SERIES_MAX);
	page.values[page.count] = number;
	page.series[page.count++] = series;
}

static void read_page(const char *text)
{
	char line[512];
	page_clear();
	assert_true(ends(text, strlen(text), "\n"));
	while (*text != '\0') {
		size_t size = strcspn(text, "\n");
		assert_true(size > 0 && size < sizeof line);
		memcpy(line, text, size);
		line[size] = '\0';
		text += size + 1;
		if (line[0] == '#')
			read_comment(line);
		else
			read_sample(line);
	}
}

static double value_of(const char *series)
{
	for (uint32_t i = 0; i < page.count; i++) {
		if (strcmp(page.series[i], series) == 0)
			return page.values[i];
	}
	fail_msg("no series %s", series);
	return 0;
}

static char *socket_page(int fd)
{
	static char text[1024 * 1024];
	size_t used = 0;
	json_t *reply = client_ask(fd, "{\"op\":\"metrics\"}");
	for (; json_is_false(json_object_get(reply, "done")); reply = client_line(fd)) {
		const char *part = json_string_value(json_object_get(json_object_get(reply, "part"), "text"));
		used += (size_t)snprintf(text + used, sizeof text - used, "%s", part);
		json_decref(reply);
	}
	assert_int_equal(error_code(reply), 0);
	return text;
}

// ---- HTTP ----

static void listen_anywhere(void)
{
	server.listen = (struct config_endpoint){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
		.text = "127.0.0.1:0"};
}

static int http_connect(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(api_http_port(server.api)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
	uv_run(&server.uv, UV_RUN_NOWAIT);
	return fd;
}

// Sends the request and reads to the end of the connection; the status, *out_body in a static buffer.
static int http_ask(const char *request, const char **out_body)
{
	static char text[1024 * 1024];
	size_t used = 0;
	int fd = http_connect();
	client_write(fd, request, strlen(request));
	for (ssize_t n = -1; n != 0;) {
		client_wait(fd, POLLIN);
		n = read(fd, text + used, sizeof text - 1 - used);
		if (n < 0 && errno == ECONNRESET)
			break;
		assert_true(n >= 0);
		used += (size_t)n;
	}
	close(fd);
	text[used] = '\0';
	char *body = strstr(text, "\r\n\r\n");
	if (out_body != NULL)
		*out_body = body != NULL ? body + 4 : "";
	return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// ---- tests ----

static void G4_FC97__every_line_parses_and_no_series_comes_twice(void **state)
{
	(void)state;
	server_start(NULL);
	fake.counters[1].refusals[REASON_APPLICATION_LANE_BYTES] = 7;
	fake.counters[0].refusals[REASON_APPLICATION_LANE_BYTES] = 5;
	fake.counters[0].drops[RESULT_DEADLINE_EXCEEDED] = 3;
	fake.counters[1].turn_ns_total = 1500000000;
	fake.status.clock_skew_to_store_ns = -250000000;
	fake.health.activation_time.buckets[2] = 4;
	fake.health.activation_time.count = 4;
	fake.health.activation_time.sum_ns = 2000000;
	server.store_meter.outcomes[STORE_NODE_RENEW][STORE_DONE] = 11;
	int fd = client_pair();
	read_page(socket_page(fd));
	assert_true(value_of("spotlane_refusals_total{reason=\"ApplicationLaneBytes\"}") == 12);
	assert_true(value_of("spotlane_drops_total{result=\"DeadlineExceeded\"}") == 3);
	assert_true(value_of("spotlane_turn_seconds_total{worker=\"1\"}") == 1.5);
	assert_true(value_of("spotlane_lease_remaining_seconds") == 9);
	assert_true(value_of("spotlane_clock_skew_to_store_seconds") == -0.25);
	assert_true(value_of("spotlane_process_inbound_bytes") == 4096);
	assert_true(value_of("spotlane_activation_seconds_bucket{le=\"0.00025\"}") == 0);
	assert_true(value_of("spotlane_activation_seconds_bucket{le=\"0.0005\"}") == 4);
	assert_true(value_of("spotlane_activation_seconds_bucket{le=\"+Inf\"}") == 4);
	assert_true(value_of("spotlane_activation_seconds_sum") == 0.002);
	assert_true(value_of("spotlane_store_operations_total{operation=\"node.renew\",outcome=\"done\"}") == 11);
	assert_true(value_of("spotlane_fabric_rx_frames_total{fabric=\"f0\"}") == 21);
	assert_true(value_of("spotlane_node_state{state=\"serving\"}") == 1);
	// The second reading counts the first.
	read_page(socket_page(fd));
	assert_true(value_of("spotlane_control_requests_total{op=\"metrics\",result=\"ok\"}") == 1);
	client_end(fd);
	page_clear();
	server_stop();
}

static void G4__every_reason_has_its_series_from_the_start(void **state)
{
	char series[128];
	(void)state;
	server_start(NULL);
	int fd = client_pair();
	read_page(socket_page(fd));
	for (int i = 0; i < 64; i++) {
		const char *name = result_reason_name((uint8_t)i);
		snprintf(series, sizeof series, "spotlane_refusals_total{reason=\"%s\"}", name);
		if (name != NULL)
			assert_true(value_of(series) == 0);
	}
	for (int i = 1; i < 32; i++) {
		const char *name = wire_reject_name((enum wire_reject)i);
		snprintf(series, sizeof series, "spotlane_rejects_total{reason=\"%s\"}", name);
		if (name != NULL)
			assert_true(value_of(series) == 0);
	}
	for (int i = RESULT_NOT_FOUND; i <= RESULT_UNSUPPORTED; i++) {
		snprintf(series, sizeof series, "spotlane_drops_total{result=\"%s\"}", result_kind_name((uint8_t)i));
		assert_true(value_of(series) == 0);
	}
#define X(name, text)                                                                              \
	assert_true(value_of("spotlane_" #name "_total{worker=\"0\"}") == 0);                      \
	assert_true(value_of("spotlane_" #name "_total{worker=\"1\"}") == 0);
	DP_COUNTERS(X)
#undef X
	client_end(fd);
	page_clear();
	server_stop();
}

static void G4__the_page_is_as_long_for_100000_spots_as_for_1000(void **state)
{
	uint32_t series[2], i = 0;
	(void)state;
	for (uint32_t spots = 1000; spots <= 100000; spots *= 100, i++) {
		server_start(NULL);
		fake_reset(spots);
		fake.status.spots_live[SPOT_KIND_INSTANCE] = spots;
		int fd = client_pair();
		char *text = socket_page(fd);
		read_page(text);
		assert_true(value_of("spotlane_spots{kind=\"instance\"}") == spots);
		assert_null(strstr(text, "spot-1"));
		series[i] = page.count;
		assert_int_equal(fake.walked, 0); // no Spot was looked at
		client_end(fd);
		server_stop();
	}
	assert_int_equal(series[0], series[1]);
	page_clear();
}

static void G4__the_listener_gives_the_same_page_and_nothing_else(void **state)
{
	const char *body;
	(void)state;
	listen_anywhere();
	server_start(NULL);
	assert_int_equal(http_ask(GET("/metrics"), &body), 200);
	read_page(body);
	uint32_t series = page.count;
	int fd = client_pair();
	read_page(socket_page(fd));
	assert_int_equal(page.count, series);
	assert_true(value_of("spotlane_http_requests_total{page=\"metrics\"}") == 1);
	client_end(fd);
	assert_int_equal(http_ask(GET("/"), NULL), 404);
	assert_int_equal(http_ask(GET("/metrics/../live"), NULL), 404);
	assert_int_equal(http_ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &body), 200);
	assert_string_equal(body, "");
	assert_int_equal(http_ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
				  "Connection: close\r\n\r\nabc", NULL), 405);
	page_clear();
	server_stop();
	server.listen = (struct config_endpoint){0};
}

static void G4_FC110__odd_http_input_and_slow_readers_hold_nothing_up(void **state)
{
	static char long_line[64 * 1024];
	int idle[20];
	(void)state;
	listen_anywhere();
	server_start(NULL);
	memset(long_line, 'a', sizeof long_line - 1);
	assert_true(http_ask("\x01\x02\xff\r\n\r\n", NULL) != 200);
	assert_true(http_ask("GET\r\n\r\n", NULL) != 200);
	assert_true(http_ask(long_line, NULL) != 200);
	for (size_t i = 0; i < ARRAY_COUNT(idle); i++) { // more than the listener takes
		idle[i] = http_connect();
		client_write(idle[i], GET("/metrics"), i % 2 == 0 ? 10 : strlen(GET("/metrics")));
	}
	int fd = client_pair(); // the control socket does not notice
	for (int i = 0; i < 100; i++)
		assert_int_equal(error_code(client_ask(fd, "{\"op\":\"health.live\"}")), 0);
	for (size_t i = 0; i < ARRAY_COUNT(idle); i++)
		close(idle[i]); // the even ones in the middle of their request
	assert_int_equal(http_ask(GET("/live"), NULL), 200);
	client_end(fd);
	server_stop(); // with nothing of it left open: the loop closes
	server.listen = (struct config_endpoint){0};
}

static void G4__a_taken_address_refuses_the_start_and_names_it(void **state)
{
	char why[256];
	(void)state;
	listen_anywhere();
	server_start(NULL);
	uint16_t port = api_http_port(server.api);
	struct api *first = server.api;
	struct config config = server.config;
	snprintf(server.config.control.socket, sizeof server.config.control.socket, "%s/t", server.folder);
	server.config.metrics.listen.port = port;
	assert_false(server_try(why, sizeof why));
	assert_non_null(strstr(why, "metrics.listen: cannot listen on 127.0.0.1:0: Address already in use"));
	uv_run(&server.uv, UV_RUN_NOWAIT); // what was begun is closed
	char lock[160];
	snprintf(lock, sizeof lock, "%s/t.lock", server.folder);
	unlink(lock);
	server.api = first;
	server.config = config;
	server_stop();
	server.listen = (struct config_endpoint){0};
}

static json_t *ready_body(int fd)
{
	json_t *reply = client_ask(fd, "{\"op\":\"health.ready\"}");
	json_t *body = json_incref(json_object_get(reply, "result"));
	json_decref(reply);
	return body;
}

static void FC94_FC95_FC103__ready_names_each_part_that_fails(void **state)
{
	static const char *const whys[] = {
		NULL, "the node is", "lease", "store", "worker 1 has not turned over", "5000 closings"};
	const char *text;
	json_error_t error;
	(void)state;
	listen_anywhere();
	server_start(NULL);
	int fd = client_pair();
	json_t *body = ready_body(fd);
	assert_true(json_is_true(json_object_get(body, "yes")));
	assert_int_equal(json_array_size(json_object_get(body, "failing")), 0);
	assert_non_null(json_object_get(body, "instance"));
	json_decref(body);
	assert_int_equal(http_ask(GET("/ready"), NULL), 200);
	fake.health.workers_stalled = 2;
	fake.health.close_backlog = 5000;
	for (uint32_t part = NODE_READY_STATE; part < NODE_READY_PART_END; part++) {
		fake.health.failing = 1u << part;
		body = ready_body(fd);
		assert_false(json_is_true(json_object_get(body, "yes")));
		json_t *failing = json_object_get(body, "failing"), *why = json_object_get(body, "why");
		assert_int_equal(json_array_size(failing), 1);
		assert_string_equal(json_string_value(json_array_get(failing, 0)),
			node_ready_name((enum node_ready_part)part));
		assert_non_null(strstr(json_string_value(json_array_get(why, 0)), whys[part]));
		// The listener says the same, with the status that probes look at.
		assert_int_equal(http_ask(GET("/ready"), &text), 503);
		json_t *other = json_loads(text, 0, &error);
		assert_true(json_equal(other, body));
		json_decref(other);
		json_decref(body);
		assert_int_equal(http_ask(GET("/live"), NULL), 200);
	}
	fake.status.state = NODE_ERROR;
	assert_int_equal(http_ask(GET("/live"), NULL), 503);
	client_end(fd);
	server_stop();
	server.listen = (struct config_endpoint){0};
}

static void FC98__stats_at_any_rate_only_read_counters(void **state)
{
	struct dp_counters before[2];
	(void)state;
	server_start(NULL);
	fake_reset(1000);
	memcpy(before, fake.counters, sizeof before);
	int fd = client_pair();
	for (int i = 0; i < 50; i++) {
		json_t *reply = client_ask(fd, "{\"op\":\"stats.show\"}");
		while (json_is_false(json_object_get(reply, "done"))) {
			json_decref(reply);
			reply = client_line(fd);
		}
		assert_int_equal(error_code(reply), 0);
		socket_page(fd);
		assert_int_equal(error_code(client_ask(fd, "{\"op\":\"status\"}")), 0);
	}
	assert_int_equal(fake.walked, 0);
	assert_memory_equal(before, fake.counters, sizeof before);
	client_end(fd);
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(G4_FC97__every_line_parses_and_no_series_comes_twice),
		cmocka_unit_test(G4__every_reason_has_its_series_from_the_start),
		cmocka_unit_test(G4__the_page_is_as_long_for_100000_spots_as_for_1000),
		cmocka_unit_test(G4__the_listener_gives_the_same_page_and_nothing_else),
		cmocka_unit_test(G4_FC110__odd_http_input_and_slow_readers_hold_nothing_up),
		cmocka_unit_test(G4__a_taken_address_refuses_the_start_and_names_it),
		cmocka_unit_test(FC94_FC95_FC103__ready_names_each_part_that_fails),
		cmocka_unit_test(FC98__stats_at_any_rate_only_read_counters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
