# SPDX-License-Identifier: BSD-3-Clause
"""Runs the test programs of one build tree, several at a time where they allow it."""
import os
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from builds import say, tail
from results import Result, last_line, parse

SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=0:exitcode=99:detect_leaks=1:handle_segv=1:allow_user_segv_handler=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99",
    "TSAN_OPTIONS": "halt_on_error=0:exitcode=99:second_deadlock_stack=1",
}
NOBODY = 64321  # a number without a name; 65534 would stand for "unmapped" and may do nothing
WHO_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
              "--no-new-privs"]


def suites(test):
    return {s.split(":", 1)[-1] for s in test["suite"]}


class Runner:
    def __init__(self, tree, label, tally, unprivileged=False, skips=None):
        self.tree, self.label, self.tally = tree, label, tally
        self.unprivileged, self.skips = unprivileged, skips or {}
        self.lock = threading.Lock()
        self.done, self.total = 0, 0
        self.seconds = {}

    def run(self, tests):
        self.total = len(tests)
        self.run_together(tests)
        self.run_alone(tests)

    def run_together(self, tests):
        """Those that may run beside each other; the longest first, so that no core waits for it."""
        together = sorted((t for t in tests if t["is_parallel"]), key=lambda t: "sim" not in suites(t))
        self.total = len(tests)
        with ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1)) as pool:
            list(pool.map(self.run_one, together))

    def run_alone(self, tests):
        for test in tests:
            if not test["is_parallel"]:
                self.run_one(test)

    def run_one(self, test):
        started = time.monotonic()
        code, output = self.execute(test)
        results = [self.excuse(r) for r in parse(self.label, test["name"], output, code)]
        failed = [r for r in results if r.verdict == "failed"]
        with self.lock:
            self.seconds[test["name"]] = time.monotonic() - started
            self.done += 1
            self.tally.add(results)
            verdicts = {v: sum(1 for r in results if r.verdict == v)
                        for v in ("passed", "failed", "skipped")}
            counts = ", ".join(f"{n} {v}" for v, n in verdicts.items() if n)
            say(f"  [{self.done:3}/{self.total}] {self.label:6} {test['name']:44} {counts}"
                f"  {time.monotonic() - started:.1f} s")
            for result in failed:
                say(f"        FAILED {result.name} {result.detail}")
            if failed:
                say("        | " + tail(output, 40).replace("\n", "\n        | "))

    def excuse(self, result):
        reason = self.skips.get(f"{result.program}:{result.name}")
        if reason and result.verdict == "failed":
            return Result(result.build, result.program, result.name, "skipped", reason)
        return result

    def execute(self, test):
        excused = self.skips.get(test["name"])
        if excused:
            return 77, "not run under " + self.label + ": " + excused
        command = list(test["cmd"])
        env = dict(os.environ, **test["env"])
        if self.tree.kind != "plain":
            env.update({k: v for k, v in SANITIZER_ENV.items() if k not in os.environ})
            if self.tree.kind == "tsan":
                env["TSAN_OPTIONS"] += ":suppressions=" + os.path.join(
                    self.tree.top, "tests", "tsan-suppressions.txt")
        timeout = (test["timeout"] or 30) * (3 if self.tree.kind == "plain" else 8)
        with tempfile.TemporaryDirectory(prefix="spottest-") as scratch:
            env["TMPDIR"] = scratch
            os.chmod(scratch, 0o711)  # tests that play several users pass through it
            env["TEST_BUILD_DIR"], env["TEST_SOURCE_DIR"] = self.tree.path, self.tree.top
            if self.unprivileged:
                os.chown(scratch, NOBODY, NOBODY)
                env["HOME"] = env["XDG_RUNTIME_DIR"] = scratch
                if os.path.basename(command[0]) == "python3":
                    command[0] = "/usr/bin/python3"  # one of root's own would not be theirs to run
                command = WHO_NOBODY + command
            return run_bounded(command, env, test["workdir"] or self.tree.path, timeout)


RUNNING = set()  # leaders of the process groups under way


def end_all():
    """Interrupted: nothing that was started stays behind."""
    for pid in list(RUNNING):
        end_group(pid)


def run_bounded(command, env, cwd, timeout):
    """Exit status and output; the whole process group ends with the test."""
    try:
        child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 start_new_session=True)
    except OSError as error:
        return 127, str(error)
    RUNNING.add(child.pid)
    try:
        output, _ = child.communicate(timeout=timeout)
        code = child.returncode
    except subprocess.TimeoutExpired:
        end_group(child.pid)
        output, _ = child.communicate()
        output += f"\nno end after {timeout} s\n".encode()
        code = 124
    end_group(child.pid)
    RUNNING.discard(child.pid)
    return code, output.decode("utf-8", "replace")


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_script(label, command, tally, timeout, env=None):
    """A check that prints ok / not ok lines itself."""
    name = os.path.basename(command[-1])
    started = time.monotonic()
    code, output = run_bounded(command, env or dict(os.environ), None, timeout)
    results = parse(label, name, output, code)
    tally.add(results)
    failed = [r for r in results if r.verdict == "failed"]
    say(f"            {label:6} {name:44} {len(results) - len(failed)} passed, {len(failed)} failed"
        f"  {time.monotonic() - started:.1f} s")
    for result in failed:
        say(f"        FAILED {result.name} {result.detail}")
    if failed and not any(r.detail for r in failed):
        say("        | " + tail(output, 30).replace("\n", "\n        | "))
    return last_line(output)
