// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/dpdk_internal.h"

#include <rte_ether.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include "base/check.h"

// A driver whose ring is full gets a few more tries: it may just have freed descriptors.
enum { PREFETCH_AHEAD = 4, TX_TRIES = 16 };

static struct dpdk_queue *dpdk_of(struct fabric_queue *q)
{
	return (struct dpdk_queue *)(void *)q;
}

// ---- transmit ----

// Returns how many of n went; the rest is freed.
static uint16_t mbufs_send(struct dpdk_queue *q, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t sent = rte_eth_tx_burst(q->port_id, q->queue_id, mbufs, n);
	for (uint32_t try = 0; UNLIKELY(sent < n) && try < TX_TRIES; try++) {
		rte_pause();
		sent += rte_eth_tx_burst(
			q->port_id, q->queue_id, mbufs + sent, (uint16_t)(n - sent));
	}
	if (UNLIKELY(sent < n)) {
		q->base.stats.tx_full += n - sent;
		rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
	}
	return sent;
}

// Link-layer way to a peer. Published neighbours come first: they are fresher than what a peer kept
// from its last frame.
static bool way_find(struct dpdk_queue *q, const struct frame *frame, uint8_t out_mac[6])
{
	static const uint8_t none[6];
	uint8_t hop[16];
	if (dp_net_next_hop(q->identity, frame->peer.ip, hop)) {
		if (neighbours_lookup(q->neighbours, hop, out_mac))
			return true;
		if (memcmp(frame->peer.mac, none, 6) == 0) {
			link_want(q->link, q->base.worker, hop);
			link_wake(q->link);
			return false;
		}
	}
	memcpy(out_mac, frame->peer.mac, 6);
	return memcmp(frame->peer.mac, none, 6) != 0;
}

// Index of the address of ours to speak from, or -1.
static int source_find(const struct dpdk_queue *q, const struct peer *peer)
{
	if (LIKELY(peer->flags != 0 && peer->flags <= q->site.address_count) &&
		packet_ip_is_v4(q->site.ips[peer->flags - 1]) ==
			packet_ip_is_v4(packet_ip_load(peer->ip)))
		return peer->flags - 1;
	return dp_net_source_for(q->identity, peer->ip);
}

// Writes the headers. False: the frame cannot go, counted.
static bool frame_prepare(struct dpdk_queue *q, struct frame *frame)
{
	struct rte_mbuf *m = frame->handle;
	uint8_t mac[6];
	if (UNLIKELY(frame->bytes > q->base.payload_bytes_max)) {
		q->base.stats.tx_too_large++;
		return false;
	}
	int source = source_find(q, &frame->peer);
	if (LIKELY(frame->received)) {
		memcpy(mac, frame->peer.mac, sizeof(mac));
	} else if (source < 0 || !way_find(q, frame, mac)) {
		q->base.stats.tx_no_neighbour++;
		return false;
	}
	CHECK(source >= 0);
	uint32_t header_bytes = packet_header_bytes(
		&q->site, packet_ip_is_v4(packet_ip_load(frame->peer.ip)));
	size_t payload_at = (size_t)(frame->data - (uint8_t *)m->buf_addr);
	CHECK(payload_at >= header_bytes && payload_at + frame->bytes <= m->buf_len);
	packet_write(&q->site, frame->data, frame->bytes, &frame->peer, (uint32_t)source, mac);
	m->data_off = (uint16_t)(payload_at - header_bytes);
	m->data_len = (uint16_t)(header_bytes + frame->bytes);
	m->pkt_len = m->data_len;
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT; // nothing is left to hardware
	return true;
}

static void dpdk_tx(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	struct dpdk_queue *q = dpdk_of(queue);
	struct rte_mbuf *ready[FABRIC_BURST_MAX];
	uint32_t bytes[FABRIC_BURST_MAX];
	uint16_t count = 0;
	CHECK(n <= FABRIC_BURST_MAX);
	for (uint32_t i = 0; i < n; i++) {
		if (UNLIKELY(!frame_prepare(q, &frames[i]))) {
			rte_pktmbuf_free(frames[i].handle);
			continue;
		}
		bytes[count] = frames[i].bytes;
		ready[count++] = frames[i].handle;
	}
	uint16_t sent = mbufs_send(q, ready, count);
	q->base.stats.tx_frames += sent;
	for (uint16_t i = 0; i < sent; i++)
		q->base.stats.tx_bytes += bytes[i];
}

static void control_frames_send(struct dpdk_queue *q)
{
	struct rte_mbuf *ready[FABRIC_BURST_MAX];
	uint16_t count = 0;
	uint32_t bytes;
	const uint8_t *data;
	while (count < FABRIC_BURST_MAX &&
		(data = mailbox_peek(q->from_control, &bytes)) != NULL) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);
		char *room = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)bytes);
		if (room != NULL) {
			memcpy(room, data, bytes);
			ready[count++] = m;
		} else {
			q->base.stats.tx_full++;
			rte_pktmbuf_free(m);
		}
		mailbox_drop(q->from_control);
	}
	mbufs_send(q, ready, count);
}

// ---- receive ----

// Makes an mbuf one linear piece inside its buffer. False: it cannot be; a driver's or peer's lie.
static struct rte_mbuf *mbuf_mend(struct rte_mbuf *m)
{
	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0)
		return NULL;
	// The tag was taken off although we did not ask: put it back, the parser wants to see it.
	if ((m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) {
		m->ol_flags &= ~(RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_VLAN);
		if (rte_vlan_insert(&m) != 0)
			return NULL;
	}
	return m;
}

static bool mbuf_is_plain(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && m->pkt_len == m->data_len &&
	       (uint32_t)m->data_off + m->data_len <= m->buf_len &&
	       (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
}

static void control_hand_over(struct dpdk_queue *q, const struct rte_mbuf *m)
{
	q->base.stats.rx_other++;
	if (link_to_control(q->link, q->base.worker, rte_pktmbuf_mtod(m, const uint8_t *),
		    m->data_len))
		link_wake(q->link);
	else
		q->base.stats.control_refused++;
}

// Counts a frame that is not a datagram for us.
static void frame_turn_away(
	struct dpdk_queue *q, const struct rte_mbuf *m, enum packet_verdict verdict)
{
	struct fabric_queue_stats *stats = &q->base.stats;
	switch (verdict) {
	case PACKET_CONTROL:
		control_hand_over(q, m);
		return;
	case PACKET_OTHER:
		stats->rx_other++;
		return;
	case PACKET_WRONG_PORT:
		stats->rx_wrong_port++;
		return;
	case PACKET_MALFORMED:
		stats->rx_malformed++;
		return;
	case PACKET_FRAGMENT:
		stats->rx_malformed++;
		stats->rx_fragments++;
		return;
	case PACKET_CHECKSUM:
		stats->rx_malformed++;
		stats->rx_checksum_bad++;
		return;
	case PACKET_UNFINISHED:
		stats->rx_malformed++;
		stats->rx_checksum_unfinished++;
		return;
	case PACKET_OURS:
		break;
	}
	CHECK(!"a verdict that turns a frame away");
}

// True when *out holds the datagram of m; else m is freed and counted.
static bool frame_take(struct dpdk_queue *q, struct rte_mbuf *m, struct frame *out)
{
	struct packet packet;
	if (UNLIKELY(!mbuf_is_plain(m))) {
		struct rte_mbuf *mended = mbuf_mend(m);
		if (mended == NULL || !mbuf_is_plain(mended)) {
			q->base.stats.rx_malformed++;
			rte_pktmbuf_free(m);
			return false;
		}
		m = mended;
	}
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	enum packet_verdict verdict = packet_read(&q->site, data, m->data_len, &packet, &out->peer);
	if (UNLIKELY(verdict != PACKET_OURS)) {
		frame_turn_away(q, m, verdict);
		rte_pktmbuf_free(m);
		return false;
	}
	out->data = data + packet.header_bytes;
	out->bytes = packet.payload_bytes;
	out->room = m->buf_len - m->data_off - packet.header_bytes;
	out->handle = m;
	out->received = true;
	q->base.stats.rx_bytes += packet.payload_bytes;
	return true;
}

static uint32_t dpdk_rx(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct dpdk_queue *q = dpdk_of(queue);
	struct rte_mbuf *mbufs[FABRIC_BURST_MAX];
	CHECK(n <= FABRIC_BURST_MAX);
	if (q->from_control != NULL && UNLIKELY(!mailbox_empty(q->from_control)))
		control_frames_send(q);
	uint32_t got = rte_eth_rx_burst(q->port_id, q->queue_id, mbufs, (uint16_t)n), kept = 0;
	for (uint32_t i = 0; i < got && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint32_t i = 0; i < got; i++) {
		if (i + PREFETCH_AHEAD < got)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + PREFETCH_AHEAD], void *));
		kept += frame_take(q, mbufs[i], &out[kept]);
	}
	q->base.stats.rx_frames += kept;
	return kept;
}

// ---- buffers ----

static uint32_t dpdk_alloc(struct fabric_queue *queue, struct frame *out, uint32_t n)
{
	struct dpdk_queue *q = dpdk_of(queue);
	struct rte_mbuf *mbufs[FABRIC_BURST_MAX];
	uint32_t got = n;
	CHECK(n <= FABRIC_BURST_MAX);
	if (UNLIKELY(rte_pktmbuf_alloc_bulk(q->pool, mbufs, n) != 0)) {
		// Bulk is all or nothing: take what is left one by one.
		for (got = 0; got < n; got++) {
			mbufs[got] = rte_pktmbuf_alloc(q->pool);
			if (mbufs[got] == NULL)
				break;
		}
	}
	// The payload starts where data does: headers grow into the headroom before it.
	for (uint32_t i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];
		out[i] = (struct frame){.data = rte_pktmbuf_mtod(m, uint8_t *),
			.room = (uint32_t)(m->buf_len - m->data_off),
			.handle = m};
	}
	return got;
}

static void dpdk_release(struct fabric_queue *queue, struct frame *frames, uint32_t n)
{
	struct rte_mbuf *mbufs[FABRIC_BURST_MAX];
	(void)queue;
	CHECK(n <= FABRIC_BURST_MAX);
	for (uint32_t i = 0; i < n; i++)
		mbufs[i] = frames[i].handle;
	rte_pktmbuf_free_bulk(mbufs, n);
}

// ---- bench ----

static uint32_t dpdk_swap(struct fabric_queue *queue, uint32_t n)
{
	struct dpdk_queue *q = dpdk_of(queue);
	struct rte_mbuf *mbufs[FABRIC_BURST_MAX];
	CHECK(n <= FABRIC_BURST_MAX);
	uint16_t got = rte_eth_rx_burst(q->port_id, q->queue_id, mbufs, (uint16_t)n);
	for (uint32_t i = 0; i < got && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint32_t i = 0; i < got; i++) {
		if (i + PREFETCH_AHEAD < got)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + PREFETCH_AHEAD], void *));
		struct rte_ether_hdr *h = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		if (UNLIKELY(mbufs[i]->data_len < sizeof(*h)))
			continue;
		struct rte_ether_addr source = h->src_addr;
		h->src_addr = h->dst_addr;
		h->dst_addr = source;
	}
	q->base.stats.rx_frames += got;
	if (got > 0)
		q->base.stats.tx_frames += mbufs_send(q, mbufs, got);
	return got;
}

// Receive interrupts are not offered by the drivers we know well: the worker sleeps by time.
static int dpdk_wait_fd(const struct fabric_queue *queue)
{
	(void)queue;
	return -1;
}

const struct fabric_ops dpdk_ops = {
	.name = "dpdk",
	.rx = dpdk_rx,
	.tx = dpdk_tx,
	.alloc = dpdk_alloc,
	.release = dpdk_release,
	.swap = dpdk_swap,
	.wait_fd = dpdk_wait_fd,
};
