# SPDX-License-Identifier: BSD-3-Clause
"""What `spotbench all` runs, in order. One entry: a title, the program, its time limit."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import runner

HERE = os.path.dirname(os.path.abspath(__file__))


class Entry:
    def __init__(self, group, title, argv, timeout_s=300, around=None, needs=None):
        self.group, self.title, self.argv = group, title, argv
        self.timeout_s, self.around, self.needs = timeout_s, around, needs


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(argv, port):
    """A peer's server on CPU 1, in a folder of its own, ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="spotbench-peer-") as folder:
        child = subprocess.Popen(["taskset", "-c", "1", *argv], cwd=folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 10
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 0.2).close()
                    break
                except OSError:
                    if time.monotonic() > end or child.poll() is not None:
                        raise runner.Failed(f"{argv[0]} did not start") from None
                    time.sleep(0.05)
            yield
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def router(program, spots_list, testpmd):
    for spots in spots_list:
        yield Entry("memory", f"frames in memory, {spots:,} Spots",
                    [program, "run", "memory", "--spots", str(spots), "--json", "{json}"], 600)
    for spots in spots_list:
        argv = [program, "run", "memif", "--spots", str(spots), "--json", "{json}"]
        if spots == spots_list[0]:
            argv.append("--open")
        if testpmd and spots == spots_list[0]:
            argv.append("--testpmd")
        yield Entry("memif", f"over memif, {spots:,} Spots", argv, 600)
    yield Entry("memif", "over memif, one request in flight",
                [program, "run", "memif", "--spots", str(spots_list[0]), "--window", "1",
                 "--json", "{json}"], 300)


def activation(program, quick):
    spots = 50000 if quick else 500000
    argv = [program, "run", "activation", "--json", "{json}"]
    yield Entry("activation", "new Spots, memory store", [*argv, "--spots", str(spots)])
    # beside the program, not below /tmp: that may be memory, and a sync to it proves nothing
    yield Entry("activation", "new Spots, SQLite store",
                [*argv, "--spots", str(spots // 10), "--sqlite", os.path.dirname(program)], 600)


def peers(folder, milliseconds, repetitions):
    common = ["--milliseconds", str(milliseconds), "--repetitions", str(repetitions)]
    yield Entry("peer", "kernel UDP echo", [f"{folder}/peer-udp", "0", *common])
    zmq = f"{folder}/peer-zmq"
    yield Entry("peer", "ZeroMQ, tcp", [zmq, f"tcp://127.0.0.1:{free_port()}", *common], needs=zmq)
    yield Entry("peer", "ZeroMQ, ipc", [zmq, "ipc://@spotbench", *common], needs=zmq)
    yield Entry("peer", "ZeroMQ, inproc", [zmq, "inproc://spotbench", *common], needs=zmq)
    port = free_port()
    yield Entry("peer", "NATS", [f"{folder}/peer-nats", f"nats://127.0.0.1:{port}", *common],
                around=lambda: server(["nats-server", "-a", "127.0.0.1", "-p", str(port)], port),
                needs=shutil.which("nats-server") and f"{folder}/peer-nats" or "nats-server")
    redis = free_port()
    yield Entry("peer", "Redis streams, pipelined",
                [sys.executable, f"{HERE}/redis_peer.py", str(redis), str(repetitions)],
                around=lambda: server(["redis-server", "--bind", "127.0.0.1", "--port", str(redis),
                                       "--save", "", "--appendonly", "no"], redis),
                needs=shutil.which("redis-server") or "redis-server")


def everything(program, quick):
    """Entries of a whole run; `quick` is the same with less of each."""
    spots = [1000, 65536] if quick else [1000, 65536, 1000000, 10000000]
    yield from router(program, spots, shutil.which("dpdk-testpmd") is not None)
    yield from activation(program, quick)
    folder = os.path.dirname(program)
    yield from peers(folder, 300 if quick else 1000, 3 if quick else 5)
