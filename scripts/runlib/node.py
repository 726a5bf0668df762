# SPDX-License-Identifier: BSD-3-Clause
"""One spotd: its configuration, its start in a namespace, its end."""
import json
import os
import shutil
import socket
import subprocess
import time

import network
from state import TOP, RunError

BUILD = os.path.join(TOP, "build")
SPOTD = os.path.join(BUILD, "programs", "spotd", "spotd")
SPOTCTL = os.path.join(BUILD, "programs", "spotctl", "spotctl")
SPOT = os.path.join(BUILD, "programs", "spot", "spot")
SHIPPED = ("echo", "counter", "tracker", "slow", "room", "lobby")
MEMORY_MIB = 256
READY_S, DRAIN_S = 60, 40


def loopback_socket(port):
    """The socket that makes the node reachable from the whole machine, bound outside its namespace."""
    wanted = [port] if port else [network.NODE_PORT, 0]
    for number in wanted:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            one.bind(("127.0.0.1", number))
            return one
        except OSError as error:
            one.close()
            last = error
    raise RunError(f"UDP port {port} on 127.0.0.1 cannot be used ({last.strerror.lower()}); "
                   "stop what holds it (ss -ulpn shows it) or choose another with --port")


def copy_modules(folder, extra):
    """The node loads only files that nobody else may write: copies of ours, in our own folder."""
    target = os.path.join(folder, "modules")
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target, mode=0o700)
    paths = [os.path.join(BUILD, "dataplane", "modules", name, name + ".so") for name in SHIPPED]
    copied = []
    for path in paths + [os.path.abspath(p) for p in extra]:
        if not os.path.isfile(path):
            raise RunError(f"{path}: no such module")
        to = os.path.join(target, os.path.basename(path))
        if os.path.exists(to):
            raise RunError(f"{path}: a module file named {os.path.basename(path)} is already loaded")
        shutil.copyfile(path, to)
        os.chmod(to, 0o500)
        copied.append(to)
    return copied


def write_config(folder, name, port, modules, frames, huge):
    """node.yaml; frames: of the DPDK port's rings, 0 = no such port. Strings go out as JSON, which
    YAML reads as quoted text."""
    text = json.dumps
    lines = ["# Written by scripts/run.", "node:", f"  id: {text(name)}", f"  entry_type: {text('lobby')}",
             "insecure: true", "workers:", "  count: 1", "  idle: adaptive", "fabrics:"]
    if frames:
        device = (f"net_af_packet0,iface=spn0,framesz={network.FRAME_BYTES},blocksz=4096,"
                  f"framecnt={frames}")
        lines += ["  - kind: dpdk", "    name: veth", f"    vdev: {text(device)}",
                  f"    addresses: [{text(network.NODE_ADDRESS + '/24')}, {text(network.NODE_ADDRESS6 + '/64')}]",
                  f"    port: {network.NODE_PORT}"]
    lines += ["  - kind: udp", "    name: loopback", f"    listen: {text(f'127.0.0.1:{port}')}"]
    if frames:
        lines += ["eal:", f"  hugepages: {text('yes' if huge else 'no')}", f"  memory: {MEMORY_MIB}MiB",
                  f"  file_prefix: {text(f'spotlane-{name}-{os.getpid()}')}"]
    lines += ["store:", "  kind: sqlite", f"  path: {text(os.path.join(folder, 'store.db'))}",
              "control:", f"  socket: {text(os.path.join(folder, 'control.sock'))}",
              "log:", f"  file: {text(os.path.join(folder, 'node.log'))}", "modules:"]
    lines += [f"  - path: {text(path)}" for path in modules]
    path = os.path.join(folder, "node.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    return path


class Node:
    def __init__(self, folder, config, enter, listener):
        self.folder = folder
        self.socket = os.path.join(folder, "control.sock")
        self.output = os.path.join(folder, "node.out")
        # LISTEN_PID must name the process that ends up running, and exec keeps the number.
        number = listener.fileno()
        hand_over = f"exec 3<&{number}; " + (f"exec {number}<&-; " if number != 3 else "") \
            + 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"'
        command = ["bash", "-c", hand_over, "spotd"]
        # EAL keeps a folder per process; in ours it goes when we go.
        env = dict(os.environ, RUNTIME_DIRECTORY=folder)
        with open(self.output, "wb") as out:
            self.child = subprocess.Popen(
                command + enter + [SPOTD, "--config", config], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, env=env, pass_fds=(number,), start_new_session=True,
                preexec_fn=network.die_with_parent())

    def status(self):
        """The node's status as it reports it, or None."""
        done = subprocess.run([SPOTCTL, "--socket", self.socket, "--json", "status"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, timeout=30)
        if done.returncode:
            return None
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def wait_ready(self):
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                raise RunError(f"the node ended at start (exit status {self.child.returncode}):\n"
                               + self.last_words())
            status = self.status() if os.path.exists(self.socket) else None
            if status and status.get("ready"):
                return status
            time.sleep(0.05)
        raise RunError(f"the node was not ready within {READY_S} s:\n" + self.last_words())

    def last_words(self, lines=12):
        text = []
        for path in (self.output, os.path.join(self.folder, "node.log")):
            try:
                with open(path, encoding="utf-8", errors="replace") as stream:
                    text += stream.read().splitlines()[-lines:]
            except OSError:
                pass
        return "\n".join("    " + line for line in text) + f"\n    (all of it: {self.output})"

    def stop(self):
        """Drains; a second Ctrl-C while that lasts stops at once."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(DRAIN_S)
            except KeyboardInterrupt:
                self.child.terminate()
            except subprocess.TimeoutExpired:
                pass
        if self.child.poll() is None:
            try:
                self.child.wait(5)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                self.child.kill()
                self.child.wait()
        return self.child.returncode
