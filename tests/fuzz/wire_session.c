// SPDX-License-Identifier: BSD-3-Clause
// A node's whole way in: frames, their order, time and losses come from the input. Untrusted: any host.
// No half-message is ever delivered; once time has passed every expiry, ledger and lanes are back to
// zero, the books are equal and every frame buffer is free.
//
// First byte: workers (bit 0). Then steps: one byte, and what take_step reads.
#include "rig.h"

#include "fuzz.h"

enum { CLIENTS = 3, SPOTS = 8, STEPS_MAX = 400, FRAMES = 64, FRAME_BYTES_MAX = 1472, MADE_BYTES_MAX = 1200 };

static const struct spotlane_host *host;
static struct dp_counters total;
static uint32_t delivered;

// ---- what is sent, so that the receiver knows it: a byte for each place, the last one marked ----
static uint8_t byte_at(uint16_t type, uint32_t at, uint32_t bytes)
{
	uint8_t byte = (uint8_t)(type * 29 + at * 7 + (at >> 8) * 13) & 0x7f;
	return at + 1 == bytes ? byte | 0x80 : byte;
}

static void check_whole(const struct spotlane_message *m)
{
	const uint8_t *data = m->payload.data;
	delivered++;
	if (m->type == 0) // not one of ours
		return;
	for (uint32_t i = 0; i < m->payload.size; i++)
		CHECK(data[i] == byte_at(m->type, i, (uint32_t)m->payload.size));
}

// ---- the module ----
static int on_construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	memset(out, 0, sizeof(*out));
	return 0;
}

static enum spotlane_outcome on_message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	spotlane_turn t = spotlane_instance_common(turn);
	struct spotlane_bytes none = {"", 0};
	(void)self;
	check_whole(m);
	switch (m->type % 8) {
	case 1:
		host->reply(t, SPOTLANE_BYTES, m->payload);
		return SPOTLANE_DONE;
	case 2:
		host->reply_error(t, SPOTLANE_REJECTED, none);
		host->reply(t, SPOTLANE_BYTES, none);
		return SPOTLANE_DONE;
	case 3:
		host->close_self(turn);
		return SPOTLANE_DONE;
	case 4: // of a neighbour that may not exist, for a short while
		return host->request(t, (struct spotlane_bytes){"s0", 2}, 0, SPOTLANE_BYTES, none, 1000).value
			? SPOTLANE_WAIT
			: SPOTLANE_DONE;
	case 5:
		host->send(t, (struct spotlane_bytes){"s1", 2}, 0, SPOTLANE_BYTES, none);
		return SPOTLANE_DONE;
	case 6:
		rig_pass(20000000);
		return SPOTLANE_DONE;
	default:
		return SPOTLANE_DONE;
	}
}

static enum spotlane_outcome on_answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *a)
{
	(void)self;
	(void)call;
	host->reply(spotlane_instance_common(turn), a->content, a->payload);
	return SPOTLANE_DONE;
}

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

static const struct spotlane_instance_type whole = {
	.name = "whole", .construct = on_construct, .message = on_message, .answered = on_answered};
static const struct spotlane_instance_type tight = {.name = "tight", .construct = on_construct,
	.limits = {.application_count_max = 2, .application_bytes_max = 8192}, .message = on_message,
	.answered = on_answered};
static const struct spotlane_instance_type *const types[] = {&whole, &tight, NULL};
static const struct spotlane_module module = {.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module), .name = "fuzz", .version = "1", .attach = attach,
	.instance_types = types};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("CMOCKA_TEST_ABORT", "1", 1); // what the rig asserts ends the process
	return rig_main_begin();
}

static void adjust(struct dp_config *config)
{
	config->sessions_max = 4;
	config->parked_messages_max = 64;
	config->resolves_in_flight_max = 16;
	config->process_mark_bytes = 16u << 20;
	config->message_bytes_max = 256u << 10;
	config->application.bytes_max = 1u << 20;
	config->peer_reassembly_bytes_max = 512u << 10;
}

// ---- steps ----
struct run {
	struct rig *rig;
	struct fuzz_reader r;
	struct rig_client *clients[CLIENTS];
	uint32_t losses; // of the next frames out, bit by bit
	uint64_t last_reply[2]; // scope, operation of the last segmented reply
	struct spot_key last_key;
};

static struct fabric_loop_fault lose(void *arg, const struct fabric_loop_pass *pass)
{
	struct run *run = arg;
	bool drop = run->losses & 1;
	(void)pass;
	run->losses >>= 1;
	return (struct fabric_loop_fault){drop ? FABRIC_LOOP_DROP : FABRIC_LOOP_DELIVER, 0};
}

static void put(struct run *run, struct rig_client *c, uint8_t worker, const void *data, size_t bytes)
{
	uint16_t w = worker % run->rig->workers;
	if (bytes <= FRAME_BYTES_MAX)
		(void)fabric_loop_inject(run->rig->queues[w], &c->peer, data, (uint32_t)bytes);
}

static void step_raw(struct run *run)
{
	struct rig_client *c = run->clients[fuzz_u8(&run->r) % CLIENTS];
	uint8_t worker = fuzz_u8(&run->r);
	size_t size, want = fuzz_u16(&run->r);
	const uint8_t *bytes = fuzz_bytes(&run->r, want, &size);
	uint8_t *exact = fuzz_exact(bytes, size);
	if (size >= WIRE_HEADER_BYTES) // its payload is not what byte_at says
		memset(exact + offsetof(struct wire_header, message_type), 0, 2);
	put(run, c, worker, exact, size);
	free(exact);
}

// What a header says, all but the segment.
static struct wire_header made_header(struct run *run, struct rig_client *c, char id[3])
{
	static const uint64_t nodes[4] = {0, 0x1234, 0x99, 0x1234}, leases[4] = {0, 7, 7, 6};
	struct fuzz_reader *r = &run->r;
	struct wire_header h = {.version = WIRE_VERSION, .session = c->session, .cookie = c->cookie};
	h.family = fuzz_u8(r) % 12;
	h.flags = fuzz_u8(r);
	id[0] = 's';
	id[1] = (char)('0' + fuzz_u8(r) % SPOTS);
	id[2] = 0;
	struct spot_key key = spot_key_of(rig_id(id));
	h.spot_key_lo = key.lo;
	h.spot_key_hi = key.hi;
	h.operation_scope = c->session;
	h.operation_id = 1 + fuzz_u8(r) % 16;
	uint8_t behind = fuzz_u8(r);
	h.counter = behind == 0 ? ++c->counter : c->counter > behind ? c->counter - behind : 1;
	uint8_t type = fuzz_u8(r) % 4;
	h.spot_type = type == 0 ? 0 : type_key_of(type == 1 ? "whole" : type == 2 ? "tight" : "none").value;
	h.message_type = 1 + fuzz_u8(r) % 64;
	h.budget_us = (uint32_t)fuzz_u16(r) * 64;
	uint8_t owner = fuzz_u8(r) % 4;
	h.owner_node = nodes[owner];
	h.owner_lease = leases[owner];
	return h;
}

// The segment, and the ways to lie about it.
static uint8_t made_segment(struct run *run, struct wire_header *h)
{
	struct fuzz_reader *r = &run->r;
	uint32_t bytes = fuzz_u16(r);
	uint8_t index = fuzz_u8(r), lie = fuzz_u8(r);
	h->total_bytes = h->segment_bytes = (uint16_t)(bytes % MADE_BYTES_MAX);
	if (h->flags & WIRE_FLAG_SEGMENTED) {
		h->segment_unit = lie & 16 ? 1100 : 1024;
		h->total_bytes = bytes * 4 + 1;
		uint32_t count = seg_count(h->total_bytes, h->segment_unit);
		h->segment_offset = (index % count) * h->segment_unit;
		uint32_t left = h->total_bytes - h->segment_offset;
		h->segment_bytes = (uint16_t)(left < h->segment_unit ? left : h->segment_unit);
	}
	h->total_bytes += lie & 1;
	h->segment_offset += (lie >> 1) & 1;
	h->segment_bytes = (uint16_t)(h->segment_bytes - ((lie >> 2) & h->segment_bytes & 1));
	if (lie & 8)
		h->cookie = 0;
	if (lie & 32)
		h->session = run->clients[0]->session; // perhaps somebody else's
	return lie;
}

static void step_made(struct run *run)
{
	uint8_t frame[WIRE_HEADER_BYTES + 8 + 1200];
	char id[3];
	uint8_t who = fuzz_u8(&run->r), worker = fuzz_u8(&run->r);
	struct rig_client *c = run->clients[(who & 63) % CLIENTS];
	struct wire_header h = made_header(run, c, id);
	if (made_segment(run, &h) & 64)
		id[0] = 't'; // not what the key was made of
	bool intent = h.family == WIRE_INTENT_SEND || h.family == WIRE_INTENT_REQUEST ||
		h.family == WIRE_CONTROL;
	if (h.family == WIRE_CONTROL)
		h.message_type = 1 + h.message_type % 5;
	if ((who & 64) != (intent ? 64 : 0) && h.segment_offset == 0)
		h.id_bytes = 2;
	size_t at = sizeof(h);
	memcpy(frame, &h, sizeof(h));
	memcpy(frame + at, id, h.id_bytes);
	at += h.id_bytes;
	for (uint32_t i = 0; i < h.segment_bytes; i++)
		frame[at + i] = byte_at(h.message_type, h.segment_offset + i, h.total_bytes);
	at += h.segment_bytes;
	put(run, c, worker, frame, at);
	if (who & 128)
		put(run, c, worker, frame, at); // the network repeats
}

// A report about the last segmented reply.
static void step_ack(struct run *run)
{
	struct rig_client *c = run->clients[fuzz_u8(&run->r) % CLIENTS];
	uint8_t worker = fuzz_u8(&run->r), body[SEG_ACK_BYTES], frame[256];
	struct seg_ack ack = {.base = fuzz_u8(&run->r), .window = (uint16_t)(1 + fuzz_u8(&run->r)),
		.done = fuzz_u8(&run->r) & 1, .bits = {fuzz_u16(&run->r)}};
	struct wire_header h = {.version = WIRE_VERSION, .family = WIRE_ACK, .session = c->session,
		.cookie = c->cookie, .counter = ++c->counter, .content_type = WIRE_CONTENT_ACK,
		.spot_key_lo = run->last_key.lo, .spot_key_hi = run->last_key.hi,
		.operation_scope = run->last_reply[0], .operation_id = run->last_reply[1],
		.total_bytes = SEG_ACK_BYTES};
	seg_ack_encode(&ack, body);
	size_t n = wire_encode(&h, span_of(NULL, 0), span_of(body, sizeof(body)), frame, sizeof(frame));
	put(run, c, worker, frame, n);
}

static void receive_all(struct run *run)
{
	static struct rig_reply reply;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		while (rig_receive(run->rig, run->clients[i], &reply)) { // which decodes it
			if (reply.h.family == WIRE_CHALLENGE)
				run->clients[i]->cookie = reply.h.cookie;
			if (!(reply.h.flags & WIRE_FLAG_SEGMENTED))
				continue;
			run->last_reply[0] = reply.h.operation_scope;
			run->last_reply[1] = reply.h.operation_id;
			run->last_key = (struct spot_key){reply.h.spot_key_lo, reply.h.spot_key_hi};
		}
	}
}

static void step_close(struct run *run)
{
	struct rig *rig = run->rig;
	uint8_t which = fuzz_u8(&run->r);
	struct dp_spot_view view;
	if (rig->spot_count == 0)
		return;
	rig_settle(rig);
	if (rig->spot_count == 0)
		return;
	struct dp_spot *spot = rig->spots[which % rig->spot_count];
	dp_spot_view(spot, &view);
	if (dp_spot_of_route(route_lookup(rig->routes, view.key)) == spot)
		rig_close(rig, spot, SPOTLANE_CLOSE_EXPLICIT);
}

static void take_step(struct run *run)
{
	struct rig *rig = run->rig;
	switch (fuzz_u8(&run->r) % 10) {
	case 0:
		rig_pass((uint64_t)fuzz_u16(&run->r) * 1000000);
		break;
	case 1:
		step_raw(run);
		break;
	case 2:
	case 3:
		step_made(run);
		break;
	case 4:
		rig_step(rig, fuzz_u8(&run->r) % rig->workers);
		break;
	case 5:
		rig_settle(rig);
		break;
	case 6:
		receive_all(run);
		break;
	case 7:
		run->losses = fuzz_u16(&run->r);
		break;
	case 8:
		step_ack(run);
		break;
	default:
		step_close(run);
		break;
	}
}

// ---- the end of an input ----
static void check_at_rest(struct rig *rig)
{
	CHECK(dp_process_bytes(rig->dp) == 0);
	for (uint32_t i = 0; i < rig->spot_count; i++) {
		struct dp_spot_view view;
		dp_spot_view(rig->spots[i], &view);
		CHECK(view.application.count == 0 && view.application.bytes == 0);
		CHECK(view.lifecycle.count == 0 && view.lifecycle.bytes == 0);
	}
}

static void add_counters(const struct rig *rig)
{
	uint64_t *sum = (uint64_t *)&total;
	for (uint16_t w = 0; w < rig->workers; w++) {
		struct dp_counters c;
		dp_counters_read(rig->dp, w, &c);
		for (size_t i = 0; i < sizeof(c) / sizeof(uint64_t); i++)
			sum[i] += ((const uint64_t *)&c)[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = {.r = {data, size}};
	struct rig_config config = {.workers = (uint16_t)(1 + (fuzz_u8(&run.r) & 1)), .adjust = adjust,
		.frames = FRAMES};
	const char *why = NULL;
	rig_clock.boot_ns = 1000000000000u;
	run.rig = rig_start(&config);
	CHECK(dp_register_module(run.rig->dp, &module, NULL, &why) == DP_DONE);
	for (uint32_t i = 0; i < CLIENTS; i++)
		run.clients[i] = i < CLIENTS - 1 ? rig_client(run.rig) : rig_client_raw(run.rig);
	fabric_loop_hook_set(run.rig->net, lose, &run);
	for (uint32_t i = 0; run.r.left > 0 && i < STEPS_MAX; i++)
		take_step(&run);
	run.losses = 0;
	for (int i = 0; i < 20; i++) { // past every budget, repetition and expiry
		rig_settle(run.rig);
		receive_all(&run);
		rig_pass(1000000000);
	}
	rig_settle(run.rig);
	check_at_rest(run.rig);
	add_counters(run.rig);
	rig_stop(run.rig);
	return 0;
}

// Every drop that a frame can cause, and every reject.
void fuzz_unreached(void (*missed)(const char *what))
{
	const struct {
		uint64_t count;
		const char *name;
	} drops[] = {
		{total.frames_rejected, "frames_rejected"}, {total.frames_repeated, "frames_repeated"},
		{total.frames_session_refused, "frames_session_refused"},
		{total.frames_challenged, "frames_challenged"},
		{total.messages_refused, "messages_refused"},
		{total.messages_dropped, "messages_dropped"}, {total.sends_refused, "sends_refused"},
		{total.turn_overruns, "turn_overruns"}, {total.second_answers, "second_answers"},
		{total.reassemblies, "reassemblies"}, {total.reassemblies_expired, "reassemblies_expired"},
		{total.segments_resent, "segments_resent"}, {delivered, "a message delivered"}};
	for (size_t i = 0; i < ARRAY_COUNT(drops); i++)
		if (drops[i].count == 0)
			missed(drops[i].name);
#define X(name, number, text)                                                                      \
	if (total.rejects[number] == 0)                                                            \
		missed("reject " text);
	WIRE_REJECTS(X)
#undef X
}
