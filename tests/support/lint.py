#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the tree that no compiler makes. Prints ok / not ok lines and `N passed, M failed`."""
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX, FILE_LINES_WARN = 1000, 600
LINE_COLUMNS_MAX = 100
TEXT_COLUMNS_MAX = 120  # a message for a person is not broken: it must be found by searching for it
TABLE_COLUMNS_MAX = 140  # a row of a constant table reads best as one line

SOURCES = ("lib", "dataplane", "control", "programs", "bench")
# A header of a library -> the only folders that may include it.
FENCED_HEADERS = (
    (r"urcu", ("lib/publish",)),
    (r"jemalloc/", ("lib/ledger", "lib/base", "dataplane/core", "programs/spotd", "tests/", "bench/")),
    (r"uv\.h$", ("control/loop", "control/api", "programs/spotd", "tests/")),
    (r"sqlite3\.h$", ("control/store", "tests/")),
    (r"rte_", ("dataplane/fabric/dpdk", "dataplane/fabric/", "dataplane/worker", "bench/", "tests/")),
    (r"cyaml/", ("control/config", "tests/")),
    (r"cmocka\.h$", ("tests/", "templates/", "dataplane/modules/", "examples/")),
)
# A folder -> project headers it must not see.
FENCED_FOLDERS = (
    ("lib/", r"^(dp|core|fabric|worker|node|store|net|config|api|cli|loop|spotlane)/"),
    ("control/", r"^(core|fabric|worker|port)/"),
    ("dataplane/", r"^(node|store|net|config|api|cli|loop)/"),
    ("dataplane/core/", r"^(fabric/(dpdk|udp)|worker)/?"),
    ("dataplane/modules/", r"^(core|fabric|worker|dp|lane|ledger|route|publish|wire)/"),
)
OUTSIDE = re.compile(r"(?<![\w./-])/(home|work|root|srv|mnt)/")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
URL = re.compile(r"https?://(?!(127\.0\.0\.1|localhost|\[::1\]|json-schema\.org|opensource\.org))")
FUNCTION_START = re.compile(r"^[A-Za-z_].*[A-Za-z_0-9]+\(")


def files():
    done = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", "-z"],
                          stdout=subprocess.PIPE, check=True)
    names = [n for n in done.stdout.decode().split("\0") if n]
    return sorted(n for n in set(names) if os.path.isfile(os.path.join(TOP, n)))


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8", errors="replace") as stream:
        return stream.read()


def is_c(name):
    return name.endswith((".c", ".h"))


def needs_spdx(name):
    base = os.path.basename(name)
    if base in ("meson.build", "Makefile", "Dockerfile") or name.startswith("templates/") and is_c(name):
        return True
    if name.endswith((".c", ".h", ".py", ".sh", ".lua", ".service", ".yaml", ".yml")):
        return True
    return name.startswith("scripts/") and "." not in base or name == ".ci/run"


def check_spdx(names):
    for name in names:
        head = "\n".join(read(name).splitlines()[:3])
        if needs_spdx(name) and "SPDX-License-Identifier: BSD-3-Clause" not in head:
            yield f"{name}: no SPDX line"


def includes(name):
    for number, line in enumerate(read(name).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1), match.group(2)


def check_fences(names):
    for name in (n for n in names if is_c(n)):
        for number, quote, header in includes(name):
            where = f"{name}:{number}"
            if header.startswith("../") or "/../" in header:
                yield f"{where}: includes {header} (name it by its module path)"
            for pattern, allowed in FENCED_HEADERS:
                if re.search(pattern, header) and not name.startswith(allowed):
                    yield f"{where}: {header} belongs to {' '.join(allowed)}"
            for folder, pattern in FENCED_FOLDERS:
                if name.startswith(folder) and quote == '"' and re.search(pattern, header):
                    yield f"{where}: {folder} must not see {header}"


def check_nallocx(names):
    for name in (n for n in names if is_c(n) and n.startswith(SOURCES)):
        if re.search(r"\bnallocx\s*\(", read(name)) and not name.startswith("lib/ledger"):
            yield f"{name}: size classes are asked in lib/ledger only"


def check_own_header_first(names):
    known = set(names)
    for name in (n for n in names if n.endswith(".c") and n.startswith(SOURCES)):
        header = name[:-2] + ".h"
        found = [i for i in includes(name) if i[1] == '"']
        if header in known and found and os.path.basename(found[0][2]) != os.path.basename(header):
            yield f"{name}: its own header comes first"


def check_pragma_once(names):
    for name in (n for n in names if n.endswith(".h")):
        if "#pragma once" not in "\n".join(read(name).splitlines()[:6]):
            yield f"{name}: no #pragma once"


def check_words(names):
    for name in names:
        if name == "tests/support/lint.py" or name.endswith((".hex", ".jsonl", ".pcap", ".gz")):
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            if UNFINISHED.search(line):
                yield f"{name}:{number}: unfinished work belongs in a ticket"
            if OUTSIDE.search(line):
                yield f"{name}:{number}: a path of one machine"
            if URL.search(line):
                yield f"{name}:{number}: an outside address"


def columns_allowed(line):
    bare = line.lstrip()
    if bare.startswith(("X(", "{", "T(", "TOP(", "SCALAR(")):
        return TABLE_COLUMNS_MAX
    return TEXT_COLUMNS_MAX if '"' in bare and not bare.startswith("//") else LINE_COLUMNS_MAX


def long_lines_allowed():
    """tests/support/long-lines.txt: FILE LINES. The list may only shrink."""
    rows = [line.split() for line in read("tests/support/long-lines.txt").splitlines()
            if line and not line.startswith("#")]
    return {name: int(count) for name, count in rows}


def wide_lines(name):
    for number, line in enumerate(read(name).splitlines(), 1):
        if len(line.expandtabs(8)) > columns_allowed(line):
            yield f"{name}:{number}: {len(line.expandtabs(8))} columns"


def ours(names):
    return (n for n in names if is_c(n) and not generated(n))


def check_lines(names):
    allowed = long_lines_allowed()
    for name in ours(names):
        for number, line in enumerate(read(name).splitlines(), 1):
            if line != line.rstrip():
                yield f"{name}:{number}: blanks at the end"
        wide = list(wide_lines(name))
        if len(wide) > allowed.get(name, 0):
            yield f"{name}: {len(wide)} long lines, {allowed.get(name, 0)} allowed; the last: {wide[-1]}"
    for name in sorted(set(allowed) - set(names)):
        yield f"tests/support/long-lines.txt: {name} is gone"


def check_file_length(names):
    for name in (n for n in names if (is_c(n) or n.endswith(".py")) and not generated(n)):
        count = len(read(name).splitlines())
        if count > FILE_LINES_MAX:
            yield f"{name}: {count} lines, at most {FILE_LINES_MAX}"
        elif count > FILE_LINES_WARN:
            print(f"# {name}: {count} lines (aim at {FILE_LINES_WARN})")


def generated(name):
    return "generated" in "\n".join(read(name).splitlines()[:4]).lower()


def functions(name):
    """(function, first line, lines) of a C file in Linux brace style."""
    lines = read(name).splitlines()
    start, title = None, ""
    for number, line in enumerate(lines, 1):
        if FUNCTION_START.match(line) and not line.startswith(("typedef", "struct ", "enum ", "#")) \
                or re.match(r"^(static |struct |enum ).*\(", line):
            title = line
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            name_match = re.search(r"(\w+)\(", title)
            yield (name_match.group(1) if name_match else "?"), start, number - start + 1
            start = None


def exemptions():
    """tests/support/long-functions.txt: FILE FUNCTION LINES reason. The list may only shrink."""
    found = {}
    for line in read("tests/support/long-functions.txt").splitlines():
        parts = line.split(None, 3)
        if line and not line.startswith("#") and len(parts) == 4:
            found[(parts[0], parts[1])] = int(parts[2])
    return found


def check_function_length(names):
    allowed, used = exemptions(), set()
    for name in (n for n in names if is_c(n) and not generated(n)):
        for function, line, count in functions(name):
            limit = allowed.get((name, function), FUNCTION_LINES_MAX)
            if count > FUNCTION_LINES_MAX:
                used.add((name, function))
            if count > limit:
                yield f"{name}:{line}: {function} has {count} lines, at most {limit}"
    for name, function in sorted(set(allowed) - used):
        yield f"tests/support/long-functions.txt: {name} {function} needs no exemption any more"


def check_executables(names):
    for name in names:
        starts = read(name)[:2] == "#!"
        if starts and not name.endswith((".py", ".lua")) \
                and not os.access(os.path.join(TOP, name), os.X_OK):
            yield f"{name}: starts with #! but is not executable"


def flags_for(name):
    folders = ["lib"]
    if name.startswith("dataplane/"):
        folders += ["dataplane/port", "dataplane"]
    if name.startswith(("control/", "programs/")):
        folders += ["dataplane/port", "control"]
    if name.startswith(("programs/", "bench/")):
        folders += ["dataplane", "dataplane/port", "control", "bench"]
    return [f"-I{os.path.join(TOP, f)}" for f in folders]


def third_party_flags():
    packages = "libdpdk liburcu-qsbr jemalloc libuv jansson yaml-0.1 libsodium sqlite3 libmicrohttpd"
    done = subprocess.run(["pkg-config", "--cflags"] + packages.split(), stdout=subprocess.PIPE,
                          text=True, check=True)
    return shlex.split(done.stdout)


def compile_alone(name, extra):
    command = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
               "-Wno-missing-field-initializers", "-Wno-unused-function", "-fsyntax-only", "-x", "c",
               "-include", os.path.join(TOP, name), *flags_for(name), *extra, "/dev/null"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        return f"{name}: does not compile alone: {done.stdout.splitlines()[0]}"
    return None


def check_headers_alone(names):
    headers = [n for n in names if n.endswith(".h") and n.startswith(SOURCES)]
    extra = third_party_flags()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        yield from filter(None, pool.map(lambda n: compile_alone(n, extra), headers))


CHECKS = (
    ("spdx_lines", check_spdx),
    ("include_fences", check_fences),
    ("size_classes_in_ledger_only", check_nallocx),
    ("own_header_first", check_own_header_first),
    ("pragma_once", check_pragma_once),
    ("forbidden_words", check_words),
    ("line_length", check_lines),
    ("file_length", check_file_length),
    ("function_length", check_function_length),
    ("scripts_executable", check_executables),
    ("headers_compile_alone", check_headers_alone),
)


def main():
    names, failed = files(), 0
    if sys.argv[1:] == ["--long-lines"]:  # the rows of tests/support/long-lines.txt
        for name in ours(names):
            count = len(list(wide_lines(name)))
            if count:
                print(name, count)
        return 0
    for title, check in CHECKS:
        found = list(check(names))
        for problem in found:
            print("    " + problem)
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} x__lint_{title}"
              + (f" {len(found)}: {found[0]}" if found else ""))
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
