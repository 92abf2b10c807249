# SPDX-License-Identifier: MIT
"""What results.json says, as Markdown: the sections of a page, by name."""

import tomllib

from netbench.figures import FIGURES, SKUA, in_order, key_of, title
from peers.figures import Figure, figure_of, ratio_to_skua
from peers.goals import judge_most, judge_ratio
from peers.text import number, spread, table, times


def rows_of(results):
    """The figures that were measured, with the number of workers."""
    return [(figure, workers) for figure in FIGURES.values() for workers in results["workers"]
            if key_of(figure.workload, workers) in results["workloads"]]


def measured(results, figure, workers, name):
    return figure_of(results, key_of(figure.workload, workers), name, figure.field)


def ratio(results, figure, workers, name):
    return ratio_to_skua(results, key_of(figure.workload, workers), name, figure.field)


def best_ratio(results, figure, workers, name):
    """Of the smallest figures, which what else runs on the machine has touched least."""
    own, other = (measured(results, figure, workers, who) for who in (SKUA, name))
    return other.min / own.min if own and other and own.min > 0 else None


def figure_text(value, unit):
    """With its spread, if there is one."""
    middle = number(value.median)
    return f"{middle} {unit}" if value.min == value.max else f"{middle} {spread(value)} {unit}"


def peer_cell(results, figure, workers, peer):
    """The multiple of Skua's figure; where that was not measured, the peer's own."""
    multiple = ratio(results, figure, workers, peer)
    if multiple:
        return f"{number(multiple.median)}x" if multiple.min == multiple.max else times(multiple)
    own = measured(results, figure, workers, peer)
    return figure_text(own, figure.unit) if own else ""


def skua_cell(results, figure, workers):
    value = measured(results, figure, workers, SKUA)
    return figure_text(value, figure.unit) if value else ""


def ratio_table(results):
    peers = in_order({name for servers in results["workloads"].values() for name in servers}
                     - {SKUA})
    rows = [[figure.name, str(workers), skua_cell(results, figure, workers),
             *(peer_cell(results, figure, workers, peer) for peer in peers)]
            for figure, workers in rows_of(results)]
    return table(["figure", "workers", "Skua", *map(title, peers)], rows)


def calls_lines(results):
    """Which system calls there are, in words."""
    lines = []
    for key, servers in results["workloads"].items():
        for name in in_order(servers):
            runs = servers[name]["runs"]
            if runs and "by_name" in runs[0]:
                calls = ", ".join(f"{call} {count:.2f}"
                                  for call, count in runs[0]["by_name"].items())
                lines.append(f"- {key}, {title(name)}, by {runs[0]['counted_by']}: {calls}\n")
    return "".join(lines)


# ---- goals ----


def verdict_of(best, medians):
    """Best runs alone would hide a server with a good and a bad mode, medians alone would judge the
    other work on the machine: a goal is met if both say so."""
    if best == "met" and medians == "met":
        return "met"
    if "met" in (best, medians):
        return f"**open**: met by {'best runs' if best == 'met' else 'medians'} only"
    return medians


def read_goals(path):
    return tomllib.loads(path.read_text())["goal"]


def own_row(figure, text, results, workers, goal):
    value = measured(results, figure, workers, SKUA)
    bound = f"{text}: at most {number(goal['at_most'])} {figure.unit}"
    if value is None:
        return [bound, "", "", "not measured"]
    return [bound, f"{number(value.min)} {figure.unit}", figure_text(value, figure.unit),
            verdict_of(judge_most(value.min, goal["at_most"]),
                       judge_most(value.median, goal["at_most"]))]


def of_row(figure, text, results, workers, goal):
    """At most so many times what a peer takes."""
    multiple = ratio(results, figure, workers, goal["of"])
    bound = f"{text}: at most {goal['at_most']:g}x {title(goal['of'])}"
    if multiple is None:
        return [bound, "", "", "not measured"]
    best = 1 / best_ratio(results, figure, workers, goal["of"])
    inverse = Figure(1 / multiple.median, 1 / multiple.max, 1 / multiple.min)
    return [bound, f"{number(best)}x", times(inverse),
            verdict_of(judge_most(best, goal["at_most"]),
                       judge_most(inverse.median, goal["at_most"]))]


def peer_row(figure, text, results, workers, peer, has_goal):
    multiple = ratio(results, figure, workers, peer)
    bound = f"{text}: {'less than' if has_goal else 'beside'} {title(peer)}"
    if multiple is None:
        return [bound, "", "", "not measured"]
    best = best_ratio(results, figure, workers, peer)
    return [bound, f"{number(best)}x", times(multiple),
            verdict_of(judge_ratio(best, 1), judge_ratio(multiple.median, 1))
            if has_goal else "no goal"]


def goal_rows(results, goal):
    rows = []
    for figure, workers in rows_of(results):
        if figure.name not in goal["figures"]:
            continue
        text = f"{figure.name}, {workers} worker{'s' if workers > 1 else ''}"
        if "at_most" in goal:
            make = of_row if "of" in goal else own_row
            rows.append(make(figure, text, results, workers, goal))
        for peer in goal.get("less_than", []):
            rows.append(peer_row(figure, text, results, workers, peer, True))
        for peer in goal.get("beside", []):
            rows.append(peer_row(figure, text, results, workers, peer, False))
    return rows


def goal_table(results, goals):
    return table(["goal", "best runs", "medians", "verdict"],
                 [row for goal in goals for row in goal_rows(results, goal)])


# ---- the page ----


def missing_lines(results):
    lines = [f"- {title(name)} is not here: it {why}\n"
             for name, why in results["skipped"].items()]
    lines += [f"- {title(name)} has no {key}: it {why}\n"
              for key, missing in results["dropped"].items() for name, why in missing.items()]
    return "".join(lines)


def origin(results):
    """Where the figures come from."""
    machine, versions = results["machine"], results["versions"]
    lines = [f"{results['date']}, commit {results['commit']}, {results['rounds']} rounds, "
             f"load average {results['load']} before",
             f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
             f"{machine['kernel']}, governor {machine['governor']}",
             f"Skua and plain epoll: {results['build']['compiler']}, "
             f"`{results['build']['flags']}`",
             *(f"{title(name)}: {versions[name]}" for name in in_order(versions)
               if versions[name])]
    return "".join(f"- {line}\n" for line in lines)


def sections(results, goals):
    notes = f"{calls_lines(results)}{origin(results)}{missing_lines(results)}"
    return {"net": f"{ratio_table(results)}\n{notes}",
            "net-goals": goal_table(results, goals)}
