# SPDX-License-Identifier: MIT
"""Runs contenders in turn. A workload is finished before the next one begins; within it every round
has a run of each contender, so that those that are compared have run at nearly the same time; and
each round begins with another one. Each run is a fresh program."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from peers.contenders import Trouble
from peers.workloads import SKUA, WORKLOADS

RUN_SECONDS = 120
AUTOGROUP_NICE = "-15"


def lift_priority():
    """Where the kernel shares its time among sessions, what runs in others counts for less."""
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(AUTOGROUP_NICE)


def run_program(argv, seconds, prepare=lift_priority):
    """What a program prints. It has a session of its own; all of that ends with it."""
    # Between fork and exec only: this program has one thread.
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True,
                          preexec_fn=prepare) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"takes more than {seconds:g} s") from error
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        last = err.strip().rpartition("\n")[2]
        raise Trouble(f"fails with status {process.returncode}: {last}")
    return out


def run_once(contender, workload, workers, seconds):
    """The JSON object of one run."""
    try:
        result = json.loads(run_program(contender.command(workload, workers), seconds))
        if "ops" in result:
            result["wall_ms"] = result["ops"] * result["ns_per_op"] / 1e6
        float(result[WORKLOADS[workload].field])
    except (ValueError, TypeError, KeyError) as error:
        raise Trouble(f"does not print its figure: {error!r}") from error
    except OSError as error:
        raise Trouble(f"cannot be run: {error}") from error
    return result


def orders(names, rounds):
    """Whose turn it is in each round."""
    for number in range(rounds):
        step = number % len(names)
        yield names[step:] + names[:step]


class Progress:
    """One line on a terminal, nothing elsewhere."""

    def __init__(self, runs, tool="bench_peers"):
        self.left = runs
        self.tool = tool
        self.tells = sys.stderr.isatty()

    def show(self, text):
        if self.tells:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def next_run(self, workload, number, rounds, name):
        self.show(f"{workload}: round {number} of {rounds}, {name} ({self.left} runs left)")
        self.left -= 1

    def say(self, text):
        self.show("")
        print(f"{self.tool}: {text}", file=sys.stderr)


def measure_workload(workload, contenders, options, progress):
    """The runs of each contender by name, and why others have none."""
    by_name = {contender.name: contender for contender in contenders}
    runs = {name: [] for name in by_name}
    dropped = {}
    for number, order in enumerate(orders(list(by_name), options.rounds), 1):
        for name in order:
            progress.next_run(workload, number, options.rounds, name)
            if name in dropped:
                continue
            try:
                runs[name].append(run_once(by_name[name], workload, options.workers,
                                           options.seconds))
            except Trouble as trouble:
                dropped[name] = str(trouble)
                progress.say(f"{workload}: {name} is dropped: it {trouble}")
    return {name: runs[name] for name in by_name if name not in dropped}, dropped


def measure_all(workloads, skua, peers, options):
    """All runs by workload and contender, and why some have none."""
    entries = {workload: [skua, *(peer for peer in peers if workload in peer.workloads)]
               for workload in workloads}
    progress = Progress(options.rounds * sum(map(len, entries.values())))
    results, dropped = {}, {}
    for workload, contenders in entries.items():
        runs, missing = measure_workload(workload, contenders, options, progress)
        if SKUA in runs:  # else there is nothing to compare with
            results[workload] = runs
        if missing:
            dropped[workload] = missing
    progress.show("")
    return results, dropped


def measure_limits(program):
    """What the machine can do at best: nanoseconds by name."""
    lines = run_program([program, "--json"], RUN_SECONDS).splitlines()
    limits = [json.loads(line) for line in lines]
    return {limit.pop("limit"): limit for limit in limits}
