# SPDX-License-Identifier: BSD-3-Clause
"""Where a run keeps its things, who owns a name, and what an earlier run left behind."""
import errno
import json
import os
import signal
import socket
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOCKET_PATH_BYTES_MAX = 107


class RunError(Exception):
    """Something a person can act on: printed as one line."""


def bases():
    """Folders that may hold runs, best first. The socket's path must stay short."""
    found = [os.path.join(TOP, "out", "run")]
    if os.environ.get("XDG_RUNTIME_DIR"):
        found.append(os.path.join(os.environ["XDG_RUNTIME_DIR"], "spotlane"))
    found.append(f"/tmp/spotlane-{os.getuid()}")
    return found


def usable(base, name):
    path = os.path.join(base, name, "control.sock")
    if len(path.encode()) > SOCKET_PATH_BYTES_MAX:
        return False
    try:
        os.makedirs(os.path.join(base, name), mode=0o700, exist_ok=True)
    except OSError:
        return False
    # Whoever made these folders can change what we put there: only our own will do.
    if any(os.lstat(p).st_uid != os.getuid() for p in (base, os.path.join(base, name))):
        return False
    return os.access(os.path.join(base, name), os.W_OK | os.X_OK)


def make_folder(name):
    for base in bases():
        if usable(base, name):
            folder = os.path.join(base, name)
            os.chmod(folder, 0o700)
            return folder
    raise RunError("no folder for the run's state can be written: tried " + ", ".join(bases()))


def find_running(name):
    """The state of a running node of this name, whoever's terminal started it."""
    for base in bases():
        try:
            with open(os.path.join(base, name, "run.json"), encoding="utf-8") as stream:
                state = json.load(stream)
        except (OSError, ValueError):
            continue
        if any(alive(p) for p in state.get("processes", [])):
            return state
    raise RunError(f"no node named {name} is running here (scripts/run starts one)")


class NameLock:
    """One run per name on this machine. An abstract socket: it is gone when its owner is."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self.socket.bind("\0spotlane-run-" + name)
        except OSError as error:
            self.socket.close()
            if error.errno != errno.EADDRINUSE:
                raise
            raise RunError(f"a node named {name} is already running here: "
                           f"choose another with --name, or stop it with scripts/spotctl stop") from None

    def release(self):
        self.socket.close()


def start_time(pid):
    """Start of a process in ticks since boot: tells it from a later one with the same number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def describe(pid):
    return {"pid": pid, "start": start_time(pid)}


def alive(process):
    start = start_time(process["pid"])
    if start is None or start != process["start"]:
        return False
    try:
        with open(f"/proc/{process['pid']}/stat", encoding="ascii", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end(processes, patience_s):
    """Asks them to end, then makes them."""
    for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 5)):
        for process in processes:
            if alive(process):
                try:
                    os.kill(process["pid"], number)
                except ProcessLookupError:
                    pass
        deadline = time.monotonic() + wait_s
        while any(alive(p) for p in processes) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not any(alive(p) for p in processes):
            return


class RunState:
    """run.json: what a later run needs to clean up after this one."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, "run.json")
        self.values = {"name": name, "folder": folder, "processes": [], "hugepages_added": 0}

    def update(self, **values):
        self.values.update(values)
        temporary = self.path + ".new"
        with open(temporary, "w", encoding="utf-8") as out:
            json.dump(self.values, out, indent=1)
        os.rename(temporary, self.path)

    def add_process(self, pid):
        self.update(processes=self.values["processes"] + [describe(pid)])

    def left_behind(self):
        """What an earlier run of this name recorded, or nothing."""
        try:
            with open(self.path, encoding="utf-8") as stream:
                return json.load(stream)
        except (OSError, ValueError):
            return None

    def remove(self):
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
