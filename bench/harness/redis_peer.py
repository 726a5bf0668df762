# SPDX-License-Identifier: BSD-3-Clause
"""Redis streams: XADD of 64 bytes through redis-benchmark, 32 commands in a pipeline.

usage: redis_peer.py PORT REPETITIONS
"""
import csv
import io
import json
import os
import subprocess
import sys


def rate(port, argv):
    os.sched_setaffinity(0, {0})
    text = subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", port, "--csv", *argv],
                          check=True, capture_output=True, text=True).stdout
    rows = [r for r in csv.reader(io.StringIO(text)) if r and r[0] != "test"]
    return float(rows[-1][1])


def main():
    port, repetitions = sys.argv[1], int(sys.argv[2])
    add = ["-c", "50", "-n", "500000", "-P", "32",
           "xadd", "stream", "MAXLEN", "~", "1000", "*", "field", "x" * 64]
    one = ["-c", "1", "-n", "5000", "xadd", "stream", "MAXLEN", "~", "1000", "*", "field", "x" * 64]
    rates = [rate(port, add) for _ in range(repetitions)]
    trips = [1e9 / rate(port, one) for _ in range(repetitions)]
    for metric, unit, samples in (("rate", "messages/s", rates), ("round_trip", "ns", trips)):
        print(json.dumps({"scenario": "peer", "peer": "redis-streams", "metric": metric,
                          "unit": unit, "samples": samples}))


main()
