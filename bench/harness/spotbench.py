# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of spotbench that join runs: all, report, compare, check.

usage: spotbench.py PROGRAM all [--quick] [--out FILE.json]
       spotbench.py PROGRAM report FILE.json [--html FILE]
       spotbench.py PROGRAM compare OLD.json NEW.json
       spotbench.py PROGRAM check FILE.json [--exceptions FILE]
"""
import argparse
import contextlib
import os
import sys
import time

import page
import plan
import results
import runner
import targets

OK, WRONG, USAGE, ENVIRONMENT = 0, 1, 2, 11


def run_all(args):
    report = results.new()
    entries = list(plan.everything(args.program, args.quick))
    start = time.monotonic()
    for i, entry in enumerate(entries, 1):
        print(f"[{i}/{len(entries)}, {time.monotonic() - start:4.0f} s] {entry.title}", flush=True)
        if entry.needs and not os.path.exists(entry.needs):
            report["missing"].append(f"{entry.title} ({entry.needs} is not installed or built)")
            continue
        try:
            with (entry.around or contextlib.nullcontext)():
                objects, noise = runner.measure(entry.argv, entry.timeout_s,
                                                lambda s: print(f"    {s}", flush=True))
        except runner.Failed as why:
            print(f"    failed: {why}", file=sys.stderr)
            report["missing"].append(f"{entry.title} (failed)")
            report["failed"] = True
            continue
        report["runs"].append({"group": entry.group, "title": entry.title, "noise": noise,
                               "argv": entry.argv, "objects": objects})
        results.save(report, args.out)
    results.save(report, args.out)
    print(f"{args.out}: {len(report['runs'])} runs")
    return WRONG if report.get("failed") else OK


def write_page(args):
    target = args.html or os.path.splitext(args.file)[0] + ".html"
    with open(target, "w", encoding="utf-8") as f:
        f.write(page.render(results.load(args.file)))
    print(target)
    return OK


def compare(args):
    old, new = results.samples(results.load(args.old)), results.samples(results.load(args.new))
    print(f"{'what':40} {'old':>11} {'new':>11} {'new/old':>8}  spread of old")
    for key in sorted(old.keys() & new.keys()):
        before, after = results.median(old[key][1]), results.median(new[key][1])
        low, high = min(old[key][1]), max(old[key][1])
        inside = "inside" if low <= after <= high else "outside"
        ratio = f"{after / before:8.3f}" if before else "       -"
        print(f"{' '.join(key):40} {before:11.5g} {after:11.5g} {ratio}  {low:.5g} .. {high:.5g} ({inside})")
    for key in sorted(old.keys() ^ new.keys()):
        print(f"{' '.join(key):40} only in {'the old' if key in old else 'the new'} report")
    return OK


def check(args):
    return OK if targets.check(results.load(args.file), args.exceptions, print) else WRONG


def parser():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p = argparse.ArgumentParser(prog="spotbench")
    p.add_argument("program", help=argparse.SUPPRESS)
    verbs = p.add_subparsers(dest="verb", required=True)
    v = verbs.add_parser("all", help="every scenario and peer")
    v.add_argument("--quick", action="store_true", help="less of each, a few minutes")
    v.add_argument("--out", default="spotbench.json")
    v.set_defaults(do=run_all)
    v = verbs.add_parser("report", help="one page from a report file")
    v.add_argument("file")
    v.add_argument("--html")
    v.set_defaults(do=write_page)
    v = verbs.add_parser("compare", help="two report files")
    v.add_argument("old")
    v.add_argument("new")
    v.set_defaults(do=compare)
    v = verbs.add_parser("check", help="the targets; 1 when one is missed without an exception")
    v.add_argument("file")
    v.add_argument("--exceptions", default=os.path.join(top, "docs/decisions/performance-exceptions.md"))
    v.set_defaults(do=check)
    return p


def main():
    args = parser().parse_args()
    try:
        return args.do(args)
    except (OSError, ValueError, RuntimeError) as why:
        print(f"spotbench: {why}", file=sys.stderr)
        return ENVIRONMENT


if __name__ == "__main__":
    sys.exit(main())
