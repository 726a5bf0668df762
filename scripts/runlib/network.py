# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces joined by a veth pair, held open by two sleeping processes.

    node namespace            client namespace
    spn0 (no address) ------- spc0 10.99.0.2/24, fd99::2/64
    10.99.0.1 and fd99::1 are answered by the node itself

The namespaces have no names: they end with their processes, also when this one is killed.
"""
import ctypes
import resource
import signal
import subprocess

NODE_ADDRESS, NODE_ADDRESS6 = "10.99.0.1", "fd99::1"
NODE_PORT = 7700
FRAME_BYTES = 2048
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(number=signal.SIGKILL):
    """For preexec_fn: the child gets this signal when our process ends in whatever way."""
    def set_it():
        LIBC.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    return set_it


def quiet(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)


def possible():
    """How namespaces can be made here: root, user (a user namespace), or None."""
    probe = ["ip", "link", "add", "spn0", "type", "veth", "peer", "name", "spc0"]
    if quiet(["unshare", "-n"] + probe).returncode == 0:
        return "root"
    if quiet(["unshare", "-Urn"] + probe).returncode == 0:
        return "user"
    return None


def ring_frames(kind):
    """Slots of af_packet's two rings: they are locked memory, which a user has little of. 0: too little."""
    frames = 4096
    if kind != "user":
        return frames
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    while limit != resource.RLIM_INFINITY and 2 * frames * FRAME_BYTES > limit * 3 // 4:
        frames //= 2
    return frames if frames >= 256 else 0


class Network:
    def __init__(self, kind, state):
        self.kind, self.state = kind, state
        self.node = self.hold(["unshare", "-n" if kind == "root" else "-Urn"])
        self.client = self.hold(self.enter(self.node) + ["unshare", "-n"])
        self.join()

    def hold(self, into):
        """A process that sleeps in a fresh namespace; it tells when it is there."""
        child = subprocess.Popen(into + ["sh", "-c", "echo there; exec sleep infinity"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                 start_new_session=True, preexec_fn=die_with_parent())
        if child.stdout.readline().strip() != "there":
            raise OSError("no network namespace could be made")
        self.state.add_process(child.pid)
        return child

    def enter(self, holder):
        return enter_command(self.kind, holder.pid)

    def run(self, holder, *command):
        done = quiet(self.enter(holder) + list(command))
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stdout.strip()}")

    def join(self):
        node, client = self.node, self.client
        self.run(node, "ip", "link", "add", "spn0", "type", "veth", "peer", "name", "spc0")
        self.run(node, "ip", "link", "set", "spc0", "netns", str(client.pid))
        # The kernel must not answer on the node's side: the node does.
        quiet(self.enter(node) + ["sysctl", "-qw", "net.ipv6.conf.spn0.disable_ipv6=1"])
        self.run(node, "ip", "link", "set", "lo", "up")
        self.run(node, "ip", "link", "set", "spn0", "up")
        self.run(client, "ip", "link", "set", "lo", "up")
        self.run(client, "ip", "addr", "add", "10.99.0.2/24", "dev", "spc0")
        quiet(self.enter(client) + ["ip", "addr", "add", "fd99::2/64", "dev", "spc0", "nodad"])
        self.run(client, "ip", "link", "set", "spc0", "up")
        # With the offload on, a veth hands over checksums that nobody has finished.
        self.run(client, "ethtool", "-K", "spc0", "tx", "off")

    def close(self):
        for child in (self.client, self.node):
            child.kill()
            child.wait()
            child.stdout.close()


def enter_command(kind, pid):
    command = ["nsenter", "-t", str(pid), "-n"]
    return command if kind == "root" else command + ["-U", "--preserve-credentials"]


