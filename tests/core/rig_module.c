// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

struct rig_log rig_log;
static const struct spotlane_host *host;

static uint32_t instances_used;

static void note(char letter)
{
	if (rig_log.many_threads)
		return;
	size_t n = strlen(rig_log.order);
	if (n + 1 < sizeof(rig_log.order))
		rig_log.order[n] = letter;
}

static int on_construct(const struct spotlane_spot_info *info, spotlane_instance *out)
{
	(void)info;
	note('c');
	out->value = __atomic_add_fetch(&instances_used, 1, __ATOMIC_RELAXED);
	return rig_log.construct_returns;
}

static int on_configure(spotlane_instance self, struct spotlane_bytes config)
{
	(void)self;
	(void)config;
	note('f');
	return rig_log.configure_returns;
}

static int on_create(spotlane_instance self, struct spotlane_bytes argument)
{
	(void)self;
	(void)argument;
	note('k');
	return rig_log.create_returns;
}

static int on_initialise(spotlane_instance self)
{
	(void)self;
	note('i');
	return rig_log.initialise_returns;
}

static int on_closing(spotlane_instance self, enum spotlane_close_reason reason, uint64_t deadline_ns)
{
	(void)self;
	if (rig_log.many_threads)
		return 0;
	note('x');
	rig_log.closings++;
	rig_log.closing_reason = (int)reason;
	rig_log.closing_deadline = deadline_ns;
	return rig_log.closing_returns;
}

static void on_dispose(spotlane_instance self)
{
	(void)self;
	if (rig_log.many_threads)
		return;
	note('d');
	rig_log.disposes++;
}

static void log_value(const struct spotlane_message *m, size_t offset)
{
	uint64_t value = 0;
	size_t n = m->payload.size < offset ? 0 : m->payload.size - offset;
	memcpy(&value, (const uint8_t *)m->payload.data + (n > 0 ? offset : 0), n < 8 ? n : 8);
	uint32_t at = __atomic_fetch_add(&rig_log.count, 1, __ATOMIC_RELAXED);
	if (at < RIG_LOG_MAX)
		rig_log.values[at] = value;
}

static void spend(const struct spotlane_message *m)
{
	uint64_t ticks = 0;
	memcpy(&ticks, m->payload.data, m->payload.size < 8 ? m->payload.size : 8);
	rig_pass(ticks);
}

static size_t reverse(const void *argument, size_t argument_size, void *out, size_t capacity)
{
	size_t n = argument_size < capacity ? argument_size : capacity;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = ((const uint8_t *)argument)[argument_size - 1 - i];
	return n;
}

static void reply_big(spotlane_turn t, const struct spotlane_message *m)
{
	static uint8_t big[4 * 1024 * 1024];
	uint32_t n;
	memcpy(&n, m->payload.data, 4);
	for (uint32_t i = 0; i < n; i++)
		big[i] = (uint8_t)(i * 7 + (i >> 8));
	host->reply(t, SPOTLANE_BYTES, (struct spotlane_bytes){big, n});
}

static enum spotlane_outcome ask(spotlane_turn t, const struct spotlane_message *m, uint16_t type,
	enum spotlane_outcome leave)
{
	spotlane_call call = host->request(
		t, m->payload, type, SPOTLANE_BYTES, (struct spotlane_bytes){"asked", 5}, 0);
	if (!rig_log.many_threads)
		rig_log.self_call = call.value;
	if (call.value != 0)
		return leave;
	host->reply_error(t, SPOTLANE_INVALID_OPERATION, (struct spotlane_bytes){"", 0});
	return SPOTLANE_DONE;
}

static void set_timer(spotlane_turn t)
{
	struct spotlane_bytes name = {rig_log.timer.name, strlen(rig_log.timer.name)};
	rig_log.timer_set_returned = host->timer_set(t, name, &rig_log.timer.timer);
}

static enum spotlane_outcome ask_nobody(spotlane_turn t, enum spotlane_outcome leave)
{
	host->request(t, (struct spotlane_bytes){"nobody-home", 11}, DO_ECHO, SPOTLANE_BYTES,
		(struct spotlane_bytes){"", 0}, 0);
	return leave;
}

static enum spotlane_outcome common_ticked(spotlane_turn t, const struct spotlane_tick *tick)
{
	uint32_t at = rig_log.ticks++;
	rig_log.ticks_overlapped += rig_log.ticks_under_way > 0;
	if (at < ARRAY_COUNT(rig_log.tick)) {
		rig_log.tick[at].at_ns = host->now_ns(t);
		rig_log.tick[at].due_ns = tick->due_ns;
		rig_log.tick[at].generation = tick->generation;
		rig_log.tick[at].left_out = tick->left_out;
	}
	switch (rig_log.timer.tick_does) {
	case DO_SPEND:
		rig_log.timer.tick_does = DO_NOTHING;
		rig_pass(rig_log.timer.spend);
		return SPOTLANE_DONE;
	case DO_TIMER:
		rig_log.timer.tick_does = DO_NOTHING;
		set_timer(t);
		return SPOTLANE_DONE;
	case DO_HOLD:
		rig_log.ticks_under_way++;
		return ask_nobody(t, SPOTLANE_WAIT);
	case DO_ASK_YIELD:
		rig_log.ticks_under_way++;
		return ask_nobody(t, SPOTLANE_YIELD);
	default:
		return SPOTLANE_DONE;
	}
}

static enum spotlane_outcome ask_actor(spotlane_turn t, const struct spotlane_message *m)
{
	spotlane_call call = host->request_actor(
		t, m->payload, DO_WHO, SPOTLANE_BYTES, (struct spotlane_bytes){"asked", 5}, 0);
	rig_log.self_call = call.value;
	if (call.value != 0)
		return m->type == DO_ASK_ACTOR ? SPOTLANE_WAIT : SPOTLANE_YIELD;
	host->reply_error(t, SPOTLANE_INVALID_OPERATION, (struct spotlane_bytes){"", 0});
	return SPOTLANE_DONE;
}

static enum spotlane_outcome ask_or_wait(spotlane_turn t, const struct spotlane_message *m)
{
	switch (m->type) {
	case DO_ASK:
		return ask(t, m, DO_ECHO, SPOTLANE_WAIT);
	case DO_ASK_YIELD:
		return ask(t, m, DO_ECHO, SPOTLANE_YIELD);
	case DO_ASK_HOLD:
		return ask(t, m, DO_HOLD, SPOTLANE_WAIT);
	case DO_ASK_TWO_YIELD:
		for (int i = 0; i < 2; i++)
			host->request(t, (struct spotlane_bytes){i == 0 ? "b" : "c", 1}, DO_ECHO,
				SPOTLANE_BYTES, m->payload, 0);
		rig_log.answers_wanted = 2;
		return SPOTLANE_YIELD;
	case DO_ASK_HOLD_YIELD:
		return ask(t, m, DO_HOLD, SPOTLANE_YIELD);
	case DO_WAIT_NOTHING:
		return SPOTLANE_WAIT;
	case DO_OFFLOAD:
		return host->offload(t, reverse, m->payload, m->payload.size).value != 0
			? SPOTLANE_WAIT
			: SPOTLANE_DONE;
	case DO_HOLD: // a call that only a deadline ends: a Spot that does not exist
		host->request(t, (struct spotlane_bytes){"nobody-home", 11}, DO_ECHO, SPOTLANE_BYTES,
			(struct spotlane_bytes){"", 0}, 0);
		return SPOTLANE_WAIT;
	case DO_ASK_ACTOR:
	case DO_ASK_ACTOR_YIELD:
		return ask_actor(t, m);
	default:
		return SPOTLANE_DONE;
	}
}

static enum spotlane_outcome common(spotlane_turn t, const struct spotlane_message *m)
{
	switch (m->type) {
	case DO_ECHO:
		host->reply(t, m->content, m->payload);
		return SPOTLANE_DONE;
	case DO_LOG:
		log_value(m, 0);
		return SPOTLANE_DONE;
	case DO_SEND:
		if (host->send(t, m->payload, DO_LOG, SPOTLANE_BYTES, m->payload) != 0)
			host->reply_error(
				t, SPOTLANE_UNAVAILABLE, (struct spotlane_bytes){"", 0});
		return SPOTLANE_DONE;
	case DO_ERROR:
		host->reply_error(t, SPOTLANE_NOT_FOUND, (struct spotlane_bytes){"no", 2});
		return SPOTLANE_DONE;
	case DO_TWICE:
		host->reply(t, m->content, m->payload);
		if (host->reply(t, m->content, m->payload) == -1)
			rig_log.second_reply_refused++;
		return SPOTLANE_DONE;
	case DO_SPEND:
		spend(m);
		return SPOTLANE_DONE;
	case DO_SPEND_LOG:
		spend(m);
		log_value(m, 8);
		return SPOTLANE_DONE;
	case DO_TIMER:
		memcpy(&rig_log.timer, m->payload.data, sizeof(rig_log.timer));
		set_timer(t);
		return SPOTLANE_DONE;
	case DO_CANCEL:
		rig_log.cancel_returned = host->cancel(t, (spotlane_call){rig_log.self_call});
		return SPOTLANE_DONE;
	case DO_TIMER_CANCEL:
		rig_log.timer_cancel_returned = host->timer_cancel(t, m->payload);
		return SPOTLANE_DONE;
	case DO_WHO:
		log_value(m, 0);
		host->reply(t, SPOTLANE_TEXT, host->actor(t));
		return SPOTLANE_DONE;
	case DO_KEEP:
		rig_log.client_returned = host->client(t, &rig_log.client);
		return SPOTLANE_DONE;
	case DO_PUSH:
		rig_log.push_returned =
			host->push(t, &rig_log.client, 77, SPOTLANE_TEXT, m->payload);
		return SPOTLANE_DONE;
	case DO_JOIN: // the payload's first byte is the Actor, the rest the Spot
		if (host->join(t, (struct spotlane_bytes){m->payload.data, 1},
			    (struct spotlane_bytes){(const char *)m->payload.data + 1,
				    m->payload.size - 1}) != 0)
			host->reply_error(
				t, SPOTLANE_UNAVAILABLE, (struct spotlane_bytes){"", 0});
		return SPOTLANE_DONE;
	case DO_BIG:
		reply_big(t, m);
		return SPOTLANE_DONE;
	default:
		return ask_or_wait(t, m);
	}
}

static enum spotlane_outcome common_answered(spotlane_turn t, const struct spotlane_answer *a)
{
	if (!rig_log.many_threads) {
		rig_log.answer_kind = a->kind;
		rig_log.answer_reason = a->reason;
		rig_log.answer_accepted = a->accepted;
		rig_log.answers++;
		if (rig_log.ticks_under_way > 0)
			rig_log.ticks_under_way--;
		if (rig_log.answers_wanted > 0 && --rig_log.answers_wanted > 0)
			return SPOTLANE_YIELD;
	}
	if (a->kind == SPOTLANE_OK)
		host->reply(t, a->content, a->payload);
	else
		host->reply_error(t, SPOTLANE_UNAVAILABLE, (struct spotlane_bytes){"", 0});
	return SPOTLANE_DONE;
}

static enum spotlane_outcome instance_message(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_message *m)
{
	(void)self;
	if (m->type == DO_CLOSE) {
		host->close_self(turn);
		return SPOTLANE_DONE;
	}
	return common(spotlane_instance_common(turn), m);
}

static enum spotlane_outcome instance_answered(spotlane_instance self, spotlane_instance_turn turn,
	spotlane_call call, const struct spotlane_answer *a)
{
	(void)self;
	(void)call;
	return common_answered(spotlane_instance_common(turn), a);
}

static enum spotlane_outcome instance_ticked(
	spotlane_instance self, spotlane_instance_turn turn, const struct spotlane_tick *tick)
{
	(void)self;
	return common_ticked(spotlane_instance_common(turn), tick);
}

static enum spotlane_outcome user_ticked(
	spotlane_instance self, spotlane_user_turn turn, const struct spotlane_tick *tick)
{
	(void)self;
	return common_ticked(spotlane_user_common(turn), tick);
}

static enum spotlane_entry_outcome entry_ticked(
	spotlane_instance self, spotlane_entry_turn turn, const struct spotlane_tick *tick)
{
	(void)self;
	return common_ticked(spotlane_entry_common(turn), tick) == SPOTLANE_DONE
		? SPOTLANE_ENTRY_DONE
		: SPOTLANE_ENTRY_WAIT;
}

static enum spotlane_outcome user_message(
	spotlane_instance self, spotlane_user_turn turn, const struct spotlane_message *m)
{
	(void)self;
	return common(spotlane_user_common(turn), m);
}

static enum spotlane_outcome user_answered(spotlane_instance self, spotlane_user_turn turn,
	spotlane_call call, const struct spotlane_answer *a)
{
	(void)self;
	(void)call;
	return common_answered(spotlane_user_common(turn), a);
}

static enum spotlane_entry_outcome entry_message(
	spotlane_instance self, spotlane_entry_turn turn, const struct spotlane_message *m)
{
	(void)self;
	return common(spotlane_entry_common(turn), m) == SPOTLANE_DONE ? SPOTLANE_ENTRY_DONE
								       : SPOTLANE_ENTRY_WAIT;
}

static enum spotlane_entry_outcome entry_answered(spotlane_instance self, spotlane_entry_turn turn,
	spotlane_call call, const struct spotlane_answer *a)
{
	(void)self;
	(void)call;
	common_answered(spotlane_entry_common(turn), a);
	return SPOTLANE_ENTRY_DONE;
}

#define LIFE                                                                                       \
	.construct = on_construct, .configure = on_configure, .initialise = on_initialise,         \
	.closing = on_closing, .dispose = on_dispose

static const struct spotlane_instance_type plain = {
	.name = "plain", LIFE, .message = instance_message, .answered = instance_answered,
	.ticked = instance_ticked};
static const struct spotlane_instance_type quick = {.name = "quick", .flags = SPOTLANE_TYPE_NOWAIT,
	LIFE, .message = instance_message, .answered = instance_answered,
	.ticked = instance_ticked};
static const struct spotlane_instance_type narrow = {.name = "narrow",
	.limits = {.application_count_max = 4, .application_bytes_max = 4096}, LIFE,
	.message = instance_message, .answered = instance_answered, .ticked = instance_ticked};
static const struct spotlane_instance_type deaf = {
	.name = "deaf", LIFE, .message = instance_message};

static void note_member(char letter, struct spotlane_bytes actor_id)
{
	size_t n = strlen(rig_log.members);
	if (n + 2 < sizeof(rig_log.members)) {
		rig_log.members[n] = letter;
		rig_log.members[n + 1] = ((const char *)actor_id.data)[0];
	}
}

static int on_joining(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)self;
	note_member('?', actor_id);
	return rig_log.joining_returns;
}

static void on_joined(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)self;
	note_member('+', actor_id);
}

static void on_left(spotlane_instance self, struct spotlane_bytes actor_id)
{
	(void)self;
	note_member('-', actor_id);
}

static const struct spotlane_user_type user = {.name = "user", LIFE, .create = on_create,
	.message = user_message, .answered = user_answered, .ticked = user_ticked, .joining = on_joining,
	.joined = on_joined, .left = on_left};
static const struct spotlane_user_type small = {.name = "small",
	.limits = {.application_count_max = 4, .application_bytes_max = 4096}, LIFE,
	.message = user_message, .answered = user_answered};
static const struct spotlane_entry_type entry = {
	.name = "entry", LIFE, .message = entry_message, .answered = entry_answered,
	.ticked = entry_ticked};

static const struct spotlane_instance_type *const instance_types[] = {
	&plain, &quick, &narrow, &deaf, NULL};
static const struct spotlane_user_type *const user_types[] = {&user, &small, NULL};
static const struct spotlane_entry_type *const entry_types[] = {&entry, NULL};

static int attach(const struct spotlane_host *h)
{
	host = h;
	return 0;
}

const struct spotlane_module rig_module = {.abi = SPOTLANE_MODULE_ABI,
	.size = sizeof(struct spotlane_module),
	.name = "rig",
	.version = "1",
	.attach = attach,
	.instance_types = instance_types,
	.user_types = user_types,
	.entry_types = entry_types};
