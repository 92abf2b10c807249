# SPDX-License-Identifier: MIT
"""The chart of the ratios: a cluster of bars for each workload, a bar for each peer, from Skua's 1
up (slower) or down (faster) on a logarithmic axis, with a whisker for the spread."""

import itertools
import subprocess

from peers.contenders import Trouble
from peers.figures import contenders_of, ratio_to_skua
from peers.workloads import SKUA, WORKLOADS, in_order, title

# Told apart by people who do not see all colours, too.
COLOURS = ["#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#999999"]
GAP = 0.9  # between clusters, in bars

HEAD = """\
set terminal svg size 900,400 font "sans-serif,12" background "#ffffff"
set output
set title "Time per operation, Skua = 1 (log scale; lower is faster)" font ",14"
set logscale y
set yrange [{lowest}:{highest}]
set ytics ({tics}) nomirror
set grid ytics linetype 1 linecolor "#dddddd"
set xrange [{first}:{last}]
set xtics ({names}) scale 0 font ",11"
set border 3 linecolor "#444444"
set key outside bottom center horizontal reverse Left samplen 1 width 1
set style fill solid border -1
set arrow from graph 0, first 1 to graph 1, first 1 nohead front linewidth 2 linecolor "#000000"
set label "Skua" at graph 1, first 1 offset 0.5,0 font ",12"
set rmargin 7
"""


def bars_of(results):
    """The bars of each peer as (position, ratio), and the middle of each cluster by workload."""
    peers = in_order(contenders_of(results) - {SKUA})
    bars, middles, at = {}, {}, 0.0
    for workload in (name for name in results["workloads"] if WORKLOADS[name].on_chart):
        first = at
        for peer in peers:
            ratio = ratio_to_skua(results, workload, peer)
            if ratio:
                bars.setdefault(peer, []).append((at, ratio))
                at += 1
        if at > first:
            middles[workload] = (first + at - 1) / 2
            at += GAP
    return {peer: bars[peer] for peer in peers if peer in bars}, middles


def tics_between(lowest, highest):
    """1, 2, 5, 10, ... and their inverses."""
    tics = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 2, 5)]
    return [tic for tic in tics if lowest <= tic <= highest]


def script_of(results):
    """The commands for gnuplot."""
    bars, middles = bars_of(results)
    ratios = [ratio for rows in bars.values() for _, ratio in rows]
    if not ratios:
        raise Trouble("nothing to draw")
    lowest = min(0.5, *(ratio.min / 1.2 for ratio in ratios))
    highest = max(2, *(ratio.max * 1.2 for ratio in ratios))
    last = max(at for rows in bars.values() for at, _ in rows)
    tics = ", ".join(f'"{tic:g}x" {tic:g}' for tic in tics_between(lowest, highest))
    names = ", ".join(f'"{name}" {at:g}' for name, at in middles.items())
    head = HEAD.format(lowest=lowest, highest=highest, tics=tics, names=names, first=-GAP - 0.5,
                       last=last + GAP + 0.5)
    return head + "".join(data_of(peer, rows) for peer, rows in bars.items()) + plot_of(bars)


def data_of(peer, rows):
    lines = [f"{at:g} {ratio.median:g} {ratio.min:g} {ratio.max:g}\n" for at, ratio in rows]
    return f"${peer} << END\n{''.join(lines)}END\n"


def plot_of(bars):
    parts = []
    for peer, colour in zip(bars, itertools.cycle(COLOURS)):
        box = "1:(1):($1-0.5):($1+0.5):($2<1?$2:1):($2<1?1:$2)"
        parts += [f'${peer} using {box} with boxxyerror linecolor "{colour}" title "{title(peer)}"',
                  f'${peer} using 1:3:(0):($4-$3) with vectors nohead linecolor "#333333" notitle']
    return "plot " + ", \\\n  ".join(parts) + "\n"


def draw(results, path):
    script = script_of(results)
    try:
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise Trouble(f"gnuplot cannot be run: {error}") from error
    if done.returncode != 0:
        raise Trouble(f"gnuplot fails: {done.stderr.strip()}")
    path.write_text(done.stdout)
