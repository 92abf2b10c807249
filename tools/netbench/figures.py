# SPDX-License-Identifier: MIT
"""What is compared: the figures of the workloads, and who has them."""

from dataclasses import dataclass

SKUA, RAW, REDIS = "skua", "raw", "redis"

# In the order of the tables; a peer that is not here comes last, under the name of its folder.
TITLES = {SKUA: "Skua", RAW: "plain epoll", "tokio": "Tokio", "go": "Go", "libuv": "libuv",
          REDIS: "Redis"}


@dataclass(frozen=True)
class Workload:
    """Something that is run; `load` is what bench/net/load calls it, or nothing."""
    name: str
    about: str
    load: str = ""
    options: tuple[str, ...] = ()
    port: str = "echo"  # which of a server's
    most_rounds: int = 1000  # more tell no more
    most_workers: int = 1000  # more would not be used
    counts_calls: bool = False
    small_pages: bool = False  # no huge ones, which hide how much of them is in use


# 100 connections and 64 bytes, 10,000 connections, 1 GiB: as the load generator has them by itself.
WORKLOADS = {workload.name: workload for workload in (
    Workload("echo", "100 clients send 64 bytes and wait for the echo, 50,000 times", "echo"),
    Workload("echo-calls", "the system calls of an echo", "echo", most_rounds=3,
             counts_calls=True),
    Workload("idle", "memory of 10,000 connections that are silent, in pages of 4 KiB", "idle",
             most_rounds=5, small_pages=True),
    Workload("burst", "10,000 connections that are silent, then send 64 bytes all at once", "idle"),
    Workload("storm", "10,000 clients connect at once and send 64 bytes", "storm"),
    Workload("bulk", "1 GiB from one client", "bulk", port="sink", most_workers=1),
    Workload("kv", "redis-benchmark with the example of a key-value store, and with Redis"),
    Workload("kv-calls", "the system calls of a GET", most_rounds=3, counts_calls=True),
)}

KV_COMMANDS = {"get": "GET", "set": "SET", "ping_mbulk": "PING"}
KV_PIPELINES = (1, 16)


@dataclass(frozen=True)
class Figure:
    """A row of the table: less is better."""
    name: str
    workload: str
    field: str  # of a run's JSON
    unit: str
    about: str


def kv_field(command, pipeline):
    return f"{command}_{pipeline}_us"


def kv_figures():
    for pipeline in KV_PIPELINES:
        for command, text in KV_COMMANDS.items():
            tail = f", pipelined by {pipeline}" if pipeline > 1 else ""
            yield Figure(f"kv {text}{f' -P {pipeline}' if pipeline > 1 else ''}", "kv",
                         kv_field(command, pipeline), "us", f"CPU time of a {text}{tail}")


FIGURES = {figure.name: figure for figure in (
    Figure("echo", "echo", "cpu_us", "us", "CPU time of an echo"),
    Figure("echo p99", "echo", "p99_us", "us", "how long a client waits for its echo, p99"),
    Figure("echo calls", "echo-calls", "calls", "calls", "system calls of an echo"),
    Figure("idle", "idle", "bytes", "bytes", "memory of a connection at rest"),
    Figure("idle again", "idle", "bytes_after", "bytes", "the same after all were busy at once"),
    Figure("burst", "burst", "cpu_us", "us", "CPU time of an echo when all send"),
    Figure("burst p99", "burst", "p99_us", "us", "how long a client waits when all send, p99"),
    Figure("storm", "storm", "cpu_us", "us", "CPU time of a connection with one echo"),
    Figure("storm p99", "storm", "p99_us", "us", "from connecting to the echo, p99"),
    Figure("bulk", "bulk", "cpu_s", "s", "CPU time of 1 GiB"),
    Figure("bulk time", "bulk", "wall_s", "s", "duration of 1 GiB"),
    *kv_figures(),
    Figure("kv calls", "kv-calls", "calls", "calls", "system calls of a GET"),
)}


def title(name):
    return TITLES.get(name, name)


def in_order(names):
    places = {name: place for place, name in enumerate(TITLES)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def key_of(workload, workers):
    """Where results.json has the runs of a workload."""
    return f"{workload}/{workers}"
