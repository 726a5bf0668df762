#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C decoder against the slow decoder that follows wire.toml: vectors, then mutated frames.

    test_twin.py WIRE_VERDICTS      SPOTLANE_TWIN_FRAMES=1000000 for a longer run
"""
import collections
import json
import os
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import lines  # noqa: E402
import wiretable  # noqa: E402

TABLE = wiretable.load()
TWIN = wiretable.Decoder(TABLE)
NAMES = {0: "taken", **{r["number"]: r["name"].lower() for r in TABLE["reject"]}}
FRAMES = int(os.environ.get("SPOTLANE_TWIN_FRAMES", "200000"))
SEED = 20240229
VECTORS = json.loads((wiretable.ROOT / "tests/vectors/frames.json").read_text())["vectors"]


def c_verdicts(frames):
    stream = b"".join(struct.pack("<H", len(frame)) + frame for frame in frames)
    done = subprocess.run([sys.argv[1]], input=stream, stdout=subprocess.PIPE, check=True)
    return [NAMES[number] for number in done.stdout]


def twin_verdict(frame):
    verdict, header, name, _ = TWIN.decode(frame)
    return TWIN.id_verdict(header, name) if verdict == "taken" else verdict


def interesting(rng, size):
    top = 256 ** size
    return rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 23, 24, 40, 48, 54, 55, 1023, 1024, 1025, 2048, 2500, 16384,
                       top // 2, top // 2 - 1, top - 1, rng.randrange(top)]) % top


def mutate(rng, frame):
    data = bytearray(frame)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        how = rng.randrange(8)
        if how == 0 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[rng.randrange(len(data) + 1):]
        elif how == 2:
            data += rng.randbytes(rng.choice((1, 2, 40, 1024)))
        elif len(data) >= TABLE["header_bytes"]:
            field = rng.choice(TABLE["field"])
            size = min(field["size"], 8)
            at = field["offset"] + rng.randrange(field["size"] - size + 1)
            data[at:at + size] = interesting(rng, size).to_bytes(size, "little")
    return fit(rng, data)


def fit(rng, data):
    """Mostly makes the lengths agree again, so that later checks are reached."""
    if len(data) >= TABLE["header_bytes"] and rng.random() < 0.7:
        rest = len(data) - TABLE["header_bytes"]
        data[7] = min(data[7], rest)
        data[108:110] = struct.pack("<H", min(rest - data[7], 65535))
        if rng.random() < 0.5:
            data[100:104] = struct.pack("<I", rest - data[7])
    return bytes(data)


def compare(frames, wanted):
    for frame, got, want in zip(frames, c_verdicts(frames), wanted, strict=True):
        assert got == want, "C says %s, the table says %s: %s" % (got, want, frame.hex())


def vectors_agree():
    frames = [bytes.fromhex(v["hex"]) for v in VECTORS]
    wanted = [v.get("id_verdict", v["verdict"]) for v in VECTORS]
    assert [twin_verdict(frame) for frame in frames] == wanted
    compare(frames, wanted)


def mutants_agree():
    rng = random.Random(SEED)
    sources = [bytes.fromhex(v["hex"]) for v in VECTORS if v["verdict"] == "taken"]
    seen = collections.Counter()
    for _ in range(0, FRAMES, 10000):
        frames = [mutate(rng, rng.choice(sources)) for _ in range(10000)]
        wanted = [twin_verdict(frame) for frame in frames]
        seen.update(wanted)
        compare(frames, wanted)
    print("# seed %d, %d frames: %s" % (SEED, seen.total(), dict(seen.most_common())))
    missing = set(NAMES.values()) - set(seen)
    assert not missing, "verdicts that no mutant reached: %s" % missing


report = lines.Lines()
report.run("x__both_decoders_agree_on_the_vectors", vectors_agree)
report.run("x__both_decoders_agree_on_mutated_frames", mutants_agree)
report.end()
