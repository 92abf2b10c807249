# SPDX-License-Identifier: MIT
"""Arithmetic on runs: medians with their spread, ratios between contenders, multiples of limits."""

from dataclasses import dataclass
from statistics import median

from peers.workloads import SKUA, WORKLOADS


@dataclass(frozen=True)
class Figure:
    median: float
    min: float
    max: float


def summarize(values):
    return Figure(median(values), min(values), max(values))


def values_of(results, workload, name, field=None):
    """A figure of each run, round by round; none if it was not measured in all of them."""
    runs = results["workloads"].get(workload, {}).get(name, {}).get("runs", [])
    field = field or WORKLOADS[workload].field
    return [float(run[field]) for run in runs] if all(field in run for run in runs) else []


def figure_of(results, workload, name, field=None):
    values = values_of(results, workload, name, field)
    return summarize(values) if values else None


def ratio_to_skua(results, workload, name, field=None):
    """How many times as much as Skua a peer takes: the ratio of the medians, and the smallest and
    largest ratio of runs of the same round. None if one was not measured or Skua takes nothing."""
    peer, skua = (values_of(results, workload, who, field) for who in (name, SKUA))
    if not peer or not skua or min(skua) <= 0:
        return None
    pairs = [a / b for a, b in zip(peer, skua)]
    return Figure(median(peer) / median(skua), min(pairs), max(pairs))


def multiple_of_limit(results, workload, limit=None):
    """Skua's median as a multiple of the limit that bounds it; None if there is none."""
    about = WORKLOADS[workload]
    bound = results["limits"].get(limit or about.limit)
    skua = figure_of(results, workload, SKUA)
    return skua.median * about.scale / bound["ns"] if bound and skua else None


def with_summaries(runs_by_workload):
    """The part of results.json that holds the runs."""
    return {workload: {name: {"runs": runs} | vars(summarize(
                [float(run[WORKLOADS[workload].field]) for run in runs]))
            for name, runs in contenders.items()}
            for workload, contenders in runs_by_workload.items()}


def contenders_of(results):
    """Everyone who has been measured in some workload."""
    return {name for contenders in results["workloads"].values() for name in contenders}
