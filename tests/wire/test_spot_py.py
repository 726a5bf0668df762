#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tests/clients/spot.py against a small node in this process, over loopback.

The node is a second reading of docs/WIRE.md: it decodes with the slow decoder of wiretable.py,
hands out cookies, takes each counter once, loses frames on purpose and answers with what it got.
"""
import random
import re
import socket
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
import lines  # noqa: E402
import vectorset  # noqa: E402
import wiretable  # noqa: E402

TABLE = wiretable.load()
TWIN = wiretable.Decoder(TABLE)
FAMILY = {f["number"]: f["name"] for f in TABLE["family"]}
NUMBER = {f["name"]: f["number"] for f in TABLE["family"]}
FLAG = {f["name"]: 1 << f["bit"] for f in TABLE["flag"]}
CLIENT = wiretable.ROOT / "tests/clients/spot.py"
COOKIE, SESSION, UNIT = 0xC00C1E, 0x5E55, 1100
DEADLINE_S = 60


class Node(threading.Thread):
    """answer: (header, payload) -> (header fields, body) of the reply."""

    def __init__(self, answer, loss=0, forget_cookie_at=0):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.answer, self.rng, self.loss = answer, random.Random(5), loss
        self.forget_cookie_at, self.cookie = forget_cookie_at, COOKIE
        self.counter, self.frames, self.challenges, self.messages = 0, 0, 0, []
        self.known, self.seen, self.faults = set(), set(), []
        self.have, self.whole, self.replies = {}, {}, {}

    def run(self):
        while True:
            data, self.peer = self.socket.recvfrom(65536)
            if data == b"stop":
                return
            try:
                self.take(data)
            except Exception as fault:
                self.faults.append(repr(fault))

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"stop", self.socket.getsockname())
        self.join(DEADLINE_S)
        self.socket.close()

    def put(self, family, body=b"", **fields):
        self.counter += 1
        header = {"version": 1, "family": NUMBER[family], "session": SESSION,
                  "counter": self.counter, "segment_bytes": len(body), "total_bytes": len(body), **fields}
        frame = wiretable.pack(TABLE["field"], header) + body
        assert TWIN.decode(frame)[0] == "taken", TWIN.decode(frame)[0]
        if self.rng.random() >= self.loss:
            self.socket.sendto(frame, self.peer)

    def take(self, data):
        self.frames += 1
        if self.rng.random() < self.loss:
            return
        verdict, h, name, segment = TWIN.decode(data)
        assert verdict == "taken", "the client sent a frame that is refused: " + verdict
        assert TWIN.id_verdict(h, name) == "taken"
        family = FAMILY[h["family"]]
        if self.frames == self.forget_cookie_at:  # time went by: session and cookie are gone
            self.known.clear()
            self.cookie += 1
        if family == "HELLO" or (h["session"] not in self.known and h["cookie"] != self.cookie):
            self.challenges += 1
            self.put("CHALLENGE", cookie=self.cookie, operation_scope=h["session"],
                     operation_id=h["operation_id"])
            return
        self.known.add(h["session"])
        operation = (h["operation_scope"], h["operation_id"])
        if (h["session"], h["counter"]) in self.seen:
            if operation in self.replies:
                self.send_reply(operation)
            return
        self.seen.add((h["session"], h["counter"]))
        if family == "ACK":
            self.acked(operation, segment)
        elif h["flags"] & FLAG["SEGMENTED"]:
            self.segment(operation, family, h, segment)
        else:
            self.message(operation, family, h, segment)

    def about(self, operation, h):
        return {"operation_scope": operation[0], "operation_id": operation[1],
                "spot_key_lo": h["spot_key_lo"], "spot_key_hi": h["spot_key_hi"]}

    def segment(self, operation, family, h, segment):
        count = -(-h["total_bytes"] // h["segment_unit"])
        if operation not in self.whole:
            have = self.have.setdefault(operation, {})
            have[h["segment_offset"] // h["segment_unit"]] = segment
            if len(have) == count:
                self.whole[operation] = b"".join(have[i] for i in range(count))
                self.message(operation, family, h, self.whole[operation])
        have = self.have[operation]
        base = next(i for i in range(count + 1) if i not in have)
        bits = sum(1 << i for i in range(256) if base + 1 + i in have)
        body = wiretable.pack(TABLE["ack_field"], {
            "base": base, "window": 32, "done": int(operation in self.whole),
            "bits": bits.to_bytes(32, "little")})
        self.put("ACK", body, content_type=4, **self.about(operation, h))

    def message(self, operation, family, h, payload):
        self.messages.append((family, h, payload))
        if family in ("REQUEST", "INTENT_REQUEST"):
            fields, body = self.answer(h, payload)
            self.replies[operation] = [{**fields, **self.about(operation, h)}, body, set()]
            self.send_reply(operation)

    def send_reply(self, operation):
        fields, body, here = self.replies[operation]
        if len(body) <= UNIT:
            self.put("REPLY", body, **fields)
            return
        count = -(-len(body) // UNIT)
        due = [i for i in range(count) if i not in here][:32]
        self.rng.shuffle(due)
        for i in due:
            flags = FLAG["SEGMENTED"] | (FLAG["ACK_NOW"] if i == due[-1] else 0)
            self.put("REPLY", body[i * UNIT:(i + 1) * UNIT], flags=flags, **fields | {
                "total_bytes": len(body), "segment_offset": i * UNIT, "segment_unit": UNIT})

    def acked(self, operation, body):
        report = wiretable.unpack(TABLE["ack_field"], body)
        here = self.replies[operation][2]
        bits = int.from_bytes(report["bits"], "little")
        here |= set(range(report["base"]))
        here |= {report["base"] + 1 + i for i in range(256) if bits >> i & 1}
        if not report["done"] and self.rng.random() < 0.2:
            self.send_reply(operation)


def ok(h, payload):
    return {"kind": 1, "accepted": 1}, b"got %d: " % len(payload) + payload


def spot(node, *arguments, payload=b"", timeout_ms=20000):
    node.start()
    command = [sys.executable, CLIENT, "--node", "127.0.0.1:%d" % node.socket.getsockname()[1],
               "--timeout", str(timeout_ms), *arguments]
    try:
        done = subprocess.run(command, input=payload, capture_output=True, timeout=DEADLINE_S)
    finally:
        node.stop()
    assert node.faults == [], node.faults
    assert done.stderr == b"", done.stderr
    return done.returncode, done.stdout.decode()


def a_request_is_answered():
    node = Node(ok)
    code, text = spot(node, "request", "Straße/東京", '{"a":1}', "--type", "7")
    assert (code, text) == (0, 'OK None accepted: yes\ngot 7: {"a":1}\n'), (code, text)
    [(family, h, payload)] = node.messages
    assert (family, h["message_type"], h["content_type"], h["spot_type"]) == ("REQUEST", 7, 1, 0)
    assert payload == b'{"a":1}' and node.challenges == 1


def intent_names_the_type():
    node = Node(ok)
    assert spot(node, "request", "v", "x", "--intent", "tracker")[0] == 0
    [(family, h, _)] = node.messages
    assert family == "INTENT_REQUEST" and h["spot_type"] == wiretable.type_key(b"tracker")


def a_send_leaves():
    node = Node(ok)
    assert spot(node, "send", "v", "x", "--intent", "tracker") == (0, "sent\n")
    assert [(f, p) for f, _, p in node.messages] == [("INTENT_SEND", b"x")]


def a_lossy_link_delays_only():
    for _ in range(3):
        node = Node(ok, loss=0.4)
        code, text = spot(node, "request", "v", "x")
        assert code == 0 and text.endswith("got 1: x\n"), text
        assert len(node.messages) == 1  # repeated, taken once


def large_payloads_go_both_ways():
    payload = bytes(random.Random(9).choices(b"abcdefgh", k=100000))
    for loss in (0, 0.1):
        node = Node(ok, loss=loss)
        code, text = spot(node, "request", "v", "-", payload=payload)
        assert code == 0 and text == "OK None accepted: yes\ngot 100000: %s\n" % payload.decode()
        assert len(node.messages) == 1 and node.messages[0][2] == payload


def a_large_send_waits_until_it_is_there():
    node = Node(ok, loss=0.1)
    assert spot(node, "send", "v", "-", payload=b"z" * 50000) == (0, "sent\n")
    assert [(f, len(p)) for f, _, p in node.messages] == [("SEND", 50000)]


def a_late_challenge_is_one_more_round():
    node = Node(ok, forget_cookie_at=2)
    assert spot(node, "request", "v", "x")[0] == 0
    assert node.challenges == 2 and len(node.messages) == 1
    node = Node(ok, forget_cookie_at=20)
    assert spot(node, "request", "v", "-", payload=b"y" * 100000)[0] == 0
    assert node.challenges >= 2 and len(node.messages) == 1


def refusals_are_spelt_out():
    body = vectorset.refusal_body(TABLE, current=7)
    node = Node(lambda h, p: ({"kind": 9, "reason": 3, "accepted": 2, "content_type": 3}, body))
    code, text = spot(node, "request", "v", "x")
    assert code == 1 and re.fullmatch(
        r"CapacityExceeded ApplicationLaneCount accepted: no\nlimit: 1024\ncurrent: 7\n"
        r"Spot: [0-9a-f]{32}\nnode: [0-9a-f]{16}\n", text), text


def every_kind_but_ok_exits_1():
    for _, number, printed in [TABLE["kinds"][i] for i in (0, 1, 8, -1)]:
        node = Node(lambda h, p: ({"kind": number, "accepted": 1}, b""))
        code, text = spot(node, "request", "v", "x")
        assert (code, text.split()[0]) == (0 if number == 1 else 1, printed)


def silence_ends_unknown():
    node = Node(ok, loss=1)
    code, text = spot(node, "request", "v", "x", timeout_ms=150)
    assert (code, text) == (1, "DeadlineExceeded None accepted: unknown\n"), text


def it_is_short_and_needs_nothing():
    text = CLIENT.read_text()
    assert len(text.splitlines()) <= 250
    for module in re.findall(r"^(?:import|from) (\w+)", text, re.M):
        assert module in sys.stdlib_module_names, module


report = lines.Lines()
for rules, test in (("M2_M4", a_request_is_answered), ("x", intent_names_the_type),
                    ("x", a_send_leaves), ("M9", a_lossy_link_delays_only),
                    ("M8", large_payloads_go_both_ways), ("M8", a_large_send_waits_until_it_is_there),
                    ("M9", a_late_challenge_is_one_more_round), ("M5", refusals_are_spelt_out),
                    ("M4", every_kind_but_ok_exits_1), ("M9", silence_ends_unknown),
                    ("x", it_is_short_and_needs_nothing)):
    report.run("%s__spot_py_%s" % (rules, test.__name__), test)
report.end()
