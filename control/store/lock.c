// SPDX-License-Identifier: BSD-3-Clause
#include "store/lock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static bool lock_path(const char *database, const char *node_id, char *out, size_t size)
{
	int n = snprintf(out, size, "%s.", database);
	for (const char *c = node_id; *c != 0; c++) {
		if (n < 0 || (size_t)n + 4 >= size)
			return false;
		bool plain = isalnum((unsigned char)*c) || *c == '-' || *c == '_';
		n += snprintf(out + n, size - (size_t)n, plain ? "%c" : "%%%02x", (unsigned char)*c);
	}
	if ((size_t)n + sizeof(".lock") > size)
		return false;
	strcpy(out + n, ".lock");
	return true;
}

enum store_lock_verdict store_lock_take(
	struct store_lock *lock, const char *database, const char *node_id)
{
	char path[PATH_MAX];
	lock->fd = -1;
	if (!lock_path(database, node_id, path, sizeof(path))) {
		errno = ENAMETOOLONG;
		return STORE_LOCK_FAILED;
	}
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return STORE_LOCK_FAILED;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		lock->fd = fd;
		return STORE_LOCK_TAKEN;
	}
	int why = errno;
	close(fd);
	errno = why;
	return why == EWOULDBLOCK ? STORE_LOCK_HELD : STORE_LOCK_FAILED;
}

void store_lock_release(struct store_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}

static bool read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, out, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return out[0] != 0;
}

void store_host_id(char out[STORE_HOST_ID_BYTES])
{
	if (!read_line("/etc/machine-id", out, STORE_HOST_ID_BYTES) &&
		!read_line("/proc/sys/kernel/random/boot_id", out, STORE_HOST_ID_BYTES))
		out[0] = 0;
}
