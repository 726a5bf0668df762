// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The table of commands: what server, tool, completion, manual and tests have in common. Constant
// data without behaviour; any thread.

#include <stdbool.h>
#include <stdint.h>

// What a peer may do (G2); the same numbers as in the configuration.
enum api_role { API_ROLE_READ = 1, API_ROLE_OPERATE = 2, API_ROLE_ADMINISTER = 3 };
const char *api_role_name(enum api_role role);

enum api_class {
	API_QUERY = 1,  // changes nothing
	API_CHANGE = 2, // takes a nonce, says whether it changed anything (G5)
	API_STREAM = 3, // many reply lines
};
const char *api_class_name(enum api_class class);

// X(C name, op, noun, verb, role, class, arguments, what it does). The tool's words are noun and verb.
#define API_COMMANDS(X)                                                                            \
	X(STATUS, "status", "status", "", READ, QUERY, none, "State of the node, its lease, Spots, workers and fabrics") \
	X(VERSION, "version", "version", "", READ, QUERY, none, "Versions of daemon and libraries")      \
	X(SPOT_LIST, "spot.list", "spot", "list", READ, QUERY, spot_list, "Spots that live here")             \
	X(SPOT_SHOW, "spot.show", "spot", "show", READ, QUERY, id, "One Spot: lanes, turns, generations") \
	X(SPOT_CREATE, "spot.create", "spot", "create", OPERATE, CHANGE, spot_create, "Build a User Spot")      \
	X(SPOT_CLOSE, "spot.close", "spot", "close", OPERATE, CHANGE, spot_close, "Close a Spot")              \
	X(SPOT_WHERE, "spot.where", "spot", "where", READ, QUERY, id, "Store, route and local view of an id side by side") \
	X(LANE_TOP, "lane.top", "lane", "top", READ, QUERY, lane_top, "Spots with the fullest application lanes") \
	X(ROUTE_SHOW, "route.show", "route", "show", READ, QUERY, id, "The route of one id")           \
	X(ROUTE_LIST, "route.list", "route", "list", READ, QUERY, route_list, "Routes in the table")           \
	X(STATS_SHOW, "stats.show", "stats", "show", READ, QUERY, stats_show, "Counters of workers and fabrics") \
	X(STATS_AUDIT, "stats.audit", "stats", "audit", OPERATE, QUERY, none, "Compare the ledger with the allocator on the live node") \
	X(CONFIG_SHOW, "config.show", "config", "show", READ, QUERY, config_show, "Configuration in force, as written, or the defaults") \
	X(DOCTOR, "doctor", "doctor", "", READ, QUERY, none, "Check node and host, each finding with a fix") \
	X(WATCH, "watch", "watch", "", READ, STREAM, watch, "Events as they happen")                      \
	X(NODE_LIST, "node.list", "node", "list", READ, QUERY, none, "Nodes of the store") \
	X(NODE_SHOW, "node.show", "node", "show", READ, QUERY, node, "One node of the store") \
	X(NODE_FENCE, "node.fence", "node", "fence", ADMINISTER, CHANGE, node_fence, "Release the Spots of a dead node, after its beat stood still") \
	X(STOP, "stop", "stop", "", ADMINISTER, CHANGE, stop, "Drain and stop the node")                 \
	X(HEALTH_LIVE, "health.live", "health", "live", READ, QUERY, none, "Does the node run?")         \
	X(HEALTH_READY, "health.ready", "health", "ready", READ, QUERY, none, "Does the node serve?")    \
	X(METRICS, "metrics", "metrics", "", READ, QUERY, none, "All metrics in the text form of Prometheus") \
	X(SCHEMA, "schema", "schema", "", READ, QUERY, none, "Every op with its arguments")

#define X(name, op, noun, verb, role, class, args, text) API_COMMAND_##name,
enum api_command_id { API_COMMANDS(X) API_COMMAND_COUNT };
#undef X

enum api_arg_type { API_ARG_TEXT = 1, API_ARG_NUMBER, API_ARG_YES, API_ARG_CHOICE };

struct api_arg {
	const char *name;
	enum api_arg_type type;
	bool required;
	bool positional; // the tool takes it by place instead of as --name
	int64_t min, max; // of numbers; of texts: bytes
	const char *choices; // "a|b|c"
	const char *fallback; // shown in help
	const char *text;
};

struct api_command {
	enum api_command_id id;
	const char *op, *noun, *verb;
	enum api_role role;
	enum api_class class;
	const char *text;
	const struct api_arg *args; // ended by a row without a name
};

const struct api_command *api_command_at(uint32_t index); // < API_COMMAND_COUNT
const struct api_command *api_command_by_op(const char *op);               // NULL when unknown
const struct api_command *api_command_by_words(const char *noun, const char *verb);
