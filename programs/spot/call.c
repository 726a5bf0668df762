// SPDX-License-Identifier: BSD-3-Clause
#include "spot.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

// The verbs that make one call: request, send, create, close, lookup.

enum { JSON_PAYLOAD_BYTES_MAX = 64 * 1024 }; // larger payloads are not put into the document

static enum spotlane_call_family family_of(const struct spot_options *o)
{
	switch (o->verb) {
	case SPOT_VERB_SEND:
		return SPOTLANE_CALL_SEND;
	case SPOT_VERB_CREATE:
		return o->existing_ok ? SPOTLANE_CALL_GET_OR_CREATE : SPOTLANE_CALL_CREATE;
	case SPOT_VERB_CLOSE:
		return SPOTLANE_CALL_CLOSE;
	case SPOT_VERB_LOOKUP:
		return SPOTLANE_CALL_LOOKUP;
	case SPOT_VERB_JOIN:
		return SPOTLANE_CALL_JOIN;
	case SPOT_VERB_LEAVE:
		return SPOTLANE_CALL_LEAVE;
	case SPOT_VERB_NONE:
	case SPOT_VERB_LISTEN:
	case SPOT_VERB_REQUEST:
	case SPOT_VERB_REPLAY:
	case SPOT_VERB_GEN:
	case SPOT_VERB_HELP:
	case SPOT_VERB_VERSION:
		break;
	}
	return SPOTLANE_CALL_REQUEST;
}

static struct spotlane_client_call call_of(
	const struct spot_options *o, const struct payload *payload)
{
	return (struct spotlane_client_call){
		.size = sizeof(struct spotlane_client_call),
		.family = family_of(o),
		.id = o->operands[0],
		.id_bytes = strlen(o->operands[0]),
		.type = o->verb == SPOT_VERB_CREATE ? o->type_name : o->intent,
		.message_type = o->message_type,
		.content_type =
			o->content >= 0 ? (uint16_t)o->content : (uint16_t)payload_judge(payload),
		.explain = o->explain,
		.actor = o->actor,
		.payload = payload->bytes,
		.payload_bytes = payload->size,
		.budget_us = o->budget_us,
	};
}

static enum spot_exit say_not_started(const struct spot_options *o, int error)
{
	if (error == -EMSGSIZE)
		fprintf(stderr,
			"spot: the payload is too large: a create argument holds 1,024 bytes, a\n"
			"      message 16 MiB.\n");
	else if (error == -EINVAL)
		fprintf(stderr,
			"spot: '%s' is not an id (1 to 255 bytes of UTF-8), or the type's name\n"
			"      is not 1 to 64 bytes.\n",
			o->operands[0]);
	else
		fprintf(stderr, "spot: the call was not made: %s\n", strerror(-error));
	return error == -ENOMEM ? SPOT_EXIT_INTERNAL : SPOT_EXIT_USAGE;
}

// ---- for people ----

// What to do about it, where there is something.
static const char *hint_of(const struct spot_options *o, const struct spotlane_client_result *r)
{
	switch (r->kind) {
	case SPOTLANE_KIND_NOT_FOUND:
		if (o->intent || o->verb != SPOT_VERB_REQUEST)
			return NULL;
		return "an ordinary message builds nothing. To build an Instance Spot add --intent TYPE;\n"
		       "      to make a User Spot: spot create ID --type-name TYPE";
	case SPOTLANE_KIND_CAPACITY_EXCEEDED:
		return "wait until earlier messages are done, or send less at once";
	case SPOTLANE_KIND_DEADLINE_EXCEEDED:
		return "whether the message ran is not known. A longer budget: --budget MS";
	case SPOTLANE_KIND_NOT_CONFIGURED:
		return "spotctl config show lists the modules that the node has loaded";
	case SPOTLANE_KIND_ALREADY_EXISTS:
		return "to accept an existing Spot of that type add --existing-ok";
	default:
		return NULL;
	}
}

static void print_refused(const struct spot_options *o, const struct spotlane_client_result *r)
{
	char text[1024];
	spotlane_result_text(r, o->operands[0], strlen(o->operands[0]), text, sizeof(text));
	fprintf(stderr, "%s\n", text);
	const char *hint = hint_of(o, r);
	if (hint)
		fprintf(stderr, "spot: %s\n", hint);
}

static bool print_payload(const struct spotlane_client_result *r)
{
	if (r->payload_bytes == 0)
		return puts("OK") != EOF;
	if (fwrite(r->payload, 1, r->payload_bytes, stdout) != r->payload_bytes)
		return false;
	// Text ends its line; bytes stay as they are, for files and pipes.
	const char *bytes = r->payload;
	if (r->content_type != SPOTLANE_CONTENT_BYTES && bytes[r->payload_bytes - 1] != '\n')
		return putchar('\n') != EOF;
	return true;
}

static enum spot_exit print_text(
	const struct spot_options *o, const struct spotlane_client_result *r)
{
	if (r->explained)
		fprintf(stderr, "%.*s\n", (int)r->explanation_bytes, r->explanation);
	if (r->kind != SPOTLANE_KIND_OK) {
		print_refused(o, r);
		return SPOT_EXIT_OK;
	}
	if (r->end == SPOTLANE_END_SENT) {
		puts("sent (one way: nobody says what became of it)");
		return SPOT_EXIT_OK;
	}
	bool written = o->output || print_payload(r);
	if (!written || fflush(stdout) != 0) {
		perror("spot: cannot write to standard output");
		return SPOT_EXIT_INTERNAL;
	}
	return SPOT_EXIT_OK;
}

// ---- for programs ----

static void json_put_bytes(json_t *document, const struct spotlane_client_result *r)
{
	size_t size = sodium_base64_encoded_len(r->payload_bytes, sodium_base64_VARIANT_ORIGINAL);
	char *text = malloc(size);
	if (!text)
		return;
	sodium_bin2base64(text, size, r->payload, r->payload_bytes, sodium_base64_VARIANT_ORIGINAL);
	json_object_set_new(document, "payload_base64", json_string(text));
	free(text);
}

static void json_put_payload(json_t *document, const struct spotlane_client_result *r)
{
	json_object_set_new(document, "payload_bytes", json_integer((json_int_t)r->payload_bytes));
	if (r->payload_bytes == 0 || r->payload_bytes > JSON_PAYLOAD_BYTES_MAX)
		return;
	json_t *value = NULL;
	if (r->content_type == SPOTLANE_CONTENT_JSON)
		value = json_loadb(r->payload, r->payload_bytes, JSON_DECODE_ANY, NULL);
	else if (r->content_type == SPOTLANE_CONTENT_TEXT)
		value = json_stringn(r->payload, r->payload_bytes);
	if (value)
		json_object_set_new(document, "payload", value);
	else
		json_put_bytes(document, r);
}

static enum spot_exit print_json(const struct spot_options *o,
	const struct spotlane_client_result *r, const struct spotlane_client_stats *stats)
{
	const char *contents[] = {"bytes", "json", "text", "refusal"};
	char text[1024];
	spotlane_result_text(r, o->operands[0], strlen(o->operands[0]), text, sizeof(text));
	char generation[24];
	snprintf(generation, sizeof(generation), "%" PRIu64, r->object_generation);
	json_t *document =
		json_pack("{s:s, s:s, s:s?, s:s, s:s, s:s, s:i, s:I, s:s, s:s, s:i, s:i, s:b}",
			"id", o->operands[0], "kind", spotlane_kind_name(r->kind), "reason",
			r->reason ? spotlane_reason_name(r->reason) : NULL, "accepted",
			spotlane_accepted_name(r->accepted), "end", json_name_of_end(r->end),
			"text", text, "exit_code", (int)exit_code_of(r), "latency_ns",
			(json_int_t)r->latency_ns, "object_generation", generation, "content",
			contents[r->content_type % 4], "ingress_worker", (int)r->ingress_worker,
			"home_worker", (int)r->home_worker, "pressure", (int)r->pressure);
	if (!document)
		return json_print(NULL);
	if (r->refused)
		json_object_set_new(document, "refusal", json_of_refusal(&r->refusal));
	if (r->explained)
		json_object_set_new(document, "explanation",
			json_loadb(r->explanation, r->explanation_bytes, JSON_DECODE_ANY, NULL));
	json_put_payload(document, r);
	json_object_set_new(document, "client", json_of_stats(stats));
	return json_print(document);
}

static enum spot_exit write_output(
	const struct spot_options *o, const struct spotlane_client_result *r)
{
	if (!o->output || r->kind != SPOTLANE_KIND_OK)
		return SPOT_EXIT_OK;
	FILE *file = fopen(o->output, "wb");
	bool written = file && fwrite(r->payload, 1, r->payload_bytes, file) == r->payload_bytes;
	if (file && fclose(file) != 0)
		written = false;
	if (written)
		return SPOT_EXIT_OK;
	fprintf(stderr, "spot: cannot write %s: %s\n", o->output, strerror(errno));
	return SPOT_EXIT_INTERNAL;
}

static enum spot_exit show(const struct spot_options *o, const struct spotlane_client_result *r,
	const struct spotlane_client_stats *stats)
{
	enum spot_exit bad = write_output(o, r);
	if (!bad)
		bad = o->json ? print_json(o, r, stats) : print_text(o, r);
	return bad ? bad : exit_code_of(r);
}

enum spot_exit verb_call(const struct spot_options *o)
{
	struct payload payload;
	enum spot_exit bad = payload_read(o->operand_count > 1 ? o->operands[1] : NULL, &payload);
	if (bad)
		return bad;
	spotlane_client *client = NULL;
	bad = node_open(o, 16, &client);
	if (bad) {
		free(payload.bytes);
		return bad;
	}
	struct spotlane_client_call call = call_of(o, &payload);
	if (o->verb == SPOT_VERB_LISTEN) {
		enum spot_exit heard = listen_after(o, client, &call);
		spotlane_client_close(client);
		free(payload.bytes);
		return heard;
	}
	struct spotlane_reply reply;
	int error = spotlane_client_call_wait(client, &call, &reply);
	enum spot_exit code = SPOT_EXIT_OK;
	if (error) {
		code = say_not_started(o, error);
	} else {
		struct spotlane_client_stats stats;
		spotlane_client_stats_read(client, &stats);
		code = show(o, &reply.result, &stats);
		spotlane_reply_free(&reply);
	}
	spotlane_client_close(client);
	free(payload.bytes);
	return code;
}
