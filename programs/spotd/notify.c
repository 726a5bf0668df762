// SPDX-License-Identifier: BSD-3-Clause
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof(to.sun_path))
		return;
	strcpy(to.sun_path, path);
	if (to.sun_path[0] == '@') // an abstract address
		to.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	// A manager that does not listen any more is not our trouble.
	ssize_t sent = sendto(fd, state, strlen(state), 0, (struct sockaddr *)&to, bytes);
	(void)sent;
	close(fd);
}

unsigned long long notify_watchdog_us(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	return text != NULL ? strtoull(text, NULL, 10) : 0;
}
