// SPDX-License-Identifier: BSD-3-Clause
// Configuration: what is accepted, and the exact words with which the rest is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/nearest.h"
#include "config/schema.h"
#include "config/units.h"

static struct config config;
static struct config_report report;

#define MINIMAL "node: {id: a}\ninsecure: yes\nfabrics: [{kind: udp, listen: 127.0.0.1:7700}]\n"
#define REST "\nnode: {id: a}\nfabrics: [{kind: udp, listen: 127.0.0.1:7700}]\n"

static enum config_status parse(const char *text)
{
	return config_parse_buffer("f.yaml", text, strlen(text), &config, &report);
}

static void take(const char *text)
{
	enum config_status status = parse(text);
	if (status != CONFIG_ACCEPTED)
		print_error("refused: %s\n", report.error);
	assert_int_equal(status, CONFIG_ACCEPTED);
	assert_string_equal(report.error, "");
}

static void refuse(const char *text, const char *message)
{
	if (parse(text) == CONFIG_ACCEPTED) {
		config_fini(&config);
		fail_msg("accepted: %s", text);
	}
	assert_string_equal(report.error, message);
}

static void x__defaults_are_those_of_the_rules(void **state)
{
	(void)state;
	take(MINIMAL);
	assert_int_equal(report.warning_count, 0);
	assert_int_equal(config.limits.application_lane.count, 1024); // L1
	assert_int_equal(config.limits.application_lane.bytes, 64 << 20);
	assert_int_equal(config.limits.lifecycle_lane.count, 128);
	assert_int_equal(config.limits.lifecycle_lane.bytes, 4 << 20);
	assert_int_equal(config.limits.process_inbound_bytes, 256 << 20); // P1
	assert_int_equal(config.limits.parked, 65536);                    // A10
	assert_int_equal(config.limits.pending_resolves, 4096);
	assert_int_equal(config.limits.activations, 128);
	assert_int_equal(config.limits.activations_waiting, 16384);
	assert_int_equal(config.limits.message_bytes, 16 << 20); // M8
	assert_int_equal(config.limits.peer_reassembly_bytes, 32 << 20);
	assert_int_equal(config.limits.accounting, CONFIG_ACCOUNTING_MEASURED);
	assert_int_equal(config.turn_budget_us, 10000); // X4
	assert_int_equal(config.lease.ttl_ms, 15000);   // O1
	assert_int_equal(config.lease.renew_ms, 5000);
	assert_int_equal(config.lease.timeout_ms, 3000);
	assert_int_equal(config.lease.margin_ms, 5000);
	assert_int_equal(config.drain_deadline_ms, 30000); // H2
	assert_int_equal(config.control.mode, 0660);       // G2
	assert_int_equal(config.workers.count, 1);
	assert_string_equal(config.fabrics[0].name, "udp0");
	assert_int_equal(config.fabrics[0].listen.port, 7700);
	config_fini(&config);
}

static void x__every_kind_of_value_arrives(void **state)
{
	(void)state;
	take("node: {id: n1, entry_prefix: p, entry_type: desk}\n"
	       "insecure: true\n"
	       "workers: {cores: [2, 3], idle: spin}\n"
	       "fabrics:\n"
	       "  - {kind: dpdk, pci: '0000:03:00.0', addresses: [10.99.0.1/24, fd00::1/64], port: 99,\n"
	       "     gateway4: 10.99.0.254, gateway6: fd00::ff, vlan: 7, name: up}\n"
	       "  - {kind: udp, listen: '[::1]:0'}\n"
	       "eal: {hugepages: no, memory: 64MiB, file_prefix: x, extra: [--log-level=8]}\n"
	       "turn_budget: 250us\ndefault_budget: 2min\n"
	       "control: {mode: 0600, roles: [{uid: 7, role: operate}, {gid: 8, role: read}]}\n"
	       "modules:\n  - path: /m/a.so\n    types:\n      t: {config: {a: 1, b: [x, 'yes', true, -3, 1.5]}}\n"
	       "      u: {}\n"
	       "log: {level: debug, file: /tmp/l}\n");
	assert_int_equal(config.workers.count, 2);
	assert_int_equal(config.workers.cores[1], 3);
	const struct config_fabric *f = &config.fabrics[0];
	assert_int_equal(f->address_count, 2);
	assert_int_equal(f->addresses[0].prefix_bits, 24);
	assert_int_equal(f->addresses[0].ip[12], 10);
	assert_int_equal(f->addresses[0].ip[10], 0xff);
	assert_true(f->addresses[1].is_ipv6);
	assert_string_equal(f->gateway6, "fd00::ff");
	assert_int_equal(f->vlan, 7);
	assert_true(config.fabrics[1].listen.is_ipv6);
	assert_string_equal(config.fabrics[1].name, "udp1");
	assert_int_equal(config.eal.hugepages, CONFIG_HUGEPAGES_NO);
	assert_string_equal(config.eal.extra[0], "--log-level=8");
	assert_int_equal(config.turn_budget_us, 250);
	assert_int_equal(config.default_budget_ms, 120000);
	assert_int_equal(config.control.mode, 0600);
	assert_int_equal(config.control.roles[0].uid, 7);
	assert_int_equal(config.control.roles[0].gid, -1);
	assert_int_equal(config.control.roles[1].role, CONFIG_ROLE_READ);
	assert_string_equal(config.modules[0].types[0].json, "{\"a\":1,\"b\":[\"x\",\"yes\",true,-3,1.5]}");
	assert_string_equal(config.modules[0].types[1].json, "{}");
	config_fini(&config);
}

static const struct {
	const char *text, *message;
} unknown_keys[] = {
	{"fabrcs: []\n", "f.yaml:1:1: fabrcs: unknown key; did you mean \"fabrics\"?"},
	{"node:\n  id: a\n  entry_tpye: x\n",
		"f.yaml:3:3: node.entry_tpye: unknown key; did you mean \"entry_type\"?"},
	{"limits:\n  application_lane:\n    byte: 1MiB\n",
		"f.yaml:3:5: limits.application_lane.byte: unknown key; did you mean \"bytes\"?"},
	{"limits: {application_lan: {}}\n",
		"f.yaml:1:10: limits.application_lan: unknown key; did you mean \"application_lane\"?"},
	{"fabrics:\n- kind: udp\n  lisen: 127.0.0.1:1\n",
		"f.yaml:3:3: fabrics[0].lisen: unknown key; did you mean \"listen\"?"},
	{"control: {roles: [{uid: 1, rolle: read}]}\n",
		"f.yaml:1:28: control.roles[0].rolle: unknown key; did you mean \"role\"?"},
	{"modules: [{path: /a, types: {t: {lifecycle_lan: {}}}}]\n",
		"f.yaml:1:34: modules[0].types.t.lifecycle_lan: unknown key; did you mean "
		"\"lifecycle_lane\"?"},
	{"modules: [{path: /a, types: {t: {application_lane: {size: 1}}}}]\n",
		"f.yaml:1:53: modules[0].types.t.application_lane.size: unknown key; valid here: count, bytes"},
	{"modules: [{path: /a, types: {t: {idle_timeout: soon}}}]\n",
		"f.yaml:1:48: modules[0].types.t.idle_timeout: \"soon\" is not a time such as 15s (us, ms, s, "
		"min, h)"},
	{"instance_idle_timeout: -1s\n", // C1
		"f.yaml:1:24: instance_idle_timeout: \"-1s\" is not a time such as 15s (us, ms, s, min, h)"},
	{"modules: [{path: /a, types: {t: {cfg: {}}}}]\n",
		"f.yaml:1:34: modules[0].types.t.cfg: unknown key; did you mean \"config\"?"},
	{"hugepages: yes\n", "f.yaml:1:1: hugepages: unknown key; did you mean \"eal.hugepages\"?"},
	{"limits.message: 1MiB\n",
		"f.yaml:1:1: limits.message: unknown key; valid here: node, insecure, workers, fabrics, eal, "
		"limits, turn_budget, default_budget, offload, lease, drain_deadline, closing_limit, "
		"instance_idle_timeout, instance_idle_interval, store, control, metrics, modules, log"},
	{"lease:\n  xyzzyplugh: 1s\n",
		"f.yaml:2:3: lease.xyzzyplugh: unknown key; valid here: ttl, renew, timeout, margin, "
		"fence_after"},
};

static void FC116__unknown_key_is_refused_with_place_and_nearest(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(unknown_keys); i++)
		refuse(unknown_keys[i].text, unknown_keys[i].message);
}

static const struct {
	const char *text, *message;
} bad_values[] = {
	{"", "f.yaml:1:1: node.id: missing and has no default"},
	{"node: {id: a}\n", "f.yaml:1:1: fabrics: missing and has no default; name at least one"},
	{"node: {id: a}\nnode: {id: b}\n", "f.yaml:2:1: node: repeated key, first given in line 1"},
	{"a: b: c\n", "f.yaml:1:5: not well-formed YAML: mapping values are not allowed in this context"},
	{"- a\n", "f.yaml:1:1: the file must be a map of keys"},
	{"node: 1\n", "f.yaml:1:7: node: a map is needed"},
	{"node: {id: }\n", "f.yaml:1:8: node.id: needs a value"},
	{"node: {id: [a]}\n", "f.yaml:1:12: node.id: a single value is needed"},
	{"node: {id: ''}\n", "f.yaml:1:12: node.id: a text of 0 bytes: 1 to 64 are allowed"},
	{"node: &a {id: x}\n", "f.yaml:1:7: anchors and tags are not used here"},
	{"node: *a\n", "f.yaml:1:7: aliases are not used here"},
	{"---\nnode: {id: a}\n---\n", "f.yaml:3:1: a second document in the file"},
	{"insecure: maybe\n", "f.yaml:1:11: insecure: \"maybe\" is neither yes nor no"},
	{"limits: {message: 16MB}\n",
		"f.yaml:1:19: limits.message: \"16MB\" has no known unit: write a size such as 64MiB (B, KiB, MiB, "
		"GiB, TiB)"},
	{"limits: {message: 16}\n",
		"f.yaml:1:19: limits.message: \"16\" has no known unit: write a size such as 64MiB (B, KiB, MiB, "
		"GiB, TiB)"},
	{"limits: {message: 64MiB}\n",
		"f.yaml:1:19: limits.message: \"64MiB\" is out of range: 1KiB to 31MiB"},
	{"limits: {message: 99999999999999999999B}\n",
		"f.yaml:1:19: limits.message: \"99999999999999999999B\" is too large"},
	{"limits: {parked: -1}\n", "f.yaml:1:18: limits.parked: \"-1\" is not a whole number"},
	{"limits: {parked: 0}\n", "f.yaml:1:18: limits.parked: \"0\" is out of range: 1 to 16777216"},
	{"limits: {accounting: exact}\n",
		"f.yaml:1:22: limits.accounting: \"exact\" is none of measured, fixed"},
	{"lease: {ttl: 15}\n",
		"f.yaml:1:14: lease.ttl: \"15\" has no known unit: write a time such as 15s (us, ms, s, min, h)"},
	{"lease: {ttl: 1500us}\n", "f.yaml:1:14: lease.ttl: \"1500us\" is finer than 1ms"},
	{"lease: {ttl: fast}\n",
		"f.yaml:1:14: lease.ttl: \"fast\" is not a time such as 15s (us, ms, s, min, h)"},
	{"control: {mode: 0888}\n", "f.yaml:1:17: control.mode: \"0888\" is not a file mode such as 0660 (octal)"},
	{"control: {mode: 1777}\n", "f.yaml:1:17: control.mode: \"1777\" is out of range: 00 to 0777"},
	{"workers: {cores: [1, 1]}\n", "f.yaml:1:22: workers.cores[1]: core 1 is named twice"},
	{"workers: {cores: 1}\n", "f.yaml:1:18: workers.cores: a list is needed"},
	{"workers: {cores: [1], count: 2}" REST, "f.yaml:1:23: workers.count: 2, but workers.cores names 1"},
	{"fabrics: {kind: udp}\n", "f.yaml:1:10: fabrics: a list of maps is needed"},
	{"node: {id: a}\nfabrics: [{listen: '127.0.0.1:1'}]\n",
		"f.yaml:2:11: fabrics[0]: \"kind\" is missing and has no default"},
	{"node: {id: a}\nfabrics: [{kind: udp}]\n", "f.yaml:2:11: fabrics[0]: a udp fabric needs \"listen\""},
	{"node: {id: a}\nfabrics: [{kind: udp, listen: '127.0.0.1:1', vlan: 3}]\n",
		"f.yaml:2:46: fabrics[0].vlan: not for a udp fabric"},
	{"node: {id: a}\nfabrics: [{kind: dpdk, vdev: net_null0, pci: '0000:01:00.0'}]\n",
		"f.yaml:2:11: fabrics[0]: a dpdk fabric needs exactly one of vdev, pci, iface"},
	{"node: {id: a}\nfabrics: [{kind: dpdk, pci: '0000:0x:00.0', addresses: [1.2.3.4/8]}]\n",
		"f.yaml:2:24: fabrics[0].pci: not a PCI address such as 0000:03:00.0"},
	{"node: {id: a}\nfabrics: [{kind: dpdk, vdev: net_null0}]\n",
		"f.yaml:2:11: fabrics[0]: a dpdk fabric needs \"addresses\""},
	{"fabrics: [{kind: dpdk, addresses: [10.0.0.1]}]\n",
		"f.yaml:1:36: fabrics[0].addresses[0]: \"10.0.0.1\" is not an address and prefix such as "
		"10.99.0.1/24 or fd00::1/64"},
	{"fabrics: [{kind: dpdk, addresses: [10.0.0.1/33]}]\n",
		"f.yaml:1:36: fabrics[0].addresses[0]: \"10.0.0.1/33\" is not an address and prefix such as "
		"10.99.0.1/24 or fd00::1/64"},
	{"fabrics: [{gateway4: fd00::1}]\n",
		"f.yaml:1:22: fabrics[0].gateway4: \"fd00::1\" is not an IPv4 address"},
	{"fabrics: [{listen: localhost:1}]\n",
		"f.yaml:1:20: fabrics[0].listen: \"localhost:1\" is not an address and port such as "
		"127.0.0.1:7700 or [::1]:7700"},
	{"node: {id: a}\nfabrics:\n- {kind: udp, listen: '127.0.0.1:1', name: x}\n"
	 "- {kind: udp, listen: '127.0.0.1:2', name: x}\n",
		"f.yaml:4:38: fabrics[1].name: two fabrics of one name"},
	{"control: {roles: [{role: read}]}" REST,
		"f.yaml:1:11: control.roles[0]: exactly one of uid and gid is needed"},
	{"store: {path: here.db}" REST, "f.yaml:1:9: store.path: an absolute path is needed"},
	{"metrics: {listen: \"0.0.0.0:9464\"}" REST,
		"f.yaml:1:11: metrics.listen: 0.0.0.0:9464 is not loopback; other machines may read there "
		"only with metrics.beyond_loopback: yes"},
	{"metrics: {listen: \"[::]:9464\"}" REST,
		"f.yaml:1:11: metrics.listen: [::]:9464 is not loopback; other machines may read there "
		"only with metrics.beyond_loopback: yes"},
	{"metrics: {listen: \"10.0.0.1:9464\", beyond_loopback: no}" REST,
		"f.yaml:1:11: metrics.listen: 10.0.0.1:9464 is not loopback; other machines may read there "
		"only with metrics.beyond_loopback: yes"},
	{"modules: [{path: a.so}]" REST, "f.yaml:1:11: modules[0].path: an absolute path is needed"},
};

static void G4__metrics_listen_on_loopback_or_beyond_it_when_told(void **state)
{
	static const char *const good[] = {"metrics: {listen: \"127.0.0.1:9464\"}" REST,
		"metrics: {listen: \"127.3.2.1:9464\"}" REST, "metrics: {listen: \"[::1]:9464\"}" REST,
		"metrics: {listen: \"0.0.0.0:9464\", beyond_loopback: yes}" REST};
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
		assert_int_equal(config_parse_buffer("f.yaml", good[i], strlen(good[i]), &config, &report),
			CONFIG_ACCEPTED);
		assert_string_not_equal(config.metrics.listen.text, "");
		config_fini(&config);
	}
}

static void x__bad_value_is_refused_with_place_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(bad_values); i++)
		refuse(bad_values[i].text, bad_values[i].message);
}

static void M8__largest_message_must_fit_lane_peer_and_quarter_of_mark(void **state)
{
	(void)state;
	refuse("limits: {application_lane: {bytes: 16MiB}}" REST,
		"f.yaml:1:29: limits.message: a message of 16MiB takes 20MiB, which must fit "
		"limits.application_lane.bytes (16MiB)");
	refuse("limits: {peer_reassembly: 19MiB}" REST,
		"f.yaml:1:10: limits.message: a message of 16MiB takes 20MiB, which must fit "
		"limits.peer_reassembly (19MiB)");
	refuse("limits: {process_inbound: 79MiB}" REST,
		"f.yaml:1:10: limits.message: a message of 16MiB takes 20MiB, which must fit a quarter of "
		"limits.process_inbound (20224KiB)");
	take("limits: {process_inbound: 80MiB}" REST);
	config_fini(&config);
	take("limits: {application_lane: {bytes: 20MiB}}" REST);
	config_fini(&config);
	// A fixed charge knows nothing of size classes in the lane.
	take("limits: {accounting: fixed, application_lane: {bytes: 17MiB}}" REST);
	config_fini(&config);
}

static void O1__lease_relation_is_refused_at_its_edge(void **state)
{
	(void)state;
	refuse("lease: {renew: 7s}" REST, "f.yaml:1:1: lease: max(renew, timeout) + timeout = 10s must be less "
					  "than ttl - margin = 10s");
	refuse("lease: {timeout: 5s}" REST,
		"f.yaml:1:1: lease: max(renew, timeout) + timeout = 10s must be less than ttl - margin = 10s");
	refuse("lease: {margin: 20s}" REST,
		"f.yaml:1:1: lease: max(renew, timeout) + timeout = 8s must be less than ttl - margin = 0");
	take("lease: {renew: 6999ms}" REST);
	config_fini(&config);
}

static void FC101__every_key_has_a_reload_class(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < config_schema.count; i++) {
		const struct config_key *key = &config_schema.keys[i];
		assert_true(key->reload == CONFIG_RELOAD_NEVER || key->reload == CONFIG_RELOAD_LIVE);
		assert_non_null(key->text);
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(key->path, config_schema.keys[j].path);
	}
}

static void FC106__dump_is_a_fixed_point_and_names_what_is_in_force(void **state)
{
	static const char *const texts[] = {MINIMAL,
		"node: {id: 'quote \" and \\ back'}\nworkers: {cores: [5]}\n"
		"fabrics: [{kind: dpdk, vdev: 'net_null0,a=b', addresses: [1.2.3.4/8]}]\n"
		"lease: {ttl: 20001ms}\nlimits: {message: 1025B, spots: 9}\ncontrol: {mode: 0o640}\n"
		"modules: [{path: /x.so, types: {a: {config: {z: '1', y: 1}}, b: ,\n"
		"  c: {application_lane: {count: 7}, lifecycle_lane: {count: 9, bytes: 1MiB}}}}]\n"};
	static struct config again;
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		char digest[2][CONFIG_DIGEST_BYTES];
		take(texts[i]);
		char *dump = config_dump(&config);
		assert_non_null(dump);
		assert_int_equal(config_parse_buffer("dump", dump, strlen(dump), &again, &report),
			CONFIG_ACCEPTED);
		char *second = config_dump(&again);
		assert_string_equal(dump, second);
		config_digest(&config, digest[0]);
		config_digest(&again, digest[1]);
		assert_string_equal(digest[0], digest[1]);
		assert_int_equal(strlen(digest[0]), 64);
		mem_free(dump);
		mem_free(second);
		config_fini(&config);
		config_fini(&again);
	}
}

static void L1__a_type_may_have_bounds_of_its_own(void **state)
{
	static const char *const wrong[][2] = {{"{count: 0}", "out of range"}, {"{bytes: 4095B}", "out of range"},
		{"{count: x}", "not a whole number"}, {"{bytes: {}}", "a number is needed"},
		{"7", "a map is needed"}};
	char text[256];
	(void)state;
	take(MINIMAL "modules: [{path: /x.so, types: {a: {application_lane: {count: 7, bytes: 64KiB},\n"
		     "  lifecycle_lane: {bytes: 8KiB}}}}]\n");
	const struct config_type *t = &config.modules[0].types[0];
	assert_int_equal(t->application_lane.count, 7);
	assert_int_equal(t->application_lane.bytes, 65536);
	assert_int_equal(t->lifecycle_lane.count, 0); // as the node says
	assert_int_equal(t->lifecycle_lane.bytes, 8192);
	assert_string_equal(t->json, "{}");
	config_fini(&config);
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		snprintf(text, sizeof text, MINIMAL "modules: [{path: /x.so, types: {a: {lifecycle_lane: %s}}}]\n",
			wrong[i][0]);
		assert_int_not_equal(config_parse_buffer("f.yaml", text, strlen(text), &config, &report),
			CONFIG_ACCEPTED);
		assert_non_null(strstr(report.error, wrong[i][1]));
	}
}

static void x__warnings_are_given_and_do_not_refuse(void **state)
{
	(void)state;
	take("store: {kind: memory}" REST);
	assert_int_equal(report.warning_count, 2);
	assert_string_equal(report.warnings[1], "f.yaml:1:9: store.kind: memory keeps nothing over a restart");
	config_fini(&config);
}

static void x__check_exits_as_documented(void **state)
{
	char path[] = "/tmp/spotlane-config-XXXXXX";
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(config_check(path, false), 2);
	assert_int_equal(write(fd, MINIMAL, strlen(MINIMAL)), (ssize_t)strlen(MINIMAL));
	assert_int_equal(config_check(path, true), 0);
	assert_int_equal(write(fd, "store: {kind: memory}\n", 22), 22);
	assert_int_equal(config_check(path, false), 0);
	assert_int_equal(config_check(path, true), 2);
	close(fd);
	unlink(path);
	assert_int_equal(config_check(path, false), 2);
	assert_int_equal(config_load(path, &config, &report), CONFIG_REFUSED);
	assert_true(report.io_failed);
}

static void x__units_print_back(void **state)
{
	static const uint64_t values[] = {0, 1, 1023, 1024, 1536, 1 << 20, UINT64_C(3) << 40};
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
		char text[40];
		uint64_t back = 1;
		units_print_size(values[i], text, sizeof text);
		assert_int_equal(units_parse_size(text, &back), UNITS_OK);
		assert_int_equal(back, values[i]);
		units_print_time(values[i], 1000000, text, sizeof text);
		assert_int_equal(units_parse_time(text, 1000000, &back), UNITS_OK);
		assert_int_equal(back, values[i]);
	}
}

static void x__nearest_knows_swaps_and_its_limits(void **state)
{
	(void)state;
	assert_int_equal(nearest_distance("", "abc"), 3);
	assert_int_equal(nearest_distance("kitten", "sitting"), 3);
	assert_int_equal(nearest_distance("tpye", "type"), 1);
	struct nearest n;
	nearest_begin(&n, "ab");
	nearest_offer(&n, "wxyz");
	assert_null(n.best);
	nearest_offer(&n, "abc");
	assert_string_equal(n.best, "abc");
}

static void x__text_cut_or_changed_at_any_byte_is_survived(void **state)
{
	static const char whole[] = "node: {id: a}\nfabrics:\n- kind: dpdk\n  vdev: x\n  addresses: [1.2.3.4/8]\n"
				    "modules: [{path: /x.so, types: {a: {config: {b: [1, 'c']}}}}]\n";
	char text[sizeof whole];
	(void)state;
	for (size_t i = 0; i < sizeof whole - 1; i++) {
		if (config_parse_buffer("cut", whole, i, &config, &report) == CONFIG_ACCEPTED)
			config_fini(&config);
		for (size_t c = 0; c < 256; c += 7) {
			memcpy(text, whole, sizeof whole);
			text[i] = (char)c;
			if (config_parse_buffer("x", text, sizeof whole - 1, &config, &report) ==
				CONFIG_ACCEPTED)
				config_fini(&config);
			else
				assert_string_not_equal(report.error, "");
		}
	}
}

static void x__memory_failures_are_refused(void **state)
{
	static const char text[] = MINIMAL "modules: [{path: /x.so, types: {a: {config: {b: 1}}}}]\n";
	(void)state;
	for (uint64_t n = 1; n < 200; n++) {
		mem_fail_nth(n, 0);
		enum config_status status =
			config_parse_buffer("x", text, sizeof text - 1, &config, &report);
		mem_fail_nth(0, 0);
		if (status == CONFIG_ACCEPTED) {
			config_fini(&config);
			assert_true(n > 10);
			return;
		}
		assert_string_not_equal(report.error, "");
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__defaults_are_those_of_the_rules),
		cmocka_unit_test(x__every_kind_of_value_arrives),
		cmocka_unit_test(L1__a_type_may_have_bounds_of_its_own),
		cmocka_unit_test(FC116__unknown_key_is_refused_with_place_and_nearest),
		cmocka_unit_test(x__bad_value_is_refused_with_place_and_reason),
		cmocka_unit_test(G4__metrics_listen_on_loopback_or_beyond_it_when_told),
		cmocka_unit_test(M8__largest_message_must_fit_lane_peer_and_quarter_of_mark),
		cmocka_unit_test(O1__lease_relation_is_refused_at_its_edge),
		cmocka_unit_test(FC101__every_key_has_a_reload_class),
		cmocka_unit_test(FC106__dump_is_a_fixed_point_and_names_what_is_in_force),
		cmocka_unit_test(x__warnings_are_given_and_do_not_refuse),
		cmocka_unit_test(x__check_exits_as_documented),
		cmocka_unit_test(x__units_print_back),
		cmocka_unit_test(x__nearest_knows_swaps_and_its_limits),
		cmocka_unit_test(x__text_cut_or_changed_at_any_byte_is_survived),
		cmocka_unit_test(x__memory_failures_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
