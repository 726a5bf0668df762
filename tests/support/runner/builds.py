# SPDX-License-Identifier: BSD-3-Clause
"""Build trees: one directory per way of building, each configured once and reused."""
import json
import os
import shutil
import subprocess
import sys

JOBS = str(max(1, min(os.cpu_count() or 1, int(os.environ.get("TEST_JOBS", "64")))))

# name -> (meson options, environment of the configure step)
TREES = {
    "plain": ("build", ["-Dbuildtype=release", "-Dbench=true"], {}),
    "asan": ("build-asan", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
                            "-Db_lundef=false", "-Dwerror=false", "-Dbench=false"], {}),
    "tsan": ("build-tsan", ["-Dbuildtype=debugoptimized", "-Db_sanitize=thread",
                            "-Db_lundef=false", "-Dwerror=false", "-Dbench=false",
                            "-Dc_args=-DRTE_USE_C11_MEM_MODEL"], {}),
    "fuzz": ("build-fuzz", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
                            "-Db_lundef=false", "-Dwerror=false", "-Dbench=false",
                            "-Dfuzzers=true"], {"CC": "clang"}),
}


class BuildError(Exception):
    pass


def run(command, cwd=None, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.returncode, done.stdout


class Tree:
    def __init__(self, kind, top, directory=None):
        name, options, extra = TREES[kind]
        self.kind, self.top, self.options = kind, top, options
        self.path = directory or os.path.join(top, name)
        self.env = dict(os.environ, **extra)

    def configure(self):
        if os.path.exists(os.path.join(self.path, "build.ninja")):
            # Brings what introspect tells up to date with the meson files.
            code, text = run(["ninja", "-C", self.path, "build.ninja"], env=self.env)
            if code:
                raise BuildError(f"meson {self.kind}:\n{tail(text)}")
            return
        shutil.rmtree(self.path, ignore_errors=True)
        code, text = run(["meson", "setup", self.path, self.top] + self.options, env=self.env)
        if code:
            raise BuildError(f"meson setup {self.kind}:\n{tail(text)}")

    def build(self, targets=()):
        self.configure()
        code, text = run(["ninja", "-C", self.path, "-j", JOBS] + list(targets), env=self.env)
        if code:
            raise BuildError(f"ninja {self.kind}:\n{tail(text)}")

    def build_what_compiles(self):
        """Builds on past a broken target and returns what failed, so that the rest still runs."""
        self.configure()
        code, text = run(["ninja", "-C", self.path, "-j", JOBS, "-k", "0"], env=self.env)
        return "" if code == 0 else tail(text)

    def introspect(self, what):
        code, text = run(["meson", "introspect", "--" + what, self.path])
        if code:
            raise BuildError(f"meson introspect {what}:\n{tail(text)}")
        return json.loads(text[text.index("["):])

    def tests(self):
        return self.introspect("tests")


def tail(text, lines=60):
    return "\n".join(text.splitlines()[-lines:])


def say(text):
    sys.stdout.write(text + "\n")  # in one piece: several threads speak
    sys.stdout.flush()
