# SPDX-License-Identifier: BSD-3-Clause
"""A report as one self-contained page."""
import html

import plots
import results
import targets

CSS = """body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:54rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.7rem}h2{font-size:1.2rem;margin-top:2.2rem}svg{max-width:100%;height:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}.met{color:#256b3f}.missed{color:#a33}
.note{color:#555;font-size:.92rem}"""

PEERS = (("kernel-udp-echo", "kernel UDP echo"), ("redis-streams", "Redis streams (XADD, pipelined)"),
         ("zeromq-inproc", "ZeroMQ DEALER-ROUTER, inproc"), ("zeromq-ipc", "ZeroMQ DEALER-ROUTER, ipc"),
         ("zeromq-tcp", "ZeroMQ DEALER-ROUTER, tcp"), ("nats-server", "NATS, one to one"))


def text(value):
    return html.escape(str(value))


def table(head, rows):
    cells = "".join(f"<th>{text(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(c if c.startswith("<td") else f"<td>{text(c)}</td>" for c in row)
                   + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"


def number(value):
    return f'<td class="n">{text(value)}</td>'


def section(title, *parts):
    return f"<h2>{text(title)}</h2>" + "".join(parts)


def note(words):
    return f'<p class="note">{text(words)}</p>'


def spread(values):
    return results.median(values), min(values), max(values)


def by_spots(found, scenario, metric, scale):
    rows = []
    for spots in (1000, 65536, 1000000, 10000000):
        key = (f"{scenario}-{results.short(spots)}", metric)
        if key in found:
            mid, low, high = spread(found[key][1])
            rows.append((spots, mid * scale, low * scale, high * scale))
    return rows


def curves(found, scenario, metrics, scale, ylabel):
    series = [(title, by_spots(found, scenario, metric, scale)) for metric, title in metrics]
    series = [s for s in series if s[1]]
    return plots.lines(series, ylabel, "Spots") if series else note("Not measured in this run.")


def peer_bars(found, metric, ours, scale, label, log):
    rows = [(name, results.median(found[key, metric][1]) * scale)
            for key, name in PEERS if (key, metric) in found]
    for key, name in ours:
        if key in found:
            rows.append((name, results.median(found[key][1]) * scale))
    return plots.bars(rows, label, log) if rows else note("Not measured in this run.")


def verdicts(report):
    rows = []
    for v in targets.judge(report):
        state = ("met" if v.met else "missed") if v.value is not None else "not measured"
        css = "met" if v.met else "missed"
        rows.append((v.what, number("" if v.value is None else targets.shown(v.value)),
                     number(f"{v.op} {v.bound:,g}"), f'<td class="{css}">{state}</td>'))
    return table(("ratio", "measured", "wanted", ""), rows)


def raw(report):
    rows = []
    for (run, metric), (unit, values) in sorted(results.samples(report).items()):
        mid, low, high = spread(values)
        rows.append((f"{run} {metric}", unit, number(f"{mid:,.5g}"), number(f"{low:,.5g}"),
                     number(f"{high:,.5g}"), number(len(values))))
    return table(("what", "unit", "median", "least", "most", "samples"), rows)


def conditions(report):
    rows = [(r["title"], number(r["noise"]["others_percent"]), number(r["noise"]["stolen_percent"]),
             number(r["noise"]["switched_away"]), number(r["noise"]["tries"]),
             "disturbed" if r["noise"]["disturbed"] else "quiet") for r in report["runs"]]
    return table(("run", "others' CPU %", "stolen %", "switched away", "tries", ""), rows)


def machine_line(report):
    m = report["machine"]
    kind = "a virtual machine" if m["virtual"] else "a physical machine"
    return (f"{report['started']}, {m['cpu']}, {m['cpus']} CPUs, {kind}, {m['memory_mib']:,} MiB, Linux "
            f"{m['kernel']}, {m['hugepages']} hugepages of {m['hugepage_kib']} KiB, power: {m['power']}.")


def render(report):
    found = results.samples(report)
    handoff = [v for (_, metric), (_, values) in found.items() if metric == "handoff" for v in values]
    crossing = (f" A cache line crossed between the two CPUs in {results.median(handoff):.0f} ns one way."
                if handoff else "")
    million = 1e-6
    parts = [
        "<h1>Spotlane: how fast it is on this machine</h1>",
        note(machine_line(report) + crossing),
        "<p>Requests of 64 bytes, each answered by a handler that counts, to Spots drawn uniformly. "
        "Every reply is checked. <em>Swap only</em> is the same process with the same frames and port, "
        "doing nothing but exchanging two addresses: the floor. Compare ratios, not absolute figures: "
        "these were taken in one run, alternately.</p>",
        section("Targets", verdicts(report)),
        section("Rate over memif, by number of Spots",
                curves(found, "memif", (("router", "router"), ("swap", "swap only"),
                                        ("testpmd", "dpdk-testpmd")), million, "million a second")),
        section("Time in the router, frames in memory, by number of Spots",
                curves(found, "memory", (("router", "router"), ("yardstick", "minimal loop"),
                                         ("swap", "swap only")), 1, "ns a message")),
        section("Beside other systems, messages a second",
                peer_bars(found, "rate", ((("memif-1k", "router"), "Spotlane over memif"),), million,
                          "million messages a second (logarithmic)", True),
                note("64 bytes, the same two CPUs, each in its own best way; bench/README.md says what "
                     "each does and does not do for the message.")),
        section("Beside other systems, one round trip",
                peer_bars(found, "round_trip",
                          ((("memif-1k-window1", "trip_p50"), "Spotlane over memif"),), 1e-3,
                          "microseconds (logarithmic)", True)),
        section("Memory of one idle Spot",
                curves(found, "memory", (("idle_spot", "bytes an idle Spot"),), 1, "bytes")),
        section("Conditions of each run", conditions(report)),
        section("All figures", raw(report)),
    ]
    if report["missing"]:
        parts.insert(3, note("Not run: " + "; ".join(report["missing"])))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Spotlane bench</title>'
            f"<style>{CSS}</style></head><body>{''.join(parts)}</body></html>\n")
