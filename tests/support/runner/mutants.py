# SPDX-License-Identifier: BSD-3-Clause
"""Applies one small defect at a time to a copy of the tree; the named tests must notice it."""
import glob
import os
import shutil

from builds import BuildError, Tree, run, say, tail
from execute import run_bounded
from results import Result, parse


def read_header(path):
    """Fields of the lines before the diff: Breaks, Tests (one or more lines), Why."""
    fields = {"Breaks": [], "Tests": [], "Why": []}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(("--- ", "diff ")):
                break
            name, colon, value = line.partition(":")
            if colon and name in fields:
                fields[name].append(value.strip())
    return fields


class Copy:
    """A copy of the committed and changed files, with its own build tree."""

    def __init__(self, top):
        self.root = os.path.join(top, "build-mutants")
        self.source = os.path.join(self.root, "source")
        os.makedirs(self.source, exist_ok=True)
        code, names = run(["git", "-C", top, "ls-files", "-co", "--exclude-standard", "-z"])
        if code:
            raise BuildError("git ls-files:\n" + names)
        self.fill(top, {n for n in names.split("\0") if n and os.path.isfile(os.path.join(top, n))})
        self.tree = Tree("plain", self.source, os.path.join(self.root, "build"))
        self.unpatched = {}  # program -> what fails in it without a patch
        self.tree.options = ["-Dbuildtype=debugoptimized", "-Dbench=false",
                             "-Dwerror=false"]

    def fill(self, top, names):
        for folder, _, files in os.walk(self.source):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.relpath(path, self.source) not in names:
                    os.unlink(path)
        for name in names:
            target = os.path.join(self.source, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.exists(target) or differ(os.path.join(top, name), target):
                shutil.copyfile(os.path.join(top, name), target)
                shutil.copymode(os.path.join(top, name), target)

    def patch(self, path, reverse=False):
        command = ["patch", "-s", "-p1", "-d", self.source, "-i", path]
        if reverse:
            command.insert(1, "-R")
        else:
            command[1:1] = ["-N", "-F0", "-r", "-"]
        return run(command)


def differ(a, b):
    with open(a, "rb") as one, open(b, "rb") as two:
        return one.read() != two.read()


def wanted_tests(header):
    """program -> set of test names (empty = any failure of the program counts)."""
    wanted = {}
    for line in header["Tests"]:
        for item in line.split():
            program, _, name = item.partition(":")
            wanted.setdefault(program, set())
            if name:
                wanted[program].add(name)
    return wanted


def failures(copy, test):
    """Names of the tests of one program that fail; the program's own name when it crashed or hung."""
    code, output = run_bounded(test["cmd"], dict(os.environ, **test["env"],
                               TEST_BUILD_DIR=copy.tree.path, TEST_SOURCE_DIR=copy.source),
                               test["workdir"] or copy.tree.path, (test["timeout"] or 30) * 2)
    bad = {r.name for r in parse("mutant", test["name"], output, code) if r.verdict == "failed"}
    return bad | {test["name"]} if code in (124, -6, -11) else bad


def noticed(bad, program, names):
    return bool(bad & (names | {program})) if names else bool(bad)


def unpatched(copy, test):
    """The same without a patch; a program is asked once."""
    if test["name"] not in copy.unpatched:
        copy.unpatched[test["name"]] = failures(copy, test)
    return copy.unpatched[test["name"]]


def try_one(copy, path):
    """(verdict, detail): passed when a named test fails with the patch and none without."""
    header = read_header(path)
    wanted = wanted_tests(header)
    if not (header["Breaks"] and wanted and header["Why"]):
        return "failed", "the header needs Breaks, Tests and Why"
    programs = {t["name"]: t for t in copy.tree.tests()}
    unknown = [p for p in wanted if p not in programs]
    if unknown:
        return "failed", "no test program named " + " ".join(unknown)
    targets = [os.path.relpath(programs[p]["cmd"][0], copy.tree.path) for p in wanted
               if programs[p]["cmd"][0].startswith(copy.tree.path)]
    copy.tree.build(targets)
    if any(noticed(unpatched(copy, programs[p]), p, names) for p, names in wanted.items()):
        return "failed", "the named tests fail without the patch"
    code, text = copy.patch(path)
    try:
        if code:
            return "failed", "does not apply: " + tail(text, 3)
        copy.tree.build(targets)
        killed = any(noticed(failures(copy, programs[p]), p, names) for p, names in wanted.items())
    except BuildError as error:
        return "failed", "does not build: " + tail(str(error), 12)
    finally:
        copy.patch(path, reverse=True)
    return ("passed", "") if killed else ("failed", "survived")


def run_all(top, names, tally):
    paths = sorted(glob.glob(os.path.join(top, "tests", "mutants", "*.patch")))
    if names:
        paths = [p for p in paths if os.path.basename(p)[:-6] in names]
    say(f"mutants: {len(paths)}")
    copy = Copy(top)
    copy.tree.configure()
    for path in paths:
        name = os.path.basename(path)[:-6]
        verdict, detail = try_one(copy, path)
        say(f"  {'killed' if verdict == 'passed' else 'FAILED':8} {name} "
            f"({' '.join(read_header(path)['Breaks'])}) {detail}")
        tally.add([Result("mutant", "mutants", f"x__mutant_{name}", verdict, detail)])
