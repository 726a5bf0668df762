// SPDX-License-Identifier: BSD-3-Clause
// Kernel UDP echo on loopback: recvmmsg and sendmmsg in bursts of 32 on both sides, one CPU each.
// ENDPOINT is the loopback port to use, 0 for a free one.
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

enum { BURST = 32, BUFFER_BYTES = 256 };

struct burst {
	struct mmsghdr messages[BURST];
	struct iovec vectors[BURST];
	struct sockaddr_in from[BURST];
	char bytes[BURST][BUFFER_BYTES];
};

static void burst_init(struct burst *b, bool with_address)
{
	memset(b, 0, sizeof(*b));
	for (int i = 0; i < BURST; i++) {
		b->vectors[i] = (struct iovec){b->bytes[i], PEER_PAYLOAD_BYTES};
		b->messages[i].msg_hdr.msg_iov = &b->vectors[i];
		b->messages[i].msg_hdr.msg_iovlen = 1;
		if (with_address) {
			b->messages[i].msg_hdr.msg_name = &b->from[i];
			b->messages[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
		}
	}
}

static int udp_socket(uint16_t port, uint16_t *out_port)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = 4 << 20;
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		peer_die("binding a UDP socket", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		peer_die("asking for the port", strerror(errno));
	*out_port = ntohs(at.sin_port);
	return fd;
}

static _Noreturn void serve(int fd, int cpu)
{
	static struct burst b;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	peer_pin(cpu);
	burst_init(&b, true);
	for (;;) {
		int got = recvmmsg(fd, b.messages, BURST, MSG_WAITFORONE, NULL);
		for (int sent = 0; sent < got;) {
			int n = sendmmsg(fd, &b.messages[sent], (unsigned)(got - sent), 0);
			if (n <= 0)
				break;
			sent += n;
		}
	}
}

// One stretch; answers that do not come for 100 ms count as lost (the kernel may drop).
static uint64_t drive(int fd, const struct peer_options *o, uint64_t *lost)
{
	static struct burst out, in;
	burst_init(&out, false);
	burst_init(&in, false);
	struct timeval patience = {.tv_usec = 100000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	uint64_t answered = 0, in_flight = 0;
	uint64_t end = peer_now_ns() + (uint64_t)o->milliseconds * 1000000;
	while (peer_now_ns() < end) {
		while (in_flight + BURST <= o->window || in_flight == 0) {
			int n = sendmmsg(fd, out.messages, BURST, 0);
			if (n <= 0)
				break;
			in_flight += (uint64_t)n;
		}
		int got = recvmmsg(fd, in.messages, BURST, MSG_WAITFORONE, NULL);
		if (got <= 0) {
			*lost += in_flight;
			in_flight = 0;
			continue;
		}
		answered += (uint64_t)got;
		in_flight -= (uint64_t)got < in_flight ? (uint64_t)got : in_flight;
	}
	while (in_flight > 0 && recvmmsg(fd, in.messages, BURST, MSG_WAITFORONE, NULL) > 0)
		continue;
	return answered;
}

static double round_trip_ns(int fd)
{
	enum { TRIPS = 5000 };
	char bytes[BUFFER_BYTES] = {0};
	uint64_t start = peer_now_ns();
	for (int i = 0; i < TRIPS; i++)
		if (send(fd, bytes, PEER_PAYLOAD_BYTES, 0) < 0 ||
			recv(fd, bytes, sizeof(bytes), 0) < 0)
			peer_die("one round trip", strerror(errno));
	return (double)(peer_now_ns() - start) / TRIPS;
}

int main(int argc, char **argv)
{
	struct peer_options o;
	uint16_t server_port, driver_port;
	if (!peer_parse(argc, argv, &o))
		return 2;
	int server = udp_socket((uint16_t)atoi(o.endpoint), &server_port);
	pid_t child = fork();
	if (child < 0)
		peer_die("fork", strerror(errno));
	if (child == 0)
		serve(server, o.server_cpu);
	close(server);
	int fd = udp_socket(0, &driver_port);
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(server_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		peer_die("connecting to the echo", strerror(errno));
	peer_pin(o.driver_cpu);
	struct peer_samples rate = {"kernel-udp-echo", "rate", "messages/s", {0}, 0};
	struct peer_samples trip = {"kernel-udp-echo", "round_trip", "ns", {0}, 0};
	uint64_t lost = 0;
	for (uint32_t r = 0; r < o.repetitions; r++) {
		peer_sample(&trip, round_trip_ns(fd));
		peer_sample(&rate, (double)drive(fd, &o, &lost) * 1e3 / o.milliseconds);
	}
	kill(child, SIGKILL);
	peer_print(&rate);
	peer_print(&trip);
	if (lost > 0)
		fprintf(stderr, "peer: the kernel dropped %llu datagrams\n",
			(unsigned long long)lost);
	return 0;
}
