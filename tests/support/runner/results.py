# SPDX-License-Identifier: BSD-3-Clause
"""Results of single tests: reading them from a test program's output, counting, keeping."""
import json
import re
from dataclasses import asdict, dataclass

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED)\s+\] (\S+)$")
SCRIPT = re.compile(r"^(not ok|ok) (\S+)(?: (.*))?$")
LABEL = re.compile(r"^(?:[A-Z]+[0-9]+)$")


@dataclass
class Result:
    build: str      # plain, asan, tsan, lint, ...
    program: str    # the executable or script
    name: str       # RULES__what_holds
    verdict: str    # passed, failed, skipped
    detail: str = ""

    @property
    def rules(self):
        head = self.name.split("__", 1)[0] if "__" in self.name else ""
        return [part for part in head.split("_") if LABEL.match(part)]


def parse(build, program, output, exit_code):
    """Results of one program. A program without lines of its own counts as one test."""
    found = {}
    for line in output.splitlines():
        cmocka = CMOCKA.match(line)
        if cmocka and not cmocka.group(2).isdigit():
            verdict = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[cmocka.group(1)]
            note(found, Result(build, program, cmocka.group(2), verdict))
            continue
        script = SCRIPT.match(line)
        if script:
            detail = script.group(3) or ""
            verdict = "passed" if script.group(1) == "ok" else "failed"
            if verdict == "passed" and detail.lower().startswith("# skip"):
                verdict = "skipped"
            note(found, Result(build, program, script.group(2), verdict, detail))
    results = list(found.values())
    if exit_code == 77 and not any(r.verdict == "failed" for r in results):
        reason = last_line(output) or "exit status 77"
        return results or [Result(build, program, program, "skipped", reason)]
    if exit_code == 0 and not results:
        return [Result(build, program, program, "passed")]
    if exit_code != 0 and not any(r.verdict == "failed" for r in results):
        results.append(Result(build, program, program, "failed", f"exit status {exit_code}"))
    return results


def note(found, result):
    # cmocka repeats the names of failures and skips in its closing block; a failure is never
    # overwritten by a better line of the same name.
    old = found.get(result.name)
    if old is None or result.verdict == "failed" or old.verdict == "passed":
        found[result.name] = result


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


class Tally:
    def __init__(self):
        self.results = []

    def add(self, results):
        self.results.extend(results)

    def count(self, verdict):
        return sum(1 for r in self.results if r.verdict == verdict)

    def last_line(self):
        return f"{self.count('passed')} passed, {self.count('failed')} failed"

    def skips(self):
        """One line for each test that could not run here, and why."""
        return [f"SKIPPED {r.build} {r.program} {r.name} {r.detail}".rstrip()
                for r in self.results if r.verdict == "skipped"]

    def save(self, path):
        with open(path, "w", encoding="utf-8") as out:
            json.dump([asdict(r) for r in self.results], out, indent=0)
