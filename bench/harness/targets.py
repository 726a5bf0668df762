# SPDX-License-Identifier: BSD-3-Clause
"""The targets, as data: each a ratio of two things measured in one report, and its bound."""
import re

import results

# (id, what it says, numerator, denominator, ">=" or "<=", bound); a name is (run, metric). The
# denominator None leaves the numerator as it is.
ROUTER_1K, ROUTER_64K, ROUTER_1M, ROUTER_10M = "memif-1k", "memif-64ki", "memif-1M", "memif-10M"
TARGETS = [
    ("swap-testpmd", "swap-only beside dpdk-testpmd macswap", (ROUTER_1K, "swap"), (ROUTER_1K, "testpmd"), ">=", 0.95),
    ("memif-1k", "rate of swap-only, 1 k Spots", (ROUTER_1K, "router"), (ROUTER_1K, "swap"), ">=", 0.80),
    ("memif-64k", "rate of swap-only, 64 k Spots", (ROUTER_64K, "router"), (ROUTER_64K, "swap"), ">=", 0.55),
    ("memif-1M", "rate of swap-only, 1 M Spots", (ROUTER_1M, "router"), (ROUTER_1M, "swap"), ">=", 0.45),
    ("memif-10M", "rate of swap-only, 10 M Spots", (ROUTER_10M, "router"), (ROUTER_10M, "swap"), ">=", 0.35),
    ("memory-1k", "time of the minimal loop, 1 k Spots", ("memory-1k", "router"), ("memory-1k", "yardstick"), "<=", 1.3),
    ("memory-64k", "time of the minimal loop, 64 k Spots", ("memory-64ki", "router"), ("memory-64ki", "yardstick"), "<=", 1.3),
    ("memory-1M", "time of the minimal loop, 1 M Spots", ("memory-1M", "router"), ("memory-1M", "yardstick"), "<=", 1.3),
    ("idle-spot", "bytes per idle Spot, 10 M Spots", ("memory-10M", "idle_spot"), None, "<=", 512),
    ("trip-p50", "round trip of swap-only, one in flight, p50", ("memif-1k-window1", "trip_p50"), ("memif-1k-window1", "swap_trip_p50"), "<=", 1.2),
    ("trip-p99", "round trip of swap-only, one in flight, p99", ("memif-1k-window1", "trip_p99"), ("memif-1k-window1", "swap_trip_p99"), "<=", 1.5),
    ("open-p999", "p99.9 of swap-only at the same fixed rate, 1 k Spots", (ROUTER_1K, "open_p999"), (ROUTER_1K, "swap_open_p999"), "<=", 3),
    ("beside-nats", "messages a second beside NATS, one to one", (ROUTER_1K, "router"), ("nats-server", "rate"), ">=", 4),
    ("beside-zeromq", "messages a second beside ZeroMQ DEALER-ROUTER, tcp", (ROUTER_1K, "router"), ("zeromq-tcp", "rate"), ">=", 4),
    ("beside-redis", "messages a second beside Redis streams, pipelined", (ROUTER_1K, "router"), ("redis-streams", "rate"), ">=", 12),
    ("beside-udp", "messages a second beside kernel UDP echo", (ROUTER_1K, "router"), ("kernel-udp-echo", "rate"), ">=", 30),
    ("new-memory", "new Spots a second, memory store", ("activation", "memory"), None, ">=", 200e3),
    ("new-sqlite", "new Spots a second, SQLite store, durable", ("activation", "sqlite"), None, ">=", 20e3),
    ("trip-nats", "NATS request-reply beside our round trip", ("nats-server", "round_trip"), ("memif-1k-window1", "trip_p50"), ">=", 50),
]


def shown(value):
    return "not measured" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


class Verdict:
    """One target against one report: `value` is None when the report lacks a figure."""

    def __init__(self, target, found):
        self.id, self.what, top, bottom, self.op, self.bound = target
        self.value = None
        if top in found and (bottom is None or bottom in found):
            over = results.median(found[bottom][1]) if bottom else 1
            self.value = results.median(found[top][1]) / over if over else None
        self.met = self.value is not None and (
            self.value >= self.bound if self.op == ">=" else self.value <= self.bound)

    def text(self):
        return f"{self.what}: {shown(self.value)} (wanted {self.op} {self.bound:,g})"


def judge(report):
    found = results.samples(report)
    return [Verdict(t, found) for t in TARGETS]


def exceptions(path):
    """Target ids that have an entry with a measurement: `## id`, then a line `Measured: …`."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        return set()
    entries = re.split(r"^## ", text, flags=re.M)[1:]
    return {e.split()[0] for e in entries if e.split() and re.search(r"^Measured: \S", e, flags=re.M)}


def check(report, exceptions_path, say):
    """True when every target is met or has an entry in the exceptions' page."""
    excused, good = exceptions(exceptions_path), True
    for v in judge(report):
        if v.met:
            say(f"met       {v.text()}")
        elif v.id in excused:
            say(f"excepted  {v.text()}; see {exceptions_path}, {v.id}")
        else:
            say(f"MISSED    {v.text()}; no entry '## {v.id}' with a 'Measured:' line in {exceptions_path}")
            good = False
    return good
