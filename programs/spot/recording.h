// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A recording to be replayed: JSON lines {"id":…,"type":…,"payload":…}, read whole and checked
// before the first message is sent. Main thread.

#include <stdint.h>

#include "options.h"

struct record {
	const char *id;
	uint32_t id_bytes;
	uint32_t payload_bytes;
	const uint8_t *payload;
	uint16_t message_type;
	uint16_t content_type;
};

struct recording {
	struct record *records;
	uint64_t count;
	uint64_t spots; // different ids
};

// type_map: "name=number,…". On failure a sentence with file and line is on stderr.
enum spot_exit recording_read(const char *path, const char *type_map, struct recording *out);
void recording_free(struct recording *recording);
