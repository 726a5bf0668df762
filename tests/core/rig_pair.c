// SPDX-License-Identifier: BSD-3-Clause
// Two nodes on one net that know each other.
#include "rig.h"

#include <stdlib.h>

static struct dp_peer *peer_of(const struct rig *rig)
{
	struct dp_peer *peer = calloc(1, sizeof(*peer));
	const uint8_t v4[4] = {10, 0, 0, rig->second ? 101 : 1};
	peer_ip_from_v4(peer->ip, v4);
	peer->port = NODE_PORT;
	peer->node = rig->dp->config.node;
	peer->lease.value = 7;
	peer->usable_until_boot_ns = UINT64_MAX;
	return peer;
}

struct rig_pair rig_pair_start(uint16_t workers, void (*adjust)(struct dp_config *config))
{
	struct rig_config config = {.workers = workers, .adjust = adjust};
	struct rig_pair p = {.a = rig_start(&config)};
	config.beside = p.a;
	p.b = rig_start(&config);
	p.b_at_a = peer_of(p.b);
	p.a_at_b = peer_of(p.a);
	assert_int_equal(dp_peers_set(p.a->dp, &p.b_at_a, 1), DP_DONE);
	assert_int_equal(dp_peers_set(p.b->dp, &p.a_at_b, 1), DP_DONE);
	return p;
}

void rig_pair_stop(struct rig_pair *p)
{
	rig_stop(p->b);
	rig_stop(p->a);
	free(p->b_at_a);
	free(p->a_at_b);
}

struct dp_remote *rig_remote(struct rig_pair *p, const char *id)
{
	struct dp_remote *remote = calloc(1, sizeof(*remote));
	remote->key = spot_key_of(rig_id(id));
	remote->owner = p->b_at_a;
	remote->authority_generation.value = 1;
	remote->object_generation.value = 1;
	remote->expires_boot_ns = UINT64_MAX;
	assert_int_equal(
		route_publish(p->a->routes, remote->key, dp_remote_route(remote)), ROUTE_WRITTEN);
	return remote;
}

void rig_remote_retire(struct rig_pair *p, struct dp_remote *remote)
{
	(void)route_retire(p->a->routes, remote->key);
	free(remote);
}
