#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The program spot, the installed library and the tour, against a node in miniature (fake_node.py).

  test_programs.py SPOT LIBSPOTLANE SOURCE_ROOT [SANITIZERS]
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def check(fact, text):
    if not fact:
        raise AssertionError(text)


def equal(observed, expected, what):
    check(observed == expected, f"{what}: expected {expected!r}, observed {observed!r}")


class Bench:
    def __init__(self, spot, library, root, folder):
        self.spot_program, self.library, self.root, self.folder = spot, library, root, folder
        self.sanitizers = sys.argv[4] if len(sys.argv) > 4 else "none"
        self.nodes = 0
        self.node = ""
        self.control = ""

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content)
        return self.path(name)

    @contextlib.contextmanager
    def running(self, *options):
        self.nodes += 1
        self.control = self.path(f"control{self.nodes}")
        command = [sys.executable, "-B", os.path.join(HERE, "fake_node.py"), self.control] + list(options)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            try:
                self.node = "127.0.0.1:" + child.stdout.readline().decode().strip()
                yield
            finally:
                child.kill()

    def spot(self, *words, data=None):
        command = [self.spot_program] + [str(w) for w in words]
        env = dict(os.environ, SPOTLANE_NODE=self.node)
        return subprocess.run(command, input=data, stdin=None if data is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False, timeout=120)

    def document(self, *words, data=None):
        done = self.spot(*words, "--json", data=data)
        return json.loads(done.stdout), done.returncode


# ---- calls ----

def x__answers_payloads_and_text(bench):
    with bench.running():
        done = bench.spot("request", "echo/1", "hello", "--intent", "echo")
        equal((done.returncode, done.stdout), (0, b"hello\n"), "text")
        given = bytes(range(256))
        done = bench.spot("--intent", "echo", "request", "echo/1", "@" + bench.write("bytes", given))
        equal((done.returncode, done.stdout), (0, given), "bytes from a file come back as they are")
        done = bench.spot("request", "echo/1", "-", data=b"from input")
        equal((done.returncode, done.stdout), (0, b"from input\n"), "standard input")
        document, code = bench.document("request", "echo/1", '{"a":[1,2]}', "--explain")
        equal((code, document["kind"], document["payload"]), (0, "OK", {"a": [1, 2]}), "JSON")
        equal(document["explanation"][0]["stage"], "ingress", "explanation")
        document, _ = bench.document("request", "echo/1", "@" + bench.path("bytes"))
        check(document["payload_base64"].startswith("AAECAw"), "bytes travel as base64 in JSON")
        done = bench.spot("send", "echo/1", "no answer")
        equal(done.returncode, 0, "send")
        check(b"one way" in done.stdout, "send says that nobody tells")


def M4_M5__exit_codes_and_refusals(bench):
    with bench.running():
        equal(bench.spot("request", "nobody", "x").returncode, 7, "NotFound")
        check(b"NotFound: no such Spot: nobody (accepted: no)" in bench.spot("request", "nobody").stderr,
              "the text names kind, id and accepted")
        equal(bench.spot("create", "r", "--type-name", "tracker").returncode, 1, "refused")
        equal(bench.spot("create", "r", "--type-name", "room").returncode, 0, "create")
        equal(bench.spot("create", "r", "--type-name", "room").returncode, 1, "AlreadyExists")
        equal(bench.spot("create", "r", "--type-name", "room", "--existing-ok").returncode, 0, "get or create")
        equal(bench.spot("lookup", "r").returncode, 0, "lookup")
        equal(bench.spot("close", "r").returncode, 0, "close")
        equal(bench.spot("lookup", "r").returncode, 7, "lookup of what was closed")
        done = bench.spot("request", "slow/1", "10000", "--intent", "slow", "--budget", "300")
        equal(done.returncode, 4, "time limit")
        check(b"accepted: unknown" in done.stderr, "a time limit leaves the outcome unknown")
        line = json.dumps({"id": "slow/1", "type": 1, "payload": "0"}).encode() + b"\n"
        bench.spot("replay", bench.write("fill", line * 7), "--rate", "max", "--budget", "300")
        done = bench.spot("request", "slow/1", "0")
        equal(done.returncode, 9, "capacity")
        check(b"CapacityExceeded/ApplicationLaneCount: lane of Spot slow/1 is full: 8 of 8 messages "
              b"(accepted: no)" in done.stderr, f"the refusal names lane, axis, limit, current: {done.stderr}")


def x__nobody_there(bench):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = bench.spot("request", "a", "--node", address, "--budget", "200")
        equal(done.returncode, 3, "silence")
        check(b"no answer from " + address.encode() in done.stderr, "says what it tried")
    done = bench.spot("request", "a", "--node", address, "--budget", "200")
    equal(done.returncode, 3, "nothing listens")
    check(b"nothing listens" in done.stderr and b"scripts/run" in done.stderr, "says what to do")


def x__wrong_usage(bench):
    cases = [[], ["fly"], ["request"], ["request", "a", "b", "c"], ["request", "a", "--rate", "5"],
             ["request", "a", "--budget", "0"], ["request", "a", "--budget", "5s"], ["request", "a", "--type"],
             ["request", "a", "--type", "70000"], ["request", "a", "--content", "xml"], ["create", "a"],
             ["replay", "x"], ["replay", "x", "--rate", "0"], ["replay", "x", "--rate", "fast"],
             ["gen", "ships"], ["gen", "vehicles", "--count", "0"], ["request", "a", "@/does/not/exist"],
             ["request", "a", "--node", "here"], ["replay", "/does/not/exist", "--rate", "max"],
             ["request", "a", "--nonsense"]]
    for words in cases:
        done = bench.spot(*words)
        equal(done.returncode, 2, f"spot {' '.join(words)}")
        check(done.stderr.startswith(b"spot: ") and done.stderr.count(b"\n") <= 3, "one plain sentence")
    for words in (["help"], ["--help"], ["help", "replay"], ["request", "--help"], ["version"], ["-V"]):
        done = bench.spot(*words)
        equal(done.returncode, 0, f"spot {' '.join(words)}")
        check(done.stdout and not done.stderr, "help goes to standard output")


def x__illegal_ids_and_sizes(bench):
    with bench.running():
        equal(bench.spot("request", "x" * 256, "y").returncode, 2, "an id of 256 bytes")
        large = bench.write("large", bytes((16 << 20) + 1))
        equal(bench.spot("request", "a", "@" + large).returncode, 2, "more than 16 MiB")
        equal(bench.spot("create", "a", "--type-name", "room", "x" * 1025).returncode, 2, "create argument")


# ---- replay ----

def M2__replay_accounts_for_every_message(bench):
    with bench.running():
        document, code = bench.document("replay", os.path.join(bench.root, "examples", "vehicles.jsonl"),
                                        "--rate", "max", "--intent", "tracker", "--window", "100")
        equal(code, 0, "exit status")
        lines = sum(1 for _ in open(os.path.join(bench.root, "examples", "vehicles.jsonl"), "rb"))
        equal((document["sent"], document["ok"], document["unaccounted"]), (lines, lines, 0), "all answered")
        equal(document["client"]["replies"], lines, "replies")
        equal(document["latency_ns"]["count"], lines, "latencies")
        check(document["latency_ns"]["p50"] <= document["latency_ns"]["p99"] <= document["latency_ns"]["p999"]
              <= document["latency_ns"]["max"], "percentiles in order")
        # Without intent nothing is built, and every refusal is counted.
        with open(bench.path("other"), "w", encoding="utf-8") as out:
            for i in range(50):
                out.write(json.dumps({"id": f"n/{i % 5}", "type": 1, "payload": {}}) + "\n")
        document, code = bench.document("replay", bench.path("other"), "--rate", "500", "--repeat", "2")
        equal((code, document["sent"], document["refused"], document["spots"]), (7, 100, 100, 5), "refused")
        equal(document["results"], [{"kind": "NotFound", "reason": None, "messages": 100, "refusal": None,
                                     "example": document["results"][0]["example"]}], "by kind and reason")
        check(document["seconds"] >= 0.19, "paced by the clock")


def M2_M9__replay_counts_what_nobody_answered(bench):
    with bench.running():
        line = json.dumps({"id": "slow/2", "type": 1, "payload": "60000"}).encode() + b"\n"
        document, code = bench.document("replay", bench.write("slow", line * 12), "--rate", "max", "--intent",
                                        "slow", "--budget", "400")
        equal((code, document["deadline"], document["refused"], document["unaccounted"]), (4, 8, 4, 0),
              "time limits and refusals")
        equal(document["sent"], 12, "none is sent twice")


def P4__replay_halves_its_window_under_pressure(bench):
    with bench.running("--pressure"):
        line = json.dumps({"id": "t/1", "type": "position", "payload": {}}).encode() + b"\n"
        document, code = bench.document("replay", bench.write("p", line * 2000), "--rate", "max", "--intent",
                                        "tracker", "--window", "2")
        equal((code, document["ok"]), (0, 2000), "all answered")


def x__replay_refuses_bad_recordings(bench):
    good = b'{"id":"a","type":1,"payload":{}}\n'
    cases = [(b"", ":0: "), (good + b"not json\n", ":2: "), (b"[]\n", ":1: "), (b'{"type":1}\n', ":1: "),
             (b'{"id":"","type":1}\n', ":1: "), (good * 2 + b'{"id":"a"}\n', ":3: "),
             (b'{"id":"a","type":"unheard-of"}\n', "--type-map unheard-of=N"), (b'{"id":"a","type":70000}\n', ":1: ")]
    for content, place in cases:
        done = bench.spot("replay", bench.write("bad", content), "--rate", "max")
        equal(done.returncode, 2, f"recording {content!r}")
        check(place in done.stderr.decode(), f"{content!r}: {done.stderr} does not name {place}")
    with bench.running():
        path = bench.write("named", b'{"id":"a","type":"ping","payload":{}}\n\n')
        done = bench.spot("replay", path, "--rate", "max", "--intent", "tracker", "--type-map", "pong=7,ping=1")
        equal(done.returncode, 0, "a named type")


def M8__largest_payload_with_losses_both_ways(bench):
    with bench.running("--lose", "2"):
        given = os.urandom(16 << 20)
        done = bench.spot("request", "echo/1", "@" + bench.write("given", given), "--intent", "echo", "--content",
                          "bytes", "--output", bench.path("got"), "--budget", "100000", "--json")
        equal(done.returncode, 0, f"exit status ({done.stdout} {done.stderr})")
        with open(bench.path("got"), "rb") as got:
            check(got.read() == given, "byte for byte the same")
        client = json.loads(done.stdout)["client"]
        check(client["repeats"] > 0 and client["segments_sent"] > client["repeats"], "lost segments went again")


# ---- recording, library, tour ----

def x__recording_is_reproducible(bench):
    with open(os.path.join(bench.root, "examples", "vehicles.jsonl"), "rb") as committed:
        recording = committed.read()
    words = ["gen", "vehicles", "--count", "2000", "--seconds", "3600"]
    check(bench.spot(*words, "--seed", "1").stdout == recording, "examples/vehicles.jsonl is what gen makes")
    check(bench.spot(*words, "--seed", "2").stdout != recording, "another seed, another recording")
    check(len(recording) <= 3 << 20, "at most 3 MiB")
    reports = [json.loads(line) for line in recording.splitlines()]
    check(len({r["id"] for r in reports}) == 2000, "every vehicle reports")
    check([r["payload"]["time"] for r in reports] == sorted(r["payload"]["time"] for r in reports), "in time")
    check(all(abs(r["payload"]["lat"] - 52.52) < 0.2 and abs(r["payload"]["lon"] - 13.405) < 0.4
              for r in reports), "in town")


def x__library_exports_only_its_own_names(bench):
    done = subprocess.run(["nm", "-D", "--defined-only", bench.library], stdout=subprocess.PIPE, check=True)
    names = {line.split()[2].decode().split("@")[0] for line in done.stdout.splitlines()}
    names.discard("SPOTLANE_1")
    check("spotlane_client_open" in names, "the library exports its calls")
    equal([n for n in sorted(names) if not n.startswith("spotlane_")], [], "other names")


def x__library_serves_a_plain_c_program(bench):
    source = bench.write("plain.c", b"""
#include <spotlane/client.h>
#include <spotlane/module.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	spotlane_client *client = 0;
	char error[200];
	struct spotlane_client_call call = {sizeof call, SPOTLANE_CALL_REQUEST};
	struct spotlane_reply reply;
	if (argc < 2 || spotlane_client_open(argv[1], 0, &client, error, sizeof error) != 0)
		return 1;
	call.id = "echo/1";
	call.id_bytes = 6;
	call.type = "echo";
	call.message_type = 1;
	call.payload = "hi";
	call.payload_bytes = 2;
	if (spotlane_client_call_wait(client, &call, &reply) != 0)
		return 2;
	printf("%s %.2s", spotlane_kind_name(reply.result.kind), (const char *)reply.result.payload);
	spotlane_reply_free(&reply);
	spotlane_client_close(client);
	return 0;
}
""")
    compiler = shutil.which("cc") or shutil.which("gcc")
    sanitize = [] if bench.sanitizers == "none" else ["-fsanitize=" + bench.sanitizers]
    subprocess.run([compiler] + sanitize + ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
                    "-Wno-missing-field-initializers", "-I", os.path.join(bench.root, "lib", "client"), "-I",
                    os.path.join(bench.root, "dataplane", "port"), "-o", bench.path("plain"), source,
                    bench.library, "-Wl,-rpath," + os.path.dirname(os.path.abspath(bench.library))], check=True)
    with bench.running():
        done = subprocess.run([bench.path("plain"), bench.node], stdout=subprocess.PIPE, check=False)
    equal((done.returncode, done.stdout), (0, b"OK hi"), "answer")


def tour(bench, *words):
    done = subprocess.run([sys.executable, "-B", os.path.join(bench.root, "scripts", "tour"), "--node", bench.node,
                           "--socket", bench.control, "--spot", bench.spot_program, "--spotctl",
                           os.path.join(HERE, "fake_spotctl.py"), "--largest", "2"] + list(words),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=200)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def x__tour_sees_each_step_sabotaged(bench):
    with bench.running():
        code, text, error = tour(bench, "--json")
        document = json.loads(text)
        check(code == 0 and document["ok"], f"the tour in JSON: {text} {error}")
        for step in [s["step"] for s in document["steps"]][:-1]:
            code, text, error = tour(bench, "--json", "--sabotage", step)
            failed = [s["step"] for s in json.loads(text)["steps"] if not s["ok"]]
            equal((code, failed), (1, [step]), f"sabotaged step {step}")
        code, text, error = tour(bench, "--sabotage", "accounts")
        check(code == 1 and "NOT as expected: accounts" in text, "the sabotage shows in the text too")


TESTS = [x__answers_payloads_and_text, M4_M5__exit_codes_and_refusals, x__nobody_there, x__wrong_usage,
         x__illegal_ids_and_sizes, M2__replay_accounts_for_every_message, M2_M9__replay_counts_what_nobody_answered,
         P4__replay_halves_its_window_under_pressure, x__replay_refuses_bad_recordings,
         M8__largest_payload_with_losses_both_ways, x__recording_is_reproducible,
         x__library_exports_only_its_own_names, x__library_serves_a_plain_c_program,
         x__tour_sees_each_step_sabotaged]


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="spotlane-client-") as folder:
        bench = Bench(*[os.path.abspath(path) for path in sys.argv[1:4]], folder)
        for test in TESTS:
            begun = time.monotonic()
            try:
                test(bench)
                print(f"ok {test.__name__}", flush=True)
                print(f"# {time.monotonic() - begun:.1f} s", flush=True)
            except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"not ok {test.__name__} {error}", flush=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
