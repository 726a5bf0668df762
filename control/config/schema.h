// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The key table of the configuration: one row per key. Parser, dump, defaults, the manual page
// spotd.conf(5) and the tests are driven by it, so they cannot drift apart. Constant; any thread.

#include <stddef.h>
#include <stdint.h>

enum config_value {
	CONFIG_BOOL = 1,   // bool
	CONFIG_COUNT,      // uint32_t
	CONFIG_COUNT64,    // uint64_t
	CONFIG_ID,         // int64_t, -1 = not given
	CONFIG_SIZE,       // uint64_t bytes, written 64MiB
	CONFIG_TIME_MS,    // uint32_t, written 15s, 500ms
	CONFIG_TIME_US,    // uint32_t, written 10ms, 250us
	CONFIG_TEXT,       // char[capacity]
	CONFIG_MODE,       // uint32_t, written in octal
	CONFIG_CHOICE,     // uint32_t: place in `choices`, from 1
	CONFIG_IP4,        // char[16], checked
	CONFIG_IP6,        // char[46], checked
	CONFIG_ENDPOINT,   // struct config_endpoint
	CONFIG_CORES,      // uint16_t[capacity] and a count
	CONFIG_TEXTS,      // char[capacity][CONFIG_TEXT_BYTES] and a count
	CONFIG_ADDRESSES,  // struct config_address[capacity] and a count
	CONFIG_RECORDS,    // array of records with a table of their own, and a count
	CONFIG_TYPES,      // struct config_type[capacity] and a count: name -> {config: map}
};

// What happens to a key on reload. This version reloads none: all need a restart.
enum config_reload { CONFIG_RELOAD_NEVER = 1, CONFIG_RELOAD_LIVE = 2 };

struct config_schema;
struct config_key {
	const char *path; // dotted, from the top or from the record
	enum config_value value;
	enum config_reload reload;
	uint32_t offset;
	uint32_t count_offset; // of lists
	uint32_t capacity;     // bytes of a text with its end, or entries of a list
	uint64_t min, max;     // of numbers, in the unit of the field; of texts: bytes
	const char *const *choices;
	const struct config_schema *record;
	const char *fallback; // default as it would be written; NULL = none, the key may be missing
	const char *text;     // one sentence for the manual
};

struct config_schema {
	const struct config_key *keys;
	uint32_t count;
	uint32_t record_bytes; // of one record; 0 for the whole configuration
};

extern const struct config_schema config_schema;

const char *config_value_name(enum config_value value); // for manuals: "size", "time", …
