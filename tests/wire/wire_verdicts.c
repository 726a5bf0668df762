// SPDX-License-Identifier: BSD-3-Clause
// Reads frames (u16 little-endian size, bytes) from standard input; writes one byte a frame, the
// verdict of wire_decode, or of wire_check_id for a frame that was taken. Driven by test_twin.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire/wire.h"

enum { DATAGRAM_BYTES_MAX = 65535 };

// What was taken encodes to the same bytes.
static void check_encodes(const struct wire_frame *f, const uint8_t *frame, size_t size)
{
	static uint8_t again[DATAGRAM_BYTES_MAX];
	struct wire_header h = f->h;
	CHECK(wire_encode(&h, f->id, f->segment, again, sizeof(again)) == size);
	CHECK(memcmp(again, frame, size) == 0);
}

int main(void)
{
	uint8_t head[2];
	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		size_t size = head[0] | (size_t)head[1] << 8;
		// An exact copy on the heap, so that a sanitizer sees a byte too far.
		uint8_t *frame = malloc(size > 0 ? size : 1);
		struct wire_frame f;
		if (frame == NULL || fread(frame, 1, size, stdin) != size)
			return EXIT_FAILURE;
		enum wire_reject verdict = wire_decode(span_of(frame, size), &f);
		if (verdict == WIRE_TAKEN) {
			check_encodes(&f, frame, size);
			verdict = wire_check_id(&f);
		}
		putchar((int)verdict);
		free(frame);
	}
	return ferror(stdin) != 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
