// SPDX-License-Identifier: BSD-3-Clause
#include "core/resolve.h"

#include "base/check.h"
#include "core/core.h"
#include "core/explain.h"
#include "core/in_place.h"

_Static_assert(FABRIC_BURST_MAX <= (int)ROUTE_BURST_MAX, "one look-up for a burst");

bool resolve_refuses(
	struct dp_worker *w, struct offer *offer, uint64_t owner_node, uint64_t owner_lease)
{
	uint32_t refuse_with = atomic_load_explicit(&w->dp->admit_refusal, memory_order_relaxed);
	if (UNLIKELY(refuse_with != 0)) {
		deliver_refuse(w, offer,
			result_refused((enum result_kind)refuse_with, REASON_NONE), NULL);
		return true;
	}
	if (owner_node == 0)
		return false;
	uint64_t lease =
		atomic_load_explicit(&w->dp->lease.generation, memory_order_relaxed);
	if (owner_node == w->dp->config.node.value && owner_lease == lease)
		return false;
	if (offer->env.explain != NULL)
		offer->env.explain->filter = "another owner";
	deliver_refuse(w, offer, result_refused(RESULT_STALE_ROUTE, REASON_WRONG_OWNER), NULL);
	return true;
}

// The short way for what it takes; the long way repeats its questions for the rest.
static inline bool ran_in_place(struct dp_worker *w, struct offer *offer, route_word word)
{
	if (UNLIKELY(w->park.messages > 0) || UNLIKELY(route_tag(word) != ROUTE_LOCAL))
		return false;
	struct dp_spot *spot = route_pointer(word);
	// Every delivery checks that the table led to the Spot that the message names.
	CHECK(spot_key_equal(spot->key, offer->env.key));
	return in_place_try(w, offer, spot);
}

void resolve_burst(struct dp_worker *w, struct offer *offers, uint32_t n)
{
	struct spot_key keys[FABRIC_BURST_MAX];
	route_word words[FABRIC_BURST_MAX];
	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = offers[i].env.key;
	route_lookup_burst(w->dp->config.routes, keys, n, words);
	for (uint32_t i = 0; i < n; i++)
		if (LIKELY(route_tag(words[i]) == ROUTE_LOCAL))
			__builtin_prefetch(route_pointer(words[i]), 1);
	// What a module names its instance by is most often where its state lies; fetching what is no
	// address does no harm.
	for (uint32_t i = 0; i < n; i++)
		if (LIKELY(route_tag(words[i]) == ROUTE_LOCAL))
			__builtin_prefetch(
				(const void *)((const struct dp_spot *)route_pointer(words[i]))->instance.value, 1);
	for (uint32_t i = 0; i < n; i++)
		if (UNLIKELY(!ran_in_place(w, &offers[i], words[i])))
			deliver_offer(w, &offers[i], words[i]);
	in_place_count(w);
}

enum delivered resolve_one(struct dp_worker *w, struct offer *offer)
{
	const struct envelope *env = offer->item != NULL ? &offer->item->env : &offer->env;
	return deliver_offer(w, offer, route_lookup(w->dp->config.routes, env->key));
}
