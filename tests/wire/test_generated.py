#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is generated from the table is what is committed, and published vectors never change."""
import importlib.machinery
import importlib.util
import subprocess
import sys

sys.dont_write_bytecode = True
import lines  # noqa: E402
import vectorset  # noqa: E402
import wiretable  # noqa: E402

GEN = wiretable.ROOT / "scripts/gen-wire"
DIGESTS = (wiretable.ROOT / "tests/vectors/DIGESTS").read_text()


def load_gen():
    loader = importlib.machinery.SourceFileLoader("gen_wire", str(GEN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gen_wire", loader))
    loader.exec_module(module)
    return module


gen = load_gen()
VERSION = wiretable.load()["version"]


def committed_files_are_current():
    done = subprocess.run([sys.executable, GEN, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def fresh():
    return vectorset.build(wiretable.load())


def complaints(vectors, version=VERSION):
    return gen.digests(version, vectors, DIGESTS)[1]


def every_vector_has_a_digest():
    text, found = gen.digests(VERSION, fresh(), DIGESTS)
    assert found == [] and text == DIGESTS


def a_changed_vector_is_refused():
    for group in fresh():
        vectors = fresh()
        vectors[group][0]["hex" if "hex" in vectors[group][0] else "key"] = "00"
        assert len(complaints(vectors)) == 1, group
        assert complaints(vectors, VERSION + 1) == []  # a new version may change it


def a_changed_verdict_is_refused():
    vectors = fresh()
    vectors["frames"][-1]["verdict"] = "taken"
    assert len(complaints(vectors)) == 1


def a_vanished_vector_is_refused():
    vectors = fresh()
    vectors["frames"].pop()
    assert len(complaints(vectors)) == 1


def a_new_vector_is_welcome():
    vectors = fresh()
    vectors["frames"].append({"name": "new", "hex": "00"})
    text, found = gen.digests(VERSION, vectors, DIGESTS)
    assert found == [] and text.startswith(DIGESTS) and text != DIGESTS


report = lines.Lines()
report.run("x__generated_files_are_current", committed_files_are_current)
report.run("x__every_vector_has_a_digest", every_vector_has_a_digest)
report.run("x__a_changed_vector_needs_a_new_version", a_changed_vector_is_refused)
report.run("x__a_changed_verdict_needs_a_new_version", a_changed_verdict_is_refused)
report.run("x__a_vanished_vector_needs_a_new_version", a_vanished_vector_is_refused)
report.run("x__a_new_vector_needs_none", a_new_vector_is_welcome)
report.end()
