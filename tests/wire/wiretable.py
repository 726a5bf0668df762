# SPDX-License-Identifier: BSD-3-Clause
"""The wire table as Python data, and a slow decoder that follows it word by word.

The decoder is a twin of lib/wire/wire.c, written from the table and not from the C code: the tests
compare their verdicts. Python 3.11, standard library only.
"""
import hashlib
import pathlib
import re
import struct
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
GENERATION_MAX = 2**63 - 1


def x_list(text, macro):
    """The rows of an X-list of result.h: [(C name, number, printed name)]."""
    body = re.search(r"#define %s\(X\)(.*?)\n\n" % macro, text, re.S)[1]
    return [(name, int(number), printed)
            for name, number, printed in re.findall(r'X\((\w+), (\d+), "(\w+)"\)', body)]


def place(fields):
    """Gives every field its size and offset; returns the sum."""
    offset = 0
    for field in fields:
        field["size"] = SIZES.get(field["type"], field.get("size"))
        field["offset"] = offset
        offset += field["size"]
    return offset


def load(root=ROOT):
    table = tomllib.loads((root / "lib/wire/wire.toml").read_text())
    result = (root / "lib/base/result.h").read_text()
    table["kinds"] = x_list(result, "RESULT_KINDS")
    table["reasons"] = x_list(result, "RESULT_REASONS")
    table["constants"] = {c["name"]: c["value"] for c in table["constant"]}
    assert place(table["field"]) == table["header_bytes"], "fields do not add up to a header"
    assert place(table["refusal_field"]) == table["constants"]["REFUSAL_BYTES"]
    assert place(table["ack_field"]) == 48
    place(table["control_reply_field"])
    for group in ("family", "control", "content", "suite", "reject"):
        numbers = [row["number"] for row in table[group]]
        assert len(set(numbers)) == len(numbers), group + ": a number is used twice"
    return table


def struct_format(fields):
    return "<" + "".join(CODES.get(f["type"], "%ds" % f["size"]) for f in fields)


def pack(fields, values):
    empty = lambda f: bytes(f["size"]) if f["type"] == "bytes" else 0
    return struct.pack(struct_format(fields), *[values.get(f["name"], empty(f)) for f in fields])


def unpack(fields, data):
    return dict(zip([f["name"] for f in fields], struct.unpack(struct_format(fields), data)))


def hashed(domain, name):
    return hashlib.sha256(bytes([domain]) + name).digest()


def spot_key(name):
    return hashed(1, name)[:16]


def actor_key(name):
    return hashed(2, name)[:16]


def type_key(name):
    return int.from_bytes(hashed(3, name)[:4], "little")


def node_key(name):
    return int.from_bytes(hashed(5, name)[:8], "little")


def id_is_valid(data):
    try:
        return 1 <= len(data) <= 255 and "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


class Decoder:
    """decode(frame) -> (verdict, header, id, segment); the last three only when taken."""

    def __init__(self, table):
        self.table = table
        self.format = struct.Struct(struct_format(table["field"]))
        self.names = [f["name"] for f in table["field"]]
        self.families = {f["number"]: f for f in table["family"]}
        self.flags = {f["name"]: 1 << f["bit"] for f in table["flag"]}
        self.contents = {c["number"]: c["name"] for c in table["content"]}
        self.makes = {c["number"]: c["type"] for c in table["control"]}
        self.kinds = {number for _, number, _ in table["kinds"]}
        self.reasons = {0} | {number for _, number, _ in table["reasons"]}
        self.order = [r["name"].lower() for r in table["reject"]]

    def decode(self, frame):
        if len(frame) < self.table["header_bytes"]:
            return "short", None, None, None
        h = dict(zip(self.names, self.format.unpack_from(frame)))
        family = self.families.get(h["family"])
        body = frame[self.table["header_bytes"]:]
        name, segment = body[:h["id_bytes"]], body[h["id_bytes"]:]
        for code in self.order[1:]:
            if getattr(self, "bad_" + code)(h, family, name, segment):
                return code, None, None, None
        return "taken", h, name, segment

    def bad_version(self, h, *_):
        return h["version"] != self.table["version"]

    def bad_suite(self, h, *_):
        return h["suite_phase"] != 0

    def bad_family(self, _, family, *__):
        return family is None

    def bad_flags(self, h, family, *_):
        allowed = sum(self.flags[name] for name in family["flags"])
        alone = h["flags"] & self.flags["ACK_NOW"] and not self.segmented(h)
        return h["flags"] & ~allowed or alone

    def segmented(self, h):
        return h["flags"] & self.flags["SEGMENTED"]

    def bad_length(self, h, _, name, segment):
        return len(name) + len(segment) != h["id_bytes"] + h["segment_bytes"]

    def bad_reserved(self, h, family, *_):
        hints = h["ingress_worker"] or h["home_worker"]
        return any(h["reserved"]) or (hints and not family["hint"])

    def bad_tag(self, h, *_):
        return any(h["tag"])

    def bad_result(self, h, family, *_):
        if not family["result"]:
            return h["kind"] or h["reason"] or h["accepted"]
        return (h["kind"] not in self.kinds or h["reason"] not in self.reasons or
                h["accepted"] not in (1, 2, 3) or (h["kind"] == 1 and h["accepted"] != 1))

    def bad_session(self, h, *_):
        return h["session"] == 0

    def bad_counter(self, h, *_):
        return not 1 <= h["counter"] <= GENERATION_MAX

    def bad_key(self, h, family, *_):
        return family["key"] and h["spot_key_lo"] == 0 and h["spot_key_hi"] == 0

    def bad_id(self, h, family, name, _):
        if family["id"] == "route":
            return len(name) != self.table["constants"]["ROUTE_BYTES"]
        if name == b"":
            return family["id"] == "must" and h["segment_offset"] == 0
        return family["id"] == "never" or not id_is_valid(name)

    def bad_id_key(self, *_):
        return False  # wire_check_id's business, see id_verdict

    def bad_generation(self, h, family, *_):
        return (h["owner_lease"] > GENERATION_MAX or h["object_generation"] > GENERATION_MAX or
                (h["owner_node"] == 0) != (h["owner_lease"] == 0) or
                (family.get("fence", False) and h["owner_node"] == 0))

    def bad_control(self, h, family, *_):
        return family["name"] == "CONTROL" and h["message_type"] not in self.makes

    def bad_type(self, h, family, *_):
        needed = family["type"] or (family["name"] == "CONTROL" and self.makes[h["message_type"]])
        return needed and h["spot_type"] == 0

    def bad_content(self, h, family, *_):
        name = self.contents.get(h["content_type"])
        return name not in family["contents"] or (name == "REFUSAL" and h["kind"] == 1)

    def bad_total(self, h, family, *_):
        most = self.table["constants"].get(family["total"], 0)
        if h["total_bytes"] > most:
            return True
        if not self.segmented(h) and h["total_bytes"] != h["segment_bytes"]:
            return True
        if self.contents[h["content_type"]] != "REFUSAL":
            return False
        return (h["total_bytes"] < 42 if h["flags"] & self.flags["EXPLAIN"]
                else h["total_bytes"] != 40)

    def bad_segment(self, h, *_):
        offset, unit, total = h["segment_offset"], h["segment_unit"], h["total_bytes"]
        if not self.segmented(h):
            return offset or unit
        return (not 1024 <= unit < total or offset >= total or offset % unit or
                h["segment_bytes"] != min(unit, total - offset))

    def bad_ack(self, _, family, __, segment):
        return family["name"] == "ACK" and not self.ack_is_valid(segment)

    def ack_is_valid(self, body):
        if len(body) != 48:
            return False
        a = unpack(self.table["ack_field"], body)
        return (a["base"] <= 16384 and 1 <= a["window"] <= 256 and a["done"] <= 1 and
                a["reserved"] == 0)

    def bad_operation(self, h, family, *_):
        if family["operation"] == "both" or self.segmented(h):
            return h["operation_scope"] == 0 or h["operation_id"] == 0
        return family["operation"] == "scope" and h["operation_scope"] == 0

    def bad_cookie(self, h, family, *_):
        return family["name"] == "CHALLENGE" and h["cookie"] == 0

    def id_verdict(self, h, name):
        if self.families[h["family"]]["id"] == "route":
            return "taken"
        key = struct.pack("<QQ", h["spot_key_lo"], h["spot_key_hi"])
        of_actor = h["family"] == 5 and h["message_type"] in (6, 7)  # CONTROL: JOIN, LEAVE
        made = actor_key(name) if of_actor else spot_key(name)
        return "taken" if name == b"" or made == key else "id_key"
