// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/packet.h"

#include "base/check.h"

void packet_site_init(struct packet_site *site, const struct dp_net_identity *identity,
	uint16_t udp_port, uint8_t fabric)
{
	CHECK(identity->address_count <= DP_NET_ADDRESSES_MAX);
	memset(site, 0, sizeof(*site));
	memcpy(site->mac, identity->mac, sizeof(site->mac));
	site->vlan = identity->vlan;
	site->udp_port = udp_port;
	site->fabric = fabric;
	site->address_count = identity->address_count;
	for (uint32_t i = 0; i < identity->address_count; i++)
		site->ips[i] = packet_ip_load(identity->addresses[i].ip);
}
