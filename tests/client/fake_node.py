#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A node in miniature, for tests of the client's programs: it speaks docs/WIRE.md on a loopback UDP
port and a few operations of the control socket, knows the types tracker, slow, echo and room, and
counts as a node does. It keeps no promise that these tests do not need.

  fake_node.py CONTROL_SOCKET [--lose PERCENT] [--pressure]      prints its UDP port
"""
import hashlib
import heapq
import json
import os
import random
import selectors
import socket
import struct
import sys
import time

HEADER = struct.Struct("<8B3Q2Q2Q2QQI2HIIIHHBB6s16s")
FIELDS = ("version suite family flags kind reason accepted id_bytes session counter cookie key_lo key_hi scope "
          "operation owner_node owner_lease generation spot_type message_type content budget total offset size "
          "unit ingress home reserved tag").split()
SEND, REQUEST, INTENT_SEND, INTENT_REQUEST, CONTROL, _, REPLY, ACK, HELLO, CHALLENGE = range(1, 11)
EXPLAIN, SEGMENTED, ACK_NOW = 2, 4, 8
KINDS = {1: "OK", 2: "NotFound", 3: "AlreadyExists", 6: "Rejected", 8: "Unavailable", 9: "CapacityExceeded",
         23: "Unsupported"}
UNIT, WINDOW, LANE = 1300, 64, 8
COOKIE = 0x1234567890ABCDEF


def spot_key(name):
    return hashlib.sha256(b"\x01" + name).digest()[:16]


def type_key(name):
    return struct.unpack("<I", hashlib.sha256(b"\x03" + name.encode()).digest()[:4])[0]


TYPES = {type_key(name): name for name in ("tracker", "slow", "echo", "room")}


class Spot:
    def __init__(self, name, kind, type_name):
        self.name, self.kind, self.type = name, kind, type_name
        self.turns = self.items = self.said = 0
        self.free_at = 0.0  # when the slow handler has done all it accepted
        self.last = None


class FakeNode:
    def __init__(self, path, lose, pressure):
        self.lose, self.flags = lose, 1 if pressure else 0
        self.random = random.Random(4)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.unix.bind(path)
        self.unix.listen(8)
        self.counter = self.accepted = 0
        self.known = set()
        self.spots = {}
        self.counts = {}
        self.half = {}  # messages coming in, by (scope, operation)
        self.outgoing = {}  # replies going out in segments
        self.later = []  # (time, number, call)

    def count(self, name, by=1):
        self.counts[name] = self.counts.get(name, 0) + by

    # ---- frames ----

    def put(self, to, body=b"", **fields):
        self.counter += 1
        header = dict.fromkeys(FIELDS, 0)
        header.update(version=1, session=0x77, counter=self.counter, reserved=bytes(6), tag=bytes(16),
                      size=len(body), total=len(body))
        header.update(fields)
        self.udp.sendto(HEADER.pack(*(header[name] for name in FIELDS)) + body, to)

    def take(self, data, source):
        h = dict(zip(FIELDS, HEADER.unpack_from(data)))
        name = data[136:136 + h["id_bytes"]]
        body = data[136 + h["id_bytes"]:]
        assert len(body) == h["size"], "exact length"
        if h["family"] == HELLO or (h["session"] not in self.known and h["cookie"] != COOKIE):
            self.put(source, family=CHALLENGE, cookie=COOKIE, scope=h["session"], operation=h["operation"])
            return
        self.known.add(h["session"])
        if h["flags"] & SEGMENTED and self.random.random() * 100 < self.lose:
            return
        if h["family"] == ACK:
            self.take_ack(h, body)
        elif h["flags"] & SEGMENTED:
            self.take_segment(h, name, body, source)
        else:
            self.message(h, name, body, source)

    def take_segment(self, h, name, body, source):
        key = (h["scope"], h["operation"])
        half = self.half.get(key)
        if half is None:
            half = self.half[key] = {"bytes": bytearray(h["total"]), "have": set(), "base": 0, "name": b"",
                                     "count": -(-h["total"] // h["unit"]), "done": False, "news": 0}
        index = h["offset"] // h["unit"]
        due = bool(h["flags"] & ACK_NOW) or index in half["have"] or index > max(half["have"], default=-1) + 1
        half["name"] = half["name"] or name
        half["bytes"][h["offset"]:h["offset"] + h["size"]] = body
        half["have"].add(index)
        half["news"] += 1
        while half["base"] in half["have"]:
            half["base"] += 1
        whole = half["base"] == half["count"]
        if due or whole or half["news"] * 2 >= WINDOW:
            half["news"] = 0
            bits = 0
            for i in range(256):
                if half["base"] + 1 + i in half["have"]:
                    bits |= 1 << i
            report = struct.pack("<IHH", half["base"], WINDOW, whole) + bits.to_bytes(32, "little") + bytes(8)
            self.put(source, report, family=ACK, content=4, key_lo=h["key_lo"], key_hi=h["key_hi"],
                     scope=h["scope"], operation=h["operation"])
        if whole and not half["done"]:
            half["done"] = True
            self.count("reassemblies")
            self.message(h, half["name"], bytes(half["bytes"]), source)
            half["bytes"] = bytearray(h["total"])

    def take_ack(self, h, body):
        going = self.outgoing.get((h["scope"], h["operation"]))
        if going is None:
            return
        base, _, done = struct.unpack_from("<IHH", body)
        bits = int.from_bytes(body[8:40], "little")
        if done:
            del self.outgoing[(h["scope"], h["operation"])]
            return
        shown = base + bits.bit_length()
        for index in range(base, min(shown, going["next"])):
            if not index > base or not bits >> (index - base - 1) & 1:
                if index not in going["again"]:
                    going["again"].add(index)
                    self.segment(going, index, False)
        going["base"] = max(going["base"], base)
        self.segments(going)

    # ---- replies ----

    def reply(self, h, source, kind, body=b"", content=0, reason=0, accepted=None):
        self.count("replies")
        self.count("results." + KINDS[kind])
        if accepted is None:
            accepted = 1 if kind == 1 else 2
        fields = {"family": REPLY, "kind": kind, "reason": reason, "accepted": accepted, "content": content,
                  "key_lo": h["key_lo"], "key_hi": h["key_hi"], "scope": h["scope"],
                  "operation": h["operation"], "flags": self.flags}
        if h["flags"] & EXPLAIN:
            text = b'[{"stage":"ingress","verdict":"taken"}]'
            body = struct.pack("<H", len(text)) + text + body
            fields["flags"] |= EXPLAIN
        if len(body) <= UNIT:
            self.put(source, body, **fields)
            return
        self.count("replies_segmented")
        going = {"bytes": body, "fields": fields, "to": source, "base": 0, "next": 0, "again": set(),
                 "count": -(-len(body) // UNIT), "since": time.monotonic()}
        self.outgoing[(h["scope"], h["operation"])] = going
        self.segments(going)

    def segment(self, going, index, last):
        part = going["bytes"][index * UNIT:(index + 1) * UNIT]
        fields = dict(going["fields"], total=len(going["bytes"]), offset=index * UNIT, unit=UNIT)
        fields["flags"] |= SEGMENTED | (ACK_NOW if last else 0)
        if self.random.random() * 100 >= self.lose:
            self.put(going["to"], part, **fields)

    def segments(self, going):
        going["since"] = time.monotonic()
        while going["next"] < going["count"] and going["next"] < going["base"] + WINDOW:
            going["next"] += 1
            last = going["next"] == going["count"] or going["next"] == going["base"] + WINDOW
            self.segment(going, going["next"] - 1, last)

    def refuse_for_room(self, h, source, spot):
        self.count("refusals.ApplicationLaneCount")
        body = struct.pack("<QQ", LANE, spot.items) + spot_key(spot.name) + struct.pack("<Q", 5)
        self.reply(h, source, 9, body, content=3, reason=3)

    # ---- messages ----

    def message(self, h, name, body, source):
        key = struct.pack("<QQ", h["key_lo"], h["key_hi"])
        if h["family"] == CONTROL:
            self.control(h, key, name, source)
            return
        spot = self.spots.get(key)
        if spot is None and h["family"] in (INTENT_SEND, INTENT_REQUEST):
            assert spot_key(name) == key
            spot = self.spots[key] = Spot(name, "instance", TYPES[h["spot_type"]])
            self.count("activations")
        if spot is None:
            self.answer(h, source, 2)
        elif spot.items >= LANE:
            self.refuse_for_room(h, source, spot)
        else:
            self.count("messages_accepted")
            self.turn(h, spot, body, source)

    def answer(self, h, source, kind, body=b"", content=0, reason=0):
        if h["family"] not in (SEND, INTENT_SEND):
            self.reply(h, source, kind, body, content, reason)

    def done(self, h, source, spot, kind, body=b"", content=0):
        spot.turns += 1
        self.count("messages_delivered")
        self.answer(h, source, kind, body, content)

    def turn(self, h, spot, body, source):
        if spot.type == "slow":
            spot.items += 1
            spot.free_at = max(spot.free_at, time.monotonic()) + int(body) / 1000
            self.accepted += 1
            heapq.heappush(self.later, (spot.free_at, self.accepted, (h, source, spot)))
        elif spot.type == "echo":
            self.done(h, source, spot, 1, body, h["content"])
        elif spot.type == "room":
            spot.said += 1
            self.done(h, source, spot, 1, json.dumps({"said": spot.said, "members": 0}).encode(), 1)
        elif h["message_type"] == 2:
            self.done(h, source, spot, 1 if spot.last else 2, spot.last or b"", 1 if spot.last else 0)
        elif h["message_type"] == 1 and body[:1] == b"{":
            spot.last = body
            self.done(h, source, spot, 1, b'{"reports":%d}' % (spot.turns + 1), 1)
        else:
            self.done(h, source, spot, 6, b"tracker: a report is a JSON object", 2)

    def control(self, h, key, name, source):
        spot = self.spots.get(key)
        known = TYPES.get(h["spot_type"]) == "room"
        if h["message_type"] in (1, 2) and spot is None and known:
            self.spots[key] = Spot(name, "user", "room")
            self.reply(h, source, 1, b"{}", 1)
        elif h["message_type"] in (1, 2):
            self.reply(h, source, 6 if spot is None else 1 if h["message_type"] == 2 else 3)
        elif spot is None:
            self.reply(h, source, 2)
        else:
            if h["message_type"] == 3:
                del self.spots[key]
            self.reply(h, source, 1, b"{}", 1)

    def timers(self):
        now = time.monotonic()
        while self.later and self.later[0][0] <= now:
            h, source, spot = heapq.heappop(self.later)[2]
            spot.items -= 1
            self.done(h, source, spot, 1, b"slept", 2)
        for going in self.outgoing.values():
            if now - going["since"] > 0.03:  # silence: the first missing one again asks for a report
                going["again"].clear()
                self.segment(going, min(going["base"], going["count"] - 1), True)
                going["since"] = now

    # ---- the control socket ----

    def operation(self, op, args):
        live = [spot.kind for spot in self.spots.values()]
        if op == "status":
            return {"ready": True, "spots": {kind: live.count(kind) for kind in ("instance", "user")},
                    "activity": {"activations": self.counts.get("activations", 0)}}
        if op == "stats.audit":
            return {"equal": True}
        if op == "stats.show":
            parts = {"counters": {}, "results": {}, "refusals": {}}
            for name, value in self.counts.items():
                group, dot, rest = name.partition(".")
                parts[group if dot else "counters"][rest if dot else name] = value
            return {"total": parts}
        spot = self.spots.get(spot_key(args["id"].encode()))
        if op != "spot.show" or spot is None:
            return None
        return {"id": args["id"], "key": spot_key(spot.name).hex(), "kind": spot.kind, "type": spot.type,
                "state": "open", "turns": spot.turns,
                "application": {"items": spot.items, "items_max": LANE}}

    def serve_control(self):
        connection, _ = self.unix.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            request = json.loads(stream.readline())
            stream.write(json.dumps(self.operation(request["op"], request["args"])) + "\n")

    def serve(self):
        selector = selectors.DefaultSelector()
        selector.register(self.udp, selectors.EVENT_READ)
        selector.register(self.unix, selectors.EVENT_READ)
        parent = os.getppid()
        while os.getppid() == parent:
            for key, _ in selector.select(0.01):
                if key.fileobj is self.unix:
                    self.serve_control()
                    continue
                for _ in range(256):
                    try:
                        data, source = self.udp.recvfrom(9216, socket.MSG_DONTWAIT)
                    except BlockingIOError:
                        break
                    self.take(data, source)
            self.timers()


def main():
    path = sys.argv[1]
    lose = int(sys.argv[sys.argv.index("--lose") + 1]) if "--lose" in sys.argv else 0
    node = FakeNode(path, lose, "--pressure" in sys.argv)
    print(node.udp.getsockname()[1], flush=True)
    node.serve()


if __name__ == "__main__":
    main()
