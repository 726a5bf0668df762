# SPDX-License-Identifier: BSD-3-Clause
"""Asks the kernel for hugepages and gives the same number back."""
import socket
import time

COUNT = "/proc/sys/vm/nr_hugepages"


class Shared:
    """Two runs may change the count at a time; each adds and takes away its own share."""

    def __enter__(self):
        deadline = time.monotonic() + 10
        while True:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self.socket.bind("\0spotlane-run-hugepages")
                return self
            except OSError:
                self.socket.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def __exit__(self, *_):
        self.socket.close()


def read_count():
    with open(COUNT, encoding="ascii") as stream:
        return int(stream.read())


def write_count(count):
    with open(COUNT, "w", encoding="ascii") as stream:
        stream.write(str(count))


def page_bytes():
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("Hugepagesize:"):
                return int(line.split()[1]) * 1024
    return 0


def add(memory_bytes, record):
    """How many pages were added: 0 when the kernel gives none. record(n) is called before."""
    size = page_bytes()
    if size == 0:
        return 0
    pages = -(-memory_bytes // size)
    try:
        with Shared():
            before = read_count()
            record(pages)
            write_count(before + pages)
            if read_count() == before + pages:
                return pages
            write_count(before)
            record(0)
    except OSError:
        record(0)
    return 0


def give_back(pages):
    if pages <= 0:
        return
    try:
        with Shared():
            write_count(max(0, read_count() - pages))
    except OSError:
        pass
