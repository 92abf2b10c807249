# SPDX-License-Identifier: MIT
"""The goals of bench/peers/goals.toml, and what figures say to them."""

import dataclasses
import tomllib
from dataclasses import dataclass

from peers.figures import figure_of, multiple_of_limit, ratio_to_skua
from peers.text import number, times
from peers.workloads import SKUA, WORKLOADS, in_order, title

EVERY = "every"  # in place of a peer: each that was measured


@dataclass
class Goal:
    """See the head of goals.toml."""
    workloads: list[str]
    faster_than: dict[str, float] = dataclasses.field(default_factory=dict)
    compared_with: list[str] = dataclasses.field(default_factory=list)
    at_most: float | None = None
    field: str | None = None
    unit: str | None = None
    of_workload: str | None = None
    of_limit: str | None = None


@dataclass(frozen=True)
class Row:
    goal: str
    measured: str
    verdict: str


def read_goals(path):
    """The goals, and what is quoted of runtimes that are not measured."""
    tables = tomllib.loads(path.read_text())
    return [Goal(**table) for table in tables["goal"]], tables.get("quoted", [])


def judge_ratio(ratio, least):
    """Whether a peer takes so many times as much as Skua; `least` 1 means that Skua is ahead."""
    if ratio > least or (ratio == least and least != 1):
        return "met"
    return f"**missed** by {100 * (1 - ratio / least):.0f} %"


def judge_most(value, most):
    if value <= most:
        return "met"
    return f"**missed** by {100 * (value / most - 1):.0f} %" if most > 0 else "**missed**"


def faster_text(workload, least, peer):
    how = "ahead of" if least == 1 else f"at least {least:g}x faster than"
    return f"{workload}: {how} {'every peer' if peer == EVERY else title(peer)}"


def peer_rows(results, workload, least, peer):
    if peer == EVERY:
        names = in_order(results["workloads"].get(workload, {}).keys() - {SKUA})
        if names:
            return [row for name in names for row in peer_rows(results, workload, least, name)]
    ratio = ratio_to_skua(results, workload, peer)
    goal = faster_text(workload, least, peer)
    if ratio is None:
        return [Row(goal, "", "not measured")]
    return [Row(goal, times(ratio), judge_ratio(ratio.median, least))]


def compared_row(results, workload, peer):
    ratio = ratio_to_skua(results, workload, peer)
    return Row(f"{workload}: beside {title(peer)}", times(ratio) if ratio else "",
               "no goal" if ratio else "not measured")


def own_value(results, workload, goal):
    """What a goal about Skua alone is about: a figure, or how many times another."""
    if goal.of_limit:
        return multiple_of_limit(results, workload, goal.of_limit)
    skua = figure_of(results, workload, SKUA, goal.field)
    if not goal.of_workload:
        return skua and skua.median
    other = figure_of(results, goal.of_workload, SKUA)
    return skua.median / other.median if skua and other else None


def own_row(results, workload, goal):
    what = f"{workload}, {goal.field}" if goal.field else workload
    unit = goal.unit or WORKLOADS[workload].unit
    bound = f"{number(goal.at_most)} {unit}"
    if goal.of_limit or goal.of_workload:
        unit = "x"
        bound = f"{goal.at_most:g}x " + (f"the limit `{goal.of_limit}`" if goal.of_limit
                                         else f"a figure of {goal.of_workload}")
    text = f"{what}: at most {bound}"
    value = own_value(results, workload, goal)
    if value is None:
        return Row(text, "", "not measured")
    shown = f"{number(value)}x" if unit == "x" else f"{number(value)} {unit}"
    return Row(text, shown, judge_most(value, goal.at_most))


def was_run(results, workload):
    """With success or not; what nobody asked for needs no verdict."""
    return workload in results["workloads"] or workload in results["dropped"]


def goal_rows(results, goal):
    rows = []
    for workload in goal.workloads:
        if not was_run(results, workload):
            continue
        for peer, least in goal.faster_than.items():
            rows += peer_rows(results, workload, least, peer)
        rows += [compared_row(results, workload, peer) for peer in goal.compared_with]
        if goal.at_most is not None:
            rows.append(own_row(results, workload, goal))
    return rows


def quoted_rows(results, quoted):
    """Skua beside figures that come from elsewhere."""
    rows = []
    for workload, elsewhere in quoted["figures"].items():
        if not was_run(results, workload):
            continue
        goal = f"{workload}: ahead of {quoted['name']}'s {number(elsewhere)} " \
               f"{WORKLOADS[workload].unit} (quoted)"
        skua = figure_of(results, workload, SKUA)
        rows.append(Row(goal, f"{number(elsewhere / skua.median)}x",
                        judge_ratio(elsewhere / skua.median, 1)) if skua
                    else Row(goal, "", "not measured"))
    return rows
