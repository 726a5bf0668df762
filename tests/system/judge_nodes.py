# SPDX-License-Identifier: BSD-3-Clause
"""Judges what callers saw, from their own logs alone: one JSON object a line, one line a call, written
when the call ended. No counter of a node is looked at.

    t0, t1    when the call began and ended, seconds on the clock that all callers share
    caller    who
    result    printed kind, or "DeadlineExceeded" where no answer came
    reason    printed reason
    accepted  printed
    value     the number in an OK answer, else null
"""
import json
import pathlib


class Fault(Exception):
    pass


def need(holds, what, *rows):
    if not holds:
        raise Fault("%s: %s" % (what, " ".join(json.dumps(r) for r in rows[:3])))


def load(folder):
    rows = []
    for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
        rows += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(rows, key=lambda r: r["t1"])


def answers_are_sound(rows):
    """Results come from the closed set that a caller of a living or dead owner may see."""
    allowed = {("OK", "None"), ("StaleRoute", "LeaseLost"), ("StaleRoute", "WrongOwner"),
               ("DeadlineExceeded", "None"), ("Unavailable", "OwnerUnusable"),
               ("Unavailable", "StoreUnreachable"), ("Unavailable", "LeaseLost")}
    for r in rows:
        need((r["result"], r["reason"]) in allowed, "a result that nothing explains", r)
        if r["result"] in ("StaleRoute", "Unavailable"):
            need(r["accepted"] == "no", "a refusal that does not say so", r)


def dead_owner(rows, killed, bound_s, slack_s):
    """DeadlineExceeded first, then Unavailable within the bound, and nothing else; no OK after the kill."""
    before = [r for r in rows if r["t1"] < killed]
    after = [r for r in rows if r["t0"] > killed]
    callers = {r["caller"] for r in rows}
    need(callers == {r["caller"] for r in before if r["result"] == "OK"}, "not every caller had the route")
    need(all(r["result"] in ("DeadlineExceeded", "Unavailable") for r in after),
         "a dead owner answered", *[r for r in after if r["result"] not in ("DeadlineExceeded", "Unavailable")])
    for caller in callers:
        mine = [r for r in after if r["caller"] == caller]
        first = next((i for i, r in enumerate(mine) if r["result"] == "Unavailable"), None)
        need(first is not None, "%s never heard Unavailable" % caller, *mine[-1:])
        need(first > 0, "%s heard Unavailable with no evidence yet" % caller, mine[0])
        need(mine[first]["reason"] == "OwnerUnusable", "not the owner's fault", mine[first])
        need(mine[first]["t1"] <= killed + bound_s + slack_s, "too late by %.2f s" % (
            mine[first]["t1"] - killed - bound_s), mine[first])
        need(all(r["result"] == "Unavailable" for r in mine[first:]),
             "evidence was forgotten", *[r for r in mine[first:] if r["result"] != "Unavailable"])


def counts_once(rows, sent_one_each):
    """A counter that gets 1 a call: OK answers name each value at most once, so nothing ran twice."""
    values = [r["value"] for r in rows if r["result"] == "OK"]
    need(len(values) == len(set(values)), "one message ran twice")
    maybe = sum(r["result"] == "OK" or r["accepted"] == "unknown" for r in rows)
    need(not values or max(values) <= maybe + sent_one_each, "more ran than was sent")


def refused_then_recovers(rows, kinds):
    """OK, then refusals of these kinds, then OK again."""
    order = [r["result"] for r in rows]
    need("OK" in order, "never OK")
    bad = [i for i, r in enumerate(order) if r in kinds]
    need(bad, "nothing was refused")
    need("OK" in order[:bad[0]], "refused from the start")
    need(order[-1] == "OK", "did not recover", rows[-1])
