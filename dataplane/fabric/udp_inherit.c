// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/udp_inherit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INHERITED_FIRST = 3, INHERITED_MAX = 128 };

static long environment_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (text == NULL || *text == '\0')
		return -1;
	n = strtol(text, &end, 10);
	return *end == '\0' ? n : -1;
}

static bool is_bound_to(int fd, const union udp_address *want)
{
	union udp_address have;
	socklen_t size = sizeof(have);
	socklen_t type_size = sizeof(int);
	int type;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 || type != SOCK_DGRAM)
		return false;
	memset(&have, 0, sizeof(have));
	if (getsockname(fd, &have.any, &size) != 0 || have.any.sa_family != want->any.sa_family)
		return false;
	if (have.any.sa_family == AF_INET)
		return have.v4.sin_addr.s_addr == want->v4.sin_addr.s_addr &&
		       (want->v4.sin_port == 0 || want->v4.sin_port == have.v4.sin_port);
	return memcmp(&have.v6.sin6_addr, &want->v6.sin6_addr, sizeof(have.v6.sin6_addr)) == 0 &&
	       (want->v6.sin6_port == 0 || want->v6.sin6_port == have.v6.sin6_port);
}

int udp_inherited(const union udp_address *want, uint16_t index)
{
	long count = environment_number("LISTEN_FDS");

	if (environment_number("LISTEN_PID") != getpid() || count < 1 || count > INHERITED_MAX)
		return -1;
	for (int fd = INHERITED_FIRST; fd < INHERITED_FIRST + count; fd++) {
		if (!is_bound_to(fd, want) || index-- > 0)
			continue;
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
			return -1;
		return fd;
	}
	return -1;
}
