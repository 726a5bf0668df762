// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

// A bounded memory of changes by (user, nonce). The oldest finished receipt makes room.

static bool hash_request(const struct api_request *request, uint8_t out[API_HASH_BYTES])
{
	// Canonical: members sorted, no blanks. The nonce itself is equal on both sides.
	char *text = json_dumps(request->args, JSON_COMPACT | JSON_SORT_KEYS);
	crypto_hash_sha256_state state;
	if (text == NULL)
		return false;
	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(
		&state, (const uint8_t *)request->command->op, strlen(request->command->op) + 1);
	crypto_hash_sha256_update(&state, (const uint8_t *)text, strlen(text));
	crypto_hash_sha256_final(&state, out);
	free(text);
	return true;
}

static struct api_receipt *receipt_find(struct api *api, uid_t uid, const char *nonce)
{
	for (uint32_t i = 0; i < api->options.limits.receipts_max; i++) {
		struct api_receipt *r = &api->receipts[i];
		if (r->state != RECEIPT_EMPTY && r->uid == uid && strcmp(r->nonce, nonce) == 0)
			return r;
	}
	return NULL;
}

static struct api_receipt *receipt_room(struct api *api)
{
	uint32_t max = api->options.limits.receipts_max;
	for (uint32_t i = 0; i < max; i++) {
		struct api_receipt *r = &api->receipts[api->receipt_next];
		api->receipt_next = (api->receipt_next + 1) % max;
		if (r->state == RECEIPT_RUNNING)
			continue;
		json_decref(r->body);
		*r = (struct api_receipt){0};
		return r;
	}
	return NULL;
}

enum receipt_verdict receipt_open(struct api_request *request)
{
	struct api *api = request->api;
	const char *nonce = arg_text(request, "nonce");
	uint8_t hash[API_HASH_BYTES];
	if (!hash_request(request, hash))
		return RECEIPT_FULL;
	struct api_receipt *receipt = receipt_find(api, request->conn->uid, nonce);
	if (receipt == NULL) {
		receipt = receipt_room(api);
		if (receipt == NULL)
			return RECEIPT_FULL;
		receipt->state = RECEIPT_RUNNING;
		receipt->uid = request->conn->uid;
		memcpy(receipt->nonce, nonce, strlen(nonce) + 1);
		memcpy(receipt->hash, hash, sizeof hash);
		request->receipt = receipt;
		return RECEIPT_NEW;
	}
	if (memcmp(receipt->hash, hash, sizeof hash) != 0)
		return RECEIPT_CONFLICT;
	request->receipt = receipt;
	return receipt->state == RECEIPT_DONE ? RECEIPT_REPLAYED : RECEIPT_WAITS;
}

void receipt_fini(struct api *api)
{
	for (uint32_t i = 0; i < api->options.limits.receipts_max; i++)
		json_decref(api->receipts[i].body);
	mem_free(api->receipts);
	api->receipts = NULL;
}
