# SPDX-License-Identifier: MIT
"""Runs servers in turn, each with the same clients. A workload is finished before the next one
begins; within it every round has a run of each server, and begins with another one."""

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from netbench.figures import KV_COMMANDS, KV_PIPELINES, SKUA, WORKLOADS, key_of, kv_field
from netbench.servers import cpu_seconds, cpus_for, serving, start_on
from peers.contenders import Trouble
from peers.measure import Progress, orders, run_program

RUN_SECONDS = 120
KV_CLIENTS = 50
KV_REQUESTS = {1: 50000, 16: 400000}  # by how many are sent together
KV_COUNTED = 20000  # requests under strace
STRACE_SECONDS = 20


class Calls:
    """Counts the system calls of a process while the body of the `with` runs: `calls`, by name."""

    def __init__(self, pid):
        self.pid = pid
        self.calls = {}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skua-")
        self.path = Path(self.folder.name) / "calls"
        try:
            self.strace = subprocess.Popen(["strace", "-f", "-c", "-o", self.path, "-p",
                                            str(self.pid)], stderr=subprocess.PIPE, text=True)
        except OSError as error:
            self.folder.cleanup()
            raise Trouble(f"cannot be traced: {error}") from error
        line = self.strace.stderr.readline()
        if "attached" not in line:
            self.__exit__()
            raise Trouble(f"cannot be traced: {line.strip()}")
        return self

    def __exit__(self, *_):
        if self.strace.poll() is None:
            self.strace.send_signal(signal.SIGINT)
        self.strace.communicate(timeout=STRACE_SECONDS)
        if self.path.exists():
            self.calls = calls_of(self.path.read_text())
        self.folder.cleanup()


def calls_of(text):
    """The table of `strace -c`: how often each call was made, by name."""
    lines = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +(\w+)$", text, re.MULTILINE)
    return {name: int(count) for count, name in lines if name != "total"}


def per_operation(calls, operations):
    """What a run says of its calls; those that are rare are part of the sum only."""
    each = {name: count / operations for name, count in calls.items()}
    return {"calls": sum(each.values()),
            "by_name": {name: round(count, 3) for name, count in sorted(each.items())
                        if count >= 0.005}}


def play_clients(load, workload, workers, running, seconds):
    """What the load generator prints."""
    about = WORKLOADS[workload]
    argv = [load, about.load, str(running.ports[about.port]), "--server", str(running.pid),
            "--seconds", str(int(seconds)), *about.options]
    return json.loads(run_program(argv, seconds + 10, start_on(cpus_for(workers)[0])))


def request_many(port, command, pipeline, count, workers, seconds):
    """redis-benchmark, which must say that it is through."""
    argv = ["redis-benchmark", "-p", str(port), "-c", str(KV_CLIENTS), "-n", str(count),
            "-P", str(pipeline), "-t", command, "--csv"]
    out = run_program(argv, seconds, start_on(cpus_for(workers)[0]))
    if f'"{command.upper()}"' not in out:
        raise Trouble(f"does not answer {command}")


def run_kv(workers, running, seconds):
    """CPU time of each kind of request. Keys are set before they are asked for."""
    run = {}
    for pipeline in KV_PIPELINES:
        for command in sorted(KV_COMMANDS, key=lambda command: command != "set"):
            before = cpu_seconds(running.pid)
            count = KV_REQUESTS[pipeline]
            request_many(running.ports["kv"], command, pipeline, count, workers, seconds)
            used = cpu_seconds(running.pid) - before
            run[kv_field(command, pipeline)] = used * 1e6 / count
    return run


def run_kv_calls(workers, running, seconds):
    port = running.ports["kv"]
    request_many(port, "set", 1, KV_CLIENTS, workers, seconds)
    with Calls(running.pid) as counted:
        request_many(port, "get", 1, KV_COUNTED, workers, seconds)
    return per_operation(counted.calls, KV_COUNTED)


def run_once(server, workload, workers, load, seconds):
    """The figures of one run."""
    try:
        with serving(server, workers) as running:
            if workload == "kv":
                return run_kv(workers, running, seconds)
            if workload == "kv-calls":
                return run_kv_calls(workers, running, seconds)
            if workload == "echo-calls":
                with Calls(running.pid) as counted:
                    run = play_clients(load, workload, workers, running, seconds)
                return per_operation(counted.calls, run["total"])
            return play_clients(load, workload, workers, running, seconds)
    except ValueError as error:
        raise Trouble(f"is measured in vain: {error!r}") from error
    except OSError as error:
        raise Trouble(f"cannot be measured: {error}") from error


def rounds_of(workload, options):
    return WORKLOADS[workload].rounds or options.rounds


def measure_workload(workload, workers, servers, load, options, progress):
    """The runs of each server by name, and why others have none."""
    by_name = {server.name: server for server in servers}
    runs, dropped = {name: [] for name in by_name}, {}
    rounds = rounds_of(workload, options)
    for number, order in enumerate(orders(list(by_name), rounds), 1):
        for name in order:
            progress.next_run(key_of(workload, workers), number, rounds, name)
            if name in dropped:
                continue
            try:
                runs[name].append(run_once(by_name[name], workload, workers, load,
                                           options.seconds))
            except Trouble as trouble:
                dropped[name] = str(trouble)
                progress.say(f"{key_of(workload, workers)}: {name} is dropped: it {trouble}")
    return {name: runs[name] for name in by_name if name not in dropped}, dropped


def measure_all(workloads, servers, load, options):
    """All runs by workload with workers, and server; and why some have none."""
    entries = {(workload, workers): [server for server in servers if workload in server.workloads]
               for workload in workloads for workers in options.workers}
    progress = Progress(sum(rounds_of(workload, options) * len(takers)
                            for (workload, _), takers in entries.items()), "bench_net")
    results, dropped = {}, {}
    for (workload, workers), takers in entries.items():
        key = key_of(workload, workers)
        if not any(server.name == SKUA for server in takers):
            continue  # there is nothing to compare with
        runs, missing = measure_workload(workload, workers, takers, load, options, progress)
        results[key] = {name: {"runs": those} for name, those in runs.items()}
        if missing:
            dropped[key] = missing
    progress.show("")
    return results, dropped
