# SPDX-License-Identifier: BSD-3-Clause
"""Runs every libFuzzer target for a number of seconds; what it finds is kept under out/fuzz."""
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from builds import Tree, say, tail
from execute import SANITIZER_ENV, run_bounded
from results import Result


def targets(tree):
    found = [t for t in tree.introspect("targets")
             if t["type"] == "executable" and "/tests/fuzz/" in t["defined_in"]]
    return {t["name"]: t["filename"][0] for t in found}


def run(session, top, seconds):
    if shutil.which("clang") is None:
        session.tally.add([Result("fuzz", "fuzz", "x__fuzz_targets", "skipped", "no clang here")])
        say("  skipped: no clang here")
        return
    session.title("build fuzz")
    tree = Tree("fuzz", top)
    tree.configure()
    found = targets(tree)
    tree.build(os.path.relpath(path, tree.path) for path in found.values())
    session.title(f"fuzz: {len(found)} targets, {seconds} s each")
    # One more than cores: what the others wait for, disk above all, is not lost.
    with ThreadPoolExecutor(max_workers=1 + (os.cpu_count() or 1)) as pool:
        for results in pool.map(lambda item: one(tree, *item, seconds), sorted(found.items())):
            session.tally.add(results)


def one(tree, name, program, seconds):
    work = os.path.join(tree.top, "out", "fuzz", name)
    corpus = os.path.join(work, "corpus")
    os.makedirs(corpus, exist_ok=True)
    seeds = os.path.join(tree.top, "tests", "fuzz", "corpus", name)
    command = [program, f"-max_total_time={seconds}", "-print_final_stats=1", "-rss_limit_mb=2048",
               f"-artifact_prefix={work}/", corpus]
    if os.path.isdir(seeds):
        command.append(seeds)
    words = os.path.join(tree.top, "tests", "fuzz", name + ".dict")
    if os.path.exists(words):
        command.append("-dict=" + words)
    started = time.monotonic()
    code, output = run_bounded(command, dict(os.environ, **SANITIZER_ENV), tree.path, seconds * 2 + 60)
    runs = [line.split()[-1] for line in output.splitlines() if "number_of_executed_units" in line]
    say(f"  fuzz   {name:44} {'clean' if code == 0 else 'FAILED'}, {runs[0] if runs else '?'} runs"
        f"  {time.monotonic() - started:.1f} s")
    if code:
        say("        | " + tail(output, 40).replace("\n", "\n        | "))
        return [Result("fuzz", name, f"x__{name}", "failed", f"inputs kept in {work}")]
    return [Result("fuzz", name, f"x__{name}", "passed")]
