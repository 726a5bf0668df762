// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 };

static enum spot_exit too_large(void)
{
	fprintf(stderr, "spot: the payload is larger than 16 MiB, the most a message can carry.\n");
	return SPOT_EXIT_USAGE;
}

// One byte more than allowed is read, so that "too large" is told from "just fits".
static enum spot_exit read_all(FILE *from, const char *name, struct payload *out)
{
	uint8_t *bytes = malloc(PAYLOAD_BYTES_MAX + 1);
	if (!bytes) {
		fprintf(stderr, "spot: no memory for the payload.\n");
		return SPOT_EXIT_INTERNAL;
	}
	size_t size = fread(bytes, 1, PAYLOAD_BYTES_MAX + 1, from);
	if (ferror(from)) {
		fprintf(stderr, "spot: cannot read %s: %s\n", name, strerror(errno));
		free(bytes);
		return SPOT_EXIT_USAGE;
	}
	if (size > PAYLOAD_BYTES_MAX) {
		free(bytes);
		return too_large();
	}
	*out = (struct payload){bytes, size};
	return SPOT_EXIT_OK;
}

enum spot_exit payload_read(const char *text, struct payload *out)
{
	*out = (struct payload){NULL, 0};
	if (!text)
		return SPOT_EXIT_OK;
	if (strcmp(text, "-") == 0)
		return read_all(stdin, "standard input", out);
	if (text[0] != '@') {
		out->bytes = (uint8_t *)strdup(text);
		out->size = out->bytes ? strlen(text) : 0;
		return out->bytes ? SPOT_EXIT_OK : SPOT_EXIT_INTERNAL;
	}
	FILE *file = fopen(text + 1, "rb");
	if (!file) {
		fprintf(stderr, "spot: cannot open %s: %s\n", text + 1, strerror(errno));
		return SPOT_EXIT_USAGE;
	}
	enum spot_exit bad = read_all(file, text + 1, out);
	fclose(file);
	return bad;
}

static bool is_utf8(const uint8_t *bytes, size_t size)
{
	// jansson checks UTF-8 strictly when it makes a string.
	json_t *string = memchr(bytes, 0, size) ? NULL : json_stringn((const char *)bytes, size);
	bool valid = string != NULL;
	json_decref(string);
	return valid;
}

enum spotlane_content_type payload_judge(const struct payload *payload)
{
	if (payload->size == 0)
		return SPOTLANE_CONTENT_BYTES;
	json_t *document =
		json_loadb((const char *)payload->bytes, payload->size, JSON_DECODE_ANY, NULL);
	if (document) {
		json_decref(document);
		return SPOTLANE_CONTENT_JSON;
	}
	return is_utf8(payload->bytes, payload->size) ? SPOTLANE_CONTENT_TEXT
						      : SPOTLANE_CONTENT_BYTES;
}
