# SPDX-License-Identifier: MIT
"""What results.json says, as Markdown: the sections of a page, by name."""

from peers.figures import contenders_of, figure_of, multiple_of_limit, ratio_to_skua
from peers.goals import goal_rows, quoted_rows
from peers.text import number, spread, table, times
from peers.workloads import SKUA, WORKLOADS, in_order, title


def skua_cell(results, workload):
    figure = figure_of(results, workload, SKUA)
    return f"{number(figure.median)} {spread(figure)} {WORKLOADS[workload].unit}"


def limit_cell(results, workload):
    multiple = multiple_of_limit(results, workload)
    return f"{number(multiple)}x {WORKLOADS[workload].limit}" if multiple is not None else ""


def peer_cell(results, workload, peer):
    """The ratio to Skua; where Skua takes nothing, what the peer takes."""
    ratio = ratio_to_skua(results, workload, peer)
    if ratio:
        return times(ratio)
    figure = figure_of(results, workload, peer)
    return f"{number(figure.median)} {WORKLOADS[workload].unit}" if figure else ""


def ratio_table(results):
    peers = in_order(contenders_of(results) - {SKUA})
    rows = [[workload, skua_cell(results, workload), limit_cell(results, workload),
             *(peer_cell(results, workload, peer) for peer in peers)]
            for workload in results["workloads"]]
    return table(["workload", "Skua", "of its limit", *map(title, peers)], rows)


def limit_table(results):
    rows = [[name, f"{number(limit['ns'])} ({number(limit['ns_min'])}-{number(limit['ns_max'])})"]
            for name, limit in results["limits"].items()]
    return table(["limit", "ns"], rows)


def goal_table(results, goals, quoted):
    rows = [row for goal in goals for row in goal_rows(results, goal)]
    rows += [row for source in quoted for row in quoted_rows(results, source)]
    return table(["goal", "measured", "verdict"],
                 [[row.goal, row.measured, row.verdict] for row in rows])


def quoted_note(quoted):
    return "".join(f"\n{source['name']}, quoted: {source['note']}\n" for source in quoted)


def missing_lines(results):
    """A line for each that has no figures."""
    lines = [f"- {title(name)} is not here: it {why}\n"
             for name, why in results["skipped"].items()]
    lines += [f"- {title(name)} has no {workload}: it {why}\n"
              for workload, missing in results["dropped"].items()
              for name, why in missing.items()]
    return "\n" + "".join(lines) if lines else ""


def origin(results):
    """Where the figures come from."""
    machine, versions = results["machine"], results["versions"]
    lines = [f"{results['date']}, commit {results['commit']}, {results['workers']} workers, "
             f"{results['rounds']} rounds",
             f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
             f"{machine['kernel']}, governor {machine['governor']}",
             f"Skua: {results['build']['compiler']}, `{results['build']['flags']}`",
             *(f"{title(name)}: {versions[name]}" for name in in_order(versions))]
    return "".join(f"- {line}\n" for line in lines)


def sections(results, goals, quoted):
    return {"peers": f"{ratio_table(results)}\n{origin(results)}{missing_lines(results)}",
            "limits": limit_table(results),
            "goals": f"{goal_table(results, goals, quoted)}{quoted_note(quoted)}"}
