# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/run, in-client, spotctl and spot do once everything is built."""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hugepages  # noqa: E402
import network  # noqa: E402
import node as node_module  # noqa: E402
import state as state_module  # noqa: E402
from state import TOP, RunError  # noqa: E402

NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,31}$")
TOUR = os.path.join(TOP, "scripts", "tour")


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_options(arguments):
    parser = argparse.ArgumentParser(prog="scripts/run", allow_abbrev=False, add_help=False)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-tour", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--no-huge", action="store_true")
    parser.add_argument("--name", default=os.environ.get("SPOTLANE_NAME", "spotlane"))
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--fabric", choices=("dpdk", "udp", "auto"), default="auto")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--sabotage", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not NAME.match(options.name):
        raise RunError(f"a name is 1 to 32 of a-z, 0-9 and '-': {options.name!r} is not")
    if not 0 <= options.port <= 65535:
        raise RunError(f"a port is 1 to 65535: {options.port} is not")
    if options.json and not options.once:
        raise RunError("--json goes with --once")
    return options


class Run:
    def __init__(self, options):
        self.options = options
        self.network = self.node = self.listener = None
        self.lock = state_module.NameLock(options.name)
        self.folder = state_module.make_folder(options.name)
        self.state = state_module.RunState(self.folder, options.name)

    def clean_leftovers(self):
        """We hold the name, so whatever an earlier run recorded is nobody's any more."""
        old = self.state.left_behind()
        if old:
            say(f"cleaning up after an earlier run that was killed ({self.folder})")
            state_module.end(old.get("processes", []), 5)
            hugepages.give_back(old.get("hugepages_added", 0))
            self.state.remove()
        self.remove_rest()
        self.state.update()

    def remove_rest(self):
        """What the node may leave in its folder and nobody needs: state and logs stay."""
        shutil.rmtree(os.path.join(self.folder, "dpdk"), ignore_errors=True)
        try:
            os.unlink(os.path.join(self.folder, "control.sock"))
        except FileNotFoundError:
            pass

    def choose_fabric(self):
        """dpdk with root's or a user's namespaces, or udp; says what was chosen and what it costs."""
        wanted = self.options.fabric
        kind = None if wanted == "udp" else network.possible()
        if kind and not network.ring_frames(kind):
            say("this user may lock too little memory for a DPDK port (ulimit -l)")
            kind = None
        if wanted == "dpdk" and kind is None:
            raise RunError("--fabric=dpdk: network namespaces can be made neither as this user nor in "
                           "a user namespace with enough locked memory (root, or both, are needed)")
        if kind == "root":
            say("fabric: DPDK (af_packet on a veth pair between two network namespaces)")
        elif kind == "user":
            say("fabric: DPDK (af_packet) inside a user namespace, without hugepages (a few ns more per "
                f"message) and with rings of {network.ring_frames(kind)} frames (bursts are lost sooner)")
        else:
            say("fabric: kernel UDP sockets on loopback only: no DPDK port, a system call per burst, "
                "no client namespace" + ("" if wanted == "udp" else
                                         " (network namespaces are not to be had here)"))
        return kind

    def hugepages(self, kind):
        if kind != "root" or self.options.no_huge:
            return False
        pages = hugepages.add(node_module.MEMORY_MIB << 20,
                              lambda n: self.state.update(hugepages_added=n))
        say(f"memory: {pages} hugepages, given back at the end" if pages else
            "memory: the kernel gives no hugepages; --no-huge (a few ns more per message)")
        return pages > 0

    def start(self):
        self.clean_leftovers()
        kind = self.choose_fabric()
        self.listener = node_module.loopback_socket(self.options.port)
        port = self.listener.getsockname()[1]
        if not self.options.port and port != network.NODE_PORT:
            say(f"UDP port {network.NODE_PORT} on loopback is taken: using {port}")
        huge = self.hugepages(kind)
        if kind:
            self.network = network.Network(kind, self.state)
        modules = node_module.copy_modules(self.folder, self.options.module)
        config = node_module.write_config(self.folder, self.options.name, port, modules,
                                          network.ring_frames(kind) if kind else 0, huge)
        enter = self.network.enter(self.network.node) if kind else []
        self.node = node_module.Node(self.folder, config, enter, self.listener)
        self.state.add_process(self.node.child.pid)
        self.state.update(
            fabric="dpdk" if kind else "udp", namespaces=kind or "none", loopback=f"127.0.0.1:{port}",
            socket=self.node.socket, client_pid=self.network.client.pid if kind else 0,
            address=f"{network.NODE_ADDRESS}:{network.NODE_PORT}" if kind else f"127.0.0.1:{port}")
        self.node.wait_ready()
        say(f"node {self.options.name} is ready: 127.0.0.1:{port} from this machine"
            + (f", {network.NODE_ADDRESS}:{network.NODE_PORT} from scripts/in-client" if kind else ""))
        say(f"state, socket, logs: {self.folder}")

    def tour(self):
        """Exit status of the tour, played on the client's side of the wire."""
        values = self.state.values
        command = [TOUR] + (["--json"] if self.options.json else [])
        if self.options.sabotage:
            command += ["--sabotage", self.options.sabotage]
        if self.network:
            command = self.network.enter(self.network.client) + command
        env = dict(os.environ, SPOTLANE_NODE=values["address"], SPOTLANE_SOCKET=values["socket"],
                   SPOTLANE_BUILD=node_module.BUILD)
        return subprocess.run(command, env=env, check=False).returncode

    def watch(self):
        """One line that follows the node, until Ctrl-C or until the node ends."""
        live = sys.stderr.isatty() and not self.options.quiet
        say("Ctrl-C ends the node. In another terminal: scripts/spotctl status, scripts/spot request …")
        before, then = 0, time.monotonic()
        while self.node.child.poll() is None:
            time.sleep(1)
            if not live:
                continue
            status = self.node.status() or {}
            delivered = dig(status, "delivered")
            now = time.monotonic()
            rate = max(0, delivered - before) / max(now - then, 0.001)
            before, then = delivered, now
            columns = shutil.get_terminal_size((100, 24)).columns
            print(("\r" + status_line(status, rate))[:columns].ljust(columns), end="", file=sys.stderr,
                  flush=True)
        say(f"the node ended (exit status {self.node.child.returncode})")
        return self.node.child.returncode

    def finish(self):
        code = 0
        if self.node:
            code = self.node.stop()
        if self.network:
            self.network.close()
        if self.listener:
            self.listener.close()
        hugepages.give_back(self.state.values.get("hugepages_added", 0))
        self.remove_rest()
        self.state.remove()
        self.lock.release()
        return code


def dig(value, name):
    """The first number of this name anywhere in the status."""
    if isinstance(value, dict):
        if isinstance(value.get(name), (int, float)) and not isinstance(value.get(name), bool):
            return value[name]
        for inner in value.values():
            found = dig(inner, name)
            if found:
                return found
    return 0


def status_line(status, rate):
    return (f" {status.get('state', 'no answer'):9} {dig(status, 'spots'):>9,} Spots "
            f"{rate:>11,.0f} messages/s {dig(status, 'refused'):>9,} refused "
            f"lease {dig(status, 'lease_left_ms') / 1000:4.1f} s ")


def run(arguments):
    options = run_options(arguments)
    work, code = Run(options), 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        work.start()
        if not options.no_tour:
            code = work.tour()
        if not options.once:
            code = work.watch()
    except KeyboardInterrupt:
        say("\nstopping (again to stop at once)")
    except OSError as error:
        raise RunError(str(error)) from None
    finally:
        ended = work.finish()
    if ended and not code:
        say(f"the node ended with exit status {ended}: {work.folder}/node.log says why")
        code = ended if ended > 0 else 70
    return code


def split_name(arguments):
    """A leading --name X, and the rest."""
    if len(arguments) >= 2 and arguments[0] == "--name":
        return arguments[1], arguments[2:]
    if arguments and arguments[0].startswith("--name="):
        return arguments[0][7:], arguments[1:]
    return os.environ.get("SPOTLANE_NAME", "spotlane"), arguments


def in_client(arguments):
    name, command = split_name(arguments)
    if not command:
        raise RunError("scripts/in-client [--name X] CMD…")
    running = state_module.find_running(name)
    if running["namespaces"] == "none":
        raise RunError("this node has no DPDK side; its address is " + running["loopback"])
    env = dict(os.environ, SPOTLANE_NODE=running["address"], SPOTLANE_SOCKET=running["socket"])
    enter = network.enter_command(running["namespaces"], running["client_pid"])
    os.execvpe(enter[0], enter + command, env)


def spotctl(arguments):
    name, rest = split_name(arguments)
    running = state_module.find_running(name)
    os.execv(node_module.SPOTCTL, ["spotctl", "--socket", running["socket"]] + rest)


def spot(arguments):
    name, rest = split_name(arguments)
    if not os.environ.get("SPOTLANE_NODE"):
        os.environ["SPOTLANE_NODE"] = state_module.find_running(name)["loopback"]
    os.execv(node_module.SPOT, ["spot"] + rest)


def main():
    verbs = {"run": run, "in-client": in_client, "spotctl": spotctl, "spot": spot}
    verb, arguments = sys.argv[1], sys.argv[2:]
    try:
        return verbs[verb](arguments)
    except RunError as error:
        say(f"{verb}: {error}")
        return 2
    except OSError as error:
        say(f"{verb}: {error}")
        return 2


sys.exit(main())
