# SPDX-License-Identifier: BSD-3-Clause
"""Runs one measuring program and says how quiet the machine was meanwhile."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
# A run with more than this of the machine taken by others, or stolen by the host, is repeated.
OTHERS_MAX_PERCENT = 5.0
STOLEN_MAX_PERCENT = 2.0
TRIES_MAX = 3


def cpu_times():
    """(busy, stolen) of all CPUs since boot, in seconds."""
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = fields
    return (user + nice + system + irq + softirq) / TICK, stolen / TICK


class Failed(Exception):
    """A program ended wrongly; the text says which and how."""


def once(argv, timeout_s):
    """Runs argv with `--json FILE` (or reads its standard output); returns objects and noise."""
    with tempfile.TemporaryDirectory(prefix="spotbench-") as folder:
        path = os.path.join(folder, "out.json")
        full = [a.replace("{json}", path) for a in argv]
        busy, stolen = cpu_times()
        start = time.monotonic()
        with open(os.path.join(folder, "stdout"), "w+b") as out, \
                open(os.path.join(folder, "stderr"), "w+b") as err:
            child = subprocess.Popen(full, stdout=out, stderr=err, start_new_session=True)
            usage = wait(child, timeout_s)
            out.seek(0)
            err.seek(0)
            text, complaint = out.read().decode(), err.read().decode()
        wall = time.monotonic() - start
        if child.returncode != 0:
            raise Failed(f"{' '.join(full)} ended with {child.returncode}: {complaint.strip()[-600:]}")
        lines = pathlib.Path(path).read_text() if path in full else text
    busy_now, stolen_now = cpu_times()
    capacity = wall * os.cpu_count()
    own = usage.ru_utime + usage.ru_stime
    noise = {
        "wall_s": round(wall, 2),
        "others_percent": round(max(0.0, busy_now - busy - own) / capacity * 100, 2),
        "stolen_percent": round((stolen_now - stolen) / capacity * 100, 2),
        "switched_away": usage.ru_nivcsw,
    }
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")], noise


def wait(child, timeout_s):
    """Waits for the child with its resource usage; ends its whole process group when it is late."""
    end = time.monotonic() + timeout_s
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > end:
            os.killpg(child.pid, 9)
            os.wait4(child.pid, 0)
            child.returncode = -9
            raise Failed(f"{child.args[0]} did not end within {timeout_s} s")
        time.sleep(0.02)


def disturbed(noise):
    return noise["others_percent"] > OTHERS_MAX_PERCENT or noise["stolen_percent"] > STOLEN_MAX_PERCENT


def measure(argv, timeout_s, say):
    """Repeats a disturbed run; the quietest try is returned, and says whether it was disturbed."""
    best = None
    for attempt in range(1, TRIES_MAX + 1):
        objects, noise = once(argv, timeout_s)
        noise["tries"], noise["disturbed"] = attempt, disturbed(noise)
        if best is None or noise["others_percent"] < best[1]["others_percent"]:
            best = (objects, noise)
        if not noise["disturbed"]:
            break
        say(f"disturbed: others took {noise['others_percent']} %, stolen {noise['stolen_percent']} %")
    best[1]["tries"] = attempt
    return best
