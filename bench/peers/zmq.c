// SPDX-License-Identifier: BSD-3-Clause
// ZeroMQ: a DEALER drives a ROUTER that echoes, a window in flight. ENDPOINT is tcp://, ipc:// (two
// processes) or inproc:// (two threads of one).
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

#include "peer.h"

struct server {
	void *context;
	const char *endpoint;
	int cpu, ready_fd;
};

static void unbounded(void *socket)
{
	int none = 0;
	zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none));
	zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none));
	zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
}

static void *serve(void *arg)
{
	struct server *s = arg;
	peer_pin(s->cpu);
	void *router = zmq_socket(s->context, ZMQ_ROUTER);
	unbounded(router);
	if (zmq_bind(router, s->endpoint) != 0)
		peer_die(s->endpoint, zmq_strerror(errno));
	if (write(s->ready_fd, "r", 1) != 1)
		peer_die("saying ready", strerror(errno));
	for (;;) {
		zmq_msg_t who, what;
		zmq_msg_init(&who);
		zmq_msg_init(&what);
		if (zmq_msg_recv(&who, router, 0) < 0 || zmq_msg_recv(&what, router, 0) < 0)
			break;
		zmq_msg_send(&who, router, ZMQ_SNDMORE);
		zmq_msg_send(&what, router, 0);
	}
	zmq_close(router);
	return NULL;
}

static uint64_t drive(void *dealer, uint32_t window, uint64_t end_ns, uint64_t stop_after)
{
	char bytes[PEER_PAYLOAD_BYTES] = {0}, answer[256];
	uint64_t sent = 0, answered = 0;
	while (peer_now_ns() < end_ns && answered < stop_after) {
		for (; sent - answered < window; sent++)
			zmq_send(dealer, bytes, sizeof(bytes), 0);
		// the clock is read once for a burst of answers
		for (uint32_t i = 0; i < (window + 1) / 2; i++, answered++)
			if (zmq_recv(dealer, answer, sizeof(answer), 0) != PEER_PAYLOAD_BYTES)
				peer_die("an echo", "has another size");
	}
	uint64_t counted = answered;
	for (; answered < sent; answered++)
		zmq_recv(dealer, answer, sizeof(answer), 0);
	return counted;
}

static pid_t start(struct server *s, bool threads)
{
	pid_t child = 0;
	pthread_t thread;
	if (!threads && (child = fork()) < 0)
		peer_die("fork", strerror(errno));
	if (!threads && child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		s->context = zmq_ctx_new();
		serve(s);
		_exit(0);
	}
	s->context = zmq_ctx_new();
	if (threads && pthread_create(&thread, NULL, serve, s) != 0)
		peer_die("a thread", "cannot be made");
	return child;
}

int main(int argc, char **argv)
{
	struct peer_options o;
	int ready[2];
	char byte, name[32];
	if (!peer_parse(argc, argv, &o))
		return 2;
	if (pipe(ready) != 0)
		peer_die("pipe", strerror(errno));
	bool threads = strncmp(o.endpoint, "inproc:", 7) == 0;
	struct server server = {NULL, o.endpoint, o.server_cpu, ready[1]};
	pid_t child = start(&server, threads);
	if (read(ready[0], &byte, 1) != 1)
		peer_die("the server", "did not start");
	peer_pin(o.driver_cpu);
	void *dealer = zmq_socket(server.context, ZMQ_DEALER);
	unbounded(dealer);
	if (zmq_connect(dealer, o.endpoint) != 0)
		peer_die(o.endpoint, zmq_strerror(errno));
	snprintf(name, sizeof(name), "zeromq-%.*s", (int)(strchr(o.endpoint, ':') - o.endpoint),
		o.endpoint);
	struct peer_samples rate = {name, "rate", "messages/s", {0}, 0};
	struct peer_samples trip = {name, "round_trip", "ns", {0}, 0};
	for (uint32_t r = 0; r < o.repetitions; r++) {
		enum { TRIPS = 2000 };
		uint64_t began = peer_now_ns();
		drive(dealer, 1, UINT64_MAX, TRIPS);
		peer_sample(&trip, (double)(peer_now_ns() - began) / TRIPS);
		began = peer_now_ns();
		uint64_t n = drive(
			dealer, o.window, began + (uint64_t)o.milliseconds * 1000000, UINT64_MAX);
		peer_sample(&rate, (double)n * 1e9 / (double)(peer_now_ns() - began));
	}
	peer_print(&rate);
	peer_print(&trip);
	if (child > 0)
		kill(child, SIGKILL);
	fflush(stdout);
	_exit(0); // the server thread, if any, ends with the process
}
