# SPDX-License-Identifier: BSD-3-Clause
"""The test command behind scripts/test."""
import argparse
import glob
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fuzz  # noqa: E402
import mutants  # noqa: E402
import rules  # noqa: E402
from builds import BuildError, Tree, say  # noqa: E402
from execute import Runner, end_all, run_script, suites  # noqa: E402
from results import Result, Tally  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
FUZZ_SECONDS_DEFAULT = 60
UNPRIVILEGED_SECONDS_MAX = 5  # longer tests run once, as whoever calls


def options():
    parser = argparse.ArgumentParser(prog="scripts/test", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="lint and plain build only")
    parser.add_argument("--rules", action="store_true", help="print rule -> tests -> result")
    parser.add_argument("--mutants", nargs="*", metavar="NAME")
    parser.add_argument("--sanitize", choices=("address", "undefined", "thread"))
    parser.add_argument("--fuzz", type=int, metavar="SECONDS")
    parser.add_argument("--only", metavar="PATTERN")
    parser.add_argument("--soak", type=int, metavar="SEEDS")
    return parser.parse_args()


class Session:
    def __init__(self, args):
        self.args, self.tally, self.started = args, Tally(), time.monotonic()
        self.thread = None

    def title(self, text):
        say(f"== {text}  ({time.monotonic() - self.started:.0f} s)")

    def built(self, kind):
        """The tree, built; a part that does not build is a failure and the rest goes on."""
        self.title(f"build {kind}")
        tree = Tree(kind, TOP)
        broken = tree.build_what_compiles()
        if broken:
            say(broken)
            self.tally.add([Result(kind, "build", f"x__{kind}_build", "failed", "see above")])
        return tree

    def pick(self, tree, wanted_suites=None):
        tests = [t for t in tree.tests() if os.path.exists(t["cmd"][0]) or "/" not in t["cmd"][0]]
        if wanted_suites:
            tests = [t for t in tests if suites(t) & wanted_suites]
        if self.args.only:
            tests = [t for t in tests if re.search(self.args.only, t["name"])]
        return tests

    def plain(self):
        """The plain build's tests. Those that want to be alone mostly wait for a node: they and the
        scripts run beside what comes next, which needs the cores."""
        tree = self.built("plain")
        self.title("tests" + (" as root" if os.geteuid() == 0 else ""))
        runner, tests = Runner(tree, "plain", self.tally), self.pick(tree)
        runner.run_together(tests)
        self.beside(lambda: (runner.run_alone(tests), self.scripts()))
        if os.geteuid() == 0 and not self.args.quick:
            self.unprivileged(tree, runner.seconds)

    def beside(self, work):
        def guarded():
            try:
                work()
            except Exception as error:  # of the thread: a result, not a silence
                self.tally.add([Result("run", "run", "x__tests_beside", "failed", repr(error))])
        self.thread = threading.Thread(target=guarded, daemon=True)
        self.thread.start()

    def wait_for_those_beside(self):
        if self.thread is not None:
            self.title("waiting for the scripts" if self.thread.is_alive() else "the scripts are done")
            self.thread.join()

    def unprivileged(self, tree, seconds):
        """The quick unit tests once more as nobody: none of them may lean on being root."""
        self.title("unit tests without privileges")
        probe = subprocess.run(["setpriv", "--reuid", "64321", "--regid", "64321", "--clear-groups",
                                "test", "-r", os.path.join(tree.path, "build.ninja")], check=False)
        if probe.returncode:
            self.tally.add([Result("nobody", "nobody", "x__tests_without_privileges", "skipped",
                                   "uid 64321 cannot read the build directory")])
            say("  skipped: uid 64321 cannot read the build directory")
            return
        tests = [t for t in self.pick(tree, {"unit", "unprivileged"})
                 if seconds.get(t["name"], 0) < UNPRIVILEGED_SECONDS_MAX]
        Runner(tree, "nobody", self.tally, unprivileged=True, skips=exceptions("nobody")).run(tests)

    def sanitized(self, kind):
        tree = self.built(kind)
        wanted = {"unit", "contract", "sim", "pure"}
        tests = self.pick(tree, wanted | ({"fuzz"} if kind == "asan" else set()))
        if kind == "tsan":
            tests = [t for t in tests if is_pure(t, tree)]
        self.title(f"tests under {kind}")
        Runner(tree, kind, self.tally, skips=exceptions(kind)).run(tests)
        self.title(f"planted defects under {kind}")
        run_script(kind, [os.path.join(TOP, "tests/support/planted/check"), kind], self.tally, 120)

    def soak(self, seeds):
        """The simulator alone: so many seeds, what went wrong, and which cells were visited."""
        tree = self.built("plain")
        self.title(f"soak: {seeds} seeds")
        program = os.path.join(tree.path, "tests", "sim", "test_sim")
        code = subprocess.run([program, "--soak", str(seeds)], check=False).returncode
        self.tally.add([Result("plain", "test_sim", "I23__soak_visits_every_cell",
                               "failed" if code else "passed", f"{seeds} seeds")])

    def lint(self):
        self.title("lint")
        run_script("lint", ["/usr/bin/python3", "-B", os.path.join(TOP, "tests/support/lint.py")],
                   self.tally, 300)

    def scripts(self):
        """Stand-alone checks of tests/*/check-*; each prints ok / not ok lines."""
        for path in sorted(glob.glob(os.path.join(TOP, "tests", "*", "check-*"))):
            if os.access(path, os.X_OK) and (not self.args.only
                                             or re.search(self.args.only, os.path.basename(path))):
                run_script("script", [path], self.tally, 600,
                           dict(os.environ, TEST_BUILD_DIR=os.path.join(TOP, "build"),
                                TEST_SOURCE_DIR=TOP))


def exceptions(kind):
    """tests/sanitizer-exceptions.txt: KIND PROGRAM[:TEST] reason."""
    found = {}
    with open(os.path.join(TOP, "tests", "sanitizer-exceptions.txt"), encoding="utf-8") as lines:
        for line in lines:
            parts = line.strip().split(None, 2)
            if len(parts) == 3 and parts[0] == kind:
                found[parts[1]] = parts[2]
    return found


def is_pure(test, tree):
    """What ThreadSanitizer judges: our own programs without DPDK. The simulator is one thread."""
    if "pure" in suites(test):
        return True
    return "sim" not in suites(test) and test["cmd"][0].startswith(tree.path) \
        and not links_dpdk(test["cmd"][0])


def links_dpdk(program):
    done = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return "librte_" in done.stdout


def run(session, args):
    if args.mutants is not None:
        mutants.run_all(TOP, args.mutants, session.tally)
    elif args.sanitize:
        session.sanitized("tsan" if args.sanitize == "thread" else "asan")
    elif args.fuzz:
        fuzz.run(session, TOP, args.fuzz)
    elif args.soak:
        session.soak(args.soak)
    else:
        session.lint()
        session.plain()
        if not args.quick and not args.only:
            session.sanitized("asan")
            session.sanitized("tsan")
            fuzz.run(session, TOP, FUZZ_SECONDS_DEFAULT)
        session.wait_for_those_beside()
    if args.rules:
        session.title("rules")
        rules.report(TOP, session.tally)


def main():
    args = options()
    session = Session(args)
    os.chdir(TOP)
    os.environ["LC_ALL"] = "C.UTF-8"  # what tools print must not depend on who runs them
    try:
        run(session, args)
    except BuildError as error:
        say(str(error))
        session.tally.add([Result("build", "build", "x__build", "failed", "see above")])
    except KeyboardInterrupt:
        end_all()
        session.tally.add([Result("run", "run", "x__run", "failed", "interrupted")])
    os.makedirs("out", exist_ok=True)
    session.tally.save(os.path.join("out", "test-results.json"))
    for line in session.tally.skips():
        say(line)
    for result in session.tally.results:
        if result.verdict == "failed":
            say(f"FAILED {result.build} {result.program} {result.name} {result.detail}")
    session.title("done")
    say(session.tally.last_line())
    return 1 if session.tally.count("failed") else 0


sys.exit(main())
