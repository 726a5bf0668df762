# SPDX-License-Identifier: BSD-3-Clause
"""A report file: what was measured, on what machine, with the raw samples of every run."""
import json
import os
import pathlib
import platform
import statistics
import time

FORMAT = 1


def machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in cpuinfo.splitlines()
                  if line.startswith("model name")), "unknown")
    meminfo = pathlib.Path("/proc/meminfo").read_text().splitlines()
    memory = {line.split(":")[0]: int(line.split()[1]) for line in meminfo}
    governor = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "cpu": model, "cpus": os.cpu_count(), "memory_mib": memory["MemTotal"] // 1024,
        "hugepages": memory["HugePages_Total"], "hugepage_kib": memory["Hugepagesize"],
        "kernel": platform.release(),
        "power": governor.read_text().strip() if governor.exists() else "not shown to this machine",
        "virtual": "hypervisor" in cpuinfo,
    }


def new():
    return {"format": FORMAT, "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "machine": machine(), "runs": [], "missing": []}


def load(path):
    with open(path, encoding="utf-8") as f:
        report = json.load(f)
    if report.get("format") != FORMAT:
        raise ValueError(f"{path}: format {report.get('format')}, this program reads {FORMAT}")
    return report


def save(report, path):
    """Whole or not at all: a report being written is never read half."""
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1)
    os.replace(partial, path)


def samples(report):
    """{(run name, metric): (unit, [samples])}; a run name is scenario plus its parameters."""
    found = {}
    for run in report["runs"]:
        for obj in run["objects"]:
            if obj["scenario"] == "peer":
                found[obj["peer"], obj["metric"]] = (obj["unit"], obj["samples"])
                continue
            name = run_name(obj)
            for metric, m in obj["metrics"].items():
                found[name, metric] = (m["unit"], m["samples"])
    return found


def run_name(obj):
    if obj["scenario"] == "activation":
        return "activation"
    extra = "".join(f"-{k}{obj['parameters'][k]}" for k in ("window", "payload")
                    if k in obj["parameters"] and obj["parameters"][k] != DEFAULTS[k])
    return f"{obj['scenario']}-{short(obj['parameters']['spots'])}{extra}"


DEFAULTS = {"window": 512, "payload": 64}


def short(n):
    for unit, letter in ((1000000, "M"), (1000, "k")):
        if n % unit == 0:
            return f"{n // unit}{letter}"
    return f"{n // 1024}ki" if n % 1024 == 0 else str(n)


def median(values):
    return statistics.median(values)
