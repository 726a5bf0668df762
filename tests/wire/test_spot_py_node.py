#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tests/clients/spot.py against a real node over its loopback fabric.

    test_spot_py_node.py BUILD_DIR
"""
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import lines  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
CLIENT = pathlib.Path(__file__).resolve().parent.parent / "clients/spot.py"
MODULES = ("echo", "counter", "lobby")
DEADLINE_S = 120
CONFIG = """\
node:
  id: spot-py
  entry_type: lobby
insecure: true
workers:
  count: 2
  idle: adaptive
fabrics:
  - kind: udp
    name: loopback
    listen: "127.0.0.1:{port}"
store:
  kind: memory
control:
  socket: "{folder}/control.sock"
log:
  file: "{folder}/node.log"
modules:
"""


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    def __init__(self, folder):
        self.port = free_port()
        text = CONFIG.format(port=self.port, folder=folder)
        (folder / "modules").mkdir(mode=0o700)
        for name in MODULES:
            to = folder / "modules" / (name + ".so")
            shutil.copyfile(BUILD / "dataplane/modules" / name / (name + ".so"), to)
            to.chmod(0o500)
            text += '  - path: "%s"\n' % to
        (folder / "node.yaml").write_text(text)
        self.child = subprocess.Popen(
            [BUILD / "programs/spotd/spotd", "--config", folder / "node.yaml"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def spot(self, *arguments, payload=b"", timeout_ms=60000):
        done = subprocess.run(
            [sys.executable, CLIENT, "--node", "127.0.0.1:%d" % self.port, "--timeout",
             str(timeout_ms), *arguments], input=payload, capture_output=True, timeout=DEADLINE_S)
        assert done.stderr == b"", done.stderr
        return done.returncode, done.stdout.decode()

    def wait_ready(self):
        """Ready is when a request is answered by anything but a node that is not serving yet."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if self.child.poll() is not None:
                raise AssertionError("spotd ended: %r" % self.child.stderr.read())
            _, text = self.spot("request", "nobody", timeout_ms=500)
            if text.startswith("NotFound"):
                return
        raise AssertionError("not ready")

    def stop(self):
        self.child.terminate()
        try:
            return self.child.wait(DEADLINE_S)
        finally:
            self.child.kill()
            self.child.stderr.close()


def echo(node, size):
    payload = bytes(random.Random(size).choices(b"abcdefgh", k=size))
    code, text = node.spot("request", "Echo/東京", "-", "--intent", "echo", "--type", "1",
                           payload=payload)
    want = "OK None accepted: yes\n" + (payload.decode() + "\n" if size else "")
    assert code == 0 and text == want, text[:200]


def ordinary_messages_build_nothing(node):
    for verb in ("send", "request"):
        node.spot(verb, "missing", "x")
    code, text = node.spot("request", "missing", "x")
    assert (code, text) == (1, "NotFound None accepted: no\n"), text


def a_large_send_arrives(node):
    echo(node, 10)
    code, text = node.spot("send", "Echo/東京", "-", "--type", "1", payload=b"s" * 300000)
    assert (code, text) == (0, "sent\n"), text


def main():
    report = lines.Lines()
    with tempfile.TemporaryDirectory() as name:
        node = Node(pathlib.Path(name))
        report.run("x__spot_py_reaches_a_real_node", node.wait_ready)
        for label, test in (
                ("A1__spot_py_ordinary_messages_build_nothing",
                 lambda: ordinary_messages_build_nothing(node)),
                ("M2__spot_py_small_payloads_come_back", lambda: [echo(node, n) for n in (0, 1, 1000)]),
                ("M8__spot_py_1_mib_comes_back", lambda: echo(node, 2**20)),
                ("M8__spot_py_16_mib_comes_back", lambda: echo(node, 2**24)),
                ("M8__spot_py_a_large_send_arrives", lambda: a_large_send_arrives(node))):
            report.run(label, test)
        code = node.stop()
    assert code == 0, "spotd ended with %d" % code
    report.end()


main()
