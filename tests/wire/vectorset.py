# SPDX-License-Identifier: BSD-3-Clause
"""Which vectors there are. scripts/gen-wire writes them to tests/vectors/*.json.

Expected verdicts are written here by hand, case by case; the tests compare the C decoder and the
slow decoder of wiretable.py with them.
"""
import json

import wiretable

SESSION, NODE_SESSION, COOKIE = 0x1122334455667788, 0x99AABBCCDDEEFF01, 0x0102030405060708
VEHICLE, TRACKER, NODE = b"vehicle-17", b"tracker", b"node-1"
ROUTE = bytes(range(100, 172))  # opaque to all but the node that sealed it
PASSENGER = b"passenger-3"
LONG_ID = ("é" * 127 + "x").encode()  # 255 bytes
NON_ASCII_ID = "Straße/東京/🚌".encode()
UNIT, TOTAL = 1024, 2500  # segmented vectors: three segments, the last of 452 bytes


class Maker:
    def __init__(self, table):
        self.table = table
        self.families = {f["name"]: f for f in table["family"]}
        self.flags = {f["name"]: 1 << f["bit"] for f in table["flag"]}
        self.rows = []

    def header(self, family, spot, segment):
        """A legal header of the family, for that Spot."""
        f = self.families[family]
        key = wiretable.unpack(
            [x for x in self.table["field"] if x["name"].startswith("spot_key_")],
            wiretable.spot_key(spot))
        from_node = f["way"] != "to the node" and f["way"] != "both ways"
        h = {"version": self.table["version"], "family": f["number"], "counter": 1,
             "session": NODE_SESSION if from_node else SESSION,
             "segment_bytes": len(segment), "total_bytes": len(segment)}
        if f["key"]:
            h.update(key)
        if f["operation"] != "none":
            h.update(operation_scope=SESSION, operation_id=1)
        if f["result"]:
            h.update(kind=1, accepted=1)
        if f["type"]:
            h["spot_type"] = wiretable.type_key(TRACKER)
        if family == "CONTROL":
            h.update(message_type=3)
        if f.get("fence"):
            h.update(owner_node=wiretable.node_key(NODE), owner_lease=3)
        if family in ("SEND", "REQUEST", "INTENT_SEND", "INTENT_REQUEST", "FORWARD_SEND",
                      "FORWARD_REQUEST"):
            h.update(message_type=7, budget_us=500000)
        if family == "ACK":
            h["content_type"] = 4
        if family == "CHALLENGE":
            h["cookie"] = COOKIE
        return h

    def frame(self, family, segment=b"", /, spot=VEHICLE, id=None, cut=0, pad=b"", **over):
        """Bytes of a frame; id: the full id that travels (None: when it must)."""
        if family == "ACK" and segment == b"":
            segment = ack_body(self.table)
        if id is None:
            id = {"must": spot, "route": ROUTE}.get(self.families[family]["id"], b"")
        h = self.header(family, spot, segment)
        h["id_bytes"] = len(id)
        h.update(over)
        data = wiretable.pack(self.table["field"], h) + id + segment + pad
        return data[:len(data) - cut]

    def add(self, name, about, verdict, data, id_verdict=None):
        row = {"name": name, "about": about, "verdict": verdict, "hex": data.hex()}
        if verdict == "taken":
            h = wiretable.unpack(self.table["field"], data[:136])
            size = h["id_bytes"]
            row["header"] = {f["name"]: show(f, h[f["name"]]) for f in self.table["field"]}
            row["id_hex"], row["segment_hex"] = data[136:136 + size].hex(), data[136 + size:].hex()
            if size:
                row["id_verdict"] = id_verdict or "taken"
        self.rows.append(row)

    def taken(self, name, about, family, segment=b"", /, **more):
        id_verdict = more.pop("id_verdict", None)
        self.add(name, about, "taken", self.frame(family, segment, **more), id_verdict)

    def refused(self, verdict, what, family, segment=b"", /, **more):
        name = "reject_%s_%s" % (verdict, what)
        self.add(name, what.replace("_", " "), verdict, self.frame(family, segment, **more))


def show(field, value):
    if field["type"] == "bytes":
        return value.hex()
    return "0x%016x" % value if field["type"] == "u64" else value


def ack_body(t, **over):
    values = {"base": 1, "window": 256, "bits": b"\x01" + bytes(31), **over}
    return wiretable.pack(t["ack_field"], values)


def refusal_body(t, **over):
    values = {"limit": 1024, "current": 1024, "owner_key": wiretable.spot_key(VEHICLE),
              "owner_node": wiretable.node_key(NODE), **over}
    return wiretable.pack(t["refusal_field"], values)


def explanation():
    text = json.dumps({"stages": [{"stage": "route", "verdict": "local"}]}).encode()
    return len(text).to_bytes(2, "little") + text


def examples(m):
    body = b'{"lat":52.52,"lon":13.41}'
    ask = dict(id=VEHICLE, content_type=1)
    m.taken("example_request", "Worked example: a request with declared intent, without a cookie",
            "INTENT_REQUEST", body, **ask)
    m.taken("example_challenge", "Worked example: the node gives a cookie and does nothing else",
            "CHALLENGE")
    m.taken("example_request_again", "Worked example: the same frame with the cookie",
            "INTENT_REQUEST", body, cookie=COOKIE, **ask)
    m.taken("example_reply", "Worked example: the reply", "REPLY", b'{"seen":1}', content_type=1,
            counter=2, home_worker=1)


def families(m):
    for family in m.families:
        m.taken("family_" + family.lower(), "The plainest legal frame of the family", family)
    for i, control in enumerate(("create", "get_or_create", "close", "lookup"), 1):
        m.taken("control_" + control, "Control operation", "CONTROL", message_type=i,
                spot_type=wiretable.type_key(b"room") if i < 3 else 0)
    for number, control in ((6, "join"), (7, "leave")):
        m.taken("control_" + control, "Control operation of an Actor", "CONTROL",
                b"room-1" if number == 6 else b"", message_type=number, spot=PASSENGER,
                **wiretable.unpack([x for x in m.table["field"] if x["name"].startswith("spot_key_")],
                                   wiretable.actor_key(PASSENGER)))
    made = wiretable.pack(m.table["control_reply_field"], {"object_generation": 77, "changed": 1})
    m.taken("control_reply_made", "What a create answers", "REPLY", made)
    m.taken("control_create_argument_max", "The largest create argument", "CONTROL", b"a" * 1024,
            message_type=1, spot_type=wiretable.type_key(b"room"))
    for i, content in enumerate(("bytes", "json", "text")):
        m.taken("content_" + content, "Content type", "REQUEST", b'"x"', content_type=i)
    m.taken("payload_empty", "A request without payload", "REQUEST")
    m.taken("send_with_id", "An ordinary message may carry its full id", "SEND", b"x", id=VEHICLE)
    m.taken("id_1_byte", "Shortest id", "INTENT_SEND", spot=b"a")
    m.taken("id_255_bytes", "Longest id", "INTENT_REQUEST", b"x", spot=LONG_ID)
    m.taken("id_non_ascii", "An id outside ASCII", "INTENT_REQUEST", b"x", spot=NON_ASCII_ID)
    m.taken("id_of_another_key", "Decodes; the id does not hash to the key", "INTENT_SEND",
            id=b"vehicle-18", id_verdict="id_key")
    m.taken("owner_fence", "From a node: both halves of the fence", "REQUEST",
            owner_node=wiretable.node_key(NODE), owner_lease=3)
    m.taken("generations_max", "The largest generation, counter and lease", "CONTROL",
            object_generation=2**63 - 1, counter=2**63 - 1, owner_node=1, owner_lease=2**63 - 1)
    m.taken("all_ones_where_legal", "Free fields may hold any value", "REQUEST",
            session=2**64 - 1, operation_scope=2**64 - 1, operation_id=2**64 - 1, cookie=2**64 - 1,
            spot_type=2**32 - 1, message_type=2**16 - 1, budget_us=2**32 - 1)
    m.taken("challenge_of_a_request", "operation_scope and operation_id echo the frame",
            "CHALLENGE", operation_id=1)


def results(m):
    t = m.table
    for _, number, printed in t["kinds"]:
        m.taken("kind_" + printed, "Result kind", "REPLY", kind=number, accepted=1 if number == 1 else 2)
    for _, number, printed in t["reasons"]:
        m.taken("reason_" + printed, "Result reason", "REPLY", kind=9, reason=number, accepted=2)
    m.taken("accepted_unknown", "No answer in time", "REPLY", kind=10, accepted=3)
    m.taken("refusal", "Whose room, which bound, how full", "REPLY", refusal_body(t), kind=9, reason=3,
            accepted=2, content_type=3)
    m.taken("refusal_explained", "Explanation, then the refusal", "REPLY",
            explanation() + refusal_body(t), kind=9, reason=3, accepted=2, content_type=3,
            flags=m.flags["EXPLAIN"])
    m.taken("reply_explained", "Explanation, then the body", "REPLY", explanation() + b"body",
            flags=m.flags["EXPLAIN"])
    m.taken("request_explain", "Asks for the explanation", "REQUEST", flags=m.flags["EXPLAIN"])
    m.taken("reply_pressure", "The node asks to slow down; worker hints", "REPLY", b"x",
            flags=m.flags["PRESSURE"], ingress_worker=2, home_worker=255)


def segments(m):
    payload = bytes(i * 7 & 255 for i in range(TOTAL))
    for family in ("SEND", "REQUEST", "INTENT_REQUEST", "REPLY"):
        for at, what in ((0, "first"), (UNIT, "middle"), (2 * UNIT, "last")):
            m.taken("segment_%s_%s" % (family.lower(), what), "Of a payload of 2500 bytes in three",
                    family, payload[at:at + UNIT], id=VEHICLE if family[0] == "I" and at == 0 else b"",
                    flags=m.flags["SEGMENTED"] | (m.flags["ACK_NOW"] if what == "last" else 0),
                    operation_scope=SESSION, operation_id=9, total_bytes=TOTAL, segment_offset=at,
                    segment_unit=UNIT, counter=1 + at // UNIT)
    m.taken("segment_last_of_largest", "The last segment of 16 MiB", "REQUEST", payload[:UNIT],
            flags=m.flags["SEGMENTED"], total_bytes=2**24, segment_offset=2**24 - UNIT,
            segment_unit=UNIT)
    m.taken("ack_window", "All below 7, and 8 and 10", "ACK",
            ack_body(m.table, base=7, window=128, bits=b"\x05" + bytes(31)))
    m.taken("ack_done", "The message is whole", "ACK", ack_body(m.table, base=3, done=1, bits=bytes(32)))


def reject_envelope(m):
    r = m.refused
    m.add("reject_short_empty", "no bytes", "short", b"")
    r("short", "135_bytes", "REQUEST", cut=1)
    r("version", "0", "REQUEST", version=0)
    r("version", "2", "REQUEST", version=2)
    r("suite", "1", "REQUEST", suite_phase=2)
    r("suite", "phase_without_key", "REQUEST", suite_phase=1)
    r("family", "0", "REQUEST", family=0)
    r("family", "11", "REQUEST", family=11)
    r("flags", "unknown", "REQUEST", flags=16)
    r("flags", "pressure_to_the_node", "REQUEST", flags=m.flags["PRESSURE"])
    r("flags", "explain_on_send", "SEND", flags=m.flags["EXPLAIN"])
    r("flags", "ack_now_alone", "REQUEST", flags=m.flags["ACK_NOW"])
    r("flags", "segmented_control", "CONTROL", flags=m.flags["SEGMENTED"])
    r("length", "one_byte_short", "REQUEST", b"abc", cut=1)
    r("length", "one_byte_long", "REQUEST", b"abc", pad=b"x")
    r("length", "id_beyond_the_end", "INTENT_SEND", id_bytes=255)
    r("length", "segment_beyond_the_end", "REQUEST", segment_bytes=65535, total_bytes=65535)
    for i in range(6):
        r("reserved", "byte_%d" % i, "REQUEST", reserved=bytes(i) + b"\1" + bytes(5 - i))
    r("reserved", "ingress_hint_in_a_request", "REQUEST", ingress_worker=1)
    r("reserved", "home_hint_in_a_request", "REQUEST", home_worker=1)
    r("tag", "first_byte", "REQUEST", tag=b"\1" + bytes(15))
    r("tag", "last_byte", "REQUEST", tag=bytes(15) + b"\1")
    r("result", "kind_in_a_request", "REQUEST", kind=1)
    r("result", "reason_in_a_request", "REQUEST", reason=1)
    r("result", "accepted_in_a_request", "REQUEST", accepted=1)
    r("result", "kind_0", "REPLY", kind=0)
    r("result", "kind_24", "REPLY", kind=24, accepted=2)
    r("result", "reason_15", "REPLY", kind=9, reason=15, accepted=2)
    r("result", "reason_255", "REPLY", kind=9, reason=255, accepted=2)
    r("result", "kind_64", "REPLY", kind=64, accepted=2)
    r("result", "reason_64", "REPLY", kind=9, reason=64, accepted=2)
    r("result", "accepted_0", "REPLY", accepted=0)
    r("result", "accepted_4", "REPLY", kind=9, accepted=4)
    r("result", "ok_not_accepted", "REPLY", accepted=2)
    r("session", "0", "REQUEST", session=0)
    r("counter", "0", "REQUEST", counter=0)
    r("counter", "above_max", "REQUEST", counter=2**63)
    r("key", "0", "REQUEST", spot_key_lo=0, spot_key_hi=0)


def reject_body(m):
    r, seg = m.refused, m.flags["SEGMENTED"]
    r("id", "missing_in_intent", "INTENT_SEND", id=b"")
    r("id", "missing_in_control", "CONTROL", id=b"")
    r("id", "in_a_reply", "REPLY", id=VEHICLE)
    for what, data in (("nul", b"a\0b"), ("lone_continuation", b"a\x80"), ("overlong", b"\xc0\xaf"),
                       ("surrogate", b"\xed\xa0\x80"), ("above_10ffff", b"\xf4\x90\x80\x80"),
                       ("cut_short", b"abc\xe6\x9d")):
        r("id", what, "INTENT_SEND", id=data)
    r("generation", "object_above_max", "REQUEST", object_generation=2**63)
    r("generation", "lease_above_max", "REQUEST", owner_node=1, owner_lease=2**63)
    r("generation", "node_without_lease", "REQUEST", owner_node=1)
    r("generation", "lease_without_node", "REQUEST", owner_lease=1)
    r("control", "0", "CONTROL", message_type=0)
    r("control", "5", "CONTROL", message_type=5)
    r("control", "8", "CONTROL", message_type=8)
    r("control", "32", "CONTROL", message_type=32)
    r("type", "intent_without", "INTENT_REQUEST", spot_type=0)
    r("type", "create_without", "CONTROL", message_type=1)
    r("type", "get_or_create_without", "CONTROL", message_type=2)
    r("content", "unknown", "REQUEST", content_type=5)
    r("content", "above_a_byte", "REQUEST", content_type=256)
    r("content", "refusal_in_a_request", "REQUEST", refusal_body(m.table), content_type=3)
    r("content", "refusal_with_ok", "REPLY", refusal_body(m.table), content_type=3)
    r("content", "ack_body_in_a_reply", "REPLY", ack_body(m.table), content_type=4)
    r("content", "bytes_in_an_ack", "ACK", content_type=0)
    r("total", "differs_unsegmented", "REQUEST", b"abc", total_bytes=4)
    r("total", "above_16_mib", "REQUEST", bytes(UNIT), flags=seg, total_bytes=2**24 + 1,
      segment_unit=UNIT)
    r("total", "control_argument", "CONTROL", bytes(1025))
    r("total", "hello_with_body", "HELLO", b"x")
    r("total", "refusal_39_bytes", "REPLY", bytes(39), kind=9, accepted=2, content_type=3)
    r("total", "refusal_41_bytes_explained", "REPLY", bytes(41), kind=9, accepted=2, content_type=3,
      flags=m.flags["EXPLAIN"])
    good = dict(flags=seg, total_bytes=TOTAL, segment_unit=UNIT)
    r("segment", "offset_unsegmented", "REQUEST", segment_offset=1024)
    r("segment", "unit_unsegmented", "REQUEST", segment_unit=1024)
    r("segment", "unit_below_1024", "REQUEST", bytes(1023), **{**good, "segment_unit": 1023})
    r("segment", "unit_0", "REQUEST", bytes(UNIT), **{**good, "segment_unit": 0})
    r("segment", "only_one", "REQUEST", bytes(UNIT), **{**good, "total_bytes": UNIT})
    r("segment", "offset_between", "REQUEST", bytes(UNIT), segment_offset=1, **good)
    r("segment", "offset_at_the_end", "REQUEST", **{**good, "total_bytes": 2048}, segment_offset=2048)
    r("segment", "offset_beyond", "REQUEST", bytes(UNIT), segment_offset=4096, **good)
    r("segment", "middle_short", "REQUEST", bytes(UNIT - 1), **good)
    r("segment", "last_long", "REQUEST", bytes(453), segment_offset=2048, **good)
    r("segment", "last_short", "REQUEST", bytes(451), segment_offset=2048, **good)
    for what, over in (("base", {"base": 16385}), ("window_0", {"window": 0}),
                       ("window_257", {"window": 257}), ("done_2", {"done": 2}),
                       ("reserved", {"reserved": 1})):
        r("ack", what, "ACK", ack_body(m.table, **over))
    r("ack", "47_bytes", "ACK", bytes(47))
    for family in ("REQUEST", "INTENT_REQUEST", "CONTROL", "REPLY", "ACK"):
        r("operation", family.lower() + "_scope", family, operation_scope=0)
        r("operation", family.lower() + "_id", family, operation_id=0)
    r("operation", "segmented_send", "SEND", bytes(UNIT), **good)
    r("operation", "challenge_scope", "CHALLENGE", operation_scope=0)
    r("cookie", "0", "CHALLENGE", cookie=0)


def forwards(m):
    t, r = m.table, m.refused
    m.taken("forward_request_with_intent", "The type that the caller declared", "FORWARD_REQUEST",
            b"x", spot_type=wiretable.type_key(TRACKER))
    m.taken("forward_request_explain", "Asks for the explanation", "FORWARD_REQUEST",
            flags=m.flags["EXPLAIN"])
    m.taken("forward_reply_stale", "The owner is another one by now", "FORWARD_REPLY", kind=7,
            reason=54, accepted=2)
    m.taken("forward_reply_refusal", "Whose room, which bound, how full", "FORWARD_REPLY",
            refusal_body(t), kind=9, reason=3, accepted=2, content_type=3)
    payload = bytes(i * 7 & 255 for i in range(TOTAL))
    for family in ("FORWARD_SEND", "FORWARD_REPLY"):
        m.taken("segment_%s_middle" % family.lower(), "Each segment carries the reply route", family,
                payload[UNIT:2 * UNIT], flags=m.flags["SEGMENTED"], total_bytes=TOTAL,
                segment_offset=UNIT, segment_unit=UNIT)
    r("id", "forward_without_route", "FORWARD_SEND", id=b"")
    r("id", "forward_route_of_71_bytes", "FORWARD_REQUEST", id=ROUTE[:71])
    r("id", "forward_reply_route_of_73_bytes", "FORWARD_REPLY", id=ROUTE + b"x")
    r("generation", "forward_without_fence", "FORWARD_SEND", owner_node=0, owner_lease=0)
    r("generation", "forward_request_without_fence", "FORWARD_REQUEST", owner_node=0, owner_lease=0)
    r("result", "forward_reply_kind_0", "FORWARD_REPLY", kind=0)
    r("operation", "forward_send_scope", "FORWARD_SEND", operation_scope=0)
    r("operation", "forward_reply_id", "FORWARD_REPLY", operation_id=0)
    r("flags", "forward_send_explain", "FORWARD_SEND", flags=m.flags["EXPLAIN"])
    r("family", "15", "REQUEST", family=15)


def key_rows():
    names = [("spot", 1, VEHICLE, 16), ("spot", 1, NON_ASCII_ID, 16), ("spot", 1, LONG_ID, 16),
             ("spot", 1, b"a", 16), ("actor", 2, VEHICLE, 16), ("type", 3, TRACKER, 4),
             ("type", 3, b"counter", 4), ("type", 3, b"echo", 4), ("node", 5, NODE, 8)]
    for i, (of, domain, name, size) in enumerate(names):
        yield {"name": "key_%d" % i, "of": of, "domain": domain, "text": name.decode(),
               "name_hex": name.hex(), "key": wiretable.hashed(domain, name)[:size].hex(),
               "in_page": len(name) < 30}


def id_rows():
    cases = [("empty", b"", False), ("one", b"a", True), ("longest", LONG_ID, True),
             ("too_long", b"a" * 256, False), ("nul", b"a\0", False), ("del", b"\x7f", True),
             ("two_first", b"\xc2\x80", True), ("two_overlong", b"\xc1\xbf", False),
             ("three_first", b"\xe0\xa0\x80", True), ("three_overlong", b"\xe0\x9f\xbf", False),
             ("before_surrogates", b"\xed\x9f\xbf", True), ("surrogate", b"\xed\xa0\x80", False),
             ("after_surrogates", b"\xee\x80\x80", True), ("noncharacter", b"\xef\xbf\xbf", True),
             ("four_first", b"\xf0\x90\x80\x80", True), ("four_overlong", b"\xf0\x8f\xbf\xbf", False),
             ("four_last", b"\xf4\x8f\xbf\xbf", True), ("beyond", b"\xf4\x90\x80\x80", False),
             ("f5", b"\xf5\x80\x80\x80", False), ("ff", b"\xff", False), ("lone", b"\x80", False),
             ("cut_two", b"\xc3", False), ("cut_three", b"\xe2\x82", False),
             ("cut_four", b"\xf0\x9f\x9a", False), ("bad_second", b"\xc3(", False),
             ("bad_third", b"\xe2\x82(", False), ("bad_fourth", b"\xf0\x9f\x9a(", False),
             ("ascii_then_bad", b"abcdefgh\xff", False), ("nul_in_eighth", b"abcdefg\0hijk", False)]
    for name, data, valid in cases:
        yield {"name": name, "hex": data.hex(), "valid": valid}


def ack_rows(t):
    for i, over in enumerate(({}, {"base": 16384, "done": 1, "bits": bytes(32)},
                              {"base": 0, "window": 1, "bits": bytes(31) + b"\x80"})):
        body = ack_body(t, **over)
        values = wiretable.unpack(t["ack_field"], body)
        yield {"name": "ack_%d" % i, "hex": body.hex(), "base": values["base"],
               "window": values["window"], "done": values["done"], "bits": values["bits"].hex()}


def refusal_rows(t):
    for i, over in enumerate(({}, {"owner_key": bytes(16), "limit": 2**64 - 1, "current": 0})):
        body = refusal_body(t, **over)
        values = wiretable.unpack(t["refusal_field"], body)
        yield {"name": "refusal_%d" % i, "hex": body.hex(),
               **{f["name"]: show(f, values[f["name"]]) for f in t["refusal_field"]}}


def build(table):
    m = Maker(table)
    for part in (examples, families, results, segments, reject_envelope, reject_body,
                 forwards):
        part(m)
    names = [row["name"] for row in m.rows]
    assert len(set(names)) == len(names), "two vectors of one name"
    return {"frames": m.rows, "keys": list(key_rows()), "ids": list(id_rows()),
            "acks": list(ack_rows(table)), "refusals": list(refusal_rows(table))}
