# SPDX-License-Identifier: MIT
"""Runs servers in turn, each with the same clients. A workload is finished before the next one
begins; within it every round has a run of each server, and begins with another one."""

import json

from netbench.calls import per_operation, run_counted
from netbench.figures import KV_COMMANDS, KV_PIPELINES, SKUA, WORKLOADS, key_of, kv_field
from netbench.servers import cpu_seconds, cpus_for, serving, start_on
from peers.contenders import Trouble
from peers.measure import Progress, orders, run_program

RUN_SECONDS = 120
KV_CLIENTS = 50
KV_REQUESTS = {1: 30000, 16: 240000}  # by how many are sent together
KV_COUNTED = 20000  # requests whose calls are counted


def play_clients(load, workload, workers, running, seconds):
    """What the load generator prints, and if calls are counted, those."""
    about = WORKLOADS[workload]
    argv = [load, about.load, str(running.ports[about.port]), "--server", str(running.pid),
            "--seconds", str(int(seconds)), *about.options]
    seconds += 10  # it ends by itself
    prepare = start_on(cpus_for(workers)[0])
    if not about.counts_calls:
        return json.loads(run_program(argv, seconds, prepare))
    out, calls = run_counted(argv, running.pid, seconds, prepare)
    return per_operation(calls, json.loads(out)["total"])


def benchmark(port, command, pipeline, count):
    """The command line of redis-benchmark."""
    return ["redis-benchmark", "-p", str(port), "-c", str(KV_CLIENTS), "-n", str(count),
            "-P", str(pipeline), "-t", command, "--csv"]


def expect_answers(out, command):
    if f'"{command.upper()}"' not in out:
        raise Trouble(f"does not answer {command}")


def run_kv(workers, running, seconds):
    """CPU time of each kind of request. Keys are set before they are asked for."""
    run, prepare = {}, start_on(cpus_for(workers)[0])
    for pipeline in KV_PIPELINES:
        for command in sorted(KV_COMMANDS, key=lambda command: command != "set"):
            before = cpu_seconds(running.pid)
            count = KV_REQUESTS[pipeline]
            expect_answers(run_program(benchmark(running.ports["kv"], command, pipeline, count),
                                       seconds, prepare), command)
            used = cpu_seconds(running.pid) - before
            run[kv_field(command, pipeline)] = used * 1e6 / count
    return run


def run_kv_calls(workers, running, seconds):
    port, prepare = running.ports["kv"], start_on(cpus_for(workers)[0])
    run_program(benchmark(port, "set", 1, KV_CLIENTS), seconds, prepare)
    out, calls = run_counted(benchmark(port, "get", 1, KV_COUNTED), running.pid, seconds, prepare)
    expect_answers(out, "get")
    return per_operation(calls, KV_COUNTED)


def run_once(server, workload, workers, load, seconds):
    """The figures of one run."""
    try:
        with serving(server, workers, WORKLOADS[workload].small_pages) as running:
            if workload == "kv":
                return run_kv(workers, running, seconds)
            if workload == "kv-calls":
                return run_kv_calls(workers, running, seconds)
            return play_clients(load, workload, workers, running, seconds)
    except ValueError as error:
        raise Trouble(f"is measured in vain: {error!r}") from error
    except OSError as error:
        raise Trouble(f"cannot be measured: {error}") from error


def workers_of(workload, options):
    return [workers for workers in options.workers if workers <= WORKLOADS[workload].most_workers]


def rounds_of(workload, options):
    return min(options.rounds, WORKLOADS[workload].most_rounds)


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
               for workload in workloads for workers in workers_of(workload, options)}
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
