# SPDX-License-Identifier: MIT
"""Those that serve. For all workloads but those with keys and values: Skua, a loop in plain C, and
each peer of bench/net/peers once it is installed and built. Such a server is a program that takes
the number of workers, prints `echo PORT` and `sink PORT`, and ends with its standard input. For
keys and values: the example of Skua, and Redis.

Each run has a fresh server. Clients have the first CPU for themselves if the others suffice for
the server's workers, as otherwise the scheduler decides now and then that both share one."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from netbench.figures import RAW, REDIS, SKUA, WORKLOADS
from peers.contenders import Trouble, build_peer, run_logged, version_of
from peers.machine import first_line
from peers.measure import lift_priority

PR_SET_THP_DISABLE = 41  # linux/prctl.h
START_SECONDS = 20
END_SECONDS = 20
KV_EXAMPLE = "12_kv"


@dataclass
class Server:
    """A contender; `command` makes of the number of workers, and the port for one that does not
    choose it, what to run."""
    name: str
    version: str
    workloads: set[str]
    command: Callable[[int, int], list]
    tells_ports: bool = True  # and ends with its input; else it is told a port, and ends by a signal


@dataclass
class Running:
    """A server under way."""
    pid: int
    ports: dict[str, int]


# ---- which there are ----


def net_workloads():
    return {name for name, workload in WORKLOADS.items() if workload.load}


def kv_workloads():
    return set(WORKLOADS) - net_workloads()


def net_server(name, program, version=""):
    return Server(name, version, net_workloads(), lambda workers, _: [program, str(workers)])


def own_servers(build):
    """Skua, and the loop in plain C."""
    servers = [net_server(SKUA, build / "bench/net_skua"), net_server(RAW, build / "bench/net_raw")]
    for server in servers:
        program = server.command(1, 0)[0]
        if not program.exists():
            raise Trouble(f"{program} is missing: make build-release")
    return servers


def prepare_peer(source, output, bootstrap, log):
    return net_server(source.name, build_peer(source, output, bootstrap, log), version_of(source))


def kv_server(build):
    """The example. It has a worker for each CPU that it may use."""
    program = build / f"examples/{KV_EXAMPLE}"
    if not program.exists():
        raise Trouble(f"is missing: there is no {program}")
    return Server(SKUA, "", kv_workloads(), lambda _, port: [program, str(port)],
                  tells_ports=False)


def redis_command(_, port):
    """Redis as it is, without files."""
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--loglevel", "warning"]


def prepare_redis(bootstrap, log):
    run_logged([bootstrap, "packages", "redis-server", "redis-tools"], log, "cannot be installed")
    version = first_line(["redis-server", "--version"]).split(" sha=")[0]
    return Server(REDIS, f"{version}, one thread, nothing is saved", kv_workloads(), redis_command,
                  tells_ports=False)


# ---- running them ----


def cpus_for(workers):
    """Which CPUs clients and server may use: no more than it has workers."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others[:workers] if len(others) >= workers else [first, *others])


def cpu_seconds(pid):
    """CPU time of all threads of a process so far: the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime(~pid << 3 | 2)


def start_on(cpus, small_pages=False):
    """For Popen: what to do between fork and exec."""
    def prepare():
        os.sched_setaffinity(0, cpus)
        lift_priority()
        if small_pages:
            ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    return prepare


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ports_told(process):
    """The ports that a server prints."""
    text = b""
    while text.count(b"\n") < 2:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        more = os.read(process.stdout.fileno(), 4096) if ready else b""
        if not more:
            raise Trouble("does not say where it listens")
        text += more
    return {name: int(port) for name, port in map(str.split, text.decode().splitlines())}


def await_port(process, port):
    """Waits until somebody listens."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return {"kv": port}
        time.sleep(0.02)
    raise Trouble("does not listen")


def end_server(process, by_signal):
    """Asks it to end, and insists."""
    process.stdin.close()
    if by_signal and process.poll() is None:
        process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()


@contextmanager
def serving(server, workers, small_pages=False):
    """Runs a server while the body of the `with` does."""
    port = 0 if server.tells_ports else free_port()
    with tempfile.TemporaryDirectory(prefix="skua-") as folder, \
            open(Path(folder) / "errors", "w+", encoding="utf-8") as errors:
        try:
            # Between fork and exec only: this program has one thread.
            process = subprocess.Popen(
                server.command(workers, port), stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL if port else subprocess.PIPE, stderr=errors, cwd=folder,
                start_new_session=True, preexec_fn=start_on(cpus_for(workers)[1], small_pages))
        except OSError as error:
            raise Trouble(f"cannot be run: {error}") from error
        try:
            yield Running(process.pid, await_port(process, port) if port else ports_told(process))
        except Trouble as trouble:
            errors.seek(0)
            last = errors.read().strip().rpartition("\n")[2]
            raise Trouble(f"{trouble}{f' ({last})' if last else ''}") from trouble
        finally:
            end_server(process, by_signal=not server.tells_ports)
            if process.stdout:
                process.stdout.close()
