# SPDX-License-Identifier: MIT
"""What is compared: the workloads, which figure of a run counts, and what bounds it."""

from dataclasses import dataclass

SKUA = "skua"

# In the order of the tables; a peer that is not here comes last, under the name of its folder.
TITLES = {SKUA: "Skua", "tokio": "Tokio", "go": "Go", "erlang": "Erlang", "caf": "CAF",
          "tbb": "oneTBB", "libuv": "libuv"}


@dataclass(frozen=True)
class Workload:
    name: str
    unit: str
    field: str = "ns_per_op"  # of a run's JSON; less is better
    limit: str = ""  # of bench/limits
    scale: float = 1  # from the field's unit to the nanoseconds of the limit
    on_chart: bool = True
    of_skua: str = ""  # Skua's workload, if its name differs

    @property
    def skua_name(self):
        return self.of_skua or self.name


# Why each limit: with `malloc`, a process is at least one piece of memory that is taken and given
# back; with `loop-recycling`, a message is at least that of a loop that knows one thread only and
# uses its memory again (several workers may be faster than one loop); with `handover`, what one core makes and another takes moves
# between their caches; with `rmw`, whoever completes a command and its owner have to agree on one
# word; with `futex-wake`, a thread that sleeps has to be woken. Watching and finding others, work of
# its own (steal), sleeping (timers), waiting beside work (heartbeat-..., child-latency, stop,
# ...-storm, burst-exit), many at once (publish, restart, stop-children, upgrade) and being idle have
# no such limit.
WORKLOADS = {workload.name: workload for workload in (
    Workload("spawn", "ns", limit="malloc"),
    Workload("submit", "ns", limit="handover"),
    Workload("pingpong", "ns", limit="loop-recycling"),
    Workload("pairs", "ns", limit="loop-recycling"),
    Workload("ring", "ns", limit="loop-recycling"),
    Workload("ring100", "ns", limit="loop-recycling"),
    Workload("fanin", "ns", limit="loop-recycling"),
    Workload("fanout", "ns", limit="loop-recycling"),
    Workload("skynet", "ns", limit="malloc"),
    Workload("fib", "ns", limit="malloc"),
    # As users of fork and join write them: a task runs one of its children itself. Skua starts all.
    Workload("skynet-inline", "ms", field="wall_ms", on_chart=False, of_skua="skynet"),
    Workload("fib-inline", "ms", field="wall_ms", on_chart=False, of_skua="fib"),
    Workload("yield", "ns", limit="rmw"),
    Workload("call", "ns", limit="loop-recycling"),
    Workload("call-timeout", "ns", limit="loop-recycling"),
    Workload("monitor", "ns"),
    Workload("publish", "ns", on_chart=False),
    Workload("restart", "ns", field="beyond_ns", on_chart=False),
    Workload("stop-children", "ms", field="wall_ms", on_chart=False),
    Workload("upgrade", "ms", field="wall_ms", on_chart=False),
    Workload("name-find", "ns"),
    Workload("name-number", "ns", on_chart=False),
    Workload("monitor-storm", "s", field="wall_s", on_chart=False),
    Workload("link-storm", "s", field="wall_s", on_chart=False),
    Workload("burst-exit", "ms", field="max_ms", on_chart=False),
    Workload("steal", "ns", on_chart=False),
    Workload("task-pingpong", "ns", limit="loop-recycling", on_chart=False),
    Workload("task-spawn", "ns", limit="malloc", on_chart=False),
    Workload("task-memory", "bytes", field="bytes_per_process", on_chart=False),
    Workload("idle-memory", "bytes", field="bytes_per_process", on_chart=False),
    Workload("timers", "s", field="wall_s", on_chart=False),
    Workload("wake", "us", field="p50_us", limit="futex-wake", scale=1e3, on_chart=False),
    Workload("idle-cpu", "wake-ups", field="wakeups", on_chart=False),
    Workload("heartbeat-4x5ms", "ms", field="p99_ms", on_chart=False),
    Workload("heartbeat-50x1ms", "ms", field="p99_ms", on_chart=False),
    Workload("heartbeat-500x0.1ms", "ms", field="p99_ms", on_chart=False),
    Workload("child-latency", "ms", field="p99_ms", on_chart=False),
    Workload("stop", "ms", field="p50_ms", on_chart=False),
)}


def title(name):
    return TITLES.get(name, name)


def in_order(names):
    """Skua and the peers as the tables have them."""
    places = {name: place for place, name in enumerate(TITLES)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))
