#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/wireshark/spotlane.lua shows every field of every vector as the vectors say, with tshark."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import lines  # noqa: E402
import wiretable  # noqa: E402

TABLE = wiretable.load()
SCRIPT = wiretable.ROOT / "docs/wireshark/spotlane.lua"
VECTORS = json.loads((wiretable.ROOT / "tests/vectors/frames.json").read_text())["vectors"]
VECTORS = [v for v in VECTORS if v["hex"]]
FAMILY = {f["number"]: f["name"] for f in TABLE["family"]}
PORT = 4747
# Codes that show only with the rules of a family or with a hash: the dissector leaves them to nodes.
BY_FAMILY = {"key", "id", "id_key", "generation", "control", "type", "ack", "operation", "cookie"}
# Codes that may show, but also have causes that need the rules of a family.
PARTLY = {"flags", "reserved", "content", "total", "counter"}


def packet(payload):
    udp = struct.pack(">HHHH", PORT, PORT, 8 + len(payload), 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0,
                     bytes([127, 0, 0, 1]), bytes([127, 0, 0, 1]))
    data = ip + udp + payload
    return struct.pack("<IIII", 0, 0, len(data), len(data)) + data


def dissect(frames):
    """One dictionary per frame: field name -> list of values as tshark prints them."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        # pcap, link type 228: raw IPv4.
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 228))
        file.write(b"".join(map(packet, frames)))
        file.flush()
        done = subprocess.run(
            ["tshark", "-n", "-X", "lua_script:%s" % SCRIPT, "-d", "udp.port==%d,spotlane" % PORT,
             "-r", file.name, "-T", "json", "-J", "spotlane"], capture_output=True,
            encoding="utf-8", errors="replace",  # ids that are no UTF-8 come out in pieces
            env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    packets = json.loads(done.stdout, object_pairs_hook=collect)
    assert len(packets) == len(frames)
    return [flatten(p["_source"][0]["layers"][0]) for p in packets]


def collect(pairs):
    """A JSON object whose keys may repeat."""
    out = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


def flatten(tree, out=None):
    out = {} if out is None else out
    for key, values in tree.items():
        for value in values:
            if isinstance(value, dict):
                flatten(value, out)
            elif isinstance(value, list):
                for element in value:
                    flatten({key: [element]}, out)
            else:
                out.setdefault(key, []).append(value)
    return out


def value_of(text, field):
    return text.replace(":", "") if field["type"] == "bytes" else int(text, 0)


def wanted(value, field):
    if field["type"] == "bytes":
        return value
    return int(value, 0) if isinstance(value, str) else value


SHOWN = []


def tshark_reads_all():
    SHOWN.extend(dissect([bytes.fromhex(v["hex"]) for v in VECTORS]))


def every_field_is_shown():
    for vector, shown in zip(VECTORS, SHOWN, strict=True):
        if vector["verdict"] != "taken":
            continue
        for field in TABLE["field"]:
            [text] = shown["spotlane." + field["name"]]
            want = wanted(vector["header"][field["name"]], field)
            assert value_of(text, field) == want, (vector["name"], field["name"], text)
        if "FORWARD_" in FAMILY[vector["header"]["family"]]:
            [text] = shown["spotlane.route"]
            assert text.replace(":", "") == vector["id_hex"], (vector["name"], text)
        elif vector["id_hex"]:
            [text] = shown["spotlane.id"]
            assert text.encode().hex() == vector["id_hex"], (vector["name"], text)


def legal_frames_are_not_marked():
    for vector, shown in zip(VECTORS, SHOWN, strict=True):
        if vector["verdict"] == "taken":
            assert "spotlane.reject" not in shown, (vector["name"], shown["spotlane.reject"])


def faults_are_named():
    named = set()
    for vector, shown in zip(VECTORS, SHOWN, strict=True):
        verdict, code = vector["verdict"], shown.get("spotlane.reject", [None])[0]
        if verdict == "taken":
            continue
        named.add(code if code == verdict else None)
        assert code == verdict or verdict in BY_FAMILY | PARTLY, (vector["name"], code)
    every = {r["name"].lower() for r in TABLE["reject"]} - BY_FAMILY
    assert every <= named, every - named


def bodies_are_taken_apart():
    by_name = {v["name"]: s for v, s in zip(VECTORS, SHOWN, strict=True)}
    refusal = by_name["refusal"]
    assert refusal["spotlane.refusal.limit"] == ["1024"]
    assert refusal["spotlane.refusal.owner_key"][0].replace(":", "") == \
        wiretable.spot_key(b"vehicle-17").hex()
    explained = by_name["refusal_explained"]
    assert json.loads(explained["spotlane.explanation"][0])["stages"]
    assert explained["spotlane.refusal.current"] == ["1024"]
    assert by_name["ack_window"]["spotlane.ack.base"] == ["7"]
    assert by_name["ack_window"]["spotlane.ack.window"] == ["128"]
    assert by_name["control_close"]["spotlane.control"] == ["3"]
    on = by_name["segment_request_last"]
    for flag, want in (("segmented", True), ("ack_now", True), ("pressure", False), ("explain", False)):
        [text] = on["spotlane.flag." + flag]
        assert (text.lower() in ("1", "true")) == want, (flag, text)


report = lines.Lines()
if shutil.which("tshark") is None:
    print("# tshark is not installed: nothing can be tested")
    sys.exit(77)
report.run("x__tshark_reads_the_vectors", tshark_reads_all)
report.run("x__dissector_shows_every_field", every_field_is_shown)
report.run("x__dissector_does_not_mark_legal_frames", legal_frames_are_not_marked)
report.run("x__dissector_names_faults", faults_are_named)
report.run("M5_M8__dissector_takes_bodies_apart", bodies_are_taken_apart)
report.end()
