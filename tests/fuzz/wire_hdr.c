// SPDX-License-Identifier: BSD-3-Clause
// One frame, one refusal body, one segment report. Untrusted: any host on the network.
// What is taken encodes to the same bytes; every reject has a number with a name.
#include "fuzz.h"
#include "wire/segment.h"
#include "wire/wire.h"

static uint32_t seen[32];

static void check_encodes(const struct wire_frame *f, const uint8_t *data, size_t size)
{
	static uint8_t again[65536];
	struct wire_header h = f->h;
	CHECK(wire_encode(&h, f->id, f->segment, again, sizeof(again)) == size);
	CHECK(memcmp(again, data, size) == 0);
}

static void check_spans(const struct wire_frame *f, const uint8_t *data, size_t size)
{
	CHECK(f->id.size + f->segment.size + WIRE_HEADER_BYTES == size);
	CHECK(f->id.size == 0 || f->id.data == data + WIRE_HEADER_BYTES);
	CHECK(f->segment.size == 0 || f->segment.data + f->segment.size == data + size);
}

static void check_refusal(struct span body)
{
	struct refusal refusal;
	uint8_t again[WIRE_REFUSAL_BYTES];
	if (wire_refusal_decode(body, &refusal) != WIRE_TAKEN)
		return;
	wire_refusal_encode(&refusal, again);
	CHECK(body.size == sizeof(again) && memcmp(again, body.data, sizeof(again)) == 0);
}

static void check_ack(struct span body)
{
	struct seg_ack ack;
	uint8_t again[SEG_ACK_BYTES];
	if (!seg_ack_decode(body, &ack))
		return;
	CHECK(ack.window >= 1 && ack.window <= SEG_WINDOW_MAX && ack.done <= 1);
	seg_ack_encode(&ack, again);
	CHECK(body.size == sizeof(again) && memcmp(again, body.data, sizeof(again)) == 0);
}

static void note(enum wire_reject verdict)
{
	CHECK((size_t)verdict < ARRAY_COUNT(seen) && wire_reject_name(verdict) != NULL);
	seen[verdict]++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_frame f;
	enum wire_reject verdict = wire_decode(span_of(data, size), &f);
	note(verdict);
	if (verdict == WIRE_TAKEN) {
		CHECK(wire_family_name(f.h.family) != NULL);
		check_spans(&f, data, size);
		check_encodes(&f, data, size);
		note(wire_check_id(&f));
		check_refusal(f.segment);
		check_ack(f.segment);
	}
	check_refusal(span_of(data, size));
	check_ack(span_of(data, size));
	return 0;
}

void fuzz_unreached(void (*missed)(const char *what))
{
#define X(name, number, text)                                                                      \
	if (seen[number] == 0)                                                                     \
		missed("reject " text);
	WIRE_REJECTS(X)
#undef X
	if (seen[WIRE_TAKEN] == 0)
		missed("a frame that is taken");
}
