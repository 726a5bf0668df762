// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The atomics of the lock-free parts (lane word, ring, return stack): plain C11 in every product
// build. With -DEXPLORE each access is also a point where the interleaving explorer in tests/lib
// may switch to another logical thread, so the explorer runs these very sources. Orders are C11
// orders; the explorer itself runs sequentially consistent (the thread sanitizer watches the
// orders).

#include <stdatomic.h>

// The explorer's tests plant defects by number, to show that it would find them; 0 is the product.
#ifndef EXPLORE_BUG
#define EXPLORE_BUG 0
#endif

#ifdef EXPLORE
void explore_point(void);
#else
static inline void explore_point(void)
{
}
#endif

#define at_load(object, order) (explore_point(), atomic_load_explicit((object), (order)))
// A point on both sides: what a thread does after it has published is worth interrupting too.
#define at_store(object, value, order)                                                             \
	(explore_point(), atomic_store_explicit((object), (value), (order)), explore_point())
#define at_exchange(object, value, order)                                                          \
	(explore_point(), atomic_exchange_explicit((object), (value), (order)))
#define at_fetch_add(object, value, order)                                                         \
	(explore_point(), atomic_fetch_add_explicit((object), (value), (order)))
#define at_fetch_sub(object, value, order)                                                         \
	(explore_point(), atomic_fetch_sub_explicit((object), (value), (order)))
#define at_fetch_or(object, value, order)                                                          \
	(explore_point(), atomic_fetch_or_explicit((object), (value), (order)))
#define at_fetch_and(object, value, order)                                                         \
	(explore_point(), atomic_fetch_and_explicit((object), (value), (order)))
// On failure *seen holds the value found; the failure order is relaxed.
#define at_cas(object, seen, value, order)                                                         \
	(explore_point(), atomic_compare_exchange_strong_explicit(                                 \
				  (object), (seen), (value), (order), memory_order_relaxed))
