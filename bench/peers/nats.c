// SPDX-License-Identifier: BSD-3-Clause
// NATS: one publisher, one subscriber (rate delivered), and request-reply one at a time (round
// trip). ENDPOINT is the URL of a nats-server that the caller started and pinned.
#include <nats/nats.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

static _Atomic uint64_t delivered;

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
	(void)nc, (void)sub, (void)arg;
	atomic_fetch_add_explicit(&delivered, 1, memory_order_relaxed);
	natsMsg_Destroy(msg);
}

static void on_request(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
	(void)sub, (void)arg;
	natsConnection_Publish(
		nc, natsMsg_GetReply(msg), natsMsg_GetData(msg), natsMsg_GetDataLength(msg));
	natsMsg_Destroy(msg);
}

static void must(natsStatus s, const char *what)
{
	if (s != NATS_OK)
		peer_die(what, natsStatus_GetText(s));
}

// `at_once`: each message is written when it is published, which shortens a round trip and costs
// rate.
static natsConnection *connection(const char *url, bool at_once)
{
	natsOptions *options;
	natsConnection *nc;
	must(natsOptions_Create(&options), "options");
	must(natsOptions_SetURL(options, url), url);
	must(natsOptions_SetSendAsap(options, at_once), "options");
	must(natsConnection_Connect(&nc, options), url);
	natsOptions_Destroy(options);
	return nc;
}

// Publishes for one stretch, waits for what was published to be delivered.
static double publish_rate(natsConnection *nc, uint32_t milliseconds)
{
	char bytes[PEER_PAYLOAD_BYTES] = {0};
	uint64_t sent = 0, before = atomic_load(&delivered), start = peer_now_ns();
	uint64_t end = start + (uint64_t)milliseconds * 1000000;
	while (peer_now_ns() < end)
		for (int i = 0; i < 256; i++, sent++)
			must(natsConnection_Publish(nc, "bench.rate", bytes, sizeof(bytes)),
				"publish");
	must(natsConnection_FlushTimeout(nc, 30000), "flush");
	uint64_t patience = peer_now_ns() + UINT64_C(30000000000);
	while (atomic_load(&delivered) - before < sent && peer_now_ns() < patience)
		usleep(100);
	uint64_t got = atomic_load(&delivered) - before;
	if (got != sent)
		fprintf(stderr, "peer: NATS lost %llu messages\n",
			(unsigned long long)(sent - got));
	return (double)got * 1e9 / (double)(peer_now_ns() - start);
}

static double request_ns(natsConnection *nc)
{
	enum { TRIPS = 500 };
	char bytes[PEER_PAYLOAD_BYTES] = {0};
	natsMsg *reply;
	uint64_t start = peer_now_ns();
	for (int i = 0; i < TRIPS; i++) {
		must(natsConnection_Request(&reply, nc, "bench.trip", bytes, sizeof(bytes), 5000),
			"request");
		natsMsg_Destroy(reply);
	}
	return (double)(peer_now_ns() - start) / TRIPS;
}

int main(int argc, char **argv)
{
	struct peer_options o;
	natsSubscription *rate_sub, *trip_sub;
	if (!peer_parse(argc, argv, &o))
		return 2;
	// The client's threads inherit this; the server has the other CPU.
	peer_pin(o.driver_cpu);
	natsConnection *publisher = connection(o.endpoint, false);
	natsConnection *asker = connection(o.endpoint, true),
		       *subscriber = connection(o.endpoint, true);
	must(natsConnection_Subscribe(&rate_sub, subscriber, "bench.rate", on_message, NULL),
		"subscribe");
	must(natsSubscription_SetPendingLimits(rate_sub, -1, -1), "limits");
	must(natsConnection_Subscribe(&trip_sub, subscriber, "bench.trip", on_request, NULL),
		"subscribe");
	must(natsConnection_FlushTimeout(subscriber, 5000), "flush");
	struct peer_samples rate = {"nats-server", "rate", "messages/s", {0}, 0};
	struct peer_samples trip = {"nats-server", "round_trip", "ns", {0}, 0};
	for (uint32_t r = 0; r < o.repetitions; r++) {
		peer_sample(&trip, request_ns(asker));
		peer_sample(&rate, publish_rate(publisher, o.milliseconds));
	}
	peer_print(&rate);
	peer_print(&trip);
	return 0;
}
