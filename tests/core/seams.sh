#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: seams.sh LIBCORE. The core's objects reach time, memory, threads and the system only through
# their ports: what they leave undefined must not name any of these.
set -u
forbidden='clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|malloc|calloc|realloc|free'
forbidden="$forbidden|aligned_alloc|posix_memalign|mallocx|dallocx|sdallocx|nallocx|mallctl|rand|random"
forbidden="$forbidden|srand|getrandom|pthread_.*|sem_.*|thrd_.*|read|write|open|close|poll|ppoll|socket"
forbidden="$forbidden|send|recv|sendto|recvfrom|sendmsg|recvmsg|ioctl|mmap|munmap|syscall|eventfd|prctl"
forbidden="$forbidden|sched_yield|printf|fprintf|puts|fputs|perror|syslog|fopen|exit|abort|rte_.*|urcu_.*"
forbidden="$forbidden|cds_.*|sqlite3_.*|uv_.*"
# Fortified and checked variants count as what they are; snprintf into a buffer of ours is no output.
found=$(nm --undefined-only "$1" | awk '$1 == "U" {print $2}' | sed 's/^__\(.*\)_chk$/\1/' |
	sort -u | grep -Ex "$forbidden")
if [ -n "$found" ]; then
	echo "not ok x__core_objects_use_only_their_ports" $found
	echo "0 passed, 1 failed"
	exit 1
fi
echo "ok x__core_objects_use_only_their_ports"
echo "1 passed, 0 failed"
