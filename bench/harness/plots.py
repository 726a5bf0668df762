# SPDX-License-Identifier: BSD-3-Clause
"""Plots as SVG text, drawn by gnuplot."""
import subprocess

STYLE = """set terminal svg size 760,340 dynamic enhanced font 'sans-serif,13' background '#ffffff'
set border 3 lc '#888888'
set grid ytics lc '#dddddd' lt 1
set tics nomirror
set style line 1 lc '#1f5fa8' lw 2 pt 7 ps 0.8
set style line 2 lc '#d9822b' lw 2 pt 5 ps 0.8
set style line 3 lc '#3a8f5c' lw 2 pt 9 ps 0.9
set key outside top left horizontal
set yrange [0:*]
"""


def block(name, rows):
    lines = "\n".join(" ".join(str(c) for c in row) for row in rows)
    return f"${name} << END\n{lines}\nEND\n"


def draw(script):
    done = subprocess.run(["gnuplot"], input=STYLE + script, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "<svg" not in done.stdout:
        raise RuntimeError(f"gnuplot: {done.stderr.strip()[:400]}")
    return done.stdout[done.stdout.index("<svg"):]


def lines(series, ylabel, xlabel, logx=True):
    """series: [(title, [(x, median, low, high)])]."""
    script = f"set ylabel '{ylabel}'\nset xlabel '{xlabel}'\n"
    if logx:
        script += "set logscale x 10\nset format x '10^{%L}'\nset xrange [700:*]\n"
    for i, (_, rows) in enumerate(series):
        script += block(f"s{i}", rows)
    parts = []
    for i, (title, _) in enumerate(series):
        parts.append(f"$s{i} using 1:2:3:4 with yerrorlines ls {i % 3 + 1} title '{title}'")
    return draw(script + "plot " + ", ".join(parts) + "\n")


def bars(rows, xlabel, log=False):
    """rows: [(label, value)], drawn as horizontal bars from the top down."""
    top = len(rows) - 1
    data = block("b", [(f'"{label}"', value, top - i) for i, (label, value) in enumerate(rows)])
    tics = ", ".join(f'"{label}" {top - i}' for i, (label, _) in enumerate(rows))
    script = f"""unset key
set xlabel '{xlabel}'
set ytics ({tics})
set yrange [-0.6:{top + 0.6}]
set grid noytics xtics
set style fill solid 0.85 noborder
"""
    low = "0"
    if log:
        script += "set logscale x 10\n"
        low = f"{min(v for _, v in rows) / 3:g}"
        script += f"set xrange [{low}:*]\n"
    else:
        script += "set xrange [0:*]\n"
    return draw(data + script +
                f"plot $b using ({low}):3:({low}):2:($3-0.32):($3+0.32) with boxxyerror lc '#1f5fa8', "
                "$b using 2:3:(sprintf('  %.3g', $2)) with labels left\n")
