// SPDX-License-Identifier: BSD-3-Clause
#include "spotlane/harness.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/loader.h"

// A turn's number is the address of its Spot here; a call's is a running number.

struct buffer {
	void *data;
	size_t size;
};

enum kind { KIND_ENTRY = 1, KIND_USER = 2, KIND_INSTANCE = 3 };

struct spotlane_harness {
	const struct spotlane_module *module;
	uint64_t now_ns;
	uint64_t calls;
	unsigned refuse_calls;
	unsigned spots;
	char actor[256]; // whom the next turns are for; empty: the Spot
};

enum turn_state { TURN_NONE = 0, TURN_RUNNING = 1, TURN_WAITING = 2 };

struct offload {
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity);
	struct buffer argument;
	size_t capacity;
};

struct harness_timer {
	char name[SPOTLANE_TIMER_NAME_MAX + 1]; // empty: free
	struct spotlane_timer timer;
	uint64_t due_ns;
	uint64_t generation;
};

struct spotlane_harness_spot {
	struct spotlane_harness *harness;
	enum kind kind;
	union {
		const struct spotlane_entry_type *entry;
		const struct spotlane_user_type *user;
		const struct spotlane_instance_type *instance;
	} type;
	spotlane_instance self;
	enum turn_state turn;
	bool wants_reply, answered;
	unsigned started; // calls made in the running turn
	spotlane_call call;
	int awaits; // enum spotlane_harness_awaits, 0 = nothing
	struct offload offload;
	struct spotlane_harness_reply reply;
	struct buffer reply_bytes;
	struct spotlane_harness_sent sent;
	struct buffer sent_id, sent_payload;
	struct spotlane_harness_sent pushed;
	struct buffer pushed_payload;
	unsigned changes_asked;
	unsigned close_asked;
	struct harness_timer timers[SPOTLANE_TIMERS_MAX];
};

PRINTF_LIKE(1, 2)
NORETURN static void broken(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("spotlane harness: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static struct spotlane_bytes buffer_set(struct buffer *b, struct spotlane_bytes bytes)
{
	void *data = malloc(bytes.size + 1);

	if (data == NULL)
		broken("memory is short");
	if (bytes.size > 0)
		memcpy(data, bytes.data, bytes.size);
	((char *)data)[bytes.size] = '\0'; // so that a test can compare it as a string
	free(b->data);
	*b = (struct buffer){data, bytes.size};
	return (struct spotlane_bytes){b->data, b->size};
}

// ---- the host ----

static struct spotlane_harness_spot *spot_of(uint64_t turn, const char *what)
{
	struct spotlane_harness_spot *s = (struct spotlane_harness_spot *)(uintptr_t)turn;

	if (s == NULL || s->turn != TURN_RUNNING)
		broken("%s outside a turn", what);
	return s;
}

static int end_request(struct spotlane_harness_spot *s, int kind, uint16_t content,
	struct spotlane_bytes payload)
{
	if (!s->wants_reply)
		return -1;
	if (s->answered)
		broken("a second answer to one request");
	s->answered = true;
	s->reply.kind = kind;
	s->reply.content = content;
	s->reply.payload = buffer_set(&s->reply_bytes, payload);
	return 0;
}

static int host_reply(spotlane_turn turn, uint16_t content, struct spotlane_bytes payload)
{
	return end_request(spot_of(turn.value, "reply"), SPOTLANE_OK, content, payload);
}

static int host_reply_error(
	spotlane_turn turn, enum spotlane_result kind, struct spotlane_bytes text)
{
	if (kind == SPOTLANE_OK)
		broken("reply_error with OK");
	return end_request(spot_of(turn.value, "reply_error"), (int)kind, SPOTLANE_TEXT, text);
}

static void record_sent(struct spotlane_harness_spot *s, struct spotlane_bytes id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload)
{
	s->sent.count++;
	s->sent.type = type;
	s->sent.content = content;
	s->sent.id = buffer_set(&s->sent_id, id);
	s->sent.payload = buffer_set(&s->sent_payload, payload);
}

static int host_send(spotlane_turn turn, struct spotlane_bytes id, uint16_t type, uint16_t content,
	struct spotlane_bytes payload)
{
	record_sent(spot_of(turn.value, "send"), id, type, content, payload);
	return 0;
}

// The call's number, or 0 when calls are refused. One at a time is all that the harness follows.
static uint32_t flags_of(const struct spotlane_harness_spot *s);

static spotlane_call start_call(struct spotlane_harness_spot *s, int awaits)
{
	spotlane_call none = {0};

	if (flags_of(s) & SPOTLANE_TYPE_NOWAIT)
		return none; // as on a node
	if (s->harness->refuse_calls > 0) {
		s->harness->refuse_calls--;
		return none;
	}
	if (s->started++ > 0 || s->awaits != 0)
		broken("more than one call in flight for one Spot");
	s->awaits = awaits;
	s->call.value = ++s->harness->calls;
	return s->call;
}

static spotlane_call host_request(spotlane_turn turn, struct spotlane_bytes id, uint16_t type,
	uint16_t content, struct spotlane_bytes payload, uint32_t budget_us)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "request");
	spotlane_call call = start_call(s, SPOTLANE_AWAITS_ANSWER);

	(void)budget_us;
	if (call.value != 0)
		record_sent(s, id, type, content, payload);
	return call;
}

static spotlane_call host_offload(spotlane_turn turn,
	size_t (*work)(const void *argument, size_t argument_size, void *out, size_t capacity),
	struct spotlane_bytes argument, size_t capacity)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "offload");
	spotlane_call call = start_call(s, SPOTLANE_AWAITS_OFFLOAD);

	if (call.value == 0)
		return call;
	s->offload.work = work;
	s->offload.capacity = capacity;
	buffer_set(&s->offload.argument, argument);
	return call;
}

static struct spotlane_bytes host_actor(spotlane_turn turn)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "actor");
	const char *actor = s->harness->actor;
	return (struct spotlane_bytes){actor, strlen(actor)};
}

static int host_join(spotlane_turn turn, struct spotlane_bytes actor_id, struct spotlane_bytes spot_id)
{
	(void)actor_id;
	(void)spot_id;
	spot_of(turn.value, "join")->changes_asked++;
	return 0;
}

static int host_leave(spotlane_turn turn, struct spotlane_bytes actor_id)
{
	(void)actor_id;
	spot_of(turn.value, "leave")->changes_asked++;
	return 0;
}

// One client, always there.
static int host_client(spotlane_turn turn, struct spotlane_client_handle *out)
{
	if (!spot_of(turn.value, "client")->wants_reply)
		return -1;
	memset(out, 0, sizeof(*out));
	out->value[0] = 1;
	return 0;
}

static int host_push(spotlane_turn turn, const struct spotlane_client_handle *to, uint16_t type,
	uint16_t content, struct spotlane_bytes payload)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "push");

	if (to->value[0] != 1 || payload.size > SPOTLANE_PUSH_BYTES_MAX)
		return -1;
	s->pushed.count++;
	s->pushed.type = type;
	s->pushed.content = content;
	s->pushed.id = (struct spotlane_bytes){"", 0};
	s->pushed.payload = buffer_set(&s->pushed_payload, payload);
	return 0;
}

static uint64_t host_now_ns(spotlane_turn turn)
{
	return spot_of(turn.value, "now_ns")->harness->now_ns;
}

static int host_close_self(spotlane_instance_turn turn)
{
	spot_of(turn.value, "close_self")->close_asked++;
	return 0;
}

// ---- timers ----

static struct harness_timer *timer_find(
	const struct spotlane_harness_spot *s, const char *name, size_t name_bytes)
{
	for (size_t i = 0; i < SPOTLANE_TIMERS_MAX; i++)
		if (strlen(s->timers[i].name) == name_bytes &&
			memcmp(s->timers[i].name, name, name_bytes) == 0)
			return (struct harness_timer *)(uintptr_t)&s->timers[i];
	return NULL;
}

static int hears_ticks(const struct spotlane_harness_spot *s);

static int host_timer_set(
	spotlane_turn turn, struct spotlane_bytes name, const struct spotlane_timer *timer)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "timer_set");
	struct harness_timer *t;

	if (!hears_ticks(s) || name.size == 0 || name.size > SPOTLANE_TIMER_NAME_MAX ||
		memchr(name.data, 0, name.size) != NULL || // the harness's own limit
		(timer->period_us != 0 && timer->period_us < 1000))
		return -1;
	t = timer_find(s, name.data, name.size);
	if (t == NULL)
		t = timer_find(s, "", 0);
	if (t == NULL)
		return -1;
	memcpy(t->name, name.data, name.size);
	t->name[name.size] = '\0';
	t->timer = *timer;
	t->generation++;
	t->due_ns = s->harness->now_ns + timer->first_us * 1000;
	return 0;
}

static int host_timer_cancel(spotlane_turn turn, struct spotlane_bytes name)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "timer_cancel");
	struct harness_timer *t = name.size == 0 ? NULL : timer_find(s, name.data, name.size);

	if (t == NULL)
		return 0;
	t->name[0] = '\0';
	return 1;
}

// The call stays open: the test says how it ends.
static int host_cancel(spotlane_turn turn, spotlane_call call)
{
	struct spotlane_harness_spot *s = spot_of(turn.value, "cancel");

	return s->awaits == SPOTLANE_AWAITS_ANSWER && s->call.value == call.value ? 0 : -1;
}

static const struct spotlane_host host_table = {
	.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_host),
	.reply = host_reply,
	.reply_error = host_reply_error,
	.send = host_send,
	.request = host_request,
	.offload = host_offload,
	.now_ns = host_now_ns,
	.close_self = host_close_self,
	.timer_set = host_timer_set,
	.timer_cancel = host_timer_cancel,
	.cancel = host_cancel,
	.actor = host_actor,
	.send_actor = host_send,
	.request_actor = host_request,
	.join = host_join,
	.leave = host_leave,
	.client = host_client,
	.push = host_push,
};

// ---- opening ----

struct spotlane_harness *spotlane_harness_open(const char *path)
{
	const struct spotlane_module *module;
	struct spotlane_harness *h;
	char why[MODULE_WHY_BYTES];

	if (module_load(path, &module, why) != MODULE_LOADED) {
		fprintf(stderr, "%s\n", why);
		return NULL;
	}
	if (module->attach(&host_table) != 0) {
		fprintf(stderr, "%s: attach refused\n", path);
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		broken("memory is short");
	h->module = module;
	h->now_ns = 1;
	return h;
}

void spotlane_harness_close(struct spotlane_harness *h)
{
	if (h != NULL && h->spots != 0)
		broken("%u Spots are still open", h->spots);
	free(h);
}

void spotlane_harness_set_clock(struct spotlane_harness *h, uint64_t now_ns)
{
	h->now_ns = now_ns;
}

void spotlane_harness_refuse_calls(struct spotlane_harness *h, unsigned n)
{
	h->refuse_calls = n;
}

// ---- making and ending a Spot ----

static bool find_type(struct spotlane_harness_spot *s, const char *name)
{
	const struct spotlane_module *m = s->harness->module;

	for (int i = 0; m->instance_types && m->instance_types[i]; i++)
		if (strcmp(m->instance_types[i]->name, name) == 0) {
			s->kind = KIND_INSTANCE;
			s->type.instance = m->instance_types[i];
			return true;
		}
	for (int i = 0; m->user_types && m->user_types[i]; i++)
		if (strcmp(m->user_types[i]->name, name) == 0) {
			s->kind = KIND_USER;
			s->type.user = m->user_types[i];
			return true;
		}
	for (int i = 0; m->entry_types && m->entry_types[i]; i++)
		if (strcmp(m->entry_types[i]->name, name) == 0) {
			s->kind = KIND_ENTRY;
			s->type.entry = m->entry_types[i];
			return true;
		}
	return false;
}

// The callbacks that all kinds share, whatever the kind.
struct common {
	int (*construct)(const struct spotlane_spot_info *info, spotlane_instance *out);
	int (*configure)(spotlane_instance self, struct spotlane_bytes config);
	int (*initialise)(spotlane_instance self);
	int (*closing)(
		spotlane_instance self, enum spotlane_close_reason reason, uint64_t deadline_ns);
	void (*dispose)(spotlane_instance self);
	uint32_t flags;
};

#define COMMON_OF(t)                                                                               \
	((struct common){(t)->construct, (t)->configure, (t)->initialise, (t)->closing,            \
		(t)->dispose, (t)->flags})

static struct common common_of(const struct spotlane_harness_spot *s)
{
	switch (s->kind) {
	case KIND_ENTRY:
		return COMMON_OF(s->type.entry);
	case KIND_USER:
		return COMMON_OF(s->type.user);
	case KIND_INSTANCE:
		return COMMON_OF(s->type.instance);
	}
	broken("a Spot without a kind");
}

static uint32_t flags_of(const struct spotlane_harness_spot *s)
{
	return common_of(s).flags;
}

static void spot_free(struct spotlane_harness_spot *s)
{
	free(s->offload.argument.data);
	free(s->reply_bytes.data);
	free(s->sent_id.data);
	free(s->sent_payload.data);
	free(s->pushed_payload.data);
	free(s);
}

// K5: configure → (User: create) → initialise. 0 or the first refusal.
static int bring_up(struct spotlane_harness_spot *s, const struct common *c,
	struct spotlane_bytes config, struct spotlane_bytes argument)
{
	int kind = c->configure != NULL ? c->configure(s->self, config) : 0;

	if (kind == 0 && s->kind == KIND_USER && s->type.user->create != NULL)
		kind = s->type.user->create(s->self, argument) != 0 ? SPOTLANE_REJECTED : 0;
	if (kind == 0 && c->initialise != NULL)
		kind = c->initialise(s->self);
	return kind;
}

struct spotlane_harness_spot *spotlane_harness_make(struct spotlane_harness *h, const char *type,
	const char *id, const char *config_json, struct spotlane_bytes argument, int *out_kind)
{
	struct spotlane_harness_spot *s = calloc(1, sizeof(*s));
	struct spotlane_bytes config = {config_json, config_json ? strlen(config_json) : 0};
	struct spotlane_spot_info info = {
		.id = {id, strlen(id)}, .config = config, .object_generation = 1};
	struct common common;
	int kind;

	if (s == NULL)
		broken("memory is short");
	s->harness = h;
	if (!find_type(s, type))
		broken("the module has no Spot type %s", type);
	common = common_of(s);
	kind = common.construct(&info, &s->self);
	if (kind == 0) {
		kind = bring_up(s, &common, config, argument);
		if (kind != 0)
			common.dispose(s->self);
	}
	if (out_kind != NULL)
		*out_kind = kind == 0 ? SPOTLANE_OK : kind;
	if (kind != 0) {
		spot_free(s);
		return NULL;
	}
	h->spots++;
	return s;
}

int spotlane_harness_end(struct spotlane_harness_spot *s, enum spotlane_close_reason reason)
{
	struct common common = common_of(s);
	int closing = 0;

	if (s->turn == TURN_WAITING)
		broken("closing while a handler waits");
	if (common.closing != NULL)
		closing = common.closing(s->self, reason, s->harness->now_ns + 1000000000u);
	common.dispose(s->self);
	s->harness->spots--;
	spot_free(s);
	return closing;
}

// ---- turns ----

static int call_message(struct spotlane_harness_spot *s, const struct spotlane_message *m)
{
	uint64_t turn = (uintptr_t)s;

	switch (s->kind) {
	case KIND_ENTRY:
		return (int)s->type.entry->message(s->self, (spotlane_entry_turn){turn}, m);
	case KIND_USER:
		return (int)s->type.user->message(s->self, (spotlane_user_turn){turn}, m);
	case KIND_INSTANCE:
		return (int)s->type.instance->message(s->self, (spotlane_instance_turn){turn}, m);
	}
	broken("a Spot without a kind");
}

static int call_answered(
	struct spotlane_harness_spot *s, spotlane_call call, const struct spotlane_answer *a)
{
	uint64_t turn = (uintptr_t)s;

	switch (s->kind) {
	case KIND_ENTRY:
		if (s->type.entry->answered != NULL)
			return (int)s->type.entry->answered(
				s->self, (spotlane_entry_turn){turn}, call, a);
		break;
	case KIND_USER:
		if (s->type.user->answered != NULL)
			return (int)s->type.user->answered(
				s->self, (spotlane_user_turn){turn}, call, a);
		break;
	case KIND_INSTANCE:
		if (s->type.instance->answered != NULL)
			return (int)s->type.instance->answered(
				s->self, (spotlane_instance_turn){turn}, call, a);
		break;
	}
	broken("the handler waited but its type has no answered callback");
}

static int hears_ticks(const struct spotlane_harness_spot *s)
{
	switch (s->kind) {
	case KIND_ENTRY:
		return s->type.entry->ticked != NULL;
	case KIND_USER:
		return s->type.user->ticked != NULL;
	case KIND_INSTANCE:
		return s->type.instance->ticked != NULL;
	}
	return 0;
}

static int call_ticked(struct spotlane_harness_spot *s, const struct spotlane_tick *tick)
{
	uint64_t turn = (uintptr_t)s;

	switch (s->kind) {
	case KIND_ENTRY:
		return (int)s->type.entry->ticked(s->self, (spotlane_entry_turn){turn}, tick);
	case KIND_USER:
		return (int)s->type.user->ticked(s->self, (spotlane_user_turn){turn}, tick);
	case KIND_INSTANCE:
		return (int)s->type.instance->ticked(s->self, (spotlane_instance_turn){turn}, tick);
	}
	broken("a Spot without a kind");
}

// Judges how the handler left its turn. The three enums share their numbers.
static struct spotlane_harness_reply leave(struct spotlane_harness_spot *s, int outcome)
{
	bool waits = outcome == SPOTLANE_WAIT || outcome == SPOTLANE_YIELD;

	if (outcome < SPOTLANE_DONE || outcome > SPOTLANE_YIELD ||
		(s->kind == KIND_ENTRY && outcome == SPOTLANE_YIELD))
		broken("the handler left with %d", outcome);
	if (waits && (common_of(s).flags & SPOTLANE_TYPE_NOWAIT))
		broken("a nowait type waits");
	if (waits && s->awaits == 0)
		broken("the handler waits for nothing");
	s->turn = waits ? TURN_WAITING : TURN_NONE;
	if (!waits) {
		s->awaits = 0;
		if (s->wants_reply && !s->answered)
			end_request(s, SPOTLANE_OK, SPOTLANE_BYTES, (struct spotlane_bytes){"", 0});
	}
	return s->reply;
}

static void turn_begin(struct spotlane_harness_spot *s, bool wants_reply)
{
	if (s->turn != TURN_NONE)
		broken("a message while a handler waits");
	s->turn = TURN_RUNNING;
	s->wants_reply = wants_reply;
	s->answered = false;
	s->started = 0;
	s->reply = (struct spotlane_harness_reply){0};
}

static struct spotlane_harness_reply run_turn(struct spotlane_harness_spot *s, bool wants_reply,
	uint16_t type, uint16_t content, struct spotlane_bytes payload)
{
	struct spotlane_message m = {
		.type = type, .content = content, .wants_reply = wants_reply, .payload = payload};

	turn_begin(s, wants_reply);
	return leave(s, call_message(s, &m));
}

struct spotlane_harness_reply spotlane_harness_request(struct spotlane_harness_spot *s,
	uint16_t type, uint16_t content, struct spotlane_bytes payload)
{
	return run_turn(s, true, type, content, payload);
}

void spotlane_harness_send(struct spotlane_harness_spot *s, uint16_t type, uint16_t content,
	struct spotlane_bytes payload)
{
	run_turn(s, false, type, content, payload);
}

int spotlane_harness_awaited(const struct spotlane_harness_spot *s)
{
	return s->turn == TURN_WAITING ? s->awaits : 0;
}

struct spotlane_harness_reply spotlane_harness_answer(
	struct spotlane_harness_spot *s, const struct spotlane_answer *answer)
{
	if (s->turn != TURN_WAITING)
		broken("an answer while nothing waits");
	s->turn = TURN_RUNNING;
	s->awaits = 0;
	s->started = 0;
	return leave(s, call_answered(s, s->call, answer));
}

struct spotlane_harness_reply spotlane_harness_run_offload(struct spotlane_harness_spot *s)
{
	struct spotlane_answer answer = {.kind = SPOTLANE_OK, .accepted = 1};
	struct spotlane_harness_reply reply;
	char *out;

	if (spotlane_harness_awaited(s) != SPOTLANE_AWAITS_OFFLOAD)
		broken("no offloaded work is awaited");
	out = malloc(s->offload.capacity + 1);
	if (out == NULL)
		broken("memory is short");
	answer.payload.data = out;
	answer.payload.size = s->offload.work(
		s->offload.argument.data, s->offload.argument.size, out, s->offload.capacity);
	if (answer.payload.size > s->offload.capacity)
		broken("offloaded work returned %zu bytes of %zu", answer.payload.size,
			s->offload.capacity);
	reply = spotlane_harness_answer(s, &answer);
	free(out);
	return reply;
}

struct spotlane_harness_sent spotlane_harness_last_sent(const struct spotlane_harness_spot *s)
{
	return s->sent;
}

struct spotlane_harness_sent spotlane_harness_last_push(const struct spotlane_harness_spot *s)
{
	return s->pushed;
}

void spotlane_harness_set_actor(struct spotlane_harness *h, const char *id)
{
	snprintf(h->actor, sizeof(h->actor), "%s", id);
}

static struct spotlane_bytes id_bytes(const char *id)
{
	return (struct spotlane_bytes){id, strlen(id)};
}

int spotlane_harness_join(struct spotlane_harness_spot *s, const char *actor_id)
{
	const struct spotlane_user_type *user = s->type.user;
	int refused = 0;

	if (s->kind != KIND_USER)
		return 0;
	if (user->joining != NULL)
		refused = user->joining(s->self, id_bytes(actor_id));
	if (refused == 0 && user->joined != NULL)
		user->joined(s->self, id_bytes(actor_id));
	return refused;
}

void spotlane_harness_leave(struct spotlane_harness_spot *s, const char *actor_id)
{
	if (s->kind == KIND_USER && s->type.user->left != NULL)
		s->type.user->left(s->self, id_bytes(actor_id));
}

unsigned spotlane_harness_changes_asked(const struct spotlane_harness_spot *s)
{
	return s->changes_asked;
}

unsigned spotlane_harness_close_asked(const struct spotlane_harness_spot *s)
{
	return s->close_asked;
}

uint64_t spotlane_harness_timer_due(const struct spotlane_harness_spot *s, const char *name)
{
	const struct harness_timer *t = timer_find(s, name, strlen(name));

	return t == NULL ? 0 : t->due_ns;
}

void spotlane_harness_tick(struct spotlane_harness_spot *s, const char *name)
{
	struct harness_timer *t = timer_find(s, name, strlen(name));
	char shown[SPOTLANE_TIMER_NAME_MAX + 1];
	struct spotlane_tick tick;

	if (t == NULL || name[0] == '\0')
		broken("no timer \"%s\" is set", name);
	if (t->due_ns > s->harness->now_ns)
		s->harness->now_ns = t->due_ns;
	memcpy(shown, t->name, sizeof(shown));
	tick = (struct spotlane_tick){.name = {shown, strlen(shown)},
		.due_ns = t->due_ns,
		.generation = t->generation};
	if (t->timer.period_us == 0)
		t->name[0] = '\0';
	else
		t->due_ns += t->timer.period_us * 1000;
	turn_begin(s, false);
	leave(s, call_ticked(s, &tick));
}
