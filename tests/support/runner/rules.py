# SPDX-License-Identifier: BSD-3-Clause
"""rule -> tests -> result, from the names of the tests that ran."""
import os

from builds import say
from results import Result


def required(top):
    """Label -> one line of what it says, in the order of tests/rules.txt."""
    rules = {}
    with open(os.path.join(top, "tests", "rules.txt"), encoding="utf-8") as lines:
        for line in lines:
            line = line.strip()
            if line and not line.startswith("#"):
                label, _, text = line.partition(" ")
                rules[label] = text.strip()
    return rules


def report(top, tally):
    """Prints the table and adds one failure for each required rule that no test proves."""
    wanted = required(top)
    by_rule = {}
    for result in tally.results:
        for label in result.rules:
            by_rule.setdefault(label, {}).setdefault(result.name, []).append(result)
    missing = []
    for label in list(wanted) + sorted(set(by_rule) - set(wanted)):
        tests = by_rule.get(label, {})
        state = rule_state(tests)
        if label in wanted and state in ("MISSING", "SKIPPED"):
            missing.append(label)
        say(f"{label:6} {state:8} {wanted.get(label, '')}")
        for name in sorted(tests):
            say(f"         {worst(tests[name]):8} {name}  ({', '.join(sorted({r.build for r in tests[name]}))})")
    tally.add([Result("rules", "rules", f"x__rule_{label}_has_a_test", "failed", "no test ran that proves it")
               for label in missing])
    tally.add([Result("rules", "rules", f"x__rule_{label}_has_a_test", "passed")
               for label in wanted if label not in missing])
    if missing:
        say("MISSING: " + " ".join(missing))


def rule_state(tests):
    states = {worst(results) for results in tests.values()}
    if not states:
        return "MISSING"
    if "failed" in states:
        return "FAILED"
    return "passed" if "passed" in states else "SKIPPED"


def worst(results):
    verdicts = {r.verdict for r in results}
    for verdict in ("failed", "passed"):
        if verdict in verdicts:
            return verdict
    return "skipped"
